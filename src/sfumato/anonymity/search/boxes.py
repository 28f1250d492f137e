"""Branch and bound over boxes of a lattice: for lattices too large to hold, and for searches with a time limit.

A box is the set of nodes between a lowest and a highest corner. No node in it costs less than the loss of the lowest
corner without suppression plus what suppression adds at the highest corner; if the highest corner must suppress too
much, so must all. The box with the smallest bound is split first, so the bound of the next box minus the best loss
found is the gap at any time. Where boxes alone take too long, most of the time goes into finding a good node
(`descents`).
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass
from itertools import count
from math import inf

from sfumato.anonymity.search.costs import Costs, MeanLoss, Real
from sfumato.anonymity.search.descents import Descents
from sfumato.anonymity.search.node_tables import NodeTables
from sfumato.anonymity.search.sweep import EQUAL, BestNode, Levels
from sfumato.core.progress import Progress

#: Between these shares of the time a good node is sought where the boxes did not rule out the others by then.
_FROM, _UNTIL = 0.03, 0.9


@dataclass(frozen=True)
class _Looked:
    """A checked node: its loss (infinite where it suppresses too much), its penalty, and the least penalty of nodes below it
    by column where the objective needs it (infinite where all of them suppress too much)."""

    loss: float
    penalty: float
    least_below: float | Real


def search_boxes(
    tables: NodeTables, limit: int, progress: Progress, *, time_limit: float, costs: Costs | None = None
) -> BestNode:
    """The best node found within the time limit; `gap` is 0 when the whole lattice was ruled out."""
    costs = costs or MeanLoss(tables)
    parts = costs.parts
    margin = EQUAL if costs.ordered_ties else -EQUAL
    best = BestNode(records=tables.records)
    checked: dict[Levels, _Looked] = {}
    start = time.monotonic()
    deadline = start + time_limit

    def check(node: Levels) -> _Looked:
        if node not in checked:
            cost = costs.of(node)
            feasible = cost.verdict.suppressed <= limit
            best.note(node, cost.loss, cost.verdict, feasible, cost.ties)
            if best.evaluated % 16 == 0:
                progress("searching the lattice", best.evaluated, 0)
            below = inf if cost.verdict.least_suppressed > limit else cost.least_below
            checked[node] = _Looked(cost.loss if feasible else inf, cost.penalty, below)
        return checked[node]

    def bound_of(low: Levels, high: Levels) -> float:
        least = check(high).least_below
        return inf if isinstance(least, float) and least == inf else costs.bound(low, least)

    top = tuple(tables.heights)
    bottom = tuple(0 for _ in top)
    ticket = count()
    heap = [(bound_of(bottom, top), next(ticket), bottom, top)]
    descents = Descents(
        parts, check, lambda: time.monotonic() > start + time_limit * _UNTIL, additive=isinstance(costs, MeanLoss)
    )
    descents.start()
    evolved = False
    while heap:
        bound, _, low, high = heapq.heappop(heap)
        if bound >= best.loss + margin:
            break
        if not evolved and time.monotonic() > start + time_limit * _FROM:
            descents.evolve()
            evolved = True
            if bound >= best.loss + margin:
                break
        if time.monotonic() > deadline:
            best.gap = max(best.loss - bound, 0.0) if best.levels is not None else inf
            best.complete = False
            return best
        if low == high:
            continue
        for low_part, high_part in _split(low, high, parts):
            bound = bound_of(low_part, high_part)
            if bound < best.loss + margin:
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
