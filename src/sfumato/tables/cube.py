"""A cube: one or more tables over the same dimensions, as cells of one linear system.

From microdata (`tables.counting`) or from cells that somebody has. Values are whole numbers of the last digit that the tables
show, so that totals are exact and the same on every engine. Willenborg, de Waal, "Elements of statistical disclosure control",
Springer 2001; Hundepool et al., "Statistical disclosure control", Wiley 2012.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import Declared
from sfumato.core.errors import InputError, ParameterError, all_at_once, as_name
from sfumato.core.ranges import Text, Whole
from sfumato.core.texts import counted
from sfumato.tables.contributions import Contributions
from sfumato.tables.dimension import Dimension
from sfumato.tables.grid import Shown, TableGrid, completed
from sfumato.tables.system import LinearSystem

#: Whole numbers beyond this are no longer exact as floats.
_EXACT = 2**53
_MOST_NAMED = 10


@dataclass(frozen=True)
class Shape(Declared):
    """What the cells hold: the name of the `value` that is added up (None: records are counted), and how many `decimals` are
    shown."""

    value: Annotated[str | None, Text("the name of a column"), "the column that is added up; records are counted without one"] = (
        None
    )
    decimals: Annotated[int, Whole(at_least=0, at_most=9), "digits after the point that the tables show"] = 0
    dataset: Annotated[str, Text("a text"), "the data set that the table is about"] = "unnamed"


@dataclass(frozen=True, eq=False)
class TableCube:
    """The cells of some tables. `units[cell]` is its value in units of the last digit shown.

    contributions: the contributors behind the cells and the largest of them, where that is known. singles: groups of cells that
    have one and the same contributor. A cube is the owner's: it holds what protection hides.

    >>> rows, columns = Dimension.flat("town", ["A", "B"]), Dimension.flat("sex", ["f", "m"])
    >>> cells = {("A", "f"): 3, ("A", "m"): 20, ("B", "f"): 15, ("B", "m"): 9}
    >>> TableCube.from_cells(cells, [rows, columns]).value_at("Total", "f")
    18.0
    """

    grid: TableGrid
    shape: Shape
    units: NDArray[np.int64] = field(repr=False)
    contributions: Contributions | None = field(default=None, repr=False)
    singles: tuple[NDArray[np.int64], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if self.grid.size == 0 or not self.units.any():
            raise InputError("the cube is empty: every cell is 0. Check the rows it is made from.")
        self.system.refuse_contradictions(self.units, self.name_of)
        negative = np.flatnonzero(self.units < 0)
        reason = "is negative; levels and intervals suppose that contributions are not"
        _refuse(negative, self.name_of, f"{reason}. Publish gains and losses apart, or shift the values")

    def __repr__(self) -> str:
        sizes = " × ".join(f"{each.name} {len(each.codes)}" for each in self.dimensions)
        what = "records" if self.shape.value is None else f"'{self.shape.value}'"
        return f"TableCube({what} by {sizes}: {counted(self.size, 'cell')}, {counted(self.system.equations, 'equation')})"

    @classmethod
    def from_cells(
        cls,
        cells: Mapping[tuple[str, ...], float] | Iterable[tuple[tuple[str, ...], float]],
        dimensions: Sequence[Dimension],
        *,
        value: str | None = None,
        decimals: int = 0,
        counts: Mapping[tuple[str, ...], int] | None = None,
        largest: Mapping[tuple[str, ...], Sequence[float]] | None = None,
        tables: Sequence[Shown] = (),
        rounding: int = 0,
        dataset: str = "unnamed",
    ) -> TableCube:
        """From values by their coordinates, in the order of the dimensions.

        A total that is not listed is the sum of its parts, any other cell that is not listed is 0. `counts` are how many
        contributors each cell has, `largest` their largest contributions in falling order. `rounding` says by how many units of
        the last digit, for each of its parts, a listed total may differ from their sum; it is then computed again.
        """
        shape = Shape(value, decimals, dataset)
        grid = TableGrid.of(dimensions, tables)
        listed = list(cells.items() if isinstance(cells, Mapping) else cells)
        places = _places(grid, [coordinates for coordinates, _ in listed])
        units, stated = np.zeros(grid.size, dtype=np.int64), np.zeros(grid.size, dtype=np.bool_)
        units[places] = in_units([amount for _, amount in listed], decimals, lambda row: grid.name_of(int(places[row])))
        stated[places] = True
        units = completed(grid.system, units, stated)
        if rounding:
            units = _reconciled(grid.system, units, rounding)
        contributions = None
        if counts is not None:
            contributions = _contributions(grid, units, counts, largest or {}, decimals)
        elif value is None:
            each_one = np.ones((grid.size, 1))
            contributions = Contributions(units.astype(np.float64), units.copy(), each_one, each_one)
        singles = () if contributions is None else _alone(grid.system, contributions)
        return cls(grid, shape, units, contributions, singles)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions, in the order of the coordinates."""
        return self.grid.dimensions

    @property
    def system(self) -> LinearSystem:
        """The equations between all cells."""
        return self.grid.system

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.grid.size

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The values as they would be shown."""
        return np.asarray(self.units / 10.0**self.shape.decimals)

    def name_of(self, cell: int) -> str:
        """The coordinates of a cell in words."""
        return self.grid.name_of(cell)

    def cell(self, *codes: str) -> int:
        """The number of the cell with these codes, in the order of the dimensions."""
        return int(_places(self.grid, [codes])[0])

    def value_at(self, *codes: str) -> float:
        """The value of the cell with these codes."""
        return float(self.values[self.cell(*codes)])


def in_units(values: Sequence[float], decimals: int, name_of: Callable[[int], str] = "value {}".format) -> NDArray[np.int64]:
    """Values as whole numbers of the last digit; refused where they are not finite or too large to be exact."""
    scaled = np.asarray(values, dtype=np.float64) * 10.0**decimals
    bad = np.flatnonzero(~np.isfinite(scaled) | (np.abs(scaled) >= _EXACT))
    _refuse(bad, name_of, f"is not a finite number below {_EXACT} units of the last digit. Show fewer decimals")
    return np.floor(scaled + 0.5).astype(np.int64)


def _refuse(cells: NDArray[np.int64], name_of: Callable[[int], str], why: str) -> None:
    listed = [f"{name_of(int(cell))} {why}" for cell in cells[:_MOST_NAMED]]
    if cells.size > _MOST_NAMED:
        listed.append(f"… and {cells.size - _MOST_NAMED:,} more")
    all_at_once(InputError, "cells", listed)


def _places(grid: TableGrid, coordinates: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """The cells with these codes; every unknown code, unknown cell and repeated cell is named at once."""
    faults: list[str] = []
    if not coordinates:
        raise InputError("the cube is empty: no cell is listed")
    short = sum(len(each) != len(grid.dimensions) for each in coordinates)
    if short:
        raise ParameterError(f"{short:,} cells do not have one code for each of the {len(grid.dimensions)} dimensions")
    codes = np.full((len(coordinates), len(grid.dimensions)), -1, dtype=np.int64)
    for axis, dimension in enumerate(grid.dimensions):
        column = [dimension.place.get(str(each[axis]), -1) for each in coordinates]
        codes[:, axis] = column
        unknown = dict.fromkeys(str(each[axis]) for each, place in zip(coordinates, column, strict=True) if place < 0)
        of = f"is no code of the dimension {as_name(dimension.name)}"
        faults += [f"{as_name(code)} {of}" for code in list(unknown)[:_MOST_NAMED]]
        if len(unknown) > _MOST_NAMED:
            faults.append(f"… and {len(unknown) - _MOST_NAMED:,} more codes of {as_name(dimension.name)}")
    all_at_once(InputError, "cells", faults)
    places = grid.cell_of(codes)
    absent = [f"row {row + 1} names a cell that no table shows" for row in np.flatnonzero(places < 0)[:_MOST_NAMED]]
    cells, often = np.unique(places, return_counts=True)
    repeated = np.flatnonzero((often > 1) & (cells >= 0))[:_MOST_NAMED]
    twice = [f"{grid.name_of(int(cells[each]))} is listed {often[each]} times" for each in repeated]
    all_at_once(InputError, "cells", [*absent, *twice])
    return places


def _alone(system: LinearSystem, behind: Contributions) -> tuple[NDArray[np.int64], ...]:
    """Groups of cells with one and the same contributor, or one that gave everything: a total and the part that has it."""
    everything = (behind.totals > 0) & (behind.largest[:, 0] >= behind.totals) & (behind.count > 0)
    count = np.where(everything, 1, behind.count)
    group = np.arange(system.size)
    for _ in range(system.equations + 1):
        before = group.copy()
        for row in np.flatnonzero(count[system.cells[system.starts[:-1]]] == 1):
            cells = system.cells[system.starts[row] : system.starts[row + 1]]
            same = cells[count[cells] == 1]
            group[same] = group[same].min()
        if np.array_equal(before, group):
            break
    alone = np.flatnonzero(count == 1)
    return tuple(alone[group[alone] == each] for each in np.unique(group[alone]))


def _reconciled(system: LinearSystem, units: NDArray[np.int64], rounding: int) -> NDArray[np.int64]:
    """Totals computed again from cells that are no total, where each was no farther away than rounding explains."""
    totals = np.zeros(system.size, dtype=np.bool_)
    totals[system.cells[system.starts[:-1]]] = True
    again = completed(system, units, ~totals)
    allowed = rounding * np.diff(system.starts)
    off = np.abs(system.residuals(units)) > allowed
    return units if off.any() else again


def _contributions(
    grid: TableGrid,
    units: NDArray[np.int64],
    counts: Mapping[tuple[str, ...], int],
    largest: Mapping[tuple[str, ...], Sequence[float]],
    decimals: int,
) -> Contributions:
    count, stated = np.zeros(grid.size, dtype=np.int64), np.zeros(grid.size, dtype=np.bool_)
    places = _places(grid, list(counts))
    count[places] = np.array([math.ceil(each) for each in counts.values()], dtype=np.int64)
    stated[places] = True
    if not stated.all():
        count = completed(grid.system, count, stated)
    keep = max((len(each) for each in largest.values()), default=1)
    top = np.zeros((grid.size, keep))
    if largest:
        for cell, values in zip(_places(grid, list(largest)), largest.values(), strict=True):
            top[cell, : len(values)] = np.asarray(values, dtype=np.float64) * 10.0**decimals
    return Contributions(units.astype(np.float64), count, top, np.ones_like(top))
