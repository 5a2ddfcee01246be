#!/usr/bin/env python3
"""Compiles page_word.cpp and runs each scenario: unchanged it must hold, with each change that it is meant to find it
must fail.  Exit status 0: all as expected; 1: something was not; 77: skipped, as Relacy is not installed.

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


def run_one(program, scenario, change):
    """(holds, fails or broken; the fault or what is broken; seconds)"""
    since = time.monotonic()
    done = subprocess.run([program, scenario, change], text=True, capture_output=True, errors='replace')
    fault = FAULT.search(done.stdout)
    seconds = time.monotonic() - since
    if done.returncode == 0 and fault is None: return 'holds', '', seconds
    if done.returncode == 1 and fault is not None: return 'fails', fault.group(0), seconds
    return 'broken', f'exit status {done.returncode}: {(done.stdout + done.stderr)[-200:]}', seconds


def run_all(program):
    rows = subprocess.run([program, '--list'], text=True, capture_output=True, check=True).stdout.splitlines()
    rows = [row.split() for row in rows]
    n_wrong = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda row: run_one(program, row[0], row[1]), rows)
        for (scenario, change, expected), (result, fault, seconds) in zip(rows, results):
            n_wrong += result != expected
            print(f'{"ok" if result == expected else "WRONG":6} {scenario:12} {change:14} {result:7} {seconds:5.1f} s'
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
        program = os.path.join(folder, 'page_word')
        command = [args.compiler, '-std=c++17', '-O1', '-Wall', '-Wextra', '-Werror', str(SOURCE), '-o', program]
        if subprocess.run(command).returncode != 0: return 1
        if args.show: return subprocess.run([program, *args.show]).returncode
        return run_all(program)


if __name__ == '__main__':
    sys.exit(main())
