"""Differencing between tables: two tables whose groups differ by few people, subtracted cell by cell.

Each may be safe by itself: people aged 15 to 29, and people aged 16 to 29. The difference is a table of people aged 15, and where
that has one or two contributors their contribution is told. Hundepool et al., "Statistical disclosure control", Wiley 2012.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from sfumato.attacks.aggregates.shown_cells import CellAttack, ShownCells, broken_words, cells_of
from sfumato.core.declared import Declared
from sfumato.core.errors import InputError
from sfumato.core.ranges import Whole
from sfumato.core.view import AttackResult, Criterion, View
from sfumato.measures.risk.success import share, wilson


@dataclass(frozen=True, eq=False)
class OtherTable(Declared):
    """Another table about some of the same people: for each cell of the first its `counts` and `totals` there, in order."""

    counts: Annotated[Any, "the count of each cell in the other table"] = field(default=None, repr=False)
    totals: Annotated[Any, "the total of each cell in the other table"] = field(default=None, repr=False)


@dataclass(frozen=True)
class TableDifferencing(CellAttack[OtherTable]):
    """The adversary subtracts another table, whose groups lie within those of the first or contain them.

    A cell is broken where the counts differ by 1 to `n` − 1: so few people have what the totals differ by. Where there are no
    counts, a cell is broken that is blank in one table and shown in the other.
    Success: the share of cells that either table shows.

    >>> young = ShownCells(["north", "south"], counts=[40, 35])
    >>> TableDifferencing().run(View(young, None), OtherTable(counts=[40, 34])).details["cells"]
    ['south']
    """

    n: Annotated[int, Whole(at_least=2), "so many people may differ without one being exposed"] = 3

    knows: ClassVar[type[Any]] = OtherTable
    helped_by: ClassVar[tuple[str, ...]] = ("counts", "totals")
    criterion: ClassVar[Criterion | None] = "inference"

    def run(self, view: View[ShownCells, object], knowledge: OtherTable | None = None) -> AttackResult:
        """Subtract the other table."""
        cells = cells_of(view)
        if not isinstance(knowledge, OtherTable) or (knowledge.counts is None and knowledge.totals is None):
            raise InputError("differencing needs OtherTable(counts=…) or OtherTable(totals=…) as knowledge")
        other = ShownCells(cells.names, knowledge.counts or (), knowledge.totals or ())
        apart = np.abs(cells.count - other.count)
        few = (apart >= 1) & (apart < self.n)
        filled = np.isnan(cells.total) != np.isnan(other.total) if cells.totals and other.totals else np.zeros_like(few)
        if cells.counts and other.counts:
            filled = filled | (np.isnan(cells.count) != np.isnan(other.count))
        broken = few | filled
        seen = ~np.isnan(np.stack([cells.count, cells.total, other.count, other.total])).all(axis=0)
        targets = int(seen.sum())
        success, names = share(int(broken.sum()), targets), cells.named(broken)
        return AttackResult(
            attack="TableDifferencing",
            success=success,
            baseline=0.0,
            interval=wilson(success * targets, targets),
            targets=targets,
            finding=broken_words(names, f"where the difference tells of fewer than {self.n} people, or fills a blank"),
            details={"cells": names, "few_people": int(few.sum()), "blanks_filled": int(filled.sum()), "shown_cells": targets},
        )
