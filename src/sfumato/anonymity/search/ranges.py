"""Ranges of ordered attributes: how much of an attribute a class shows, and where a class is best cut in two.

An attribute with an order shows the range of its values in a class. The share of the whole range that it shows is its
measure here, the same for hierarchy nodes: (largest - smallest value below what is shown) / (largest - smallest value of
the attribute), by rank where the order is one of words. Attributes without an order have the loss of their tree. The share
of a range is the loss of a number in Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002, and in Xu et
al., "Utility-based anonymization using local recoding", KDD 2006.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.predicates.promises import Promises
from sfumato.anonymity.search.base import Problem
from sfumato.anonymity.search.classes import in_numeric_order
from sfumato.data.class_table import ClassTable
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.recoding import Recoding
from sfumato.data.texts.values import as_numbers
from sfumato.kernels.classes.rollup import add_up

Int = NDArray[np.int64]
Real = NDArray[np.float64]

#: The name of the measure, in releases and as a measure of utility.
RANGE_SHOWN = "range_shown"


def places_by_value(tree: Hierarchy) -> Real:
    """Where each leaf lies between the smallest (0) and the largest (1), by its number or else by its rank; a missing value is
    nowhere (infinite)."""
    present = [leaf is not None for leaf in tree.leaves]
    numbers = as_numbers([leaf for leaf in tree.leaves if leaf is not None]) if in_numeric_order(tree) else None
    if not numbers or numbers[-1] <= numbers[0]:
        return places_by_rank(tree)
    places = np.full(len(tree.leaves), np.inf)
    places[present] = (np.array(numbers) - numbers[0]) / (numbers[-1] - numbers[0])
    return places


def places_by_rank(tree: Hierarchy) -> Real:
    """The same by rank alone, which no outlier can stretch."""
    present = np.array([leaf is not None for leaf in tree.leaves])
    places = np.full(len(tree.leaves), np.inf)
    places[present] = np.arange(int(present.sum())) / max(int(present.sum()) - 1, 1)
    return places


def widths(low: Real, high: Real) -> Real:
    """The share shown by a range between two places: everything where a missing value is among others."""
    missing = np.isinf(low) | np.isinf(high)
    with np.errstate(invalid="ignore"):
        inside = high - low
    return np.where(missing, np.where(np.isinf(low) & np.isinf(high), 0.0, 1.0), inside)


def may_range(table: ClassTable, population: bool) -> NDArray[np.bool_]:
    """Which attributes may show ranges of their own, in every search that makes ranges: those for which the owner declared no
    hierarchy, or allows it. Whoever looks people up in a register can read ranges of numbers alone."""
    return np.array(
        [
            name in table.free_ranges and (not population or in_numeric_order(tree))
            for name, tree in zip(table.quasi, table.hierarchies, strict=True)
        ],
        dtype=np.bool_,
    )


def range_shown(problem: Problem, recoding: Recoding, ranges: NDArray[np.bool_]) -> float:
    """Mean share per record and attribute (weighted by importance) that a recoding shows; a suppressed record counts 1.

    `ranges` says which attributes are shown as ranges and not as nodes.
    """
    if recoding.records == 0:
        return 0.0
    sums = zip(problem.table.weights, _sums_shown(problem, recoding, ranges), strict=True)
    return (sum(float(weight) * shown for weight, shown in sums) + recoding.suppressed) / recoding.records


def shown_of_each(problem: Problem, recoding: Recoding, ranges: NDArray[np.bool_]) -> dict[str, float]:
    """The same for each attribute by itself."""
    sums = zip(problem.table.quasi, _sums_shown(problem, recoding, ranges), strict=True)
    return {name: (shown + recoding.suppressed) / max(recoding.records, 1) for name, shown in sums}


def _sums_shown(problem: Problem, recoding: Recoding, ranges: NDArray[np.bool_]) -> Iterator[float]:
    """For each attribute the sum of the shares that the records of classes show."""
    table = problem.table
    kept = np.flatnonzero(recoding.klass >= 0)
    order = kept[np.argsort(recoding.klass[kept], kind="stable")]
    members = table.tuple_of_cell[recoding.cell[order]]
    starts = np.searchsorted(recoding.klass[order], np.arange(recoding.classes))
    sizes = recoding.class_sizes().astype(np.float64)
    for a, (tree, shown) in enumerate(zip(table.hierarchies, recoding.shown, strict=True)):
        if not recoding.classes:
            share = np.zeros(0)
        elif not tree.ordered or table.quasi[a] in table.set_valued:
            share = shown.loss[shown.of_class]
        elif ranges[a]:
            codes, places = table.codes[a, members], places_by_value(tree)
            share = widths(places[np.minimum.reduceat(codes, starts)], places[np.maximum.reduceat(codes, starts)])
            share = np.where(shown.loss[shown.of_class] >= 1.0, 1.0, share)  # people without a record may widen it
        else:
            share = _node_shares(tree, shown.loss.size)[shown.of_class]
        yield float((sizes * share).sum())


def _node_shares(tree: Hierarchy, shown: int) -> Real:
    """The share that each node of an ordered tree shows; everything where a class shows more than the tree has."""
    places = places_by_value(tree)
    shares = np.ones(max(shown, len(tree.labels)))
    for nodes in tree.node_of:
        order = np.argsort(nodes, kind="stable")
        present, starts = np.unique(nodes[order], return_index=True)
        shares[present] = widths(np.minimum.reduceat(places[order], starts), np.maximum.reduceat(places[order], starts))
    return shares


@dataclass(frozen=True, eq=False)
class Cutting:
    """How classes are cut along ordered attributes.

    `places[a]` is where the leaves of attribute a lie, None for one that is split over its tree. A cut is `balanced`: it
    divides a class so that as many classes of k records as possible can come of it; or else it is where it saves most.
    With `every` a split counts by what it saves in the ranges of all attributes, otherwise by its own attribute's.
    """

    places: tuple[Real | None, ...] = field(repr=False)
    balanced: bool
    every: bool

    @classmethod
    def of(cls, table: ClassTable, ranges: NDArray[np.bool_], *, balanced: bool, every: bool) -> Cutting:
        """Cuts along these attributes; a place is the mean of value and rank, so that an outlier does not hide all others."""
        places = tuple(
            0.5 * (places_by_value(tree) + places_by_rank(tree)) if ranged else None
            for tree, ranged in zip(table.hierarchies, ranges, strict=True)
        )
        return cls(places, balanced, every)


@dataclass(frozen=True, eq=False)
class ActiveClasses:
    """The classes to split: tuples sorted by class, the class number of each, where each class starts, and their totals."""

    order: Int
    numbers: Int
    starts: Int
    totals: Int
    codes: NDArray[np.int32] = field(repr=False)
    weights: Real

    @property
    def count(self) -> int:
        """How many classes there are."""
        return int(self.starts.size)


def cut(classes: ActiveClasses, promises: Promises, a: int, places: Real, *, balanced: bool) -> tuple[Int, Real]:
    """The best allowed cut of every class along attribute a: which members go to the upper part, and what each class saves
    (-inf where it cannot be cut)."""
    by_value = np.lexsort((classes.codes[a], classes.numbers))
    codes, numbers, starts = classes.codes[a][by_value], classes.numbers, classes.starts
    records = classes.totals[by_value, 0]
    summed = np.cumsum(records)
    size = np.add.reduceat(records, starts)
    left = summed - (summed[starts] - records[starts])[numbers]
    right = size[numbers] - left
    ends = np.append(starts[1:], codes.size) - 1
    lowest, highest = places[codes[starts]], places[codes[ends]]
    boundary = np.append((numbers[1:] == numbers[:-1]) & (codes[1:] != codes[:-1]), False)
    above = np.append(codes[1:], codes[-1:])
    saved = float(classes.weights[a]) * (
        (size * widths(lowest, highest))[numbers]
        - left * widths(lowest[numbers], places[codes])
        - right * widths(places[above], highest[numbers])
    )
    # rounded, because sums that differ only in the order of their terms must compare equal
    saved = np.round(saved, 9)
    allowed = boundary & (left >= promises.k) & (right >= promises.k) if promises.layout.population < 0 else boundary
    parts = np.maximum(size // max(promises.k, 1), 2)
    balance = -np.abs(left - (size * (parts // 2) / parts)[numbers])
    upper = np.zeros(codes.size, dtype=np.int64)
    gain = np.full(classes.count, -np.inf)
    for preference in (balance, saved) if balanced else (saved, balance):
        still_whole = np.isinf(gain)
        chosen = _first_best(np.where(allowed & still_whole[numbers], preference, -np.inf), numbers, starts)
        tried = np.zeros(codes.size, dtype=np.int64)
        tried[by_value] = (chosen[numbers] >= 0) & (np.arange(codes.size) > chosen[numbers])
        totals = add_up(2 * numbers + tried, classes.totals, 2 * classes.count)
        possible = (chosen >= 0) & promises.holds(totals).reshape(-1, 2).all(axis=1)
        upper += tried * possible[numbers]
        gain[possible] = saved[chosen[possible]]
        if promises.only_k and not promises.layout.units:
            break  # the sizes were looked at: another cut of these classes cannot keep what this one does not
    return upper, gain


def _first_best(preference: Real, numbers: Int, starts: Int) -> Int:
    """The first place with the largest preference in each class; -1 where none is allowed."""
    best = np.maximum.reduceat(preference, starts)
    at_best = np.flatnonzero((preference == best[numbers]) & (preference > -np.inf))
    chosen = np.full(starts.size, -1, dtype=np.int64)
    with_some, first = np.unique(numbers[at_best], return_index=True)
    chosen[with_some] = at_best[first]
    return chosen


def saved_in_ranges(classes: ActiveClasses, part: Int, cutting: Cutting) -> Real:
    """What each class would save in the ranges of all attributes if its members were divided into these parts."""
    keys = classes.numbers * (int(part.max(initial=0)) + 1) + part
    order = np.argsort(keys, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0))
    records = np.add.reduceat(classes.totals[order, 0], first)
    of_class = classes.numbers[order][first]
    size = np.add.reduceat(classes.totals[:, 0], classes.starts)
    saved = np.zeros(classes.count)
    for a, places in enumerate(cutting.places):
        if places is None:
            continue
        codes = classes.codes[a]
        before = size * _shown_widths(places, codes, classes.starts)
        after = np.bincount(of_class, weights=records * _shown_widths(places, codes[order], first), minlength=classes.count)
        saved += float(classes.weights[a]) * (before - after)
    return np.round(saved, 9)


def _shown_widths(places: Real, codes: NDArray[np.int32], starts: Int) -> Real:
    return widths(places[np.minimum.reduceat(codes, starts)], places[np.maximum.reduceat(codes, starts)])
