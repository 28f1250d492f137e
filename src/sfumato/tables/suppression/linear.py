"""Sensitive cells one after the other, each by the cheapest deviation that protects it: a small linear programme for each.

A deviation that moves a cell by its level moves others as well; those that move far enough need no programme of their own.
Cells that are blank already cost nothing. The programme is about the cells around the sensitive one, and about the whole table
only where these do not suffice. Kelly, Golden, Assad, "Cell suppression: disclosure protection for sensitive tabular data",
Networks 22(4), 1992.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.progress import Progress, silent
from sfumato.tables.suppression.cycles import Cycles, Network
from sfumato.tables.suppression.deviations import quiet_solver
from sfumato.tables.suppression.neighbourhood import Cells, Neighbourhood
from sfumato.tables.suppression.proofs import Proofs
from sfumato.tables.system import Flags, Real, SuppressionProblem

#: Below this share of a level a deviation is rounding.
_NOTHING = 1e-7
#: How many equations away a cell may be, and how many cells of a long equation are looked at.
_STEPS = ((3, 12), (4, 40))
#: How far a whole number of the solver may be off, and the nodes of one search for whole numbers.
_WHOLE, _NODES = 1e-6, 200
_FEW = 400  # cells that make one small programme anyway


class CheapestDeviation:
    """The cheapest deviation that moves one cell, cells that are blank for nothing."""

    def __init__(self, problem: SuppressionProblem, proofs: Proofs, weights: Real, cycles: bool = True) -> None:
        self.problem, self.proofs = problem, proofs
        self.weights = weights
        self.around = Neighbourhood(problem.system)
        self.movable = ~problem.fixed & (proofs.room_below + proofs.room_above > 0)
        self.solved = 0
        network = Network.of(problem.system) if cycles else None
        room = np.minimum(proofs.room_below, proofs.room_above)
        self.cycles = None if network is None else Cycles(network, weights, room, self.movable)

    def protect(self, cell: int, pattern: Flags, held: Cells | None = None, only: Flags | None = None) -> bool:
        """Make a cell open on both sides; blanks are added to the pattern, unless `only` some cells may be used.

        `held` cells do not deviate: somebody knows them.
        """
        for side, need in ((1, self.proofs.upper[cell]), (-1, self.proofs.lower[cell])):
            if need > 0 and (held is not None or not self.proofs.open(cell, side)):
                move = self.move(cell, side, float(need), pattern, held, only)
                if move is None:
                    return False
                cells, deviations = move
                pattern[cells] = True
                self.proofs.add(cells, deviations)
        return True

    def move(
        self, cell: int, side: int, amount: float, pattern: Flags, held: Cells | None, only: Flags | None
    ) -> tuple[Cells, Real] | None:
        """Cells and deviations of the cheapest way to put `cell` so far above (1) or below (-1) its value."""
        if self.cycles is not None and (only is None or only is pattern):
            self.cycles.follow(pattern)
            cycle = self.cycles.cheapest(cell, amount, held, only is not None)
            if cycle is not None:
                return cycle
        allowed = self.movable if only is None else self.movable & only
        if held is not None:
            allowed = allowed.copy()
            allowed[held] = False
        costs = np.where(pattern, 0.0, self.weights)
        whole_table = np.count_nonzero(allowed) <= _FEW
        for rings, most in () if whole_table else _STEPS:
            near = self.around.near(cell, rings, allowed, costs, most)
            answer = self._solve(near, cell, side, amount, costs)
            if answer is not None:
                return answer
        return self._solve(self.around.pruned(np.flatnonzero(allowed)), cell, side, amount, costs)

    def _solve(self, cells: Cells, cell: int, side: int, amount: float, costs: Real) -> tuple[Cells, Real] | None:
        place = int(np.searchsorted(cells, cell))
        if place >= cells.size or cells[place] != cell:
            return None
        rows, starts, signs = self.around.equations_of(cells)
        equations, rows = np.unique(rows, return_inverse=True)
        above, below = self.proofs.room_above[cells].copy(), self.proofs.room_below[cells].copy()
        least = np.zeros(2 * cells.size)
        forth, back = (place, cells.size + place) if side > 0 else (cells.size + place, place)
        reach = np.concatenate([above, below])
        price = np.tile(costs[cells], 2) * amount / np.maximum(np.minimum(reach, amount), _NOTHING * amount)
        least[forth] = reach[forth] = amount
        reach[back] = 0.0
        solver = quiet_solver(strategy=1)
        nil, none = np.zeros(equations.size), np.zeros(0, dtype=np.int32)
        solver.addRows(equations.size, nil, nil, 0, np.zeros(equations.size, dtype=np.int32), none, np.zeros(0))
        solver.addCols(
            reach.size,
            price,
            least,
            reach,
            2 * signs.size,
            np.concatenate([starts, starts + signs.size]).astype(np.int32),
            np.tile(rows, 2).astype(np.int32),
            np.concatenate([signs, -signs]),
        )
        solver.run()
        self.solved += 1
        if solver.modelStatusToString(solver.getModelStatus()) != "Optimal":
            return None
        values = np.asarray(solver.getSolution().col_value, dtype=np.float64)
        if self.problem.whole and np.abs(values - np.rint(values)).max() > _WHOLE:
            columns = np.arange(values.size, dtype=np.int32)
            solver.changeColsIntegrality(columns.size, columns, np.ones(columns.size, dtype=np.uint8))
            solver.setOptionValue("mip_max_nodes", _NODES)
            solver.run()
            values = np.asarray(solver.getSolution().col_value, dtype=np.float64)
            if values.size != columns.size or not solver.getInfo().primal_solution_status == 2:
                return None
            values = np.rint(values)
        deviations = values[: cells.size] - values[cells.size :]
        moved = np.abs(deviations) > _NOTHING * amount
        return cells[moved], deviations[moved]


def protect_all(
    model: CheapestDeviation, pattern: Flags, cells: Cells | None = None, inside: bool = False, progress: Progress = silent
) -> Cells:
    """Protect sensitive cells, those with the greatest levels first; returns those that nothing protects.

    With `inside` a way over cells that are blank already is looked for first.
    """
    proofs = model.proofs
    waiting = proofs.closed() if cells is None else cells
    needs = np.maximum(proofs.lower, proofs.upper)[waiting]
    hopeless = []
    for done, cell in enumerate(waiting[np.argsort(-needs, kind="stable")].tolist()):
        progress("suppressing", done, waiting.size)
        if inside and model.protect(cell, pattern, only=pattern):
            continue
        if not model.protect(cell, pattern):
            hopeless.append(cell)
    return np.array(hopeless, dtype=np.int64)
