"""The chart of all tests together: time against memory, and the scores."""

from matplotlib.transforms import Bbox

from . import scores
from .plot import OTHER, OURS, look, pyplot, ratio_axis

OFF = 3  # a mean beyond that is drawn at the edge, with its value


def overall(section):
    """Time against memory, and the scores."""
    if len(section.allocators) < 2 or not section.tests:
        return None
    height = max(3.4, 0.3 * len(section.allocators) + 1)
    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(10, height), layout="constrained",
                                                    width_ratios=(1.7, 1, 1))
    draw_scatter(left, section)
    draw_scores(middle, section, "cpu_s", "time score", with_names=True)
    draw_scores(right, section, "peak_kib", "memory score", with_names=False)
    return figure


def draw_scatter(axes, section):
    means = {name: (scores.mean_ratio(section, name, section.ours, "cpu_s"),
                    scores.mean_ratio(section, name, section.ours, "peak_kib")) for name in section.allocators}
    means = {name: mean for name, mean in means.items() if None not in mean}
    if not means:
        return axes.set_axis_off()
    points = {name: tuple(min(value, OFF) for value in mean) for name, mean in means.items()}
    labels = {name: name if points[name] == mean else f"{name} ({mean[0]:.1f}×, {mean[1]:.1f}×)"
              for name, mean in means.items()}
    axes.set(xscale="log", yscale="log", xlabel=f"CPU time, x {section.ours}", ylabel=f"peak memory, x {section.ours}",
             title="less is better, in both directions")
    for i, axis in enumerate((axes.xaxis, axes.yaxis)):
        low, high = min(point[i] for point in points.values()), max(point[i] for point in points.values())
        margin = max((high / low) ** 0.12, 1.08)
        (axes.set_xlim, axes.set_ylim)[i](low / margin, high * margin)
        ratio_axis(axis, low / margin, high * margin)
    axes.tick_params(length=0)
    axes.grid()
    axes.axhline(1, color=OURS, linewidth=0.8)
    axes.axvline(1, color=OURS, linewidth=0.8)
    looks = look(section)
    for name, point in points.items():
        axes.plot(*point, marker=looks[name][1], color=looks[name][0], markersize=13 if name == section.ours else 7,
                  markeredgewidth=0, zorder=3)
    place_labels(axes, points, labels, section.ours)


SIDES = {"left": ((1, 0), (1, 1), (1, -1)), "right": ((-1, 0), (-1, 1), (-1, -1)), "center": ((0, 1.3), (0, -1.3))}


def place_labels(axes, points, labels, ours):
    """Each label beside its point, where it covers no other label and no point, as far as there is such a place."""
    figure = axes.figure
    figure.draw_without_rendering()  # the layout decides where the points are
    pixels = figure.dpi / 72
    at = {name: axes.transData.transform(point) for name, point in points.items()}
    taken = {name: Bbox.from_bounds(x - 9, y - 9, 18, 18) for name, (x, y) in at.items()}
    places = [(x * d, y * d, side) for d in (8, 13, 22, 32) for side, ways in SIDES.items() for x, y in ways]
    for name, (point_x, point_y) in at.items():
        label = axes.annotate(labels[name], points[name], (0, 0), textcoords="offset points", va="center", fontsize=8.5,
                              fontweight="bold" if name == ours else "normal", zorder=4, in_layout=False)
        extent = label.get_window_extent()

        def box(place):
            x, y, side = place
            left = point_x + x * pixels - extent.width * {"left": 0, "right": 1, "center": 0.5}[side]
            bottom = point_y + y * pixels - extent.height / 2
            return Bbox.from_bounds(left, bottom, extent.width, extent.height)

        def covers(place):
            b = box(place)
            is_inside = axes.bbox.x0 < b.x0 and b.x1 < axes.bbox.x1 and axes.bbox.y0 < b.y0 and b.y1 < axes.bbox.y1
            return sum(b.overlaps(other) for key, other in taken.items() if key != name) + (0 if is_inside else 1.5)

        x, y, side = min(places[1:] if name == ours else places, key=covers)  # ours is on its two lines
        label.set(x=x, y=y, ha=side)
        taken[name, "label"] = box((x, y, side))
        if max(abs(x), abs(y)) > 12:
            axes.annotate("", points[name], (x, y), textcoords="offset points", in_layout=False,
                          arrowprops={"arrowstyle": "-", "color": pyplot.rcParams["xtick.labelcolor"], "linewidth": 0.6,
                                      "shrinkA": 0, "shrinkB": 4})


def draw_scores(axes, section, field, title, with_names):
    names = sorted(section.allocators, key=lambda name: scores.score(section, name, "cpu_s") or 0)
    values = [scores.score(section, name, field) or 0 for name in names]
    bars = axes.barh(range(len(names)), values, height=0.66,
                     color=[OURS if name == section.ours else OTHER for name in names])
    axes.bar_label(bars, [f"{value:.0f}" for value in values], padding=3, fontsize=8.5)
    axes.set(xlim=(0, 112), title=title, xticks=(0, 50, 100), yticks=range(len(names)))
    axes.set_yticklabels(names if with_names else [])
    for name, label in zip(names, axes.get_yticklabels()):
        label.set_fontweight("bold" if name == section.ours else "normal")
    axes.tick_params(length=0)
    axes.grid(axis="x")
