"""Internal attacks: a contributor subtracts what it gave itself.

In a cell of two contributors each learns the other's contribution. A large contributor learns that the others together gave no
more than the rest: when that is little, it knows each of them well, and the second largest knows the largest within the rest.
Hundepool et al., "Statistical disclosure control", Wiley 2012, chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from sfumato.attacks.aggregates.shown_cells import CellAttack, Real, ShownCells, broken_words, cells_of
from sfumato.attacks.outputs.numeric_input import vector
from sfumato.core.declared import Declared
from sfumato.core.errors import InputError
from sfumato.core.ranges import PositiveShare
from sfumato.core.view import AttackResult, Criterion, View
from sfumato.measures.risk.success import share, wilson


@dataclass(frozen=True)
class OwnContribution(Declared):
    """Every contributor knows what it gave itself; which cells are broken by that depends on the counts alone. A `note`
    is for whoever reads the file."""

    note: Annotated[str | None, "a remark for whoever reads the file"] = None


@dataclass(frozen=True)
class ContributorDisclosure(CellAttack[OwnContribution]):
    """The adversary is one of two contributors to a cell.

    Success: the share of cells with at least two contributors in which each of them learns exactly what the other gave.

    >>> ContributorDisclosure().run(View(ShownCells(["M1, P1"], [2], [360]), None)).details["cells"]
    ['M1, P1']
    """

    knows: ClassVar[type[Any]] = OwnContribution
    criterion: ClassVar[Criterion | None] = "inference"

    def run(self, view: View[ShownCells, object], knowledge: OwnContribution | None = None) -> AttackResult:
        """Subtract what the adversary gave."""
        cells = cells_of(view)
        broken = (cells.count == 2) & ~np.isnan(cells.total)
        targets = int((cells.count >= 2).sum())
        success, names = share(int(broken.sum()), targets), cells.named(broken)
        return AttackResult(
            attack="ContributorDisclosure",
            success=success,
            baseline=0.0,
            interval=wilson(success * targets, targets),
            targets=targets,
            finding=broken_words(names, "of two contributors shows each of them what the other gave"),
            details={"cells": names, "cells_with_two_or_more": targets},
        )


@dataclass(frozen=True, eq=False)
class LargestContributions(Declared):
    """The `largest` contribution to each cell, which its contributor knows; 0 where nobody attacks. `second`, the second largest,
    is another adversary's, who estimates the largest."""

    largest: Annotated[Any, "the largest contribution to each cell"] = field(default=None, repr=False)
    second: Annotated[Any, "the second largest contribution to each cell"] = field(default=None, repr=False)


@dataclass(frozen=True)
class LargeContributor(CellAttack[LargestContributions]):
    """The adversary is the largest contributor of a cell, and learns that the others together gave total − own.

    A cell is broken where that is at most `within` of the adversary's own contribution; with `second`, where total − largest −
    second is: the second largest then knows the largest within that share. Success: the share of cells with at least two
    contributors (or of all that are shown, where nothing says how many there are) that are broken.

    >>> view, own = View(ShownCells(["M3, P5"], [5], [363]), None), LargestContributions([350])
    >>> LargeContributor().run(view, own).details["cells"], LargeContributor().rests(view, own)
    (['M3, P5'], {'M3, P5': 13.0})
    """

    within: Annotated[PositiveShare, "the share of a contribution within which it must not be known"] = 0.1

    needs: ClassVar[tuple[str, ...]] = ("largest",)
    helped_by: ClassVar[tuple[str, ...]] = ("second",)
    knows: ClassVar[type[Any]] = LargestContributions
    criterion: ClassVar[Criterion | None] = "inference"

    def rests(self, view: View[ShownCells, object], knowledge: LargestContributions) -> dict[str, float]:
        """What is left of each shown total: more than that no other contributor gave."""
        rest = self._subtracted(view.result, knowledge)[1]
        return {view.result.names[cell]: float(rest[cell]) for cell in np.flatnonzero(~np.isnan(rest)).tolist()}

    def _subtracted(self, cells: ShownCells, knowledge: LargestContributions | None) -> tuple[Real, Real]:
        if not isinstance(knowledge, LargestContributions) or knowledge.largest is None:
            raise InputError("a large contributor needs LargestContributions(largest=…) as knowledge")
        own = vector(knowledge.largest, "the largest contributions", len(cells.names))
        rest = cells.total - own
        if knowledge.second is not None:
            rest = rest - vector(knowledge.second, "the second largest contributions", len(cells.names))
        return own, rest

    def run(self, view: View[ShownCells, object], knowledge: LargestContributions | None = None) -> AttackResult:
        """Subtract the largest contribution, and the second where somebody knows it."""
        cells = cells_of(view)
        own, rest = self._subtracted(cells, knowledge)
        seconds = isinstance(knowledge, LargestContributions) and knowledge.second is not None
        attacked = ~np.isnan(cells.total) & (own > 0) & ~(cells.count < 2)
        if np.any(rest[attacked] < -1e-9 * np.abs(cells.total[attacked])):
            raise InputError("the largest contributions to some cells exceed their totals; both must be about the same cells")
        broken = attacked & (rest <= self.within * own)
        targets = int(attacked.sum())
        success, names = share(int(broken.sum()), targets), cells.named(broken)
        who = "the second largest contributor knows the largest" if seconds else "the largest knows the others"
        return AttackResult(
            attack="LargeContributor",
            success=success,
            baseline=0.0,
            interval=wilson(success * targets, targets),
            targets=targets,
            finding=broken_words(names, f"where {who} within {self.within * 100:g} % of the largest contribution"),
            details={"cells": names, "attacked_cells": targets},
        )
