"""Deviations: how far the blank cells may lie from their values while every equation still holds.

The optimiser's model of the adversary, in deviations d = x - value with A d = 0. Cells that are left out do not deviate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.tables.system import LinearSystem, Real

_TOLERANCE = 1e-9
#: What an adversary does not bound is bounded at so many times the greatest level.
_FAR = 100.0


class Furthest(NamedTuple):
    """How far one cell deviates, the deviations of the columns, and the price of every equation."""

    far: float
    deviations: Real
    prices: Real


class Deviations:
    """A linear programme over the deviations of some cells, solved again and again from where it stands."""

    def __init__(self, system: LinearSystem, columns: NDArray[np.int64], below: Real, above: Real) -> None:
        """`below` and `above` say how far each column may deviate; both have one entry for each column."""
        self.columns, self.system = columns, system
        self.place = np.full(system.size, -1, dtype=np.int64)
        self.place[columns] = np.arange(columns.size)
        self.below, self.above = below.copy(), above.copy()
        kept = self.place[system.cells] >= 0
        self.equations = np.unique(system.rows[kept])
        lengths = np.bincount(system.rows[kept], minlength=system.equations)[self.equations]
        self._solver = quiet_solver()
        none = np.zeros(0, dtype=np.int32)
        self._solver.addCols(
            columns.size, np.zeros(columns.size), -below, above, 0, np.zeros(columns.size, dtype=np.int32), none, np.zeros(0)
        )
        zeros = np.zeros(self.equations.size)
        starts = (np.cumsum(lengths) - lengths).astype(np.int32)
        entries = self.place[system.cells[kept]].astype(np.int32)
        self._solver.addRows(zeros.size, zeros, zeros, entries.size, starts, entries, system.signs[kept].astype(np.float64))
        self._aim: int | None = None
        self.solved = 0

    def resize(self, below: Real, above: Real) -> None:
        """Other limits of all columns."""
        self.below, self.above = below.copy(), above.copy()
        every = np.arange(self.columns.size, dtype=np.int32)
        self._solver.changeColsBounds(every.size, every, -below, above)

    def hold(self, cells: NDArray[np.int64]) -> None:
        """These cells do not deviate, until they are released."""
        for place in self.place[cells].tolist():
            if place >= 0:
                self._solver.changeColBounds(place, 0.0, 0.0)

    def release(self, cells: NDArray[np.int64]) -> None:
        """These cells deviate again."""
        for place in self.place[cells].tolist():
            if place >= 0:
                self._solver.changeColBounds(place, -self.below[place], self.above[place])

    def furthest(self, cell: int, side: int) -> Furthest:
        """The furthest that a cell gets above (1) or below (-1) its value, as a distance."""
        place = int(self.place[cell])
        if self._aim is not None and self._aim != place:
            self._solver.changeColCost(self._aim, 0.0)
        self._solver.changeColCost(place, -float(side))
        self._aim = place
        self._solver.run()
        self.solved += 1
        status = self._solver.modelStatusToString(self._solver.getModelStatus())
        if status != "Optimal":
            raise Unsupported(f"the solver stopped while it looked for deviations ({status.lower()})")
        solution = self._solver.getSolution()
        deviations = np.asarray(solution.col_value, dtype=np.float64)
        prices = np.zeros(self.system.equations)
        prices[self.equations] = solution.row_dual
        return Furthest(float(side * deviations[place]), deviations, prices)


def limited(distance: Real, levels: Real) -> Real:
    """Distances with an end: nothing needs to deviate by more than many times the greatest level."""
    return np.minimum(distance, np.ceil(_FAR * float(levels.max(initial=0.0)) + 1.0))


def quiet_solver(strategy: int = 4) -> Any:  # a solver of highspy, which has no types
    """A solver of linear programmes on one thread, which goes on from its last basis (4: primal, 1: dual simplex)."""
    import highspy

    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    for name, value in {
        "threads": 1,
        "random_seed": 0,
        "presolve": "off",
        "solver": "simplex",
        "simplex_strategy": strategy,
        "primal_feasibility_tolerance": _TOLERANCE,
        "dual_feasibility_tolerance": _TOLERANCE,
    }.items():
        solver.setOptionValue(name, value)
    return solver
