"""The risk-utility map: the risk above chance that a method leaves against what it loses, one mark per method and parameters.

Every family of methods has its own shape and a line through its parameters; the marks that no other betters are joined by the
front. Duncan, Keller-McNulty, Stokes, "Disclosure risk vs. data utility: the R-U confidentiality map", NISS 2001.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.params import require
from sfumato.report.figures.drawing import ACCENT, GRID, INK, MUTED, PALE, PAPER, SECOND, Board, board, finished
from sfumato.report.markup import shorten, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "d", "*")
_LONGEST_LABEL = 42
# Shares of the drawing area that a character of a label and a line of labels take.
_PLAIN, _BOLD, _LINE = 0.0125, 0.016, 0.055
# How far from its mark a label begins, and how far above or below it lies.
_GAP, _RISE = 0.015, 0.035


@dataclass(frozen=True)
class Mark:
    """One method: `family` shares a shape, `label` names it, `tooltip` is shown on hover. `risk` is a gain over chance; `margins`
    say how far from risk and loss a new draw may lie."""

    family: str
    label: str
    risk: float
    loss: float
    tooltip: str
    best: bool = False  # no other method betters it
    margins: tuple[float, float] | None = None


@dataclass(frozen=True)
class RiskUtility:
    """The marks, the original for comparison, and which mark is recommended."""

    marks: Sequence[Mark] = field(repr=False)
    original: tuple[float, float]
    chosen: int | None = None
    risk_label: str = "disclosure risk"
    loss_label: str = "information loss"
    most_risk: float | None = None
    most_loss: float | None = None


def risk_utility(content: RiskUtility) -> str:
    """Loss from left (none) to right, risk from bottom (none) to top: the best corner is below left."""
    marks = content.marks
    require(bool(marks), "a map needs at least one method that could be applied")
    families = list(dict.fromkeys(mark.family for mark in marks))
    with board(7.6, 5.2) as drawn:
        axes = drawn.axes()
        _limits(axes, content)
        _chance(axes)
        for position, family in enumerate(families):
            _family(drawn, axes, family, [mark for mark in marks if mark.family == family], _SHAPES[position % len(_SHAPES)])
        front = sorted((mark for mark in marks if mark.best), key=lambda mark: mark.loss)
        if len(front) > 1:
            axes.plot(
                [mark.loss for mark in front], [mark.risk for mark in front], color=ACCENT, linewidth=1.6, drawstyle="steps-post",
                zorder=2, alpha=0.8,
            )  # fmt: skip
        _original(drawn, axes, content)
        if content.chosen is not None:
            _chosen(drawn, axes, marks[content.chosen])
        _axes(axes, content, len(families))
        _labels(axes, front, content)
        return finished(drawn, "risk-utility", "Risk against loss of every method", _described(content, front))


def _family(drawn: Board, axes: Axes, family: str, marks: Sequence[Mark], shape: str) -> None:
    ordered = sorted(marks, key=lambda mark: mark.loss)
    axes.plot([mark.loss for mark in ordered], [mark.risk for mark in ordered], color=GRID, linewidth=1.0, zorder=1)
    for mark in marks:
        if mark.margins is not None and max(mark.margins) > 0:
            axes.errorbar(
                [mark.loss], [mark.risk], yerr=[mark.margins[0]], xerr=[mark.margins[1]],
                fmt="none", ecolor=ACCENT if mark.best else GRID, elinewidth=0.9, alpha=0.7, zorder=2,
            )  # fmt: skip
    for best, colour in ((False, PALE), (True, ACCENT)):
        some = [mark for mark in marks if mark.best == best]
        if not some:
            continue
        drawn_marks = axes.scatter(
            [mark.loss for mark in some], [mark.risk for mark in some], s=46, marker=shape, color=colour, linewidth=0, zorder=3
        )
        name = f"family-{_SHAPES.index(shape)}-{family.lower()}-{'front' if best else 'rest'}"
        drawn_marks.set_gid(name)
        drawn.tooltips[name] = [mark.tooltip for mark in some]
    axes.scatter([], [], s=46, marker=shape, color=MUTED, linewidth=0, label=visible(family))


def _original(drawn: Board, axes: Axes, content: RiskUtility) -> None:
    risk, loss = content.original
    mark = axes.scatter([loss], [risk], s=60, marker="o", facecolor="none", edgecolor=INK, linewidth=1.4, zorder=3)
    mark.set_gid("original")
    drawn.tooltips["original"] = [f"the original: gain {_percent(risk)}, loss {_percent(loss)}"]
    axes.annotate("original", (loss, risk), (8, -3), textcoords="offset points", fontsize=10.5, color=MUTED, va="top")


def _chosen(drawn: Board, axes: Axes, mark: Mark) -> None:
    ring = axes.scatter([mark.loss], [mark.risk], s=190, facecolor="none", edgecolor=SECOND, linewidth=2.2, zorder=4)
    ring.set_gid("recommended")
    drawn.tooltips["recommended"] = [f"recommended: {mark.tooltip}"]


def _labels(axes: Axes, front: Sequence[Mark], content: RiskUtility) -> None:
    """Names of the front's marks, the recommended one first and in bold, on a side where they cover neither a mark nor another
    name; a name without such a side is left to its tooltip."""
    chosen = None if content.chosen is None else content.marks[content.chosen]
    widest, highest = (limit[1] - limit[0] for limit in (axes.get_xlim(), axes.get_ylim()))
    lowest = (axes.get_xlim()[0] / widest, axes.get_ylim()[0] / highest)
    marks = [(mark.loss / widest, mark.risk / highest) for mark in content.marks]
    marks.append((content.original[1] / widest, content.original[0] / highest))
    labelled: list[tuple[float, float, float]] = []
    for mark in sorted(front, key=lambda mark: mark is not chosen):
        text = shorten(visible(mark.label), _LONGEST_LABEL)
        width = len(text) * (_BOLD if mark is chosen else _PLAIN)
        own = (mark.loss / widest, mark.risk / highest)

        def covers(left: bool, above: bool, own: tuple[float, float] = own, width: float = width) -> bool:
            start = own[0] - width - _GAP if left else own[0] + _GAP
            height = own[1] + (_RISE if above else -_RISE)
            if start < lowest[0] or start + width > lowest[0] + 1 or height - _LINE / 2 < lowest[1]:
                return True
            over = any(start - _GAP < x < start + width + _GAP and abs(y - height) < _LINE / 2 for x, y in marks)
            return over or any(start < end and begin < start + width and abs(height - y) < _LINE for begin, end, y in labelled)

        sides = [side for side in ((False, True), (True, False), (True, True), (False, False)) if not covers(*side)]
        if not sides and mark is not chosen:
            continue
        left, above = sides[0] if sides else (own[0] > 0.55, True)
        start = own[0] - width - _GAP if left else own[0] + _GAP
        labelled.append((start, start + width, own[1] + (_RISE if above else -_RISE)))
        axes.annotate(
            text,
            (mark.loss, mark.risk),
            (-9 if left else 9, 7 if above else -7),
            textcoords="offset points",
            ha="right" if left else "left",
            va="bottom" if above else "top",
            fontsize=11 if mark is chosen else 9.5,
            fontweight="bold" if mark is chosen else "normal",
            color=SECOND if mark is chosen else INK,
            zorder=5,
            bbox={"facecolor": PAPER, "alpha": 0.75, "linewidth": 0, "pad": 1},
        ).set_in_layout(False)  # a long name must not squeeze the axes


def _chance(axes: Axes) -> None:
    """The floor: a method on this line leaves no more risk than chance."""
    line = axes.axhline(0.0, color=MUTED, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    line.set_gid("chance")
    axes.annotate(
        "chance", (0.995, 0.0), (0, 2), xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=9.5, color=MUTED,
        ha="right", va="bottom",
    )  # fmt: skip


def _limits(axes: Axes, content: RiskUtility) -> None:
    if content.most_risk is not None:
        axes.axhline(content.most_risk, color=SECOND, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    if content.most_loss is not None:
        axes.axvline(content.most_loss, color=SECOND, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)


def _axes(axes: Axes, content: RiskUtility, families: int) -> None:
    from matplotlib.ticker import FuncFormatter

    percent = FuncFormatter(lambda value, _: f"{value * 100:g} %")
    axes.xaxis.set_major_formatter(percent)
    axes.yaxis.set_major_formatter(percent)
    highest_loss = max([mark.loss for mark in content.marks] + [content.original[1], 0.01])
    highest_risk = max([mark.risk for mark in content.marks] + [content.original[0], 0.01])
    axes.set_xlim(-0.02 * highest_loss, highest_loss * 1.18)
    lowest_risk = min([mark.risk for mark in content.marks] + [0.0])
    axes.set_ylim(lowest_risk - 0.03 * highest_risk, highest_risk * 1.08)
    axes.grid(color=GRID, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.set_xlabel(visible(content.loss_label))
    axes.set_ylabel(visible(content.risk_label))
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    axes.set_title("safer below, more useful to the left", loc="right", fontsize=11, color=MUTED)
    if families > 1:
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.13),  # below the axes it covers no mark
            ncols=min(families, 3),
            fontsize=10,
            frameon=False,
            labelcolor=MUTED,
            handletextpad=0.2,
        )


def _described(content: RiskUtility, front: Sequence[Mark]) -> str:
    text = f"{len(content.marks):,} choices of method and parameters; for {len(front):,} of them no other is both safer and more "
    text += "useful."
    if content.chosen is not None:
        text += f" Recommended: {content.marks[content.chosen].tooltip}."
    return text


def _percent(rate: float) -> str:
    return f"{float(np.round(rate * 100, 6)):.3g} %"
