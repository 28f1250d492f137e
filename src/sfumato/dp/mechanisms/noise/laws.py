"""Laws of noisy numbers: densities, distribution functions, point masses, and what shifted laws leak in ε and δ.

These are the continuous laws that the integer noise on a fine grid approaches: for exact statements about textbook
mechanisms, for figures and for checks. No answer is drawn from them. (Those of the Gaussian are in `dp.accounting`.)
Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006; Holohan,
Antonatos, Braghin, Mac Aonghusa, "The bounded Laplace mechanism in differential privacy", Journal of Privacy and
Confidentiality 10(1), 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_NOTHING: Mapping[float, float] = MappingProxyType({})


@dataclass(frozen=True)
class Law:
    """The law of a number: `atoms` are points with a probability of their own, `density` describes the rest."""

    density: Callable[[float], float]
    cumulative: Callable[[float], float]
    atoms: Mapping[float, float] = field(default_factory=lambda: _NOTHING)

    def between(self, low: float, high: float) -> float:
        """The probability of [low, high], both ends included."""
        return self.cumulative(high) - self.cumulative(low) + self.atoms.get(low, 0.0)


def laplace_density(x: float, centre: float = 0.0, scale: float = 1.0) -> float:
    """exp(-|x - centre|/scale) / (2 scale)."""
    return math.exp(-abs(x - centre) / scale) / (2 * scale)


def laplace_cumulative(x: float, centre: float = 0.0, scale: float = 1.0) -> float:
    """The probability of at most x."""
    tail = math.exp(-abs(x - centre) / scale) / 2
    return tail if x < centre else 1 - tail


def laplace_law(centre: float, scale: float) -> Law:
    """Laplace noise around a value."""
    return Law(lambda x: laplace_density(x, centre, scale), lambda x: laplace_cumulative(x, centre, scale))


def clamped_laplace_law(centre: float, scale: float, lower: float, upper: float) -> Law:
    """Laplace noise, then clamped: what lies outside is gathered at the borders."""

    def density(x: float) -> float:
        return laplace_density(x, centre, scale) if lower < x < upper else 0.0

    def cumulative(x: float) -> float:
        return 0.0 if x < lower else 1.0 if x >= upper else laplace_cumulative(x, centre, scale)

    # The upper mass from the far tail itself, not as one minus the rest: it may be tiny.
    above = laplace_cumulative(-upper, -centre, scale)
    return Law(density, cumulative, MappingProxyType({lower: laplace_cumulative(lower, centre, scale), upper: above}))


def bounded_laplace_law(centre: float, scale: float, lower: float, upper: float) -> Law:
    """Laplace noise under the condition that it lies inside: the density is divided by what lies inside."""
    inside = bounded_laplace_normaliser(centre, scale, lower, upper)
    below = laplace_cumulative(lower, centre, scale)

    def density(x: float) -> float:
        return laplace_density(x, centre, scale) / inside if lower <= x <= upper else 0.0

    def cumulative(x: float) -> float:
        return 0.0 if x < lower else 1.0 if x >= upper else (laplace_cumulative(x, centre, scale) - below) / inside

    return Law(density, cumulative)


def bounded_laplace_normaliser(centre: float, scale: float, lower: float, upper: float) -> float:
    """C: the probability that Laplace noise around the centre stays inside."""
    return 1 - (math.exp(-(centre - lower) / scale) + math.exp(-(upper - centre) / scale)) / 2


def bounded_laplace_epsilon(scale: float, sensitivity: float, width: float) -> float:
    """What the bounded Laplace mechanism really leaks: S/b plus the logarithm of the largest ratio of normalisers."""
    shift = min(sensitivity, width)
    ratio = bounded_laplace_normaliser(shift, scale, 0, width) / bounded_laplace_normaliser(0, scale, 0, width)
    return shift / scale + math.log(ratio)


def laplace_ratio(x: float, first: float, second: float, scale: float = 1.0) -> float:
    """The ratio of two shifted Laplace densities at x: between exp(-d/scale) and exp(d/scale) for centres d apart."""
    return math.exp((abs(x - second) - abs(x - first)) / scale)


def laplace_delta(epsilon: float, scale: float, sensitivity: float) -> float:
    """The exact δ of the Laplace mechanism at ε: 1 - exp((ε - S/b)/2), and 0 from S/b on."""
    return max(0.0, -math.expm1((epsilon - sensitivity / scale) / 2))


def laplace_scale_with_delta(epsilon: float, delta: float, sensitivity: float, form: str = "tight") -> float:
    """The scale for (ε, δ): printed, S/(ε - ln(1-δ)), or tight, S/(ε - 2 ln(1-δ))."""
    return sensitivity / (epsilon - (2 if form == "tight" else 1) * math.log1p(-delta))


def uniform_law(lower: float, upper: float) -> Law:
    """Uniform on an interval: as noise it is not ε-private for any ε, since its ends are seen from one side alone."""
    width = upper - lower
    return Law(
        lambda x: 1 / width if lower <= x <= upper else 0.0,
        lambda x: min(1.0, max(0.0, (x - lower) / width)),
    )
