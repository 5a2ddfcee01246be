#!/usr/bin/env python3
"""Golden counts: how many instructions, loads, stores and atomic (locked) operations a call costs.

Runs test/golden/fastpath.c under callgrind, divides what the allocator and what it calls executed in each phase by the
number of calls, and compares with test/golden/fastpath.csv.  Phases of pattern `hit` must agree exactly, unless a fraction
tells that not all of their calls went the same way.  Slow paths have a share in those, and in all other patterns: they may
change by a tolerance.

  golden.py --driver D --lib L            compares; exit status 1 and a table if a count differs
  golden.py --driver D --lib L --update   writes the file anew
  golden.py --driver D --lib L --print    prints the counts only

Counts belong to one compiler: with another one than the file names the check is skipped (exit status 77), and so it is for a
library without probes of tracers (no <sys/sdt.h> when it was built), whose code differs by an instruction here and there.  Fewer
instructions than before also count as a difference: write the better numbers down."""

import argparse
import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "bench"))

from suite import callgrind  # noqa: E402

TABLE = HERE / "fastpath.csv"
COLUMNS = ["instructions", "loads", "stores", "atomics"]
TOLERANCE = 0.06  # of a count, where slow paths have a share
SLACK = 0.05      # always allowed there: counts near 0, such as 0.03 atomic operations a call

# The same slow paths in each run, however busy the machine is: no purge, no thread of the library, no binding of symbols.  And
# no rounds, which the clock decides: that of the driver stands still.
ENVIRONMENT = {"LD_BIND_NOW": "1", "MIMALLOC_PURGE_DELAY": "-1", "MIMALLOC_BACKGROUND_THREAD": "0"}


def has_probes(lib):
    sections = subprocess.run(["readelf", "--sections", "--wide", lib], capture_output=True, text=True, check=True)
    return ".note.stapsdt" in sections.stdout


def count(driver, lib):
    """[(call, pattern, [counts per call])] in the order of the phases."""
    driver, lib = os.path.realpath(driver), os.path.realpath(lib)
    locked = callgrind.offsets_of(r"lock\s|xchg\s.*\(", lib)  # the bus or cache line
    rows = []
    with tempfile.TemporaryDirectory() as work:
        run = subprocess.run(
            [*callgrind.command(work, "--cache-sim=yes"), driver],
            env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=500)
        if run.returncode != 0:
            raise RuntimeError(f"{driver} ended with {run.returncode}\n{run.stdout}{run.stderr}")
        for name, costs in callgrind.counts(work, driver):
            if not any(obj == lib for obj, _ in costs):
                raise RuntimeError(f"{driver} does not use {lib}")
            call, pattern, n_calls = name.rsplit("/", 2)
            total = [sum(cost[i] for cost in costs.values()) for i in range(3)]
            total.append(sum(cost[0] for (obj, at), cost in costs.items() if obj == lib and at in locked))
            rows.append((call, pattern, [round(t / int(n_calls), 3) for t in total]))
    if not rows:
        raise RuntimeError("no phase was counted")
    return rows


def differences(pattern, old, new):
    """Which counts of a row differ from the golden ones."""
    if pattern == "hit" and all(count == int(count) for count in old):
        return [a != b for a, b in zip(old, new)]
    return [abs(b - a) > max(SLACK, TOLERANCE * a) for a, b in zip(old, new)]


def show(rows, golden=None):
    print(f"{'call':<28}{'pattern':<9}" + "".join(f"{c:>22}" for c in COLUMNS))
    for call, pattern, counts in rows:
        old = (golden or {}).get((call, pattern), counts)
        cells = [f"{was:g} -> {new:g}" if differs else f"{new:g}"
                 for was, new, differs in zip(old, counts, differences(pattern, old, counts))]
        print(f"{call:<28}{pattern:<9}" + "".join(f"{c:>22}" for c in cells))


def write(rows, compiler):
    with open(TABLE, "w", encoding="utf-8", newline="") as file:
        file.write(f"# Counts per call on x86-64 with {compiler}; see golden.py and fastpath.c.\n")
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["call", "pattern"] + COLUMNS)
        for call, pattern, counts in rows:
            out.writerow([call, pattern] + [f"{c:g}" for c in counts])


def read():
    """The compiler that the golden file names, and {(call, pattern): [counts]}."""
    with open(TABLE, encoding="utf-8") as file:
        head = file.readline()
        rows = {(r["call"], r["pattern"]): [float(r[c]) for c in COLUMNS] for r in csv.DictReader(file)}
    return re.search(r"with (.*?);", head)[1], rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--print", action="store_true")
    args = parser.parse_args()
    if os.uname().machine != "x86_64":
        print(f"SKIP golden: counts are for x86-64, this is {os.uname().machine}")
        return 77
    for tool in ("valgrind", "objdump", "readelf"):
        if shutil.which(tool) is None:
            print(f"SKIP golden: {tool} is not installed")
            return 77
    compiler = callgrind.compiler_of(args.lib)
    if not args.print and not has_probes(args.lib):
        print("SKIP golden: the library has no probes of tracers; with <sys/sdt.h> (Debian: systemtap-sdt-dev) it has them")
        return 77
    if not (args.update or args.print):
        if not TABLE.exists():
            print(f"{TABLE} does not exist; --update writes it")
            return 1
        wanted, golden = read()
        if compiler != wanted:
            print(f"SKIP golden: counts are for {wanted}, the library was built with {compiler}")
            return 77
    rows = count(args.driver, args.lib)
    if args.print or args.update:
        show(rows)
        if args.update:
            write(rows, compiler)
        return 0
    missing = sorted(set(golden) ^ {(call, pattern) for call, pattern, _ in rows})
    wrong = [r for r in rows if any(differences(r[1], golden.get(r[:2], r[2]), r[2]))]
    for call, pattern in missing:
        print(f"in one of the table and the driver only: {call}, {pattern}")
    if wrong:
        print("These counts are not those of fastpath.csv; if that is meant, run golden.py --update:")
        show(wrong, golden)
    elif not missing:
        print(f"{len(rows)} phases, {compiler}: as in fastpath.csv")
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())
