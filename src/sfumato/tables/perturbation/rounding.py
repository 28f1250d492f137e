"""Rounding a table to multiples of a base: conventional, random, controlled, and of small counts alone.

Conventional rounding is no protection where sums are published: parts and totals narrow each other down. Random rounding is
unbiased. Controlled rounding keeps every total the sum of its parts. Cox, Ernst, "Controlled rounding", INFOR 20, 1982; Langsrud,
Heldal, "An algorithm for small count rounding of tabular data", PSD 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Infeasible
from sfumato.core.guarantees.base import Guarantee
from sfumato.core.randomness import Randomness, below
from sfumato.core.ranges import Positive, Whole
from sfumato.tables.cube import TableCube
from sfumato.tables.grid import completed
from sfumato.tables.perturbation.base import TableMethod, rounded_up
from sfumato.tables.perturbation.programme import add_columns, add_sums, quiet, solved
from sfumato.tables.promises import MultiplesOf

Base = Annotated[int, Whole(at_least=2), "the base, in units of the last digit"]


@dataclass(frozen=True)
class _ToABase(TableMethod):
    """A method whose values are multiples of a base."""

    base: Base = 5

    def promises(self) -> tuple[Guarantee, ...]:
        """Every value is a multiple of the base."""
        return (MultiplesOf(self.base),)


@dataclass(frozen=True)
class ConventionalRounding(_ToABase):
    """Each cell to the nearest multiple of `base`, halves upwards. Without chance: whoever knows a total learns more than one
    cell tells.

    >>> from sfumato.tables import Dimension, TableCube
    >>> cube = TableCube.from_cells({("A",): 22, ("B",): 9}, [Dimension.flat("town", ["A", "B"])])
    >>> ConventionalRounding(5).run(cube).result.texts
    ['30', '20', '10']
    """

    draws: ClassVar[bool] = False

    def changed(self, cube: TableCube, source: Randomness) -> NDArray[np.int64]:
        """The nearest multiple."""
        return np.asarray((2 * cube.units + self.base) // (2 * self.base) * self.base)


@dataclass(frozen=True)
class RandomRounding(_ToABase):
    """Each cell to one of the two multiples of `base` around it, so that its expectation is its value: x goes up with probability
    (x mod base)/base. Multiples of the base stay. Cells are drawn one by one, so parts need not add up."""

    def changed(self, cube: TableCube, source: Randomness) -> NDArray[np.int64]:
        """Drawn with exact chances."""
        return rounded_up(cube.units, self.base, source)


@dataclass(frozen=True)
class ControlledRounding(_ToABase):
    """Each cell to a multiple of `base`, at the least total distance, such that every total is the sum of its parts.

    A cell goes to one of the two multiples around it, and multiples stay, wherever the table allows that; tables of three and
    more dimensions, or with several hierarchies, may need one step more. Ties are broken by chance. `seconds` ends the search.
    """

    seconds: Annotated[Positive, "how long to search for the closest table"] = 20.0

    keeps_sums: ClassVar[bool] = True

    def changed(self, cube: TableCube, source: Randomness) -> NDArray[np.int64]:
        """Minimise Σ |rounded − value| over additive tables of multiples."""
        down, rest = cube.units // self.base, cube.units % self.base
        for steps in range(4):
            low, high = np.maximum(down - steps, 0), down + (rest > 0) + steps
            step = self._closest(cube, low, high, source)
            if step is not None:
                return step * self.base
        raise Infeasible(f"no additive table of multiples of {self.base} was found within {self.seconds:g} s. Allow more time.")

    def _closest(
        self, cube: TableCube, low: NDArray[np.int64], high: NDArray[np.int64], source: Randomness
    ) -> NDArray[np.int64] | None:
        """Columns are steps above `low`; the cost of each is convex, so a second column stands for what goes beyond the value."""
        nudge = np.array([1 + below(source, 1000) / 1e6 for _ in range(cube.size)])
        down, up = cube.units // self.base - low, high - low
        cheap = np.where(cube.units % self.base > 0, self.base - 2.0 * (cube.units % self.base), self.base) * nudge
        solver = quiet(self.seconds)
        add_columns(solver, np.zeros(cube.size), np.zeros(cube.size), up.astype(np.float64), True)
        add_sums(solver, cube.system, 1.0, -_sums(cube, low))
        # below the value each step is gained, the step across it costs the difference, each further one costs the whole base
        for start, stop, cost in (
            (np.zeros_like(down), down, -self.base * nudge),
            (down, np.minimum(down + 1, up), cheap),
            (np.minimum(down + 1, up), up, self.base * nudge),
        ):
            add_columns(solver, cost, np.zeros(cube.size), np.maximum(stop - start, 0).astype(np.float64), False)
        every = np.arange(cube.size)
        parts = np.stack([every + block * cube.size for block in range(4)], axis=1).ravel().astype(np.int32)
        signs, zeros = np.tile([1.0, -1.0, -1.0, -1.0], cube.size), np.zeros(cube.size)
        solver.addRows(cube.size, zeros, zeros, parts.size, (every * 4).astype(np.int32), parts, signs)
        values = solved(solver)
        return None if values is None else low + np.floor(values[: cube.size] + 0.5).astype(np.int64)


@dataclass(frozen=True)
class SmallCountRounding(TableMethod):
    """Cells that are no total and lie between 0 and `base` become 0 or `base`, such that totals change least; totals are added up
    again. Larger cells stay as they are."""

    base: Base = 3
    seconds: Annotated[Positive, "how long to search for the closest table"] = 20.0

    keeps_sums: ClassVar[bool] = True

    def changed(self, cube: TableCube, source: Randomness) -> NDArray[np.int64]:
        """Choose for each small cell so that Σ |change of a total| is least."""
        totals = np.zeros(cube.size, dtype=np.bool_)
        totals[cube.system.cells[cube.system.starts[:-1]]] = True
        small = ~totals & (cube.units > 0) & (cube.units < self.base)
        low = np.where(totals, -np.inf, np.where(small, -cube.units, 0)).astype(np.float64)
        nudge = np.array([below(source, 1000) / 1e6 for _ in range(cube.size)])
        solver = quiet(self.seconds)
        add_columns(solver, np.zeros(cube.size), low, np.where(totals, np.inf, np.where(small, np.inf, 0.0)), False)
        add_sums(solver, cube.system, 1.0, np.zeros(cube.system.equations))
        add_columns(solver, nudge, np.zeros(cube.size), small.astype(np.float64), True)
        add_columns(solver, np.ones(2 * cube.size), np.zeros(2 * cube.size), np.full(2 * cube.size, np.inf), False)
        every = np.arange(cube.size)
        rows = np.stack([every, every + cube.size, every + 2 * cube.size, every + 3 * cube.size], axis=1)
        # change = base · chosen − value for small cells; change = above − below for all
        for cell in np.flatnonzero(small).tolist():
            right = -float(cube.units[cell])
            solver.addRow(right, right, 2, rows[cell, :2].astype(np.int32), np.array([1.0, -float(self.base)]))
        apart, zeros = rows[:, [0, 2, 3]].ravel().astype(np.int32), np.zeros(cube.size)
        signs = np.tile([1.0, -1.0, 1.0], cube.size)
        solver.addRows(cube.size, zeros, zeros, apart.size, (every * 3).astype(np.int32), apart, signs)
        values = solved(solver)
        if values is None:
            raise Infeasible(f"no rounding of the small cells was found within {self.seconds:g} s. Allow more time.")
        chosen = values[cube.size : 2 * cube.size] > 0.5
        units = np.where(small, np.where(chosen, self.base, 0), cube.units)
        return completed(cube.system, units.astype(np.int64), ~totals)


def _sums(cube: TableCube, values: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(cube.system.residuals(values), dtype=np.float64)
