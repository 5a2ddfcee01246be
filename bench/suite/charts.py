"""The charts of single tests: medians relative to ours, and curves over the number of threads."""

import math

from . import heat, overview, scores
from .plot import BAND, OURS, add_legend, look, pyplot, ratio_axis, ticker

FAR = 8  # a ratio beyond that is drawn at the edge, with its value


def each_test(section, field, title):
    """One row per test, and in it one mark per allocator, at its ratio to ours."""
    others = [name for name in section.allocators if name != section.ours]
    rows = [(test.name, {name: scores.test_ratio(test, name, section.ours, field) for name in others})
            for test in section.tests]
    rows = [(test, found) for test, found in rows if any(value is not None for value in found.values())]
    if not rows:
        return None
    rows.insert(0, ("all tests", {name: scores.mean_ratio(section, name, section.ours, field) for name in others}))
    values = [value for _, found in rows for value in found.values() if value is not None]
    low, high = max(min([*values, 1]), 1 / FAR) / 1.12, min(max([*values, 1]), FAR) * 1.12
    step = 0.052 * len(others) + 0.14  # inches per row
    figure, axes = pyplot.subplots(figsize=(10, step * len(rows) + 1.1), layout="constrained")
    looks = look(section)
    for y, (_, found) in enumerate(rows):
        if y % 2 == 0:
            axes.axhspan(y - 0.5, y + 0.5, color=BAND, linewidth=0, zorder=0)
        for i, name in enumerate(others):
            if found[name] is not None:
                draw_mark(axes, found[name], y + ((i + 0.5) / len(others) - 0.5) * 0.86, looks[name], low, high)
    axes.axvline(1, color=OURS, linewidth=1.6, label=section.ours, zorder=2)
    axes.set(xscale="log", xlim=(low, high), ylim=(len(rows) - 0.5, -0.5), yticks=range(len(rows)),
             yticklabels=[test for test, _ in rows])
    axes.tick_params(length=0)
    axes.get_yticklabels()[0].set_fontweight("bold")
    axes.xaxis.tick_top()
    axes.grid(axis="x")
    ratio_axis(axes.xaxis, low, high)
    handles = [axes.plot([], [], marker=looks[name][1], color=looks[name][0], linewidth=1.2, markersize=5)[0]
               for name in others]
    handles.insert(0, axes.lines[-1 - len(others)])
    add_legend(figure, handles, [section.ours, *others])
    axes.set_xlabel(title)
    return figure


def draw_mark(axes, value, y, look_of, low, high):
    colour, marker = look_of
    edge = min(max(value, low * 1.02), high / 1.02)
    axes.plot([1, edge], [y, y], color=colour, linewidth=1.2, zorder=3, solid_capstyle="butt")
    axes.plot([edge], [y], marker=marker, color=colour, markersize=4, markeredgewidth=0, zorder=4)
    if edge != value:
        axes.annotate(f"{value:.2g}", (edge, y), (6 if value > 1 else -6, 0), textcoords="offset points", va="center",
                      ha="left" if value > 1 else "right", fontsize=7.5, color=colour)


def scaling(section, columns=3):
    """CPU time per thread with one thread over that with many, for each test."""
    tests = list(scores.scaling_tests(section))
    if not tests:
        return None
    n_rows = math.ceil(len(tests) / columns)
    figure, grid = pyplot.subplots(n_rows, columns, figsize=(10, 2.7 * n_rows + 0.5), layout="constrained", squeeze=False)
    looks, handles = look(section), {}
    for test, axes in zip(tests, grid.flat):
        counts = sorted({t.threads for t in section.tests if t.name == test})
        for name in reversed(section.allocators):
            curve = scores.growth(section, test, name)
            colour, marker = looks[name]
            handles[name], = axes.plot(curve.keys(), [100 / value for value in curve.values()], color=colour, marker=marker,
                                       markersize=8 if name == section.ours else 4, markeredgewidth=0,
                                       linewidth=2 if name == section.ours else 1.2)
        axes.set(title=test, xscale="log", xticks=counts, xticklabels=counts, xlabel="threads",
                 ylim=(0, min(max(axes.get_ylim()[1], 110), 200)))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.yaxis.set_major_formatter(ticker.PercentFormatter(decimals=0))
        axes.tick_params(length=0)
        axes.grid()
    for axes in grid.flat[len(tests):]:
        axes.set_axis_off()
    add_legend(figure, [handles[name] for name in section.allocators], section.allocators)
    return figure


PUBLISHED = {
    "overall.svg": overview.overall,
    "time.svg": lambda section: each_test(section, "cpu_s", f"CPU time relative to {section.ours}: left is less"),
    "memory.svg": lambda section: each_test(section, "peak_kib", f"peak memory relative to {section.ours}: left is less"),
    "landscape.svg": heat.landscape,
}
