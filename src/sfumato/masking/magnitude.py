"""The size of numbers, so that squares and sums of very large or very small ones neither overflow nor vanish.

Dividing by a power of two is exact: whoever computes in units of the magnitude gets the digits that plain arithmetic gives
wherever that works at all.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]


def magnitude(values: Real) -> float:
    """The power of two next to the largest absolute value; 1 where there is none. Missing values (NaN) are passed over."""
    largest = float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0))
    if not largest > 0.0:
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1)


def magnitudes(table: Real) -> Real:
    """The magnitude of each column."""
    return np.array([magnitude(column) for column in table.T], dtype=np.float64)


def mean_of(values: Real) -> float:
    """The mean; its sum cannot overflow."""
    unit = magnitude(values)
    return float((values / unit).mean()) * unit


def deviation_of(values: Real, *, ddof: int = 0) -> float:
    """The standard deviation, whose squares neither overflow nor vanish."""
    unit = magnitude(values)
    return float((values / unit).std(ddof=ddof)) * unit
