"""Records as points that are taken away cluster by cluster, numbers alone or numbers and categories.

Numbers alone lie in blocks with boxes around them, so that most searches look at few of them; with categories every search
computes all distances. Both answer the same questions with the same ties (the lowest row), and need memory linear in the
records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel
from sfumato.kernels.microaggregation.blocks import farthest_in_blocks, nearest_in_blocks, remove_from_blocks
from sfumato.kernels.microaggregation.order import farthest_in_shell, spatial_order

Int = NDArray[np.int64]
Int32 = NDArray[np.int32]
Real = NDArray[np.float64]

#: Records of a block and blocks of a group.
_BLOCK, _FAN = 32, 32
#: Below so many records it is not worth laying them out anew.
_SMALL = 2048
#: From so many neighbours on it is faster to sort all distances than to keep a sorted list.
_MANY = 4096
#: Relative to the largest coordinate: above the rounding error of a radius or of a centroid's move.
_SLACK = 1e-12


class Unassigned(Protocol):
    """Records without a cluster."""

    size: int

    def rows(self) -> Int:
        """All of them, ascending."""

    def farthest_from_centroid(self) -> int:
        """The one farthest from the centroid of those that are left."""

    def farthest_from(self, row: int) -> int:
        """The one farthest from a record, which may be gone already."""

    def nearest(self, row: int, count: int) -> Int:
        """The record and the next ones to it, nearest first; without the record itself where it is gone already."""

    def remove(self, rows: Int) -> None:
        """Take these away."""


class UnassignedNumbers:
    """Records of numbers without a cluster, in blocks with tight boxes around those that are left."""

    def __init__(self, points: Real) -> None:
        self.size = points.shape[0]
        self._points = points
        self._live = np.ones(self.size, dtype=np.bool_)
        self._place = np.zeros(self.size, dtype=np.int64)
        self._slack = _SLACK * float(np.abs(points).max(initial=0.0))
        self._outermost = self._looked = 0
        self._lay_out()
        self._anchor()

    def rows(self) -> Int:
        """All that are left, ascending."""
        return np.flatnonzero(self._live)

    def farthest_from_centroid(self) -> int:
        """The one farthest from the centroid: the centroid moves slowly, so few of the outermost need a look."""
        if self._looked > 10 * self.size:
            self._anchor()
        centroid = self._total / self.size
        moved = float(np.sqrt(((centroid - self._centre) ** 2).sum())) + self._slack
        row, self._outermost, seen = farthest_in_shell(
            centroid, moved, self._outermost, self._points, self._inward, self._reach, self._live
        )
        self._looked += seen
        return row

    def farthest_from(self, row: int) -> int:
        """The one farthest from a record."""
        return farthest_in_blocks(self._points[row], self._rows, self._blocks, self._leaves, self._radii, self._groups)

    def nearest(self, row: int, count: int) -> Int:
        """The record and the next ones to it; a gone record only tells where to look."""
        own = row if self._live[row] else -1
        if count > _MANY:
            return self._sorted_by_distance(row, own)[:count]
        start = int(self._place[row]) // _BLOCK
        return nearest_in_blocks(self._points[row], count, own, start, self._rows, self._blocks, self._leaves, self._groups)

    def remove(self, rows: Int) -> None:
        """Take these away; when half of the records laid out are gone, the rest is laid out anew."""
        remove_from_blocks(rows, self._place, self._slack, self._blocks, self._leaves, self._radii, self._groups)
        self._live[rows] = False
        self._total -= self._points[rows].sum(axis=0)
        self.size -= rows.size
        if _SMALL < self.size < self._laid_out // 2:
            self._lay_out()

    def _sorted_by_distance(self, row: int, own: int) -> Int:
        rows = self.rows()
        distances = np.zeros(rows.size)
        for a in range(self._points.shape[1]):
            distances += (self._points[rows, a] - self._points[row, a]) ** 2
        distances[rows == own] = -1.0
        return rows[np.argsort(distances, kind="stable")]

    def _anchor(self) -> None:
        """Order the records by their distance from the present centroid, and add them up anew against drifting sums."""
        rows = self.rows()
        self._total = self._points[rows].sum(axis=0)
        self._centre = self._total / max(self.size, 1)
        reach = np.sqrt(((self._points[rows] - self._centre) ** 2).sum(axis=1))
        order = np.argsort(-reach, kind="stable")
        self._inward, self._reach = rows[order], reach[order]
        self._outermost = self._looked = 0

    def _lay_out(self) -> None:
        rows = self.rows()
        order = rows[spatial_order(self._points[rows], _BLOCK)]
        groups = max(-(-rows.size // (_BLOCK * _FAN)), 1)
        attributes = self._points.shape[1]
        slots = np.full((groups * _FAN * _BLOCK, attributes), np.nan)
        slots[: rows.size] = self._points[order]
        self._rows = np.full(slots.shape[0], -1, dtype=np.int64)
        self._rows[: rows.size] = order
        # a record that was taken away before keeps its place as a hint where to look; it may lie anywhere
        self._place[self._place >= slots.shape[0]] = 0
        self._place[order] = np.arange(rows.size)
        self._blocks = np.ascontiguousarray(slots.reshape(groups * _FAN, _BLOCK, attributes).transpose(0, 2, 1))
        self._leaves, self._radii, self._groups = _bounds(self._blocks, self._slack)
        self._laid_out = rows.size


def _bounds(blocks: Real, slack: float) -> tuple[Real, Real, Real]:
    """Boxes and balls of blocks, boxes of groups; NaN where nothing lives."""
    groups, attributes = blocks.shape[0] // _FAN, blocks.shape[1]
    living = np.count_nonzero(~np.isnan(blocks[:, 0, :]), axis=1) if attributes else np.zeros(blocks.shape[0])
    with np.errstate(invalid="ignore"):
        low, high = np.fmin.reduce(blocks, axis=2), np.fmax.reduce(blocks, axis=2)
        centre = np.nansum(blocks, axis=2) / np.maximum(living, 1)[:, None]
        off = np.zeros((blocks.shape[0], _BLOCK))
        for a in range(attributes):
            off += (blocks[:, a, :] - centre[:, a, None]) ** 2
        radii = np.sqrt(np.fmax.reduce(off, axis=1)) + slack
        leaves = np.stack([low, high, centre]).reshape(3, groups, _FAN, attributes).transpose(1, 0, 3, 2)
        outer = np.stack([np.fmin.reduce(leaves[:, 0], axis=2).T, np.fmax.reduce(leaves[:, 1], axis=2).T])
    return np.ascontiguousarray(leaves), np.ascontiguousarray(radii.reshape(groups, _FAN)), np.ascontiguousarray(outer)


class UnassignedMixed:
    """Records of numbers and categories without a cluster, in order of their rows."""

    def __init__(self, numbers: Real, codes: Int32, levels: tuple[Int32, ...]) -> None:
        self.size = numbers.shape[0]
        self._numbers, self._codes, self._levels = numbers, codes, levels
        sizes = [tree.shape[1] for tree in levels]
        self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])[:-1].astype(np.int64)
        self._total = numbers.sum(axis=0)
        self._counts = [np.bincount(codes[c], minlength=size).astype(np.float64) for c, size in enumerate(sizes)]
        self._live = np.ones(self.size, dtype=np.bool_)
        self._compact(np.arange(self.size))

    def rows(self) -> Int:
        """All that are left, ascending."""
        return np.flatnonzero(self._live)

    def farthest_from_centroid(self) -> int:
        """The one farthest from the means and the central categories of those that are left."""
        categories = [central_category(tree, counts) for tree, counts in zip(self._levels, self._counts, strict=True)]
        return self._farthest(self._total / self.size, categories)

    def farthest_from(self, row: int) -> int:
        """The one farthest from a record."""
        return self._farthest(self._numbers[row], self._codes[:, row].tolist())

    def nearest(self, row: int, count: int) -> Int:
        """The record and the next ones to it."""
        distances = self._distances(self._numbers[row], self._codes[:, row].tolist())
        distances[~self._live[self._there]] = np.inf
        if self._live[row]:
            distances[np.searchsorted(self._there, row)] = -1.0
        count = min(count, self.size)
        limit = np.partition(distances, count - 1)[count - 1] if count else -np.inf
        near = np.flatnonzero(distances <= limit)
        nearest: Int = self._there[near[np.argsort(distances[near], kind="stable")[:count]]]
        return nearest

    def remove(self, rows: Int) -> None:
        """Take these away; when half of the records held are gone, the rest is copied together."""
        self._live[rows] = False
        self._total -= self._numbers[rows].sum(axis=0)
        for c, counts in enumerate(self._counts):
            np.subtract.at(counts, self._codes[c, rows], 1.0)
        self.size -= rows.size
        if self.size < self._there.size // 2:
            self._compact(self.rows())

    def _compact(self, rows: Int) -> None:
        self._there = rows
        self._held = np.ascontiguousarray(self._numbers[rows].T), np.ascontiguousarray(self._codes[:, rows])

    def _farthest(self, point: Real, categories: list[int]) -> int:
        distances = self._distances(point, categories)
        distances[~self._live[self._there]] = -1.0
        return int(self._there[np.argmax(distances)]) if self.size else -1

    def _distances(self, point: Real, categories: list[int]) -> Real:
        tables = [category_distances(tree, code) ** 2 for tree, code in zip(self._levels, categories, strict=True)]
        return mixed_distances(point, *self._held, np.concatenate([*tables, [0.0]]), self._starts)


@dataclass(frozen=True, eq=False)
class Centres:
    """The centroids of clusters: means, and central categories."""

    numbers: Real
    codes: Int32


@dataclass(frozen=True, eq=False)
class Space:
    """Records as points: `numbers[record, attribute]`, `codes[category, record]`, and for each category the nodes of its
    `levels[level, code]` without the root."""

    numbers: Real
    codes: Int32
    levels: tuple[Int32, ...]

    @classmethod
    def of_numbers(cls, numbers: Real) -> Space:
        """Points of numbers alone."""
        return cls(np.ascontiguousarray(numbers, dtype=np.float64), np.zeros((0, numbers.shape[0]), dtype=np.int32), ())

    @property
    def size(self) -> int:
        """How many records there are."""
        return int(self.numbers.shape[0])

    def unassigned(self) -> Unassigned:
        """All records, to be taken away."""
        if self.levels or not self.numbers.shape[1]:
            return UnassignedMixed(self.numbers, self.codes, self.levels)
        return UnassignedNumbers(self.numbers)

    def centres(self, labels: Int, count: int) -> Centres:
        """The centroid of each cluster."""
        sizes = np.bincount(labels, minlength=count)
        sums = [np.bincount(labels, weights=column, minlength=count) for column in self.numbers.T]
        means = np.stack(sums, axis=1) / sizes[:, None] if sums else np.zeros((count, 0))
        chosen = [central_codes(codes, tree, labels, count) for codes, tree in zip(self.codes, self.levels, strict=True)]
        return Centres(means, np.stack(chosen) if chosen else np.zeros((0, count), dtype=np.int32))

    def to_centres(self, row: int, centres: Centres) -> Real:
        """Squared distances from a record to centroids."""
        tables = [category_distances(tree, int(codes[row])) for tree, codes in zip(self.levels, self.codes, strict=True)]
        total = np.zeros(centres.numbers.shape[0])
        for a in range(self.numbers.shape[1]):
            total += (centres.numbers[:, a] - self.numbers[row, a]) ** 2
        for table, codes in zip(tables, centres.codes, strict=True):
            total += table[codes] ** 2
        return total

    def distance(self, one: int, other: int) -> float:
        """The distance of two records."""
        total = float(((self.numbers[one] - self.numbers[other]) ** 2).sum())
        for tree, codes in zip(self.levels, self.codes, strict=True):
            total += float((tree[:, codes[one]] != tree[:, codes[other]]).mean()) ** 2
        return math.sqrt(total)

    def squared_error(self, labels: Int, count: int) -> float:
        """The sum of squared distances from the records to the centroids of their clusters."""
        centres = self.centres(labels, count)
        total = float(((self.numbers - centres.numbers[labels]) ** 2).sum())
        for tree, codes, chosen in zip(self.levels, self.codes, centres.codes, strict=True):
            total += float(((tree[:, codes] != tree[:, chosen[labels]]).mean(axis=0) ** 2).sum())
        return total


def central_codes(codes: Int32, levels: Int32, labels: Int, count: int) -> Int32:
    """The category of each cluster with the least sum of distances to its records; the lowest code of several."""
    shared = np.zeros(codes.size, dtype=np.int64)
    for nodes in levels:
        key = labels * (int(nodes.max()) + 1) + nodes[codes]
        _, inverse, together = np.unique(key, return_inverse=True, return_counts=True)
        shared += together[inverse.reshape(-1)]
    order = np.lexsort((codes, -shared, labels))
    first = order[np.searchsorted(labels[order], np.arange(count))]
    chosen: Int32 = codes[first]
    return chosen


def _mixed_distances_numpy(point: Real, numbers: Real, codes: Int32, tables: Real, starts: Int) -> Real:
    total = np.zeros(numbers.shape[1])
    for a in range(numbers.shape[0]):
        total += (numbers[a] - point[a]) ** 2
    for c in range(codes.shape[0]):
        total += tables[starts[c] + codes[c]]
    return total


@kernel("float64[::1](float64[::1], float64[:,::1], int32[:,::1], float64[::1], int64[::1])", twin=_mixed_distances_numpy)
def mixed_distances(point: Real, numbers: Real, codes: Int32, tables: Real, starts: Int) -> Real:
    """Squared distances from a point to records given attribute by attribute.

    `numbers[a]` and `codes[c]` are the attributes; `tables[starts[c] + code]` is what category `code` of attribute c adds.
    """
    total = np.zeros(numbers.shape[1])
    for a in range(numbers.shape[0]):
        for i in range(total.size):
            off = numbers[a, i] - point[a]
            total[i] += off * off
    for c in range(codes.shape[0]):
        for i in range(total.size):
            total[i] += tables[starts[c] + codes[c, i]]
    return total


def category_distances(levels: Int32, code: int) -> Real:
    """Distances from one category to all: the share of levels at which their nodes differ.

    `levels[level, category]` is the node above a category, level 0 the category itself; the root is left out.
    """
    distances: Real = (levels != levels[:, code, None]).mean(axis=0)
    return distances


def central_category(levels: Int32, counts: Real) -> int:
    """The category with the least sum of distances to so many records of each category; the first of several."""
    total = np.zeros(levels.shape[1])
    for nodes in levels:
        below = np.bincount(nodes, weights=counts, minlength=int(nodes.max()) + 1)
        total += counts.sum() - below[nodes]
    return int(np.argmin(total))
