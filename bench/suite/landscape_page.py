"""The page of the landscape in docs/benchmarks. Needs no packages."""

from .bugs import table
from .landscape import KERNEL_SLACK, LIMIT, PATTERNS, STEADY, cell_text, is_cell, losses, mean, size_text

PAGE = """# The instruction landscape

{made}

How many instructions a pair of calls takes, one that takes a block and one that gives it back, for sizes of blocks and patterns
of calls. Counts are exact and do not depend on the load of the machine. They are no times: caches, atomic operations and the
kernel cost more than their instructions.

{origin}

{versions}

- A cell is a pattern and a size. Each runs in a process of its own; after a warm-up a steady state is counted.
- An instruction counts if the allocator executes it, or libc for it, except in libc's functions that clear and copy and in
  instructions with a repeat prefix: these differ from processor to processor. What the kernel executes does not count; page faults
  and system calls are in tables of their own.
- The clock that libraries ask stands still while instructions are counted: what is done after some time, such as giving memory
  back, is not in the counts.
- {methods}
{unsteady}
## The patterns

{patterns}

At most 64 MiB are live at once, or 16 blocks: batches and tables of large blocks are smaller.

## Ours over the best of the others

The best is the one with the fewest instructions in that cell. Below 1, and blue, this library takes fewer; above {limit}, bold and
framed, it takes clearly more.

![Instructions of this library over those of the best other allocator](landscape.svg)

{summary}

{losses}

{exceptions}

## Instructions of a pair

**Bold**: the fewest.

{instructions}

## Page faults and system calls of 1000 pairs

Minor page faults and system calls together, for each block with a byte written in each of its pages. **Bold**: the fewest.

{kernel}
"""

SUMMARY = """In {n} of {of} cells this library takes more than {limit} times the instructions of the best other allocator; the
geometric mean of all cells is {mean}. *Kernel*: page faults and system calls of 1000 pairs, of this library and of the best. An
allocator that asks the kernel for each block needs few instructions of its own: the last column compares with the best of those
that enter the kernel as rarely as this library (at most {slack} times more in 1000 pairs)."""


def page(section, made, origin, versions):
    text = PAGE.format(
        made=made, origin=origin, versions=versions, methods=methods(section), unsteady=unsteady(section),
        patterns=table(["pattern", ""], [[name, PATTERNS[name]] for name in section.patterns]), limit=f"{LIMIT:g}",
        summary=summary(section), losses=losses_table(section), exceptions=exceptions(section),
        instructions=tables(section, lambda name, *cell: section.value("instructions", name, *cell), 1),
        kernel=tables(section, section.kernel, 0))
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text


def methods(section):
    stepped = [name for name, method in section.methods.items() if method == "step"]
    text = ("callgrind counts, in a processor that it emulates: an allocator that relies on restartable sequences (gtcmalloc) does\n"
            "  without them there.")
    if stepped:
        text += f" Those that do not run in it are counted by a trap after each instruction: {', '.join(stepped)}."
    return text


def unsteady(section):
    counts = [f"{name} {len(cells)}" for name, cells in section.unsteady.items() if cells]
    if not counts:
        return ""
    return (f"- In some cells two counts, one after the other, differ by more than {100 * STEADY:.0f} %, because slow paths have a\n"
            f"  share that changes; the second count is shown. Such cells: {', '.join(counts)}. The file of results names them.\n")


def summary(section):
    counted = [cell for cell in section.cells() if section.ratio(*cell)[0] is not None]
    overall = mean(section)
    return SUMMARY.format(n=len(losses(section)), of=len(counted), limit=f"{LIMIT:g}", slack=KERNEL_SLACK,
                          mean="–" if overall is None else f"{overall:.3f}")


def losses_table(section):
    rows = []
    for loss in losses(section):
        cell = loss.pattern, loss.size
        own, best = (number(section.value("instructions", name, *cell), 1) for name in (section.ours, loss.rival))
        kernel = " / ".join(number(section.kernel(name, *cell), 0) for name in (section.ours, loss.rival))
        fair = f"{loss.fair_ratio:.2f} {loss.fair_rival}" if loss.fair_rival else "–"
        rows.append([cell_text(*cell), f"{loss.ratio:.2f}", own, f"{best} {loss.rival}", kernel, fair])
    heads = ["cell", "ratio", section.ours, "best", "kernel", "ratio to the best as rarely in the kernel"]
    return table(heads, rows) if rows else ""


def exceptions(section):
    lines = [f"- FAIL: {name}, {cell}: {reason}" for name, cell, reason in section.failed()]
    lines += [f"- not used: {file}: {reason}" for file, reason in section.unused.items()]
    return "\n".join(lines)


def tables(section, count, places):
    """One for each pattern: a row for each allocator, a column for each size."""
    parts = []
    for pattern in section.patterns:
        sizes = [size for size in section.sizes if is_cell(pattern, size)]
        columns = {size: {name: count(name, pattern, size) for name in section.allocators} for size in sizes}
        fewest = {size: min((value for value in column.values() if value is not None), default=None)
                  for size, column in columns.items()}
        rows = [[name, *(bold(columns[size][name], fewest[size], places) for size in sizes)] for name in section.allocators]
        parts.append(f"**{pattern}**\n\n" + table(["", *map(size_text, sizes)], rows))
    return "\n\n".join(parts)


def number(value, places):
    return "–" if value is None else f"{value:.{0 if value >= 1000 else places}f}"


def bold(value, fewest, places):
    text = number(value, places)
    return f"**{text}**" if value is not None and text == number(fewest, places) else text
