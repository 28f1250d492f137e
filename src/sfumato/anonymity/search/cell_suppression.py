"""Cell suppression: keep original values and blank single cells, those of the least important attributes first.

A local recoding over flat hierarchies: a cell shows its value or `*`, and `*` is a value of its own, so the classes
that an outsider sees are exactly the ones that are checked. Compare: de Waal, Willenborg, "Statistical disclosure
control in practice", 1996.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from sfumato.anonymity.predicates.promises import promises_of
from sfumato.anonymity.search.base import Problem, Search, Step, Suppression
from sfumato.anonymity.search.local_recoding import LocalRecoding
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.core.progress import Progress
from sfumato.core.ranges import ByName, Number
from sfumato.data.class_table import ClassTable
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.data.recoding import Recoding


@dataclass(frozen=True)
class CellSuppression(Search):
    """Blank as few cells as possible, weighted by the importance of their attribute; at most `suppression` of the
    records go completely.

    `importance` gives attributes that should keep their cells a larger number (the schema's `importance` by
    default). `step` is that of `LocalRecoding`.
    """

    importance: Annotated[
        Mapping[str, float],
        ByName(Number(above=0)),
        "larger for attributes that should keep their cells; as in the schema by default",
    ] = field(default_factory=dict)
    suppression: Suppression = 0.05
    step: Step = 0.01
    makes_ranges = False

    def posed(self, problem: Problem) -> Problem:
        """The same problem over flat hierarchies: a cell shows its value or nothing."""
        unknown = [name for name in self.importance if name not in problem.table.quasi]
        if unknown:
            raise ParameterError(f"CellSuppression: importance names columns that are no quasi-identifiers: {', '.join(unknown)}")
        if problem.table.limits:
            raise Unsupported(
                f"CellSuppression shows a value or nothing, so it cannot keep to levels of {', '.join(problem.table.limits)}. "
                "Use LocalRecoding, or drop least_level and greatest_level."
            )
        flat = _flat(problem.table, self.importance)
        return Problem(flat, promises_of(problem.guarantees, flat), problem.guarantees)

    def solve(self, problem: Problem, progress: Progress) -> tuple[Recoding, dict[str, object]]:
        recoding, details = LocalRecoding(self.suppression, self.step).solve(problem, progress)
        kept = np.array([float((recoding.class_sizes() * shown.loss[shown.of_class]).sum()) for shown in recoding.shown])
        cells = dict(zip(problem.table.quasi, (int(round(count)) for count in kept), strict=True))
        return recoding, {**details, "suppressed_cells": cells}


def _flat(table: ClassTable, importance: Mapping[str, float]) -> ClassTable:
    weights = np.array(
        [float(importance.get(name, weight)) for name, weight in zip(table.quasi, table.weights * len(table.quasi), strict=True)]
    )
    trees = tuple(_flat_tree(tree) for tree in table.hierarchies)
    return replace(table, hierarchies=trees, weights=weights / weights.sum())


def _flat_tree(tree: Hierarchy) -> Hierarchy:
    """The same leaves in the same positions, right below the root; every blanked cell costs 1, whatever the number of leaves."""
    leaves = len(tree.leaves)
    node_of = np.stack([np.arange(leaves, dtype=np.int32), np.full(leaves, leaves, dtype=np.int32)])
    sizes = np.append(np.ones(leaves), 2.0)
    blank = ROOT
    while blank in tree.index:  # a value of the data must not look like a blanked cell
        blank = f"{blank} (level 1)"
    return Hierarchy(tree.leaves, node_of, (*tree.leaves, blank), sizes, 2.0, tree.ordered, tree.source)
