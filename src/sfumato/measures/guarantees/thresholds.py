"""Comparing a measured ratio with a promised number, exactly.

A share or a distance of counts is a fraction of whole numbers. Far from the threshold floating point
decides; near it the fraction is compared in whole numbers of any size, so that a tie is a tie and
nothing overflows. The threshold is read as the decimal number its owner wrote (0.3 means 3/10), with the
slack of `core.guarantees.base.TOLERANCE`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.core.guarantees.base import TOLERANCE

Floats = NDArray[np.float64]
Verdicts = NDArray[np.bool_]
#: A number for each class: 64-bit integers, floats, or Python's own integers where 64 bits could overflow. Which of them depends
#: on how many records there are, and no type of NumPy says that all of them can be added and compared.
Numbers: TypeAlias = NDArray[Any]

#: Products of counts below this stay in 64-bit integers; larger ones are carried as Python integers.
EXACT_LIMIT = 1 << 62
_NEAR = 1e-9
_SLACK = Fraction(repr(TOLERANCE))


def written(threshold: float) -> Fraction:
    """The threshold as the decimal fraction that was written."""
    return Fraction(repr(float(threshold)))


def whole(numbers: Numbers, bound: int) -> Numbers:
    """Integers wide enough for results up to `bound`: 64 bits, or Python's own where that could overflow."""
    return numbers.astype(np.int64) if bound < EXACT_LIMIT else numbers.astype(object)


def ratios(numerator: Numbers, denominator: Numbers) -> Floats:
    """The fractions as floating-point numbers; x/0 is infinite."""
    if numerator.dtype == object or denominator.dtype == object:
        pairs = zip(numerator.tolist(), denominator.tolist(), strict=True)
        return np.array([n / d if d else math.inf for n, d in pairs], dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = numerator / denominator
    return np.where(denominator == 0, math.inf, quotient)


def at_most(numerator: Numbers, denominator: Numbers, threshold: float) -> Verdicts:
    """numerator/denominator ≤ threshold with the slack, element by element; x/0 is above every threshold."""
    return _decide(numerator, denominator, threshold, strict=False)


def below(numerator: Numbers, denominator: Numbers, threshold: float) -> Verdicts:
    """numerator/denominator < threshold, strictly and without slack; x/0 is above every threshold."""
    return _decide(numerator, denominator, threshold, strict=True)


def _decide(numerator: Numbers, denominator: Numbers, threshold: float, *, strict: bool) -> Verdicts:
    approximate = ratios(numerator, denominator)
    if math.isinf(threshold):
        return np.isfinite(approximate) if strict else np.ones(approximate.shape, dtype=np.bool_)
    verdict = approximate < threshold
    near = np.flatnonzero(np.abs(approximate - threshold) <= _NEAR * max(1.0, abs(threshold)))
    if near.size == 0:
        return verdict
    limit = written(threshold) if strict else written(threshold) + _SLACK
    decided: dict[tuple[int, int], bool] = {}
    for i in near.tolist():
        pair = int(numerator[i]), int(denominator[i])
        if pair not in decided:
            left, right = pair[0] * limit.denominator, limit.numerator * pair[1]
            decided[pair] = left < right if strict else left <= right
        verdict[i] = decided[pair]
    return verdict
