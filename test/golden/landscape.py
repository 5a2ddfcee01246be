#!/usr/bin/env python3
"""Golden counts of the landscape: how many instructions a pair of calls costs, for patterns of calls and sizes of blocks.

Runs the program of bench/landscape under callgrind, each cell with half of the pairs, and compares with
test/golden/landscape.csv.  What libc executes to clear and copy is not counted, because it depends on the processor.

  landscape.py --lib L            compares; exit status 1 and the cells if one takes more instructions than the table says
  landscape.py --lib L --update   writes the file anew

Fewer instructions are no failure; cells that take clearly fewer are named, so that the better numbers are written down.  How
much memory goes back to the system depends on how long that takes, so a busy machine can lead a large cell elsewhere: patterns
with a cell that takes more are counted again, and the least of three counts is judged.  Counts belong to one compiler: with
another one than the file names the check is skipped (exit status 77)."""

import argparse
import csv
import os
import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "bench"))

from suite import callgrind, counting  # noqa: E402
from suite.cost import Failure  # noqa: E402
from suite.landscape import PATTERNS, SIZES, cell_text, is_cell  # noqa: E402

TABLE = HERE / "landscape.csv"
SHARE = 2
TOLERANCE = 0.03  # of a count
SLACK = 0.5       # always allowed
COUNTS = 3        # at most, of a pattern


def count(lib, cc, patterns=PATTERNS):
    """{(pattern, size): instructions of a pair}."""
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        program = counting.build(directory, cc)
        for pattern in patterns:
            cells = [(pattern, size) for size in SIZES if is_cell(pattern, size)]
            counts, failed = counting.count(counting.CALLGRIND, program, lib, cells, SHARE)
            for cell in cells:
                if cell in failed or cell not in counts:
                    raise Failure(f"{cell_text(*cell)}: {failed.get(cell, 'nothing was counted')}")
                found[cell] = round(counts[cell][-1], 1)
    return found


def write(found, compiler, path=TABLE):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(f"# Instructions of a pair of calls on x86-64 with {compiler}; see landscape.py and bench/landscape.\n")
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["pattern", *SIZES])
        for pattern in PATTERNS:
            out.writerow([pattern, *(f"{found[pattern, size]:g}" if is_cell(pattern, size) else "" for size in SIZES)])


def read(path=TABLE):
    """The compiler that the file names, and {(pattern, size): instructions}."""
    with open(path, encoding="utf-8") as file:
        head = file.readline()
        rows = list(csv.DictReader(file))
    found = {(row["pattern"], int(size)): float(value) for row in rows for size, value in row.items()
             if size != "pattern" and value}
    return re.search(r"with (.*?);", head)[1], found


def is_more(was, now):
    return now > was + TOLERANCE * was + SLACK


def least(golden, counted, found):
    """The counts found, or those of more runs, by `counted(patterns)`, where they are less and a cell took more than it should."""
    for _ in range(COUNTS - 1):
        again = {pattern for pattern, size in golden.keys() & found.keys() if is_more(golden[pattern, size], found[pattern, size])}
        if again:
            found |= {cell: min(value, found[cell]) for cell, value in counted(sorted(again)).items()}
    return found


def compare(golden, found):
    """Lines about cells that take more, about cells that take fewer, and about cells of one side only."""
    more, fewer = [], []
    for cell in golden.keys() & found.keys():
        was, now = golden[cell], found[cell]
        if is_more(was, now) or now < was - TOLERANCE * was - SLACK:
            (more if now > was else fewer).append((now / max(was, 1), f"{cell_text(*cell)}: {was:g} -> {now:g}"))
    missing = [cell_text(*cell) for cell in sorted(golden.keys() ^ found.keys())]
    return [text for _, text in sorted(more, reverse=True)], [text for _, text in sorted(fewer)], missing


def why_not(lib):
    if os.uname().machine != "x86_64":
        return f"counts are for x86-64, this is {os.uname().machine}"
    for tool in ("valgrind", "objdump", "readelf"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    return None if os.path.isfile(lib) else f"{lib} is not there"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    reason = why_not(args.lib)
    if reason:
        print(f"SKIP golden-landscape: {reason}")
        return 77
    lib = os.path.realpath(args.lib)
    compiler = callgrind.compiler_of(lib)
    if args.update:
        write(count(lib, args.cc), compiler)
        return 0
    wanted, golden = read()
    if compiler != wanted:
        print(f"SKIP golden-landscape: counts are for {wanted}, the library was built with {compiler}")
        return 77
    more, fewer, missing = compare(golden, least(golden, lambda patterns: count(lib, args.cc, patterns), count(lib, args.cc)))
    for title, lines in (("in one of the table and the program only", missing), ("fewer instructions than in landscape.csv", fewer),
                         ("more instructions than in landscape.csv; if that is meant, run landscape.py --update", more)):
        if lines:
            print(f"{title}:\n  " + "\n  ".join(lines))
    if not more and not missing:
        print(f"{len(golden)} cells, {compiler}: none takes more than in landscape.csv")
    return 1 if more or missing else 0


if __name__ == "__main__":
    sys.exit(main())
