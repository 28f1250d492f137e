"""The Gaussian mechanism exactly: δ for an ε and a deviation, and the smallest deviation for (ε, δ).

δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) with μ = sensitivity/deviation; it falls in ε and in the deviation, so both inverse
problems are bisections on enclosed values. The discrete Gaussian in one dimension has the same form with its own tail,
summed term by term with a bound on the rest. Balle, Wang, "Improving the Gaussian mechanism for differential privacy",
ICML 2018 (Theorem 8); Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020 (Theorem 7).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from sfumato.core.declared import require
from sfumato.core.exact import Number, exact
from sfumato.dp.accounting.enclosure import DIGITS, PI, Enclosure, shortened
from sfumato.dp.accounting.normal import density, upper_tail
from sfumato.dp.accounting.zcdp import between_zero_and_one, delta_for

#: Above this variance the sums of the discrete Gaussian are bounded by integrals instead of added up.
_SUMMED_VARIANCE = 250_000


def gaussian_delta(epsilon: Number, sigma: Number, sensitivity: Number = 1) -> Fraction:
    """The exact δ, rounded up, of normal noise with deviation `sigma` on a value of that L2 sensitivity.

    >>> float(gaussian_delta("0.5", "9.689611", 1))
    1.60785192351e-08
    """
    epsilon, sigma, sensitivity = _checked(epsilon, sigma, sensitivity)
    if sensitivity == 0:
        return Fraction(0)
    return min(max(_profile(epsilon, Enclosure.of(sensitivity / sigma)).up(), Fraction(0)), Fraction(1))


def gaussian_sigma(epsilon: Number, delta: Number, sensitivity: Number = 1) -> Fraction:
    """The smallest deviation, rounded up, with which normal noise is certainly (ε, δ)-differentially private.

    >>> float(gaussian_sigma("0.5", "1e-5", 1))
    7.03182667559
    """
    epsilon, sensitivity = exact(epsilon, "epsilon"), exact(sensitivity, "sensitivity")
    delta = between_zero_and_one(delta, "delta")
    require(epsilon >= 0 and sensitivity >= 0, "epsilon and sensitivity must not be negative")
    return shortened(_smallest_ratio(epsilon, delta) * sensitivity, upward=True)


def gaussian_epsilon(sigma: Number, delta: Number, sensitivity: Number = 1) -> Fraction:
    """The smallest ε, rounded up, for which normal noise of this deviation is certainly (ε, δ)-differentially private."""
    _, sigma, sensitivity = _checked(0, sigma, sensitivity)
    delta = between_zero_and_one(delta, "delta")
    if sensitivity == 0:
        return Fraction(0)
    mu = Enclosure.of(sensitivity / sigma)
    if _profile(Fraction(0), mu).certainly_at_most(delta):
        return Fraction(0)
    return _smallest(lambda epsilon: _profile(epsilon, mu).certainly_at_most(delta))


def classic_sigma(epsilon: Number, delta: Number, sensitivity: Number = 1) -> Fraction:
    """The textbook deviation √(2 ln(1.25/δ))·sensitivity/ε, rounded up: valid for ε up to 1 only, and larger than needed."""
    epsilon, sensitivity = exact(epsilon, "epsilon"), exact(sensitivity, "sensitivity")
    delta = between_zero_and_one(delta, "delta")
    require(0 < epsilon <= 1, "the textbook formula holds for epsilon above 0 and up to 1; use gaussian_sigma")
    require(sensitivity >= 0, "sensitivity must not be negative")
    return ((Enclosure.of(Fraction(5, 4) / delta).ln() * 2).sqrt() * (sensitivity / epsilon)).up()


def discrete_gaussian_delta(epsilon: Number, variance: Number, sensitivity: int = 1) -> Fraction:
    """The δ, rounded up, of discrete Gaussian noise with variance parameter σ² on a whole number.

    Exact to the last digits for variances up to 250,000; beyond, the smaller of a bound by integrals and the bound that
    follows from zCDP.
    """
    epsilon, variance, _ = _checked(epsilon, variance, sensitivity, name="variance")
    require(isinstance(sensitivity, int), "the sensitivity of a whole-number query is a whole number")
    if sensitivity == 0:
        return Fraction(0)
    centre, half = epsilon * variance / sensitivity, Fraction(sensitivity, 2)
    # The tails are strict: P[Y > c] starts at the next whole number above c.
    near, far = math.floor(centre - half) + 1, math.floor(centre + half) + 1
    growth = Enclosure.of(epsilon).exp()
    if variance <= _SUMMED_VARIANCE:
        delta = _discrete_tail(near, variance) - growth * _discrete_tail(far, variance)
        return min(max(delta.up(), Fraction(0)), Fraction(1))
    deviation = Enclosure.of(variance).sqrt()
    # Beyond one deviation the curve is convex: midpoints lie below the integral, trapezoids above it. Nearer the middle
    # it still falls, and steps enclose it.
    convex = Fraction(2 * near - 1, 2) ** 2 >= variance and near > 0
    above = upper_tail((near - (Fraction(1, 2) if convex else 1)) / deviation)
    below = upper_tail(far / deviation)
    if convex:
        below = below + density(far / deviation) / (deviation * 2)
    delta = above - growth * below * _normaliser_ratio(variance)
    return min(max(delta.up(), Fraction(0)), delta_for(Fraction(sensitivity**2) / (2 * variance), epsilon), Fraction(1))


def _checked(epsilon: Number, sigma: Number, sensitivity: Number, name: str = "sigma") -> tuple[Fraction, Fraction, Fraction]:
    amounts = exact(epsilon, "epsilon"), exact(sigma, name), exact(sensitivity, "sensitivity")
    require(amounts[0] >= 0, "epsilon must not be negative")
    require(amounts[1] > 0, f"{name} must be above 0")
    require(amounts[2] >= 0, "sensitivity must not be negative")
    return amounts


def _profile(epsilon: Fraction, mu: Enclosure) -> Enclosure:
    shift, half = epsilon / mu, mu / 2
    if epsilon == 0:
        return 1 - upper_tail(half) * 2
    return upper_tail(shift - half) - Enclosure.of(epsilon).exp() * upper_tail(shift + half)


@lru_cache(maxsize=4096)
def _smallest_ratio(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The smallest deviation for a sensitivity of one."""
    return _smallest(lambda sigma: _profile(epsilon, 1 / Enclosure.of(sigma)).certainly_at_most(delta))


