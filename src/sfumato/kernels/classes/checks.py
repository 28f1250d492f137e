"""Class checks on histograms: does a class keep a promise, and if not, how many of its records must go at least?

Every check returns one number per class: 0 when the class keeps the promise; otherwise a lower bound on the number
of its records that any finer partition must suppress. The bound rests on monotonicity: parts of a class that keep
the promise also keep it together, so the kept records of a failing class form a sub-multiset that keeps it; the
largest such sub-multiset is found in closed form or by bisection. It lets a search cut whole regions of a lattice
by score.

`totals` has one row per class; `start` and `width` select the histogram columns; column 0 holds the records.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Int = NDArray[np.int64]
Real = NDArray[np.float64]
SLACK = 1e-12
_STEPS = 6  # of a bisection: each halves the slack of a bound
#: c · tail is rounded; a tie must fail, so the product is lowered by more than its rounding error
_BELOW = 1.0 - 2.0**-51


def _too_few_numpy(totals: Int, column: int, k: int) -> Int:
    return np.where(totals[:, column] < k, totals[:, 0].astype(np.int64), 0)


@kernel("int64[::1](count[:,::1], int64, int64)", twin=_too_few_numpy)
def too_few(totals: Int, column: int, k: int) -> Int:
    """Fewer than k in a column (units, population): all records of the class must go."""
    need = np.zeros(totals.shape[0], dtype=np.int64)
    for row in range(totals.shape[0]):
        if totals[row, column] < k:
            need[row] = totals[row, 0]
    return need


def _keep_enough_numpy(totals: Int, fewest: int, need: Int) -> Int:
    np.copyto(need, totals[:, 0], where=(need > 0) & (totals[:, 0] - need < fewest))
    return need


@kernel("int64[::1](count[:,::1], int64, int64[::1])", twin=_keep_enough_numpy)
def keep_enough(totals: Int, fewest: int, need: Int) -> Int:
    """Classes that could keep some records but fewer than `fewest` lose all of them; `need` is changed in place."""
    for row in range(totals.shape[0]):
        if need[row] > 0 and totals[row, 0] - need[row] < fewest:
            need[row] = totals[row, 0]
    return need


def _distinct_numpy(totals: Int, start: int, width: int, alone: int, least: int) -> Int:
    end = start + width
    values = (totals[:, start : end - alone] > 0).sum(axis=1) + totals[:, end - alone : end].sum(axis=1)
    return np.where(values < least, totals[:, 0].astype(np.int64), 0)


@kernel("int64[::1](count[:,::1], int64, int64, int64, int64)", twin=_distinct_numpy)
def distinct(totals: Int, start: int, width: int, alone: int, least: int) -> Int:
    """Fewer than `least` different values: no part has more, so all records must go. The last `alone` columns, none or one, count
    records whose value nobody else has."""
    need = np.zeros(totals.shape[0], dtype=np.int64)
    end = start + width
    for row in range(totals.shape[0]):
        values = 0
        for column in range(start, end - alone):
            if totals[row, column] > 0:
                values += 1
        for column in range(end - alone, end):
            values += totals[row, column]
        if values < least:
            need[row] = totals[row, 0]
    return need


def _entropy_numpy(totals: Int, start: int, width: int, least: float) -> Int:
    counts = totals[:, start : start + width].astype(np.float64)
    records = counts.sum(axis=1)
    threshold = math.log(least)
    failing = (records > 0) & (_plain_entropies(counts) < threshold)
    need = np.zeros(totals.shape[0], dtype=np.int64)
    if not failing.any():
        return need
    chosen = counts[failing]
    possible = np.log(np.maximum((chosen > 0).sum(axis=1), 1)) >= threshold
    high = chosen.max(axis=1)
    low = np.zeros(chosen.shape[0])
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        fails = _entropies(np.minimum(chosen, middle[:, None])) < threshold - 1e-9
        high = np.where(fails, middle, high)
        low = np.where(fails, low, middle)
    kept = np.minimum(chosen, high[:, None]).sum(axis=1)
    gone = np.maximum(np.ceil(chosen.sum(axis=1) - kept - 1e-9), 1.0)
    need[failing] = np.where(possible, gone, chosen.sum(axis=1)).astype(np.int64)
    return need


def _plain_entropies(counts: Real) -> Real:
    share = counts / np.maximum(counts.sum(axis=1), 1e-300)[:, None]
    # vectorised logarithms differ in the last bit, which decides ties
    different, place = np.unique(np.where(share > 0, share, 1.0), return_inverse=True)
    terms = share * np.array([math.log(value) for value in different])[place].reshape(share.shape)
    return np.asarray(-sum((terms[:, value] for value in range(terms.shape[1])), np.zeros(terms.shape[0])))


def _entropies(counts: Real) -> Real:
    totals = np.maximum(counts.sum(axis=1), 1e-300)
    logs = np.log(np.where(counts > 0, counts, 1.0))
    return np.asarray(np.log(totals) - (counts * logs).sum(axis=1) / totals)


@kernel("int64[::1](count[:,::1], int64, int64, float64)", twin=_entropy_numpy)
def entropy(totals: Int, start: int, width: int, least: float) -> Int:
    """Entropy below ln(least). The most even part of a given size is the class with its counts cut at a level.

    The comparison is the plain one of -Σ p ln p in floating point, without slack: a class that is uniform over
    exactly `least` values may be rejected by the last bit, never a worse one accepted.
    """
    need = np.zeros(totals.shape[0], dtype=np.int64)
    threshold = math.log(least)
    for row in range(totals.shape[0]):
        records = 0.0
        values = 0
        high = 0.0
        for column in range(start, start + width):
            count = float(totals[row, column])
            if count > 0:
                records += count
                values += 1
                high = max(high, count)
        if records == 0:
            continue
        information = 0.0
        for column in range(start, start + width):
            if totals[row, column] > 0:
                share = totals[row, column] / records
                information += share * math.log(share)
        if -information >= threshold:
            continue
        if math.log(values) < threshold:
            need[row] = totals[row, 0]
            continue
        low = 0.0
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            kept = 0.0
            weighted = 0.0
            for column in range(start, start + width):
                count = min(float(totals[row, column]), middle)
                if count > 0:
                    kept += count
                    weighted += count * math.log(count)
            if kept > 0 and math.log(kept) - weighted / kept < threshold - 1e-9:
                high = middle
            else:
                low = middle
        kept = 0.0
        for column in range(start, start + width):
            kept += min(float(totals[row, column]), high)
        need[row] = max(1, math.ceil(records - kept - 1e-9))
    return need


def _recursive_numpy(totals: Int, start: int, width: int, c: float, least: int) -> Int:
    counts = totals[:, start : start + width]
    ranked = -np.sort(-counts, axis=1)
    tail = ranked[:, least - 1 :].sum(axis=1) if least <= width else np.zeros(counts.shape[0], dtype=np.int64)
    limit = c * tail * _BELOW
    failing = (totals[:, 0] > 0) & ~(ranked[:, 0] < limit) if width else totals[:, 0] > 0
    cap = np.ceil(c * tail) - 1.0
    excess = np.maximum(counts - cap[:, None], 0).sum(axis=1)
    gone = np.where(tail > 0, np.maximum(excess, 1), totals[:, 0])
    return np.where(failing, gone, 0).astype(np.int64)


@kernel("int64[::1](count[:,::1], int64, int64, float64, int64)", twin=_recursive_numpy)
def recursive(totals: Int, start: int, width: int, c: float, least: int) -> Int:
    """The largest count is not below c times the tail. A part has no larger tail, so every count must shrink below c
    times this one."""
    need = np.zeros(totals.shape[0], dtype=np.int64)
    ranked = np.empty(width, dtype=np.int64)
    for row in range(totals.shape[0]):
        if totals[row, 0] == 0:
            continue
        for column in range(width):
            count = totals[row, start + column]
            place = column
            while place > 0 and ranked[place - 1] < count:
                ranked[place] = ranked[place - 1]
                place -= 1
            ranked[place] = count
        tail = 0
        for column in range(least - 1, width):
            tail += ranked[column]
        if tail > 0 and ranked[0] < c * tail * _BELOW:
            continue
        if tail == 0:
            need[row] = totals[row, 0]
            continue
        cap = math.ceil(c * tail) - 1
        excess = 0
        for column in range(width):
            if ranked[column] > cap:
                excess += ranked[column] - cap
        need[row] = max(1, excess)
    return need


def _ordered_numpy(totals: Int, start: int, width: int, shares: Real, t: float) -> Int:
    counts = totals[:, start : start + width].astype(np.float64)
    records = counts.sum(axis=1)
    below = np.cumsum(counts, axis=1)[:, :-1]
    reference = np.cumsum(shares)[:-1]

    def distance(rows: NDArray[np.bool_], kept: Real) -> Real:
        left = reference - below[rows] / kept[:, None]
        right = (1.0 - reference) - (records[rows][:, None] - below[rows]) / kept[:, None]
        return np.asarray((np.maximum(left, 0.0) + np.maximum(right, 0.0)).sum(axis=1) / max(width - 1, 1))

    need = np.zeros(totals.shape[0], dtype=np.int64)
    some = records > 0
    failing = some.copy()
    failing[some] = distance(some, records[some]) > t + SLACK
    if failing.any():
        high, low = records[failing], np.zeros(int(failing.sum()))
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            fails = distance(failing, middle) > t + SLACK
            high, low = np.where(fails, middle, high), np.where(fails, low, middle)
        need[failing] = np.maximum(np.ceil(records[failing] - high - 1e-9), 1.0).astype(np.int64)
    return need


@kernel("int64[::1](count[:,::1], int64, int64, float64[::1], float64)", twin=_ordered_numpy)
def ordered_closeness(totals: Int, start: int, width: int, shares: Real, t: float) -> Int:
    """Ordered earth mover's distance above t: the mean variational distance of the m - 1 cuts "up to i" and "above i"."""
    rows = totals.shape[0]
    need = np.zeros(rows, dtype=np.int64)
    limit = (t + SLACK) * max(width - 1, 1)
    for row in range(rows):
        records = 0.0
        for value in range(width):
            records += float(totals[row, start + value])
        if records == 0.0:
            continue
        low = 0.0
        high = records
        kept = records
        failing = False
        for step in range(_STEPS + 1):
            distance = 0.0
            below = 0.0
            reference = 0.0
            for value in range(width - 1):
                below += float(totals[row, start + value])
                reference += shares[value]
                left = reference - below / kept
                right = (1.0 - reference) - (records - below) / kept
                if left > 0.0:
                    distance += left
                if right > 0.0:
                    distance += right
            if distance > limit:
                high = kept
                failing = True
            elif step == 0:
                break
            else:
                low = kept
            kept = 0.5 * (low + high)
        if failing:
            need[row] = max(1, math.ceil(records - high - 1e-9))
    return need


