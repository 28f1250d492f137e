"""Exact samples of integer noise from a byte source: Bernoulli(exp(-x)), geometric, discrete Laplace, discrete Gaussian.

Parameters are rational and every decision compares uniform integers with integers, so that the law is exactly the
stated one: no floating-point number is involved.
Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020 (Algorithms 1 to 3).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.core.params import require
from sfumato.core.randomness import Randomness, below


def bernoulli(probability: Fraction, source: Randomness) -> bool:
    """True with exactly this probability."""
    require(0 <= probability <= 1, "a probability lies between 0 and 1")
    return below(source, probability.denominator) < probability.numerator


def bernoulli_exp(exponent: Fraction, source: Randomness) -> bool:
    """True with probability exp(-exponent), for any exponent of at least 0."""
    require(exponent >= 0, "the exponent must not be negative")
    while exponent > 1:
        if not _bernoulli_exp_below_one(Fraction(1), source):
            return False
        exponent -= 1
    return _bernoulli_exp_below_one(exponent, source)


def _bernoulli_exp_below_one(exponent: Fraction, source: Randomness) -> bool:
    draws = 1
    while bernoulli(exponent / draws, source):
        draws += 1
    return draws % 2 == 1


def geometric_one(scale: Fraction, source: Randomness) -> int:
    """k at least 0 with probability (1 - e^(-1/scale)) e^(-k/scale)."""
    require(scale > 0, "the scale must be above 0")
    numerator, denominator = scale.numerator, scale.denominator
    while True:
        offset = below(source, numerator)
        if bernoulli_exp(Fraction(offset, numerator), source):
            break
    whole = 0
    while bernoulli_exp(Fraction(1), source):
        whole += 1
    return (offset + numerator * whole) // denominator


def discrete_laplace_one(scale: Fraction, source: Randomness) -> int:
    """x with probability proportional to e^(-|x|/scale)."""
    while True:
        negative = bool(below(source, 2))
        magnitude = geometric_one(scale, source)
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def discrete_gaussian_one(variance: Fraction, source: Randomness) -> int:
    """x with probability proportional to e^(-x²/(2·variance))."""
    require(variance > 0, "the variance must be above 0")
    width = _floor_root(variance) + 1
    while True:
        proposed = discrete_laplace_one(Fraction(width), source)
        if bernoulli_exp((abs(proposed) - variance / width) ** 2 / (2 * variance), source):
            return proposed


def geometric(scale: Fraction, count: int, source: Randomness) -> NDArray[np.int64]:
    """That many independent draws of `geometric_one`."""
    return _array(geometric_one(scale, source) for _ in range(count))


def discrete_laplace(scale: Fraction, count: int, source: Randomness) -> NDArray[np.int64]:
    """That many independent draws of `discrete_laplace_one`."""
    return _array(discrete_laplace_one(scale, source) for _ in range(count))


def discrete_gaussian(variance: Fraction, count: int, source: Randomness) -> NDArray[np.int64]:
    """That many independent draws of `discrete_gaussian_one`."""
    return _array(discrete_gaussian_one(variance, source) for _ in range(count))


def _array(draws: object) -> NDArray[np.int64]:
    return np.array(list(draws), dtype=np.int64)  # type: ignore[call-overload]


def _floor_root(value: Fraction) -> int:
    import math

    return math.isqrt(value.numerator // value.denominator)
