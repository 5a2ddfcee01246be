"""How long single calls take, as a distribution: runs bench/latency with each allocator. Needs no packages.

Runs of all allocators alternate, and each figure is the median of the runs. The longest call of a run is that of the whole
machine, so the smallest of these maxima is kept too: a pause that the allocator makes by itself is in every run."""

import csv
import statistics
import subprocess
from dataclasses import dataclass, field

from .cost import Failure
from .counting import run as run_program
from .rounds import order

WORKLOADS = {
    "mixed": "20000 live blocks of 16 to 4096 bytes for each thread, one at random replaced at a time",
    "server": "4000 sessions with lognormal lifetimes, served by all threads; requests, answers and temporaries",
    "large": "64 live blocks of 64 KiB to 4 MiB for each thread, one at random replaced at a time",
    "swing": "60000 blocks of 32 to 2048 bytes for each thread are made, and most of them freed, again and again",
}
CALLS = ("malloc", "free")
QUANTILES = ("p50", "p99", "p99.9", "p99.99")
TIMES = (*QUANTILES, "max")
COUNTS = ("preempted", "waits", "faults", "size")
STEPS = {"mixed": 20, "server": 20, "large": 100, "swing": 20}  # rounds of the program: a second or so


@dataclass
class Distribution:
    """One call of one workload with one allocator: a row for each run."""
    rows: list = field(default_factory=list)

    def median(self, name):
        return statistics.median(row[name] for row in self.rows)

    def least_max(self):
        return min(row["max"] for row in self.rows)

    def longest(self):
        """The run with the smallest maximum: what its longest call was."""
        return min(self.rows, key=lambda row: row["max"])


def parse(lines):
    """{call: {name: number}} of what the program prints; raises Failure."""
    found = {}
    for words in lines:
        if len(words) != 3 + len(TIMES) + len(COUNTS) or words[1] not in CALLS or not all(map(str.isdigit, words[2:])):
            raise Failure(f"not understood: {' '.join(words)[:200]}")
        found[words[1]] = dict(zip(("calls", *TIMES, *COUNTS), map(int, words[2:])))
    if len(found) != len(CALLS):
        raise Failure("a line is missing")
    return found


def measure(program, allocators, workloads, threads, rounds, quick=False, tell=lambda text, share: None, run=run_program):
    """{(workload, allocator, call): Distribution}, and {(workload, allocator): reason} of what failed."""
    found, failed = {}, {}
    libraries = {allocator.name: allocator.library for allocator in allocators}
    names = list(libraries)
    steps = [(workload, number, name) for workload in workloads for number in range(rounds) for name in order(names, number)]
    for i, (workload, number, name) in enumerate(steps):
        tell(f"{workload}, round {number + 1}: {name}", i / len(steps))
        if (workload, name) in failed:
            continue
        command = [program, workload, str(threads), str(max(1, STEPS[workload] // (10 if quick else 1)))]
        try:
            for call, row in parse(run(command, libraries[name])).items():
                found.setdefault((workload, name, call), Distribution()).rows.append(row)
        except (Failure, subprocess.SubprocessError) as failure:
            failed[workload, name] = str(failure)
    return found, failed


def write_csv(path, found):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["workload", "allocator", "call", "calls", *(f"{name} ns" for name in TIMES), "least max ns", *COUNTS])
        for (workload, name, call), distribution in found.items():
            longest = distribution.longest()
            writer.writerow([workload, name, call, *(round(distribution.median(column)) for column in ("calls", *TIMES)),
                             distribution.least_max(), *(longest[column] for column in COUNTS)])


def text_of(ns):
    """With three digits and a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"
