"""Orders of records that make searches short: neighbours in space side by side, and the farthest from a centre first.

Bentley, "Multidimensional binary search trees used for associative searching", Communications of the ACM 18(9), 1975.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]
Real = NDArray[np.float64]

#: Far above the rounding error of a distance of centred records, far below any difference that is worth a look.
_MARGIN = 1e-9


def _spatial_order_numpy(points: Real, block: int) -> Int:
    order = np.arange(points.shape[0], dtype=np.int64)
    waiting = [(0, -(-points.shape[0] // block))]
    while waiting:
        first, blocks = waiting.pop()
        part = order[first * block : (first + blocks) * block]
        if blocks <= 1:
            part.sort()
            continue
        half = 1 << (blocks - 1).bit_length() - 1
        widest = int(np.argmax(np.ptp(points[part], axis=0)))
        part[:] = part[np.lexsort((part, points[part, widest]))]
        waiting += [(first, half), (first + half, blocks - half)]
    return order


@kernel("int64[::1](float64[:,::1], int64)", twin=_spatial_order_numpy)
def spatial_order(points: Real, block: int) -> Int:
    """The rows in an order in which every `block` of them are neighbours in space: a k-d tree cut at the widest attribute.

    All blocks are full but the last; every aligned run of 2^i blocks is a subtree. Rows of a block ascend.
    """
    count, attributes = points.shape
    order = np.arange(count)
    begins = np.empty(128, dtype=np.int64)
    sizes = np.empty(128, dtype=np.int64)
    begins[0] = 0
    sizes[0] = (count + block - 1) // block
    waiting = 1
    while waiting > 0:
        waiting -= 1
        first, blocks = begins[waiting], sizes[waiting]
        start, end = first * block, min(count, (first + blocks) * block)
        if blocks <= 1:
            order[start:end] = np.sort(order[start:end])
            continue
        half = 1
        while half * 2 < blocks:
            half *= 2
        widest, spread = 0, -1.0
        for a in range(attributes):
            low, high = np.inf, -np.inf
            for i in range(start, end):
                value = points[order[i], a]
                low = value if value < low else low
                high = value if value > high else high
            if high - low > spread:
                widest, spread = a, high - low
        # quickselect by value, then by row, so that the halves do not depend on how it walks
        cut = (first + half) * block
        left, right = start, end - 1
        while left < right:
            pivot = order[(left + right) // 2]
            middle = points[pivot, widest]
            i, j = left, right
            while i <= j:
                while points[order[i], widest] < middle or (points[order[i], widest] == middle and order[i] < pivot):
                    i += 1
                while points[order[j], widest] > middle or (points[order[j], widest] == middle and order[j] > pivot):
                    j -= 1
                if i <= j:
                    order[i], order[j] = order[j], order[i]
                    i += 1
                    j -= 1
            if cut <= j:
                right = j
            elif cut >= i:
                left = i
            else:
                break
        begins[waiting], sizes[waiting] = first, half
        begins[waiting + 1], sizes[waiting + 1] = first + half, blocks - half
        waiting += 2
    return order


def _farthest_in_shell_numpy(
    point: Real, moved: float, first: int, points: Real, order: Int, reach: Real, live: Bool
) -> tuple[int, int, int]:
    left = first + np.flatnonzero(live[order[first:]])
    if not left.size:
        return -1, order.size, 0
    distances = np.zeros(left.size)
    for a in range(point.size):
        distances += (points[order[left], a] - point[a]) ** 2
    enough = (np.sqrt(np.maximum.accumulate(distances)[:-1]) - moved) * (1.0 - _MARGIN)
    hopeless = np.flatnonzero(reach[left[1:]] < enough)
    seen = int(hopeless[0]) + 1 if hopeless.size else int(left.size)
    rows = order[left[:seen]]
    return int(rows[distances[:seen] == distances[:seen].max()].min()), int(left[0]), seen


@kernel(
    "Tuple((int64, int64, int64))(float64[::1], float64, int64, float64[:,::1], int64[::1], float64[::1], boolean[::1])",
    twin=_farthest_in_shell_numpy,
)
def farthest_in_shell(
    point: Real, moved: float, first: int, points: Real, order: Int, reach: Real, live: Bool
) -> tuple[int, int, int]:
    """The live row farthest from a point that has `moved` so far from an anchor; then the place of the first live row in
    `order`, and how many rows were looked at.

    `order` lists rows by their distance `reach` from the anchor, farthest first: a row that is nearer to the anchor than the
    best so far less `moved` cannot win (triangle inequality), nor can any behind it.
    """
    best, who, seen, enough = -1.0, -1, 0, -np.inf
    begin = order.size
    for i in range(first, order.size):
        row = order[i]
        if not live[row]:
            continue
        if begin == order.size:
            begin = i
        if reach[i] < enough:
            break
        distance = 0.0
        for a in range(point.size):
            off = points[row, a] - point[a]
            distance += off * off
        seen += 1
        if distance > best or (distance == best and row < who):
            best, who = distance, row
            enough = (np.sqrt(distance) - moved) * (1.0 - _MARGIN)
    return who, begin, seen
