"""Inference of blanks: between which values each blank of a published table lies, for somebody who has nothing but the table.

A blank that all fillings give one value is no secret; one with a short interval is hardly any. Fischetti, Salazar, "Solving the
cell suppression problem on tabular data with linear constraints", Management Science 47(7), 2001.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeGuard

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.aggregates.shown_cells import broken_words
from sfumato.core.errors import Unsupported
from sfumato.core.ranges import Share
from sfumato.core.view import Attack, AttackResult, Criterion, View
from sfumato.measures.risk.success import share, wilson
from sfumato.tables.audit.auditing import audit
from sfumato.tables.published import PublishedTable
from sfumato.tables.published_witnesses import one_filling
from sfumato.tables.system import SuppressionProblem

_MOST_NAMED = 50


@dataclass(frozen=True)
class BlankInference(Attack[View[PublishedTable, object], None]):
    """The adversary knows that no value is negative, and solves for the ends of each blank's interval.

    Success: the share of blanks whose interval is so short that its middle is at most `within` of the value away from any value
    in it (with 0: those that are determined). Blind guessing determines none.
    """

    within: Annotated[Share, "the share of a value within which it must not be known"] = 0.0

    criterion: ClassVar[Criterion | None] = "inference"

    def fits(self, view: View[object, object]) -> bool:
        """A published table with blanks whose parts add up."""
        return _is_table(view) and view.result.additive and bool(view.result.blank.any())

    def intervals(self, table: PublishedTable) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """The blank cells with the ends of their intervals, in units of the last digit."""
        values = table.units.astype(np.float64)
        values[table.blank] = one_filling(table)
        none = np.zeros(values.size, dtype=np.bool_)
        problem = SuppressionProblem.of(table.system, values, none, fixed=~table.blank, whole=table.value is None)
        answer = audit(problem, table.blank, exact=True)
        return answer.cells, answer.low, answer.high

    def run(self, view: View[PublishedTable, object], knowledge: None = None) -> AttackResult:
        """Solve for every blank."""
        if not _is_table(view):
            raise Unsupported("blanks are looked for in a published aggregate table, and the view shows something else")
        table = view.result
        cells, low, high = self.intervals(table)
        with np.errstate(invalid="ignore"):
            half = (high - low) / 2.0
        broken = half <= self.within * low + 1e-6
        names = [table.name_of(int(cell)) for cell in cells[broken]]
        targets, success = int(cells.size), share(int(broken.sum()), int(cells.size))
        how = "can be computed from the others" if not self.within else f"is known within {self.within * 100:g} %"
        return AttackResult(
            attack="BlankInference",
            success=success,
            baseline=0.0,
            interval=wilson(success * targets, targets),
            targets=targets,
            finding=broken_words(names, how),
            details={"cells": names[:_MOST_NAMED], "blanks": targets, "determined": int((half <= 1e-6).sum())},
        )


def _is_table(view: View[object, object]) -> TypeGuard[View[PublishedTable, object]]:
    return isinstance(view.result, PublishedTable)
