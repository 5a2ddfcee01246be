"""The tests, from tests.toml, and the allocators, from the command line."""

import os
import re
import tomllib
from dataclasses import dataclass

from . import machine, peers
from .measure import Job

GLIBC = "glibc"  # the system's malloc: no preload
# Traces are measured only if they are asked for.
GROUPS = {"all": lambda test: not test.group, "programs": lambda test: not test.is_real,
          "real": lambda test: test.is_real and not test.group, "traces": lambda test: test.group != "",
          "traces-known": lambda test: test.group == "traces-known", "traces-unseen": lambda test: test.group == "traces-unseen"}
KEYS = {"program": str, "script": str, "group": str, "args": list, "quick": list, "scaling": str, "what": str, "source": str}
TRACES = ("traces-known", "traces-unseen")
SCALING = ("", "private", "shared")
THREADS = re.compile(r"\{threads(?:\*([0-9]+))?\}")


class UsageError(Exception):
    """What was asked for cannot be done; the text says which part of it."""


def expand(argument, threads):
    """{threads} and {threads*K} in an argument."""
    return THREADS.sub(lambda match: str(threads * int(match[1] or 1)), argument)


@dataclass(frozen=True)
class Test:
    name: str
    program: str = ""
    script: str = ""
    group: str = ""  # of TRACES, or none
    args: tuple = ()
    quick: tuple = None
    scaling: str = ""
    what: str = ""
    source: str = ""

    @property
    def is_real(self):
        return bool(self.script)

    def arguments(self, is_quick, threads):
        chosen = self.quick if is_quick and self.quick is not None else self.args
        return tuple(expand(argument, threads) for argument in chosen)

    def file(self, places):
        if not self.is_real:
            return os.path.join(places.programs, self.program)
        return os.path.join(places.traces if self.group else places.real, self.script)

    def command(self, is_quick, threads):
        """For people: without directories."""
        return " ".join([self.name if self.group else self.script or self.program, *self.arguments(is_quick, threads)])

    def job(self, places, library, is_quick, threads):
        argv = [self.file(places), *(["run"] if self.is_real else []), *self.arguments(is_quick, threads)]
        return Job(tuple(argv), library, self.is_real)


@dataclass(frozen=True)
class Places:
    programs: str  # directory of the built programs
    real: str  # directory of the scripts
    traces: str = ""  # directory of the scripts that record a program


# ---- tests

def load(path):
    """Name to Test, in the order of the file."""
    try:
        with open(path, "rb") as file:
            rows = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}") from None
    return {name: make_test(path, name, row) for name, row in rows.items()}


def make_test(path, name, row):
    def refuse(text):
        raise UsageError(f"{path}: [{name}] {text}")

    if not isinstance(row, dict):
        refuse("is not a table")
    if name in GROUPS:
        refuse("is the name of a group")
    for key, value in row.items():
        if key not in KEYS:
            refuse(f"has an unknown key '{key}' (known: {', '.join(KEYS)})")
        if not isinstance(value, KEYS[key]):
            refuse(f"'{key}' is no {'list' if KEYS[key] is list else 'string'}")
    if "program" in row and "script" in row:
        refuse("has both a program and a script")
    if "group" in row and (row["group"] not in TRACES or "script" not in row):
        refuse(f"group is '{row['group']}' (known, for scripts: {', '.join(TRACES)})")
    if row.get("scaling", "") not in SCALING:
        refuse(f"scaling is '{row['scaling']}' (known: private, shared)")
    for key in ("args", "quick"):
        for argument in row.get(key, []):
            if not isinstance(argument, str):
                refuse(f"'{key}' holds {argument!r}, which is no string")
            if re.search("[{}]", THREADS.sub("", argument)):
                refuse(f"'{key}' holds '{argument}' (known: {{threads}}, {{threads*2}})")
    if row.get("scaling") and not any(map(THREADS.search, row.get("args", []))):
        refuse("has scaling, but no {threads} in its args")
    lists = {key: tuple(row[key]) for key in ("args", "quick") if key in row}
    program = "" if "script" in row else row.get("program", name)
    return Test(name, **(row | lists | {"program": program}))


def choose(what, everything, wanted):
    unknown = [name for name in wanted if name not in everything]
    if unknown:
        raise UsageError(f"no such {what}: {', '.join(unknown)} (there are: {', '.join(everything)})")


def choose_tests(tests, words):
    """The tests that are named, or in a group that is, in the order of the table."""
    choose("test", [*tests, *GROUPS], words)
    wanted = {test.name for test in tests.values()
              for word in words or ["all"] if word == test.name or (word in GROUPS and GROUPS[word](test))}
    return [test for test in tests.values() if test.name in wanted]


def expect_built(tests, places):
    missing = [test.name for test in tests if not test.is_real and not os.access(test.file(places), os.X_OK)]
    if missing:
        raise UsageError(f"not in {places.programs}: {', '.join(missing)} (the target 'bench' builds them)")
    missing = [test.name for test in tests if test.is_real and not os.access(test.file(places), os.X_OK)]
    if missing:
        raise UsageError(f"no script in {places.real}: {', '.join(missing)}")


# ---- allocators

@dataclass(frozen=True)
class Allocator:
    name: str
    library: str  # absolute; "" for the system's
    version: str = ""


def find_allocators(pairs, directory, wanted):
    """The allocators in the order of the tables, and {file: reason} of the files among the peers that are none. The first
    is ours, which the others are compared to."""
    found = {}
    for name, library in pairs:
        if name in found or name == GLIBC:
            raise UsageError(f"the name {name} stands for two allocators")
        found[name] = Allocator(name, usable(library), "" if found else machine.own_version())
    found[GLIBC] = Allocator(GLIBC, "", machine.libc_version())
    others, unused = find_peers(directory, found, wanted)
    found |= {peer.name: Allocator(peer.name, peer.library, peer.version) for peer in others}
    expect_found(wanted, found, unused)
    return [allocator for allocator in found.values() if not wanted or allocator.name in wanted], unused


def usable(library):
    path = os.path.abspath(library)
    if not os.path.isfile(path):
        raise UsageError(f"no such library: {path}")
    if re.search("[ :]", path):
        raise UsageError(f"LD_PRELOAD cannot hold this path: {path}")
    return path


def find_peers(directory, taken, wanted):
    if not directory:
        return [], {}
    if not os.path.isdir(directory):
        raise UsageError(f"no such directory of peers: {directory} (bench/fetch-peers.sh makes one)")
    return peers.find(directory, taken, wanted)


def expect_found(wanted, found, unused):
    reasons = "".join(f"; {file} is not used: {reason}" for file, reason in unused.items())
    try:
        choose("allocator", found, wanted)
    except UsageError as error:
        raise UsageError(f"{error}{reasons}") from None
