"""The integer programme of secondary suppression, written out: two deviations of the whole table for each sensitive cell.

Minimise Σ w y with A d = 0 and -room_below · y ≤ d ≤ room_above · y for each copy d, where the copies of a sensitive cell reach
its levels. It is for small tables, and the measure of every other method. Kelly, Golden, Assad 1992; Fischetti, Salazar 2001.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sfumato.tables.suppression.deviations import limited, quiet_solver
from sfumato.tables.system import Flags, Real, SuppressionProblem

_LEAST_LIMIT = 0.05  # seconds


class Programme(NamedTuple):
    """What an integer programme came to: the pattern (None if there is none yet), and the proved bound on its cost."""

    pattern: Flags | None
    bound: float
    finished: bool


def solve_full(problem: SuppressionProblem, gap: float, seconds: float | None, nodes: int) -> Programme:
    """The cheapest pattern, or the best that the limits allow."""
    size = problem.system.size
    free = ~problem.fixed
    levels = problem.lower + problem.upper + problem.spread
    below = np.where(free, limited(problem.room_below, levels), 0.0)
    above = np.where(free, limited(problem.room_above, levels), 0.0)
    solver = quiet_solver()
    for name, value in {"presolve": "on", "solver": "choose", "mip_rel_gap": gap, "mip_max_nodes": nodes}.items():
        solver.setOptionValue(name, value)
    if seconds is not None:
        solver.setOptionValue("time_limit", max(seconds, _LEAST_LIMIT))
    _add_columns(solver, problem.weights, problem.primary.astype(np.float64), np.where(free, 1.0, 0.0))
    every = np.arange(size, dtype=np.int32)
    solver.changeColsIntegrality(size, every, np.ones(size, dtype=np.uint8))
    copies = 0
    knowing = [np.zeros(0, dtype=np.int64), *problem.singles]
    for cell in np.flatnonzero(problem.primary).tolist():
        for group in knowing:
            if group.size == 0 or cell not in group:
                pair = [_copy(solver, problem, below, above, group, size * (1 + copies + extra)) for extra in (0, 1)]
                copies += 2
                _need(solver, problem, cell, pair)
    if seconds is not None:
        solver.setOptionValue("time_limit", max(seconds, _LEAST_LIMIT))
    solver.run()
    info = solver.getInfo()
    values = np.asarray(solver.getSolution().col_value, dtype=np.float64)
    status = solver.modelStatusToString(solver.getModelStatus())
    if status == "Infeasible":
        return Programme(None, np.inf, True)
    bound = float(info.mip_dual_bound) if np.isfinite(info.mip_dual_bound) else -np.inf
    if info.primal_solution_status != 2 or values.size == 0:
        return Programme(None, bound, False)
    return Programme(values[:size] > 0.5, bound, status == "Optimal")


def _copy(solver: Any, problem: SuppressionProblem, below: Real, above: Real, held: Any, first: int) -> int:
    """One deviation of the whole table, tied to what is blank; returns where its columns begin."""
    system, size = problem.system, problem.system.size
    low, high = below.copy(), above.copy()
    low[held] = high[held] = 0.0
    _add_columns(solver, np.zeros(size), -low, high)
    zeros = np.zeros(system.equations)
    starts = system.starts[:-1].astype(np.int32)
    solver.addRows(zeros.size, zeros, zeros, system.cells.size, starts, system.cells + first, system.signs.astype(np.float64))
    pairs = np.stack([np.arange(size), first + np.arange(size)], axis=1).ravel().astype(np.int32)
    for room, lower, upper in ((-high, -np.inf, 0.0), (low, 0.0, np.inf)):
        values = np.stack([room, np.ones(size)], axis=1).ravel()
        rows = np.arange(size, dtype=np.int32) * 2
        solver.addRows(size, np.full(size, lower), np.full(size, upper), values.size, rows, pairs, values)
    return first


def _need(solver: Any, problem: SuppressionProblem, cell: int, pair: list[int]) -> None:
    up, down = pair[0] + cell, pair[1] + cell
    one = np.ones(1)
    solver.addRow(float(problem.upper[cell]), np.inf, 1, np.array([up], dtype=np.int32), one)
    solver.addRow(-np.inf, -float(problem.lower[cell]), 1, np.array([down], dtype=np.int32), one)
    solver.addRow(float(problem.spread[cell]), np.inf, 2, np.array([up, down], dtype=np.int32), np.array([1.0, -1.0]))


def _add_columns(solver: Any, costs: Real, low: Real, high: Real) -> None:
    none = np.zeros(0, dtype=np.int32)
    solver.addCols(costs.size, costs, low, high, 0, np.zeros(costs.size, dtype=np.int32), none, np.zeros(0))
