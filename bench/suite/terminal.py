"""Tables and the progress bar on a terminal."""

import dataclasses
import time

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from . import goals, latency, scores
from .landscape import LIMIT, cell_text, losses, mean, size_text

WIDE = 140  # a column for each size of the landscape
MIN_WIDTH = 110  # for all columns; where the output is no terminal, its width says nothing

console = Console(highlight=False)
if not console.is_terminal:
    console.width = max(MIN_WIDTH, console.width)


def number(value, places=2):
    return "-" if value is None else f"{value:.{places}f}"


def table(*headers, n_names=1):
    """The first columns hold names."""
    made = Table(box=None, pad_edge=False, padding=(0, 1, 0, 1))
    for i, header in enumerate(headers):
        made.add_column(header, justify="left" if i < n_names else "right", no_wrap=i < n_names)
    return made


def show(title, made, note="", width=0):
    """A table gets at least that width, whatever the terminal has."""
    console.print(f"[bold]{escape(title)}", soft_wrap=True)
    console.print(made, width=max(width, console.width), crop=not width)
    if note:
        console.print(f"[italic]{escape(note)}", soft_wrap=True)
    console.print()


# ---- progress

class Bar:
    """The bar is drawn between the runs only: nothing of it runs while a program is measured."""

    def __init__(self, n_tests):
        columns = TextColumn("{task.description}"), BarColumn(30), TextColumn("{task.percentage:.0f} % {task.fields[left]}")
        self.progress = Progress(*columns, console=console, transient=True, auto_refresh=False,
                                 disable=not console.is_terminal)
        self.task = self.progress.add_task("", total=n_tests, left="")
        self.start, self.n_tests = time.monotonic(), n_tests

    def __enter__(self):
        self.progress.start()
        return self

    def __exit__(self, *_):
        self.progress.stop()

    def tell(self, test, text, n_done):
        spent = time.monotonic() - self.start
        left = f"{clock(spent * (self.n_tests - n_done) / n_done)} left" if n_done > 0.1 else ""
        self.progress.update(self.task, description=escape(f"{test}, {text}"), completed=n_done, left=left, refresh=True)


def clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


# ---- one test

def seconds(result, field):
    low, high = result.spread(field)
    return f"{result.median(field):.3f} [{low:.3f}-{high:.3f}]"


def wall(result):
    """A narrow terminal has no place for the range."""
    return seconds(result, "wall_s") if console.width >= MIN_WIDTH else f"{result.median('wall_s'):.3f}"


def faults(result):
    major = result.median("major_faults")
    return f"{result.median('faults'):.0f}" + (f" + {major:.0f} major" if major >= 1 else "")


def show_test(test, ours):
    made = table("", r"CPU s \[min-max]", "wall s", "peak MiB", "faults", f"x {ours}", "x best")
    best = scores.best(test, "cpu_s")
    for name, result in test.results.items():
        if result.failure:
            made.add_row(escape(name), "[bold red]FAIL[/]")
            continue
        ratios = (number(scores.test_ratio(test, name, to, "cpu_s")) for to in (ours, best))
        made.add_row(escape(name), seconds(result, "cpu_s"), wall(result),
                     f"{result.median('peak_kib') / 1024:.1f}", faults(result), *ratios)
    show(test.command, made, "\n".join(f"FAIL {name}: {r.failure}" for name, r in test.results.items() if r.failure))


# ---- all tests

FIELDS = {"cpu_s": "CPU", "peak_kib": "memory", "faults": "faults"}


def show_summary(section):
    """The groups of the table apart from the other tests, and from each other."""
    groups = dict.fromkeys(test.group for test in section.tests) or [""]
    for group in groups:
        tests = [test for test in section.tests if test.group == group]
        show_scores(dataclasses.replace(section, tests=tests), group or "all tests")
    show_exceptions(section)


