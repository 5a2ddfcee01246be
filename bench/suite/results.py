"""What was measured, and its file.

The file is JSON: {"format": 2, "run": SECTION, "scaling": SECTION, "modes": SECTION, "landscape": LANDSCAPE, "bugs": BUGS}, each
section with its own machine, date and commit; a command replaces its own section only. The last two are those of landscape.py
and of test/bugs/run.py (bugs.py)."""

import dataclasses
import json
import os
import statistics
import textwrap
from dataclasses import dataclass, field

from .bugs import Bugs
from .cost import Cost
from .landscape import Landscape

FORMAT = 2
SECTIONS = ("run", "scaling", "modes", "landscape", "bugs")
READERS = {"landscape": Landscape.read, "bugs": Bugs.read}
WIDTH = 130  # of the lines of the file, where a value can be split


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
    group: str = ""  # of the table's; in the file only if there is one

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
    unused: dict = field(default_factory=dict)  # file among the peers to the reason why it is none
    is_complete: bool = False
    commit: str = ""  # what our libraries were built from; "" if unknown
    commit_date: str = ""
    note: str = ""  # how it was run, in words

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
        return {name: READERS.get(name, section_from)(data[name]) for name in SECTIONS if name in data}
    except (AttributeError, KeyError, TypeError, ValueError, StopIteration):
        raise FormatError(f"{path}: not a file of results, or a damaged one") from None


def section_from(data):
    section = Section(**data)
    section.tests = [Measured(**test) for test in data["tests"]]
    for test in section.tests:
        test.results = {name: result_from(result) for name, result in test.results.items()}
    return section


def result_from(columns):
    """The file has a list of each value instead of a list of runs."""
    failure = columns.pop("failure", "")
    lists = [columns.pop(f.name, []) for f in dataclasses.fields(Cost)]
    runs = [Cost(*values) for values in zip(*lists, strict=True)]
    if columns or not failure and not runs:
        raise ValueError
    return Result(runs, failure)


def write(path, name, section):
    """Replaces the section of that name in the file, which always is a whole one."""
    sections = read(path) if os.path.exists(path) else {}
    sections[name] = section
    write_all(path, sections)


def write_all(path, sections):
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text_of(sections))
    os.replace(f"{path}.new", path)


def text_of(sections):
    data = {"format": FORMAT} | {name: as_plain(sections[name]) for name in SECTIONS if name in sections}
    return laid_out(data) + "\n"


def laid_out(value, indent=""):
    """JSON in which what fits into a line is in one."""
    text = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(text) <= WIDTH or not isinstance(value, (dict, list)):
        return text
    inner = indent + " "
    if isinstance(value, list) and all(isinstance(item, (int, float)) or item is None for item in value):
        numbers = textwrap.fill(text[1:-1], WIDTH, initial_indent=inner, subsequent_indent=inner)
        return f"[\n{numbers}\n{indent}]"
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + laid_out(item, inner) for item in value) + f"\n{indent}]"
    items = (f"{inner}{json.dumps(key, ensure_ascii=False)}: {laid_out(item, inner)}" for key, item in value.items())
    return "{\n" + ",\n".join(items) + f"\n{indent}}}"


def as_plain(section):
    plain = dataclasses.asdict(section)
    for test in plain.get("tests", []):
        test["results"] = {name: columns_of(result) for name, result in test["results"].items()}
        if not test["group"]:
            del test["group"]
    return plain


def columns_of(result):
    columns = {f.name: [round(run[f.name], 6) for run in result["runs"]] for f in dataclasses.fields(Cost)}
    return (columns if result["runs"] else {}) | ({"failure": result["failure"]} if result["failure"] else {})
