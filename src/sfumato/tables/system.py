"""A table as a sparse linear system over its cells, and the question which of them must be blank.

Every total gives one equation: its parts with the sign +1 and the total with -1 add up to 0. Tables that share cells are one
system, so that nothing is protected in one of them and given away by another. Fischetti, Salazar, "Solving the cell suppression
problem on tabular data with linear constraints", Management Science 47(7), 2001.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, ParameterError, all_at_once

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Real = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[Any]  # whole numbers or floats

#: How far rounding may take a sum of floats from its total, relative to the sizes that were added.
_ROUNDING = 1e-9
#: A blank must not be determined, whatever its levels: it stays open by so much of its value, and by 1 where cells are counts.
_LEAST_SPREAD = 1e-3


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """Equations Σ sign · x = 0 over the cells 0 … `size` - 1, row after row: equation e has the entries `starts[e]` to
    `starts[e + 1]` of `cells` and `signs`.

    >>> LinearSystem.of([(0, [1, 2])], 3).residuals(np.array([5, 2, 3])).tolist()
    [0]
    """

    starts: NDArray[np.int64]
    cells: NDArray[np.int32]
    signs: NDArray[np.int8]
    size: int

    @classmethod
    def of(cls, equations: Iterable[tuple[int, Sequence[int]]], size: int) -> LinearSystem:
        """The system of some totals with their parts: the total comes first in its row, with the sign -1."""
        rows = [(int(total), np.asarray(parts, dtype=np.int64)) for total, parts in equations]
        faults = []
        for place, (total, parts) in enumerate(rows):
            row = np.append(parts, total)
            if parts.size == 0:
                faults.append(f"equation {place} has a total and no parts")
            elif row.min() < 0 or row.max() >= size:
                faults.append(f"equation {place} names a cell that is not among the {size} cells")
            elif np.unique(row).size < row.size:
                faults.append(f"equation {place} names a cell twice")
        all_at_once(ParameterError, "these are no equations over cells", faults)
        lengths = np.array([parts.size + 1 for _, parts in rows], dtype=np.int64)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        cells, signs = np.zeros(int(starts[-1]), dtype=np.int32), np.ones(int(starts[-1]), dtype=np.int8)
        for start, (total, parts) in zip(starts.tolist(), rows, strict=False):
            cells[start], signs[start] = total, -1
            cells[start + 1 : start + 1 + parts.size] = parts
        return cls(starts, cells, signs, size)

    @property
    def equations(self) -> int:
        """How many equations there are."""
        return self.starts.size - 1

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The equation of every entry."""
        return np.repeat(np.arange(self.equations), np.diff(self.starts))

    @cached_property
    def matrix(self) -> csr_matrix:
        """The system as a sparse matrix, equations by cells."""
        from scipy.sparse import csr_matrix

        shape = (self.equations, self.size)
        return csr_matrix((self.signs.astype(np.float64), self.cells, self.starts), shape=shape, copy=True)

    def residuals(self, values: Numbers) -> Numbers:
        """What each equation adds up to instead of 0; exact where the values are whole numbers."""
        sums = np.zeros(self.equations, dtype=values.dtype)
        np.add.at(sums, self.rows, self.signs * values[self.cells])
        return sums

    def contradictions(self, values: Numbers) -> NDArray[np.int64]:
        """The equations that do not hold, beyond what rounding explains."""
        wrong = self.residuals(values)
        if np.issubdtype(values.dtype, np.integer):
            return np.flatnonzero(wrong)
        sizes = np.zeros(self.equations)
        np.add.at(sizes, self.rows, np.abs(values[self.cells]))
        return np.flatnonzero(~(np.abs(wrong) <= _ROUNDING * sizes))

    def refuse_contradictions(self, values: Numbers, name_of: Callable[[int], str]) -> None:
        """Refuse a table whose parts do not add up to their totals; all such totals at once, by their coordinates."""
        names = [name_of(int(self.cells[self.starts[equation]])) for equation in self.contradictions(values)]
        all_at_once(
            InputError,
            "the table is not additive",
            [f"the parts of {name} do not add up to it. Correct the total or its parts" for name in names],
        )