def _smallest(enough: Callable[[Fraction], bool]) -> Fraction:
    """The smallest positive number with few digits that is certainly enough, where more is always enough too."""
    high = Fraction(1)
    while not enough(high):
        high *= 2
        require(high < 2**100, "these parameters are too extreme to compute with; choose less extreme ones")
    low = high / 2
    while low > Fraction(1, 2**100) and enough(low):
        high, low = low, low / 2
    while high - low > high / 10**DIGITS / 4:
        middle = (low + high) / 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return shortened(high, upward=True)


@lru_cache(maxsize=256)
def _discrete_tail(start: int, variance: Fraction) -> Enclosure:
    """P[Y ≥ start] for the discrete Gaussian, by summing up to where the rest is bounded by a geometric series."""
    if start <= 0:
        return 1 - _discrete_tail(1 - start, variance)
    total = _summed(1, variance) * 2 + 1
    return _summed(start, variance) / total


def _summed(start: int, variance: Fraction) -> Enclosure:
    """The sum of exp(−k²/(2σ²)) over k from `start` ≥ 1: terms by two running products, the rest by a geometric series."""
    step = (Enclosure.of(Fraction(-1) / variance)).exp()
    ratio = Enclosure.of(Fraction(-(2 * start + 1)) / (2 * variance)).exp()
    term = first = Enclosure.of(Fraction(-(start**2)) / (2 * variance)).exp()
    total = term
    # Ratios of neighbouring terms fall, so the rest after a term is at most term · ratio/(1 − ratio).
    while term.high > first.high.scaleb(-50):
        term = term * ratio
        ratio = ratio * step
        total = total + term
    rest = term * ratio / (1 - ratio)
    return Enclosure(total.low, (total + rest).high)


def _normaliser_ratio(variance: Fraction) -> Enclosure:
    """√(2π)σ divided by the sum of exp(−k²/(2σ²)) over all whole numbers, which exceeds it by Poisson's formula."""
    image = (PI * PI * (-2 * variance)).exp()
    return 1 / (image * 4 + 1)
