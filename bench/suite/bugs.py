"""What allocators detect of the mistakes in the programs of test/bugs: the answers, their rates, and the page made of them.

A run has one answer. The allocator detects the mistake when it says so or takes its effect away:

  abort      the program is stopped, and standard error says something
  report     standard error says something, and the program goes on
  prevented  the mistake has no effect

It does not when nobody is told that it was the allocator:

  crash      the program is ended by a signal, and standard error says nothing
  none       the program reaches its end
  hang       the program does not end"""

import collections
from dataclasses import dataclass, field

DETECTED = ("abort", "report", "prevented")
KINDS = (*DETECTED, "crash", "none", "hang")
WORDS = {"none": "–", "hang": "hangs"}


@dataclass
class Bugs:
    date: str
    machine: dict
    rounds: int  # runs of each program
    libraries: dict  # name to version, "" if unknown
    ours: list  # those of the libraries that this project builds
    groups: dict  # program to group
    answers: dict  # library to {program: {kind: how often}}
    signals: dict = field(default_factory=dict)  # library to {signal of a crash: how often}
    commit: str = ""
    commit_date: str = ""
    note: str = ""

    @staticmethod
    def read(data):
        bugs = Bugs(**data)
        kinds = {kind for found in bugs.answers.values() for counts in found.values() for kind in counts}
        if kinds - set(KINDS) or any(bugs.answers[name].keys() != bugs.groups.keys() for name in bugs.libraries):
            raise ValueError
        return bugs

    def rates(self, name):
        rates = Rates()
        for program, group in self.groups.items():
            rates.add(group, self.answers[name][program])
        return rates


class Rates:
    """How many of the programs of a group have such an answer. A program counts as one; if some of its runs have the
    answer, by their share."""

    def __init__(self):
        self.shares = collections.defaultdict(list)

    def add(self, group, counts):
        n_runs = sum(counts.values())
        self.shares[group].append({kind: n / n_runs for kind, n in counts.items()})

    def count(self, kinds, group=None):
        """How many programs, and of how many."""
        rows = self.shares[group] if group else [row for rows in self.shares.values() for row in rows]
        return sum(row.get(kind, 0) for row in rows for kind in kinds), len(rows)

    def text(self, kinds, group=None):
        n, of = self.count(kinds, group)
        return f"{plain(n)} of {of}, {100 * n / of:.0f} %"


def plain(number):
    return f"{number:.1f}".removesuffix(".0")


def cell(counts):
    """All runs in one cell: `abort`, or `abort 3, – 2`."""
    if len(counts) == 1:
        kind = next(iter(counts))
        return WORDS.get(kind, kind)
    in_order = sorted(counts, key=lambda kind: (-counts[kind], KINDS.index(kind)))
    return ", ".join(f"{WORDS.get(kind, kind)} {counts[kind]}" for kind in in_order)


# ---- the page

HEAD = """# What allocators detect

{made}

Each of the {n_programs} programs of `test/bugs` makes one mistake; [security-tests.md](../design/security-tests.md)
describes them. Each ran {rounds} times; a program that is run for several sizes ran equally often with each.

{where}

- **Detected** is the sum of three answers. **abort**: the program was stopped with a message on standard error.
  **report**: there was a message, and the program went on. **prevented**: the mistake had no effect.
- **crash**: the program was ended by a signal and standard error is empty. This is not a detection. A corrupted pointer
  that happens to lead to an address that is not mapped ends a program in this way, and so does a page that the allocator
  has made inaccessible on purpose; nothing but a message tells one from the other. The signals are in brackets.
- **–**: nothing happened. **hangs**: the program did not end.

A program whose runs differ counts by the share of the runs.
"""


def page(bugs, made, where):
    """`made` says where the page comes from, `where` on what it was measured."""
    names = list(bugs.libraries)
    rates = {name: bugs.rates(name) for name in names}
    heads = [f"{name} {bugs.libraries[name]}".strip() for name in names]
    groups = dict.fromkeys(bugs.groups.values())
    head = HEAD.format(made=made, n_programs=len(bugs.groups), rounds=bugs.rounds, where=where)
    by_group = [[group, *(rates[name].text(DETECTED, group) for name in names)] for group in groups]
    crashes = [[group, *(plain(rates[name].count(["crash"], group)[0]) for name in names)] for group in groups]
    answers = [[program, *(cell(bugs.answers[name][program]) for name in names)] for program in bugs.groups]
    parts = [head, "## All programs", summary(bugs, rates, heads), "## Detected, by kind of mistake",
             table(["group", *heads], by_group), "## Crashes, by kind of mistake", table(["group", *heads], crashes),
             "## Every answer", table(["program", *heads], answers)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def summary(bugs, rates, heads):
    rows = []
    for name, head in zip(bugs.libraries, heads):
        signals = ", ".join(f"{signal} {n}" for signal, n in sorted(bugs.signals.get(name, {}).items()))
        crashes = plain(rates[name].count(["crash"])[0]) + (f" ({signals})" if signals else "")
        rows.append([head, f"**{rates[name].text(DETECTED)}**", crashes,
                     *(plain(rates[name].count([kind])[0]) for kind in (*DETECTED, "none", "hang"))])
    return table(["", "detected", "crash", *DETECTED, "nothing", "hangs"], rows)


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---|" * (len(heads) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
