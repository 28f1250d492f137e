"""How often the pairs of two files agree, pattern by pattern, without looking at a pair.

Pairs that agree at least on a set of columns are counted by class sizes (records of one file times records of the other in each class);
inclusion and exclusion over the sets gives the pairs that agree exactly there. Work is linear in the records for each of the
2^d sets, memory linear in the records.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.grouping import group_columns, group_keys

Int = NDArray[np.int64]
Codes = NDArray[np.int32]


def agreement_counts(left: Sequence[Codes], right: Sequence[Codes]) -> Int:
    """Pairs (a record of each file) by agreement pattern: bit c of a pattern says that column c agrees.

    Columns are codes of one labelling for both files; a negative code is missing and agrees with nothing.
    """
    columns = [np.concatenate([a, b]) for a, b in zip(left, right, strict=True)]
    if not columns:
        raise ValueError("counting agreements needs at least one column")
    widths = [int(codes.max(initial=0)) + 1 for codes in columns]
    # equal records are counted once, with their number on either side
    numbers, first = group_columns([codes + 1 for codes in columns], [width + 1 for width in widths])
    ours = np.bincount(numbers[: left[0].size], minlength=first.size)
    theirs = np.bincount(numbers[left[0].size :], minlength=first.size)
    distinct = [codes[first].astype(np.int64) for codes in columns]
    counts = np.zeros(1 << len(columns), dtype=np.int64)
    counts[0] = left[0].size * right[0].size

    def extend(pattern: int, start: int, rows: Int, classes: Int) -> None:
        """Count every set that adds columns from `start` on to those of the pattern."""
        for column in range(start, len(columns)):
            codes = distinct[column][rows]
            known = codes >= 0
            kept = rows[known]
            finer, groups = group_keys(np.ascontiguousarray(classes[known] * widths[column] + codes[known]))
            a = np.bincount(finer, weights=ours[kept], minlength=groups.size).astype(np.int64)
            b = np.bincount(finer, weights=theirs[kept], minlength=groups.size).astype(np.int64)
            counts[pattern | 1 << column] = int(a @ b)
            # a class that has records of one file only has no pair, and no finer class of it has one
            both = ((a > 0) & (b > 0))[finer]
            if both.any():
                extend(pattern | 1 << column, column + 1, kept[both], finer[both])

    everything = np.arange(first.size, dtype=np.int64)
    extend(0, 0, everything, np.zeros(first.size, dtype=np.int64))
    return _exactly(counts, len(columns))


def _exactly(at_least: Int, columns: int) -> Int:
    """Counts of sets that agree at least there, turned into counts that agree exactly there."""
    cube = at_least.reshape((2,) * columns).copy()
    for axis in range(columns):
        without, with_it = [slice(None)] * columns, [slice(None)] * columns
        without[axis], with_it[axis] = slice(0, 1), slice(1, 2)
        cube[tuple(without)] -= cube[tuple(with_it)]
    return cube.reshape(-1)
