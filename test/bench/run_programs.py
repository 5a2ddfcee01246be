#!/usr/bin/env python3
"""Proves: each program of the benchmark suite builds, ends well, and prints the same with our library as without it.

  run_programs.py --cmake CMAKE --build-dir DIR --lib LIB        DIR: a configured build, whose target `bench` is built"""

import argparse
import pathlib
import subprocess
import sys

if sys.version_info < (3, 11):
    print("SKIP bench-programs: needs Python 3.11")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from suite import measure, rounds, table  # noqa: E402

THREADS = 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--lib", required=True)
    options = parser.parse_args()
    subprocess.run([options.cmake, "--build", options.build_dir, "--target", "bench"], check=True,
                   stdout=subprocess.DEVNULL)
    measure.prepare()
    places = table.Places(str(pathlib.Path(options.build_dir) / "bench"), str(ROOT / "bench/real"))
    n_failed = n_run = 0
    for test in table.load(ROOT / "bench/tests.toml").values():
        if test.is_real:
            continue
        jobs = {name: test.job(places, library, True, THREADS)
                for name, library in (("ours", str(pathlib.Path(options.lib).resolve())), (table.GLIBC, ""))}
        results = rounds.run_test(jobs, 1, 60)
        failures = [f"{name}: {result.failure}" for name, result in results.items() if result.failure]
        print(f"{'FAIL' if failures else 'ok  '} {test.command(True, THREADS)}  {'; '.join(failures)}")
        n_run += 1
        n_failed += bool(failures)
    print(f"{n_run - n_failed} passed, {n_failed} failed")
    sys.exit(n_failed != 0 or n_run == 0)


if __name__ == "__main__":
    main()
