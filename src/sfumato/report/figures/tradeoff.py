"""The trade-off map: risk against loss of every transformation that was looked at, the chosen one marked.

Many nodes are drawn as few: beyond a limit, nodes that fall on the same spot are merged into one mark that
says how many they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.report.figures.drawing import ACCENT, INK, MUTED, PALE, SECOND, Board, board, finished
from sfumato.report.figures.labels import Label, place_labels
from sfumato.report.markup import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = Sequence[float] | NDArray[np.float64]

#: More nodes than this are merged into spots, so that a card stays small.
MOST_MARKS = 600
SPOTS = 40
#: The label of the chosen node keeps off so many of the others.
_MOST_AVOIDED = 2_000
#: Places on each step of the frontier that the label keeps off.
_STEPS = 12


@dataclass(frozen=True, eq=False)
class Nodes:
    """Transformations that a search looked at.

    `risk` is the highest risk of a record (1 over the smallest class), `loss` the mean loss, `suppressed` the
    share of records left out, each per node; `chosen` is the position of the one released; `names` describe
    the nodes (levels) in tooltips.
    """

    risk: Numbers = field(repr=False)
    loss: Numbers = field(repr=False)
    suppressed: Numbers = field(repr=False)
    chosen: int | None = None
    names: Sequence[str] | None = field(default=None, repr=False)
    risk_label: str = "highest risk of a record"


def tradeoff(nodes: Nodes) -> str:
    """Loss from left (none) to right, risk from bottom (none) to top, as in every map; on the frontier are those than which no
    other is both safer and more useful."""
    risk, loss, gone = (np.asarray(x, dtype=np.float64) for x in (nodes.risk, nodes.loss, nodes.suppressed))
    require(risk.size == loss.size == gone.size, "tradeoff: risk, loss and suppressed must have the same length")
    front = frontier(risk, loss)
    special = np.zeros(risk.size, dtype=np.bool_)
    special[front] = True
    if nodes.chosen is not None:
        special[nodes.chosen] = True
    with board(7.2, 4.2) as drawn:
        axes = drawn.axes()
        _cloud(drawn, axes, nodes, risk, loss, gone, np.flatnonzero(~special))
        axes.plot(loss[front], risk[front], color=ACCENT, linewidth=1.2, drawstyle="steps-pre", zorder=2)
        marks = axes.scatter(loss[front], risk[front], s=26, color=ACCENT, zorder=3, linewidth=0)
        marks.set_gid("frontier")
        drawn.tooltips["frontier"] = [_describe(nodes, risk, loss, gone, i) for i in front.tolist()]
        if nodes.chosen is not None:
            _mark_chosen(drawn, axes, nodes, risk, loss, gone, nodes.chosen)
        _finish_axes(axes, nodes.risk_label, risk)
        if nodes.chosen is not None:
            text = f"chosen\nrisk {_percent(risk[nodes.chosen])}, loss {_percent(loss[nodes.chosen])}"
            label = Label(text, loss[nodes.chosen], risk[nodes.chosen], SECOND, 12, bold=True, needed=True)
            nodes_at = list(zip(loss.tolist(), risk.tolist(), strict=True))[:_MOST_AVOIDED]
            place_labels(axes, [label], [(label.x, label.y)], [*nodes_at, *_along(loss[front], risk[front])])
        merged = " Marks of several nodes are merged." if np.count_nonzero(~special) > MOST_MARKS else ""
        chosen = "" if nodes.chosen is None else " " + _describe(nodes, risk, loss, gone, nodes.chosen) + " was chosen."
        return finished(
            drawn,
            "tradeoff",
            "Risk against loss",
            f"{risk.size:,} transformations; for {front.size:,} of them no other is both safer and more useful.{chosen}{merged}",
        )


def _along(loss: NDArray[np.float64], risk: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Places on the line that joins the frontier, which no name should cover."""
    places: list[tuple[float, float]] = []
    for (left, low), (right, high) in itertools.pairwise(zip(loss.tolist(), risk.tolist(), strict=True)):
        up = np.geomspace(low, high, _STEPS) if low > 0 else np.linspace(low, high, _STEPS)
        places += [(left, each) for each in up.tolist()]
        places += [(each, high) for each in np.linspace(left, right, _STEPS).tolist()]
    return places


def frontier(risk: NDArray[np.float64], loss: NDArray[np.float64]) -> NDArray[np.int64]:
    """The nodes that no other node betters in both, by growing risk, the first of equal ones; NaN is on no front."""
    order = np.lexsort((loss, risk))
    order = order[np.isfinite(risk[order]) & np.isfinite(loss[order])]
    best = np.minimum.accumulate(loss[order]) if order.size else loss[order]
    better = np.ones(order.size, dtype=np.bool_)
    better[1:] = loss[order][1:] < best[:-1]
    return order[better].astype(np.int64)


