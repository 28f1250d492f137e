"""Histograms of what a mechanism puts out on two neighbouring databases, with the exact law drawn over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.report.figures.drawing import ACCENT, INK, PALE, SECOND, Board, board, finished, tidy_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.dp.refute.experiment import OutputHistogram

_NAMES = ("on the database", "on its neighbour")


def output_histogram(histogram: OutputHistogram, *, names: tuple[str, str] = _NAMES, title: str = "What is put out") -> str:
    """Two panels over the same axis: shares of runs per bin, values with a probability of their own, the exact law."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    with board(7.2, 5.0) as drawn:
        panels = drawn.figure.subplots(2, 1, sharex=True, sharey=True)
        for which, panel in enumerate(panels):
            _panel(drawn, panel, histogram, which)
            panel.set_title(names[which], loc="left", fontsize=12, color=INK)
        panels[1].set_xlabel("output")
        keys: list[Patch | Line2D] = [Patch(color=PALE, label=f"share of {histogram.runs:,} runs")]
        if histogram.atoms:
            keys.append(Patch(color=SECOND, label="share at one value"))
        if histogram.laws is not None:
            keys.append(Line2D([], [], color=ACCENT, linewidth=1.6, marker="o", markersize=4, label="exact law"))
        drawn.figure.legend(handles=keys, loc="outside upper left", ncols=3, frameon=False, labelcolor=INK)
        shares = ", ".join(
            f"{histogram.atom_shares(0)[i]:.3f} and {histogram.atom_shares(1)[i]:.3f} at {point:g}"
            for i, point in enumerate(histogram.atoms)
        )
        return finished(
            drawn,
            "outputs",
            title,
            f"{histogram.runs:,} runs on each of two neighbours" + (f"; shares {shares}." if shares else "."),
        )


def _panel(drawn: Board, panel: Axes, histogram: OutputHistogram, which: int) -> None:
    width = float(histogram.edges[1] - histogram.edges[0])
    middles = (histogram.edges[1:] + histogram.edges[:-1]) / 2
    for i, bar in enumerate(panel.bar(middles, histogram.shares(which), width=0.92 * width, color=PALE)):
        gid = f"bin-{which}-{i}"
        bar.set_gid(gid)
        low, high = histogram.edges[i], histogram.edges[i + 1]
        drawn.tooltips[gid] = f"{histogram.shares(which)[i] * 100:.2f} % between {low:.6g} and {high:.6g}"
    for i, bar in enumerate(panel.bar(histogram.atoms, histogram.atom_shares(which), width=0.6 * width, color=SECOND)):
        gid = f"atom-{which}-{i}"
        bar.set_gid(gid)
        drawn.tooltips[gid] = f"{histogram.atom_shares(which)[i] * 100:.2f} % exactly {histogram.atoms[i]:g}"
    if histogram.laws is not None:
        bins, atoms = histogram.expected(which)
        panel.step(
            np.append(histogram.edges[:-1], histogram.edges[-1]),
            np.append(bins, bins[-1]),
            where="post",
            color=ACCENT,
            linewidth=1.6,
        )
        for i, (point, mass) in enumerate(zip(histogram.atoms, atoms, strict=True)):
            (mark,) = panel.plot([point], [mass], "o", color=ACCENT, markersize=5, clip_on=False)
            mark.set_gid(f"law-{which}-{i}")
            drawn.tooltips[f"law-{which}-{i}"] = f"exact probability of {point:g}: {mass:.6f}"
    if histogram.atoms:  # single values hold far more than any bin: on a straight scale the bins would vanish
        panel.set_yscale("function", functions=(lambda y: np.sqrt(np.maximum(y, 0)), np.square))
        panel.set_yticks([0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0])
        panel.set_ylim(0, 1.15 * max(float(histogram.atom_shares(i).max()) for i in (0, 1)))
        panel.yaxis.set_major_formatter("{x:g}")
    panel.set_ylabel("share (root scale)" if histogram.atoms else "share")
    tidy_axes(panel, grid="y")
