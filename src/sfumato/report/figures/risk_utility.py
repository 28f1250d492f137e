"""The risk-utility map: the risk above chance that a method leaves against what it loses, one mark per method and parameters.

Every family of methods has its own shape and a line through its parameters; the marks that no other betters are joined by the
front. Duncan, Keller-McNulty, Stokes, "Disclosure risk vs. data utility: the R-U confidentiality map", NISS 2001.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.declared import require
from sfumato.report.figures.drawing import ACCENT, GRID, INK, MUTED, PALE, SECOND, Board, board, finished
from sfumato.report.figures.labels import Label, place_labels
from sfumato.report.markup import shorten, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "d", "*")
_LONGEST_LABEL = 42
_COLUMNS = re.compile(r"(?:, )?columns=\[[^\]]*\]")
#: Families beside each other in the legend, and the height of a row of it in inches.
_ABREAST, _ROW = 3, 0.24
#: Places on each part of the front that names keep off.
_STEPS = 9


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
    rows = -(-len(families) // _ABREAST) if len(families) > 1 else 0
    with board(7.6, 5.0 + _ROW * rows) as drawn:
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
        _axes(drawn, axes, content, len(families))
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


def _chosen(drawn: Board, axes: Axes, mark: Mark) -> None:
    ring = axes.scatter([mark.loss], [mark.risk], s=190, facecolor="none", edgecolor=SECOND, linewidth=2.2, zorder=4)
    ring.set_gid("recommended")
    drawn.tooltips["recommended"] = [f"recommended: {mark.tooltip}"]


def _labels(axes: Axes, front: Sequence[Mark], content: RiskUtility) -> None:
    """Names of the front's marks, the recommended one first and in bold; a name without room is left to its tooltip."""
    chosen = None if content.chosen is None else content.marks[content.chosen]
    risk, loss = content.original
    labels = [Label("original", loss, risk, MUTED, needed=True)]
    names = _short_names([mark.label for mark in content.marks])
    for mark in sorted(front, key=lambda mark: mark is not chosen):
        text = shorten(visible(names[mark.label]), _LONGEST_LABEL)
        picked = mark is chosen
        size, colour = (11, SECOND) if picked else (9.5, INK)
        labels.append(Label(text, mark.loss, mark.risk, colour, size, picked, needed=picked, above="in the ring: "))
    labels.sort(key=lambda label: not label.bold)
    place_labels(axes, labels, [*((mark.loss, mark.risk) for mark in content.marks), (loss, risk)], _along(front))


def _short_names(labels: Sequence[str]) -> dict[str, str]:
    """Names without the columns that a mask changes, where they differ without them; the tooltips have all of it."""
    short = {label: _COLUMNS.sub("", label).replace("()", "") for label in labels}
    times = Counter(short.values())
    return {label: text if times[text] == 1 else label for label, text in short.items()}


def _along(front: Sequence[Mark]) -> list[tuple[float, float]]:
    """Places on the line that joins the front, which no name should cover."""
    steps = np.linspace(0.1, 0.9, _STEPS).tolist()
    places = []
    for one, other in itertools.pairwise(front):
        places += [(one.loss + step * (other.loss - one.loss), one.risk) for step in steps]
        places += [(other.loss, one.risk + step * (other.risk - one.risk)) for step in steps]
    return places


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


def _axes(drawn: Board, axes: Axes, content: RiskUtility, families: int) -> None:
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
    if families > 1:  # above the marks, where a reader looks first
        drawn.figure.legend(
            *axes.get_legend_handles_labels(),
            loc="outside upper left",
            ncols=min(families, _ABREAST),
            fontsize=10,
            frameon=False,
            labelcolor=INK,
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
