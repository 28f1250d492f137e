"""The adversary's model: what the published cells, the equations and outside knowledge leave open of the blank ones.

Only blank cells are variables; the published ones are numbers on the right side. The model knows no true value of a blank cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, Unsupported
from sfumato.tables.system import Flags, LinearSystem, Numbers, Real

#: How far a solution may break a row, in units of the typical cell.
_TOLERANCE = 1e-9
#: What the solver calls a solution that keeps to all rows.
_FEASIBLE = 2
_NO_END = 2_147_483_647


class TableAdversary:
    """Tables that agree with what is published, and how low and how high each blank cell can be in them."""

    def __init__(
        self, system: LinearSystem, published: Numbers, suppressed: Flags, low: Real, high: Real, whole: bool = False
    ) -> None:
        """`published` may hold anything at the blank cells: it is not read there."""
        self.cells = np.flatnonzero(suppressed)
        self.place = np.full(system.size, -1, dtype=np.int64)
        self.place[self.cells] = np.arange(self.cells.size)
        open_values = np.where(suppressed, 0, published)
        blank = suppressed[system.cells]
        rows = np.unique(system.rows[blank])
        sizes = np.abs(open_values[open_values != 0])
        self.unit = float(np.median(sizes)) if sizes.size and not whole else 1.0
        self.low, self.high = low[self.cells].astype(np.float64), high[self.cells].astype(np.float64)
        self.count = rows.size
        self._solver = _solver(self.cells.size, self.low / self.unit, self.high / self.unit)
        sums = -np.asarray(system.residuals(open_values), dtype=np.float64)[rows] / self.unit
        lengths = np.bincount(system.rows[blank], minlength=system.equations)[rows]
        starts = (np.cumsum(lengths) - lengths).astype(np.int32)
        entries = self.place[system.cells[blank]].astype(np.int32)
        self._solver.addRows(rows.size, sums, sums, entries.size, starts, entries, system.signs[blank].astype(np.float64))
        self._aim: int | None = None
        self.solved = 0

    def extreme(self, cell: int, side: int) -> Real:
        """The blank cells of a table in which `cell` is as high (side 1) or as low (side -1) as it can be."""
        place = int(self.place[cell])
        if self._aim is not None and self._aim != place:
            self._solver.changeColCost(self._aim, 0.0)
        self._solver.changeColCost(place, -float(side))
        self._aim = place
        self._solver.run()
        self.solved += 1
        status = self._solver.modelStatusToString(self._solver.getModelStatus())
        if status in ("Unbounded", "Primal infeasible or unbounded"):
            return self._far(place, side)
        if status == "Infeasible":
            raise InputError("no table agrees with what is published and with what an adversary is said to know. Check both.")
        if status != "Optimal":
            raise Unsupported(f"the solver did not finish the audit ({status.lower()}). Narrow known_low and known_high.")
        return np.asarray(self._solver.getSolution().col_value, dtype=np.float64) * self.unit

    def _far(self, place: int, side: int) -> Real:
        """A cell without an end on this side: the interval is infinite there."""
        answer = np.full(self.cells.size, np.nan)
        answer[place] = side * np.inf
        self._solver.clearSolver()
        return answer

    def fix(self, cells: NDArray[np.int64], values: Real) -> None:
        """What a contributor knows beside: these blank cells have these values."""
        for place, value in zip(self.place[cells].tolist(), values.tolist(), strict=True):
            self._solver.changeColBounds(place, value / self.unit, value / self.unit)

    def release(self, cells: NDArray[np.int64]) -> None:
        """Forget what was fixed."""
        for place in self.place[cells].tolist():
            self._solver.changeColBounds(place, self.low[place] / self.unit, self.high[place] / self.unit)

    def whole_extreme(self, cell: int, side: int, nodes: int, enough: float | None = None) -> tuple[Real | None, bool]:
        """The same in whole numbers as far as the search came, None for no table at all; and whether the search ended.

        With `enough`, any table will do in which the cell is at least so far out.
        """
        solver, columns = self._solver, np.arange(self.cells.size, dtype=np.int32)
        place = int(self.place[cell])
        if self._aim is not None:
            solver.changeColCost(self._aim, 0.0)
        self._aim = place
        ends = [self.low[place], self.high[place]]
        if enough is not None:
            ends[int(side < 0)] = enough
            solver.setOptionValue("mip_max_improving_sols", 1)
        else:
            solver.changeColCost(place, -float(side))
        solver.changeColBounds(place, ends[0] / self.unit, ends[1] / self.unit)
        solver.changeColsIntegrality(columns.size, columns, np.ones(columns.size, dtype=np.uint8))
        solver.setOptionValue("mip_max_nodes", nodes)
        solver.setOptionValue("presolve", "on")
        solver.run()
        self.solved += 1
        status = solver.modelStatusToString(solver.getModelStatus())
        values = np.asarray(solver.getSolution().col_value, dtype=np.float64)
        reached = solver.getInfo().primal_solution_status == _FEASIBLE
        solver.changeColBounds(place, self.low[place] / self.unit, self.high[place] / self.unit)
        solver.changeColsIntegrality(columns.size, columns, np.zeros(columns.size, dtype=np.uint8))
        solver.setOptionValue("mip_max_improving_sols", _NO_END)
        solver.setOptionValue("presolve", "off")
        solver.clearSolver()
        if values.size != columns.size or not reached:
            return None, status == "Infeasible"
        return np.rint(values * self.unit), status == "Optimal" and enough is None


def _solver(columns: int, low: Real, high: Real) -> Any:
    import highspy

    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    for name, value in {
        "threads": 1,
        "random_seed": 0,
        "presolve": "off",
        "solver": "simplex",
        "simplex_strategy": 4,  # primal: only the objective changes between two solutions
        "primal_feasibility_tolerance": _TOLERANCE,
        "dual_feasibility_tolerance": _TOLERANCE,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.5,
    }.items():
        solver.setOptionValue(name, value)
    nothing = np.zeros(0, dtype=np.int32)
    solver.addCols(columns, np.zeros(columns), low, high, 0, np.zeros(columns, dtype=np.int32), nothing, np.zeros(0))
    return solver
