"""A k-d tree for linkage: numbers, categories and missing values in one space, with tight boxes and exact answers.

A box is a lower bound of the distance to every point in it, in floating point too: each term is the same expression, rounded
in the same order, of an argument that is no larger. So pruning never changes an answer. Friedman, Bentley, Finkel, "An
algorithm for finding best matches in logarithmic expected time", ACM Transactions on Mathematical Software 3(3), 1977.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Real = NDArray[np.float64]
Int = NDArray[np.int64]
Flag = NDArray[np.uint8]
#: Order of the points, first and last point of each node, its left child (-1: a leaf; the right child follows), its box, and
#: whether a coordinate is missing in some of its points. A box with low > high says that it is missing in all of them.
Nodes = tuple[Int, Int, Int, Int, Real, Real, Flag]

#: Kinds of coordinates: squared difference, absolute difference, equal or not.
SQUARED, ABSOLUTE, CATEGORY = 0, 1, 2

_BLOCK = 1 << 21


def _grow_tree_numpy(points: Real, kinds: Int, leaf: int) -> Nodes:
    count, width = points.shape
    order = np.arange(count, dtype=np.int64)
    starts, stops, lefts = [0], [count], [-1]
    lows, highs, gaps = [], [], []
    node = 0
    while node < len(starts):
        rows = order[starts[node] : stops[node]]
        inside = points[rows]
        unknown = np.isnan(inside)
        low = np.min(np.where(unknown, np.inf, inside), axis=0, initial=np.inf)
        high = np.max(np.where(unknown, -np.inf, inside), axis=0, initial=-np.inf)
        gap = unknown.any(axis=0) & ~unknown.all(axis=0)
        lows.append(low)
        highs.append(high)
        gaps.append(gap)
        with np.errstate(invalid="ignore"):
            spread = np.where(low < high, np.where(kinds == CATEGORY, 1.0, high - low), 0.0)
        spread = np.where(kinds == SQUARED, spread * spread, spread)
        if rows.size > leaf and (gap.any() or spread.any()):
            if gap.any():
                first = ~unknown[:, int(np.argmax(gap))]
            else:
                axis = int(np.argmax(spread))
                values = inside[:, axis]
                middle = np.partition(values, rows.size // 2)[rows.size // 2]
                first = values < middle if middle > low[axis] else values <= middle
            order[starts[node] : stops[node]] = np.concatenate([rows[first], rows[~first]])
            cut = starts[node] + int(first.sum())
            lefts[node] = len(starts)
            starts += [starts[node], cut]
            stops += [cut, stops[node]]
            lefts += [-1, -1]
        node += 1
    return (
        order,
        np.array(starts, dtype=np.int64),
        np.array(stops, dtype=np.int64),
        np.array(lefts, dtype=np.int64),
        np.array(lows).reshape(len(starts), width),
        np.array(highs).reshape(len(starts), width),
        np.array(gaps, dtype=np.uint8).reshape(len(starts), width),
    )


@kernel(
    "Tuple((int64[::1], int64[::1], int64[::1], int64[::1], float64[:,::1], float64[:,::1], uint8[:,::1]))"
    "(float64[:,::1], int64[::1], int64)",
    twin=_grow_tree_numpy,
)
def grow_tree(points: Real, kinds: Int, leaf: int) -> Nodes:
    """Halve the points by their widest coordinate until `leaf` are left or all are equal.

    Where a coordinate is missing in some points only, those are parted from the rest first.
    """
    count, width = points.shape
    order = np.arange(count)
    room = 4 * (count // max(leaf, 1)) + 8  # more only where points are split off a few at a time
    starts = np.empty(room, dtype=np.int64)
    stops = np.empty(room, dtype=np.int64)
    lefts = np.full(room, -1, dtype=np.int64)
    lows = np.full((room, width), np.inf)
    highs = np.full((room, width), -np.inf)
    gaps = np.zeros((room, width), dtype=np.uint8)
    held = np.empty(count, dtype=np.int64)
    values = np.empty(count)
    starts[0], stops[0] = 0, count
    nodes = 1
    node = 0
    while node < nodes:
        start, stop = starts[node], stops[node]
        size = stop - start
        parted = -1
        widest, axis = 0.0, -1
        for j in range(width):
            low, high = np.inf, -np.inf
            unknown = 0
            for i in range(start, stop):
                value = points[order[i], j]
                if np.isnan(value):
                    unknown += 1
                else:
                    low = min(low, value)
                    high = max(high, value)
            lows[node, j], highs[node, j] = low, high
            if 0 < unknown < size:
                gaps[node, j] = 1
                if parted < 0:
                    parted = j
            if low < high:
                spread = 1.0 if kinds[j] == 2 else high - low
                if kinds[j] == 0:
                    spread = spread * spread
                if spread > widest:
                    widest, axis = spread, j
        if size > leaf and (parted >= 0 or axis >= 0):
            if parted >= 0:
                axis = parted
                middle, inclusive = np.inf, True
            else:
                for i in range(size):
                    values[i] = points[order[start + i], axis]
                middle = np.partition(values[:size], size // 2)[size // 2]
                inclusive = not middle > lows[node, axis]
            before, after = start, 0
            for i in range(start, stop):
                row = order[i]
                value = points[row, axis]
                if value < middle or (inclusive and value == middle) or (parted >= 0 and not np.isnan(value)):
                    order[before] = row
                    before += 1
                else:
                    held[after] = row
                    after += 1
            for i in range(after):
                order[before + i] = held[i]
            if nodes + 2 > room:
                starts = np.append(starts, np.empty(room, dtype=np.int64))
                stops = np.append(stops, np.empty(room, dtype=np.int64))
                lefts = np.append(lefts, np.full(room, -1, dtype=np.int64))
                lows = np.vstack((lows, np.full((room, width), np.inf)))
                highs = np.vstack((highs, np.full((room, width), -np.inf)))
                gaps = np.vstack((gaps, np.zeros((room, width), dtype=np.uint8)))
                room *= 2
            lefts[node] = nodes
            starts[nodes], stops[nodes] = start, before
            starts[nodes + 1], stops[nodes + 1] = before, stop
            nodes += 2
        node += 1
    return (
        order,
        starts[:nodes].copy(),
        stops[:nodes].copy(),
        lefts[:nodes].copy(),
        lows[:nodes].copy(),
        highs[:nodes].copy(),
        gaps[:nodes].copy(),
    )


def blocks(queries: int, points: int) -> Iterator[slice]:
    """Queries in portions whose distances to all points fit in little memory."""
    step = max(_BLOCK // max(points, 1), 1)
    return (slice(start, min(start + step, queries)) for start in range(0, queries, step))


def distances_of_block(queries: Real, points: Real, kinds: Int, costs: Real, neutral: Real) -> Real:
    """All distances of a block of queries, coordinate by coordinate in the order of the compiled version."""
    total = np.zeros((queries.shape[0], points.shape[0]))
    for j in range(points.shape[1]):
        term = queries[:, j, None] - points[None, :, j]
        unknown = np.isnan(term)
        if kinds[j] == SQUARED:
            term *= term
        elif kinds[j] == ABSOLUTE:
            np.abs(term, out=term)
        else:
            term = np.where(term == 0.0, 0.0, costs[j])
        term[unknown] = neutral[j]
        total += term
    return total


def _rank_within_numpy(
    queries: Real, limits: Real, slacks: Real, held: Real, nodes: Nodes, kinds: Int, costs: Real, neutral: Real
) -> tuple[Int, Int]:
    closer = np.zeros(queries.shape[0], dtype=np.int64)
    tied = np.zeros(queries.shape[0], dtype=np.int64)
    for block in blocks(queries.shape[0], held.shape[1]):
        sums = distances_of_block(queries[block], held.T, kinds, costs, neutral)
        closer[block] = (sums < (limits - slacks)[block, None]).any(axis=1)
        tied[block] = (sums <= (limits + slacks)[block, None]).sum(axis=1)
    tied[closer > 0] = 0
    return closer, tied


TREE_SIGNATURE = "Tuple((int64[::1], int64[::1], int64[::1], int64[::1], float64[:,::1], float64[:,::1], uint8[:,::1]))"


@kernel(
    "Tuple((int64[::1], int64[::1]))"
    f"(float64[:,::1], float64[::1], float64[::1], float64[:,::1], {TREE_SIGNATURE}, int64[::1], float64[::1], float64[::1])",
    twin=_rank_within_numpy,
)
def rank_within(
    queries: Real, limits: Real, slacks: Real, held: Real, nodes: Nodes, kinds: Int, costs: Real, neutral: Real
) -> tuple[Int, Int]:
    """Per query: 1 if some point is closer than its limit, and otherwise how many points are within its slack of it.

    A search ends with the first closer point, so that both a tight limit (few boxes) and a loose one (soon beaten) are
    cheap. `held` has the points in the order of the tree, one row per coordinate: distances to the points of a
    leaf are added up side by side, each in the same order of coordinates.
    """
    _, starts, stops, lefts, lows, highs, gaps = nodes
    count, width = queries.shape
    closer = np.zeros(count, dtype=np.int64)
    tied = np.zeros(count, dtype=np.int64)
    stack = np.empty(starts.size + 1, dtype=np.int64)
    bounds = np.empty(2)
    totals = np.empty(32)
    for row in range(count):
        below = limits[row] - slacks[row]
        above = limits[row] + slacks[row]
        ties = 0
        beaten = False
        waiting = 1
        stack[0] = 0
        while waiting and not beaten:
            waiting -= 1
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
                        beaten = beaten or totals[i] < below
                        ties += totals[i] <= above
                continue
            for side in range(2):
                total = 0.0
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
                    if total > above:
                        break
                bounds[side] = total
            nearer = 0 if bounds[0] <= bounds[1] else 1
            if bounds[1 - nearer] <= above:
                stack[waiting] = child + 1 - nearer
                waiting += 1
            if bounds[nearer] <= above:
                stack[waiting] = child + nearer
                waiting += 1
        if beaten:
            closer[row] = 1
        else:
            tied[row] = ties
    return closer, tied
