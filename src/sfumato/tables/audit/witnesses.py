"""Witnesses: whole tables that agree with what is published, for every blank cell one where it is low and one where it is high.

Anybody checks them by adding. They are computed from the published table alone, for all blanks alike: a table around a true
value, a protection level or the rule that fired would give a cell away. Numbers are whole numbers of the last published decimal,
so that a sum is right or wrong and never nearly right.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, Unsupported, all_at_once
from sfumato.core.progress import Progress, silent
from sfumato.tables.audit.adversary import TableAdversary
from sfumato.tables.system import Flags, LinearSystem, Numbers, Real

#: Up to so many blanks each gets its true lowest and highest.
_FEW = 600
#: Last decimals that a published number may have, and the greatest number of last decimals that floats hold exactly.
_UNITS: tuple[int, ...] = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
_EXACT = 2**52
_ROUNDING = 1e-6
_NODES = 200
#: The fractions of the last decimal that a corner of the feasible tables may need.
_PARTS = (1, 2, 3, 4, 6)


@dataclass(frozen=True, eq=False)
class Witnesses:
    """Tables for the blanks of one published table.

    cells: the blank cells. tables: one row for each table with the numbers of the blanks, in units of 1 / `unit`. lowest,
    highest: for each blank the row in which it is lowest and highest.
    """

    cells: NDArray[np.int64]
    tables: NDArray[np.int64]
    unit: int
    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]

    def ends(self) -> list[tuple[Fraction, Fraction]]:
        """How low and how high each blank is in these tables."""
        columns = np.arange(self.cells.size)
        low, high = self.tables[self.lowest, columns], self.tables[self.highest, columns]
        return [(Fraction(int(a), self.unit), Fraction(int(b), self.unit)) for a, b in zip(low, high, strict=True)]

    def refuse_wrong(
        self, published: Numbers, system: LinearSystem, known_low: Real | float = 0.0, known_high: Real | float = np.inf
    ) -> None:
        """Add every table up, in whole numbers: all that do not agree with what is published are refused at once."""
        blank = np.zeros(system.size, dtype=np.bool_)
        blank[self.cells] = True
        values = exact_numbers(published, blank, self.unit)
        low, high = np.broadcast_to(known_low, system.size)[self.cells], np.broadcast_to(known_high, system.size)[self.cells]
        faults = []
        for number, table in enumerate(self.tables):
            values[self.cells] = table
            outside = (table < low * self.unit - _ROUNDING) | (table > high * self.unit + _ROUNDING)
            if system.residuals(values).any():
                faults.append(f"table {number} does not add up")
            elif outside.any():
                faults.append(f"table {number} has numbers outside what is known of the cells")
        all_at_once(InputError, "these are no witnesses", faults)


def exact_numbers(published: Numbers, suppressed: Flags, unit: int) -> NDArray[np.int64]:
    """The published numbers in units of 1 / `unit`, with 0 at the blanks, whatever stands there."""
    shown = np.where(suppressed, 0, published)
    return np.rint(shown.astype(np.float64) * unit).astype(np.int64) if unit > 1 else np.rint(shown).astype(np.int64)


def last_decimal(published: Numbers, suppressed: Flags) -> int:
    """The power of ten that makes all published numbers whole."""
    shown = np.where(suppressed, 0, published).astype(np.float64)
    for unit in _UNITS:
        scaled = shown * unit
        if np.abs(scaled).max(initial=0.0) >= _EXACT:
            break
        if (np.abs(scaled - np.rint(scaled)) <= _ROUNDING + np.spacing(np.abs(scaled))).all():
            return unit
    raise Unsupported("witnesses need published numbers with a fixed number of decimals. Round the table, then protect it.")


def witnesses(
    published: Numbers,
    suppressed: Flags,
    system: LinearSystem,
    *,
    known_low: Real | float = 0.0,
    known_high: Real | float = np.inf,
    every: bool | None = None,
    progress: Progress = silent,
) -> Witnesses:
    """Tables that agree with the published one and keep every blank between `known_low` and `known_high`.

    What `published` holds at the blanks is not read. every: each blank gets its true lowest and highest (None: where blanks are
    few); otherwise blanks that are open in the tables so far get none of their own.

    >>> from sfumato.tables.system import LinearSystem
    >>> one = witnesses(np.array([5, np.nan, np.nan]), np.array([False, True, True]), LinearSystem.of([(0, [1, 2])], 3))
    >>> [(int(low), int(high)) for low, high in one.ends()]
    [(0, 5), (0, 5)]
    """
    suppressed = np.asarray(suppressed, dtype=np.bool_)
    cells = np.flatnonzero(suppressed)
    unit = last_decimal(published, suppressed)
    values = exact_numbers(published, suppressed, unit)
    complete = np.bincount(system.rows, weights=suppressed[system.cells], minlength=system.equations) == 0
    if system.residuals(values)[complete].any():
        raise InputError("the published cells do not add up to their totals in all decimals. Correct them before you publish.")
    if not cells.size:
        none = np.zeros(0, dtype=np.int64)
        return Witnesses(cells, np.zeros((0, 0), dtype=np.int64), unit, none, none)
    far = 2.0 * float(np.abs(values).sum()) + 1.0  # an end for cells that nothing bounds, computed from the published alone
    low = np.ceil(np.maximum(np.broadcast_to(known_low, system.size) * unit, -far) - _ROUNDING)
    high = np.floor(np.minimum(np.broadcast_to(known_high, system.size) * unit, far) + _ROUNDING)
    work = _Tables(system, values, suppressed, low, high)
    work.gather(cells.size <= _FEW if every is None else every, progress)
    return work.result(unit)


class _Tables:
    """The tables so far, in units of the last decimal or a part of it."""

    def __init__(self, system: LinearSystem, values: NDArray[np.int64], suppressed: Flags, low: Real, high: Real) -> None:
        self.system, self.values = system, values
        self.adversary = TableAdversary(system, values, suppressed, low, high, whole=True)
        self.cells = self.adversary.cells
        self.low, self.high = low[self.cells], high[self.cells]
        self.tables: list[tuple[NDArray[np.int64], int]] = []
        self.least = np.full(self.cells.size, np.inf)
        self.most = np.full(self.cells.size, -np.inf)

    def gather(self, every: bool, progress: Progress) -> None:
        for place, cell in enumerate(self.cells.tolist()):
            progress("witnesses", place, self.cells.size)
            for side in (1, -1):
                if self._settled(place, side, every):
                    continue
                self._take(self.adversary.extreme(cell, side), cell, side)
        if not self.tables:
            raise Unsupported("no exact table was found that agrees with what is published; the audit stands without witnesses.")

    def _settled(self, place: int, side: int, every: bool) -> bool:
        if side > 0 and self.most[place] >= self.high[place] or side < 0 and self.least[place] <= self.low[place]:
            return True
        return not every and bool(self.most[place] > self.least[place])

    def _take(self, corner: Real, cell: int, side: int) -> None:
        """Keep a corner of the feasible tables if it is exact in parts of the last decimal, or whole numbers near it."""
        for parts in _PARTS:
            table = np.rint(corner * parts).astype(np.int64)
            if np.abs(table - corner * parts).max() <= _ROUNDING * max(1.0, float(np.abs(corner).max())) and self._agrees(
                table, parts
            ):
                self._keep(table, parts)
                return
        best, _ = self.adversary.whole_extreme(cell, side, _NODES)
        if best is not None and self._agrees(near := np.rint(best).astype(np.int64), 1):
            self._keep(near, 1)

    def _agrees(self, table: NDArray[np.int64], parts: int) -> bool:
        values = self.values * parts
        values[self.cells] = table
        inside = (table >= self.low * parts) & (table <= self.high * parts)
        return bool(inside.all()) and not self.system.residuals(values).any()

    def _keep(self, table: NDArray[np.int64], parts: int) -> None:
        self.tables.append((table, parts))
        np.minimum(self.least, table / parts, out=self.least)
        np.maximum(self.most, table / parts, out=self.most)

    def result(self, unit: int) -> Witnesses:
        """The tables that some blank is lowest or highest in, in one unit."""
        parts = int(np.lcm.reduce([parts for _, parts in self.tables]))
        tables = np.stack([table * (parts // own) for table, own in self.tables])
        lowest, highest = tables.argmin(axis=0), tables.argmax(axis=0)
        used, places = np.unique(np.concatenate([lowest, highest]), return_inverse=True)
        count = self.cells.size
        return Witnesses(self.cells, tables[used], unit * parts, places[:count], places[count:])
