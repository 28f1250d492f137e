"""Optimal microaggregation of one attribute: a shortest path over the sorted values.

An optimal partition has groups of k to 2k - 1 neighbouring values, so that the best way to cut the first i values extends
the best way to cut i - k, i - k - 1, …: O(nk) steps. The spread of a group grows value by value (no differences of large
sums). Hansen, Mukherjee, "A polynomial algorithm for optimal univariate microaggregation", IEEE TKDE 15(4), 2003.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Int = NDArray[np.int64]
Real = NDArray[np.float64]

_AT_ONCE = 4096


def _optimal_groups_numpy(values: Real, k: int) -> Int:
    count = values.size
    cost = np.full(count + 1, np.inf)
    cost[0] = 0.0
    size = np.zeros(count + 1, dtype=np.int64)
    for start in range(0, count, _AT_ONCE):
        ends = np.arange(start, min(count, start + _AT_ONCE))
        with np.errstate(over="ignore", invalid="ignore"):
            spreads = _spreads(values, ends, k)
        for end in ends.tolist():
            widths = np.arange(k, min(2 * k - 1, end + 1) + 1)
            before = end + 1 - widths
            possible = (before == 0) | (size[before] > 0)
            widths, before = widths[possible], before[possible]
            if widths.size:
                ways = cost[before] + spreads[widths - k, end - start]
                ways[np.isnan(ways)] = np.inf
                best = int(np.argmin(ways))
                cost[end + 1], size[end + 1] = ways[best], widths[best]
    return _sizes(size)


def _spreads(values: Real, ends: Int, k: int) -> Real:
    """Squared deviations from the mean of the k, k + 1, … 2k - 1 values up to each end."""
    mean = np.zeros(ends.size)
    spread = np.zeros(ends.size)
    spreads = np.full((k, ends.size), np.inf)
    for width in range(1, 2 * k):
        value = values[np.maximum(ends - width + 1, 0)]
        off = value - mean
        mean = mean + off / width
        spread = spread + off * (value - mean)
        if width >= k:
            spreads[width - k] = spread
    return spreads


def _sizes(size: Int) -> Int:
    sizes = []
    end = size.size - 1
    while end > 0:
        sizes.append(int(size[end]))
        end -= sizes[-1]
    return np.array(sizes[::-1], dtype=np.int64)


@kernel("int64[::1](float64[::1], int64)", twin=_optimal_groups_numpy)
def optimal_groups(values: Real, k: int) -> Int:
    """The sizes of the groups into which ascending values fall, least sum of squared deviations; at least k values are
    needed. Of equally good ways the one with the smaller last group is taken."""
    count = values.size
    cost = np.full(count + 1, np.inf)
    cost[0] = 0.0
    size = np.zeros(count + 1, dtype=np.int64)
    for end in range(count):
        mean, spread = 0.0, 0.0
        for width in range(1, min(2 * k - 1, end + 1) + 1):
            value = values[end - width + 1]
            off = value - mean
            mean = mean + off / width
            spread = spread + off * (value - mean)
            before = end + 1 - width
            if width < k or (before > 0 and size[before] == 0):
                continue
            way = cost[before] + spread
            if way != way:
                way = np.inf
            # the first way is taken whatever it costs: squares may overflow, and an end without a way would never be left
            if size[end + 1] == 0 or way < cost[end + 1]:
                cost[end + 1] = way
                size[end + 1] = width
    groups = 0
    end = count
    while end > 0:
        end -= size[end]
        groups += 1
    sizes = np.empty(groups, dtype=np.int64)
    end = count
    while end > 0:
        groups -= 1
        sizes[groups] = size[end]
        end -= size[end]
    return sizes
