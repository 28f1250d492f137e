"""The cells around a cell: those that can deviate together with it over a few equations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.system import Flags, LinearSystem, Real

Cells = NDArray[np.int64]
#: Of an equation with more cells than this, the cheapest stand for the rest.
_WIDEST = 40


class Neighbourhood:
    """Walks from cell to cell over the equations that they share."""

    def __init__(self, system: LinearSystem) -> None:
        self.system = system
        self.by_equation = system.matrix
        self.by_cell: Any = system.matrix.T.tocsr()
        self.longest = int(np.diff(system.starts).max(initial=0))

    def equations_of(self, cells: Cells) -> tuple[Cells, Cells, Real]:
        """The equations that some cells are in, cell after cell: equation, where each cell begins, and sign."""
        return _entries(self.by_cell, cells)

    def near(self, cell: int, rings: int, allowed: Flags, costs: Real, most: int = _WIDEST) -> Cells:
        """The allowed cells that are up to so many equations away, without those that are alone in an equation, in order.

        Of a long equation only the `most` cheapest cells are walked to, beside those whose equations are all there already.
        """
        cells = np.array([cell], dtype=np.int64)
        for ring in range(rings):
            rows = np.unique(_entries(self.by_cell, cells)[0])
            if self.longest <= most:
                reached = np.unique(_entries(self.by_equation, rows)[0])
                cells = reached[allowed[reached]]
            else:
                cells = self._cheapest(rows, cells, allowed, costs, most, closing=ring == rings - 1)
        return self.pruned(cells)

    def _cheapest(self, rows: Cells, cells: Cells, allowed: Flags, costs: Real, most: int, closing: bool) -> Cells:
        reached, starts, _ = _entries(self.by_equation, rows)
        ends = np.append(starts[1:], reached.size)
        kept = [cells]
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            row = reached[start:end]
            row = row[allowed[row]]
            if row.size > most and not closing:
                row = row[np.argsort(costs[row], kind="stable")[:most]]
            kept.append(row)
        joined = np.unique(np.concatenate(kept))
        if not closing:
            return joined
        there = np.zeros(self.system.equations, dtype=np.bool_)
        there[rows] = True
        entries, places, _ = _entries(self.by_cell, joined)
        outside = np.add.reduceat((~there[entries]).astype(np.int64), places)
        outside[np.searchsorted(joined, cells)] = 0
        closed: Cells = joined[outside == 0]
        return closed

    def pruned(self, cells: Cells) -> Cells:
        """The cells that are left when those that are alone in an equation go, again and again."""
        while cells.size:
            rows, starts, _ = _entries(self.by_cell, cells)
            counts = np.bincount(rows, minlength=self.system.equations)
            alone = np.add.reduceat((counts[rows] < 2).astype(np.int64), starts) > 0
            if not alone.any():
                break
            cells = cells[~alone]
        return cells


def _entries(matrix: Any, rows: Cells) -> tuple[Cells, Cells, Real]:
    starts = matrix.indptr[rows].astype(np.int64)
    lengths = matrix.indptr[rows + 1] - starts
    places = np.cumsum(lengths) - lengths
    taken = np.repeat(starts - places, lengths) + np.arange(int(lengths.sum()))
    return matrix.indices[taken].astype(np.int64), places, matrix.data[taken]
