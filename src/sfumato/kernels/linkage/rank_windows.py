"""Candidates by rank windows: the records whose masked value lies near enough, attribute by attribute, to a person's value.

Each attribute gives an interval of ranks; the shortest one is walked and its records are checked against the others, so that
memory is linear. Nin, Herranz, Torra, "Rethinking rank swapping to decrease disclosure risk", Data and Knowledge Engineering 64,
2008.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Real = NDArray[np.float64]
Int = NDArray[np.int64]


def ranked(values: Real) -> tuple[Int, Int, int]:
    """Rows by value (missing values last), the place of each row, and how many values are known."""
    order = np.argsort(values, kind="stable").astype(np.int64)
    place = np.empty(values.size, dtype=np.int64)
    place[order] = np.arange(values.size)
    return order, place, int(np.count_nonzero(~np.isnan(values)))


def windows(values: Real, released: Real, reach: int) -> tuple[Int, Int]:
    """The places in the sorted released column that a person's value may have been swapped to, as half-open intervals.

    Equal values have no order among them, so an interval takes in all that equal its ends. A missing value may be anywhere.
    """
    present = np.sort(released[~np.isnan(released)])
    low, high = np.zeros(values.size, dtype=np.int64), np.full(values.size, present.size, dtype=np.int64)
    there = ~np.isnan(values)
    if present.size and there.any():
        first = np.searchsorted(present, values[there], side="left") - reach
        last = np.searchsorted(present, values[there], side="right") - 1 + reach
        low[there] = np.searchsorted(present, present[np.clip(first, 0, present.size - 1)], side="left")
        high[there] = np.searchsorted(present, present[np.clip(last, 0, present.size - 1)], side="right")
    return low, high


def _candidates_numpy(orders: Int, places: Int, present: Int, low: Int, high: Int, owner: Int, mine: Int) -> tuple[Int, Int]:
    count, own = np.zeros(mine.size, dtype=np.int64), np.zeros(mine.size, dtype=np.int64)
    for person in range(mine.size):
        walked = int(np.argmin(high[person] - low[person] - present))
        rows = np.concatenate([orders[walked, low[person, walked] : high[person, walked]], orders[walked, present[walked] :]])
        there = places[:, rows]
        missing = there >= present[:, None]
        fits = (missing | ((there >= low[person][:, None]) & (there < high[person][:, None]))).all(axis=0)
        count[person] = np.count_nonzero(fits)
        own[person] = np.count_nonzero(fits & (owner[rows] == mine[person]))
    return count, own


@kernel(
    "Tuple((int64[::1], int64[::1]))(int64[:,::1], int64[:,::1], int64[::1], int64[:,::1], int64[:,::1], int64[::1], int64[::1])",
    twin=_candidates_numpy,
)
def candidates(orders: Int, places: Int, present: Int, low: Int, high: Int, owner: Int, mine: Int) -> tuple[Int, Int]:
    """Per person, how many records lie in all windows, and how many of these are the own: `owner` says whose a record is, `mine`
    which owner a person is (-1: nobody in the release).

    `orders[a]` are the rows by attribute a, `places[a]` the place of each row, `known[a]` how many have a value: a record with
    a missing value is never excluded by it. `low` and `high` have one row per person and one column per attribute.
    """
    people, attributes = low.shape
    count = np.zeros(people, dtype=np.int64)
    own = np.zeros(people, dtype=np.int64)
    for person in range(people):
        walked = 0
        shortest = np.int64(1) << 60
        for a in range(attributes):
            length = high[person, a] - low[person, a] - present[a]
            if length < shortest:
                shortest = length
                walked = a
        width = high[person, walked] - low[person, walked]
        for step in range(width + orders.shape[1] - present[walked]):
            place = low[person, walked] + step if step < width else present[walked] + step - width
            row = orders[walked, place]
            fits = True
            for a in range(attributes):
                if a == walked:
                    continue
                there = places[a, row]
                if there < present[a] and (there < low[person, a] or there >= high[person, a]):
                    fits = False
                    break
            if fits:
                count[person] += 1
                if owner[row] == mine[person]:
                    own[person] += 1
    return count, own