def _cloud(
    drawn: Board,
    axes: Axes,
    nodes: Nodes,
    risk: NDArray[np.float64],
    loss: NDArray[np.float64],
    gone: NDArray[np.float64],
    rest: NDArray[np.int64],
) -> None:
    if not rest.size:
        return
    if rest.size <= MOST_MARKS:
        texts = [_describe(nodes, risk, loss, gone, i) for i in rest.tolist()]
    else:
        across = _steps(np.log(np.maximum(risk[rest], 1e-9)) if logarithmic(risk) else risk[rest])
        inverse, counts = np.unique(across * SPOTS + _steps(loss[rest]), return_inverse=True, return_counts=True)[1:]
        inverse = inverse.reshape(-1)
        x = np.bincount(inverse, weights=risk[rest]) / counts
        y = np.bincount(inverse, weights=loss[rest]) / counts
        for low, high, area in ((1, 2, 10), (2, 10, 22), (10, 100, 42), (100, np.inf, 75)):
            some = np.flatnonzero((counts >= low) & (counts < high))
            if some.size:
                texts = [f"{_nodes(int(counts[i]))} near risk {_percent(x[i])}, loss {_percent(y[i])}" for i in some.tolist()]
                _scatter(drawn, axes, f"spots-{low}", x[some], y[some], area, texts)
        return
    _scatter(drawn, axes, "nodes", risk[rest], loss[rest], 16, texts)


def _scatter(
    drawn: Board,
    axes: Axes,
    name: str,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    area: float,
    texts: Sequence[str],
) -> None:
    marks = axes.scatter(y, x, s=area, color=PALE, zorder=1, linewidth=0)
    marks.set_gid(name)
    drawn.tooltips[name] = texts


def _nodes(count: int) -> str:
    return f"{count:,} node{'s' * (count != 1)}"


def _mark_chosen(
    drawn: Board,
    axes: Axes,
    nodes: Nodes,
    risk: NDArray[np.float64],
    loss: NDArray[np.float64],
    gone: NDArray[np.float64],
    chosen: int,
) -> None:
    mark = axes.scatter([loss[chosen]], [risk[chosen]], s=120, facecolor="none", edgecolor=SECOND, linewidth=2.2, zorder=4)
    mark.set_gid("chosen")
    drawn.tooltips["chosen"] = [_describe(nodes, risk, loss, gone, chosen)]


def _finish_axes(axes: Axes, risk_label: str, risk: NDArray[np.float64]) -> None:
    from matplotlib.ticker import FuncFormatter

    percent = FuncFormatter(lambda value, _: f"{value * 100:g} %")
    if logarithmic(risk):
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
        axes.tick_params(axis="y", which="minor", length=0)
        axes.margins(y=0.04)
    else:
        axes.set_ylim(0, max(float(risk.max()) if risk.size else 1.0, 0.01) * 1.08)
    axes.xaxis.set_major_formatter(percent)
    axes.yaxis.set_major_formatter(percent)
    axes.margins(x=0.08)
    axes.set_xlim(left=-0.02)
    axes.set_xlabel("loss")
    axes.set_ylabel(risk_label)
    axes.set_title("safer below, more useful to the left", loc="right", fontsize=11, color=MUTED)
    axes.tick_params(labelcolor=MUTED)
    axes.yaxis.label.set_color(INK)
    axes.xaxis.label.set_color(INK)


def logarithmic(risk: NDArray[np.float64]) -> bool:
    """Risks that differ by orders of magnitude are drawn on a logarithmic axis."""
    return bool(risk.size and risk.min() > 0 and risk.max() / risk.min() >= 30)


def _steps(values: NDArray[np.float64]) -> NDArray[np.int64]:
    span = max(float(np.ptp(values)), 1e-12)
    steps: NDArray[np.int64] = np.minimum((values - values.min()) / span * SPOTS, SPOTS - 1).astype(np.int64)
    return steps


def _describe(nodes: Nodes, risk: NDArray[np.float64], loss: NDArray[np.float64], gone: NDArray[np.float64], i: int) -> str:
    name = f"{visible(nodes.names[i])}: " if nodes.names is not None else ""
    shares = f"risk {_percent(risk[i])}, loss {_percent(loss[i])}"
    return f"{name}{shares}, {_percent(gone[i])} of the records suppressed"


def _percent(rate: float) -> str:
    return f"{rate * 100:.3g} %"
