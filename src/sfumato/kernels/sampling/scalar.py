"""Exact integer noise, one draw at a time, for rational parameters of any size.

Every decision compares a uniform integer with an integer; there is no number that is not whole.
Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020 (Algorithms 1 to 3).
"""

from __future__ import annotations

import math
from fractions import Fraction

from sfumato.core.declared import require
from sfumato.core.errors import ParameterError
from sfumato.core.randomness import Randomness, below


def rational(value: object, name: str) -> Fraction:
    """The parameter as a fraction; a float is refused, because its law would be that of another number."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    raise ParameterError(f"{name} must be an exact fraction, such as Fraction(1, 10); see sfumato.core.exact.exact")


def bernoulli(probability: Fraction, source: Randomness) -> bool:
    """True with exactly this probability."""
    probability = rational(probability, "a probability")
    require(0 <= probability <= 1, "a probability lies between 0 and 1")
    return below(source, probability.denominator) < probability.numerator


def bernoulli_exp(exponent: Fraction, source: Randomness) -> bool:
    """True with probability e^(-exponent), for any exponent of at least 0."""
    exponent = rational(exponent, "the exponent")
    require(exponent >= 0, "the exponent must not be negative")
    return _accept(exponent.numerator, exponent.denominator, source)


def geometric_one(scale: Fraction, source: Randomness) -> int:
    """k at least 0 with probability (1 - e^(-1/scale)) e^(-k/scale)."""
    scale = rational(scale, "the scale")
    require(scale > 0, "the scale must be above 0")
    numerator, denominator = scale.numerator, scale.denominator
    offset = below(source, numerator)
    while not _accept(offset, numerator, source):
        offset = below(source, numerator)
    whole = 0
    while _accept(1, 1, source):
        whole += 1
    return (offset + numerator * whole) // denominator


def discrete_laplace_one(scale: Fraction, source: Randomness) -> int:
    """x with probability proportional to e^(-|x|/scale)."""
    while True:
        negative = below(source, 2) == 1
        magnitude = geometric_one(scale, source)
        if magnitude or not negative:  # zero has one sign, or it would be drawn twice as often
            return -magnitude if negative else magnitude


def discrete_gaussian_one(variance: Fraction, source: Randomness) -> int:
    """x with probability proportional to e^(-x²/(2·variance))."""
    variance = rational(variance, "the variance")
    require(variance > 0, "the variance must be above 0")
    numerator, denominator = variance.numerator, variance.denominator
    width = math.isqrt(numerator // denominator) + 1
    scale = Fraction(width)
    while True:
        proposed = discrete_laplace_one(scale, source)
        # (|x| - variance/width)² / (2·variance) in whole numbers
        distance = abs(proposed) * width * denominator - numerator
        if _accept(distance * distance, 2 * numerator * denominator * width * width, source):
            return proposed


def _accept(numerator: int, denominator: int, source: Randomness) -> bool:
    """True with probability e^(-numerator/denominator)."""
    while numerator > denominator:
        if not _accept_at_most_one(1, 1, source):
            return False
        numerator -= denominator
    return _accept_at_most_one(numerator, denominator, source)


def _accept_at_most_one(numerator: int, denominator: int, source: Randomness) -> bool:
    """The same for an exponent of at most 1: how often x/1, x/2, x/3, … succeed in a row is even with chance e^(-x)."""
    bound = denominator
    while below(source, bound) < numerator:
        bound += denominator
    return (bound // denominator) % 2 == 1
