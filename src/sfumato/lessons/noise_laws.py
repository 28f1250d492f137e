"""Three Laplace densities and the ratios between them: what ε looks like.

The densities L(0,1), L(1,1) and L(2,1) above; below, the logarithm of the ratio of the first to each of the others, which
never leaves the band between -1 and 1, or -2 and 2.
Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.dp.mechanisms.noise.laws import laplace_density, laplace_ratio
from sfumato.report.figures.drawing import ACCENT, INK, MUTED, PALE, SECOND, board, finished, tidy_axes

_SHIFTS = ((0, INK), (1, ACCENT), (2, SECOND))


def noise_laws(low: float = -5.0, high: float = 7.0) -> str:
    """The figure as SVG."""
    points = np.linspace(low, high, 241)
    with board(7.2, 4.6) as drawn:
        above, below = drawn.figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for shift, colour in _SHIFTS:
            line = above.plot(points, [laplace_density(x, shift) for x in points], color=colour, linewidth=1.8)[0]
            line.set_gid(f"density-{shift}")
            drawn.tooltips[f"density-{shift}"] = f"density of L({shift},1): highest at {shift}, falling by a factor e per unit"
            above.annotate(
                f"L({shift},1)", (shift, 0.5), (0, 4), textcoords="offset points", ha="center", fontsize=11, color=colour
            )
        above.set_ylabel("density")
        above.set_ylim(0, 0.57)
        tidy_axes(above, grid="y")
        for shift, colour in _SHIFTS[1:]:
            below.axhspan(-shift, shift, color=PALE, alpha=0.25, linewidth=0)
            ratios = [math.log(laplace_ratio(x, 0, shift)) for x in points]
            line = below.plot(points, ratios, color=colour, linewidth=1.8)[0]
            line.set_gid(f"ratio-{shift}")
            drawn.tooltips[f"ratio-{shift}"] = f"L(0,1) against L({shift},1): the ratio stays between e^-{shift} and e^{shift}"
            below.annotate(
                f"within e^±{shift}", (high, -shift), (-4, 3), textcoords="offset points", ha="right", fontsize=11, color=colour
            )
        below.axhline(0, color=MUTED, linewidth=0.8)
        below.set_yticks([-2, -1, 0, 1, 2])
        below.set_ylabel("log ratio")
        below.set_xlabel("answer")
        tidy_axes(below, grid="y")
        return finished(
            drawn,
            "noise-laws",
            "Laplace densities one and two apart",
            "Densities L(0,1), L(1,1), L(2,1), and the logarithm of the first divided by each of the others: it stays between"
            " -1 and 1 for a shift of one and between -2 and 2 for a shift of two.",
        )
