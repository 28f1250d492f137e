"""Class sizes: how many classes of which size a release has, on a 1-2-5 scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.report.figures.drawing import ACCENT, MUTED, SECOND, board, finished, tidy_axes


def class_sizes(sizes: Sequence[int] | NDArray[np.int64], *, k: int | None = None) -> str:
    """A histogram of class sizes; `k` draws the promised smallest size."""
    from matplotlib.ticker import MaxNLocator

    values = np.asarray(sizes, dtype=np.int64)
    edges = one_two_five(int(values.max()) if values.size else 1)
    bins = np.digitize(values, edges) - 1
    classes = np.bincount(bins, minlength=len(edges) - 1)
    records = np.bincount(bins, weights=values, minlength=len(edges) - 1).astype(np.int64)
    first = max(int(bins.min()) - 1, 0) if values.size else 0
    if k is not None:
        first = min(first, max(int(np.digitize([k], edges)[0]) - 2, 0))
    names = [_range(edges[i], edges[i + 1] - 1) for i in range(len(edges) - 1)]
    smallest = int(values.min()) if values.size else 0
    with board(7.2, 3.3) as drawn:
        axes = drawn.axes()
        for place, i in enumerate(range(first, len(names))):
            bar = axes.bar(place, classes[i], width=0.86, color=ACCENT)[0]
            bar.set_gid(f"bar-{i}")
            drawn.tooltips[f"bar-{i}"] = f"{classes[i]:,} classes of {names[i]} records, {records[i]:,} records together"
            if classes[i]:
                axes.annotate(
                    f"{classes[i]:,}",
                    (place, classes[i]),
                    (0, 3),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=11,
                    color=MUTED,
                )
        edge_names = [_short(edge) for edge in edges[first:]]
        axes.set_xticks(np.arange(len(edge_names)) - 0.5, edge_names)
        axes.set_xlabel("records in the class (a bar starts at the number on its left)")
        axes.set_ylabel("classes")
        axes.margins(x=0.01, y=0.24)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        tidy_axes(axes, grid="y")
        if k is not None:
            line = int(np.digitize([k], edges)[0]) - 1 - first - 0.5
            axes.axvline(line, color=SECOND, linewidth=1.4, linestyle=(0, (4, 3)))
            axes.annotate(
                f"promised: at least {k}",
                (line, 1),
                (6, -2),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                va="top",
                fontsize=11,
                color=SECOND,
            )
        return finished(
            drawn,
            "class-sizes",
            "Sizes of the classes",
            f"Histogram of {values.size:,} classes; the smallest has {smallest:,} records.",
        )


def one_two_five(largest: int) -> list[int]:
    """Edges 1, 2, 5, 10, 20, 50, … up to beyond the largest value."""
    edges, power = [1], 1
    while edges[-1] <= largest:
        edges += [2 * power, 5 * power, 10 * power]
        power *= 10
    while len(edges) > 2 and edges[-2] > largest:
        edges.pop()
    return edges


def _range(low: int, high: int) -> str:
    return _short(low) if low == high else f"{_short(low)}–{_short(high)}"


def _short(number: int) -> str:
    for unit, letter in ((1_000_000, "M"), (1000, "k")):
        if number >= unit:
            return f"{number / unit:.3g}".rstrip("0").rstrip(".") + letter if number % unit else f"{number // unit}{letter}"
    return str(number)
