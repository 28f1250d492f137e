"""t-closeness where a distance is a mean over partitions of the values: equal and hierarchical distances.

Like the other checks (see `checks`), it gives 0 for a class that keeps the promise, otherwise a lower bound on the records that
any finer partition must suppress.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.classes.checks import SLACK
from sfumato.kernels.compiled import kernel

Int = NDArray[np.int64]
Real = NDArray[np.float64]
_NEWTON = 3  # steps of Newton's method: nearly always enough
_FLAT = 1e-5  # slopes below this are no divisors
_ABOVE = 1.0 + 1e-9  # more than the rounding error of a zero
_CLEARLY = 1e-9  # more than the rounding error of a sum
_LANES = 64  # classes looked at side by side: a processor adds up for eight of them at once, and all fit into its first cache


def _closeness_numpy(totals: Int, start: int, width: int, group_of: Int, shares: Real, t: float, need: Int) -> Int:
    levels, groups = group_of.shape[0], shares.size
    looked_at = np.flatnonzero((need == 0) & (totals[:, start : start + width].sum(axis=1) > 0))
    counts = totals[looked_at, start : start + width].astype(np.float64)
    grouped = np.zeros((counts.shape[0], groups))
    for level in range(levels):
        np.add.at(grouped.T, group_of[level], counts.T)
    records = counts.sum(axis=1)
    limit = (t + SLACK) * levels
    failing = np.maximum(shares * records[:, None] - grouped, 0.0).sum(axis=1) > limit * records
    grouped, records, looked_at = grouped[failing], records[failing], looked_at[failing]
    nothing = ((grouped == 0) * shares).sum(axis=1) > limit + _CLEARLY
    high = records.copy()
    for _ in range(_NEWTON):
        short = shares * high[:, None] > grouped
        slope = (short * shares).sum(axis=1) - limit
        crossing = (short * grouped).sum(axis=1) / np.where(slope > _FLAT, slope, 1.0)
        high = np.where((slope > _FLAT) & (crossing < high), crossing, high)
    gone = np.maximum(np.ceil(records - high * _ABOVE - 1e-6), 1.0)
    need[looked_at] = np.where(nothing, records, gone).astype(np.int64)
    return need


@kernel("int64[::1](count[:,::1], int64, int64, int64[:,::1], float64[::1], float64, int64[::1])", twin=_closeness_numpy)
def closeness(totals: Int, start: int, width: int, group_of: Int, shares: Real, t: float, need: Int) -> Int:
    """Mean over levels of the variational distance of a partition of the values is above t.

    One level of singletons is the equal-distance earth mover's distance, the levels of a hierarchy the hierarchical
    one. `group_of[level, value]` numbers the groups of all levels; `shares[group]` is the reference share. Classes
    whose `need` is not 0 are passed over; the others get theirs there. It is fastest where group and value have the same number
    on the first level.
    """
    levels = group_of.shape[0]
    groups = shares.size
    listed = 1  # levels from here on add up values; before it each value is a group
    for value in range(width):
        if group_of[0, value] != value:
            listed = 0
    values = 0 if listed == 1 else groups  # where the counts of the values stand, below the groups unless they are groups
    shown = np.zeros((values + max(groups, width), _LANES), dtype=np.float64)
    rows = np.zeros(_LANES, dtype=np.int64)
    records = np.zeros(_LANES, dtype=np.float64)
    slope = np.zeros(_LANES, dtype=np.float64)  # share of the groups that are short of records
    present = np.zeros(_LANES, dtype=np.float64)
    absent = np.zeros(_LANES, dtype=np.float64)
    high = np.zeros(_LANES, dtype=np.float64)
    going = np.zeros(_LANES, dtype=np.bool_)
    lasting = np.zeros(_LANES, dtype=np.bool_)
    limit = (t + SLACK) * levels
    row = 0
    while row < totals.shape[0]:
        filled = 0
        while row < totals.shape[0] and filled < _LANES:
            rows[filled] = row
            filled += 1 if need[row] == 0 else 0
            row += 1
        for value in range(width):
            for lane in range(filled):
                shown[values + value, lane] = totals[rows[lane], start + value]
        # lanes that are not filled hold earlier classes: loops of one length are the fastest
        for lane in range(_LANES):
            records[lane] = 0.0
            slope[lane] = 0.0
            present[lane] = 0.0
            absent[lane] = 0.0
        for value in range(values, values + width):
            for lane in range(_LANES):
                records[lane] += shown[value, lane]
        for group in range(width * listed, groups):
            for lane in range(_LANES):
                shown[group, lane] = 0.0
        for level in range(listed, levels):
            for value in range(width):
                group = group_of[level, value]
                for lane in range(_LANES):
                    shown[group, lane] += shown[values + value, lane]
        for group in range(groups):
            share = shares[group]
            for lane in range(_LANES):
                count = shown[group, lane]
                short = share * records[lane] > count
                slope[lane] += share if short else 0.0
                present[lane] += count if short else 0.0
                absent[lane] += share if count == 0.0 else 0.0
        failing = 0
        for lane in range(_LANES):
            size = records[lane]
            fails = lane < filled and slope[lane] * size - present[lane] > limit * size
            nothing = absent[lane] > limit + _CLEARLY  # whatever is kept lacks too much
            if fails and nothing:
                need[rows[lane]] = int(size)
            high[lane] = size
            going[lane] = fails and not nothing
            failing += 1 if going[lane] else 0
            lasting[lane] = going[lane]
        # what is missing, less what may be missing, is convex in the size: Newton's steps come down to its zero from above
        for _ in range(_NEWTON if failing else 0):
            moving = 0
            for lane in range(_LANES):
                rise = slope[lane] - limit
                moves = going[lane] and rise > _FLAT and present[lane] < high[lane] * rise
                high[lane] = present[lane] / (rise if moves else 1.0) if moves else high[lane]
                going[lane] = moves
                moving += 1 if moves else 0
                slope[lane] = 0.0
                present[lane] = 0.0
            if moving == 0:
                break
            for group in range(groups):
                share = shares[group]
                for lane in range(_LANES):
                    count = shown[group, lane]
                    short = share * high[lane] > count
                    slope[lane] += share if short else 0.0
                    present[lane] += count if short else 0.0
        for lane in range(filled if failing else 0):
            if lasting[lane]:
                need[rows[lane]] = max(1, math.ceil(records[lane] - high[lane] * _ABOVE - 1e-6))
    return need
