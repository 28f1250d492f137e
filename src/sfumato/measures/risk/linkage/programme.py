"""Learning a distance as an integer programme: as few records as possible that are nearer to somebody else.

Record i has a block variable K_i in {0, 1}, and θ·(φ(a_i, b_j) - φ(a_i, b_i)) + M·K_i ≥ margin for every other record j; the
number of blocked records is minimised over the parameters θ. Rows are generated: the programme knows the pairs that some
parameters violated, so its optimum bounds the full one from below, and is it once no pair is violated. Abril, Navarro-Arribas,
Torra, "Improving record linkage with supervised learning for disclosure risk assessment", Information Fusion 13(4), 2012.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.linkage.learned_distance import Links
from sfumato.measures.risk.linkage.aggregations import Aggregation
from sfumato.measures.risk.linkage.aligned_files import AlignedFiles

Real = NDArray[np.float64]
Int = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: How far a solution may break a row; every solution is evaluated exactly afterwards.
_TOLERANCE = 1e-9
#: The least weight of a block variable in its row, relative to the row: keeps coefficients in a range a solver can handle.
_LEAST_BLOCK = 1e-4
#: Nodes of the search tree of one programme, programmes one after the other, and records whose reach is checked: bounds that are
#: the same on every machine.
_NODES, _PROGRAMMES, _CHECKED = 5_000, 200, 500


@dataclass(frozen=True, eq=False)
class BestWeights:
    """Parameters with the number of records they link by the margin, the most that any parameters can link as far as
    proved, and all parameters seen."""

    theta: Real
    linked: int
    bound: int
    visited: list[Real]

    @property
    def proved(self) -> bool:
        """Whether no parameters link more records."""
        return self.linked >= self.bound


@dataclass
class PairPool:
    """The pairs that the programme knows: differences φ(i, j) - φ(i, i) that matter for some parameters, by record."""

    files: AlignedFiles
    family: Aggregation
    margin: float
    keys: Int = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rows: Int = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    gaps: Real = field(init=False)
    blocks: Real = field(default_factory=lambda: np.zeros(0))
    hopeless: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.gaps = np.zeros((0, self.family.size))
        self.hopeless = np.zeros(self.files.size, dtype=np.bool_)

    def add(self, rows: Int, others: Int) -> int:
        """Take in pairs; returns how many were new. A record is hopeless once some other is nearer under all parameters."""
        keys, first = np.unique(rows * np.int64(self.files.size) + others, return_index=True)
        fresh = ~np.isin(keys, self.keys, assume_unique=True)
        if not fresh.any():
            return 0
        self.keys = np.concatenate([self.keys, keys[fresh]])
        rows, others = rows[first[fresh]], others[first[fresh]]
        own, other = self.family.features(self.files, rows, rows), self.family.features(self.files, rows, others)
        low, high = self.family.range(own, other)
        self.hopeless[rows[high < self.margin]] = True
        matter = low < self.margin
        gaps = (other - own)[matter]
        least = _LEAST_BLOCK * np.abs(gaps).max(axis=1, initial=0.0)
        self.rows = np.concatenate([self.rows, rows[matter]])
        self.gaps = np.concatenate([self.gaps, gaps])
        self.blocks = np.concatenate([self.blocks, np.maximum(self.margin - low[matter], np.maximum(least, self.margin))])
        return int(np.count_nonzero(fresh))

    def add_nearest(self, links: Links, among: Flags, each: int = 4, *, violated: bool = False) -> int:
        """For some records their nearest wrong ones; or only those that keep them from being linked by the margin."""
        wrong, far = links.wrong[:, :each], links.distances[:, :each]
        chosen = np.broadcast_to(among[:, None], far.shape)
        if violated:
            chosen = chosen & (far - links.own[:, None] < self.margin)
        rows, places = np.nonzero(chosen)
        return self.add(rows.astype(np.int64), wrong[rows, places])

    def of(self, records: Flags) -> PairPool:
        """The pairs of some records only."""
        part = PairPool(self.files, self.family, self.margin)
        kept = records[self.rows]
        part.rows, part.gaps, part.blocks, part.hopeless = self.rows[kept], self.gaps[kept], self.blocks[kept], self.hopeless
        return part


def solve_exactly(files: AlignedFiles, family: Aggregation, starts: list[Real], margin: float, seconds: float) -> BestWeights:
    """The optimum of the integer programme, or the best parameters and bound that the limits allow; the time is a safety net."""
    until = time.monotonic() + seconds
    pool = PairPool(files, family, margin)
    everybody = np.ones(files.size, dtype=np.bool_)
    best, linked, visited = starts[0], -1, []
    for theta in starts:
        links = family.links(files, theta, 8)
        pool.add_nearest(links, everybody)
        visited.append(theta)
        if (count := int(links.linked(margin).sum())) > linked:
            best, linked = theta, count
    bound, cuts = files.size - int(pool.hopeless.sum()), np.zeros((0, family.size))
    for _ in range(_PROGRAMMES):
        if linked >= bound or (left := until - time.monotonic()) <= 0:
            break
        answer = solve_known(pool, best, left, cuts)
        if answer is None:
            break
        blocked, least, theta = answer
        bound = min(bound, files.size - least)
        # among the parameters that link the same records, those that do so most clearly
        theta = widest(family, pool.gaps[~blocked[pool.rows]], cuts)[1] if not blocked.all() else theta
        more = family.cuts(theta)
        cuts = np.concatenate([cuts, more])
        theta = family.repaired(theta)
        links = family.links(files, theta, 8)
        visited.append(theta)
        if (count := int(links.linked(margin).sum())) > linked:
            best, linked = theta, count
        if not pool.add_nearest(links, ~blocked, violated=True) and not more.shape[0]:
            break  # what is left is within the solver's tolerance
    return BestWeights(best, linked, max(bound, linked), visited)


def reachable(pool: PairPool, records: Int) -> Flags:
    """Which of these records some parameters may link, as far as the known pairs tell: one linear programme each, for so many
    records."""
    order = np.argsort(pool.rows, kind="stable")
    starts = np.searchsorted(pool.rows[order], np.arange(pool.files.size + 1))
    reached = np.ones(records.size, dtype=np.bool_)
    for position, record in enumerate(records[:_CHECKED].tolist()):
        gaps = pool.gaps[order[starts[record] : starts[record + 1]]]
        if pool.hopeless[record]:
            reached[position] = False
        elif gaps.shape[0] > 1:
            reached[position] = widest(pool.family, gaps)[0] >= pool.margin - _TOLERANCE
    return reached


def widest(family: Aggregation, gaps: Real, cuts: Real | None = None) -> tuple[float, Real]:
    """The largest t such that some parameters give every pair at least t, and these parameters."""
    lower, upper, total = family.box()
    scale = max(float(np.abs(gaps).max(initial=0.0)), 1e-300)
    extra = np.zeros((0, family.size)) if cuts is None else cuts
    pairs, further = gaps.shape[0], extra.shape[0]
    matrix = np.vstack([total, extra, gaps / scale])
    with_least = np.hstack([matrix, np.append(np.zeros(1 + further), -np.ones(pairs))[:, None]])
    solver = _solver(family.size + 1, np.append(np.zeros(family.size), -1.0), np.append(lower, -2.0), np.append(upper, 2.0))
    least = np.append(1.0, np.zeros(pairs + further))
    _add_rows(solver, least, np.append(1.0, np.full(pairs + further, np.inf)), with_least)
    solver.run()
    value = np.asarray(solver.getSolution().col_value)
    if value.size != family.size + 1 or solver.modelStatusToString(solver.getModelStatus()) != "Optimal":
        return float("inf"), family.plain
    return float(value[-1]) * scale, value[:-1]


def solve_known(
    pool: PairPool, best: Real, seconds: float, cuts: Real | None = None, within: float | None = None, nodes: int = _NODES
) -> tuple[Flags, int, Real] | None:
    """Solve over the known pairs, from the best parameters so far: who is blocked, the proved least number of blocked
    records, and the parameters. With `within`, each parameter stays so near to where it was."""
    family = pool.family
    cuts = np.zeros((0, family.size)) if cuts is None else cuts
    involved = np.unique(pool.rows)
    place = np.searchsorted(involved, pool.rows)
    lower, upper, total = family.box()
    if within is not None:
        lower, upper = np.maximum(lower, best - within), np.minimum(upper, best + within)
    width, count, pairs = family.size, involved.size, pool.rows.size
    forced = pool.hopeless[involved].astype(np.float64)
    solver = _solver(
        width + count,
        np.append(np.zeros(width), np.ones(count)),
        np.append(lower, forced),
        np.append(upper, np.ones(count)),
        whole=np.append(np.zeros(width, dtype=np.int32), np.ones(count, dtype=np.int32)),
    )
    dense = np.vstack([total, cuts])
    _add_rows(solver, np.append(1.0, np.zeros(cuts.shape[0])), np.append(1.0, np.full(cuts.shape[0], np.inf)), dense)
    # one row per pair, divided by the weight of its block variable
    entries = np.hstack([pool.gaps / pool.blocks[:, None], np.ones((pairs, 1))])
    index = np.hstack([np.tile(np.arange(width), (pairs, 1)), width + place[:, None]])
    starts = np.arange(pairs) * (width + 1)
    solver.addRows(pairs, pool.margin / pool.blocks, np.full(pairs, np.inf), entries.size, starts, index.ravel(), entries.ravel())
    slack = pool.gaps @ best - pool.margin
    start = np.append(best, np.zeros(count))
    np.maximum.at(start, width + place, (slack < 0).astype(np.float64))
    start[width:] = np.maximum(start[width:], forced)
    solver.setSolution(start.size, np.arange(start.size, dtype=np.int32), start)
    elsewhere = int(pool.hopeless.sum()) - int(forced.sum())  # hopeless without a pair that matters
    solver.setOptionValue("mip_max_nodes", nodes)
    solver.setOptionValue("time_limit", max(seconds, 0.05))
    solver.run()
    info = solver.getInfo()
    value = np.asarray(solver.getSolution().col_value)
    if value.size != width + count or not np.isfinite(info.mip_dual_bound):
        return None
    blocked = pool.hopeless.copy()
    blocked[involved] = value[width:] > 0.5
    least = int(np.ceil(info.mip_dual_bound - 1e-6)) + elsewhere
    return blocked, max(least, 0), value[:width]


def _solver(columns: int, cost: Real, lower: Real, upper: Real, whole: NDArray[np.int32] | None = None) -> Any:
    import highspy

    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("primal_feasibility_tolerance", _TOLERANCE)
    if whole is not None:
        solver.setOptionValue("mip_feasibility_tolerance", _TOLERANCE)
        solver.setOptionValue("mip_abs_gap", 0.999)  # the number of blocked records is whole
        solver.setOptionValue("mip_rel_gap", 0.0)
    nothing = np.zeros(0, dtype=np.int32)
    solver.addCols(columns, cost, lower, upper, 0, np.zeros(columns, dtype=np.int32), nothing, np.zeros(0))
    if whole is not None:
        solver.changeColsIntegrality(columns, np.arange(columns, dtype=np.int32), whole.astype(np.uint8))
    return solver


def _add_rows(solver: Any, lower: Real, upper: Real, matrix: Real) -> None:
    count, width = matrix.shape
    index = np.tile(np.arange(width, dtype=np.int32), count)
    solver.addRows(count, lower, upper, matrix.size, np.arange(count, dtype=np.int32) * width, index, matrix.ravel())
