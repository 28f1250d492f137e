"""Distance to the closest record: do released rows lie suspiciously near to original people?

Needs no knowledge of which row came from whom, so it also judges synthetic data, which are not automatically safe. A released
row is too close when its nearest original is nearer than the originals usually are to each other. Park, Mohammadi, Gorde,
Jajodia, Park, Kim, "Data synthesis based on generative adversarial networks", PVLDB 11(10), 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError
from sfumato.core.ranges import Probability
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, as_masked, sides
from sfumato.data.microdata import Microdata
from sfumato.data.records import NumberColumn, Records
from sfumato.kernels.linkage.points import PointTree
from sfumato.measures.parameters import ComparedColumns
from sfumato.measures.risk.linkage.spaces import LinkageDistance, LinkageSpace, space_of
from sfumato.measures.risk.success import GROUPS, LeftOut

Real = NDArray[np.float64]
Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

_TOLERANCE = 1e-9
#: Neighbours kept for those who remain without their nearest.
_NEIGHBOURS = 4
#: With fewer originals below it the threshold is too much a matter of chance for an interval.
_FEWEST = 10


@dataclass(frozen=True)
class NearestRecord(Measure[Microdata, Compared]):
    """Share of released rows that point at a person: copies of an original, or nearer to one than originals usually are to
    each other.

    A copy counts as 1/(originals it equals), so an unmasked table reaches what linkage reaches. Another row counts when its
    nearest original is nearer than `quantile` of the originals are to their nearest other one. The floor is what the
    originals reach when each is taken as a released row and compared with the others, so what new people from the same
    population would reach. The interval leaves out groups of people in turn, with all that depends on them: threshold, floor and
    neighbours; with fewer than 10/`quantile` people (200 by default) or 40 rows there is none. `distance` and `columns` as in
    `DistanceLinkage`. Parts: the share of exact copies, the threshold
    and the median distances.

    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> NearestRecord().score(people, people).parts["exact copies"]
    1.0
    """

    quantile: Annotated[Probability, "the share of originals whose distance to the nearest other one makes the threshold"] = 0.05
    distance: LinkageDistance = "auto"
    columns: ComparedColumns = None
    key: ClassVar[str] = "nearest_record"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The share."""
        masked = as_masked(released, original)
        left, right = sides(original, masked, self.columns)
        if left.size < 2:
            raise InputError("the distance between originals needs at least two original records")
        space = space_of(left, right, self.distance)
        near = Neighbours.of(space, *_cells(left, right))
        among, distances = near.among[:, 0], near.distances[:, 0]
        threshold, credits, by_chance = self._judged(among, near.twins, distances, near.copied)
        parts = {
            "exact copies": float(np.mean(near.copied > 0)),
            "median distance": float(np.median(distances)),
            "median distance among originals": float(np.median(among)),
            "threshold": threshold,
        }
        meaning = "share of released rows that are copies of a person or nearer to one than people are to each other"
        value = min(float(credits.mean()), 1.0)
        return Score(
            self.key,
            value,
            "lower",
            meaning,
            MappingProxyType(parts),
            floor=min(float(by_chance.mean()), 1.0),
            interval=self._interval(value, near, masked.rows),
        )

    def _judged(self, among: Real, twins: Int, distances: Real, copied: Int) -> tuple[float, Real, Real]:
        """The threshold, and how surely each released row and each original, taken as one, points at a person."""
        threshold = float(np.quantile(among, self.quantile, method="inverted_cdf"))
        return threshold, pointing(distances, copied, threshold), pointing(among, twins - 1, threshold)

    def _interval(self, value: float, near: Neighbours, rows: Int | None) -> tuple[float, float] | None:
        """By leaving out groups of people with their rows; None where too few people make the threshold, or too few rows the
        share."""
        people, released = near.among.shape[0], near.distances.shape[0]
        if people * self.quantile < _FEWEST or released < 2 * GROUPS:
            return None
        of_person = LeftOut.of(people, most=people)
        of_row = LeftOut.of(released, most=released).group if rows is None else of_person.group[rows]
        rates, floors = [], []
        for group in range(GROUPS):
            if (of_row == group).all():
                return None
            _, credits, by_chance = self._judged(*near.without(of_person.group == group, of_row == group))
            rates.append(min(float(credits.mean()), 1.0))
            floors.append(min(float(by_chance.mean()), 1.0))
        return of_person.interval(value, rates, floors)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """From each original the distances to the nearest others, and from each released row those to the nearest originals, with
    who these are (nearest first); the cell of each original and released row: equal rows have the same."""

    among: Real
    others: Int
    distances: Real
    nearest: Int
    original: Int
    released: Int

    @classmethod
    def of(cls, space: LinkageSpace, original: Int, released: Int) -> Neighbours:
        tree = PointTree(space.original, space.metric)
        sums, near = tree.closest(space.released, _NEIGHBOURS)
        among, others = _to_others(space.original, tree, _NEIGHBOURS)
        return cls(among, others, space.metric.distances(sums), near, original, released)

    @cached_property
    def counts(self) -> Int:
        """Originals per cell."""
        return np.bincount(self.original, minlength=int(max(self.original.max(), self.released.max())) + 1)

    @property
    def twins(self) -> Int:
        """How many originals each original equals, itself among them."""
        return self.counts[self.original]

    @property
    def copied(self) -> Int:
        """How many originals each released row equals."""
        return self.counts[self.released]

    def without(self, people: Bool, rows: Bool) -> tuple[Real, Int, Real, Int]:
        """Distances and equal originals of the other originals, and of the other released rows, where these people and rows
        are left out. Where all neighbours that are known are among them, the farthest of these counts."""
        counts = self.counts - np.bincount(self.original[people], minlength=self.counts.size)
        return (
            _nearest_left(self.among[~people], self.others[~people], people),
            counts[self.original[~people]],
            _nearest_left(self.distances[~rows], self.nearest[~rows], people),
            counts[self.released[~rows]],
        )


