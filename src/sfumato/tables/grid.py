"""Which cells some tables over the same dimensions have, and the one linear system that holds all of them.

A table shows, of every dimension, some codes; its cells are all combinations of them. Two tables that show the same combination
share that cell. Every sum of a dimension whose codes a table shows gives one equation for each combination of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, as_name
from sfumato.tables.dimension import Dimension
from sfumato.tables.system import LinearSystem

#: Cells that a cube may have: every one of them is a variable of the audit.
MOST_CELLS = 2_000_000

#: Sums of a dimension are numbered apart from those of another.
_APART = 1_000_003

#: The codes that a table shows of each dimension, by their places.
Shown = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class TableGrid:
    """`keys` are the cells in order, each as one number; `coordinates[cell, dimension]` is a place among the codes."""

    dimensions: tuple[Dimension, ...]
    tables: tuple[Shown, ...]
    keys: NDArray[np.int64]

    @classmethod
    def of(cls, dimensions: Sequence[Dimension], tables: Sequence[Shown] = ()) -> TableGrid:
        """The cells of these tables; without any, one table that shows every code."""
        every = tuple(tuple(range(len(each.codes))) for each in dimensions)
        shown = tuple(tables) or (every,)
        if not dimensions:
            raise InputError("a cube needs at least one dimension. Name a column by which cells are formed.")
        names = [each.name for each in dimensions]
        if len(set(names)) < len(names):
            raise InputError("a dimension is named twice. Name every column once.")
        sizes = [_product(len(codes) for codes in table) for table in shown]
        if sum(sizes) > MOST_CELLS or _product(len(each.codes) for each in dimensions) >= 2**62:
            raise InputError(
                f"the tables have {sum(sizes):,} cells, above the limit of {MOST_CELLS:,}. Use fewer dimensions or coarser codes."
            )
        strides = _strides(dimensions)
        keys = np.unique(np.concatenate([_keys(table, strides) for table in shown]))
        return cls(tuple(dimensions), shown, keys)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return int(self.keys.size)

    @cached_property
    def coordinates(self) -> NDArray[np.int32]:
        """The places of every cell's codes."""
        strides = _strides(self.dimensions)
        rest = self.keys
        columns = []
        for stride in strides:
            columns.append(rest // stride)
            rest = rest % stride
        return np.stack(columns, axis=1).astype(np.int32)

    def cell_of(self, coordinates: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the cell at each row of places; -1 where no table shows it."""
        keys = coordinates @ np.array(_strides(self.dimensions), dtype=np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), self.size - 1)
        return np.where(self.keys[at] == keys, at, -1)

    def name_of(self, cell: int) -> str:
        """The coordinates of a cell in words: `size=small, region=Total`."""
        codes = self.coordinates[cell].tolist()
        return ", ".join(
            f"{_shown(each.name)}={_shown(each.codes[code])}" for each, code in zip(self.dimensions, codes, strict=True)
        )

    @cached_property
    def system(self) -> LinearSystem:
        """All equations of all tables, each once."""
        strides = _strides(self.dimensions)
        seen: set[tuple[int, int]] = set()
        rows: list[NDArray[np.int64]] = []
        lengths: list[NDArray[np.int64]] = []
        for table in self.tables:
            for axis, dimension in enumerate(self.dimensions):
                codes = set(table[axis])
                others = np.sort(_keys(tuple((0,) if i == axis else each for i, each in enumerate(table)), strides))
                for number, (total, parts) in enumerate(dimension.sums):
                    if total not in codes or not codes.issuperset(parts):
                        continue
                    names = [(base + total * strides[axis], axis * _APART + number) for base in others.tolist()]
                    fresh = np.array([name not in seen for name in names], dtype=np.bool_)
                    if len(self.tables) > 1:
                        seen.update(names)
                    bases = others[fresh]
                    steps = np.array([total, *parts], dtype=np.int64) * strides[axis]
                    rows.append(np.searchsorted(self.keys, (bases[:, None] + steps[None, :]).ravel()))
                    lengths.append(np.full(bases.size, len(parts) + 1, dtype=np.int64))
        if not rows:
            return LinearSystem.of([], self.size)
        every = np.concatenate(lengths)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(every)])
        cells = np.concatenate(rows).astype(np.int32)
        signs = np.ones(cells.size, dtype=np.int8)
        signs[starts[:-1]] = -1
        return LinearSystem(starts, cells, signs, self.size)


def completed(system: LinearSystem, values: NDArray[np.int64], stated: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Values where totals that nobody stated are the sums of their parts, and every other cell that nobody stated is 0."""
    filled, settled = values.copy(), stated.copy()
    filled[~stated] = 0
    totals = system.cells[system.starts[:-1]]
    is_total = np.zeros(system.size, dtype=np.bool_)
    is_total[totals] = True
    settled |= ~is_total
    entries, rows = system.cells, system.rows
    while not settled.all():
        unsettled = np.zeros(system.equations, dtype=np.int64)
        np.add.at(unsettled, rows, ~settled[entries])
        ready = (unsettled == 1) & ~settled[totals]
        if not ready.any():
            raise InputError("some totals are neither stated nor the sum of cells that are. State them, or their parts.")
        sums = np.zeros(system.equations, dtype=np.int64)
        np.add.at(sums, rows, np.where(system.signs > 0, filled[entries], 0))
        filled[totals[ready]] = sums[ready]
        settled[totals[ready]] = True
    return filled


def _shown(text: str) -> str:
    return text if text and len(text) <= 60 and "," not in text and "=" not in text else as_name(text)


def _product(sizes: Iterable[int]) -> int:
    total = 1
    for each in sizes:
        total *= each
    return total


def _strides(dimensions: Sequence[Dimension]) -> list[int]:
    strides = [1]
    for each in reversed(dimensions[1:]):
        strides.insert(0, strides[0] * len(each.codes))
    return strides


def _keys(table: Shown, strides: Sequence[int]) -> NDArray[np.int64]:
    keys = np.zeros(1, dtype=np.int64)
    for codes, stride in zip(table, strides, strict=True):
        keys = (keys[:, None] + np.array(codes, dtype=np.int64)[None, :] * stride).ravel()
    return keys
