#!/usr/bin/env python3
"""Storms in a control group with 128 MiB, as the kernel counts them: with page tables, kernel stacks of threads, and what a child of a
fork has copied.  Each must end as it does outside; the kernel ends a process for which there is not enough.

  contained.py --programs DIRECTORY

Exit status 1: a storm failed; 77: no control group of our own with memory can be made here."""

import argparse
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import control_group  # noqa: E402
from outcome import SKIPPED, Skipped, exit_status, expect  # noqa: E402

MIB = 1 << 20
LIMIT = 128 * MIB  # they need 17 to 72, also beside other work, and 78 at five times their size
STORMS = ["forks", "forks-drift", "heaps", "mappings", "signals", "soak", "threads"]


def make_group():
    group = control_group.make(LIMIT)
    if group is None:
        raise Skipped("contained: no control group with memory can be made here")
    return group


def check_that_it_limits():
    with make_group() as group:
        result = subprocess.run([sys.executable, "-c", f"bytearray({2 * LIMIT})"], capture_output=True, preexec_fn=group.enter, check=False)
        if result.returncode != -signal.SIGKILL:
            raise Skipped("contained: the group does not end a process that has more than its limit (is there swap?)")


def check_storm(program):
    with make_group() as group:
        result = subprocess.run([program], capture_output=True, text=True, preexec_fn=group.enter, check=False)
        most = group.most()
    said = "" if most is None else f", at most {most / MIB:.0f} MiB"
    print(f"{program.name}: {'skipped' if result.returncode == SKIPPED else f'ended with {result.returncode}'}{said}", flush=True)
    expect(result.returncode in (0, SKIPPED), f"{program.name}\n{result.stdout[-1500:]}{result.stderr[-1500:]}")
    return result.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    programs = parser.parse_args().programs.resolve()

    def check():
        check_that_it_limits()
        n_ran = sum(check_storm(programs / f"test-storms-{name}-shared") for name in STORMS)
        expect(n_ran > len(STORMS) / 2, f"only {n_ran} of {len(STORMS)} storms ran")

    return exit_status(check)


if __name__ == "__main__":
    sys.exit(main())
