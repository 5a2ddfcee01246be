#!/usr/bin/env python3
"""Compiles page_word.cpp and runs each scenario: unchanged it must hold, with each change that it is meant to find it
must fail.  Exit status 0: all as expected; 1: something was not; 77: skipped, as Relacy is not installed.

What the pool does with the page word is taken from the sources as it is there (EXTRACTED), and is compiled again with each
of a few faults (SEEDED).

  run.py [--compiler g++]
  run.py --show SCENARIO CHANGE     one of them, with the interleaving in which Relacy finds the fault
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).with_name('page_word.cpp')
FAULT = re.compile(r'^(DATA RACE|USER ASSERT|ACCESS TO UNINITIALIZED|access to freed|DEADLOCK|LIVELOCK).*$', re.M)
SKIPPED = 77

SRC = pathlib.Path(__file__).resolve().parents[3] / 'src'
EXTRACTED = [
    ('page/page.h', '_mi_page_set_home'),
    ('page/page.h', '_mi_page_set_bin'),
    ('page/page.h', '_mi_page_bin_offset'),
    ('heap/queue.h', '_mi_queue_owns'),
    ('heap/pool.c', 'pool_for'),
    ('heap/pool.c', 'pool_of'),
    ('heap/pool.c', 'pool_lock_one'),
    ('heap/pool.c', 'pool_push'),
    ('heap/pool.c', 'pool_add'),
    ('heap/pool.c', 'pool_unlink'),
    ('heap/pool.c', '_mi_pool_share'),
    ('heap/pool.c', 'pool_adopt_from'),
    ('heap/pool.c', '_mi_pool_remove'),
    ('heap/free.c', '_mi_free_any'),
    ('heap/walk.c', 'walk_wants'),
]

# Name: (the scenario that must fail then, [(what is replaced, by what)]).
SEEDED = {
    'home-late': ('owns', [('_mi_page_set_home(page, home); // before', '// before'),
                           ('adopt(&page->word, &free)) {', 'adopt(&page->word, &free)) {\n_mi_page_set_home(page, home);')]),
    'home-first': ('owns', [('  return mi_load_relaxed(&page->home) == theap;', '  return true;'),
                            ('  if (_mi_page_word_state(mi_load_acquire', '  if (mi_load_relaxed(&page->home) != theap) return false;\n'
                             '  if (_mi_page_word_state(mi_load_acquire')]),
    'home-before-bin': ('drained', [('  size_t      bin_offset = _mi_page_bin_offset(page); // first: P6\n', ''),
                                    ('_mi_free_local(home, bin_offset,', '_mi_free_local(home, _mi_page_bin_offset(page),')]),
    'adopt-unlocked': ('share_adopt', [('  _mi_lock_acquire(pool_lock(heap, pool));\n  mi_page_t* page', '  (void)heap;\n  mi_page_t* page'),
                                       ('  _mi_lock_release(pool_lock(heap, pool));\n  if (page == NULL)', '  if (page == NULL)')]),
    'wrong-pool': ('share_adopt', [('  return page->pool;', '  return pool_for(heap, page);')]),
}


def can_compile(compiler, text):
    command = [compiler, '-x', 'c++', '-fsyntax-only', '-']
    try:
        return subprocess.run(command, input=text, text=True, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def skip_reason(compiler):
    if not can_compile(compiler, 'int main() { return 0; }'): return f'the compiler {compiler} does not work'
    if not can_compile(compiler, '#include <relacy/relacy.hpp>'): return 'Relacy (package relacy-dev) is not installed'
    return None


def function_of(file, name):
    """The text of a function, without what is before its name and its type."""
    text = (SRC / file).read_text(encoding='utf-8')
    found = re.search(rf'^[^\s#/][^\n;]*\b{name}\([^;{{]*\{{.*?^\}}$', text, re.M | re.S)
    if found is None: sys.exit(f'src/{file} has no function {name}')
    return found[0].removeprefix('static ').removeprefix('inline ').removeprefix('mi_always_inline ').removeprefix('mi_noinline ')


def extracted(seeded=None):
    text = '\n\n'.join('static ' + function_of(file, name) for file, name in EXTRACTED) + '\n'
    for before, after in SEEDED[seeded][1] if seeded else []:
        if text.count(before) != 1: sys.exit(f'{seeded}: the sources have {text.count(before)} times: {before}')
        text = text.replace(before, after)
    return text


def compiled(compiler, folder, seeded=None):
    """The program, or None."""
    place = pathlib.Path(folder, seeded or 'unchanged')
    place.mkdir()
    (place / 'extracted.hpp').write_text(extracted(seeded), encoding='utf-8')
    command = [compiler, '-std=c++17', '-O1', '-Wall', '-Wextra', '-Werror', f'-I{place}', str(SOURCE), '-o',
               str(place / 'page_word')]
    return place / 'page_word' if subprocess.run(command).returncode == 0 else None


def run_one(program, scenario, change):
    """(holds, fails or broken; the fault or what is broken; seconds)"""
    since = time.monotonic()
    done = subprocess.run([program, scenario, change], text=True, capture_output=True, errors='replace')
    fault = FAULT.search(done.stdout)
    seconds = time.monotonic() - since
    if done.returncode == 0 and fault is None: return 'holds', '', seconds
    if done.returncode == 1 and fault is not None: return 'fails', fault.group(0), seconds
    return 'broken', f'exit status {done.returncode}: {(done.stdout + done.stderr)[-200:]}', seconds


def run_all(programs):
    rows = subprocess.run([programs[None], '--list'], text=True, capture_output=True, check=True).stdout.splitlines()
    rows = [(programs[None], *row.split()) for row in rows]
    rows += [(programs[name], scenario, name, 'fails') for name, (scenario, _) in SEEDED.items()]
    n_wrong = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda row: run_one(row[0], row[1], 'none' if row[2] in SEEDED else row[2]), rows)
        for (_, scenario, change, expected), (result, fault, seconds) in zip(rows, results):
            n_wrong += result != expected
            print(f'{"ok" if result == expected else "WRONG":6} {scenario:12} {change:18} {result:7} {seconds:5.1f} s'
                  f'  {fault}', flush=True)
    print(f'{len(rows)} runs, {n_wrong} not as expected')
    return 1 if n_wrong or not rows else 0


def main():
    parser = argparse.ArgumentParser(description='The page word under the C11 memory model.')
    parser.add_argument('--compiler', default=os.environ.get('CXX', 'g++'))
    parser.add_argument('--show', nargs=2, metavar=('SCENARIO', 'CHANGE'))
    args = parser.parse_args()
    reason = skip_reason(args.compiler)
    if reason:
        print(f'SKIP model-relacy: {reason}')
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        names = [None, *SEEDED]
        if args.show: names = [args.show[1] if args.show[1] in SEEDED else None]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            programs = dict(zip(names, pool.map(lambda name: compiled(args.compiler, folder, name), names)))
        if None in programs.values(): return 1
        if args.show: return subprocess.run([programs[names[0]], args.show[0], 'none' if names[0] else args.show[1]]).returncode
        return run_all(programs)


if __name__ == '__main__':
    sys.exit(main())
