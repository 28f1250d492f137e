"""Histograms of what a mechanism puts out on two neighbouring databases, with the exact law drawn over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.report.figures.drawing import ACCENT, INK, PALE, SECOND, Board, board, finished, tidy_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.dp.refute.experiment import OutputHistogram

_NAMES = ("on the database", "on its neighbour")


def output_histogram(found: OutputHistogram, *, names: tuple[str, str] = _NAMES, title: str = "What is put out") -> str:
    """Two panels over the same axis: shares of runs per bin, values with a probability of their own, the exact law."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    with board(7.2, 5.0) as drawn:
        panels = drawn.figure.subplots(2, 1, sharex=True, sharey=True)
        for which, panel in enumerate(panels):
            _panel(drawn, panel, found, which)
            panel.set_title(names[which], loc="left", fontsize=12, color=INK)
        panels[1].set_xlabel("output")
        keys: list[Patch | Line2D] = [Patch(color=PALE, label=f"share of {found.runs:,} runs")]
        if found.atoms:
            keys.append(Patch(color=SECOND, label="share at one value"))
        if found.laws is not None:
            keys.append(Line2D([], [], color=ACCENT, linewidth=1.6, marker="o", markersize=4, label="exact law"))
        drawn.figure.legend(handles=keys, loc="outside lower center", ncols=3, frameon=False, labelcolor=INK)
        told = ", ".join(
            f"{found.atom_shares(0)[i]:.3f} and {found.atom_shares(1)[i]:.3f} at {point:g}" for i, point in enumerate(found.atoms)
        )
        return finished(
            drawn, "outputs", title, f"{found.runs:,} runs on each of two neighbours" + (f"; shares {told}." if told else ".")
        )


def _panel(drawn: Board, panel: Axes, found: OutputHistogram, which: int) -> None:
    width = float(found.edges[1] - found.edges[0])
    middles = (found.edges[1:] + found.edges[:-1]) / 2
    for i, bar in enumerate(panel.bar(middles, found.shares(which), width=0.92 * width, color=PALE)):
        gid = f"bin-{which}-{i}"
        bar.set_gid(gid)
        low, high = found.edges[i], found.edges[i + 1]
        drawn.tooltips[gid] = f"{found.shares(which)[i] * 100:.2f} % between {low:.6g} and {high:.6g}"
    for i, bar in enumerate(panel.bar(found.atoms, found.atom_shares(which), width=0.6 * width, color=SECOND)):
        gid = f"atom-{which}-{i}"
        bar.set_gid(gid)
        drawn.tooltips[gid] = f"{found.atom_shares(which)[i] * 100:.2f} % exactly {found.atoms[i]:g}"
    if found.laws is not None:
        bins, atoms = found.expected(which)
        panel.step(
            np.append(found.edges[:-1], found.edges[-1]), np.append(bins, bins[-1]), where="post", color=ACCENT, linewidth=1.6
        )
        for i, (point, mass) in enumerate(zip(found.atoms, atoms, strict=True)):
            (mark,) = panel.plot([point], [mass], "o", color=ACCENT, markersize=5, clip_on=False)
            mark.set_gid(f"law-{which}-{i}")
            drawn.tooltips[f"law-{which}-{i}"] = f"exact probability of {point:g}: {mass:.6f}"
    if found.atoms:  # single values hold far more than any bin: on a straight scale the bins would vanish
        panel.set_yscale("function", functions=(lambda y: np.sqrt(np.maximum(y, 0)), np.square))
        panel.set_yticks([0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0])
        panel.set_ylim(0, 1.15 * max(float(found.atom_shares(i).max()) for i in (0, 1)))
        panel.yaxis.set_major_formatter("{x:g}")
    panel.set_ylabel("share (root scale)" if found.atoms else "share")
    tidy_axes(panel, grid="y")
