"""Class sizes: how many classes of which size a release has, on a 1-2-5 scale, and how many records carry which risk by them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.report.figures.drawing import ACCENT, INK, MUTED, SECOND, board, finished, tidy_axes

#: So many bars have room for whole numbers above them.
_ROOMY = 9


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
                    f"{classes[i]:,}" if len(names) - first <= _ROOMY else _short(int(classes[i])),
                    (place, classes[i]),
                    (0, 3),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=11 if len(names) - first <= _ROOMY else 8.5,
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


_EDGES = (0.0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 1 / 3, 0.5, 1.0)
_NAMES = ("0.1 %", "1 %", "2 %", "5 %", "10 %", "20 %", "33 %", "50 %", "100 %")


def risk_profile(sizes: Sequence[int] | NDArray[np.int64]) -> str:
    """Bars: the share of records whose risk (1 over the size of the class) lies up to each step."""
    values = np.asarray(sizes, dtype=np.float64)
    risk = 1 / values
    bins = np.searchsorted(np.array(_EDGES[1:]) + 1e-12, risk)
    records = np.bincount(bins, weights=values, minlength=len(_NAMES))
    total = max(float(values.sum()), 1.0)
    highest = float(risk.max()) if values.size else 0.0
    average = values.size / total
    with board(7.2, 3.1) as drawn:
        axes = drawn.axes()
        for place, count in enumerate(records):
            low = "0 %" if place == 0 else _NAMES[place - 1]
            bar = axes.bar(place, count / total, width=0.86, color=ACCENT)[0]
            bar.set_gid(f"bar-{place}")
            drawn.tooltips[f"bar-{place}"] = (
                f"{int(count):,} records ({count / total * 100:.1f} %) with a risk above {low} and up to {_NAMES[place]}"
            )
            if count:
                axes.annotate(
                    _percent(count / total, digits=2 if count < 0.01 * total else 3),
                    (place, count / total),
                    (0, 3),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=11,
                    color=MUTED,
                )
        axes.set_xticks(range(len(_NAMES)), [f"≤ {name}" for name in _NAMES])
        top = max(float(records.max()) / total if records.size else 0.0, 0.01)
        axes.set_ylim(0, top * 1.4)
        axes.set_yticks([])
        axes.set_xlabel("risk that a known participant's record is picked out")
        axes.set_ylabel("share of records")
        tidy_axes(axes, grid="y")
        text = f"highest {_percent(highest)}, average {_percent(average)}"
        axes.set_title(text, loc="left", fontsize=12, color=INK)
        limit = int(np.searchsorted(np.array(_EDGES[1:]) + 1e-12, highest))
        if values.size and limit < len(_NAMES) - 1:
            axes.axvline(limit + 0.5, color=SECOND, linewidth=1.4, linestyle=(0, (4, 3)))
            axes.annotate(
                "nobody beyond",
                (limit + 0.5, 0.99),
                (6 if limit < len(_NAMES) // 2 else -6, 0),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                va="top",
                ha="left" if limit < len(_NAMES) // 2 else "right",
                fontsize=11,
                color=SECOND,
            )
        return finished(drawn, "risk-profile", "Risk of being picked out", f"Share of records by risk: {text}.")


def _percent(rate: float, digits: int = 3) -> str:
    return f"{rate * 100:.{digits}g} %" if rate >= 0.0001 or rate == 0 else "< 0.01 %"
