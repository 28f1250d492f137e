"""The blanks around a blank: a table that differs from the true one in these alone is one more table that agrees with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.system import Flags, LinearSystem

#: How many equations away, and how many blanks are enough.
_RINGS, _ENOUGH = 4, 150


class Nearby:
    """Walks from blank to blank over the equations that they share."""

    def __init__(self, system: LinearSystem, suppressed: Flags) -> None:
        self.size = system.size
        self.suppressed = suppressed
        # equations by blanks, so that no walk meets the published cells
        self.by_equation: Any = system.matrix.multiply(suppressed).tocsr()
        self.by_equation.eliminate_zeros()
        self.by_cell: Any = self.by_equation.T.tocsr()

    def of(self, cell: int, barred: Flags | None) -> Flags:
        """The blanks around a cell without those that somebody knows."""
        allowed = self.suppressed if barred is None else self.suppressed & ~barred
        cells = np.array([cell], dtype=np.int64)
        near = np.zeros(self.size, dtype=np.bool_)
        near[cell] = True
        for _ in range(_RINGS):
            if cells.size >= _ENOUGH:
                break
            rows = np.unique(self._entries(self.by_cell, cells))
            reached = self._entries(self.by_equation, rows)
            near[reached[allowed[reached]]] = True
            wider = np.flatnonzero(near)
            if wider.size == cells.size:
                break
            cells = wider
        return near

    @staticmethod
    def _entries(matrix: Any, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        starts = matrix.indptr[rows].astype(np.int64)
        lengths = matrix.indptr[rows + 1] - starts
        places = np.cumsum(lengths) - lengths
        taken: NDArray[np.int64] = matrix.indices[np.repeat(starts - places, lengths) + np.arange(int(lengths.sum()))]
        return taken.astype(np.int64)
