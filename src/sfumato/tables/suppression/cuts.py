"""Cutting planes: only which cells are blank is decided, and every adversary who learns too much adds an inequality.

The adversary's dual prices bound how far a sensitive cell can deviate by the rooms of the cells that are blank: a capacity cut.
Coefficients beyond the level are clipped to it. A cover cut says that of the cells beside those that do not suffice together one
must be blank; a bridgeless cut, that a cell is blank for nothing if nothing that crosses is. The linear relaxation is cut first,
then the integer programme. Fischetti, Salazar, "Solving the cell suppression problem on tabular data with linear constraints",
Management Science 47(7), 2001.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.suppression.deviations import Deviations, limited
from sfumato.tables.suppression.needs import Need
from sfumato.tables.system import LinearSystem, Real, SuppressionProblem

#: By how much a cut must be missed to be worth adding, relative to its right side.
_MISSED = 1e-4
#: A cell with less of y than this is not blank in the relaxation.
_ABSENT = 1e-7
_NOTHING = 1e-9


class CuttingPlane(NamedTuple):
    """Σ coefficient · y over some cells is at least `least`."""

    cells: NDArray[np.int64]
    coefficients: Real
    least: float

    def missed_by(self, share: Real) -> float:
        """How far a solution falls short, relative to the right side."""
        return 1.0 - float(self.coefficients @ share[self.cells]) / self.least


class Separation:
    """Finds the cuts that a solution misses."""

    def __init__(self, problem: SuppressionProblem) -> None:
        self.problem = problem
        free = ~problem.fixed
        levels = np.maximum(np.maximum(problem.lower, problem.upper), problem.spread)
        self.below = np.where(free, limited(problem.room_below, levels), 0.0)
        self.above = np.where(free, limited(problem.room_above, levels), 0.0)
        self.candidates = free & ~problem.primary & (self.below + self.above > 0)
        self.transposed = problem.system.matrix.T.tocsr()
        self.solved = 0

    def missed(self, share: Real, needs: list[Need], most: int, least_missed: float = _MISSED) -> list[CuttingPlane]:
        """The cuts for some adversaries that a solution misses, up to `most`; at most one that crosses each sensitive cell."""
        columns = np.flatnonzero(share > _ABSENT)
        model = Deviations(self.problem.system, columns, (self.below * share)[columns], (self.above * share)[columns])
        cuts: list[CuttingPlane] = []
        reach = np.zeros((2, share.size))
        crossed = np.zeros(share.size, dtype=np.bool_)
        held: int | None = None
        for need in needs:
            if crossed[need.cell] or len(cuts) >= most:
                continue
            if need.group != (-1 if held is None else held):
                if held is not None:
                    model.release(self.problem.singles[held])
                held = None if need.group < 0 else need.group
                if held is not None:
                    model.hold(self.problem.singles[held])
            cut = self._against(model, need, reach if need.group < 0 else None, share, least_missed)
            if cut is not None:
                cuts.append(cut)
                cover = self.cover(cut, share)
                cuts += [cover] if cover is not None else []
                crossed[need.cell] = True
        self.solved += model.solved
        return cuts

    def _against(self, model: Deviations, need: Need, reach: Real | None, share: Real, missed: float) -> CuttingPlane | None:
        sides = (1, -1) if need.side == 0 else (need.side,)
        total, coefficients = 0.0, np.zeros(share.size)
        for side in sides:
            seen = 0.0 if reach is None else float(reach[int(side > 0), need.cell])
            if seen >= need.amount * (1 - missed):
                return None
            far = model.furthest(need.cell, side)
            total += far.far
            if reach is not None:
                np.maximum.at(reach[1], model.columns, far.deviations)
                np.maximum.at(reach[0], model.columns, -far.deviations)
            coefficients += self._coefficients(need, side, far.prices)
        if total >= need.amount * (1 - missed):
            return None
        cut = self._cut(coefficients, need.amount)
        return cut if cut is not None and cut.missed_by(share) > missed / 2 else None

    def _coefficients(self, need: Need, side: int, prices: Real) -> Real:
        """How far each cell lets the sensitive one deviate at these prices, if it is blank."""
        worth = self.transposed @ prices
        worth[need.cell] += side
        worth[np.abs(worth) < _NOTHING] = 0.0
        if need.group >= 0:
            worth[self.problem.singles[need.group]] = 0.0
        rooms: Real = np.maximum(worth * self.above, -worth * self.below)
        return rooms

    def _cut(self, coefficients: Real, amount: float) -> CuttingPlane | None:
        """The inequality over the cells that may be chosen, clipped; sensitive ones are blank anyway."""
        least = amount - float(coefficients[self.problem.primary].sum())
        if least <= _NOTHING * amount:
            return None
        cells = np.flatnonzero(self.candidates & (coefficients > 0))
        return CuttingPlane(cells, np.minimum(coefficients[cells] / least, 1.0), 1.0)

    def cover(self, cut: CuttingPlane, share: Real) -> CuttingPlane | None:
        """Cells that do not suffice together, the most blank ones first: one more must be blank."""
        if not cut.cells.size or cut.coefficients.min() >= cut.least:
            return None
        order = np.argsort(-share[cut.cells], kind="stable")
        within = np.cumsum(cut.coefficients[order]) < cut.least * (1 - _NOTHING)
        rest = np.sort(order[~within])
        cover = CuttingPlane(cut.cells[rest], np.ones(rest.size), 1.0)
        return cover if rest.size and cover.missed_by(share) > _MISSED else None

    def bridges(self, share: Real, most: int) -> list[CuttingPlane]:
        """Bridgeless cuts that a solution misses: Σ y over what crosses is at least the y of a cell that is partly blank.

        They hold for every pattern without a blank that the others determine, and a cheapest pattern needs none.
        """
        columns = np.flatnonzero(share > _ABSENT)
        room = share * (self.below + self.above > 0)
        model = Deviations(self.problem.system, columns, room[columns], room[columns])
        cuts: list[CuttingPlane] = []
        for cell in columns[self.candidates[columns] & (self.problem.weights[columns] > 0)].tolist():
            if len(cuts) >= most:
                break
            far = model.furthest(cell, 1)
            if far.far >= share[cell] * (1 - _MISSED):
                continue
            worth = self.transposed @ far.prices
            worth[cell] = 0.0
            crossing = np.abs(worth) > _NOTHING
            if (crossing & self.problem.primary).any():
                continue
            others = np.flatnonzero(self.candidates & crossing)
            cut = CuttingPlane(np.append(others, cell), np.append(np.ones(others.size), -1.0), 0.0)
            if float(cut.coefficients @ share[cut.cells]) < -_MISSED:
                cuts.append(cut)
        self.solved += model.solved
        return cuts


def single_equation_cuts(problem: SuppressionProblem, needs: list[Need], separation: Separation) -> list[CuttingPlane]:
    """For each adversary and each equation of the sensitive cell: the other cells of the equation must give way that far."""
    system = problem.system
    by_cell, seen = separation.transposed, set()
    cuts: list[CuttingPlane] = []
    for need in needs:
        if need.side == 0 or need.group >= 0:
            continue
        span = slice(by_cell.indptr[need.cell], by_cell.indptr[need.cell + 1])
        for equation, sign in zip(by_cell.indices[span].tolist(), by_cell.data[span].tolist(), strict=True):
            cut = equation_cut(separation, system, need, equation, -need.side * sign)
            if cut is not None and (key := (cut.cells.tobytes(), cut.coefficients.tobytes())) not in seen:
                seen.add(key)
                cuts.append(cut)
    return cuts


def equation_cut(separation: Separation, system: LinearSystem, need: Need, equation: int, price: float) -> CuttingPlane | None:
    """The capacity cut of one equation alone."""
    span = slice(int(system.starts[equation]), int(system.starts[equation + 1]))
    cells, worth = system.cells[span].astype(np.int64), price * system.signs[span]
    far = np.maximum(worth * separation.above[cells], -worth * separation.below[cells])
    far[cells == need.cell] = 0.0
    primary = separation.problem.primary[cells]
    least = need.amount - float(far[primary].sum())
    if least <= _NOTHING * need.amount:
        return None
    kept = separation.candidates[cells] & (far > 0)
    return CuttingPlane(cells[kept], np.minimum(far[kept] / least, 1.0), 1.0)
