#!/usr/bin/env python3
"""One-bug programs under an allocator that is preloaded: what does it detect?

  run.py check --mode MODE --lib LIB --programs DIR     every answer must be the one that table.toml has for that mode
  run.py table --programs DIR [--json FILE] [--own LIB]... [LIB...]
                                                        a page in Markdown that compares allocators; glibc is always in

The answers of `table` are kept in FILE, beside the results of the benchmarks; --own is for the builds of this project,
whose commit FILE then names. DIR holds the built programs, LIB is a shared library or NAME=LIB.  A file LIB.env beside it (.so replaced) has lines
NAME=VALUE for the environment.  Exit status of `check`: 1 if an answer is another one, be it worse or better."""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
from dataclasses import dataclass

if sys.version_info < (3, 11):
    print("SKIP bugs: needs Python 3.11")
    sys.exit(77)

import tomllib  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "bench"))

from suite import bugs, machine, pages, results  # noqa: E402
from suite.measure import library_environment  # noqa: E402

MODES = ("release", "secure", "full", "debug")
CORRECT = "correct"  # the group of the programs without a mistake
TIMEOUT_S = 30  # far beyond what any of them takes, also on a busy machine
ROUNDS = 10  # of `table`: twice each size
FAULTS = (signal.SIGSEGV, signal.SIGBUS)
ERROR_LINE = re.compile(r"^mimalloc: error: (?:thread 0x[0-9a-f]+: )?(.*)$", re.MULTILINE | re.IGNORECASE)


class TableError(Exception):
    """table.toml is wrong; the text says where."""


# ---- the table

@dataclass(frozen=True)
class Row:
    name: str
    group: str
    run: str
    expected: dict  # mode to a list of words, each of them an answer that is right

    def commands(self, sizes):
        """The command for each size, if it is for several: words {small}, {medium}, {large}."""
        kind = re.search(r"\{(\w+)\}", self.run)
        if not kind:
            return [self.run.split()]
        return [self.run.replace(kind[0], str(size)).split() for size in sizes[kind[1]]]


@dataclass(frozen=True)
class Table:
    rows: list
    sizes: dict
    patterns: dict  # name of a message to a pattern
    sizeless: set  # names of messages that need no size


def load(path):
    with open(path, "rb") as file:
        data = tomllib.load(file)
    patterns = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in data.pop("messages").items()}
    sizeless = set(data.pop("options")["no-size"])
    sizes = data.pop("sizes")
    return Table([make_row(name, fields, patterns) for name, fields in data.items()], sizes, patterns, sizeless)


def make_row(name, fields, patterns):
    unknown = fields.keys() - {"group", "run", *MODES}
    if unknown:
        raise TableError(f"[{name}] has an unknown key: {', '.join(sorted(unknown))}")
    texts = {mode: fields.get(mode, fields["secure"]) for mode in MODES}
    expected = {mode: text.split(" or ") for mode, text in texts.items()}
    for word in {word for words in expected.values() for word in words}:
        if word not in patterns and word not in ("none", "prevented", "signal", "chance"):
            raise TableError(f"[{name}] expects '{word}', which is neither an answer nor a message")
    return Row(name, fields["group"], fields["run"], expected)


# ---- one run

@dataclass(frozen=True)
class Outcome:
    signal: int  # 0: none
    status: int
    out: str
    err: str
    is_hung: bool = False

    @property
    def kind(self):
        """In one word, for any allocator."""
        if self.is_hung:
            return "hang"
        if self.signal:
            return "abort" if self.err else "crash"
        last = (self.out.splitlines() or [""])[-1]
        if self.status != 0 or last not in ("undetected", "prevented", "prevented without errno"):
            raise RuntimeError(f"exit status {self.status}: {self.out[-200:]}{self.err[-500:]}")
        if last != "undetected":
            return "prevented"
        return "report" if self.err else "none"

    @property
    def crash(self):
        """The signal of a crash, "" if it is none."""
        return signal.Signals(self.signal).name if self.kind == "crash" else ""

    @property
    def blocks(self):
        """What the program has named: address to size."""
        found = re.findall(r"^block (0x[0-9a-f]+) ([0-9]+)$", self.out, re.MULTILINE)
        return {int(address, 16): int(size) for address, size in found}


