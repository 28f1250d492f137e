"""Linkage of two files of records: who is nearest to whom, exactly, with ties shared, in memory linear in the records.

A difference of two records is a sum over coordinates: squared or absolute differences of numbers, a cost for unequal
categories, and a neutral term where a coordinate is missing on either side. Two differences are tied when they agree within one
part in 10⁹ (`TOLERANCE`) of what the known coordinates add; all are added up in the same order of coordinates, so that equal
records tie exactly.
Domingo-Ferrer, Torra, "A quantitative comparison of disclosure control methods for microdata", in: Confidentiality,
disclosure and data access, North-Holland 2001.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.kernels.linkage.closest import closest
from sfumato.kernels.linkage.tree import ABSOLUTE, CATEGORY, SQUARED, Nodes, grow_tree, rank_within

Real = NDArray[np.float64]
Int = NDArray[np.int64]

TOLERANCE = 1e-9
#: What rounding may do to a sum, as a share of it.
_ROUNDING = 1e-14
_LEAF = 64


@dataclass(frozen=True, eq=False)
class Metric:
    """How records differ, coordinate by coordinate.

    `kinds` are SQUARED, ABSOLUTE or CATEGORY (codes as floats; `costs` where they are unequal); `neutral` is what a coordinate
    contributes that is missing (NaN) on either side. The distance is the sum, or its square root with `root`.
    """

    kinds: Int = field(repr=False)
    costs: Real = field(repr=False)
    neutral: Real = field(repr=False)
    root: bool = False

    @classmethod
    def euclidean(cls, width: int, neutral: float = 2.0) -> Metric:
        """Squared differences; 2 is what two independent values of a standardised column differ by on average."""
        return cls(np.full(width, SQUARED, dtype=np.int64), np.ones(width), np.full(width, neutral), root=True)

    @classmethod
    def unequal(cls, costs: ArrayLike) -> Metric:
        """Categories alone: the sum of the costs of those that differ; what is missing equals nothing."""
        weights = np.asarray(costs, dtype=np.float64)
        return cls(np.full(weights.size, CATEGORY, dtype=np.int64), weights, weights.copy())

    @property
    def width(self) -> int:
        """How many coordinates."""
        return int(self.kinds.size)

    def sums(self, left: Real, right: Real) -> Real:
        """The sum of differences between row i of one side and row i of the other."""
        return self._added(left, right)[0]

    def sums_with_slack(self, left: Real, right: Real) -> tuple[Real, Real]:
        """The sums, and by how much another sum may differ to be tied: neutral terms do not widen it, they are in all sums."""
        total, guessed = self._added(left, right)
        return total, TOLERANCE * np.maximum(total - guessed, 0.0) + _ROUNDING * total

    def _added(self, left: Real, right: Real) -> tuple[Real, Real]:
        """Sums of all terms, and of the neutral ones."""
        total, guessed = np.zeros(left.shape[0]), np.zeros(left.shape[0])
        for j in range(self.width):
            term = left[:, j] - right[:, j]
            unknown = np.isnan(term)
            if self.kinds[j] == SQUARED:
                term *= term
            elif self.kinds[j] == ABSOLUTE:
                np.abs(term, out=term)
            else:
                term = np.where(term == 0.0, 0.0, self.costs[j])
            if unknown.any():
                term[unknown] = self.neutral[j]
                guessed[unknown] += self.neutral[j]
            total += term
        return total, guessed

    def distances(self, sums: Real) -> Real:
        """Distances behind sums of differences."""
        return np.asarray(np.sqrt(sums)) if self.root else sums


class PointTree:
    """Points in a k-d tree, to be asked many times. `sums` are sums of differences, before a root is taken."""

    def __init__(self, points: ArrayLike, metric: Metric | None = None) -> None:
        matrix = _matrix(points)
        self.metric = metric if metric is not None else Metric.euclidean(matrix.shape[1])
        if matrix.shape[1] != self.metric.width:
            raise ValueError("points and metric have different numbers of coordinates")
        self.nodes: Nodes = grow_tree(matrix, self.metric.kinds, _LEAF)
        self.size = int(matrix.shape[0])
        #: Positions of the points in the order of the tree; asking in this order is fastest.
        self.order: Int = self.nodes[0]
        self._held = np.ascontiguousarray(matrix[self.order].T)

    def closest(self, queries: ArrayLike, count: int = 1) -> tuple[Real, Int]:
        """The `count` nearest points of each query, by sum and then by position: sums and positions, two matrices.

        Where there are fewer points, infinity and -1 fill the rows.
        """
        limits = np.full(np.shape(queries)[0], np.inf)
        nothing, flat = np.zeros(self.size), np.zeros(self.nodes[1].size)
        return self._sought(queries, limits, count, False, nothing, flat)

    def discounted(self, queries: ArrayLike, limits: Real, discounts: Real, count: int = 1) -> tuple[Real, Int]:
        """As `closest`, by the distance less the discount of each point, and only what is less than the query's limit."""
        ranked = np.ascontiguousarray(discounts[self.order])
        ends = np.stack([self.nodes[1], self.nodes[2]], axis=1).reshape(-1)
        peaks = np.maximum.reduceat(np.append(ranked, -np.inf), ends)[::2]
        return self._sought(queries, np.ascontiguousarray(limits), count, self.metric.root, ranked, np.ascontiguousarray(peaks))

    def _sought(self, queries: ArrayLike, limits: Real, count: int, root: bool, discounts: Real, peaks: Real) -> tuple[Real, Int]:
        matrix, metric = self._asked(queries), self.metric
        return closest(
            matrix,
            limits,
            count,
            root,
            self._held,
            discounts,
            peaks,
            self.nodes,
            metric.kinds,
            metric.costs,
            metric.neutral,
        )

    def ranked(self, queries: ArrayLike, limits: Real, slacks: Real | None = None) -> tuple[NDArray[np.bool_], Int]:
        """Whether some point is closer to a query than its limit (a sum), and where none is, how many are at the limit.

        `slacks` say how far from the limit a sum may be to be at it; by default one part in 10⁹.
        """
        matrix = self._asked(queries)
        metric = self.metric
        limits = np.ascontiguousarray(limits)
        slacks = TOLERANCE * limits if slacks is None else np.ascontiguousarray(slacks)
        slacks = np.where(np.isfinite(limits), slacks, 0.0)
        closer, tied = rank_within(matrix, limits, slacks, self._held, self.nodes, metric.kinds, metric.costs, metric.neutral)
        return closer > 0, tied

    def _asked(self, queries: ArrayLike) -> Real:
        matrix = _matrix(queries)
        if matrix.shape[1] != self.metric.width:
            raise ValueError("queries and points have different numbers of coordinates")
        return matrix


