"""A command that measures, from its options to a section of the file of results; the file is written after each test."""

import functools
import os
import tempfile
from concurrent import futures

from . import counting, machine
from .cost import Failure
from .landscape import KINDS, STEADY, Landscape, cell_text, is_cell
from .measure import prepare, why_not
from .results import Measured, Section, read, write
from .rounds import run_test
from .table import Places, UsageError, expect_built, find_allocators
from .terminal import Bar, show_test, show_unused

SHARE_IF_QUICK = 4


def measure(name, steps, threads, table_file, *, alloc, peers, programs, allocs, rounds, quick, timeout, file,
            from_tree, note):
    """Measures each (test, threads) of `steps` with all allocators, as the options of the command line say. Gives the
    section, which is also in the file."""
    beside = os.path.dirname(os.path.abspath(table_file))
    places = Places(os.path.abspath(programs), os.path.join(beside, "real"), os.path.join(beside, "traces"))
    os.environ["BENCH_PROGRAMS"] = places.programs  # where scripts find the replayer of traces
    allocators, unused = find_allocators(alloc, peers, allocs)
    show_unused(unused)
    tests = dict.fromkeys(test for test, _ in steps)
    expect_built(tests, places)
    if file:
        expect_writable(file)
    checks = {test.name: why_not(test.file(places)) for test in tests if test.is_real}
    skipped = {test: reason for test, reason in checks.items() if reason}
    prepare()
    section = Section(machine.now(), machine.describe(allocators[0].library), rounds, quick, threads,
                      {a.name: a.version for a in allocators}, skipped=skipped, unused=unused, note=note)
    if from_tree:
        section.commit, section.commit_date = machine.tree_commit()
    steps = [(test, n) for test, n in steps if test.name not in skipped]
    try:
        with Bar(len(steps)) as bar:
            for i, (test, n) in enumerate(steps):
                jobs = {a.name: test.job(places, a.library, quick, n) for a in allocators}
                command = test.command(quick, n)
                found = run_test(jobs, rounds, timeout, lambda text, share: bar.tell(command, text, i + share))
                keep(section, test, command, n, found, name, file)
        section.is_complete = True
        section.machine["load at the end"] = machine.load()
    except KeyboardInterrupt as interrupted:
        if getattr(interrupted, "results", None):
            keep(section, test, command, n, interrupted.results, name, file)
    if file:
        write(file, name, section)
    return section


def keep(section, test, command, threads, found, name, file):
    section.tests.append(Measured(test.name, test.what, test.source, command, threads, test.is_real, found, test.group))
    show_test(section.tests[-1], section.ours)
    if file:
        write(file, name, section)


def expect_writable(file):
    """Better now than after the first test."""
    if os.path.exists(file):
        read(file)
    if not os.access(os.path.dirname(os.path.abspath(file)), os.W_OK):
        raise UsageError(f"cannot write {file}")


# ---- the landscape

def explore(*, alloc, peers, allocs, sizes, patterns, methods, jobs, quick, file, from_tree, note):
    """Counts every cell with all allocators. Gives the section, which is also in the file."""
    if not alloc:
        raise UsageError("landscape needs a library to compare the others to: --alloc ours=LIB")
    allocators, unused = find_allocators(alloc, peers, allocs)
    show_unused(unused)
    if file:
        expect_writable(file)
    section = Landscape(machine.now(), machine.describe(allocators[0].library), {a.name: a.version for a in allocators},
                        {}, sizes, patterns, unused=unused, note=note)
    if from_tree:
        section.commit, section.commit_date = machine.tree_commit()
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        try:
            program = counting.build(directory)
        except Failure as failure:
            raise UsageError(str(failure)) from None
        section.is_complete = explore_all(section, allocators, program, methods, SHARE_IF_QUICK if quick else 1, jobs,
                                          lambda: file and write(file, "landscape", section))
    section.machine["load at the end"] = machine.load()
    if file:
        write(file, "landscape", section)
    return section


def explore_all(section, allocators, program, methods, share, jobs, keep_so_far):
    """Was it not interrupted? What is counted does not depend on what else the machine does."""
    with futures.ThreadPoolExecutor(jobs) as pool, Bar(len(allocators) * len(section.patterns) * len(KINDS)) as bar:
        try:
            rows = [row for allocator in allocators
                    for row in rows_of(section, allocator, program, methods, share)]
            done = [pool.submit(explore_row, section, *row) for row in rows]
            for i, (row, one) in enumerate(zip(rows, done)):
                bar.tell(row[0].name, f"{row[1]}, {row[2]}", i)
                one.result()
                if row[1:3] == (section.patterns[-1], KINDS[-1]):  # the last one of an allocator
                    keep_so_far()
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            return False
    return True


def rows_of(section, allocator, program, methods, share):
    """(allocator, pattern, kind, function that counts cells) of all that is to be counted."""
    modes = {kind: (kind, share) for kind in KINDS[1:]}
    try:
        method = counting.method_for(program, allocator.library, methods)
        modes = {KINDS[0]: (method, share if method == counting.CALLGRIND else counting.STEP_SHARE)} | modes
    except Failure as failure:
        method = "none"
        section.failures.setdefault(allocator.name, {})["all"] = str(failure)
    section.methods[allocator.name] = method
    for kind, (mode, mode_share) in modes.items():
        for pattern in section.patterns:
            yield allocator, pattern, kind, functools.partial(counting.count, mode, program, allocator.library, share=mode_share)


def explore_row(section, allocator, pattern, kind, count):
    cells = [(pattern, size) for size in section.sizes if is_cell(pattern, size)]
    try:
        found, failed = count(cells)
    except Failure as failure:
        found, failed = {}, {cell: str(failure) for cell in cells}
    for cell, values in found.items():
        section.keep(kind, allocator.name, *cell, round(values[-1] * (1 if kind == KINDS[0] else 1000), 3))
        if kind == KINDS[0] and abs(values[-1] - values[0]) > STEADY * max(values):
            section.unsteady.setdefault(allocator.name, []).append(cell_text(*cell))
    for cell, reason in failed.items():
        section.failures.setdefault(allocator.name, {})[f"{cell_text(*cell)}, {kind}"] = reason
