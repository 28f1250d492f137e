"""Squared distances from one record to all others over numbers and categories, in memory linear in the records.

The distance of two categories is the share of levels of their hierarchy at which they differ: 0 or 1 without one. Only
the distances from the one category asked about are ever laid out. Domingo-Ferrer, Torra, "Ordinal, continuous and
heterogeneous k-anonymity through microaggregation", Data Mining and Knowledge Discovery 11(2), 2005.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Int = NDArray[np.int64]
Int32 = NDArray[np.int32]
Real = NDArray[np.float64]


def _mixed_distances_numpy(point: Real, numbers: Real, codes: Int32, tables: Real, starts: Int) -> Real:
    total = np.zeros(numbers.shape[1])
    for a in range(numbers.shape[0]):
        total += (numbers[a] - point[a]) ** 2
    for c in range(codes.shape[0]):
        total += tables[starts[c] + codes[c]]
    return total


@kernel("float64[::1](float64[::1], float64[:,::1], int32[:,::1], float64[::1], int64[::1])", twin=_mixed_distances_numpy)
def mixed_distances(point: Real, numbers: Real, codes: Int32, tables: Real, starts: Int) -> Real:
    """Squared distances from a point to records given attribute by attribute.

    `numbers[a]` and `codes[c]` are the attributes; `tables[starts[c] + code]` is what category `code` of attribute c adds.
    """
    total = np.zeros(numbers.shape[1])
    for a in range(numbers.shape[0]):
        for i in range(total.size):
            off = numbers[a, i] - point[a]
            total[i] += off * off
    for c in range(codes.shape[0]):
        for i in range(total.size):
            total[i] += tables[starts[c] + codes[c, i]]
    return total


def category_distances(levels: Int32, code: int) -> Real:
    """Distances from one category to all: the share of levels at which their nodes differ.

    `levels[level, category]` is the node above a category, level 0 the category itself; the root is left out.
    """
    distances: Real = (levels != levels[:, code, None]).mean(axis=0)
    return distances


def central_category(levels: Int32, counts: Real) -> int:
    """The category with the least sum of distances to so many records of each category; the first of several."""
    total = np.zeros(levels.shape[1])
    for nodes in levels:
        below = np.bincount(nodes, weights=counts, minlength=int(nodes.max()) + 1)
        total += counts.sum() - below[nodes]
    return int(np.argmin(total))
