"""k-member clustering: grow classes record by record, always adding the record whose joining costs least.

The distance of a record from a cluster is the loss of the class that would contain both. Leftovers join the cluster
that suffers least. Byun, Kamra, Bertino, Li, "Efficient k-anonymization using clustering techniques", DASFAA 2007.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.search.base import Problem, Search
from sfumato.anonymity.search.classes import canonical_cells, entry_totals, show
from sfumato.anonymity.search.infeasible import refuse
from sfumato.anonymity.search.levels import capped
from sfumato.core.errors import Unsupported
from sfumato.core.progress import Progress
from sfumato.core.ranges import Limit
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.recoding import SUPPRESSED, Recoding
from sfumato.kernels.classes.nearest import cheapest, farthest

Int = NDArray[np.int64]
MAX_ANCESTORS = 50_000_000


@dataclass(frozen=True)
class KMember(Search):
    """Clusters of at least k records that keep all promises, built greedily by loss; every class shows its lowest
    common ancestors.

    Its time grows with the square of the number of records; `max_records` refuses tables for which that would take
    hours.
    """

    max_records: Annotated[float, Limit(), "records of a table, at the most"] = 200_000
    makes_ranges = False

    def solve(self, problem: Problem, progress: Progress) -> tuple[Recoding, dict[str, object]]:
        table = problem.table
        if table.records > self.max_records:
            raise Unsupported(
                f"KMember compares every record with every other; {table.records:,} records are more than "
                f"max_records = {self.max_records:,}. "
                "Use LocalRecoding or Mondrian, or raise max_records."
            )
        if problem.promises.layout.units or problem.promises.layout.population > 0:
            raise Unsupported(
                "KMember separates equal records, so it cannot count units or compare with a population; use LocalRecoding"
            )
        rootless = [name for name, tree in zip(table.quasi, table.hierarchies, strict=True) if not tree.has_root]
        if rootless:
            raise Unsupported(
                f"KMember needs hierarchies with a common root: every pair of values must have a common ancestor. "
                f"{_columns(rootless)} no common root. "
                + (
                    "Raise its greatest_level, or use LocalRecoding."
                    if capped(table)
                    else "Add a last level with one value for all."
                )
            )
        wide = [
            name
            for name, tree in zip(table.quasi, table.hierarchies, strict=True)
            if len(tree.labels) * len(tree.leaves) > MAX_ANCESTORS
        ]
        if wide:
            raise Unsupported(
                f"KMember keeps the common ancestor of every pair of values. {_columns(wide)} too many different values for "
                f"that. Use LeastLoss or Mondrian, or give the column{'s' * (len(wide) > 1)} fewer values."
            )
        growth = _Growth(problem)
        while growth.left.any():
            progress("clustering", table.records - int(growth.left.sum()), table.records)
            if not growth.grow():
                break
        suppressed = growth.place_leftovers()
        cell, count, klass = growth.entries()
        if not growth.clusters:
            raise refuse(problem, "not even all records together form a class that keeps this. Ask for less.")
        first = _first_records(cell, count)
        return show(problem, cell, first, count, klass), {"optimal": False, "leftovers": suppressed}


@dataclass
class _Cluster:
    nodes: Int
    totals: Int
    cells: list[int] = field(default_factory=list)


def _columns(names: list[str]) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return f"Column {listed} has" if len(names) == 1 else f"Columns {listed} have"


class _Growth:
    """The state of a greedy clustering over cells in canonical order, so that the order of rows does not matter."""

    def __init__(self, problem: Problem) -> None:
        table = problem.table
        self.problem = problem
        # clusters are compared with all records: hardly any will be suppressed
        self.promises = problem.promises.settled(problem.promises.totals().sum(axis=0))
        self.cells = canonical_cells(table)
        self.codes = np.ascontiguousarray(table.codes[:, table.tuple_of_cell[self.cells]])
        self.left = table.cell_counts[self.cells].copy()
        self.single = entry_totals(problem, self.cells, np.ones(self.cells.size, dtype=np.int64))
        self.ancestors = [_ancestor_table(tree) for tree in table.hierarchies]
        self.widths = np.array([len(tree.leaves) for tree in table.hierarchies], dtype=np.int64)
        tables = [
            (float(w) * tree.loss[above]).reshape(-1)
            for w, tree, above in zip(table.weights, table.hierarchies, self.ancestors, strict=True)
        ]
        self.starts = np.cumsum([0, *(part.size for part in tables)])[:-1].astype(np.int64)
        self.losses = np.concatenate(tables)
        self.clusters: list[_Cluster] = []
        self.previous: Int | None = None
        self.unplaced: list[_Cluster] = []

    def _leaf_nodes(self, entry: int) -> Int:
        trees = self.problem.table.hierarchies
        return np.array([tree.node_of[0, self.codes[a, entry]] for a, tree in enumerate(trees)], dtype=np.int64)

    def _arguments(self, nodes: Int) -> tuple[Any, ...]:
        return (self.codes, self.left, self.losses, self.starts, self.widths, nodes)

    def _add(self, cluster: _Cluster, entry: int) -> None:
        cluster.cells.append(entry)
        cluster.totals = cluster.totals + self.single[entry]
        self.left[entry] -= 1
        for a, above in enumerate(self.ancestors):
            cluster.nodes[a] = above[cluster.nodes[a], self.codes[a, entry]]

    def grow(self) -> bool:
        """One more cluster, started far from the last one; False when the records that are left cannot form one."""
        seed = int(np.flatnonzero(self.left)[0]) if self.previous is None else int(farthest(*self._arguments(self.previous)))
        cluster = _Cluster(self._leaf_nodes(seed), np.zeros_like(self.single[0]))
        self.previous = self._leaf_nodes(seed)
        self._add(cluster, seed)
        while not self._holds(cluster.totals):
            if not self.left.any():
                self.unplaced.append(cluster)
                return False
            entry, _ = cheapest(*self._arguments(cluster.nodes))
            self._add(cluster, int(entry))
        self.clusters.append(cluster)
        return True

    def _holds(self, totals: Int) -> bool:
        if totals[0] < self.promises.k:
            return False
        return bool(self.promises.holds(totals[None, :])[0])

    def place_leftovers(self) -> int:
        """Each leftover record joins the cluster that loses least by it and still keeps the promises; returns how
        many found none."""
        homeless: list[int] = []
        for entry in [entry for cluster in self.unplaced for entry in cluster.cells]:
            costs = []
            for number, cluster in enumerate(self.clusters):
                joined = [above[cluster.nodes[a], self.codes[a, entry]] for a, above in enumerate(self.ancestors)]
                now = self._loss(cluster.nodes)
                then = self._loss(np.array(joined))
                size = int(cluster.totals[0])
                costs.append(((size + 1) * then - size * now, number))
            for _, number in sorted(costs):
                cluster = self.clusters[number]
                if self._holds(cluster.totals + self.single[entry]):
                    self.left[entry] += 1
                    self._add(cluster, entry)
                    break
            else:
                homeless.append(entry)
        self.unplaced = [_Cluster(np.zeros(0, np.int64), np.zeros(0, np.int64), homeless)] if homeless else []
        return len(homeless)

    def _loss(self, nodes: Int) -> float:
        table = self.problem.table
        return float(sum(w * tree.loss[n] for w, tree, n in zip(table.weights, table.hierarchies, nodes, strict=True)))

    def entries(self) -> tuple[Int, Int, Int]:
        """Cell, number of records and class of every entry."""
        cells, counts, classes = [], [], []
        for number, cluster in [*enumerate(self.clusters), *((SUPPRESSED, c) for c in self.unplaced)]:
            places, times = np.unique(np.array(cluster.cells, dtype=np.int64), return_counts=True)
            cells.append(self.cells[places])
            counts.append(times)
            classes.append(np.full(places.size, number))
        return np.concatenate(cells), np.concatenate(counts).astype(np.int64), np.concatenate(classes).astype(np.int64)


def _ancestor_table(tree: Hierarchy) -> Int:
    """`table[node, leaf]`: the lowest common ancestor of a node and a leaf."""
    table = np.zeros((len(tree.labels), len(tree.leaves)), dtype=np.int64)
    some_leaf = np.zeros(len(tree.labels), dtype=np.int64)
    lowest = np.zeros(len(tree.labels), dtype=np.int64)
    for level in range(tree.height, -1, -1):
        some_leaf[tree.node_of[level]] = np.arange(len(tree.leaves))
        lowest[tree.node_of[level]] = level
    for node in range(len(tree.labels)):
        undecided = np.ones(len(tree.leaves), dtype=np.bool_)
        for level in range(int(lowest[node]), tree.height + 1):
            same = tree.node_of[level] == tree.node_of[level, some_leaf[node]]
            table[node, undecided & same] = tree.node_of[level, some_leaf[node]]
            undecided &= ~same
    return table


def _first_records(cell: Int, count: Int) -> Int:
    """Number the records of a cell consecutively over its entries."""
    order = np.argsort(cell, kind="stable")
    running = np.cumsum(count[order]) - count[order]
    starts = np.unique(cell[order], return_index=True)[1]
    offset = np.zeros(cell.size, dtype=np.int64)
    offset[starts] = running[starts]
    first = np.empty(cell.size, dtype=np.int64)
    first[order] = running - np.maximum.accumulate(offset)
    return first
