"""The landscape: what a pair of calls costs with each allocator, for patterns of calls and sizes of blocks. Needs no packages.

A cell is a pattern and a size. Instructions are counted by callgrind or, for an allocator that does not run in it, by a trap
after each (bench/landscape); page faults and system calls are counted outside of it."""

import math
from dataclasses import dataclass, field

LIMIT = 1.10  # of the best of the others: a cell above is told by name
STEADY = 0.05  # how far two counts of a steady state may differ
KERNEL_SLACK = 10  # per 1000 pairs: so many more page faults and system calls are still as few
KINDS = ("instructions", "faults", "calls")  # the first per pair, the others per 1000 pairs

KiB, MiB = 1 << 10, 1 << 20
SIZES = [8 << i for i in range(20)]  # to 4 MiB
PATTERNS = {
    "lone": "malloc and free in turn",
    "lifo16": "16 times malloc, then free, the last first",
    "fifo16": "16 times malloc, then free, the first first",
    "lifo256": "the same with 256 blocks",
    "fifo256": "the same with 256 blocks",
    "random": "random places of a table of 1024 are filled if empty and emptied if not",
    "mixed": "the same, with sizes from half the size to one and a half of it",
    "aligned64": "16 times posix_memalign to 64 bytes, then free, the last first",
    "aligned4k": "16 times aligned_alloc to 4 KiB, with sizes rounded up to that, then free, the last first",
    "grow": "16 times malloc of a quarter of the size and realloc to a half and the whole of it, then free, the last first",
    "calloc": "16 times calloc, then free, the last first",
    "remote": "256 times malloc, then another thread frees the blocks one by one, the first first",
    "remote-mixed": "the same, with sizes from 8 bytes to the size, uniform in the logarithm",
}


@dataclass
class Landscape:
    date: str
    machine: dict
    allocators: dict  # name to version, "" if unknown; the first is ours
    methods: dict  # allocator to what counted its instructions
    sizes: list
    patterns: list
    counts: dict = field(default_factory=lambda: {kind: {} for kind in KINDS})  # kind, allocator, pattern: one for each size
    unsteady: dict = field(default_factory=dict)  # allocator to the cells whose two counts differ
    failures: dict = field(default_factory=dict)  # allocator to {cell: reason}
    unused: dict = field(default_factory=dict)  # file among the peers to the reason why it is none
    is_complete: bool = False
    commit: str = ""
    commit_date: str = ""
    note: str = ""

    @staticmethod
    def read(data):
        section = Landscape(**data)
        shape = {(len(section.sizes), pattern) for pattern in section.patterns}
        rows = [{(len(row), pattern) for pattern, row in found.items()}
                for kind in KINDS for found in section.counts[kind].values()]
        if any(row - shape for row in rows) or section.allocators.keys() - section.methods.keys():
            raise ValueError
        return section

    @property
    def ours(self):
        return next(iter(self.allocators))

    def rename(self, old, new):
        def renamed(found):
            return {new if name == old else name: value for name, value in found.items()}
        for part in ("allocators", "methods", "unsteady", "failures"):
            setattr(self, part, renamed(getattr(self, part)))
        self.counts = {kind: renamed(found) for kind, found in self.counts.items()}

    def failed(self):
        """(allocator, cell, reason) of all that has no count."""
        return [(name, cell, reason) for name, found in self.failures.items() for cell, reason in found.items()]

    def cells(self):
        return [(pattern, size) for pattern in self.patterns for size in self.sizes if is_cell(pattern, size)]

    def value(self, kind, name, pattern, size):
        """None where there is no count."""
        row = self.counts[kind].get(name, {}).get(pattern)
        return row[self.sizes.index(size)] if row else None

    def keep(self, kind, name, pattern, size, value):
        rows = self.counts[kind].setdefault(name, {})
        rows.setdefault(pattern, [None] * len(self.sizes))[self.sizes.index(size)] = value

    def kernel(self, name, pattern, size):
        """Page faults and system calls together, per 1000 pairs."""
        values = [self.value(kind, name, pattern, size) for kind in KINDS[1:]]
        return None if None in values else sum(values)

    def best(self, pattern, size, is_fit=lambda name: True):
        """The other allocator with the fewest instructions; None if none was counted."""
        values = {name: self.value("instructions", name, pattern, size) for name in self.allocators if name != self.ours}
        values = {name: value for name, value in values.items() if value is not None and is_fit(name)}
        return min(values, key=values.get, default=None)

    def ratio(self, pattern, size, is_fit=lambda name: True):
        """Ours over the best of the others, and that one's name; None where a count is missing."""
        best, own = self.best(pattern, size, is_fit), self.value("instructions", self.ours, pattern, size)
        if best is None or own is None:
            return None, best
        return own / max(self.value("instructions", best, pattern, size), 1), best

    def enters_the_kernel_as_rarely(self, pattern, size):
        """A question about another allocator."""
        own = self.kernel(self.ours, pattern, size)

        def is_fit(name):
            other = self.kernel(name, pattern, size)
            return None not in (own, other) and other <= own + KERNEL_SLACK
        return is_fit


@dataclass(frozen=True)
class Loss:
    pattern: str
    size: int
    ratio: float
    rival: str
    fair_ratio: float  # to the best of those that enter the kernel as rarely; None if there is none
    fair_rival: str


def losses(section):
    """The cells in which ours is above the limit, the worst first."""
    found = []
    for pattern, size in section.cells():
        ratio, rival = section.ratio(pattern, size)
        if ratio is not None and ratio > LIMIT:
            fair = section.ratio(pattern, size, section.enters_the_kernel_as_rarely(pattern, size))
            found.append(Loss(pattern, size, ratio, rival, *fair))
    return sorted(found, key=lambda loss: -loss.ratio)


def mean(section):
    """The geometric mean of ours over the best of the others; None if nothing was compared."""
    ratios = [section.ratio(*cell)[0] for cell in section.cells()]
    logs = [math.log(ratio) for ratio in ratios if ratio]
    return math.exp(sum(logs) / len(logs)) if logs else None


def size_text(size):
    for unit, word in ((MiB, "M"), (KiB, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{word}"
    return str(size)


def size_from(text):
    """The opposite; None if the text is none."""
    unit = {"K": KiB, "M": MiB}.get(text[-1:].upper(), 1)
    digits = text if unit == 1 else text[:-1]
    size = int(digits) * unit if digits.isascii() and digits.isdigit() else 0
    return size if 4 <= size <= 64 * MiB else None


def is_cell(pattern, size):
    """Sizes that are rounded up to another one have no cell of their own."""
    return pattern != "aligned4k" or size % (4 * KiB) == 0


def cell_text(pattern, size):
    return f"{pattern} {size_text(size)}"
