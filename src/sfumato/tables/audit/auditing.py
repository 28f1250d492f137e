"""The audit: between which ends every blank cell lies for those who read the table, and whether that is as wide as asked.

For each sensitive cell two linear programmes say how low and how high it can be in tables that agree with all that is published;
a solution also shows how far it leaves the other cells open, which saves most of the programmes. The same is asked for each
contributor, who knows some blank cells already, and in whole numbers where cells are counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.core.progress import Progress, silent
from sfumato.tables.audit.adversary import TableAdversary
from sfumato.tables.audit.nearby import Nearby
from sfumato.tables.audit.unions import Determined, determined_sums
from sfumato.tables.system import Flags, Numbers, Real, SuppressionProblem

#: How much of a level rounding may take away.
_ROUNDING = 1e-7
#: Up to so many blank cells the audit computes every interval to its ends by itself.
FEW = 1_500
#: The same for counts, whose ends may need searches in whole numbers.
_FEW_WHOLE = 200
#: Nodes of one search in whole numbers, in the whole table and around one cell.
_NODES, _NEARBY_NODES = 2_000, 50


class Break(NamedTuple):
    """A sensitive cell that is not as open as asked: for whom, why, and how close they come.

    `low` and `high` are the ends of its interval; `group` is the number of the group of `singles`, -1 for everybody.
    """

    cell: int
    group: int
    why: str
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Audit:
    """What a table with blanks says about them.

    cells: the blank cells. low, high: the ends of their intervals for outsiders; `exact` says where an end is the true end, and
    where the interval is at least so wide. broken: sensitive cells that are not as open as asked, or not proved to be.
    sums: sums of blanks that the equations determine. programmes: how many were solved. contributors: how many groups of
    `singles` were asked for.
    """

    cells: NDArray[np.int64]
    low: Real
    high: Real
    exact: NDArray[np.bool_]
    broken: tuple[Break, ...]
    sums: tuple[Determined, ...] = ()
    whole: bool = False
    programmes: int = 0
    contributors: int = field(default=0)

    @property
    def safe(self) -> bool:
        """Whether every sensitive cell is as open as asked, for outsiders and for each contributor."""
        return not self.broken

    def __bool__(self) -> bool:
        return self.safe


def audit(
    problem: SuppressionProblem,
    suppressed: Flags,
    *,
    exact: bool | None = None,
    earlier: Sequence[Flags] = (),
    between: tuple[Real, Real] | None = None,
    progress: Progress = silent,
    name_of: Callable[[int], str] = "cell {}".format,
) -> Audit:
    """Audit a pattern, wherever it comes from.

    exact: whether to compute the true ends of all intervals (None: where blanks are few). earlier: the blanks of versions of the
    same table that are published already; what one of them shows is no blank. between: for cells that are published rounded,
    the lowest and highest value that rounds to what is published; the ends are equal, or no numbers, for all other cells.

    >>> from sfumato.tables.system import LinearSystem
    >>> problem = SuppressionProblem.of(LinearSystem.of([(0, [1, 2])], 3), np.array([5, 2, 3]), np.array([False, True, False]))
    >>> audit(problem, problem.primary).safe
    False
    """
    problem.refuse_faults(name_of)
    suppressed = np.asarray(suppressed, dtype=np.bool_)
    for pattern in earlier:
        suppressed = suppressed & pattern
    rounded = np.zeros(suppressed.size, dtype=np.bool_)
    if between is not None:
        rounded = ~suppressed & (between[0] < between[1])
        problem, suppressed = _rounded(problem, rounded, between), suppressed | rounded
    shown = np.flatnonzero(problem.primary & ~suppressed)
    if not suppressed.any():
        none = np.zeros(0)
        breaks = [_published(problem, int(cell)) for cell in shown]
        return Audit(np.zeros(0, np.int64), none, none, np.zeros((2, 0), np.bool_), tuple(breaks))
    work = _Work(problem, suppressed, progress)
    work.outsiders(work.cells.size <= (_FEW_WHOLE if problem.whole else FEW) if exact is None else exact)
    breaks = [_published(problem, int(cell)) for cell in shown] + work.breaks(-1, work.low, work.high)
    if problem.singles:
        work.remember_moves()
    for group, cells in enumerate(problem.singles):
        breaks += work.contributor(group, cells)
    return Audit(
        cells=work.cells,
        low=work.low,
        high=work.high,
        exact=work.exact,
        broken=tuple(breaks),
        sums=determined_sums(problem.system, suppressed, problem.primary, rounded),
        whole=problem.whole,
        programmes=work.adversary.solved,
        contributors=len(problem.singles),
    )


def _rounded(problem: SuppressionProblem, rounded: Flags, between: tuple[Real, Real]) -> SuppressionProblem:
    """Rounded cells are blanks of which the adversary knows the two ends."""
    low, high = between
    return replace(
        problem,
        known_low=np.where(rounded, np.maximum(problem.known_low, low), problem.known_low),
        known_high=np.where(rounded, np.minimum(problem.known_high, high), problem.known_high),
    )


def _published(problem: SuppressionProblem, cell: int) -> Break:
    value = float(problem.values[cell])
    return Break(cell, -1, "is published", value, value)


class _Work:
    """One audit under way: the ends seen so far, widened by every table that agrees with the published one."""

    def __init__(self, problem: SuppressionProblem, suppressed: Flags, progress: Progress) -> None:
        low, high = problem.known_low, problem.known_high
        if problem.whole:
            low, high = np.ceil(low - _ROUNDING), np.floor(high + _ROUNDING)
        self.problem, self.progress = problem, progress
        self.ends, self.suppressed = (low, high), suppressed
        self.searcher: TableAdversary | None = None
        self.adversary = TableAdversary(problem.system, problem.values, suppressed, low, high, problem.whole)
        self.cells = self.adversary.cells
        self.values = problem.values[self.cells].astype(np.float64)
        self.low, self.high = self.values.copy(), self.values.copy()
        self.exact = np.zeros((2, self.cells.size), dtype=np.bool_)
        slack = _ROUNDING * np.maximum(np.abs(self.values), 1.0)
        self.primary = problem.primary[self.cells]
        self.below = np.where(self.primary, problem.lower[self.cells] - slack, 0.0)
        self.above = np.where(self.primary, problem.upper[self.cells] - slack, 0.0)
        self.spread = np.where(self.primary, problem.spread[self.cells] - slack, 0.0)
        self.nearby = Nearby(problem.system, suppressed) if problem.singles or problem.whole else None
        self.moved: dict[tuple[int, int], NDArray[np.int64] | None] = {}

    def outsiders(self, exact: bool) -> None:
        """How low and how high each cell can be; sensitive ones as far as asked, or all of them to the end."""
        slack = _ROUNDING * np.maximum(np.abs(self.values), 1.0)
        order = np.argsort(~self.primary, kind="stable")
        for done, place in enumerate(order.tolist()):
            self.progress("auditing", done, order.size)
            if not (exact or self.primary[place]):
                break
            for side in (1, -1):
                end = self.adversary.high[place] if side > 0 else self.adversary.low[place]
                seen = self.high[place] if side > 0 else self.low[place]
                if side * (end - seen) <= slack[place]:
                    self.exact[int(side > 0), place] = True
                elif exact or not self._enough(place, side):
                    if self.nearby is None or exact or not self._see_nearby(place, side, None):
                        self._look(place, side, exact)

    def _enough(self, place: int, side: int) -> bool:
        up, down = self.high[place] - self.values[place], self.values[place] - self.low[place]
        wide = up + down >= self.spread[place]
        return bool(wide and (up >= self.above[place] if side > 0 else down >= self.below[place]))

    def _look(self, place: int, side: int, exact: bool) -> None:
        table, ended = self._extreme(place, side, exact)
        self.exact[int(side > 0), place] = ended
        if table is not None:
            self._see(table)

    def _extreme(self, place: int, side: int, exact: bool) -> tuple[Real | None, bool]:
        """A table with the cell as far out as it goes, and whether that is certain."""
        cell = int(self.cells[place])
        table = self._neat(self.adversary.extreme(cell, side))
        if self.problem.whole and np.isfinite(table[place]):
            near = np.rint(table)
            if np.abs(near - table).max() <= 1e-6 and self._adds_up(near):
                return near, True
            enough = None
            if not exact:  # any table in whole numbers will do in which the cell is as far out as asked
                need = self.above[place] if side > 0 else self.below[place]
                other = self.values[place] - self.low[place] if side > 0 else self.high[place] - self.values[place]
                enough = float(self.values[place] + side * np.ceil(max(need, self.spread[place] - other)))
            if self.searcher is None:  # a model of its own, so that the other goes on from its last basis
                self.searcher = TableAdversary(self.problem.system, self.problem.values, self.suppressed, *self.ends, True)
            best, ended = self.searcher.whole_extreme(cell, side, _NODES, enough)
            return (best, ended) if best is not None and self._adds_up(best) else (None, False)
        return table, True

    def _neat(self, table: Real) -> Real:
        """Whole numbers where the table has whole numbers and the solver's rounding is all that keeps them from being so."""
        if not np.issubdtype(self.problem.values.dtype, np.integer) or not np.isfinite(table).all():
            return table
        near = np.rint(table)
        return np.where(np.abs(near - table) <= _ROUNDING * np.maximum(1.0, np.abs(near)), near + 0.0, table)

    def _adds_up(self, table: Real) -> bool:
        """Whether a table in whole numbers agrees with what is published: added up, nothing else."""
        values = self.problem.values.astype(np.float64).copy()
        values[self.cells] = table
        inside = (table >= self.adversary.low) & (table <= self.adversary.high)
        return bool(inside.all() and not self.problem.system.residuals(values).any())

    def _see(self, table: Real) -> None:
        np.fmin(self.low, table, out=self.low)
        np.fmax(self.high, table, out=self.high)

    def _see_nearby(self, place: int, side: int, barred: Flags | None) -> bool:
        """Whether a table that differs in the blanks around a cell alone suffices."""
        table = self._nearby_table(place, side, barred)
        if table is not None:
            self._see(table)
        return table is not None and self._enough(place, side)

    def _nearby_table(self, place: int, side: int, barred: Flags | None) -> Real | None:
        if self.nearby is None:
            return None
        cell = int(self.cells[place])
        near = self.nearby.of(cell, barred)
        whole = self.problem.whole
        inner = TableAdversary(self.problem.system, self.problem.values, near, *self.ends, whole)
        part: Real | None = self._neat(inner.extreme(cell, side))
        if part is None or not np.isfinite(part).all():
            return None
        if whole and np.abs(np.rint(part) - part).max() > 1e-6:
            part, _ = inner.whole_extreme(cell, side, _NEARBY_NODES)
        if part is None:
            return None
        table = self.values.copy()
        table[self.adversary.place[inner.cells]] = np.rint(part) if whole else part
        return None if whole and not self._adds_up(table) else table

    def remember_moves(self) -> None:
        """For each sensitive cell and side the blanks that a table moves which shows it open; None where there is no such table
        around the cell."""
        for place in np.flatnonzero(self.primary).tolist():
            up, down = (self._nearby_table(place, side, None) for side in (1, -1))
            reach = [abs(float(table[place] - self.values[place])) if table is not None else 0.0 for table in (up, down)]
            fine = reach[0] >= self.above[place] and reach[1] >= self.below[place] and sum(reach) >= self.spread[place]
            for side, table in ((1, up), (-1, down)):
                self.moved[place, side] = np.flatnonzero(table != self.values) if fine and table is not None else None

    def breaks(self, group: int, low: Real, high: Real, among: Flags | None = None) -> list[Break]:
        """The sensitive cells whose intervals are too narrow."""
        up, down = high - self.values, self.values - low
        faults = {
            "is determined exactly": ~(high > low),
            "cannot be far enough above its value": up < self.above,
            "cannot be far enough below its value": down < self.below,
            "has too narrow an interval": up + down < self.spread,
        }
        listed = []
        for place in np.flatnonzero(self.primary if among is None else self.primary & among).tolist():
            why = next((why for why, cells in faults.items() if cells[place]), None)
            if why is not None:
                listed.append(Break(int(self.cells[place]), group, why, float(low[place]), float(high[place])))
        return listed

    def contributor(self, group: int, cells: NDArray[np.int64]) -> list[Break]:
        """What somebody learns who knows these cells."""
        own = cells[self.adversary.place[cells] >= 0]
        if not own.size:
            return []
        mine = np.zeros(self.cells.size, dtype=np.bool_)
        mine[self.adversary.place[own]] = True
        barred = np.zeros(self.problem.system.size, dtype=np.bool_)
        barred[own] = True
        asked = np.zeros(self.cells.size, dtype=np.bool_)
        for (place, _), moved in self.moved.items():
            asked[place] |= moved is None or bool(mine[moved].any())
        asked &= ~mine
        if not asked.any():
            return []
        outside = self.low, self.high
        self.low, self.high = self.values.copy(), self.values.copy()
        self._hold(own)
        for place in np.flatnonzero(asked).tolist():
            for side in (1, -1):
                if not self._enough(place, side) and not self._see_nearby(place, side, barred):
                    beside, _ = self._extreme(place, side, False)
                    if beside is not None:
                        self._see(beside)
        answer = self.breaks(group, self.low, self.high, asked)
        self.low, self.high = outside
        self.adversary.release(own)
        if self.searcher is not None:
            self.searcher.release(own)
        return answer

    def _hold(self, cells: NDArray[np.int64]) -> None:
        """Somebody knows these cells."""
        if self.problem.whole and self.searcher is None:
            self.searcher = TableAdversary(self.problem.system, self.problem.values, self.suppressed, *self.ends, True)
        for model in (self.adversary, self.searcher):
            if model is not None:
                model.fix(cells, self.problem.values[cells].astype(np.float64))


def as_published(values: Numbers, suppressed: Flags) -> Real:
    """The table as it is published: blanks are no numbers."""
    return np.where(suppressed, np.nan, values.astype(np.float64))