def show_scores(section, title):
    made = table("", *(f"{word} score" for word in FIELDS.values()),
                 *(f"{word} x {section.ours}" for word in FIELDS.values()), "passed")
    by_time = sorted(section.allocators, key=lambda name: -(scores.score(section, name, "cpu_s") or 0))
    for name in by_time:
        made.add_row(escape(name), *(number(scores.score(section, name, field), 1) for field in FIELDS),
                     *(number(scores.mean_ratio(section, name, section.ours, field)) for field in FIELDS),
                     f"{section.passes(name)} of {len(section.tests)}")
    show(title, made, "score: 100 is the best in every test; x: the geometric mean of the ratios")


def show_unused(unused):
    for file, reason in unused.items():
        console.print(f"not used {escape(file)}: {escape(reason)}", soft_wrap=True)


def show_exceptions(section):
    show_unused(section.unused)
    for test, reason in section.skipped.items():
        console.print(f"skipped {escape(test)}: {escape(reason)}")
    for test, name, reason in section.failures():
        console.print(f"[bold red]FAIL[/] {escape(test.command)}, {escape(name)}: {escape(reason)}", soft_wrap=True)


def show_scaling(section):
    for test in scores.scaling_tests(section):
        counts = [t.threads for t in section.tests if t.name == test]
        made = table("threads", *map(str, counts))
        for name in section.allocators:
            curve = scores.growth(section, test, name)
            made.add_row(escape(name), *(number(curve.get(n)) for n in counts))
        show(f"{test}: CPU time per thread, 1 is that with one thread", made)
    show_exceptions(section)


# ---- the landscape

def show_landscape(section):
    """Ours over the best of the others, and where it is above the limit."""
    made = table("pattern", *map(size_text, section.sizes))
    for pattern in section.patterns:
        ratios = (section.ratio(pattern, size)[0] for size in section.sizes)
        made.add_row(pattern, *(f"[red]{number(ratio)}[/]" if ratio and ratio > LIMIT else number(ratio) for ratio in ratios))
    show(f"instructions, {section.ours} over the best of the others", made, width=WIDE)
    lost = losses(section)
    made = table("cell", f"{section.ours}", "best", "", "ratio", "kernel", "best's kernel", "ratio, as rarely in the kernel")
    for loss in lost:
        cell = loss.pattern, loss.size
        own, best = (section.value("instructions", name, *cell) for name in (section.ours, loss.rival))
        made.add_row(cell_text(*cell), number(own, 1), number(best, 1), escape(loss.rival), number(loss.ratio),
                     *(number(section.kernel(name, *cell), 0) for name in (section.ours, loss.rival)),
                     f"{number(loss.fair_ratio)} {escape(loss.fair_rival or '')}")
    show(f"above {LIMIT:g}: {len(lost)} of {len(section.cells())}; geometric mean of all {number(mean(section), 3)}", made,
         "kernel: page faults and system calls per 1000 pairs")
    for file, reason in section.unused.items():
        console.print(f"not used: {escape(file)}: {escape(reason)}", soft_wrap=True)
    for name, cell, reason in section.failed():
        console.print(f"[bold red]FAIL[/] {escape(name)}, {escape(cell)}: {escape(reason)}", soft_wrap=True)


# ---- how long single calls take

def show_latency(found, failed):
    """A table for each workload and call."""
    for workload, call in dict.fromkeys((workload, call) for workload, _, call in found):
        made = table("allocator", *latency.TIMES, "least max", "its waits", "its faults", "its size", "preempted")
        for (_, name, _), distribution in {k: v for k, v in found.items() if (k[0], k[2]) == (workload, call)}.items():
            longest = distribution.longest()
            made.add_row(escape(name), *(latency.text_of(distribution.median(column)) for column in latency.TIMES),
                         latency.text_of(distribution.least_max()), *(str(longest[column]) for column in ("waits", "faults", "size")),
                         number(distribution.median("preempted"), 0))
        show(f"{workload}, {call}", made, latency.WORKLOADS[workload], width=WIDE)
    for (workload, name), reason in failed.items():
        console.print(f"[bold red]FAIL[/] {escape(name)}, {workload}: {escape(reason)}", soft_wrap=True)


