"""Hybrid records: table, place and set in one class.

The tabular columns and the coordinates are recoded locally; the intervals of a class are its cloaking rectangle.
Then the sets of each class are recoded until whoever knows a few items as well still finds k records of the class
or none. Terrovitis, Mamoulis, Kalnis, "Privacy-preserving anonymization of set-valued data", PVLDB 1(1), 2008
(k^m-anonymity).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.predicates.promises import promises_of
from sfumato.anonymity.search.base import Problem, Search, Step, Suppression
from sfumato.anonymity.search.classes import entry_totals
from sfumato.anonymity.search.infeasible import refuse
from sfumato.anonymity.search.local_recoding import LocalRecoding
from sfumato.core.errors import Infeasible, Unsupported
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.core.progress import Progress
from sfumato.core.ranges import Count
from sfumato.data.class_table import ClassTable
from sfumato.data.recoding import SUPPRESSED, Recoding, Shown
from sfumato.kernels.classes.grouping import group_columns
from sfumato.kernels.classes.item_recoding import ClassItems, Item, ItemTree
from sfumato.kernels.classes.rollup import add_up

Int = NDArray[np.int64]


@dataclass(frozen=True)
class Hybrid(Search):
    """One class for tabular, location and set-valued columns.

    `KAnonymity(k, Knowledge(items=m))` holds against whoever knows the other quasi-identifiers of a person and up
    to m items of each set. Any other guarantee holds against whoever knows the whole sets. `suppression` and `step`
    are those of the local recoding of the other columns. `items` says how sets are mended: `generalise` along the
    taxonomy of the column where that loses less than deleting items, or only `suppress` them. Classes by the other
    columns have at least `breadth` times k records: wider ones blur table and place more and keep more items.
    Without a `breadth` 1, 2, 4, … are tried as long as the loss of all columns falls.
    """

    suppression: Suppression = 0.05
    step: Step = 0.01
    items: Annotated[Literal["suppress", "generalise"], "how sets are mended"] = "generalise"
    breadth: Annotated[Count | None, "the size of classes by the other columns, in k; 1, 2, 4, … are tried where left out"] = None
    recodes_sets = True
    makes_ranges = False

    def solve(self, problem: Problem, progress: Progress) -> tuple[Recoding, dict[str, object]]:
        if not problem.table.set_valued:
            return LocalRecoding(self.suppression, self.step).solve(problem, progress)
        _check(problem)
        rest = _without_sets(problem)
        breadth = self.breadth or 1
        recoding, details = self._solve_with(breadth, problem, rest, progress)
        while self.breadth is None and rest.table.quasi and 2 * breadth * rest.promises.k <= rest.table.records:
            breadth *= 2
            try:
                wider, more = self._solve_with(breadth, problem, rest, progress)
            except Infeasible:  # the guarantees of this request hold already; only the wider classes cannot be had
                break
            if wider.loss(problem.table.weights) >= recoding.loss(problem.table.weights):
                break
            recoding, details = wider, more
        return recoding, details

    def _solve_with(
        self, breadth: int, problem: Problem, rest: Problem, progress: Progress
    ) -> tuple[Recoding, dict[str, object]]:
        """Classes of at least so many times k records by the other columns, then their sets."""
        if rest.table.quasi:
            wide = replace(rest.promises, k=min(breadth * rest.promises.k, rest.table.records))
            classes, details = LocalRecoding(self.suppression, self.step).solve(replace(rest, promises=wide), progress)
        else:
            classes, details = _one_class(rest)
        baskets = _Baskets.of(problem.table, classes)
        published = self._recode_sets(problem, rest, classes, baskets, progress)
        counted = _counts(problem.table, baskets, published)
        return _combined(problem.table, classes, baskets, published), {**details, "breadth": breadth, **counted}

    def _recode_sets(
        self, problem: Problem, rest: Problem, recoding: Recoding, baskets: _Baskets, progress: Progress
    ) -> list[dict[Item, Item]]:
        """Per class what every item becomes."""
        partly = [(g.k, g.items) for g in problem.guarantees if isinstance(g, KAnonymity) and g.items]
        failing = _whole_promises(rest, recoding, baskets)
        published = []
        for number, members in enumerate(baskets.of_class):
            progress("recoding sets", number, len(baskets.of_class))
            records = [int(baskets.records[b]) for b in members]
            sets = ClassItems([baskets.items[b] for b in members], records, baskets.trees, generalise=self.items == "generalise")
            for k, items in partly:
                sets.enforce(k, items)
            if failing is not None:
                sets.enforce_whole(failing(members))
            published.append(sets.recoded())
        return published


@dataclass(frozen=True, eq=False)
class _Baskets:
    """The records of a class with the same sets, for all classes: basket b has `items[b]` and `records[b]` records.

    `of_class[c]` lists the baskets of class c, `of_cell` is the basket of every cell (negative for suppressed
    ones).
    """

    trees: tuple[ItemTree, ...] = field(repr=False)
    items: tuple[frozenset[Item], ...] = field(repr=False)
    records: Int = field(repr=False)
    of_cell: Int = field(repr=False)
    of_class: tuple[Int, ...] = field(repr=False)

    @classmethod
    def of(cls, table: ClassTable, recoding: Recoding) -> _Baskets:
        """Group the cells of every class by their sets."""
        columns = _set_positions(table)
        kept = np.flatnonzero(recoding.klass != SUPPRESSED)
        codes = table.codes[:, table.tuple_of_cell[kept]]
        keys = [recoding.klass[kept].astype(np.int32), *(codes[a] for a in columns)]
        numbers, first = group_columns(keys, [max(recoding.classes, 1), *(len(table.hierarchies[a].leaves) for a in columns)])
        of_cell = np.full(recoding.klass.size, SUPPRESSED, dtype=np.int64)
        of_cell[kept] = numbers
        trees, split = [], []
        for a in columns:
            sets = table.set_valued[table.quasi[a]]
            split.append([sets.split(text) for text in table.hierarchies[a].leaves])
            trees.append(sets.tree(frozenset().union(*split[-1])))
        items = tuple(
            frozenset((c, trees[c].leaf[item]) for c, a in enumerate(columns) for item in split[c][codes[a, entry]])
            for entry in first.tolist()
        )
        of_basket = recoding.klass[kept[first]]
        order = np.argsort(of_basket, kind="stable")
        ends = np.searchsorted(of_basket[order], np.arange(recoding.classes + 1))
        of_class = tuple(order[low:high] for low, high in zip(ends, ends[1:], strict=False))
        records = np.bincount(numbers, weights=recoding.count[kept], minlength=first.size).astype(np.int64)
        return cls(tuple(trees), items, records, of_cell, of_class)


def _check(problem: Problem) -> None:
    if problem.table.units is not problem.table.counts:
        raise Unsupported(
            "Hybrid counts records: sets of a unit with several records are not supported. Join the records of each unit into "
            "one (the union of its sets) first."
        )
    compared = [guarantee.name for guarantee in problem.guarantees if guarantee.needs_population]
    if compared:
        raise Unsupported(
            f"{', '.join(compared)} cannot be compared with a population over set-valued columns: leave it out, or give these "
            'columns another role than "quasi".'
        )


def _set_positions(table: ClassTable) -> list[int]:
    return [a for a, name in enumerate(table.quasi) if name in table.set_valued]


def _without_sets(problem: Problem) -> Problem:
    """The same records by their other quasi-identifiers; tuples that differ in sets alone become one."""
    table = problem.table
    kept = [a for a, name in enumerate(table.quasi) if name not in table.set_valued]
    if kept:
        numbers, first = group_columns([table.codes[a] for a in kept], [len(table.hierarchies[a].leaves) for a in kept])
    else:
        numbers, first = np.zeros(table.tuples, dtype=np.int64), np.zeros(1, dtype=np.int64)
    counts = np.bincount(numbers, weights=table.counts, minlength=first.size).astype(np.int64)
    weights = table.weights[kept]
    rest = replace(
        table,
        quasi=tuple(table.quasi[a] for a in kept),
        hierarchies=tuple(table.hierarchies[a] for a in kept),
        weights=weights / weights.sum() if kept else weights,
        codes=np.ascontiguousarray(table.codes[kept][:, first]),
        counts=counts,
        units=counts,
        population=np.zeros(first.size, dtype=np.int64),
        survey_weights=None,
        tuple_of_cell=numbers[table.tuple_of_cell],
        set_valued={},
    )
    return Problem(rest, promises_of(problem.guarantees, rest), problem.guarantees)


def _one_class(rest: Problem) -> tuple[Recoding, dict[str, object]]:
    """Where sets are all that is known: every record in one class."""
    table = rest.table
    if not rest.promises.holds(rest.promises.totals()).all():
        raise refuse(rest, "not even all records together keep this")
    klass = np.zeros(table.cell_counts.size, dtype=np.int64)
    return Recoding.whole_cells(klass, table.cell_counts, (), 1), {"rounds": 0, "optimal": False}


def _whole_promises(
    rest: Problem, recoding: Recoding, baskets: _Baskets
) -> Callable[[Int], Callable[[list[list[int]]], list[bool]]] | None:
    """A check of the guarantees that assume knowledge of whole sets, on groups of baskets of a class."""
    whole = [g for g in rest.guarantees if not (isinstance(g, KAnonymity) and g.items)]
    if not whole:
        return None
    problem = Problem(rest.table, promises_of(whole, rest.table), tuple(whole))
    kept = np.flatnonzero(baskets.of_cell >= 0)
    totals = add_up(baskets.of_cell[kept], entry_totals(problem, recoding.cell[kept], recoding.count[kept]), len(baskets.items))
    promises = problem.promises.settled(totals.sum(axis=0))

    def of_class(members: Int) -> Callable[[list[list[int]]], list[bool]]:
        mine = totals[members]

        def failing(groups: list[list[int]]) -> list[bool]:
            added = np.stack([mine[group].sum(axis=0) for group in groups])
            return [not good for good in promises.holds(added).tolist()]

        return failing

    return of_class


def _combined(table: ClassTable, recoding: Recoding, baskets: _Baskets, published: Sequence[dict[Item, Item]]) -> Recoding:
    """Classes of the other columns, divided by the sets they publish."""
    columns = _set_positions(table)
    numbers: dict[tuple[int, tuple[str, ...]], int] = {}
    number_of = np.zeros(len(baskets.items), dtype=np.int64)
    lost = np.zeros((len(columns), len(baskets.items)))
    for klass, members in enumerate(baskets.of_class):
        for basket in members.tolist():
            texts = _texts(table, baskets, basket, published[klass])
            number_of[basket] = numbers.setdefault((klass, texts), len(numbers))
            lost[:, basket] = _losses(baskets, basket, published[klass])
    records = np.bincount(number_of, weights=baskets.records, minlength=len(numbers))
    klass_of = np.array([klass for klass, _ in numbers], dtype=np.int64)
    others = iter(recoding.shown)
    shown = []
    for a in range(len(table.quasi)):
        if a not in columns:
            other = next(others)
            shown.append(replace(other, of_class=other.of_class[klass_of]))
            continue
        c = columns.index(a)
        loss = np.bincount(number_of, weights=lost[c] * baskets.records, minlength=len(numbers)) / np.maximum(records, 1)
        labels = tuple(texts[c] for _, texts in numbers)
        sizes = 1.0 + loss * max(table.hierarchies[a].total - 1.0, 0.0)
        shown.append(Shown(labels, loss, sizes, loss == 0, np.arange(len(numbers), dtype=np.int32)))
    assigned = np.full(baskets.of_cell.size, SUPPRESSED, dtype=np.int64)
    kept = baskets.of_cell >= 0
    assigned[kept] = number_of[baskets.of_cell[kept]]
    return Recoding(recoding.cell, recoding.first, recoding.count, assigned, tuple(shown), len(numbers))


def _texts(table: ClassTable, baskets: _Baskets, basket: int, published: dict[Item, Item]) -> tuple[str, ...]:
    """The published text of each set-valued column."""
    labels: list[set[str]] = [set() for _ in baskets.trees]
    for item in baskets.items[basket]:
        if item in published:
            column, node = published[item]
            labels[column].add(baskets.trees[column].labels[node])
    return tuple(table.set_valued[table.quasi[a]].join(labels[c]) for c, a in enumerate(_set_positions(table)))


def _losses(baskets: _Baskets, basket: int, published: dict[Item, Item]) -> NDArray[np.float64]:
    """Per column the share of the items that is lost: 1 for a deleted item, the loss of what it became for another."""
    lost = np.zeros(len(baskets.trees))
    size = np.zeros(len(baskets.trees))
    for item in baskets.items[basket]:
        column = item[0]
        size[column] += 1
        lost[column] += baskets.trees[column].loss[published[item][1]] if item in published else 1.0
    return lost / np.maximum(size, 1)


def _counts(table: ClassTable, baskets: _Baskets, published: Sequence[dict[Item, Item]]) -> dict[str, dict[str, int]]:
    """How many items of records were kept, generalised and deleted, per column."""
    names = [table.quasi[a] for a in _set_positions(table)]
    fates = {fate: dict.fromkeys(names, 0) for fate in ("items_kept", "items_generalised", "items_deleted")}
    for klass, members in enumerate(baskets.of_class):
        for basket in members.tolist():
            for item in baskets.items[basket]:
                became = published[klass].get(item)
                fate = "items_deleted" if became is None else "items_kept" if became == item else "items_generalised"
                fates[fate][names[item[0]]] += int(baskets.records[basket])
    return fates
