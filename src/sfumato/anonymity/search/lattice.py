"""Full-domain recoding: the provably best level vector of the generalisation lattice, with a record-suppression
limit.

The loss without suppression is separable, so it is known for every node at once; what suppression adds to it can
only grow towards less general nodes. A checked node therefore bounds all nodes below it, and sweeping from general
to specific ("border sweep") proves the optimum after checking a small part of the lattice. Lattices past
`max_nodes` are searched box by box, best bound first, with a reported gap. Samarati, IEEE TKDE 13(6), 2001;
LeFevre, DeWitt, Ramakrishnan, "Incognito", SIGMOD 2005; Kohlmayer, Prasser et al., "Flash", PASSAT 2012.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from sfumato.anonymity.predicates.promises import promises_of
from sfumato.anonymity.search.base import Problem, Search, Suppression, by_tuple
from sfumato.anonymity.search.boxes import search_boxes
from sfumato.anonymity.search.costs import ObjectiveCosts, ObjectiveSweep
from sfumato.anonymity.search.infeasible import refuse
from sfumato.anonymity.search.levels import whole_levels
from sfumato.anonymity.search.node_tables import NodeTables, node_tables
from sfumato.anonymity.search.objectives import ALIKE, Aggregate, Measured, Objective
from sfumato.anonymity.search.sweep import BestNode, Sweep
from sfumato.core.guarantees.risk import WholeTableGuarantee
from sfumato.core.progress import Progress
from sfumato.core.ranges import Limit, Seconds, Share
from sfumato.data.recoding import SUPPRESSED, Recoding
from sfumato.kernels.classes.grouping import group_keys

#: How long a lattice that does not fit in memory is searched unless told otherwise.
DEFAULT_SECONDS = 60.0


@dataclass(frozen=True)
class Lattice(Search):
    """One hierarchy level per quasi-identifier for the whole table; records of classes that fail are suppressed, at
    most `suppression` of all.

    `aggregate` and `prefer_generalising` say what is made small, `measured` what of: by default the mean loss, a suppressed
    record costing 1 (`details["objective"]` has its value where it is another). The columns are weighed by their `importance`.

    The release has the smallest loss of all level vectors (`details["optimal"]`); past `max_nodes` lattice nodes or
    with a `time_limit` in seconds the best found, with the largest possible distance from the optimum in
    `details["gap"]`. Where people have rows with different quasi-identifiers, they are counted cautiously in classes that
    were merged, so that a better release may exist: then neither is said. A promise about all records together leaves a choice
    which classes are suppressed: as few records as possible are, of equally large classes those that lose least by it, and the
    gap says how much other choices could save.
    """

    one_level: ClassVar[bool] = True
    makes_ranges: ClassVar[bool] = False

    suppression: Suppression = 0.0
    max_nodes: Annotated[float, Limit(), "lattice nodes up to which the optimum is sought"] = 1_000_000
    time_limit: Annotated[Seconds | None, "seconds that the search may take"] = None
    aggregate: Annotated[Aggregate, "how the losses of the columns become one number"] = "mean"
    prefer_generalising: Annotated[
        Share, "0 prefers suppressing, 1 generalising, 0.5 counts a suppressed record as one that lost everything"
    ] = ALIKE
    measured: Annotated[Measured, "what a column loses: the share of its domain that is shown, or of its levels"] = "loss"

    def posed(self, problem: Problem) -> Problem:
        """The same problem; promises about all records together are kept as they are, because a node is all of its classes."""
        if not any(isinstance(guarantee, WholeTableGuarantee) for guarantee in problem.guarantees):
            return problem
        return replace(problem, promises=promises_of(problem.guarantees, problem.table, at_once=True))

    def solve(self, problem: Problem, progress: Progress) -> tuple[Recoding, dict[str, object]]:
        tables = node_tables(problem.table, problem.promises, problem.promises.totals())
        limit = problem.allowed(self.suppression)
        objective = Objective(self.aggregate, self.prefer_generalising, self.measured, problem.table.weights)
        costs = None if objective.usual else ObjectiveCosts(tables, problem.table, objective)
        best = search(tables, limit, progress, max_nodes=self.max_nodes, time_limit=self.time_limit, costs=costs)
        if best.levels is None:
            why = f"no combination of hierarchy levels reaches this with at most {self.suppression:.2%} of the records suppressed"
            if best.gap > 0:
                why = f"within the time limit none of the {tables.nodes:,} combinations of levels was found to reach this"
            if not problem.promises.counts_exactly:
                why = f"{why} (people with several rows are counted cautiously)"
            raise refuse(problem, f"{why}. Allow more suppression, ask for less, or give the hierarchies a common root.")
        recoding = recode_at(problem, tables, best.levels)
        limited = tables.nodes > self.max_nodes or self.time_limit is not None
        # which classes go for an average is chosen by their loss, so that by another objective others may be better
        sure = problem.promises.counts_exactly and (costs is None or not limit or not problem.promises.on_average)
        details: dict[str, object] = {
            "time_limit": (self.time_limit or DEFAULT_SECONDS) if limited else None,
            "levels": dict(zip(problem.table.quasi, whole_levels(problem.table, best.levels), strict=True)),
            "evaluated": best.evaluated,
            "nodes": tables.nodes,
            "optimal": best.complete and best.distance <= 1e-12 and sure,
            "map": {**best.map(), "levels": [list(whole_levels(problem.table, levels)) for levels in best.levels_checked]},
        }
        if sure:
            details["gap"] = best.distance
        if costs is not None:
            del details["map"]  # it draws losses, and these are costs
            details["objective"] = best.loss
        return recoding, details


def search(
    tables: NodeTables,
    limit: int,
    progress: Progress,
    *,
    max_nodes: float = 1_000_000,
    time_limit: float | None = None,
    costs: ObjectiveCosts | None = None,
) -> BestNode:
    """Exact when the lattice fits; box by box within the time limit (a minute unless told otherwise) when it does not."""
    if tables.nodes > max_nodes or time_limit is not None:
        return search_boxes(tables, limit, progress, time_limit=time_limit or DEFAULT_SECONDS, costs=costs)
    return (Sweep(tables, limit, progress) if costs is None else ObjectiveSweep(tables, costs, limit, progress)).run()


def recode_at(problem: Problem, tables: NodeTables, levels: tuple[int, ...]) -> Recoding:
    """The recoding of a node: its classes, failing ones suppressed."""
    keys, _, failing = tables.failing_keys(levels)
    order = np.argsort(keys)
    keys_of_tuples = tables.keys_of_tuples(levels)
    numbers, first = group_keys(keys_of_tuples)
    present = keys_of_tuples[first]
    position = order[np.searchsorted(keys, present, sorter=order)]
    kept = ~failing[position]
    class_number = np.where(kept, np.cumsum(kept) - 1, SUPPRESSED)
    codes = problem.table.codes[:, first[kept]]
    shown = tuple(
        problem.table.shown_at(a, tree.node_of[level, codes[a]])
        for a, (tree, level) in enumerate(zip(problem.table.hierarchies, levels, strict=True))
    )
    return by_tuple(problem, class_number[numbers], shown, int(kept.sum()))
