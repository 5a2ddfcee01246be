#!/usr/bin/env python3
"""Makes cmake/text-order.txt anew: which functions of the library processes run, as seen by callgrind.

  order-text.py --lib LIBRARY [--check] PROFILE...

Each PROFILE is what callgrind wrote for a program with the library preloaded, without compressed names:

  LD_PRELOAD=LIBRARY valgrind --tool=callgrind --compress-strings=no --callgrind-out-file=PROFILE PROGRAM ARG...

The first part of the list is what all of them ran, the second what any of them ran; the last part are names that were
listed before and are still in the sources, in the order of before: other builds and programs with threads run those. --check changes nothing, and tells which functions that all of them ran are not
in the list; the exit status is then 1.
"""

import argparse
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE = os.path.join(ROOT, "cmake/text-order.txt")
HEAD = "# Functions that a process runs, seen by callgrind (scripts/order-text.py)."
PARTS = ("# Each process:", "# Most processes:", "# Others, those with threads among them:")


def plain(name):
    """Without what the compiler adds, as text-order.cmake takes the names, and callgrind for a recursion."""
    return re.sub(r"\.(isra|part|constprop|cold)\b.*", "", name).split("'")[0]


def functions_of(profile, lib):
    """The names of the library's functions that were run."""
    found, inside = set(), False
    with open(profile, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("ob="):
                inside = os.path.basename(line[3:].strip()) == os.path.basename(os.path.realpath(lib))
            elif line.startswith("fn=") and inside:
                found.add(plain(line[3:].strip()))
    return found


def aliases_of(lib):
    """For each name of a function of the library all names of it: it was compiled under one of them."""
    table = subprocess.run(["nm", "--defined-only", lib], capture_output=True, text=True, check=True).stdout
    at = {}
    for address, kind, name in (line.split() for line in table.splitlines()):
        if kind in "tTwWiI":
            at.setdefault(address, set()).add(plain(name))
    return {name: frozenset(names) for names in at.values() for name in names}


def listed():
    with open(FILE, encoding="utf-8") as lines:
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def words_of_sources():
    words = set()
    for path in glob.glob(os.path.join(ROOT, "src/**/*.[ch]"), recursive=True):
        with open(path, encoding="utf-8") as text:
            words.update(re.findall(r"\w+", text.read()))
    return words


def by_name(names):
    return sorted(names, key=lambda name: name.strip("_").lower())


def write(parts):
    with open(FILE, "w", encoding="utf-8") as out:
        print(HEAD, file=out)
        for title, names in zip(PARTS, parts):
            print(title, *names, sep="\n", file=out)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("--lib", required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("profiles", nargs="+")
    args = parser.parse_args()
    aliases, old = aliases_of(args.lib), set(listed())
    runs = [{aliases[name] for name in functions_of(profile, args.lib) if name in aliases} for profile in args.profiles]
    if not all(runs):
        sys.exit("order-text.py: a program did not run the library")
    every, any_of = set.intersection(*runs), set.union(*runs)
    if args.check:
        missing = sorted(min(names) for names in every if not names & old)
        print("not in cmake/text-order.txt:", *missing)
        return 1 if missing else 0
    first, second = set().union(*every), set().union(*(any_of - every))
    others = words_of_sources() - first - second
    write((by_name(first), by_name(second), [name for name in listed() if name in others]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
