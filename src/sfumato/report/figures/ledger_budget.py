"""Ledger budget: how much of each grant is spent, and how it was spent over time.

Grants of different kinds (ε, ε with δ, ρ) are drawn as shares of themselves, so that they can stand side by side;
tooltips tell the amounts.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.report.figures.drawing import ACCENT, GRID, INK, MUTED, PALE, SECOND, Board, board, finished, short_name, tidy_axes
from sfumato.report.figures.labels import Label, place_labels
from sfumato.report.figures.ledger_timeline import date_axis, moment
from sfumato.report.markup import shorten, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More accounts than these are counted in a line of text, and longer histories are thinned to so many marks.
MOST_ACCOUNTS = 30
MOST_MARKS = 200

_LINES = (ACCENT, SECOND, INK, PALE)


@dataclass(frozen=True)
class AccountBudget:
    """One account: whose, how much of the grant is spent (1.0: all of it), and the same in words.

    `spends`: what was spent when, each as ISO time and share of the grant, oldest first.
    """

    dataset: str
    analyst: str
    share: float
    words: str
    spends: tuple[tuple[str, float], ...] = ()

    @property
    def name(self) -> str:
        """How the figure calls it."""
        return f"{self.analyst} on {self.dataset}"


def ledger_budget(budgets: Sequence[AccountBudget]) -> str:
    """A bar per account against its grant; below, the running total of each over time."""
    drawn_accounts = list(budgets[:MOST_ACCOUNTS])
    left_out = len(budgets) - len(drawn_accounts)
    rows = max(len(drawn_accounts), 1)
    history = any(each.spends for each in drawn_accounts)
    heights = (0.9 + 0.48 * rows, 2.6 if history else 0.0)
    with board(7.2, sum(heights)) as drawn:
        if history:
            above, below = drawn.figure.subplots(2, 1, height_ratios=heights)
            _history(drawn, below, drawn_accounts)
        else:
            above = drawn.axes()
        _bars(drawn, above, drawn_accounts)
        sentences = [f"{visible(each.name)}: {visible(each.words)}, {each.share * 100:.0f} % spent" for each in drawn_accounts]
        sentences += [f"{left_out:,} more accounts"] if left_out else []
        return finished(drawn, "ledger-budget", "Budget spent per analyst and data set", "; ".join(sentences) or "No grant yet.")


def _bars(drawn: Board, axes: Axes, budgets: Sequence[AccountBudget]) -> None:
    widest = max([1.0, *(each.share for each in budgets)])
    for place, each in enumerate(budgets):
        axes.barh(place, 1.0, height=0.62, color=GRID, alpha=0.45, linewidth=0)
        bar = axes.barh(place, each.share, height=0.62, color=SECOND if each.share >= 1 else ACCENT)[0]
        bar.set_gid(f"bar-{place}")
        drawn.tooltips[f"bar-{place}"] = f"{visible(each.name)}: {visible(each.words)} ({each.share * 100:.2f} %)"
    axes.set_yticks(range(len(budgets)), [f"{short_name(each.name, 30)}\n{shorten(each.words, 38)}" for each in budgets])
    axes.tick_params(axis="y", labelcolor=INK, labelsize=11)
    axes.set_xlim(0, widest)
    axes.set_ylim(max(len(budgets), 1) - 0.5, -0.5)
    ticks = [0, 0.25, 0.5, 0.75, 1.0]
    axes.set_xticks(ticks, [f"{tick * 100:.0f} %" for tick in ticks])
    axes.set_xlabel("share of the grant that is spent", color=MUTED)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _history(drawn: Board, axes: Axes, budgets: Sequence[AccountBudget]) -> None:
    moments: list[float] = []
    labels: list[Label] = []
    places: list[tuple[float, float]] = []
    for place, each in enumerate(budgets):
        if not each.spends:
            continue
        times, totals = _running(each)
        moments += times
        colour = _LINES[place % len(_LINES)]
        axes.step(times, totals, where="post", color=colour, linewidth=1.5)
        marks = axes.scatter(times, totals, s=22, color=colour, linewidth=0, zorder=3)
        marks.set_gid(f"spends-{place}")
        drawn.tooltips[f"spends-{place}"] = [
            f"{visible(each.name)}: {total * 100:.2f} % spent by {visible(time)}"
            for (time, _), total in zip(_thinned(each.spends), totals, strict=True)
        ]
        labels.append(Label(short_name(each.name, 28), times[-1], totals[-1], colour, 11))
        places += zip(times, totals, strict=True)
    pad = max((max(moments) - min(moments)) * 0.08, 1 / 1440)
    axes.set_xlim(min(moments) - pad, max(moments) + 3 * pad)
    axes.set_ylim(0, max(1.15, axes.get_ylim()[1]))
    axes.set_yticks([0, 0.5, 1.0], ["0 %", "50 %", "100 %"])
    axes.set_ylabel("spent so far", color=MUTED)
    tidy_axes(axes, grid="y")
    if max(moments) - min(moments) > 2:
        date_axis(axes, moments)
    else:
        _clock_axis(axes)
    place_labels(axes, labels, places)


def _clock_axis(axes: Axes) -> None:
    """Hours and minutes of UTC, for a history of hours; the first tick names the day."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(4))
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    minutes = [round(tick % 1 * 1440) % 1440 for tick in ticks]
    texts = [f"{minute // 60:02d}:{minute % 60:02d}" for minute in minutes]
    if texts:
        texts[0] = f"{datetime.date.fromordinal(int(ticks[0])).isoformat()}\n{texts[0]} UTC"
    axes.set_xticks(ticks, texts)


def _running(budget: AccountBudget) -> tuple[list[float], list[float]]:
    reached = list(itertools.accumulate(share for _, share in budget.spends))
    kept = _kept(len(budget.spends))
    return [moment(budget.spends[i][0]) for i in kept], [reached[i] for i in kept]


def _thinned(spends: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    return [spends[i] for i in _kept(len(spends))]


def _kept(count: int) -> list[int]:
    """Which marks are drawn of a long history: evenly spread, always the last."""
    if count <= MOST_MARKS:
        return list(range(count))
    return sorted({round(i * (count - 1) / (MOST_MARKS - 1)) for i in range(MOST_MARKS)})
