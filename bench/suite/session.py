"""A command that measures, from its options to a section of the file of results; the file is written after each test."""

import os

from . import machine
from .measure import prepare, why_not
from .results import Measured, Section, read, write
from .rounds import run_test
from .table import Places, UsageError, expect_built, find_allocators
from .terminal import Bar, show_test, show_unused


def measure(name, steps, threads, table_file, *, alloc, peers, programs, allocs, rounds, quick, timeout, file,
            from_tree, note):
    """Measures each (test, threads) of `steps` with all allocators, as the options of the command line say. Gives the
    section, which is also in the file."""
    places = Places(os.path.abspath(programs), os.path.join(os.path.dirname(os.path.abspath(table_file)), "real"))
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
    section.tests.append(Measured(test.name, test.what, test.source, command, threads, test.is_real, found))
    show_test(section.tests[-1], section.ours)
    if file:
        write(file, name, section)


def expect_writable(file):
    """Better now than after the first test."""
    if os.path.exists(file):
        read(file)
    if not os.access(os.path.dirname(os.path.abspath(file)), os.W_OK):
        raise UsageError(f"cannot write {file}")
