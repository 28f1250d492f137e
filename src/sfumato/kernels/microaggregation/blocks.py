"""Exact searches among records that are removed one after the other: the farthest from a point, and the nearest to it.

Records lie in blocks (the leaves of a k-d tree), blocks in groups; each has the smallest box around its live records,
each block also a ball around its mean. A block whose bound cannot beat what was found already is skipped. A box bounds
a *computed* distance too, because rounding is monotone and both add up the attributes in the same order; balls have a
margin. Ties go to the lowest row. Removed records are NaN, which loses every comparison, and so do boxes without any.
Friedman, Bentley, Finkel, "An algorithm for finding best matches in logarithmic expected time", ACM TOMS 3(3), 1977.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Int = NDArray[np.int64]
Real = NDArray[np.float64]
#: What `remove_from_blocks` changes: leaf boxes, radii of leaf balls, group boxes.
Bounds = tuple[Real, Real, Real]

#: Far above the rounding error of a distance of centred records, far below any difference that is worth a visit.
_MARGIN = 1e-9


def _distances(point: Real, blocks: Real) -> Real:
    """Squared distances, attribute by attribute as the compiled searches add them up; NaN where nothing lives."""
    total = np.zeros((blocks.shape[0], blocks.shape[2]))
    for a in range(point.size):
        total += (blocks[:, a, :] - point[a]) ** 2
    return total.reshape(-1)


def _farthest_in_blocks_numpy(point: Real, rows: Int, blocks: Real, leaves: Real, radii: Real, groups: Real) -> int:
    distances = _distances(point, blocks)
    if np.isnan(distances).all():
        return -1
    return int(rows[distances == np.fmax.reduce(distances)].min())


@kernel(
    "int64(float64[::1], int64[::1], float64[:,:,::1], float64[:,:,:,::1], float64[:,::1], float64[:,:,::1])",
    twin=_farthest_in_blocks_numpy,
)
def farthest_in_blocks(point: Real, rows: Int, blocks: Real, leaves: Real, radii: Real, groups: Real) -> int:
    """The live row farthest from the point, -1 where none lives.

    `blocks[b, a]` holds attribute a of the records of block b, and `rows` their rows; `leaves[g, :, a]` lower and upper ends
    and centres of the blocks of group g, `radii[g]` how far their records lie from those centres; `groups[:, a]` lower and upper
    ends of the groups.
    """
    group_count, _, attributes, fan = leaves.shape
    width = blocks.shape[2]
    reach = np.zeros(group_count)
    ball = np.empty(fan)
    box = np.empty(fan)
    sums = np.empty(width)
    for a in range(attributes):
        centre, lows, highs = point[a], groups[0, a], groups[1, a]
        for g in range(group_count):
            below, above = centre - lows[g], highs[g] - centre
            side = below if below > above else above
            reach[g] += side * side
    best, who = -1.0, -1
    likely, highest = -1, -1.0
    for g in range(group_count):
        if reach[g] > highest:
            likely, highest = g, reach[g]
    for step in range(-1, group_count):  # the most likely group first
        g = likely if step < 0 else step
        if step == likely or not reach[g] >= best:
            continue
        ball[:] = 0.0
        box[:] = 0.0
        for a in range(attributes):
            centre, lows, highs, centres = point[a], leaves[g, 0, a], leaves[g, 1, a], leaves[g, 2, a]
            for f in range(fan):
                off = centres[f] - centre
                ball[f] += off * off
                below, above = centre - lows[f], highs[f] - centre
                side = below if below > above else above
                box[f] += side * side
        first, highest = -1, -1.0
        for f in range(fan):
            off = np.sqrt(ball[f]) + radii[g, f]
            off = off * off * (1.0 + _MARGIN)
            box[f] = off if off < box[f] else box[f]
            if box[f] > highest:
                first, highest = f, box[f]
        for turn in range(-1, fan):
            f = first if turn < 0 else turn
            if turn == first or not box[f] >= best:
                continue
            b = g * fan + f
            sums[:] = 0.0
            for a in range(attributes):
                centre, column = point[a], blocks[b, a]
                for s in range(width):
                    off = column[s] - centre
                    sums[s] += off * off
            for s in range(width):
                if sums[s] >= best:
                    row = rows[b * width + s]
                    if sums[s] > best or row < who:
                        best, who = sums[s], row
    return who


def _nearest_in_blocks_numpy(
    point: Real, count: int, own: int, start: int, rows: Int, blocks: Real, leaves: Real, groups: Real
) -> Int:
    distances = _distances(point, blocks)
    if own >= 0:
        distances[rows == own] = -1.0
    live = np.flatnonzero(~np.isnan(distances))
    order = live[np.lexsort((rows[live], distances[live]))][:count]
    nearest: Int = rows[order]
    return nearest


@kernel(
    "int64[::1](float64[::1], int64, int64, int64, int64[::1], float64[:,:,::1], float64[:,:,:,::1], float64[:,:,::1])",
    twin=_nearest_in_blocks_numpy,
)
def nearest_in_blocks(point: Real, count: int, own: int, start: int, rows: Int, blocks: Real, leaves: Real, groups: Real) -> Int:
    """The `count` live rows nearest to the point, nearest first; fewer where fewer live.

    Row `own` comes first although others may lie at the same place (-1: no such row). `start` is the block where the search
    begins; it changes the time it takes, not what is found.
    """
    group_count, _, attributes, fan = leaves.shape
    width = blocks.shape[2]
    distance = np.full(count, np.inf)
    who = np.full(count, -1, dtype=np.int64)
    reach = np.zeros(group_count)
    box = np.empty(fan)
    sums = np.empty(width)
    if own >= 0:
        distance[0], who[0] = -1.0, own
    limit = distance[count - 1]
    for a in range(attributes):
        centre, lows, highs = point[a], groups[0, a], groups[1, a]
        for g in range(group_count):
            below, above = lows[g] - centre, centre - highs[g]
            side = below if below > above else above
            side = 0.0 if side < 0.0 else side
            reach[g] += side * side
    home = start // fan
    for step in range(-1, group_count):
        g = home if step < 0 else step
        if step == home or not reach[g] <= limit:
            continue
        box[:] = 0.0
        for a in range(attributes):
            centre, lows, highs = point[a], leaves[g, 0, a], leaves[g, 1, a]
            for f in range(fan):
                below, above = lows[f] - centre, centre - highs[f]
                side = below if below > above else above
                side = 0.0 if side < 0.0 else side
                box[f] += side * side
        first, lowest = -1, np.inf
        for f in range(fan):
            if box[f] < lowest:
                first, lowest = f, box[f]
        for turn in range(-1, fan):
            f = first if turn < 0 else turn
            if f < 0 or turn == first or not box[f] <= limit:
                continue
            b = g * fan + f
            sums[:] = 0.0
            for a in range(attributes):
                centre, column = point[a], blocks[b, a]
                for s in range(width):
                    off = column[s] - centre
                    sums[s] += off * off
            for s in range(width):
                if sums[s] <= limit:
                    row = rows[b * width + s]
                    if row == own or (sums[s] == limit and who[count - 1] >= 0 and row > who[count - 1]):
                        continue
                    at = count - 1
                    while at > 0 and (
                        distance[at - 1] > sums[s] or (distance[at - 1] == sums[s] and (who[at - 1] > row or who[at - 1] < 0))
                    ):
                        distance[at], who[at] = distance[at - 1], who[at - 1]
                        at -= 1
                    distance[at], who[at] = sums[s], row
                    limit = distance[count - 1]
    size = 0
    while size < count and who[size] >= 0:
        size += 1
    return who[:size].copy()


def _remove_from_blocks_numpy(
    gone: Int, place: Int, slack: float, blocks: Real, leaves: Real, radii: Real, groups: Real
) -> Bounds:
    group_count, _, attributes, fan = leaves.shape
    width = blocks.shape[2]
    touched = np.unique(place[gone] // width)
    for spot in place[gone].tolist():
        blocks[spot // width, :, spot % width] = np.nan
    own = blocks[touched]
    at = touched // fan, touched % fan
    leaves[at[0], 0, :, at[1]] = np.fmin.reduce(own, axis=2)
    leaves[at[0], 1, :, at[1]] = np.fmax.reduce(own, axis=2)
    off = np.zeros((touched.size, width))
    for a in range(attributes):
        off += (own[:, a, :] - leaves[at[0], 2, a, at[1]][:, None]) ** 2
    radii[at] = np.sqrt(np.fmax.reduce(off, axis=1)) + slack
    for g in np.unique(at[0]).tolist():
        groups[0, :, g] = np.fmin.reduce(leaves[g, 0], axis=1)
        groups[1, :, g] = np.fmax.reduce(leaves[g, 1], axis=1)
    return leaves, radii, groups


@kernel(
    "Tuple((float64[:,:,:,::1], float64[:,::1], float64[:,:,::1]))(int64[::1], int64[::1], float64, float64[:,:,::1],"
    " float64[:,:,:,::1], float64[:,::1], float64[:,:,::1])",
    twin=_remove_from_blocks_numpy,
)
def remove_from_blocks(gone: Int, place: Int, slack: float, blocks: Real, leaves: Real, radii: Real, groups: Real) -> Bounds:
    """Take rows out and draw every box and ball tight again; changes blocks and bounds in place and returns the bounds.

    `place` is the slot of each row, counted through all blocks; `slack` is added to a radius.
    """
    group_count, _, attributes, fan = leaves.shape
    width = blocks.shape[2]
    sums = np.empty(width)
    for row in gone:
        b, s = place[row] // width, place[row] % width
        g, f = b // fan, b % fan
        on_face = False
        for a in range(attributes):
            on_face |= blocks[b, a, s] == leaves[g, 0, a, f] or blocks[b, a, s] == leaves[g, 1, a, f]
            blocks[b, a, s] = np.nan
        sums[:] = 0.0
        for a in range(attributes):
            centre, column = leaves[g, 2, a, f], blocks[b, a]
            for t in range(width):
                off = column[t] - centre
                sums[t] += off * off
        farthest = -1.0
        for t in range(width):
            farthest = sums[t] if sums[t] > farthest else farthest
        radii[g, f] = np.sqrt(farthest) + slack if farthest >= 0.0 else np.nan
        if not on_face:
            continue
        outermost = False
        for a in range(attributes):
            low, high, column = np.inf, -np.inf, blocks[b, a]
            for t in range(width):
                value = column[t]
                low = value if value < low else low
                high = value if value > high else high
            if low > high:
                low, high = np.nan, np.nan
            outermost |= leaves[g, 0, a, f] == groups[0, a, g] and low != leaves[g, 0, a, f]
            outermost |= leaves[g, 1, a, f] == groups[1, a, g] and high != leaves[g, 1, a, f]
            leaves[g, 0, a, f], leaves[g, 1, a, f] = low, high
        if outermost:
            for a in range(attributes):
                low, high = np.inf, -np.inf
                for t in range(fan):
                    low = leaves[g, 0, a, t] if leaves[g, 0, a, t] < low else low
                    high = leaves[g, 1, a, t] if leaves[g, 1, a, t] > high else high
                if low > high:
                    low, high = np.nan, np.nan
                groups[0, a, g], groups[1, a, g] = low, high
    return leaves, radii, groups