def _shares_numpy(totals: Int, start: int, width: int, low: Real, high: Real, strict: int) -> Int:
    counts = totals[:, start : start + width].astype(np.float64)
    records = counts.sum(axis=1)
    share = counts / np.maximum(records, 1.0)[:, None]
    if strict:
        broken = (share <= low) & (low >= 0) | (share >= high) & (high <= 1)
    else:
        broken = (share < low - SLACK) | (share > high + SLACK)
    failing = (records > 0) & broken.any(axis=1)
    most, fewest = high + SLACK, low - SLACK
    room = np.where(most < 1.0, 1.0 - most, 1.0)
    excess = np.where(most < 1.0, (counts - most * records[:, None]) / room, 0.0).max(axis=1, initial=0.0)
    positive = np.where(fewest > 0.0, fewest, 1.0)
    short = np.where(fewest > 0.0, records[:, None] - counts / positive, 0.0).max(axis=1, initial=0.0)
    gone = np.maximum(np.ceil(np.maximum(excess, short) - 1e-6), 1.0)
    return np.where(failing, gone, 0.0).astype(np.int64)


@kernel("int64[::1](count[:,::1], int64, int64, float64[::1], float64[::1], int64)", twin=_shares_numpy)
def shares_outside(totals: Int, start: int, width: int, low: Real, high: Real, strict: int) -> Int:
    """Some value's share leaves [low, high] (or the open interval when `strict`); low < 0 and high > 1 bound nothing."""
    rows = totals.shape[0]
    need = np.zeros(rows, dtype=np.int64)
    for row in range(rows):
        records = 0.0
        for value in range(width):
            records += float(totals[row, start + value])
        if records == 0.0:
            continue
        failing = False
        gone = 0.0
        for value in range(width):
            count = float(totals[row, start + value])
            share = count / records
            if strict:
                if (share <= low[value] and low[value] >= 0) or (share >= high[value] and high[value] <= 1):
                    failing = True
            elif share < low[value] - SLACK or share > high[value] + SLACK:
                failing = True
            most = high[value] + SLACK
            fewest = low[value] - SLACK
            if most < 1.0:
                gone = max(gone, (count - most * records) / (1.0 - most))
            if fewest > 0.0:
                gone = max(gone, records - count / fewest)
        if failing:
            need[row] = max(1, math.ceil(gone - 1e-6))
    return need


def divergence(totals: Int, start: int, width: int, shares: Real, t: float) -> Int:
    """Kullback-Leibler divergence of the class from the reference above t; at least one record must go."""
    counts = totals[:, start : start + width].astype(np.float64)
    records = np.maximum(counts.sum(axis=1), 1.0)
    share = counts / records[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(share > 0, share * np.log(share / shares), 0.0)
    return np.where((totals[:, 0] > 0) & (terms.sum(axis=1) > t + SLACK), 1, 0).astype(np.int64)
