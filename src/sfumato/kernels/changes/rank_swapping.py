"""Who swaps with whom: pairs of ranks drawn within a window, by a distance, or by buckets.

Each function walks up the ranks 0 … n-1 of a sorted column and returns for every rank the rank it swaps with, itself
where none was left. What is still unswapped lies in pools from which a rank is drawn or removed in constant time, so
that the whole walk is linear in n and every draw exactly uniform.
Moore, "Controlled data-swapping techniques for masking public use microdata sets", US Bureau of the Census 1996;
Nin, Herranz, Torra, "Rethinking rank swapping to decrease disclosure risk", Data and Knowledge Engineering 64, 2008.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Real = NDArray[np.float64]
Int = NDArray[np.int64]

#: Buckets further away than this have a probability below 2^-60 of that of the nearest one.
_FAR = 60


def _stable_order(values: Real) -> Int:
    order: Int = np.argsort(values, kind="stable").astype(np.int64)
    return order


@kernel("int64[::1](float64[::1])", twin=_stable_order)
def stable_order(values: Real) -> Int:
    """Positions of the values from small to large, equal values as they stand; no NaN. A radix sort of the bits."""
    n = values.size
    digits = 2048
    keys = (values + 0.0).view(np.uint64).copy()  # adding 0 makes the negative zero equal to the positive one
    counts = np.zeros((6, digits), dtype=np.int64)
    sign = np.uint64(1) << np.uint64(63)
    low = np.uint64(digits - 1)
    for i in range(n):
        bits = keys[i]
        bits = ~bits if bits & sign else bits | sign
        keys[i] = bits
        for turn in range(6):
            counts[turn, np.int64((bits >> np.uint64(11 * turn)) & low)] += 1
    order = np.arange(n).astype(np.int32)  # half the memory to move; a column has fewer than 2^31 values
    other_order = np.empty(n, dtype=np.int32)
    other_keys = np.empty(n, dtype=np.uint64)
    for turn in range(6):
        shift = np.uint64(11 * turn)
        count = counts[turn]
        if n and count[np.int64((keys[0] >> shift) & low)] == n:
            continue
        total = 0
        for digit in range(digits):
            here = count[digit]
            count[digit] = total
            total += here
        for i in range(n):
            bucket = np.int64((keys[i] >> shift) & low)
            place = count[bucket]
            count[bucket] = place + 1
            other_keys[place] = keys[i]
            other_order[place] = order[i]
        keys, other_keys = other_keys, keys
        order, other_order = other_order, order
    return order.astype(np.int64)


def _window_partners(draws: Real, window: int) -> Int:
    n = len(draws)
    drawn, partner, place = draws.tolist(), list(range(n)), [-1] * n
    pool: list[int] = []
    for rank in range(min(window, n)):
        place[rank] = len(pool)
        pool.append(rank)

    def remove(rank: int) -> None:
        last = pool.pop()
        if last != rank:
            pool[place[rank]] = last
            place[last] = place[rank]
        place[rank] = -1

    for i in range(n):
        if i + window < n:
            place[i + window] = len(pool)
            pool.append(i + window)
        if place[i] < 0:
            continue
        remove(i)
        if pool:
            other = pool[min(int(drawn[i] * len(pool)), len(pool) - 1)]
            remove(other)
            partner[i], partner[other] = other, i
    return np.array(partner, dtype=np.int64)


@kernel("int64[::1](float64[::1], int64)", twin=_window_partners)
def window_partners(draws: Real, window: int) -> Int:
    """Every still unswapped rank i swaps with one drawn uniformly among the unswapped ranks of (i, i + window].

    `draws` holds a number of [0, 1) for each rank. Only among the last `window` ranks can one be left without a partner.
    """
    n = draws.size
    partner = np.arange(n)
    pool = np.empty(n, dtype=np.int64)
    place = np.full(n, -1, dtype=np.int64)
    size = min(window, n)
    for rank in range(size):
        pool[rank] = rank
        place[rank] = rank
    for i in range(n):
        if window < n - i:
            pool[size] = i + window
            place[i + window] = size
            size += 1
        if place[i] < 0:
            continue
        size -= 1
        last = pool[size]
        pool[place[i]] = last
        place[last] = place[i]
        place[i] = -1
        if size == 0:
            continue
        other = pool[min(int(draws[i] * size), size - 1)]
        size -= 1
        last = pool[size]
        pool[place[other]] = last
        place[last] = place[other]
        place[other] = -1
        partner[i] = other
        partner[other] = i
    return partner


def _distance_partners(distances: Int) -> Int:
    n = len(distances)
    partner = list(range(n))
    above, below = list(range(n + 1)), list(range(n + 1))  # nearest unswapped rank upwards (n: none), downwards (shifted by 1)

    def find(links: list[int], start: int) -> int:
        root = start
        while links[root] != root:
            root = links[root]
        while links[start] != root:
            links[start], start = root, links[start]
        return root

    def remove(rank: int) -> None:
        above[rank] = rank + 1
        below[rank + 1] = rank

    for i, distance in enumerate(distances.tolist()):
        if above[i] != i:
            continue
        remove(i)
        target = min(max(i + distance, i + 1), n)
        up, down = find(above, target), find(below, min(target, n - 1) + 1) - 1
        if up == n and down <= i:
            continue
        other = up if down <= i or (up < n and up - target <= target - down) else down
        remove(other)
        partner[i], partner[other] = other, i
    return np.array(partner, dtype=np.int64)


@kernel("int64[::1](int64[::1])", twin=_distance_partners)
def distance_partners(distances: Int) -> Int:
    """Every still unswapped rank i swaps with the unswapped rank nearest to i + distance, the higher one of two as near.

    All ranks below i are swapped by then, so that a distance below 1 leads to the next unswapped rank above i.
    """
    n = distances.size
    partner = np.arange(n)
    above = np.arange(n + 1)
    below = np.arange(n + 1)
    for i in range(n):
        if above[i] != i:
            continue
        above[i] = i + 1
        below[i + 1] = i
        target = min(max(i + distances[i], i + 1), n)
        up = target
        while above[up] != up:
            above[up] = above[above[up]]
            up = above[up]
        down = min(target, n - 1) + 1
        while below[down] != down:
            below[down] = below[below[down]]
            down = below[down]
        down -= 1
        if up == n and down <= i:
            continue
        other = up if down <= i or (up < n and up - target <= target - down) else down
        above[other] = other + 1
        below[other + 1] = other
        partner[i] = other
        partner[other] = i
    return partner


def _bucket_partners(bucket_draws: Real, draws: Real, width: int) -> Int:
    n = len(draws)
    partner, place = list(range(n)), list(range(n))
    buckets = [list(range(start, min(start + width, n))) for start in range(0, n, width)]

    def remove(rank: int) -> None:
        pool = buckets[rank // width]
        last = pool.pop()
        if last != rank:
            pool[place[rank] - rank // width * width] = last
            place[last] = place[rank]
        place[rank] = -1

    for i, (first, second) in enumerate(zip(bucket_draws.tolist(), draws.tolist(), strict=True)):
        if place[i] < 0:
            continue
        remove(i)
        near = next((bucket for bucket in range(i // width, len(buckets)) if buckets[bucket]), None)
        if near is None:
            continue
        reach = range(near, min(near + _FAR, len(buckets)))
        left = first * sum(0.5 ** (bucket - near) for bucket in reach if buckets[bucket])
        chosen = near
        for bucket in reach:
            if buckets[bucket]:
                chosen = bucket
                left -= 0.5 ** (bucket - near)
                if left < 0:
                    break
        pool = buckets[chosen]
        other = pool[min(int(second * len(pool)), len(pool) - 1)]
        remove(other)
        partner[i], partner[other] = other, i
    return np.array(partner, dtype=np.int64)


@kernel("int64[::1](float64[::1], float64[::1], int64)", twin=_bucket_partners)
def bucket_partners(bucket_draws: Real, draws: Real, width: int) -> Int:
    """Every still unswapped rank swaps with one of its own bucket of `width` ranks or of a higher one.

    The bucket s steps away has a probability proportional to 2^-s among those with an unswapped rank; within it the
    unswapped ranks are equally likely.
    """
    n = draws.size
    count = (n + width - 1) // width
    partner = np.arange(n)
    pool = np.arange(n)
    place = np.arange(n)
    sizes = np.full(count, width, dtype=np.int64)
    if count:
        sizes[count - 1] = n - (count - 1) * width
    nearest = 0
    for i in range(n):
        if place[i] < 0:
            continue
        own = i // width
        sizes[own] -= 1
        last = pool[own * width + sizes[own]]
        pool[place[i]] = last
        place[last] = place[i]
        place[i] = -1
        nearest = max(nearest, own)
        while nearest < count and sizes[nearest] == 0:
            nearest += 1
        if nearest == count:
            continue
        end = min(nearest + _FAR, count)
        total, weight = 0.0, 1.0
        for bucket in range(nearest, end):
            if sizes[bucket] > 0:
                total += weight
            weight *= 0.5
        left = bucket_draws[i] * total
        chosen, weight = nearest, 1.0
        for bucket in range(nearest, end):
            if sizes[bucket] > 0:
                chosen = bucket
                left -= weight
                if left < 0:
                    break
            weight *= 0.5
        other = pool[chosen * width + min(int(draws[i] * sizes[chosen]), sizes[chosen] - 1)]
        sizes[chosen] -= 1
        last = pool[chosen * width + sizes[chosen]]
        pool[place[other]] = last
        place[last] = place[other]
        place[other] = -1
        partner[i] = other
        partner[other] = i
    return partner
