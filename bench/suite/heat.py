"""The chart of the landscape: ours over the best of the others, a cell of colour for each pattern and size."""

from matplotlib import colors
from numpy import ma

from .landscape import LIMIT, is_cell, size_text
from .plot import LINE, pyplot, ticker

FAR = 4  # from there on, and from its inverse, the colours are the strongest
MAP = "RdBu_r"  # less is blue and more is red: both can be told apart without seeing red or green
PALE = 2.2  # beyond that the text is white


def landscape(section):
    """Numbers above the limit are bold, and in a frame."""
    ratios = [[section.ratio(pattern, size)[0] if is_cell(pattern, size) else None for size in section.sizes]
              for pattern in section.patterns]
    if not any(ratio for row in ratios for ratio in row):
        return None
    n_rows, n_columns = len(section.patterns), len(section.sizes)
    figure, axes = pyplot.subplots(figsize=(10, 0.3 * n_rows + 1.3), layout="constrained")
    scale = colors.LogNorm(1 / FAR, FAR)
    shown = ma.masked_invalid([[min(max(ratio, 1 / FAR), FAR) if ratio else float("nan") for ratio in row] for row in ratios])
    image = axes.pcolormesh(range(n_columns), range(n_rows), shown, cmap=MAP, norm=scale, edgecolors="none")
    axes.invert_yaxis()
    for y, row in enumerate(ratios):
        for x, ratio in enumerate(row):
            if ratio:
                draw_number(axes, x, y, ratio)
    axes.set(xticks=range(n_columns), xticklabels=map(size_text, section.sizes), yticks=range(n_rows),
             yticklabels=section.patterns, xlabel="size of a block")
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, orientation="horizontal", aspect=60, fraction=0.04, pad=0.03, extend="both",
                          label=f"instructions of {section.ours} over those of the best other allocator")
    bar.ax.xaxis.set_minor_locator(ticker.NullLocator())
    bar.set_ticks([0.25, 0.5, 1, 2, 4], labels=["¼", "½", "1", "2", "4"])
    bar.outline.set_edgecolor(LINE)
    return figure


def draw_number(axes, x, y, ratio):
    is_strong = ratio > PALE or ratio < 1 / PALE
    text = f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}" if ratio >= 1.995 else f"{ratio:.2f}"
    axes.text(x, y, text, ha="center", va="center", fontsize=7, color="white" if is_strong else "#24292f",
              fontweight="bold" if ratio > LIMIT else "normal")
    if ratio > LIMIT:
        axes.add_patch(pyplot.Rectangle((x - 0.47, y - 0.45), 0.94, 0.9, fill=False, edgecolor="#24292f", linewidth=0.8))
