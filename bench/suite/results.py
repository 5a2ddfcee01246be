"""What was measured, and its file.

The file is JSON: {"format": 1, "run": SECTION, "scaling": SECTION, "modes": SECTION}, each section with its own machine and date; a command
replaces its own section only."""

import dataclasses
import json
import os
import statistics
from dataclasses import dataclass, field

from .cost import Cost

FORMAT = 1
SECTIONS = ("run", "scaling", "modes")


class FormatError(Exception):
    """A file that cannot be read as results."""


@dataclass
class Result:
    """The runs of one test with one allocator. Without a failure there is at least one."""
    runs: list = field(default_factory=list)
    failure: str = ""
    output: str = None  # not kept in the file

    def median(self, name):
        return statistics.median(getattr(run, name) for run in self.runs)

    def spread(self, name):
        values = [getattr(run, name) for run in self.runs]
        return min(values), max(values)


@dataclass
class Measured:
    """A test with all allocators."""
    name: str
    what: str
    source: str
    command: str
    threads: int
    is_real: bool
    results: dict  # allocator to Result

    def passed(self, among=None):
        return {name: r for name, r in self.results.items() if not r.failure and (among is None or name in among)}


@dataclass
class Section:
    date: str
    machine: dict
    rounds: int
    is_quick: bool
    threads: int  # of a scaling: the largest number
    allocators: dict  # name to version, "" if unknown; the first is ours
    tests: list = field(default_factory=list)
    skipped: dict = field(default_factory=dict)  # test to reason
    is_complete: bool = False

    @property
    def ours(self):
        return next(iter(self.allocators))

    def failures(self):
        return [(test, name, r.failure) for test in self.tests for name, r in test.results.items() if r.failure]

    def passes(self, name):
        return sum(name in test.passed() for test in self.tests)


# ---- the file

def read(path):
    """Name to Section; raises FormatError."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise FormatError(f"{path}: not JSON") from None
    if not isinstance(data, dict) or "format" not in data:
        raise FormatError(f"{path}: not a file of results")
    if data["format"] != FORMAT:
        raise FormatError(f"{path}: format {data['format']!r}; this version reads format {FORMAT}")
    try:
        return {name: section_from(data[name]) for name in SECTIONS if name in data}
    except (AttributeError, KeyError, TypeError, ValueError, StopIteration):
        raise FormatError(f"{path}: not a file of results, or a damaged one") from None


def section_from(data):
    section = Section(**data)
    section.tests = [Measured(**test) for test in data["tests"]]
    for test in section.tests:
        test.results = {name: Result([Cost(**run) for run in result["runs"]], result["failure"])
                        for name, result in test.results.items()}
        if not all(result.failure or result.runs for result in test.results.values()):
            raise ValueError
    return section


def write(path, name, section):
    """Replaces the section of that name in the file, which always is a whole one."""
    sections = read(path) if os.path.exists(path) else {}
    sections[name] = section
    data = {"format": FORMAT} | {name: as_plain(sections[name]) for name in SECTIONS if name in sections}
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(data, file, indent=1)
    os.replace(f"{path}.new", path)


def as_plain(section):
    plain = dataclasses.asdict(section)
    for test in plain["tests"]:
        for result in test["results"].values():
            del result["output"]
    return plain
