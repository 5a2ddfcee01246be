#!/usr/bin/env python3
"""Compiles page_word.cpp and words.cpp and runs each scenario: unchanged it must hold, with each change that it is meant to find
it must fail.  Exit status 0: all as expected; 1: something was not; 77: skipped, as Relacy is not installed.

The functions that they are about are taken from the sources as they are there (EXTRACTED), and are compiled again with each of a
few faults (SEEDED).

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

HERE = pathlib.Path(__file__).parent
FAULT = re.compile(r'^(DATA RACE|USER ASSERT|ACCESS TO UNINITIALIZED|access to freed|DEADLOCK|LIVELOCK).*$', re.M)
SKIPPED = 77

SRC = pathlib.Path(__file__).resolve().parents[3] / 'src'
EXTRACTED = {
    'page_word': [
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
    ],
    'words': [
        ('heap/background.c', 'background_wants_notes'),
        ('heap/background.c', 'background_set_notes'),
        ('heap/background.c', 'background_sleeps'),
        ('heap/background.c', 'background_end'),
        ('heap/background.c', 'background_on_ended'),
        ('heap/background.c', '_mi_background_observe'),
        ('prim/thread_exit.c', 'thread_exit_tell'),
    ],
}

# Name: (the scenario that must fail then, [(what is replaced, by what)]).
SEEDED = {
    'page_word': {
        'home-late': ('owns', [('_mi_page_set_home(page, home); // before', '// before'),
                               ('adopt(&page->word, MI_PAGE_OWNED, &free)) {', 'adopt(&page->word, MI_PAGE_OWNED, &free)) {\n_mi_page_set_home(page, home);')]),
        'home-first': ('owns', [('  return mi_load_relaxed(&page->home) == theap;', '  return true;'),
                                ('  if (_mi_page_word_state(mi_load_acquire', '  if (mi_load_relaxed(&page->home) != theap) return false;\n'
                                 '  if (_mi_page_word_state(mi_load_acquire')]),
        'home-before-bin': ('drained', [('  size_t      bin_offset = _mi_page_bin_offset(page); // first: P6\n', ''),
                                        ('_mi_free_local(home, bin_offset,', '_mi_free_local(home, _mi_page_bin_offset(page),')]),
        'adopt-unlocked': ('share_adopt', [('  _mi_lock_acquire(pool_lock(heap, pool));\n  mi_page_t* page', '  (void)heap;\n  mi_page_t* page'),
                                           ('  _mi_lock_release(pool_lock(heap, pool));\n  if (page == NULL)', '  if (page == NULL)')]),
        'wrong-pool': ('share_adopt', [('  return page->pool;', '  return pool_for(heap, page);')]),
    },
    'words': {
        'noted-once': ('observe', [('} while (wants != background_wants_notes());', '} while (false);')]),
        'noted-by-a-store': ('late_end', [('mi_fetch_and_acq_rel(&_mi_event_wanted, ~MI_EVENT_NOTES)',
                                           'mi_store_relaxed(&_mi_event_wanted, 0u)')]),
        'last-taken-back': ('last', [('if (is_last) mi_store_release(&background_must_end, true);',
                                      'mi_store_release(&background_must_end, is_last);')]),
        'told-without-fence': ('last', [('  mi_fence_seq_cst();\n', '')]),
    },
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


def extracted(model, seeded=None):
    text = '\n\n'.join('static ' + function_of(file, name) for file, name in EXTRACTED[model]) + '\n'
    for before, after in SEEDED[model][seeded][1] if seeded else []:
        if text.count(before) != 1: sys.exit(f'{seeded}: the sources have {text.count(before)} times: {before}')
        text = text.replace(before, after)
    return text


def compiled(compiler, folder, model, seeded=None):
    """The program, or None."""
    place = pathlib.Path(folder, model, seeded or 'unchanged')
    place.mkdir(parents=True)
    (place / 'extracted.hpp').write_text(extracted(model, seeded), encoding='utf-8')
    command = [compiler, '-std=c++17', '-O1', '-Wall', '-Wextra', '-Werror', f'-I{place}', str(HERE / f'{model}.cpp'), '-o',
               str(place / model)]
    return place / model if subprocess.run(command).returncode == 0 else None


def run_one(program, scenario, change):
    """(holds, fails or broken; the fault or what is broken; seconds)"""
    since = time.monotonic()
    done = subprocess.run([program, scenario, change], text=True, capture_output=True, errors='replace')
    fault = FAULT.search(done.stdout)
    seconds = time.monotonic() - since
    if done.returncode == 0 and fault is None: return 'holds', '', seconds
    if done.returncode == 1 and fault is not None: return 'fails', fault.group(0), seconds
    return 'broken', f'exit status {done.returncode}: {(done.stdout + done.stderr)[-200:]}', seconds


def rows_of(model, programs):
    rows = subprocess.run([programs[model, None], '--list'], text=True, capture_output=True, check=True).stdout.splitlines()
    rows = [(programs[model, None], *row.split()) for row in rows]
    return rows + [(programs[model, name], scenario, name, 'fails') for name, (scenario, _) in SEEDED[model].items()]


def run_all(programs):
    rows = [row for model in EXTRACTED for row in rows_of(model, programs)]
    seeded = {name for model in SEEDED.values() for name in model}
    n_wrong = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda row: run_one(row[0], row[1], 'none' if row[2] in seeded else row[2]), rows)
        for (_, scenario, change, expected), (result, fault, seconds) in zip(rows, results):
            n_wrong += result != expected
            print(f'{"ok" if result == expected else "WRONG":6} {scenario:12} {change:18} {result:7} {seconds:5.1f} s'
                  f'  {fault}', flush=True)
    print(f'{len(rows)} runs, {n_wrong} not as expected')
    return 1 if n_wrong or not rows else 0


def show(programs, scenario, change):
    """By the program that has the scenario: the other one ends with 2."""
    for (_, seeded), program in programs.items():
        status = subprocess.run([program, scenario, 'none' if seeded else change]).returncode
        if status != 2: return status
    return 2


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
        names = [(model, name) for model in EXTRACTED for name in (None, *SEEDED[model])]
        if args.show: names = [name for name in names if name[1] == (args.show[1] if any(args.show[1] in model for model in SEEDED.values()) else None)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            programs = dict(zip(names, pool.map(lambda name: compiled(args.compiler, folder, *name), names)))
        if None in programs.values(): return 1
        if args.show: return show(programs, *args.show)
        return run_all(programs)


if __name__ == '__main__':
    sys.exit(main())
