"""One-to-one record linkage: every original gets a masked record of its own, at the least total distance.

An intruder who knows that both files hold the same people does better than by nearest neighbours alone. Only near candidates
are priced; a row whose price could be undercut by a record left out gets more candidates, until no such row is left, so the
total is the least of all assignments. Domingo-Ferrer, Muralidhar, "New directions in anonymization: permutation paradigm,
verifiability by subjects and intruders, transparency to users", Information Sciences 337-338, 2016; Herranz, Nin,
Rodríguez, Tassa, "Revisiting distance-based record linkage for privacy-preserving release of statistical datasets", Data and
Knowledge Engineering 100, 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.randomness import StreamRandomness
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, aligned, as_masked
from sfumato.data.microdata import Microdata
from sfumato.kernels.linkage.assignment import assign
from sfumato.kernels.linkage.points import PointTree
from sfumato.kernels.sampling.draws import Draws
from sfumato.measures.parameters import ComparedColumns
from sfumato.measures.risk.linkage.linked import linked_score, owners_of, with_assumption, with_classes
from sfumato.measures.risk.linkage.spaces import LinkageDistance, LinkageSpace, space_of

Real = NDArray[np.float64]
Int = NDArray[np.int64]

#: Candidates of every record to begin with, and at most as many more in every round.
_FIRST, _MORE = 8, 8
_ROUNDING = 1e-9


@dataclass(frozen=True)
class AssignmentLinkage(Measure[Microdata, Compared]):
    """Share of masked records that the assignment of least total distance gives back to their person.

    Equal masked records (a microaggregated class) are one choice, shared among them, and so are people with equal originals.
    Where several assignments have the same total for other reasons, one of them counts, found from the values alone with
    records in a random order of fixed seed: who stands behind a row plays no part. A record that was published several times is
    in the intruder's file as often, and found when it gets any of its rows. Against an intruder who holds the original values
    of everybody in the release. `distance` and `columns` as in `DistanceLinkage`; a bare table is taken to stand in the order
    of the original. Parts: the mean distance of the assignment, and the mean number of candidates that proving it took. The
    assignment does not depend on who stands behind a row, so that the floor is exactly 1/(masked records).

    >>> people = sf.read(sf.data.sample_table(200), schema=sf.data.sample_schema())
    >>> AssignmentLinkage(columns=("age", "income")).score(people, people).better
    'lower'
    """

    distance: LinkageDistance = "auto"
    columns: ComparedColumns = None
    key: ClassVar[str] = "assignment_linkage"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The share."""
        masked = as_masked(released, original)
        left, right = aligned(original, masked, self.columns)
        owner = owners_of(masked)
        expected = assigned(space_of(left, right, self.distance), owner)
        parts = {"mean distance": expected.total / right.size, "candidates": expected.candidates}
        meaning = "share of people whom the one-to-one assignment of least total distance gives away"
        credit = with_classes(expected.credits, masked, left.names)
        return linked_score(self.key, credit, owner, with_assumption(meaning, released), parts)


@dataclass(frozen=True, eq=False)
class Assigned:
    """The least total distance, each record's chance of having got its own masked record, and candidates per record."""

    total: float
    credits: Real = field(repr=False)
    candidates: float


def assigned(space: LinkageSpace, owner: Int | None = None) -> Assigned:
    """The assignment of least total distance between aligned files; row i of both is one person, `owner` says who where somebody
    has several rows."""
    total, held, candidates = _least(space)
    places, own = _different(space.released)
    _, group = _different(space.original)
    # of the rows of a group, so many got each place: all rows and all masked records there are equally likely to be the ones
    wide = places.shape[0]
    pairs, times = np.unique(group * wide + held, return_counts=True)
    at = np.minimum(np.searchsorted(pairs, group * wide + own), pairs.size - 1)
    hits = np.where(pairs[at] == group * wide + own, times[at], 0)
    credits = hits / (np.bincount(group)[group] * np.bincount(own)[own])
    if owner is not None:
        of_row = np.unique(owner, return_inverse=True)[1].reshape(-1)
        credits = np.bincount(of_row, credits)[of_row]
    return Assigned(total, np.minimum(credits, 1.0), candidates)


