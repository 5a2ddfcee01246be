"""What the charts share: style, colours, axes, and the way out: as SVG in a page, in its colours, or as files."""

import io
import math
import re

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot, ticker  # noqa: E402, after the choice of the backend

TEXT, LINE, BAND = "#010203", "#010204", "#010205"  # stand for the colours of the page or the paper
PAGE = {TEXT: "currentColor", LINE: "var(--line)", BAND: "var(--band)"}
PAPER = {TEXT: "#24292f", LINE: "#c8ccd2", BAND: "#f3f4f6"}
OURS = "#d9480f"
OTHER = "#7a8594"
COLOURS = ("#1c7ed6", "#2b9348", "#ae3ec9", "#c99700", "#0c9bab", "#e64980", "#845ef7", "#74b816", "#8d6e63", "#868e96",
           "#4dabf7", "#b02a5b")
MARKERS = "osD^vPXhdpH8"
# The first of these that has enough of them in an axis is taken.
TICKS = ([2.0 ** i for i in range(-10, 11)], [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6],
         [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2])

STYLE = {
    "svg.fonttype": "none", "font.size": 9, "font.family": "DejaVu Sans",
    "text.color": TEXT, "axes.labelcolor": TEXT, "axes.titlecolor": TEXT, "axes.titlesize": 10,
    "axes.titleweight": "bold", "axes.edgecolor": LINE, "axes.facecolor": "none", "axes.axisbelow": True, "axes.spines.top": False,
    "axes.spines.right": False, "grid.color": LINE, "grid.linewidth": 0.6, "xtick.color": LINE, "ytick.color": LINE,
    "xtick.labelcolor": TEXT, "ytick.labelcolor": TEXT, "legend.frameon": False, "figure.facecolor": "none",
}


def look(section):
    """Allocator to colour and marker."""
    others = [name for name in section.allocators if name != section.ours]
    looks = {name: (COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i, name in enumerate(others)}
    return {section.ours: (OURS, "*")} | looks


def ratio_axis(axis, low, high):
    """Logarithmic, with plain numbers."""
    axis.set_minor_locator(ticker.NullLocator())
    choices = [[tick for tick in ticks if low <= tick <= high] for ticks in TICKS]
    ticks = next((ticks for ticks in choices if len(ticks) > 3), choices[-1])
    axis.set_major_locator(ticker.FixedLocator(ticks))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))


def add_legend(figure, handles, names, most=10):
    """In rows of about the same length."""
    n_rows = math.ceil(len(handles) / most)
    figure.legend(handles, names, loc="outside upper center", ncols=math.ceil(len(handles) / n_rows), handlelength=1.4,
                  columnspacing=1.4)


# ---- output

def for_page(chart, *arguments):
    """The SVG of a chart, "" if it has nothing to show."""
    salt = f"{chart.__name__} {arguments[1:]}"  # makes its identifiers unique in the page
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": salt}):
        figure = chart(*arguments)
        if figure is None:
            return ""
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    text = file.getvalue()
    return re.sub("|".join(PAGE), lambda match: PAGE[match[0]], text[text.find("<svg"):])


def write_files(chart, section, stem):
    """STEM.svg and STEM.png on white, with the text as outlines; gives their paths."""
    svg = for_paper(chart, section, png=f"{stem}.png")
    if not svg:
        return []
    with open(f"{stem}.svg", "w", encoding="utf-8") as file:
        file.write(svg)
    return [f"{stem}.svg", f"{stem}.png"]


def for_paper(chart, *arguments, png=None):
    """The SVG of a chart on white, with the text as outlines, "" if it has nothing to show; and the file `png`."""
    paper = {key: PAPER.get(value, value) if isinstance(value, str) else value for key, value in STYLE.items()}
    with matplotlib.rc_context(paper | {"svg.fonttype": "path", "svg.hashsalt": "paper", "figure.facecolor": "white"}):
        figure = chart(*arguments)
        if figure is None:
            return ""
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
        if png:
            figure.savefig(png, dpi=160)
        pyplot.close(figure)
    text = re.sub("|".join(PAPER), lambda match: PAPER[match[0]], file.getvalue())  # charts name colours too
    return re.sub(" +$", "", with_numbered_ids(text), flags=re.MULTILINE)


def with_numbered_ids(svg):
    """Some identifiers come from addresses in memory, and would make the same chart another file each time."""
    names = {name: f"i{number}" for number, name in enumerate(re.findall(r'id="([mp][0-9a-f]{10})"', svg))}
    return re.sub(r"[mp][0-9a-f]{10}", lambda match: names.get(match[0], match[0]), svg)