def _nearest_left(distances: Real, near: Int, gone: Bool) -> Real:
    """The distance to the first neighbour that is not gone."""
    here = (near >= 0) & ~gone[near]
    last = np.maximum((near >= 0).sum(axis=1) - 1, 0)
    first = np.where(here.any(axis=1), here.argmax(axis=1), last)
    left: Real = distances[np.arange(first.size), first]
    return left


def pointing(distances: Real, equal: Int, threshold: float) -> Real:
    """Per row how surely it points at a person: 1/(originals it equals) for a copy, else 1 below the threshold."""
    return np.where(equal > 0, 1.0 / np.maximum(equal, 1), (distances < threshold * (1.0 - _TOLERANCE)).astype(np.float64))


def _to_others(points: Real, tree: PointTree, count: int) -> tuple[Real, Int]:
    """From each point the distances to the nearest other ones, and which these are (in the order of the rows)."""
    sums, near = tree.closest(points[tree.order], count + 1)
    own = near == tree.order[:, None]
    own[~own.any(axis=1), -1] = True  # among so many equal points that it is not itself listed
    others = np.empty((near.shape[0], count), dtype=np.int64)
    distances = np.empty(others.shape)
    others[tree.order] = near[~own].reshape(-1, count)
    distances[tree.order] = tree.metric.distances(sums[~own].reshape(-1, count))
    return distances, others


def _cells(original: Records, released: Records) -> tuple[Int, Int]:
    """The cell of each original and of each released row: rows equal value for value have the same (missing values equal each
    other)."""
    both = np.vstack([_as_numbers(original), _as_numbers(released)])
    rows = np.ascontiguousarray(both).view(np.dtype((np.void, both.dtype.itemsize * both.shape[1]))).ravel()
    place = np.unique(rows, return_inverse=True)[1].reshape(-1)
    return place[: original.size], place[original.size :]


def _as_numbers(records: Records) -> Real:
    columns = [
        column.values if isinstance(column, NumberColumn) else column.codes.astype(np.float64) for column in records.columns
    ]
    matrix: Real = np.nan_to_num(np.column_stack(columns), nan=-np.finfo(np.float64).max)
    return matrix + 0.0  # no negative zero