def nearest(queries: ArrayLike, points: ArrayLike, metric: Metric | None = None) -> tuple[Real, Int, Int]:
    """Per query: the distance of the nearest point, the position of the first such point, and how many points tie with it.

    Without points the distance is infinite, the position -1 and nothing ties.
    """
    tree = PointTree(points, metric)
    sums, positions = tree.closest(queries, 1)
    if not tree.size:
        return tree.metric.distances(sums[:, 0]), positions[:, 0], np.zeros(sums.shape[0], dtype=np.int64)
    limits, slacks = tree.metric.sums_with_slack(_matrix(queries), _matrix(points)[positions[:, 0]])
    _, tied = tree.ranked(queries, limits, slacks)
    return tree.metric.distances(sums[:, 0]), positions[:, 0], tied


def own_is_nearest(
    originals: ArrayLike, masked: ArrayLike, metric: Metric | None = None, owner: Int | None = None, slack: float | None = None
) -> Real:
    """Row i of both files is one person: the share of the own among the points tied where no masked record is closer to the
    original than the nearest own one, else 0.

    `owner` says whose a row is where somebody has several, with the same original: all of them are the own. `slack` replaces
    the tolerance of ties. The mean is the expected share of rows whose person an intruder with the originals links correctly.
    """
    left, right = _matrix(originals), _matrix(masked)
    if left.shape != right.shape:
        raise ValueError("the files must have the same shape: row i of both is one person")
    tree = PointTree(right, metric)
    sums, slacks = tree.metric.sums_with_slack(left, right)
    if slack is not None:
        slacks = np.full(sums.size, slack)
    asking = tree.order
    if owner is not None:
        people, of_row = np.unique(owner, return_inverse=True)
        of_row = of_row.reshape(-1)
        best = np.full(people.size, np.inf)
        np.minimum.at(best, of_row, sums)
        own = np.bincount(of_row, sums <= best[of_row] + slacks, minlength=people.size)[of_row]
        # everybody asks once, with the nearest own row; neighbours one after the other
        asking = asking[sums[asking] <= best[of_row[asking]]]
        asking = asking[np.sort(np.unique(of_row[asking], return_index=True)[1])]
    closer, tied = tree.ranked(left[asking], sums[asking], slacks[asking])
    credit = np.empty(left.shape[0])
    credit[asking] = np.where(closer, 0.0, 1.0 / np.maximum(tied, 1))
    if owner is not None:
        credit = np.minimum(credit[asking][np.argsort(of_row[asking])][of_row] * own, 1.0)
    return credit


def _matrix(values: ArrayLike) -> Real:
    matrix = np.ascontiguousarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError("records are a matrix: one row per record, one column per coordinate")
    return matrix
