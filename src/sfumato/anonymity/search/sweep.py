"""The border sweep: exact search of a lattice that fits in memory.

Every node has a lower bound of its loss, at first the loss without suppression. A checked node raises the bounds of
all nodes below it (they suppress at least as much) or rules them out (they suppress too much). When no bound is
below the best loss found, that loss is the optimum.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.search.node_tables import NodeTables
from sfumato.anonymity.search.survivors import Survivors
from sfumato.anonymity.search.verdicts import NodeVerdict, NodeVerdicts
from sfumato.core.progress import Progress, silent
from sfumato.kernels.classes.families import raise_bounds

Real = NDArray[np.float64]
Levels = tuple[int, ...]
EQUAL = 1e-12  # losses closer than this are the same
ALONE, HARD = 16, 10  # after so many checks a search that has ten times as many nodes open goes on by families


@dataclass
class BestNode:
    """The best node so far and what was learnt about the others."""

    levels: Levels | None = None
    loss: float = float("inf")
    gap: float = 0.0
    possible: float = float("inf")  # what a checked node may cost with another choice of suppressed classes
    complete: bool = True  # whether every other node was ruled out
    evaluated: int = 0
    trail: list[tuple[Levels, float, int, int]] = field(default_factory=list)
    records: int = 1
    # among equal losses: what the objective says, then fewest suppressed, then fewest classes (lowest risk)
    rank: tuple[tuple[float, ...], int, int, Levels] = ((), 0, 0, ())

    def note(self, levels: Levels, loss: float, verdict: NodeVerdict, feasible: bool, ties: tuple[float, ...] = ()) -> None:
        """Remember a checked node."""
        self.evaluated += 1
        self.trail.append((levels, loss, verdict.suppressed, verdict.kept))
        if feasible and verdict.slack > EQUAL:
            self.possible = min(self.possible, loss - verdict.slack)
        if feasible:
            self._choose(levels, loss, (ties, verdict.suppressed, verdict.kept, levels))

    def note_all(self, verdicts: NodeVerdicts, losses: Real, feasible: NDArray[np.bool_]) -> None:
        """Remember many checked nodes."""
        nodes = list(map(tuple, verdicts.levels.tolist()))
        numbers = (losses.tolist(), verdicts.suppressed.tolist(), verdicts.kept.tolist())
        self.evaluated += len(nodes)
        self.trail.extend(zip(nodes, *numbers, strict=True))
        for i in np.flatnonzero(feasible & (losses <= self.loss + EQUAL)).tolist():
            self._choose(nodes[i], numbers[0][i], ((), numbers[1][i], numbers[2][i], nodes[i]))

    def _choose(self, levels: Levels, loss: float, rank: tuple[tuple[float, ...], int, int, Levels]) -> None:
        if loss < self.loss - EQUAL or (loss <= self.loss + EQUAL and rank < self.rank):
            self.levels, self.loss, self.rank = levels, loss, rank

    @property
    def distance(self) -> float:
        """How far from the best possible the best node is at the most."""
        return max(self.gap, self.loss - self.possible)

    @property
    def levels_checked(self) -> list[Levels]:
        """Every checked node."""
        return [entry[0] for entry in self.trail]

    def map(self) -> dict[str, object]:
        """Risk against loss of every checked node: mean re-identification risk of the kept records, loss, share suppressed."""
        loss = [entry[1] for entry in self.trail]
        suppressed = [min(entry[2], self.records) for entry in self.trail]
        risk = [entry[3] / max(self.records - gone, 1) for entry, gone in zip(self.trail, suppressed, strict=True)]
        chosen = next((i for i, entry in enumerate(self.trail) if entry[0] == self.levels), -1)
        return {
            "loss": loss,
            "suppressed": [gone / self.records for gone in suppressed],
            "risk": risk,
            "chosen": chosen,
        }


class Sweep:
    """One exact search; `limit` is how many records may be suppressed."""

    def __init__(self, tables: NodeTables, limit: int, progress: Progress = silent) -> None:
        self.tables = tables
        self.limit = limit
        self.progress = progress
        self.shape = tuple(height + 1 for height in tables.heights)
        self.parts = tables.base_losses()
        self.steps = [np.diff(part).tolist() for part in self.parts]
        self.base = _outer_sum(self.parts)
        self.bounds = self.base.copy()
        self.sizes = np.array(self.shape, dtype=np.int64)
        self.lowest = int(np.argmin(self.bounds))
        self.best_node = BestNode(records=tables.records)
        self.checked: dict[Levels, float] = {}
        self.penalties: dict[Levels, float] = {}  # least penalty of all nodes below a checked one

    @cached_property
    def most_lost(self) -> tuple[NDArray[np.int64], Real, Real]:
        """How much any number of records lose at the most, by attribute and level. Where no record may go, a node that lets some
        go is ruled out whatever they would save: each record is taken to lose all there is."""
        if not self.limit:
            all_of_it = np.array([0.0, 1.0])
            return _corners([(all_of_it, all_of_it)] * sum(self.shape))
        return _corners(self.tables.largest_losses())

    def run(self) -> BestNode:
        """Find and prove the optimum.

        The open node with the lowest bound is ruled out by the most general node above it that can do so: found by
        bisection on a path upward, because the penalty falls along it. That node rules out as many others as
        possible on the way.
        """
        self.progress("searching the lattice", 0, int(self.base.size))
        self._start()
        flat = self.bounds.reshape(-1)
        while True:
            lowest = self.lowest
            if flat[lowest] >= self.best_node.loss + EQUAL:
                return self.best_node
            still_open = self._report()
            if len(self.checked) >= ALONE and still_open > HARD * len(self.checked) and self._has_families():
                self._downward(Survivors(self.tables))
                return self.best_node
            self._rule_out(tuple(int(x) for x in np.unravel_index(lowest, self.shape)))

    def _has_families(self) -> bool:
        return Survivors.suit(self.tables)

    def _downward(self, survivors: Survivors) -> None:
        """Check what is open from general to specific, a family at a time: every node after all that are above it, so that no
        more are checked than the bounds leave open."""
        flat = self.bounds.reshape(-1)
        heights = np.indices(self.shape).sum(axis=0).reshape(-1)
        for place in np.argsort(-heights, kind="stable").tolist():
            if flat[place] < self.best_node.loss + EQUAL:
                node = tuple(int(x) for x in np.unravel_index(place, self.shape))
                self._learn(survivors.verdicts(node, self._open()))
                self._report()

    def _open(self) -> NDArray[np.bool_]:
        return np.asarray(self.bounds < self.best_node.loss + EQUAL)

    def _report(self) -> int:
        still_open = int(np.count_nonzero(self._open()))
        self.progress("searching the lattice", int(self.bounds.size) - still_open, int(self.bounds.size))
        return still_open

    def _rule_out(self, node: Levels) -> None:
        path = self._path_up(node)
        low, high = 0, len(path) - 1
        while low < high:
            middle = (low + high + 1) // 2
            self.check(path[middle])
            if self._bound(node, path[middle]) >= self.best_node.loss + EQUAL:
                low = middle
            else:
                high = middle - 1
        if low == 0:
            self.check(node)

    def _bound(self, node: Levels, above: Levels) -> float:
        """What a node costs at least, by a checked node above it."""
        return float(self.base[node]) + self.penalties[above]

    def check(self, node: Levels) -> float:
        """Evaluate a node and spread what it says to the nodes below; returns its loss, infinite when it suppresses too much."""
        earlier = self.checked.get(node)
        if earlier is not None:
            return earlier
        self._look(node)
        return self.checked[node]

    def _look(self, node: Levels) -> None:
        verdict = self.tables.verdict(node)
        self._note(node, float(self.base[node]) + verdict.penalty, verdict)
        penalty = float("inf") if verdict.least_suppressed > self.limit else verdict.least_penalty
        self.penalties[node] = penalty
        least = min(verdict.least_suppressed / self.tables.records, 1.0)
        self._raise(np.array([node], dtype=np.int64).reshape(1, self.sizes.size), np.array([penalty]), np.array([least]))

    def _note(self, node: Levels, loss: float, verdict: NodeVerdict, ties: tuple[float, ...] = ()) -> None:
        """Remember what a node costs."""
        feasible = verdict.suppressed <= self.limit
        self.best_node.note(node, loss, verdict, feasible, ties)
        self.checked[node] = loss if feasible else float("inf")

    def _learn(self, verdicts: NodeVerdicts) -> None:
        """Remember what many nodes cost, and spread it. They are not looked up one by one any more, so that no more is kept."""
        losses = self.base[tuple(verdicts.levels.T)] + verdicts.penalty
        self.best_node.note_all(verdicts, losses, verdicts.suppressed <= self.limit)
        penalties = np.where(verdicts.least_suppressed > self.limit, np.inf, verdicts.least_penalty)
        self._raise(verdicts.levels, penalties, np.minimum(verdicts.least_suppressed / self.tables.records, 1.0))

    def _raise(self, nodes: NDArray[np.int64], penalties: Real, least: Real) -> None:
        bounds, base = self.bounds.reshape(-1), self.base.reshape(-1)
        self.lowest = raise_bounds(bounds, base, self.sizes, nodes, penalties, least, *self.most_lost)

    def _start(self) -> None:
        """A good first solution: the lowest feasible node of the cheapest path upward, then improved step by step."""
        path = self._path_up(tuple(0 for _ in self.shape))
        low, high = 0, len(path) - 1
        if self.check(path[high]) == float("inf"):
            return
        # general nodes have few classes and are checked quickly, so feel the way down from the top in doubling steps
        step = 1
        while high > low:
            lower = max(high - step, low)
            if self.check(path[lower]) == float("inf"):
                low = lower + 1
                break
            high, step = lower, 2 * step
        while low < high:
            middle = (low + high) // 2
            if self.check(path[middle]) < float("inf"):
                high = middle
            else:
                low = middle + 1
        self._descend(path[high])

    def _path_up(self, start: Levels) -> list[Levels]:
        """From a node to the top, raising next whatever costs least."""
        node = list(start)
        path = [start]
        heights = [part.size - 1 for part in self.parts]
        heads = [(self.steps[a][level], a) for a, level in enumerate(start) if level < heights[a]]
        heapq.heapify(heads)
        while heads:
            a = heads[0][1]
            node[a] += 1
            path.append(tuple(node))
            if node[a] < heights[a]:
                heapq.heapreplace(heads, (self.steps[a][node[a]], a))
            else:
                heapq.heappop(heads)
        return path

    def _descend(self, node: Levels) -> None:
        """Move to the best neighbour (one level down or up in one attribute) as long as the loss falls."""
        best = self.check(node)
        while True:
            moved = False
            for a in range(len(node)):
                for step in (-1, 1):
                    level = node[a] + step
                    if not 0 <= level < self.shape[a]:
                        continue
                    near = (*node[:a], level, *node[a + 1 :])
                    if self.bounds[near] >= best - EQUAL:
                        continue
                    loss = self.check(near)
                    if loss < best - EQUAL:
                        best, node, moved = loss, near, True
            if not moved:
                return


def _corners(levels: list[tuple[Real, Real]]) -> tuple[NDArray[np.int64], Real, Real]:
    """The corners of several curves one after another, and where each begins."""
    starts = np.cumsum([0, *(sizes.size for sizes, _ in levels)], dtype=np.int64)
    none = np.zeros(0)
    return starts, np.concatenate([none, *(sizes for sizes, _ in levels)]), np.concatenate([none, *(sums for _, sums in levels)])


def _outer_sum(parts: list[Real]) -> Real:
    total = np.zeros(())
    for part in parts:
        total = total[..., None] + part
    return np.ascontiguousarray(total)
