"""Distributions before and after: what each column looked like in the original and what the release tells
about it.

A generalised value is read as its leaves, each as likely as the others, which is what an analyst without
further knowledge does. The original is in the figure, so it belongs to the owner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.data.microdata import ReleasedTable
from sfumato.data.texts.values import as_numbers
from sfumato.report.figures.drawing import ACCENT, GRID, INK, MUTED, PALE, PAPER, Board, board, finished, fit_titles, short_name
from sfumato.report.markup import shorten, visible

MOST_VALUES = 10
MOST_COLUMNS = 12
BINS = 16


@dataclass(frozen=True, eq=False)
class Distribution:
    """The shares of a column's values (or of ranges of numbers) before and after."""

    column: str
    labels: tuple[str, ...] = field(repr=False)
    before: NDArray[np.float64] = field(repr=False)
    after: NDArray[np.float64] = field(repr=False)
    numeric: bool = False

    @property
    def distance(self) -> float:
        """Half the sum of absolute differences: 0 when equal, 1 when disjoint."""
        return float(np.abs(self.before - self.after).sum()) / 2


def compared(column: str, counts: dict[str | None, int], released: ReleasedTable) -> Distribution:
    """The distribution of a column in the original (`counts` per value) and as the release tells it."""
    after = _spread(column, released, counts)
    values = list({**counts, **after})
    numbers = as_numbers([value for value in values if value is not None])
    before_total, after_total = max(sum(counts.values()), 1), max(sum(after.values()), 1e-12)
    before_share = {value: counts.get(value, 0) / before_total for value in values}
    after_share = {value: after.get(value, 0.0) / after_total for value in values}
    if numbers is not None and len(numbers) > MOST_VALUES:
        return _binned(column, before_share, after_share)
    ordered = sorted(values, key=lambda value: -before_share[value])
    if numbers is not None:
        ordered.sort(key=lambda value: (value is None, float(value) if value is not None else 0.0))
    kept, rest = ordered[:MOST_VALUES], ordered[MOST_VALUES:]
    labels = ["missing" if value is None else value for value in kept]
    before = [before_share[value] for value in kept]
    now = [after_share[value] for value in kept]
    if rest:
        labels.append(f"{len(rest)} others")
        before.append(sum(before_share[value] for value in rest))
        now.append(sum(after_share[value] for value in rest))
    return Distribution(column, tuple(labels), np.array(before), np.array(now), numeric=numbers is not None)


def distributions(columns: Sequence[Distribution]) -> str:
    """Small multiples, one per column."""
    from matplotlib.patches import Patch

    shown = list(columns)[:MOST_COLUMNS]
    across = 1 if len(shown) == 1 else 2
    rows = max(math.ceil(len(shown) / across), 1)
    heights = [max((_height(one) for one in shown[r * across : (r + 1) * across]), default=1.0) for r in range(rows)]
    with board(7.2 if across == 1 else 8.0, sum(heights) + 0.4) as drawn:
        grid = drawn.figure.subplots(rows, across, squeeze=False, height_ratios=heights)
        for place, panel in enumerate(grid.reshape(-1)):
            if place >= len(shown):
                panel.set_visible(False)
                continue
            one = shown[place]
            (_profile if one.numeric and len(one.labels) > MOST_VALUES else _bars)(drawn, panel, one, place)
        fit_titles(list(grid.reshape(-1)[: len(shown)]), [visible(one.column) for one in shown])
        keys = [Patch(color=PALE, label="original"), Patch(color=ACCENT, label="as the release tells it")]
        drawn.figure.legend(handles=keys, loc="outside upper left", ncols=2, frameon=False, labelcolor=INK)
        summary = "; ".join(f"{visible(one.column)}: {one.distance * 100:.0f} % moved" for one in shown)
        return finished(drawn, "distributions", "Distributions before and after", summary or "No column.")


def _height(one: Distribution) -> float:
    return 2.1 if one.numeric and len(one.labels) > MOST_VALUES else 0.75 + 0.27 * len(one.labels)


def _bars(drawn: Board, panel: object, one: Distribution, place: int) -> None:
    from matplotlib.axes import Axes

    assert isinstance(panel, Axes)  # noqa: S101  (for the type checker)
    rows = np.arange(len(one.labels))
    for shares, offset, colour, what in (
        (one.before, -0.2, PALE, "original"),
        (one.after, 0.2, ACCENT, "release"),
    ):
        for i, bar in enumerate(panel.barh(rows + offset, shares, height=0.36, color=colour)):
            gid = f"bar-{place}-{what}-{i}"
            bar.set_gid(gid)
            drawn.tooltips[gid] = f"{visible(one.labels[i])}: {shares[i] * 100:.2f} % ({what})"
    panel.set_yticks(rows, [short_name(label, 20) for label in one.labels])
    panel.tick_params(axis="y", labelcolor=INK)
    panel.invert_yaxis()
    _percent_axis(panel)


