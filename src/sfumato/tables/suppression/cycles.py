"""Two dimensions: a table with margins is a network, and the cheapest cycle through a cell protects it.

Equations are the vertices and cells the edges of a bipartite graph. Along a cycle the cells go up and down in turn by the same
amount, so a cycle whose cells all have that much room opens each of them on both sides. Cycles of four cells are the hypercube
method; longer ones are found by shortest paths. Cox, "Network models for complementary cell suppression", Journal of the
American Statistical Association 90, 1995; Repsilber, "Sicherung persönlicher Angaben in Tabellendaten", 1999.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.suppression.neighbourhood import Cells
from sfumato.tables.system import Flags, LinearSystem, Real

#: Entries of the largest matrix of vertices by vertices.
_MOST = 4_000_000
#: Cells of the longest cycle, halved.
_LONGEST = 12


class Network:
    """The bipartite graph of a two-dimensional table, as a matrix of cells."""

    def __init__(self, grid: NDArray[np.int64], ends: NDArray[np.int64], signs: Real) -> None:
        self.grid = grid
        self.ends, self.signs = ends, signs  # of each cell: row and column of the grid, and its signs in both equations
        self.inside = np.flatnonzero(ends[:, 0] >= 0)

    @classmethod
    def of(cls, system: LinearSystem) -> Network | None:
        """The graph, or None where the system is no two-dimensional table with margins."""
        counts = np.bincount(system.cells, minlength=system.size)
        if system.equations == 0 or (counts > 2).any():
            return None
        order = np.argsort(system.cells, kind="stable")
        double = np.flatnonzero(counts == 2)
        first = (np.cumsum(counts) - counts)[double]
        pairs = np.stack([system.rows[order[first]], system.rows[order[first + 1]]], axis=1)
        signs = np.zeros((system.size, 2))
        signs[double] = np.stack([system.signs[order[first]], system.signs[order[first + 1]]], axis=1)
        colours = _two_colours(pairs, system.equations)
        if colours is None:
            return None
        swapped = colours[pairs[:, 0]] == 1
        pairs[swapped] = pairs[swapped][:, ::-1]
        signs[double[swapped]] = signs[double[swapped]][:, ::-1]
        number = np.where(colours == 0, np.cumsum(colours == 0), np.cumsum(colours == 1)) - 1
        shape = int((colours == 0).sum()), int((colours == 1).sum())
        if shape[0] * shape[1] > _MOST:
            return None
        grid = np.full(shape, -1, dtype=np.int64)
        ends = np.full((system.size, 2), -1, dtype=np.int64)
        ends[double] = number[pairs]
        grid[ends[double, 0], ends[double, 1]] = double
        if np.count_nonzero(grid >= 0) < double.size:
            return None  # two cells between the same equations
        return cls(grid, ends, signs)

    def spread(self, of_cells: Real, empty: float) -> Real:
        """Numbers of cells as a matrix."""
        return np.where(self.grid >= 0, of_cells[self.grid], empty)


def _two_colours(pairs: NDArray[np.int64], count: int) -> NDArray[np.int64] | None:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    graph = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count)).tocsr()
    colours = np.zeros(count, dtype=np.int64)
    parts, part = connected_components(graph, directed=False)
    for number in range(parts):
        order, before = breadth_first_order(graph, int(np.flatnonzero(part == number)[0]), directed=False)
        for vertex in order[1:].tolist():
            colours[vertex] = 1 - colours[before[vertex]]
    return None if (colours[pairs[:, 0]] == colours[pairs[:, 1]]).any() else colours


class Cycles:
    """Cheapest cycles at some costs; what is blank costs nothing."""

    def __init__(self, network: Network, weights: Real, room: Real, movable: Flags) -> None:
        """`room` is how far each cell can go both up and down."""
        self.network = network
        self.room = network.spread(np.where(movable, room, 0.0), 0.0)
        self.weights = network.spread(weights, np.inf)
        self.costs = self.weights.copy()
        self.blank = np.zeros(weights.size, dtype=np.bool_)
        self.blanks = np.full(self.costs.shape, np.inf)

    def follow(self, pattern: Flags) -> None:
        """Bring the costs up to a pattern."""
        changed = np.flatnonzero(pattern != self.blank)
        if changed.size:
            rows, columns = self.network.ends[changed].T
            inside = rows >= 0
            rows, columns, now = rows[inside], columns[inside], pattern[changed[inside]]
            self.costs[rows, columns] = np.where(now, 0.0, self.weights[rows, columns])
            self.blanks[rows, columns] = np.where(now, 0.0, np.inf)
            self.blank = pattern.copy()

    def cheapest(self, cell: int, amount: float, held: Cells | None, inside: bool) -> tuple[Cells, Real] | None:
        """Cells and deviations of the cheapest cycle through a cell on which every cell has that much room.

        With `inside` the cycle runs over blank cells only; it does not touch `held` cells.
        """
        row, column = self.network.ends[cell].tolist()
        if row < 0 or self.room[row, column] < amount:
            return None
        costs = self.blanks if inside else self.costs
        barred = np.append(held if held is not None else np.zeros(0, np.int64), cell)
        rows, columns = self.network.ends[barred[self.network.ends[barred, 0] >= 0]].T
        kept = costs[rows, columns].copy()
        costs[rows, columns] = np.inf
        walk = self._walk(costs, row, column, amount)
        costs[rows, columns] = kept
        if walk is None:
            return None
        cells = np.append(np.array(walk, dtype=np.int64), cell)
        return cells, self._deviations(cells, amount)

    def _walk(self, costs: Real, row: int, column: int, amount: float) -> list[int] | None:
        """The cells of the cheapest path from a row to a column."""
        room = self.room
        to_column = np.where(room[row] >= amount, costs[row], np.inf)
        from_row = np.full(costs.shape[1], row, dtype=np.int64)
        to_row = np.full(costs.shape[0], np.inf)
        to_row[row] = 0.0
        from_column = np.full(costs.shape[0], -1, dtype=np.int64)
        last = np.where(room[:, column] >= amount, costs[:, column], np.inf)
        fresh = np.flatnonzero(np.isfinite(to_column))
        best = float(to_column[column])
        for _ in range(_LONGEST):
            fresh = fresh[to_column[fresh] < best]
            if not fresh.size:
                break
            block = np.where(room[:, fresh] >= amount, costs[:, fresh], np.inf) + to_column[fresh]
            nearest = block.argmin(axis=1)
            far = block[np.arange(block.shape[0]), nearest]
            nearer = far < to_row
            to_row[nearer], from_column[nearer] = far[nearer], fresh[nearest[nearer]]
            rows = np.flatnonzero(nearer & (to_row < best))
            if not rows.size:
                break
            ends = to_row[rows] + last[rows]
            if ends.min() < best:
                best = float(ends.min())
                to_column[column], from_row[column] = best, rows[int(ends.argmin())]
            rows = rows[to_row[rows] < best]
            if not rows.size:
                break
            block = np.where(room[rows] >= amount, costs[rows], np.inf) + to_row[rows][:, None]
            nearest = block.argmin(axis=0)
            far = block[nearest, np.arange(block.shape[1])]
            nearer = far < to_column
            to_column[nearer], from_row[nearer] = far[nearer], rows[nearest[nearer]]
            best = float(to_column[column])
            fresh = np.flatnonzero(nearer)
        if not np.isfinite(best):
            return None
        walk: list[int] = []
        there = column
        while len(walk) < 4 * _LONGEST:
            back = int(from_row[there])
            walk.append(int(self.network.grid[back, there]))
            if back == row:
                return walk
            there = int(from_column[back])
            walk.append(int(self.network.grid[back, there]))
        return None

    def _deviations(self, cells: Cells, amount: float) -> Real:
        """Deviations along a cycle, the last cell going up by the amount: each equation adds up to 0."""
        ends, signs = self.network.ends[cells], self.network.signs[cells]
        answer = np.zeros(cells.size)
        answer[-1] = amount
        here, side = cells.size - 1, 1  # leave the cell over its column
        for place in range(cells.size - 1):
            if ends[place, side] != ends[here, side]:
                raise AssertionError("a cycle that is none")
            answer[place] = -answer[here] * signs[here, side] / signs[place, side]
            here, side = place, 1 - side
        return answer
