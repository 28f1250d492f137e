"""Hierarchies piece by piece: each sub-table is solved by itself, the most general first, and the whole table is mended last.

A sub-table is what a cell is a part of in every dimension at once, with its margins. Cells that are blank in one sub-table are
sensitive in the next. What is safe in every sub-table may still be unsafe in the whole; de Wolf, "HiTaS: a heuristic approach
to cell suppression in hierarchical tables", Privacy in Statistical Databases 2002, stops there, and this method does not: the
heuristic then protects what the whole table leaves open.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.progress import Progress, silent
from sfumato.tables.suppression.completing import complete
from sfumato.tables.suppression.cutting import solve_with_cuts
from sfumato.tables.suppression.needs import Need
from sfumato.tables.suppression.neighbourhood import Cells
from sfumato.tables.system import Flags, LinearSystem, SuppressionProblem

#: Rounds of the integer programme in one sub-table.
_ROUNDS = 4


def sub_tables(system: LinearSystem) -> list[NDArray[np.int64]]:
    """The equations of every sub-table, the most general sub-table first."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    parts = system.signs > 0
    rows, cells = system.rows[parts], system.cells[parts].astype(np.int64)
    count = system.equations
    graph = coo_matrix((np.ones(rows.size), (rows, count + cells)), shape=(count + system.size, count + system.size))
    _, piece = connected_components(graph, directed=False)
    depth = _depths(system)
    blocks = []
    for number in np.unique(piece[:count]).tolist():
        equations = np.flatnonzero(piece[:count] == number)
        within = np.isin(system.rows, equations)
        inside = np.zeros(system.size, dtype=np.bool_)
        inside[system.cells[within]] = True
        missing = np.bincount(system.rows, weights=parts & ~inside[system.cells], minlength=count)
        margins = np.flatnonzero(missing == 0)
        blocks.append((int(depth[inside].max()), np.union1d(equations, margins)))
    return [equations for _, equations in sorted(blocks, key=lambda block: (block[0], int(block[1][0])))]


def _depths(system: LinearSystem) -> NDArray[np.int64]:
    """How many totals lie above each cell, on the longest way."""
    total = system.cells[system.signs < 0].astype(np.int64)
    above = total[np.searchsorted(system.rows[system.signs < 0], system.rows)]
    depth = np.zeros(system.size, dtype=np.int64)
    part = system.signs > 0
    for _ in range(64):
        deeper = depth.copy()
        np.maximum.at(deeper, system.cells[part], depth[above[part]] + 1)
        if (deeper == depth).all():
            break
        depth = deeper
    return depth


def solve_in_pieces(problem: SuppressionProblem, extra: list[Need], progress: Progress = silent) -> tuple[Flags, Cells]:
    """A pattern of the whole table, and the sensitive cells that nothing protects."""
    system = problem.system
    pattern = problem.primary.copy()
    pieces = sub_tables(system)
    for done, equations in enumerate(pieces):
        progress("sub-tables", done, len(pieces))
        cells = np.unique(system.cells[np.isin(system.rows, equations)]).astype(np.int64)
        if pattern[cells].any():
            part = _part(problem, equations, cells, pattern)
            answer = solve_with_cuts(part, None, gap=0.02, seconds=None, extra=[], whole_rounds=_ROUNDS)
            if answer.pattern is not None:
                pattern[cells[answer.pattern]] = True
    return complete(problem, pattern, extra=extra, progress=progress)


def _part(problem: SuppressionProblem, equations: NDArray[np.int64], cells: Cells, pattern: Flags) -> SuppressionProblem:
    """A sub-table as a problem of its own."""
    system = problem.system
    number = np.full(system.size, -1, dtype=np.int64)
    number[cells] = np.arange(cells.size)
    spans = [slice(int(system.starts[equation]), int(system.starts[equation + 1])) for equation in equations.tolist()]
    lengths = np.array([span.stop - span.start for span in spans], dtype=np.int64)
    inner = LinearSystem(
        np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)]),
        np.concatenate([number[system.cells[span]] for span in spans]).astype(np.int32),
        np.concatenate([system.signs[span] for span in spans]),
        cells.size,
    )
    return SuppressionProblem(
        system=inner,
        values=problem.values[cells],
        primary=pattern[cells],
        fixed=problem.fixed[cells],
        weights=problem.weights[cells],
        known_low=problem.known_low[cells],
        known_high=problem.known_high[cells],
        lower=problem.lower[cells],
        upper=problem.upper[cells],
        sliding=problem.sliding[cells],
        whole=problem.whole,
    )
