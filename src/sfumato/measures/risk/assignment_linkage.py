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
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.params import require
from sfumato.core.view import Measure, Score
from sfumato.data.masked import aligned, as_masked
from sfumato.data.microdata import Microdata
from sfumato.kernels.assignment import assign
from sfumato.kernels.linkage import PointTree
from sfumato.measures.risk.linked import linked_score
from sfumato.measures.risk.spaces import DISTANCES, Distance, Space, space_of

Real = NDArray[np.float64]
Int = NDArray[np.int64]

_FIRST = 8
_ROUNDING = 1e-9


@dataclass(frozen=True)
class AssignmentLinkage(Measure):
    """Share of masked records that the assignment of least total distance gives back to their person.

    Equal masked records (a microaggregated class) are one choice, shared among them. Where several assignments have the same
    total for other reasons, one of them counts. Against an intruder who holds the original values of everybody in the release.
    `distance` as in `DistanceLinkage`. Parts: the 95 % interval, the baseline 1/(masked records), the mean distance of the
    assignment, and the mean number of candidates that proving it took.

    >>> people = sf.read(sf.data.sample_table(200), schema=sf.data.sample_schema())
    >>> AssignmentLinkage(columns=("age", "income")).score(people, people).better
    'lower'
    """

    distance: Distance = "auto"
    columns: tuple[str, ...] | None = None
    key: ClassVar[str] = "assignment_linkage"
    masked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require(self.distance in DISTANCES, f"AssignmentLinkage: distance must be one of {', '.join(DISTANCES)}")

    def score(self, original: Microdata, released: Any) -> Score:
        """The share."""
        left, right = aligned(original, as_masked(released, original), self.columns)
        found = assigned(space_of(left, right, self.distance))
        parts = {"mean distance": found.total / right.size, "candidates": found.candidates}
        meaning = "share of people whom the one-to-one assignment of least total distance gives away"
        return linked_score(self.key, found.credits, right.size, meaning, parts)


@dataclass(frozen=True, eq=False)
class Assigned:
    """The least total distance, each record's chance of having got its own masked record, and candidates per record."""

    total: float
    credits: Real = field(repr=False)
    candidates: float


def assigned(space: Space) -> Assigned:
    """The assignment of least total distance between aligned files; row i of both is one person."""
    rows = space.original.shape[0]
    places, own = _places(space.released)
    capacity = np.bincount(own, minlength=places.shape[0]).astype(np.int64)
    tree = PointTree(places, space.metric)
    apart = space.metric.distances(space.metric.sums(space.original, places[own]))
    widths = np.full(rows, min(_FIRST, capacity.size), dtype=np.int64)
    lists = [_Candidates.of(tree, space.original, np.arange(rows, dtype=np.int64), int(widths[0]))] if rows else []
    prices, held = np.zeros(capacity.size), np.full(rows, -1, dtype=np.int64)
    while True:
        starts, columns, costs, reach = _joined(lists, widths, own, apart, capacity.size)
        prices, held = assign(starts, columns, costs, capacity, prices, held)
        paid = space.metric.distances(space.metric.sums(space.original, places[held]))
        # a record left out costs at least `reach`; it may be worth having where that is less than the price paid
        undercut = reach + _ROUNDING * (1.0 + paid) < paid - prices[held] + prices.max()
        undercut &= widths < capacity.size
        if not undercut.any():
            break
        widened = np.flatnonzero(undercut)
        widths[widened] = np.minimum(2 * widths[widened], capacity.size)
        for width in np.unique(widths[widened]).tolist():
            lists.append(_Candidates.of(tree, space.original, widened[widths[widened] == width], width))
    credits = np.where(held == own, 1.0 / capacity[own], 0.0)
    return Assigned(float(paid.sum()), credits, float(widths.mean()))


@dataclass(frozen=True, eq=False)
class _Candidates:
    """The nearest columns of some rows."""

    rows: Int = field(repr=False)
    columns: Int = field(repr=False)
    costs: Real = field(repr=False)

    @classmethod
    def of(cls, tree: PointTree, queries: Real, rows: Int, width: int) -> _Candidates:
        sums, columns = tree.closest(queries[rows], width)
        return cls(rows, columns, tree.metric.distances(sums))


def _joined(lists: list[_Candidates], widths: Int, own: Int, apart: Real, places: int) -> tuple[Int, Int, Real, Real]:
    """Candidates of all rows one after the other, the own column always among them (so that an assignment exists), and the
    distance beyond which a row's columns were left out."""
    starts = np.zeros(widths.size + 1, dtype=np.int64)
    starts[1:] = np.cumsum(widths + 1)
    columns = np.empty(int(starts[-1]), dtype=np.int64)
    costs = np.empty(int(starts[-1]))
    reach = np.full(widths.size, np.inf)
    columns[starts[1:] - 1], costs[starts[1:] - 1] = own, apart
    for part in lists:
        width = part.columns.shape[1]
        current = widths[part.rows] == width
        rows = part.rows[current]
        at = starts[rows][:, None] + np.arange(width)
        columns[at], costs[at] = part.columns[current], part.costs[current]
        if width < places:
            reach[rows] = part.costs[current][:, -1]
    return starts, columns, costs, reach


def _places(masked: Real) -> tuple[Real, Int]:
    """The different masked records, missing values being equal to each other, and which of them each row is."""
    places, own = np.unique(masked, axis=0, return_inverse=True, equal_nan=True)
    return np.ascontiguousarray(places), own.reshape(-1).astype(np.int64)
