"""Agreement of the pairs of two files, without looking at a pair: counts by pattern, and who agrees best with whom.

Pairs that agree at least on a set of columns are counted by class sizes (records of one file times records of the other in each
class); inclusion and exclusion over the sets gives the pairs that agree exactly there. Work is at most linear in the records for
each of the 2^d sets, and sets on which no pair agrees are never refined; memory is linear in the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.classes.grouping import group_columns, group_keys

Int = NDArray[np.int64]
Real = NDArray[np.float64]
Codes = NDArray[np.int32]

#: Sums of weights are tied when they differ by no more than this share of the sum over all columns.
TOLERANCE = 1e-9


def agreement_counts(left: Sequence[Codes], right: Sequence[Codes]) -> Int:
    """Pairs (a record of each file) by agreement pattern: bit c of a pattern says that column c agrees.

    Columns are codes of one labelling for both files; a negative code is missing and agrees with nothing.
    """
    files = _Distinct.of(left, right)
    columns = len(files.columns)
    at_least = np.zeros(1 << columns, dtype=np.int64)
    at_least[0] = left[0].size * right[0].size

    def refine(pattern: int, start: int, rows: Int, classes: Int) -> None:
        for column in range(start, columns):
            kept, finer, ours, theirs = files.refined(rows, classes, column)
            at_least[pattern | 1 << column] = int(ours @ theirs)
            # a class that has records of one file only has no pair, and no finer class of it has one
            both = ((ours > 0) & (theirs > 0))[finer]
            if both.any():
                refine(pattern | 1 << column, column + 1, kept[both], finer[both])

    refine(0, 0, *files.everything())
    return _exactly(at_least, columns)


def best_agreement(left: Sequence[Codes], right: Sequence[Codes], weights: Real) -> tuple[Real, Int]:
    """Per record of the first file: the largest sum of weights of agreeing columns that a record of the second reaches, and
    how many reach it.

    `weights` are positive; a column that weighs no more than the tolerance of ties is left out. A record that agrees with another
    on a set of columns reaches at least their sum, so the best sum is the largest over the sets on which it has a partner, and
    its partners there are those that reach it.
    """
    order = np.argsort(-weights, kind="stable")  # heavy columns first: a good partner is found early and prunes the rest
    order = order[weights[order] > TOLERANCE * float(weights.sum())]
    files = _Distinct.of([left[c] for c in order], [right[c] for c in order])
    ordered = weights[order]
    rest = np.append(np.cumsum(ordered[::-1])[::-1], 0.0)
    slack = TOLERANCE * float(rest[0])
    best = np.zeros(files.ours.size)
    reached = np.full(files.ours.size, right[0].size, dtype=np.int64)

    def refine(weight: float, start: int, rows: Int, classes: Int) -> None:
        for column in range(start, ordered.size):
            hopeful = weight + rest[column] >= best[rows] - slack
            useful = np.zeros(int(classes.max(initial=0)) + 1, dtype=np.bool_)
            useful[classes[hopeful & (files.ours[rows] > 0)]] = True
            keep = useful[classes]
            if not keep.any():
                return
            rows, classes = rows[keep], classes[keep]
            kept, finer, ours, theirs = files.refined(rows, classes, column)
            both = ((ours > 0) & (theirs > 0))[finer]
            if not both.any():
                continue
            kept, finer, total = kept[both], finer[both], weight + float(ordered[column])
            better = total > best[kept] + slack
            equal = ~better & (total >= best[kept] - slack)
            reached[kept[better]] = theirs[finer[better]]
            reached[kept[equal]] += theirs[finer[equal]]
            best[kept[better]] = total
            refine(total, column + 1, kept, finer)

    refine(0.0, 0, *files.everything())
    return best[files.of_left], reached[files.of_left]


@dataclass(frozen=True, eq=False)
class _Distinct:
    """The different records of two files, with their number in either."""

    columns: list[Int] = field(repr=False)
    widths: list[int] = field(repr=False)
    ours: Int = field(repr=False)
    theirs: Int = field(repr=False)
    of_left: Int = field(repr=False)

    @classmethod
    def of(cls, left: Sequence[Codes], right: Sequence[Codes]) -> _Distinct:
        columns = [np.concatenate([a, b]) for a, b in zip(left, right, strict=True)]
        if not columns:
            raise ValueError("agreement needs at least one column")
        widths = [int(codes.max(initial=0)) + 1 for codes in columns]
        # a missing code is one more value here; it is told apart when columns are refined
        numbers, first = group_columns([codes + 1 for codes in columns], [width + 1 for width in widths])
        size = left[0].size
        ours = np.bincount(numbers[:size], minlength=first.size).astype(np.int64)
        theirs = np.bincount(numbers[size:], minlength=first.size).astype(np.int64)
        return cls([codes[first].astype(np.int64) for codes in columns], widths, ours, theirs, numbers[:size])

    def everything(self) -> tuple[Int, Int]:
        """All records in one class."""
        return np.arange(self.ours.size, dtype=np.int64), np.zeros(self.ours.size, dtype=np.int64)

    def refined(self, rows: Int, classes: Int, column: int) -> tuple[Int, Int, Int, Int]:
        """The rows that know the column, their classes when it has to agree too, and both files' records per class."""
        codes = self.columns[column][rows]
        present = codes >= 0
        kept = rows[present]
        finer, groups = group_keys(np.ascontiguousarray(classes[present] * self.widths[column] + codes[present]))
        ours = np.bincount(finer, weights=self.ours[kept], minlength=groups.size).astype(np.int64)
        theirs = np.bincount(finer, weights=self.theirs[kept], minlength=groups.size).astype(np.int64)
        return kept, finer, ours, theirs


def _exactly(at_least: Int, columns: int) -> Int:
    """Counts of sets that agree at least there, turned into counts that agree exactly there."""
    cube = at_least.reshape((2,) * columns).copy()
    for axis in range(columns):
        without, with_it = [slice(None)] * columns, [slice(None)] * columns
        without[axis], with_it[axis] = slice(0, 1), slice(1, 2)
        cube[tuple(without)] -= cube[tuple(with_it)]
    return cube.reshape(-1)
