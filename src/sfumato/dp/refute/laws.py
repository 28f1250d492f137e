"""Laws of published averages on one database: what the textbook mechanisms put out, with their point masses.

They are written from the formulas alone and share no code with the mechanisms, so that one can be checked with the other.
Holohan, Antonatos, Braghin, Mac Aonghusa, "The bounded Laplace mechanism in differential privacy", 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.core.declared import require
from sfumato.dp.refute.densities import Density


def bounded_laplace_law(centre: float, scale: float, low: float, high: float) -> Density:
    """Laplace noise drawn again until the value lies between the ends; also called redraw."""
    require(low <= centre <= high, "the centre lies between the ends")
    return Density.laplace(centre, scale).restricted(low, high)


def truncated_mean_law(values: Sequence[float], epsilon: float, low: float, high: float, sensitivity: float) -> Density:
    """The mean clamped to [low, high], Laplace noise of scale sensitivity/ε, clamped again."""
    require(len(values) > 0, "the mean of no values is not defined")
    centre = min(max(math.fsum(values) / len(values), low), high)
    return Density.laplace(centre, sensitivity / epsilon).clamped(low, high)


def clamping_down_mean_law(
    values: Sequence[float], epsilon: float, low: float, high: float, *, clamp_records: bool = True
) -> Density:
    """The clamping-down mean: (sum + Laplace noise of scale (high-low)/ε) / n, clamped to [low, high].

    Without records a fixed law stands in: the ends with probability exp(-ε/2)/2 each, otherwise uniform. Without
    `clamp_records` it is the form sometimes printed, which is private for no ε.
    """
    if not values:
        ends = math.exp(-epsilon / 2)
        return Density.mixture(
            [(ends / 2, Density.constant(low)), (ends / 2, Density.constant(high)), (1 - ends, Density.uniform(low, high))]
        )
    used = [min(max(value, low), high) for value in values] if clamp_records else list(values)
    return Density.laplace(math.fsum(used) / len(used), (high - low) / epsilon / len(used)).clamped(low, high)