@dataclass(frozen=True, eq=False)
class SuppressionProblem:
    """Which cells must be blank beside the sensitive ones.

    values: the true values. primary: the cells that are sensitive. fixed: the cells that must stay published.
    weights: what it costs to leave a cell blank.
    known_low, known_high: between what an outsider knows every cell to lie, without the table.
    lower, upper, sliding: how far below and above its value the interval of a primary cell must reach, and how wide it must be.
    singles: groups of cells; each group is known to one contributor, who is an adversary too.
    whole: whether the cells are counts, so that an adversary looks for whole numbers only.
    """

    system: LinearSystem
    values: Numbers
    primary: Flags
    fixed: Flags
    weights: Real
    known_low: Real
    known_high: Real
    lower: Real
    upper: Real
    sliding: Real
    singles: tuple[NDArray[np.int64], ...] = ()
    whole: bool = False

    @classmethod
    def of(
        cls,
        system: LinearSystem,
        values: Numbers,
        primary: Flags,
        *,
        fixed: Flags | None = None,
        weights: Numbers | None = None,
        known_low: Numbers | float = 0.0,
        known_high: Numbers | float = np.inf,
        lower: Numbers | float = 0.0,
        upper: Numbers | float = 0.0,
        sliding: Numbers | float = 0.0,
        singles: Iterable[NDArray[np.int64]] = (),
        whole: bool = False,
    ) -> SuppressionProblem:
        """The problem with what is not said left open: every cell may be blank, each costs 1, values are not negative."""

        def full(entry: Numbers | float) -> Real:
            return np.array(np.broadcast_to(np.asarray(entry, dtype=np.float64), (system.size,)))

        return cls(
            system=system,
            values=np.asarray(values),
            primary=np.asarray(primary, dtype=np.bool_),
            fixed=np.zeros(system.size, dtype=np.bool_) if fixed is None else np.asarray(fixed, dtype=np.bool_),
            weights=full(1.0 if weights is None else weights),
            known_low=full(known_low),
            known_high=full(known_high),
            lower=full(lower),
            upper=full(upper),
            sliding=full(sliding),
            singles=tuple(np.asarray(group, dtype=np.int64) for group in singles),
            whole=whole,
        )

    @cached_property
    def spread(self) -> Real:
        """How wide the interval of each primary cell must be: `sliding`, and never next to nothing."""
        least = np.ones(self.system.size) if self.whole else _LEAST_SPREAD * np.maximum(np.abs(self.values), 1.0)
        bare = self.primary & (np.maximum(self.lower + self.upper, self.sliding) < least)
        return np.where(bare, np.maximum(self.sliding, np.minimum(least, self.room_below + self.room_above)), self.sliding)

    @cached_property
    def room_below(self) -> Real:
        """How far an adversary may think each cell to lie below its value."""
        low = np.ceil(self.known_low - _ROUNDING) if self.whole else self.known_low
        return np.asarray(np.maximum(self.values - low, 0.0), dtype=np.float64)

    @cached_property
    def room_above(self) -> Real:
        """How far an adversary may think each cell to lie above its value."""
        high = np.floor(self.known_high + _ROUNDING) if self.whole else self.known_high
        return np.asarray(np.maximum(high - self.values, 0.0), dtype=np.float64)

    def refuse_faults(self, name_of: Callable[[int], str] = "cell {}".format) -> None:
        """Refuse what is no problem or has no solution whatever is blank: all faults at once, cells by their coordinates."""
        size = self.system.size
        arrays = ("values", "primary", "fixed", "weights", "known_low", "known_high", "lower", "upper", "sliding")
        all_at_once(
            ParameterError,
            f"the table has {size} cells",
            [f"`{name}` has the shape {getattr(self, name).shape}" for name in arrays if getattr(self, name).shape != (size,)],
        )
        if size == 0:
            raise InputError("the table has no cells. Give at least one cell and one equation.")
        self._refuse_cells(name_of)
        self.system.refuse_contradictions(self.values, name_of)

    def _refuse_cells(self, name_of: Callable[[int], str]) -> None:
        levels = (self.lower, self.upper, self.sliding, self.weights)
        odd = ~np.isfinite(np.asarray(self.values, dtype=np.float64)) | np.any([~(level >= 0) for level in levels], axis=0)
        outside = ~odd & ~((self.known_low <= self.values) & (self.values <= self.known_high))
        slack = _ROUNDING * np.maximum(np.abs(self.values), 1.0)
        below, above = self.room_below + slack, self.room_above + slack
        free = self.primary & ~odd & ~outside
        beyond = free & ((self.lower > below) | (self.upper > above) | (self.spread > below + above))
        broken = self.whole & ~odd & (np.asarray(self.values, dtype=np.float64) % 1 != 0)
        reasons = {
            "has no finite value, or a level or weight that is negative": odd,
            "lies outside what an adversary is said to know of it (known_low, known_high)": outside,
            "has a protection level beyond what an adversary knows anyway; no table can keep it open so far."
            " Lower the level or widen known_low and known_high": beyond,
            "is sensitive and must stay published; take it out of one of the two": self.primary & self.fixed,
            "is not a whole number, and the table is said to hold counts": broken,
        }
        faults = [f"{name_of(int(cell))} {why}" for why, cells in reasons.items() for cell in np.flatnonzero(cells)]
        for group in self.singles:
            if group.size and (group.min() < 0 or group.max() >= self.system.size):
                faults.append("a group of cells known to one contributor names a cell that the table does not have")
        all_at_once(InputError, "the table cannot be protected as asked", faults)
