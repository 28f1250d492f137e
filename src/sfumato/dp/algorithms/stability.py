"""Keys found in the data: release a noisy count only above a threshold that a single unit cannot reach by luck.

A key that no other unit has would give its owner away; with discrete Laplace noise its count of 1 passes the threshold
with a probability that is computed exactly, and with discrete Gaussian noise one that is bounded; at most δ for all keys of one
unit together.
Korolova, Kenthapadi, Mishra, Ntoulas, "Releasing search queries and clicks privately", WWW 2009;
Bun, Nissim, Stemmer, "Simultaneous private learning of multiple concepts", ITCS 2016; the Gaussian tail: Canonne, Kamath,
Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020 (Proposition 25).
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

from sfumato.core.declared import require


def laplace_tail(scale: Fraction, value: int) -> float:
    """An upper bound, tight to rounding, of P(X ≥ value) for X with probability proportional to e^(-|x|/scale)."""
    step = math.exp(-1 / scale)
    if value >= 1:
        return math.nextafter(math.exp(-value / scale) / (1 + step) * (1 + 1e-12), math.inf)
    return math.nextafter(1 - math.exp(-(1 - value) / scale) / (1 + step) * (1 - 1e-12), math.inf)


def threshold(scale: Fraction, delta: Fraction, keys: int, count: int = 1) -> int:
    """The least T so that a unit with `keys` keys of its own, each counting `count`, shows any of them with noisy
    counts of at least T with probability at most δ (by the union bound).

    >>> threshold(Fraction(1), Fraction(1, 10**6), keys=1)
    15
    """
    require(scale > 0, "the scale must be above 0")
    allowed = _allowed(delta, keys, count)
    # e^(-t/scale) / (1 + e^(-1/scale)) = allowed, solved for t; the exact condition settles the last step.
    guess = count + math.floor(float(scale) * -(math.log(allowed) + math.log1p(math.exp(-1 / scale)))) - 2
    least = max(guess, count + 1)
    while laplace_tail(scale, least - count) > allowed:
        least += 1
    return least


def gaussian_tail(variance: Fraction, value: int) -> float:
    """An upper bound of P(X ≥ value) for X with probability proportional to e^(-x²/(2 variance)), for values from 1 up: the
    tail of the continuous law from value - 1 on."""
    reach = (value - 1) / math.sqrt(2 * float(variance))
    return math.nextafter(math.erfc(reach * (1 - 1e-12)) / 2 * (1 + 1e-12), math.inf)


def gaussian_threshold(variance: Fraction, delta: Fraction, keys: int, count: int = 1) -> int:
    """The same threshold for discrete Gaussian noise.

    >>> gaussian_threshold(Fraction(1), Fraction(1, 10**6), keys=1)
    7
    """
    require(variance > 0, "the variance must be above 0")
    allowed = _allowed(delta, keys, count)
    reach = -NormalDist().inv_cdf(allowed) * math.sqrt(float(variance))
    least = max(count + 1 + math.floor(reach) - 2, count + 1)
    while gaussian_tail(variance, least - count) > allowed:
        least += 1
    return least


def _allowed(delta: Fraction, keys: int, count: int) -> float:
    """The probability with which one key may be shown by luck."""
    require(0 < delta < 1, "delta lies between 0 and 1")
    require(keys >= 1 and count >= 1, "keys and count are at least 1")
    return math.nextafter(float(delta / keys), 0.0)
