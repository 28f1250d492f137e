"""The nearest points of a query in a k-d tree, by distance or by distance less a discount.

Boxes are visited nearest first and left out when they cannot hold anything better; answers are exact, ties go to the first point.
Friedman, Bentley, Finkel, "An algorithm for finding best matches in logarithmic expected time", ACM Transactions on
Mathematical Software 3(3), 1977.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel
from sfumato.kernels.linkage.tree import TREE_SIGNATURE, Nodes, blocks, distances_of_block

Real = NDArray[np.float64]
Int = NDArray[np.int64]


def _closest_numpy(
    queries: Real,
    limits: Real,
    neighbours: int,
    root: bool,
    held: Real,
    discounts: Real,
    peaks: Real,
    nodes: Nodes,
    kinds: Int,
    costs: Real,
    neutral: Real,
) -> tuple[Real, Int]:
    points = np.empty_like(held.T)
    points[nodes[0]] = held.T
    less = np.empty(held.shape[1])
    less[nodes[0]] = discounts
    distances = np.empty((queries.shape[0], neighbours))
    distances[:] = limits[:, None]
    indices = np.full((queries.shape[0], neighbours), -1, dtype=np.int64)
    for block in blocks(queries.shape[0], held.shape[1]):
        sums = distances_of_block(queries[block], points, kinds, costs, neutral)
        sums = (np.sqrt(sums) if root else sums) - less
        ranked = np.argsort(sums, axis=1, kind="stable")[:, :neighbours]
        best = np.take_along_axis(sums, ranked, axis=1)
        good = best < limits[block, None]
        width = ranked.shape[1]
        distances[block, :width] = np.where(good, best, limits[block, None])
        indices[block, :width] = np.where(good, ranked, -1)
    return distances, indices


@kernel(
    "Tuple((float64[:,::1], int64[:,::1]))"
    "(float64[:,::1], float64[::1], int64, boolean, float64[:,::1], float64[::1], float64[::1],"
    f" {TREE_SIGNATURE}, int64[::1], float64[::1], float64[::1])",
    twin=_closest_numpy,
)
def closest(
    queries: Real,
    limits: Real,
    neighbours: int,
    root: bool,
    held: Real,
    discounts: Real,
    peaks: Real,
    nodes: Nodes,
    kinds: Int,
    costs: Real,
    neutral: Real,
) -> tuple[Real, Int]:
    """The `neighbours` closest points of each query that are closer than its limit, by distance and then by index; the limit and
    -1 where there are fewer.

    The distance is the sum of differences, its square root with `root`, less the discount of the point (in the order of the
    tree); `peaks` are the largest discounts of the nodes.
    """
    order, starts, stops, lefts, lows, highs, gaps = nodes
    count, width = queries.shape
    distances = np.empty((count, neighbours))
    indices = np.full((count, neighbours), -1, dtype=np.int64)
    stack = np.empty(starts.size + 1, dtype=np.int64)
    floor = np.empty(starts.size + 1)
    bounds = np.empty(2)
    totals = np.empty(32)
    last = neighbours - 1
    for row in range(count):
        distances[row, :] = limits[row]
        waiting = 1
        stack[0], floor[0] = 0, -np.inf
        while waiting:
            waiting -= 1
            if floor[waiting] > distances[row, last]:
                continue
            node = stack[waiting]
            child = lefts[node]
            if child < 0:
                for begin in range(starts[node], stops[node], 32):
                    size = min(stops[node] - begin, 32)
                    totals[:size] = 0.0
                    for j in range(width):
                        value, unknown = queries[row, j], neutral[j]
                        column = held[j, begin : begin + size]
                        if kinds[j] == 0:
                            for i in range(size):
                                term = (value - column[i]) * (value - column[i])
                                totals[i] += unknown if np.isnan(term) else term
                        elif kinds[j] == 1:
                            for i in range(size):
                                term = abs(value - column[i])
                                totals[i] += unknown if np.isnan(term) else term
                        else:
                            for i in range(size):
                                term = value - column[i]
                                totals[i] += unknown if np.isnan(term) else (costs[j] if term != 0.0 else 0.0)
                    for i in range(size):
                        total, index = totals[i], order[begin + i]
                        if root:
                            total = np.sqrt(total)
                        total -= discounts[begin + i]
                        worst = distances[row, last]
                        if total > worst or (total == worst and indices[row, last] < index):
                            continue
                        place = last
                        while place and (
                            distances[row, place - 1] > total
                            or (distances[row, place - 1] == total and indices[row, place - 1] > index)
                        ):
                            distances[row, place] = distances[row, place - 1]
                            indices[row, place] = indices[row, place - 1]
                            place -= 1
                        distances[row, place] = total
                        indices[row, place] = index
                continue
            worst = distances[row, last]
            for side in range(2):
                total = 0.0
                enough = worst + peaks[child + side]
                if root:
                    enough = enough * enough * (1.0 + 1e-12) if enough > 0.0 else 0.0
                for j in range(width):
                    value, low, high = queries[row, j], lows[child + side, j], highs[child + side, j]
                    term = 0.0
                    if np.isnan(value) or low > high:
                        total += neutral[j]
                        continue
                    if value < low:
                        term = value - low
                    elif value > high:
                        term = value - high
                    if kinds[j] == 0:
                        term = term * term
                    elif kinds[j] == 1:
                        term = abs(term)
                    elif term != 0.0:
                        term = costs[j]
                    if gaps[child + side, j]:
                        term = min(term, neutral[j])
                    total += term
                    if total > enough:
                        break
                bounds[side] = (np.sqrt(total) if root else total) - peaks[child + side]
            nearer = 0 if bounds[0] <= bounds[1] else 1
            for side in (1 - nearer, nearer):
                if bounds[side] <= worst:
                    stack[waiting], floor[waiting] = child + side, bounds[side]
                    waiting += 1
    return distances, indices
