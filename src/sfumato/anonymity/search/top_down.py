"""Top-down specialisation: start with everything at the root and specialise values as long as every class keeps the
promises.

Monotonicity justifies stopping: once a specialisation breaks a class, every further one would too. Fung, Wang, Yu,
"Top-down specialization for information and privacy preservation", ICDE 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from sfumato.anonymity.search.base import Problem, Search
from sfumato.anonymity.search.classes import show
from sfumato.anonymity.search.infeasible import as_classes, refuse
from sfumato.anonymity.search.levels import coarsest
from sfumato.anonymity.search.specialise import Heuristic, specialise
from sfumato.core.progress import Progress
from sfumato.data.recoding import Recoding
from sfumato.kernels.classes.rollup import add_up


@dataclass(frozen=True)
class TopDown(Search):
    """Local recoding from the top: a class is split over the children of one of its values when all parts keep the
    promises.

    `heuristic`: take the split that saves most `loss`, or the value with the `fewest_children`. `partial` lets
    children that fail stay behind together in the more general class. No record is suppressed.
    """

    heuristic: Annotated[Heuristic, "which split is taken first"] = "loss"
    partial: Annotated[bool, "children that fail stay behind together"] = False
    makes_ranges = False

    def solve(self, problem: Problem, progress: Progress) -> tuple[Recoding, dict[str, object]]:
        totals = problem.promises.totals()
        start = coarsest(problem.table)
        whole = add_up(start, totals, int(start.max(initial=0)) + 1)
        if not problem.promises.holds(whole).all():
            raise refuse(
                problem, f"not even the table as {as_classes(whole)} keeps this, so no specialisation of it can. Ask for less."
            )
        class_of = specialise(
            problem,
            problem.promises.settled(totals.sum(axis=0)),
            totals,
            start,
            # what stays behind covers the people of the parts that went, too many for a smallest chance of presence
            partial=self.partial and not problem.promises.no_suppression,
            heuristic=self.heuristic,
            progress=progress,
        )
        klass = class_of[problem.table.tuple_of_cell]
        cells = np.arange(klass.size, dtype=np.int64)
        recoding = show(problem, cells, np.zeros_like(cells), problem.table.cell_counts, klass, class_of=class_of)
        return recoding, {"optimal": False}
