"""Changing categories by a matrix of transition probabilities: inversion of the cumulative row of each category.

A category of probability 0 is never drawn. De Wolf, Gouweleeuw, Kooiman, Willenborg, "Reflections on PRAM",
Statistical Data Protection 1998.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Real = NDArray[np.float64]
Codes = NDArray[np.int32]


def cumulative(matrix: Real) -> Real:
    """Running sums of each row, exactly 1 from its last possible category on, whatever the rounding errors."""
    sums = np.ascontiguousarray(np.cumsum(matrix, axis=1))
    width = matrix.shape[1]
    last = width - 1 - np.argmax(matrix[:, ::-1] > 0, axis=1)
    sums[np.arange(width) >= last[:, None]] = 1.0
    return sums


def _drawn_by_row(codes: Codes, draws: Real, sums: Real) -> Codes:
    drawn = np.full(codes.size, -1, dtype=np.int32)
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(sums.shape[0] + 1))
    for code in range(sums.shape[0]):
        rows = order[edges[code] : edges[code + 1]]
        drawn[rows] = np.searchsorted(sums[code], draws[rows], side="right")
    return drawn


@kernel("int32[::1](int32[::1], float64[::1], float64[:, ::1])", twin=_drawn_by_row)
def drawn_by_row(codes: Codes, draws: Real, sums: Real) -> Codes:
    """A category from the cumulative row of each code, by a number of [0, 1) each; a missing code (-1) stays missing."""
    drawn = np.empty(codes.size, dtype=np.int32)
    width = sums.shape[1]
    for i in range(codes.size):
        code = codes[i]
        if code < 0:
            drawn[i] = -1
            continue
        draw = draws[i]
        low, high = 0, width - 1
        while low < high:
            middle = (low + high) >> 1
            if draw < sums[code, middle]:
                high = middle
            else:
                low = middle + 1
        drawn[i] = low
    return drawn


def kept_or_other(codes: Codes, draws: Real, stay: float, count: int) -> Codes:
    """Each code stays with this probability, otherwise every other of `count` codes is equally likely; -1 stays -1."""
    steps = (
        np.minimum((draws - stay) * ((count - 1) / (1.0 - stay)), count - 2) if stay < 1 and count > 1 else np.zeros(draws.size)
    )
    other = steps.astype(np.int32)
    other += other >= codes  # the code itself is left out
    moved = (draws >= stay) & (codes >= 0)
    return np.where(moved, other, codes).astype(np.int32, copy=False)
