"""A small integer programme over the cells of a table: one thread, a fixed order, the same answer on every run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.system import LinearSystem

Real = NDArray[np.float64]


#: A solver of highspy, which has no types.
Solver = Any


def quiet(seconds: float) -> Solver:
    """A solver without output that stops after so many seconds."""
    import highspy

    solver: Solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {"output_flag": False, "threads": 1, "random_seed": 0, "time_limit": seconds, "mip_rel_gap": 0.0}.items():
        solver.setOptionValue(name, value)
    return solver


def add_columns(solver: Solver, costs: Real, low: Real, high: Real, whole: bool) -> None:
    """Columns between bounds, with what a unit of each costs."""
    first, none = solver.getNumCol(), np.zeros(0, dtype=np.int32)
    solver.addCols(costs.size, costs, low, high, 0, np.zeros(costs.size, dtype=np.int32), none, np.zeros(0))
    if whole:
        places = np.arange(first, first + costs.size, dtype=np.int32)
        solver.changeColsIntegrality(costs.size, places, np.ones(costs.size, dtype=np.uint8))


def add_sums(solver: Solver, system: LinearSystem, scale: float, right: Real) -> None:
    """Rows Σ sign · scale · column = right over the first columns."""
    if system.equations:
        starts, signs = system.starts[:-1].astype(np.int32), system.signs.astype(np.float64) * scale
        solver.addRows(system.equations, right, right, system.cells.size, starts, system.cells, signs)


def solved(solver: Solver) -> Real | None:
    """The best solution of the programme; None where there is none within the limits."""
    solver.run()
    if solver.getInfo().primal_solution_status != 2:
        return None
    return np.asarray(solver.getSolution().col_value, dtype=np.float64)