def run(programs, command, lib, **more):
    env = {"PATH": "/usr/bin:/bin"} | library_environment(lib) | more
    if lib:
        env["LD_PRELOAD"] = lib
    try:
        done = subprocess.run([programs / command[0], *command[1:]], env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return Outcome(0, 0, "", "", is_hung=True)
    out, err = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    return Outcome(max(0, -done.returncode), max(0, done.returncode), out, err)


def expect_served(programs, lib):
    """A library that is not loaded, or whose malloc is not in use, detects nothing."""
    outcome = run(programs, ["whose-malloc"], lib)
    found = outcome.out.strip()
    if not found or lib and os.path.realpath(found) != os.path.realpath(lib):
        sys.exit(f"run.py: {lib or 'glibc'}: malloc is that of {found or 'nobody'}\n{outcome.err}")


# ---- is it the answer that the table has?

def why_no_message(outcome, name, table):
    """What is missing for an abort with that message; None if nothing is."""
    if outcome.signal != signal.SIGABRT:
        return "no abort"
    lines = ERROR_LINE.findall(outcome.err)
    if not lines:
        return "no error on standard error"
    problems = [why_not_line(line, outcome, name, table) for line in lines]
    return None if None in problems else problems[0]


def why_not_line(line, outcome, name, table):
    if not table.patterns[name].search(line):
        return f"the message is not about '{name}'"
    numbers = [int(number, 16 if number[:2] in ("0x", "0X") else 10)
               for number in re.findall(r"\b(?:0x[0-9a-f]+|[0-9]+)\b", line, re.IGNORECASE)]
    sizes = [outcome.blocks[number] for number in numbers if number in outcome.blocks]
    if not sizes:
        return "the message has no address of a block that the program named"
    if name not in table.sizeless and not any(is_size(number, size) for number in numbers for size in sizes):
        return "the message has no size of that block"
    return None


def is_size(number, requested):
    """A report may say what was asked for, or what the block has."""
    return requested <= number <= 2 * requested + 64


def why_not_word(outcome, word, table):
    if word in table.patterns:
        return why_no_message(outcome, word, table)
    if word == "signal":
        return None if outcome.signal in FAULTS else "no fault"  # the library may say what it was
    if word == "chance":
        return None if outcome.kind in ("none", "crash", "prevented") else "a report, or no end"
    if word == "prevented" and "without errno" in outcome.out:
        return "errno is wrong"
    return None if outcome.kind == word else f"not {word}"


def why_not(outcome, words, table):
    """None if the outcome is one of those."""
    reasons = [why_not_word(outcome, word, table) for word in words]
    return None if None in reasons else f"expected {' or '.join(words)}: {'; '.join(reasons)}"


def said(outcome):
    first = (outcome.err.strip().splitlines() or [""])[0]
    return outcome.kind + (f" ({signal.Signals(outcome.signal).name})" if outcome.signal else "") + (f": {first}" if first else "")


# ---- the commands

def run_checked(programs, command, lib, expected, table):
    """One time in 256 the byte that a program writes is the one that was there: a wrong answer counts if it comes twice."""
    outcome = run(programs, command, lib)
    return run(programs, command, lib) if why_not(outcome, expected, table) else outcome


def check(options):
    table = load(HERE / "table.toml")
    lib, programs = str(options.lib.resolve()), options.programs.resolve()
    expect_served(programs, lib)
    rates, n_wrong = bugs.Rates(), 0
    for row in table.rows:
        commands = row.commands(table.sizes)
        outcomes = [(command, run_checked(programs, command, lib, row.expected[options.mode], table)) for command in commands]
        if row.group != CORRECT:
            rates.add(row.group, collections.Counter(outcome.kind for _, outcome in outcomes))
        for command, outcome in outcomes:
            reason = why_not(outcome, row.expected[options.mode], table)
            if reason:
                print(f"FAIL {row.name} ({' '.join(command)}): {said(outcome)[:300]}\n     {reason}")
                n_wrong += 1
    for group in [*rates.shares, None]:
        n_crashes = bugs.plain(rates.count(["crash"], group)[0])
        print(f"{group or 'all':<18} detected: {rates.text(bugs.DETECTED, group)}; crashes: {n_crashes}")
    print(f"{n_wrong} answers are not those of the table, mode {options.mode}")
    return 1 if n_wrong else 0


def measure(table, programs, lib, rounds):
    """Row name to the answers of its runs, {kind: how often}, and how often which signal was a crash."""
    def answers(row):
        commands = row.commands(table.sizes)
        return [run(programs, commands[i % len(commands)], lib, MIMALLOC_SHOW_ERRORS="1") for i in range(rounds)]

    expect_served(programs, lib)
    kinds, signals = {}, collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(machine.cores()) as pool:
        found = list(pool.map(answers, table.rows))
    for row, outcomes in zip(table.rows, found):
        counts = collections.Counter(outcome.kind for outcome in outcomes)
        if row.group != CORRECT:
            kinds[row.name] = dict(counts)
            signals.update(outcome.crash for outcome in outcomes if outcome.crash)
        elif set(counts) != {"none"}:
            sys.exit(f"run.py: {lib or 'glibc'}: {row.name} makes no mistake, and ends as {bugs.cell(counts)}")
    return kinds, dict(signals)


def named(text):
    name, equals, lib = text.partition("=")
    path = pathlib.Path(lib if equals else text).resolve()
    if not path.is_file():
        sys.exit(f"run.py: no such library: {path}")
    return (name if equals else path.name.removeprefix("lib").removesuffix(".so")), path


def compare(options):
    table = load(HERE / "table.toml")
    own = {name: str(path) for name, path in map(named, options.own)}
    libs = {"glibc": ""} | own | {name: str(path) for name, path in map(named, options.libs)}
    versions = {name: machine.peer_versions(os.path.dirname(lib)).get(name, "") if lib else machine.libc_version()
                for name, lib in libs.items()}
    groups = {row.name: row.group for row in table.rows if row.group != CORRECT}
    found = bugs.Bugs(machine.now(), machine.describe(next(iter(own.values()), "")), options.rounds, versions, list(own), groups,
                      {}, {}, note=options.note)
    if own:
        found.commit, found.commit_date = machine.tree_commit()
    for name, lib in libs.items():
        print(f"{name} ...", file=sys.stderr)
        found.answers[name], found.signals[name] = measure(table, options.programs.resolve(), lib, options.rounds)
    found.machine["load at the end"] = machine.load()
    if options.json:
        results.write(str(options.json), "bugs", found)
    print(pages.security(found), end="")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("check")
    one.add_argument("--mode", choices=MODES, required=True)
    one.add_argument("--lib", type=pathlib.Path, required=True)
    two = commands.add_parser("table")
    two.add_argument("--json", type=pathlib.Path, metavar="FILE")
    two.add_argument("--own", action="append", default=[], metavar="LIB")
    two.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="runs of each program (10)")
    two.add_argument("--note", default="", metavar="TEXT")
    two.add_argument("libs", nargs="*", metavar="LIB")
    for command in (one, two):
        command.add_argument("--programs", type=pathlib.Path, required=True)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return {"check": check, "table": compare}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
