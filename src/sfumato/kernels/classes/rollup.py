"""Roll-ups: the classes of a more general node from the classes of a less general one.

A class is a packed 64-bit key with one bit field per attribute, a count of records and units, people in the
population, and a histogram of sensitive values. Generalising one attribute changes one field (`key ^
change[field]`); equal keys are then added up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Int = NDArray[np.int64]
Real = NDArray[np.float64]


def _roll_up_numpy(keys: Int, totals: Int, shift: int, mask: int, change: Int) -> tuple[Int, Int]:
    generalised = keys ^ change[(keys >> shift) & mask]
    merged, inverse = np.unique(generalised, return_inverse=True)
    summed = np.zeros((merged.size, totals.shape[1]), dtype=totals.dtype)
    np.add.at(summed, inverse.reshape(-1), totals)
    return merged, summed


@kernel("Tuple((int64[::1], count[:,::1]))(int64[::1], count[:,::1], int64, int64, int64[::1])", twin=_roll_up_numpy)
def roll_up(keys: Int, totals: Int, shift: int, mask: int, change: Int) -> tuple[Int, Int]:
    """Generalise one field of the keys and add up the columns of `totals` over equal keys."""
    rows = keys.size
    columns = totals.shape[1]
    bits = 4
    while (1 << bits) < 2 * rows:
        bits += 1
    wrap = (1 << bits) - 1
    slots = np.full(1 << bits, -1, dtype=np.int32)
    merged = np.empty(rows, dtype=np.int64)
    summed = np.empty((rows, columns), dtype=totals.dtype)
    groups = 0
    for row in range(rows):
        key = keys[row] ^ change[(keys[row] >> shift) & mask]
        mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64(mixed >> np.uint64(64 - bits)) & wrap
        while True:
            group = slots[slot]
            if group < 0:
                slots[slot] = groups
                merged[groups] = key
                for column in range(columns):
                    summed[groups, column] = totals[row, column]
                groups += 1
                break
            if merged[group] == key:
                for column in range(columns):
                    summed[group, column] += totals[row, column]
                break
            slot = (slot + 1) & wrap
    return merged[:groups].copy(), summed[:groups].copy()


def _class_losses_numpy(keys: Int, shifts: Int, masks: Int, starts: Int, losses: Real) -> Real:
    total = np.zeros(keys.size)
    for shift, mask, start in zip(shifts, masks, starts, strict=True):
        total += losses[start + ((keys >> shift) & mask)]
    return total


@kernel("float64[::1](int64[::1], int64[::1], int64[::1], int64[::1], float64[::1])", twin=_class_losses_numpy)
def class_losses(keys: Int, shifts: Int, masks: Int, starts: Int, losses: Real) -> Real:
    """Weighted loss of a record in each class: attribute a reads `losses[starts[a] + field a]`."""
    total = np.zeros(keys.size, dtype=np.float64)
    for row in range(keys.size):
        for attribute in range(shifts.size):
            total[row] += losses[starts[attribute] + ((keys[row] >> shifts[attribute]) & masks[attribute])]
    return total


def _small_classes_numpy(
    keys: Int, totals: Int, units: int, k: int, shifts: Int, masks: Int, starts: Int, losses: Real
) -> tuple[int, int, float]:
    small = (totals[:, units] < k) & (totals[:, 0] > 0)
    loss = _class_losses_numpy(keys[small], shifts, masks, starts, losses)
    records = totals[small, 0]
    kept = int(((totals[:, 0] > 0) & ~small).sum())
    return int(records.sum()), kept, float((records * (1.0 - loss)).sum())


@kernel(
    "Tuple((int64, int64, float64))(int64[::1], count[:,::1], int64, int64, int64[::1], int64[::1], int64[::1], float64[::1])",
    twin=_small_classes_numpy,
)
def small_classes(
    keys: Int, totals: Int, units: int, k: int, shifts: Int, masks: Int, starts: Int, losses: Real
) -> tuple[int, int, float]:
    """Classes with fewer than k units (column `units`): their records, the number of the other classes, and what
    suppressing them adds to the loss."""
    suppressed = 0
    kept = 0
    penalty = 0.0
    for row in range(keys.size):
        records = totals[row, 0]
        if records == 0:
            continue
        if totals[row, units] >= k:
            kept += 1
            continue
        suppressed += records
        loss = 0.0
        for attribute in range(shifts.size):
            loss += losses[starts[attribute] + ((keys[row] >> shifts[attribute]) & masks[attribute])]
        penalty += records * (1.0 - loss)
    return suppressed, kept, penalty


def _failing_classes_numpy(
    keys: Int, totals: Int, need: Int, shifts: Int, masks: Int, starts: Int, losses: Real
) -> tuple[int, int, float, int, float]:
    failing = np.flatnonzero(need)
    spared = 1.0 - _class_losses_numpy(keys[failing], shifts, masks, starts, losses)
    gone = totals[failing, 0]
    least = np.maximum(need[failing], 0)
    kept = int((totals[:, 0] > 0).sum()) - int((gone > 0).sum())
    penalty = float((gone * spared).sum())
    return int(gone.sum()), kept, penalty, int(least.sum()), float((np.minimum(least, gone) * spared).sum())


@kernel(
    "Tuple((int64, int64, float64, int64, float64))"
    "(int64[::1], count[:,::1], int64[::1], int64[::1], int64[::1], int64[::1], float64[::1])",
    twin=_failing_classes_numpy,
)
def failing_classes(
    keys: Int, totals: Int, need: Int, shifts: Int, masks: Int, starts: Int, losses: Real
) -> tuple[int, int, float, int, float]:
    """Failing classes (need not 0): their records, the number of the other classes, what suppressing them adds to
    the loss, and lower bounds of records and added loss for every less general node.
    """
    suppressed = 0
    kept = 0
    penalty = 0.0
    least_suppressed = 0
    least_penalty = 0.0
    for row in range(keys.size):
        records = totals[row, 0]
        if need[row] == 0:
            if records > 0:
                kept += 1
            continue
        loss = 0.0
        for attribute in range(shifts.size):
            loss += losses[starts[attribute] + ((keys[row] >> shifts[attribute]) & masks[attribute])]
        suppressed += records
        penalty += records * (1.0 - loss)
        least = max(need[row], 0)
        least_suppressed += least
        least_penalty += min(least, records) * (1.0 - loss)
    return suppressed, kept, penalty, least_suppressed, least_penalty


def _add_up_numpy(numbers: Int, totals: Int, groups: int) -> Int:
    summed = np.zeros((groups, totals.shape[1]), dtype=totals.dtype)
    np.add.at(summed, numbers, totals)
    return summed


@kernel("count[:,::1](int64[::1], count[:,::1], int64)", twin=_add_up_numpy)
def add_up(numbers: Int, totals: Int, groups: int) -> Int:
    """The columns of `totals` added up over rows with the same number."""
    summed = np.zeros((groups, totals.shape[1]), dtype=totals.dtype)
    for row in range(numbers.size):
        group = numbers[row]
        for column in range(totals.shape[1]):
            summed[group, column] += totals[row, column]
    return summed
