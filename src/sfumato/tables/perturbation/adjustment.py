"""Controlled tabular adjustment: the closest additive table in which each sensitive cell lies outside its protection levels.

Minimise Σ w |d| with A d = 0, where each sensitive cell moves up by at least its upper level or down by at least its lower one.
Dandekar, Cox, "Synthetic tabular data: an alternative to complementary cell suppression", 2002; Castro, "Minimum-distance
controlled perturbation methods for large-scale tabular data protection", EJOR 171, 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Infeasible, InputError
from sfumato.core.randomness import Randomness, below
from sfumato.core.ranges import Each, Instance, Number, Positive
from sfumato.tables.cube import TableCube
from sfumato.tables.perturbation.base import TableMethod
from sfumato.tables.perturbation.programme import add_columns, add_sums, quiet, solved
from sfumato.tables.sensitivity import SensitivityRule, sensitive_cells


@dataclass(frozen=True)
class ControlledAdjustment(TableMethod):
    """The closest additive table that keeps every sensitive cell (`rules`) at its levels' distance.

    `reach`: by how many percent a cell that is not sensitive may move. `seconds` ends the search. Cells stay whole numbers of the
    last digit where the closest table has them; which of several closest tables is published is left to chance.
    """

    rules: Annotated[tuple[SensitivityRule, ...], Each(Instance(SensitivityRule)), "the rules of sensitivity"]
    reach: Annotated[float, Number(above=0), "percent by which other cells may move"] = 50.0
    seconds: Annotated[Positive, "how long to search for the closest table"] = 20.0

    keeps_sums: ClassVar[bool] = True

    def changed(self, cube: TableCube, source: Randomness) -> NDArray[np.int64]:
        """The cells after they were moved."""
        if cube.contributions is None:
            raise InputError("nothing is known of the contributors behind these cells, so no rule can be asked")
        sensitive = sensitive_cells(cube.contributions, self.rules)
        return adjusted(cube, sensitive.cells, sensitive.lower, sensitive.upper, self.reach, self.seconds, source)


def adjusted(
    cube: TableCube,
    primary: NDArray[np.bool_],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    reach: float,
    seconds: float,
    source: Randomness,
) -> NDArray[np.int64]:
    """The closest table: columns above and below each value, and the side of each sensitive cell."""
    size, places = cube.size, np.flatnonzero(primary)
    values = cube.units.astype(np.float64)
    free = np.where(primary, np.maximum(2 * np.maximum(lower, upper), values), np.floor(values * reach / 100.0))
    above, under = np.where(values > 0, np.maximum(free, 1.0), 0.0), np.where(values > 0, np.minimum(free, values), 0.0)
    cost = np.array([1 + below(source, 1000) / 1e6 for _ in range(size)]) / np.maximum(values, 1.0)
    solver = quiet(seconds)
    add_columns(solver, np.zeros(size), -under, above, True)
    add_sums(solver, cube.system, 1.0, np.zeros(cube.system.equations))
    add_columns(solver, np.concatenate([cost, cost]), np.zeros(2 * size), np.full(2 * size, np.inf), False)
    add_columns(solver, np.zeros(places.size), np.zeros(places.size), np.ones(places.size), True)
    every, zeros = np.arange(size), np.zeros(size)
    parts = np.stack([every, every + size, every + 2 * size], axis=1).ravel().astype(np.int32)
    solver.addRows(size, zeros, zeros, parts.size, (every * 3).astype(np.int32), parts, np.tile([1.0, -1.0, 1.0], size))
    for number, cell in enumerate(places.tolist()):
        side, far = 3 * size + number, float(above[cell] + under[cell] + upper[cell] + lower[cell])
        pair = np.array([cell, side], dtype=np.int32)
        # up: d ≥ upper where the side is 1; down: d ≤ −lower where it is 0
        solver.addRow(float(upper[cell]) - far, np.inf, 2, pair, np.array([1.0, -far]))
        solver.addRow(-np.inf, -float(lower[cell]), 2, pair, np.array([1.0, -far]))
    moved = solved(solver)
    if moved is None:
        raise Infeasible("no additive table keeps all sensitive cells at their levels' distance. Raise reach= or seconds=.")
    return np.asarray(cube.units + np.floor(moved[:size] + 0.5).astype(np.int64))


def distances(cube: TableCube, units: NDArray[np.int64], cells: Sequence[int]) -> list[int]:
    """How far some cells were moved, for their owner."""
    return [int(units[cell] - cube.units[cell]) for cell in cells]
