"""The programme over which cells are blank, with the cuts so far: as a linear and as an integer programme."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.suppression.cuts import CuttingPlane
from sfumato.tables.suppression.deviations import quiet_solver
from sfumato.tables.system import Flags, Real

Cells = NDArray[np.int64]
_OPTIMAL = 1e-9
#: A cut that is kept to with so much to spare is slack.
_SLACK = 1e-3


class Relaxed(NamedTuple):
    """The optimum of the linear programme: the share of each cell, the reduced costs, and the cost of what was chosen."""

    share: Real
    reduced: Real
    cost: float


class Master:
    """Columns are the cells that are looked at so far; the others come in when their reduced cost asks for them."""

    def __init__(self, weights: Real, candidates: Flags, first: Cells) -> None:
        self.weights, self.candidates = weights, candidates
        self.place = np.full(weights.size, -1, dtype=np.int64)
        self.columns = np.zeros(0, dtype=np.int64)
        self.cuts: list[CuttingPlane] = []
        self._solver = quiet_solver(strategy=1)
        self._matrix: Any = None
        self._add_columns(first)

    def add(self, cuts: list[CuttingPlane]) -> None:
        """Take in cuts."""
        if not cuts:
            return
        every = np.concatenate([cut.cells for cut in cuts])
        values = np.concatenate([cut.coefficients for cut in cuts])
        owner = np.repeat(np.arange(len(cuts)), [cut.cells.size for cut in cuts])
        inside = self.place[every] >= 0
        lengths = np.bincount(owner[inside], minlength=len(cuts))
        starts = (np.cumsum(lengths) - lengths).astype(np.int32)
        least = np.array([cut.least for cut in cuts])
        places = self.place[every[inside]].astype(np.int32)
        self._solver.addRows(len(cuts), least, np.full(len(cuts), np.inf), places.size, starts, places, values[inside])
        self.cuts += cuts
        self._matrix = None

    def forget_slack(self, share: Real) -> None:
        """Drop the cuts that a solution keeps to with room to spare: the bound stands, and programmes stay small."""
        least = np.array([cut.least for cut in self.cuts])
        slack = self.matrix @ share - least > _SLACK
        if np.count_nonzero(slack) * 2 > slack.size:
            rows = np.flatnonzero(slack).astype(np.int32)
            self._solver.deleteRows(rows.size, rows)
            self.cuts = [cut for cut, loose in zip(self.cuts, slack.tolist(), strict=True) if not loose]
            self._matrix = None

    @property
    def matrix(self) -> Any:  # cuts by cells, a sparse matrix of SciPy
        if self._matrix is None or self._matrix.shape[0] != len(self.cuts):
            from scipy.sparse import csr_matrix

            starts = np.cumsum([0, *(cut.cells.size for cut in self.cuts)])
            cells = np.concatenate([np.zeros(0, np.int64), *(cut.cells for cut in self.cuts)])
            data = np.concatenate([np.zeros(0), *(cut.coefficients for cut in self.cuts)])
            self._matrix = csr_matrix((data, cells, starts), shape=(len(self.cuts), self.weights.size))
        return self._matrix

    def _add_columns(self, cells: Cells) -> None:
        cells = cells[self.place[cells] < 0]
        if not cells.size:
            return
        self.place[cells] = self.columns.size + np.arange(cells.size)
        self.columns = np.concatenate([self.columns, cells])
        part = self.matrix[:, cells].tocsc()
        part.sort_indices()
        zeros = np.zeros(cells.size)
        starts, rows = part.indptr[:-1].astype(np.int32), part.indices.astype(np.int32)
        self._solver.addCols(cells.size, self.weights[cells], zeros, zeros + 1.0, part.nnz, starts, rows, part.data)

    def solve(self) -> Relaxed:
        """The optimum over all cells: columns are added until no reduced cost asks for one."""
        while True:
            self._solver.run()
            solution = self._solver.getSolution()
            prices = np.asarray(solution.row_dual, dtype=np.float64)
            reduced = self.weights - self.matrix.T @ prices if prices.size else self.weights.copy()
            asking = np.flatnonzero(self.candidates & (self.place < 0) & (reduced < -_OPTIMAL))
            if not asking.size:
                break
            self._add_columns(asking[np.argsort(reduced[asking], kind="stable")[:_AT_ONCE]])
        share = np.zeros(self.weights.size)
        share[self.columns] = np.clip(solution.col_value, 0.0, 1.0)
        return Relaxed(share, reduced, float(self._solver.getInfo().objective_function_value))

    def solve_whole(
        self, kept: Cells, best: Flags | None, gap: float, seconds: float | None, nodes: int
    ) -> tuple[Flags | None, float]:
        """The cheapest choice among some cells that keeps to the cuts so far, and the proved bound on it."""
        solver = quiet_solver(strategy=1)
        options: dict[str, Any] = {"presolve": "on", "solver": "choose", "mip_rel_gap": gap, "mip_max_nodes": nodes}
        for name, value in options.items():
            solver.setOptionValue(name, value)
        if seconds is not None:
            solver.setOptionValue("time_limit", max(seconds, 0.05))
        part = self.matrix[:, kept].tocsc()
        part.sort_indices()
        zeros = np.zeros(kept.size)
        none, nil = np.zeros(0, dtype=np.int32), np.zeros(len(self.cuts), dtype=np.int32)
        least = np.array([cut.least for cut in self.cuts])
        solver.addRows(least.size, least, np.full(least.size, np.inf), 0, nil, none, np.zeros(0))
        starts, rows = part.indptr[:-1].astype(np.int32), part.indices.astype(np.int32)
        solver.addCols(kept.size, self.weights[kept], zeros, zeros + 1.0, part.nnz, starts, rows, part.data)
        every = np.arange(kept.size, dtype=np.int32)
        solver.changeColsIntegrality(kept.size, every, np.ones(kept.size, dtype=np.uint8))
        if best is not None:
            solver.setSolution(kept.size, every, best[kept].astype(np.float64))
        solver.run()
        info = solver.getInfo()
        if solver.modelStatusToString(solver.getModelStatus()) == "Infeasible":
            return None, np.inf
        bound = float(info.mip_dual_bound) if np.isfinite(info.mip_dual_bound) else 0.0
        values = np.asarray(solver.getSolution().col_value, dtype=np.float64)
        if info.primal_solution_status != 2 or values.size != kept.size:
            return None, bound
        chosen = np.zeros(self.weights.size, dtype=np.bool_)
        chosen[kept] = values > 0.5
        return chosen, bound


#: Columns that come in at once.
_AT_ONCE = 2_000