def _least(space: LinkageSpace) -> tuple[float, Int, float]:
    """The least total, the place (number of the different masked record) that each original gets, and candidates per record.

    Nothing here knows which rows belong together.
    """
    rows, metric = space.original.shape[0], space.metric
    draws = Draws(StreamRandomness("ties of an assignment"))
    shuffled = draws.permutation(rows)
    original = np.ascontiguousarray(space.original[shuffled])
    places, shown = _different(space.released)
    renamed = draws.permutation(places.shape[0])
    places = np.ascontiguousarray(places[renamed])
    capacity = np.bincount(shown, minlength=renamed.size).astype(np.int64)[renamed]
    tree, asking_tree = PointTree(places, metric), PointTree(original, metric)
    tree_order = asking_tree.order  # neighbours ask one after the other
    first, near = np.empty((rows, min(_FIRST, capacity.size))), np.empty((rows, min(_FIRST, capacity.size)), dtype=np.int64)
    first[tree_order], near[tree_order] = tree.closest(original[tree_order], near.shape[1])
    # both files in the order of their trees, side by side, are candidates too, so that an assignment exists
    some = np.empty(rows, dtype=np.int64)
    some[tree_order] = np.repeat(tree.order, capacity[tree.order])
    seekers = [np.arange(rows), np.repeat(np.arange(rows), near.shape[1])]
    columns = [some, near.reshape(-1)]
    costs = [metric.distances(metric.sums(original, places[some])), metric.distances(first).reshape(-1)]
    prices, held = np.zeros(capacity.size), np.full(rows, -1, dtype=np.int64)
    # up to this price a record has all columns; prices of columns only fall, so what was left out never becomes cheaper
    covered = np.full(rows, -np.inf)
    while True:
        prices, held = _cheapest(seekers, columns, costs, capacity, prices, held)
        paid = metric.distances(metric.sums(original, places[held]))
        slack = _ROUNDING * (1.0 + paid + float(np.abs(prices).max()))  # rounding errors of prices are as large as prices
        limits = paid - prices[held] - slack
        asking = tree_order[(limits > covered + slack)[tree_order]]
        offers, better = tree.discounted(original[asking], limits[asking], prices, _MORE)
        row, place = np.nonzero(better >= 0)
        if not row.size:
            break
        covered[asking] = offers[:, -1]
        seekers.append(asking[row])
        columns.append(better[row, place])
        costs.append(offers[row, place] + prices[better[row, place]])
    partners = np.empty(rows, dtype=np.int64)
    partners[shuffled] = renamed[held]
    return float(paid.sum()), partners, sum(part.size for part in seekers) / rows


def _cheapest(
    seekers: list[Int], columns: list[Int], costs: list[Real], capacity: Int, prices: Real, held: Int
) -> tuple[Real, Int]:
    """The least total among the candidates, from where the round before ended."""
    rows = np.concatenate(seekers)
    order = np.argsort(rows, kind="stable")
    starts = np.zeros(held.size + 1, dtype=np.int64)
    starts[1:] = np.cumsum(np.bincount(rows, minlength=held.size))
    return assign(starts, np.concatenate(columns)[order], np.concatenate(costs)[order], capacity, prices, held)


def _different(records: Real) -> tuple[Real, Int]:
    """The different records, missing values being equal to each other, and which of them each row is."""
    filled = np.where(np.isnan(records), np.inf, records)  # records have no infinite values of their own
    different, which = np.unique(filled, axis=0, return_inverse=True)
    return np.ascontiguousarray(np.where(np.isinf(different), np.nan, different)), which.reshape(-1).astype(np.int64)
