"""A synthetic table beside its original: how far the marginals are, and every column's shares before and after.

Drawn from the report that `sfumato.dp.quality` makes. The original is in the figure, so it belongs to the owner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.core.plain_data import Plain
from sfumato.report.figures.drawing import ACCENT, INK, PALE, SECOND, Board, board, finished, fit_titles, short_name, tidy_axes
from sfumato.report.markup import shorten, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COLUMNS = 12
MOST_VALUES = 10
_NUMBERS = {"1": "one column", "2": "two columns", "3": "three columns", "4": "four columns", "5": "five columns"}


def synthetic_quality(report: Plain) -> str:
    """The figure as SVG."""
    columns = list(report["columns"].items())[:MOST_COLUMNS]
    shown = [(name, *_kept(entry)) for name, entry in columns]
    rows = max(math.ceil(len(shown) / 2), 1)
    heights = [1.5]
    for row in range(rows):
        heights.append(max((_height(one[1]) for one in shown[2 * row : 2 * row + 2]), default=1.0))
    with board(8.0, sum(heights) + 0.4) as drawn:
        grid = drawn.figure.add_gridspec(rows + 1, 2, height_ratios=heights)
        _distances(drawn, drawn.figure.add_subplot(grid[0, :]), report["distance"])
        panels = []
        for place, (_, labels, before, after) in enumerate(shown):
            panels.append(drawn.figure.add_subplot(grid[1 + place // 2, place % 2]))
            _column(drawn, panels[-1], place, labels, (before, after))
        _legend(drawn)
        fit_titles(panels, [visible(name) for name, *_ in shown])
        said = "; ".join(
            f"{_NUMBERS.get(size, size)}: {entry['mean'] * 100:.1f} % on average, {entry['largest'] * 100:.1f} % in the worst one"
            for size, entry in report["distance"].items()
            if entry["marginals"]
        )
        return finished(drawn, "synthetic-quality", "The synthetic table and its original", f"Distance of marginals of {said}.")


def _kept(entry: Mapping[str, Sequence[Any]]) -> tuple[list[str], list[float], list[float]]:
    """The values to draw: all ranges in their order, or the most frequent values and the rest together."""
    labels, before, after = list(entry["labels"]), list(entry["original"]), list(entry["synthetic"])
    if len(labels) <= MOST_VALUES or any(" to " in label for label in labels):
        return labels, before, after
    order = sorted(range(len(labels)), key=lambda place: (-before[place], place))
    kept, rest = order[:MOST_VALUES], order[MOST_VALUES:]
    return (
        [*(labels[place] for place in kept), f"{len(rest)} others"],
        [*(before[place] for place in kept), sum(before[place] for place in rest)],
        [*(after[place] for place in kept), sum(after[place] for place in rest)],
    )


def _height(labels: Sequence[str]) -> float:
    return 2.1 if len(labels) > MOST_VALUES + 1 else 0.75 + 0.27 * len(labels)


def _distances(drawn: Board, panel: Axes, distance: Mapping[str, Mapping[str, float]]) -> None:
    sizes = [size for size, entry in distance.items() if entry["marginals"]]
    for row, size in enumerate(sizes):
        entry = distance[size]
        for bar in panel.barh([row], [entry["mean"]], height=0.5, color=ACCENT):
            gid = f"mean-{size}"
            bar.set_gid(gid)
            drawn.tooltips[gid] = (
                f"{_NUMBERS.get(size, size)}: {entry['mean'] * 100:.2f} % on average over {entry['marginals']:.0f} marginals"
            )
        gid = f"largest-{size}"
        panel.plot([entry["largest"]], [row], marker="|", markersize=14, markeredgewidth=2.5, color=SECOND, gid=gid)
        drawn.tooltips[gid] = f"{_NUMBERS.get(size, size)}: {entry['largest'] * 100:.2f} % in the worst marginal"
    panel.set_yticks(range(len(sizes)), [_NUMBERS.get(size, size) for size in sizes])
    panel.tick_params(axis="y", labelcolor=INK)
    panel.invert_yaxis()
    panel.set_xlim(left=0)
    panel.set_title("Distance of marginals (total variation)", loc="left", fontsize=13, color=INK, fontweight="bold")
    _percent(panel)
    tidy_axes(panel, grid="x")


def _column(
    drawn: Board, panel: Axes, place: int, labels: Sequence[str], shares: tuple[Sequence[float], Sequence[float]]
) -> None:
    many = len(labels) > MOST_VALUES + 1
    for values, offset, colour, what in ((shares[0], -0.2, PALE, "original"), (shares[1], 0.2, ACCENT, "synthetic")):
        at = [row + offset for row in range(len(labels))]
        bars = panel.bar(at, values, width=0.4, color=colour) if many else panel.barh(at, values, height=0.36, color=colour)
        for row, bar in enumerate(bars):
            gid = f"bar-{place}-{what}-{row}"
            bar.set_gid(gid)
            drawn.tooltips[gid] = f"{visible(labels[row])}: {values[row] * 100:.2f} % ({what})"
    if many:
        step = max(len(labels) // 4, 1)
        starts = [label.split(" to ")[0] for label in labels]
        panel.set_xticks(range(0, len(labels), step), [shorten(text, 9) for text in starts[::step]])
        panel.set_yticks([])
        panel.spines["left"].set_visible(False)
    else:
        panel.set_yticks(range(len(labels)), [short_name(label, 20) for label in labels])
        panel.tick_params(axis="y", labelcolor=INK)
        panel.invert_yaxis()
        panel.spines["left"].set_visible(False)
        _percent(panel)


def _percent(panel: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    panel.xaxis.set_major_locator(MaxNLocator(4))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:g} %"))


def _legend(drawn: Board) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys = [
        Patch(color=PALE, label="original"),
        Patch(color=ACCENT, label="synthetic"),
        Line2D([], [], color=SECOND, marker="|", markersize=12, markeredgewidth=2.5, linestyle="none", label="worst marginal"),
    ]
    drawn.figure.legend(handles=keys, loc="outside upper left", ncols=3, frameon=False, labelcolor=INK)
