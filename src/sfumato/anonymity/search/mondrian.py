"""Mondrian: multidimensional partitioning for k-anonymity and other class guarantees.

Cut the most spread-out attribute at its median (or over the children of its common ancestor) as long as all parts
keep the promises. LeFevre, DeWitt, Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.predicates.promises import Promises
from sfumato.anonymity.search.base import Problem, Search
from sfumato.anonymity.search.classes import canonical_cells, entry_totals, in_numeric_order, show
from sfumato.anonymity.search.infeasible import as_classes, refuse
from sfumato.anonymity.search.levels import coarsest
from sfumato.anonymity.search.ranges import may_range
from sfumato.core.errors import Unsupported
from sfumato.core.progress import Progress
from sfumato.data.class_table import ClassTable
from sfumato.data.recoding import Recoding

Int = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Part:
    """Entries of one region: cells, first record and number of records of each."""

    cell: Int
    first: Int
    count: Int

    def pick(self, chosen: NDArray[np.bool_] | Int) -> _Part:
        return _Part(self.cell[chosen], self.first[chosen], self.count[chosen])


@dataclass(frozen=True)
class Mondrian(Search):
    """Partition the space of quasi-identifiers; every region is a class. No record is suppressed.

    Numbers and attributes with a declared order are cut at the median and shown as ranges, unless their owner declared a
    hierarchy: a declared hierarchy is kept to, as by every search, and a text of digits is a code. These are cut over the
    children of their common ancestor and shown as that ancestor. `ranges_everywhere` cuts every attribute that has an order,
    as the literature does. `relaxed` lets records that lie on the cut go to either side, which cuts more often; without it
    (`strict`) regions do not overlap.
    """

    relaxed: Annotated[bool, "records that lie on a cut may go to either side"] = False
    ranges_everywhere: Annotated[bool, "ordered columns with a declared hierarchy, and codes of digits, show ranges too"] = False

    def solve(self, problem: Problem, progress: Progress) -> tuple[Recoding, dict[str, object]]:
        table = problem.table
        if self.relaxed and (problem.promises.layout.units or problem.promises.layout.population > 0):
            raise Unsupported(
                "Mondrian(relaxed=True) separates equal records, so it cannot count units or compare with a population; "
                "use relaxed=False"
            )
        if problem.promises.no_suppression:
            raise Unsupported(
                "Mondrian looks at regions with records alone, so it cannot promise everybody in the population a smallest "
                "chance of presence; use Lattice, LocalRecoding or TopDown, or minimum = 0"
            )
        ordered = self._along(table)
        return self.cut_along(problem, ordered, progress), {"optimal": False}

    def cut_along(self, problem: Problem, ordered: NDArray[np.bool_], progress: Progress) -> Recoding:
        """Cut the table along these attributes and over the trees of the others."""
        table = problem.table
        cells = canonical_cells(table)
        whole = _Part(cells, np.zeros(cells.size, dtype=np.int64), table.cell_counts[cells])
        promises = problem.promises
        total = self._totals(problem, whole)
        block = coarsest(table)[table.tuple_of_cell[cells]]
        blocks = [whole.pick(block == number) for number in np.unique(block)]
        totals = np.stack([self._totals(problem, part) for part in blocks])
        if not promises.holds(totals).all():
            why = f"not even the table as {as_classes(totals)} keeps this, so no partition of it can. Ask for less."
            if promises.layout.population > 0:
                why += " Of the population Mondrian counts those who share a combination with a record; Lattice counts all."
            raise refuse(problem, why)
        promises = promises.settled(total)
        finished: list[_Part] = []
        waiting = blocks
        while waiting:
            part = waiting.pop()
            progress("partitioning", len(finished), 0)
            cut = self._cut(problem, promises, part, ordered)
            if cut is None:
                finished.append(part)
            else:
                waiting.extend(cut)
        klass = np.repeat(np.arange(len(finished), dtype=np.int64), [part.cell.size for part in finished])
        cell, first, count = (np.concatenate([getattr(part, name) for part in finished]) for name in ("cell", "first", "count"))
        # whoever looks people up in a register can read ranges of numbers alone
        readable = [promises.layout.population < 0 or in_numeric_order(tree) for tree in table.hierarchies]
        return show(problem, cell, first, count, klass, ordered & np.array(readable))

    def _along(self, table: ClassTable) -> NDArray[np.bool_]:
        """Which attributes are cut at values of their order; one with limited levels always keeps to its tree."""
        if not self.ranges_everywhere:
            return may_range(table, population=False)
        return np.array(
            [tree.ordered and name not in table.limits for name, tree in zip(table.quasi, table.hierarchies, strict=True)],
            dtype=np.bool_,
        )

    def _cut(self, problem: Problem, promises: Promises, part: _Part, ordered: NDArray[np.bool_]) -> list[_Part] | None:
        """The first allowed cut, widest attribute first."""
        if promises.k * 2 > part.count.sum():
            return None
        for parts in self._candidates(problem, part, ordered):
            if len(parts) < 2:
                continue
            totals = np.stack([self._totals(problem, piece) for piece in parts])
            if promises.holds(totals).all():
                return parts
        return None

    def _candidates(self, problem: Problem, part: _Part, ordered: NDArray[np.bool_]) -> Iterator[list[_Part]]:
        table = problem.table
        members = table.tuple_of_cell[part.cell]
        codes = table.codes[:, members]
        low, high = codes.min(axis=1), codes.max(axis=1)
        spread = []
        for a, tree in enumerate(table.hierarchies):
            if low[a] == high[a]:
                spread.append(0.0)
            elif ordered[a]:
                spread.append(float(high[a] - low[a]) / max(len(tree.leaves) - 1, 1))
            else:
                spread.append(float(tree.loss[tree.common_ancestor(np.unique(codes[a]))]) if tree.has_root else 1.0)
        for a in sorted(range(len(spread)), key=lambda i: (-spread[i], i)):
            if low[a] == high[a]:
                continue
            if ordered[a]:
                yield self._at_median(part, codes[a])
            else:
                yield self._over_children(table.hierarchies[a].node_of, part, codes[a])

    def _at_median(self, part: _Part, codes: NDArray[np.int32]) -> list[_Part]:
        order = np.argsort(codes, kind="stable")
        cumulated = np.cumsum(part.count[order])
        half = int(cumulated[-1]) // 2
        if self.relaxed:
            return _halves(part, order, cumulated, half)
        ranked = codes[order]
        median = ranked[np.searchsorted(cumulated, (int(cumulated[-1]) + 1) // 2)]
        below = codes <= median
        if below.all():
            below = codes < median
        return [part.pick(below), part.pick(~below)]

    @staticmethod
    def _over_children(node_of: NDArray[np.int32], part: _Part, codes: NDArray[np.int32]) -> list[_Part]:
        for level in range(node_of.shape[0] - 1, -1, -1):
            nodes = node_of[level, codes]
            if np.any(nodes != nodes[0]):
                return [part.pick(nodes == node) for node in np.unique(nodes)]
        return [part]

    @staticmethod
    def _totals(problem: Problem, part: _Part) -> Int:
        return np.asarray(entry_totals(problem, part.cell, part.count).sum(axis=0))


def _halves(part: _Part, order: Int, cumulated: Int, half: int) -> list[_Part]:
    """Two halves of equal size; the entry on the cut is divided between them."""
    place = int(np.searchsorted(cumulated, half))
    before = int(cumulated[place - 1]) if place else 0
    share = half - before
    entry = order[place]
    left, right = order[: place + 1], order[place:]
    first_half, second_half = part.pick(left), part.pick(right)
    first_half.count[-1] = share
    second_half.first[0] = part.first[entry] + share
    second_half.count[0] = part.count[entry] - share
    return [piece.pick(piece.count > 0) for piece in (first_half, second_half)]
