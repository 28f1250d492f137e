"""Grouping of coded rows: which rows are equal, and where each group appears first.

Codes of several columns are packed into one 64-bit key; where they need more than 63 bits, a prefix of columns is
replaced by its group number first, which is exact for any number of columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Int = NDArray[np.int64]


def group_columns(columns: Sequence[NDArray[np.int32]], cardinalities: Sequence[int]) -> tuple[Int, Int]:
    """Group numbers per row, counted by first appearance, and the first row of each group.

    `columns[c]` holds codes in [0, cardinalities[c]). Without rows there is no group.
    """
    if not columns:
        raise ValueError("grouping needs at least one column")
    rows = columns[0].size
    key = np.zeros(rows, dtype=np.int64)
    room = 1
    for codes, cardinality in zip(columns, cardinalities, strict=True):
        width = max(int(cardinality), 1)
        if room * width >= 2**62:
            numbers, first = group_keys(key)
            key, room = numbers, max(first.size, 1)
        key = key * width + codes if room > 1 else codes.astype(np.int64)
        room *= width
    return group_keys(np.ascontiguousarray(key))


def _group_keys_numpy(keys: Int) -> tuple[Int, Int]:
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    return rank[inverse.reshape(-1)], first[order].astype(np.int64)


@kernel("Tuple((int64[::1], int64[::1]))(int64[::1])", twin=_group_keys_numpy)
def group_keys(keys: Int) -> tuple[Int, Int]:
    """Number equal keys by first appearance: open addressing with linear probing."""
    rows = keys.size
    bits = 4
    while (1 << bits) < 2 * rows:
        bits += 1
    mask = (1 << bits) - 1
    slots = np.full(1 << bits, -1, dtype=np.int32)
    numbers = np.empty(rows, dtype=np.int64)
    first = np.empty(rows, dtype=np.int64)
    groups = 0
    for row in range(rows):
        key = keys[row]
        mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64(mixed >> np.uint64(64 - bits)) & mask
        while True:
            group = slots[slot]
            if group < 0:
                slots[slot] = groups
                first[groups] = row
                numbers[row] = groups
                groups += 1
                break
            if keys[first[group]] == key:
                numbers[row] = group
                break
            slot = (slot + 1) & mask
    return numbers, first[:groups].copy()