# ---- builds of one library

def with_spread(value, rounds):
    known = [r for r in rounds or [] if r is not None]
    if value is None or not known:
        return "-"
    return f"{value:.3f} [{min(known):.3f}-{max(known):.3f}]"


def show_modes(section):
    """Of CPU time and peak memory: the ratio of the medians, and its smallest and largest value in one round."""
    base, *others = section.allocators
    groups = {"programs": [test for test in section.tests if not test.is_real],
              "real programs": [test for test in section.tests if test.is_real and not test.group]}
    for group in dict.fromkeys(test.group for test in section.tests if test.group):
        groups[group] = [test for test in section.tests if test.group == group]
    groups["all"] = section.tests
    for field in ("cpu_s", "peak_kib"):
        made = table("", *others)
        for test in section.tests:
            made.add_row(escape(test.name), *(escape(with_spread(scores.test_ratio(test, name, base, field),
                                                                 scores.round_ratios(test, name, base, field)))
                                              for name in others))
        for title, tests in groups.items():
            if tests:
                made.add_row(f"geometric mean, {title}", *(escape(mean_with_spread(tests, name, base, field))
                                                           for name in others), style="bold")
        show(f"{FIELDS[field]}, x {base}", made, r"ratio of the medians [smallest-largest ratio in a round]")
    show_exceptions(section)


def mean_with_spread(tests, name, base, field):
    mean = scores.geometric_mean(scores.test_ratio(test, name, base, field) for test in tests)
    return with_spread(mean, scores.round_means(tests, name, base, field))


# ---- comparison, goals

def show_comparison(before, after, fields, is_changed_only, is_wanted):
    for field in fields:
        found = [d for d in scores.differences(before, after, field) if is_wanted(d)]
        made = table("test", "allocator", "first", "second", "ratio", "", n_names=2)
        for d in found:
            if d.is_clear or not is_changed_only:
                style = ("green" if d.after < d.before else "red") if d.is_clear else ""
                made.add_row(escape(d.test), escape(d.allocator), f"{d.before:.6g}", f"{d.after:.6g}", number(d.ratio, 3),
                             "*" if d.is_clear else "", style=style)
        for name in dict.fromkeys(d.allocator for d in found):
            mean = scores.geometric_mean(d.ratio for d in found if d.allocator == name)
            made.add_row("geometric mean", escape(name), "", "", number(mean, 3), "", style="bold")
        show(f"{field}, second file / first file", made, "* the ranges do not overlap")
    if before.machine.get("CPU") != after.machine.get("CPU"):
        console.print("the files come from different machines")
    for what, reason in sorted(scores.not_compared(before, after)):
        console.print(escape(f"not compared: {what}: {reason}"), soft_wrap=True)


def show_goals(section):
    """Whether all are reached."""
    verdicts = goals.verdicts(section)
    console.print(f"compared to {', '.join(goals.PEERS)}", soft_wrap=True)
    for verdict in verdicts:
        word = "[bold red]no [/]" if verdict.misses else "[bold green]yes[/]" if verdict.n_checked else "-  "
        count = f" ({len(verdict.misses)} of {verdict.n_checked} not)" if verdict.misses else ""
        console.print(f"{word} {escape(verdict.title)}{count}", soft_wrap=True)
        for text in verdict.misses:
            console.print(f"      {escape(text)}", soft_wrap=True)
    missing = goals.missing_peers(section)
    if missing:
        console.print(f"\nnot measured: {', '.join(missing)}", soft_wrap=True)
    if section.is_quick or not section.is_complete:
        console.print(f"\nthis is {'a quick' if section.is_quick else 'an interrupted'} run", soft_wrap=True)
    return goals.are_reached(section)
