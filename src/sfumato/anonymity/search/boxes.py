"""Branch and bound over boxes of a lattice: for lattices too large to hold, and for searches with a time limit.

A box is the set of nodes between a lowest and a highest corner. No node in it costs less than the loss of the
lowest corner without suppression plus what suppression adds at the highest corner; if the highest corner must
suppress too much, so must all. The box with the smallest bound is split first, so the bound of the next box minus
the best loss found is the gap at any time.
"""

from __future__ import annotations

import heapq
import time
from itertools import count

from sfumato.anonymity.search.node_tables import NodeTables
from sfumato.anonymity.search.sweep import EQUAL, BestNode, Levels
from sfumato.core.progress import Progress


def search_boxes(tables: NodeTables, limit: int, progress: Progress, *, time_limit: float) -> BestNode:
    """The best node found within the time limit; `gap` is 0 when the whole lattice was ruled out."""
    parts = tables.base_losses()
    best = BestNode(records=tables.records)
    checked: dict[Levels, tuple[float, float]] = {}
    deadline = time.monotonic() + time_limit

    def base(node: Levels) -> float:
        return float(sum(part[level] for part, level in zip(parts, node, strict=True)))

    def check(node: Levels) -> tuple[float, float]:
        """(least penalty below the node, its own loss), infinite where the suppression limit is passed."""
        if node not in checked:
            verdict = tables.verdict(node)
            feasible = verdict.suppressed <= limit
            loss = base(node) + verdict.penalty
            best.note(node, loss, verdict, feasible)
            ruled_out = verdict.least_suppressed > limit
            checked[node] = (float("inf") if ruled_out else verdict.least_penalty, loss if feasible else float("inf"))
        return checked[node]

    top = tuple(tables.heights)
    bottom = tuple(0 for _ in top)
    ticket = count()
    heap = [(base(bottom) + check(top)[0], next(ticket), bottom, top)]
    _dive(bottom, top, parts, check)
    while heap:
        bound, _, low, high = heapq.heappop(heap)
        if bound >= best.loss - EQUAL:
            break
        if time.monotonic() > deadline:
            best.gap = max(best.loss - bound, 0.0) if best.levels is not None else float("inf")
            return best
        if best.evaluated % 16 == 0:
            progress("searching the lattice", best.evaluated, 0)
        if low == high:
            continue
        for low_part, high_part in _split(low, high, parts):
            bound = base(low_part) + check(high_part)[0]
            if bound < best.loss - EQUAL:
                heapq.heappush(heap, (bound, next(ticket), low_part, high_part))
    return best


def _split(low: Levels, high: Levels, parts: list) -> list[tuple[Levels, Levels]]:  # type: ignore[type-arg]
    """Halve the box across the attribute whose levels differ most in loss."""
    spread = [float(part[h] - part[b]) if h > b else -1.0 for part, b, h in zip(parts, low, high, strict=True)]
    a = max(range(len(spread)), key=spread.__getitem__)
    middle = (low[a] + high[a]) // 2
    return [
        (low, (*high[:a], middle, *high[a + 1 :])),
        ((*low[:a], middle + 1, *low[a + 1 :]), high),
    ]


def _dive(bottom: Levels, top: Levels, parts: list, check) -> None:  # type: ignore[no-untyped-def, type-arg]
    """A first solution: from the top, give back the attribute that saves most, as long as it stays feasible; then neighbours."""
    node, best = top, check(top)[1]
    moved = True
    while moved:
        moved = False
        steps = sorted(
            (float(part[level - 1] - part[level]), a)
            for a, (part, level) in enumerate(zip(parts, node, strict=True))
            if level > 0
        )
        for _, a in steps:
            lower = (*node[:a], node[a] - 1, *node[a + 1 :])
            loss = check(lower)[1]
            if loss < best - EQUAL:
                node, best, moved = lower, loss, True
                break