def _profile(drawn: Board, panel: object, one: Distribution, place: int) -> None:
    from matplotlib.axes import Axes

    assert isinstance(panel, Axes)  # noqa: S101  (for the type checker)
    rows = np.arange(len(one.labels))
    for shares, offset, colour, what in (
        (one.before, -0.2, PALE, "original"),
        (one.after, 0.2, ACCENT, "release"),
    ):
        for i, bar in enumerate(panel.bar(rows + offset, shares, width=0.4, color=colour)):
            gid = f"bar-{place}-{what}-{i}"
            bar.set_gid(gid)
            drawn.tooltips[gid] = f"{visible(one.labels[i])}: {shares[i] * 100:.2f} % ({what})"
    step = max(len(one.labels) // 4, 1)
    starts = [label.split(" to ")[0] for label in one.labels]
    panel.set_xticks(rows[::step] - 0.5, [shorten(text, 9) for text in starts[::step]])
    panel.set_yticks([])
    panel.spines["left"].set_visible(False)


def _percent_axis(panel: object) -> None:
    from matplotlib.axes import Axes
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    assert isinstance(panel, Axes)  # noqa: S101  (for the type checker)
    panel.xaxis.set_major_locator(MaxNLocator(4))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:g} %"))
    panel.spines["left"].set_visible(False)


def _spread(column: str, released: ReleasedTable, counts: dict[str | None, int]) -> dict[str | None, float]:
    """The released column with each text spread evenly over the leaves it stands for."""
    from sfumato.data.texts.values import texts

    counted = released.table.column(column).value_counts()
    meanings = released.shown.get(column, {})
    spread: dict[str | None, float] = {}
    for text, count in zip(texts(counted.field("values")), counted.field("counts").to_pylist(), strict=True):
        entry = meanings.get(text)
        leaves = sorted(entry.leaves, key=str) if entry is not None and entry.leaves else None
        if entry is not None and leaves is None and entry.bounds is not None:
            low, high = entry.bounds
            leaves = [v for v in counts if v is not None and (n := as_numbers([v])) and low <= n[0] < high]
        for leaf in leaves or [text]:
            spread[leaf] = spread.get(leaf, 0.0) + count / len(leaves or [text])
    return spread


def _binned(column: str, before: dict[str | None, float], after: dict[str | None, float]) -> Distribution:
    values = [value for value in before if value is not None]
    numbers = np.array([float(value) for value in values])
    edges = _edges(numbers)
    bins = edges.size - 1
    where = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, bins - 1)
    shares = [
        np.bincount(where, weights=[share[value] for value in values], minlength=bins).astype(np.float64)
        for share in (before, after)
    ]
    labels = tuple(f"{low:.6g} to {high:.6g}" for low, high in zip(edges, edges[1:], strict=False))
    return Distribution(column, labels, shares[0], shares[1], numeric=True)


def _edges(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """About BINS ranges of equal width; of whole width where the numbers are whole, so that each holds as
    many of them."""
    low, high = float(numbers.min()), float(numbers.max())
    if not np.all(numbers == np.floor(numbers)):
        return np.linspace(low, high, BINS + 1)
    width = max(math.ceil((high - low + 1) / BINS), 1)
    edges = np.arange(low, high + width + 0.5, width)
    # numbers so large that floating-point numbers do not tell them apart have one range
    return edges if edges.size > 1 else np.array([low, np.nextafter(high, np.inf)])


def loss_per_attribute(losses: Mapping[str, float], *, levels: Mapping[str, str] | None = None) -> str:
    """Bars from 0 % (untouched) to 100 % (nothing left); `levels` adds a word on each attribute's
    generalisation."""
    ordered = sorted(losses.items(), key=lambda pair: (-pair[1], pair[0]))
    with board(7.2, 0.75 + 0.36 * max(len(ordered), 1)) as drawn:
        axes = drawn.axes()
        for place, (name, loss) in enumerate(ordered):
            axes.barh(place, 1.0, height=0.62, color=GRID, alpha=0.45, linewidth=0)
            bar = axes.barh(place, loss, height=0.62, color=ACCENT)[0]
            bar.set_gid(f"bar-{place}")
            note = f" ({visible(levels[name])})" if levels and name in levels else ""
            drawn.tooltips[f"bar-{place}"] = f"{visible(name)}: {loss * 100:.2f} % of the detail lost{note}"
            inside = loss > 0.85
            label = f"{loss * 100:.0f} %" if loss in (0.0, 1.0) else f"{loss * 100:.1f} %"
            axes.annotate(
                label,
                (loss, place),
                (-6 if inside else 6, 0),
                textcoords="offset points",
                va="center",
                ha="right" if inside else "left",
                fontsize=11,
                color=PAPER if inside else INK,
            )
        axes.set_yticks(range(len(ordered)), [short_name(name, 28) for name, _ in ordered])
        axes.tick_params(axis="y", labelcolor=INK, labelsize=12)
        axes.set_xlim(0, 1)
        axes.set_ylim(max(len(ordered), 1) - 0.5, -0.5)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        axes.set_xlabel("detail lost (0 %: as in the original, 100 %: everything)", color=MUTED)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        summary = ", ".join(f"{visible(name)} {loss * 100:.0f} %" for name, loss in ordered)
        return finished(drawn, "loss-per-attribute", "Loss of detail per attribute", summary or "No attribute.")
