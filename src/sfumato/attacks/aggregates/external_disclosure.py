"""External attack: somebody who contributed to nothing reads a count beside a sum.

The total of a cell with one contributor is what that one gave: nobody's average, but somebody's salary. Hundepool et al.,
"Statistical disclosure control", Wiley 2012, chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from sfumato.attacks.aggregates.shown_cells import CellAttack, Flags, ShownCells, broken_words, cells_of
from sfumato.core.declared import Declared
from sfumato.core.view import AttackResult, Criterion, View
from sfumato.measures.risk.success import share, wilson


@dataclass(frozen=True)
class Outsider(Declared):
    """Knows the published tables and nothing else; a `note` is for whoever reads the file."""

    note: Annotated[str | None, "a remark for whoever reads the file"] = None


@dataclass(frozen=True)
class ExternalDisclosure(CellAttack[Outsider]):
    """The adversary looks for cells with one contributor whose total is shown.

    Success: the share of cells with contributors that are broken so. Blind guessing breaks none: a contribution is a number.

    >>> ExternalDisclosure().run(View(ShownCells(["M2, P3", "M2, P4"], [1, 30], [22, 570]), None)).details["cells"]
    ['M2, P3']

    `contributions` says what was learnt, by cell; the result names the cells alone.
    """

    knows: ClassVar[type[Any]] = Outsider
    criterion: ClassVar[Criterion | None] = "inference"

    def contributions(self, view: View[ShownCells, object]) -> dict[str, float]:
        """What the one contributor of each broken cell gave."""
        cells = cells_of(view)
        return {cells.names[cell]: float(cells.total[cell]) for cell in np.flatnonzero(self._broken(cells)).tolist()}

    def _broken(self, cells: ShownCells) -> Flags:
        return np.asarray((cells.count == 1) & ~np.isnan(cells.total))

    def run(self, view: View[ShownCells, object], knowledge: Outsider | None = None) -> AttackResult:
        """Read the cells with one contributor."""
        cells = cells_of(view)
        broken = self._broken(cells)
        targets = int((cells.count > 0).sum())
        success, names = share(int(broken.sum()), targets), cells.named(broken)
        return AttackResult(
            attack="ExternalDisclosure",
            success=success,
            baseline=0.0,
            interval=wilson(success * targets, targets),
            targets=targets,
            finding=broken_words(names, "of one contributor shows what that one gave"),
            details={"cells": names, "cells_with_contributors": targets},
        )
