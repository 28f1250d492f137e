"""Tables that agree with what is published and show that sensitive cells are open, kept as sparse deviations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.suppression.deviations import limited
from sfumato.tables.suppression.needs import one_sided
from sfumato.tables.system import Real, SuppressionProblem

Cells = NDArray[np.int64]
#: How much of a level rounding may take away.
_ROUNDING = 1e-7
_NOBODY = -1
#: How far a whole number of the solver may be off.
_WHOLE = 1e-6


class ProofState(NamedTuple):
    """The proofs of some cells, and how many deviations there were."""

    cells: Cells
    reach: Real
    proof: Cells
    deviations: int


class Proofs:
    """Deviations seen so far, and for each sensitive cell the one that reaches furthest below and above its value."""

    def __init__(self, problem: SuppressionProblem) -> None:
        size = problem.system.size
        self.problem = problem
        self.lower, self.upper = one_sided(problem)
        levels = self.lower + self.upper + problem.spread
        self.room_below, self.room_above = limited(problem.room_below, levels), limited(problem.room_above, levels)
        self.cells: list[Cells] = []
        self.reach = np.zeros((2, size))
        self.proof = np.full((2, size), _NOBODY, dtype=np.int64)

    @property
    def levels(self) -> tuple[Real, Real]:
        """What each cell needs below and above."""
        return self.lower, self.upper

    def open(self, cell: int, side: int) -> bool:
        """Whether a cell reaches its level above (1) or below (-1)."""
        need = self.upper[cell] if side > 0 else self.lower[cell]
        return bool(self.reach[int(side > 0), cell] >= need * (1 - _ROUNDING))

    def closed(self) -> Cells:
        """The sensitive cells that do not reach their levels yet."""
        below, above = self.reach
        short = (below < self.lower * (1 - _ROUNDING)) | (above < self.upper * (1 - _ROUNDING))
        return np.flatnonzero(short & self.problem.primary)

    def add(self, cells: Cells, deviations: Real) -> None:
        """Take in a table and its mirror image, each as far out as outside knowledge allows."""
        if self.problem.whole:
            near = np.rint(deviations)
            if np.abs(near - deviations).max() > _WHOLE:
                return  # it proves nothing to those who look for whole numbers
            deviations = near
        for sign in (1.0, -1.0):
            room = np.where(sign * deviations > 0, self.room_above[cells], self.room_below[cells])
            scale = float((room / np.abs(deviations)).min())
            if self.problem.whole:
                scale = float(np.floor(scale + _ROUNDING))
            if scale > 0:
                self._keep(cells, sign * scale * deviations)

    def _keep(self, cells: Cells, deviations: Real) -> None:
        number, used = len(self.cells), False
        for side, reached in ((1, deviations), (0, -deviations)):
            further = (reached > self.reach[side, cells] * (1 + _ROUNDING)) & self.problem.primary[cells]
            # a cell that is open already keeps its proof: fewer proofs hang on each blank cell
            need = (self.upper if side else self.lower)[cells]
            further &= self.reach[side, cells] < need * (1 - _ROUNDING)
            if further.any():
                self.reach[side, cells[further]] = reached[further]
                self.proof[side, cells[further]] = number
                used = True
        if used:
            self.cells.append(cells)

    def relying(self, numbers: list[int]) -> Cells:
        """The sensitive cells whose proofs are among these."""
        cells = [cells[(self.proof[:, cells] == number).any(axis=0)] for number in numbers for cells in (self.cells[number],)]
        return np.unique(np.concatenate(cells)) if cells else np.zeros(0, dtype=np.int64)

    def drop(self, cells: Cells, numbers: list[int]) -> ProofState:
        """Take these proofs from these cells; returns the state before, for `restore`."""
        before = ProofState(cells, self.reach[:, cells], self.proof[:, cells], len(self.cells))
        lost = np.isin(before.proof, numbers)
        self.reach[:, cells] = np.where(lost, 0.0, before.reach)
        self.proof[:, cells] = np.where(lost, _NOBODY, before.proof)
        return before

    def restore(self, state: ProofState) -> None:
        """Return to a state; in between only its cells got proofs."""
        self.reach[:, state.cells], self.proof[:, state.cells] = state.reach, state.proof
        del self.cells[state.deviations :]

    def users(self) -> list[list[int]]:
        """For each cell the proofs in use that deviate there."""
        listed: list[list[int]] = [[] for _ in range(self.problem.system.size)]
        for number in np.unique(self.proof[self.proof >= 0]).tolist():
            for cell in self.cells[number].tolist():
                listed[cell].append(number)
        return listed
