"""Good nodes of a lattice that is too large to search: descents from two nodes, then a population that is crossed and mutated.

A descent moves to a neighbour (one attribute a level down or up) as long as the loss falls. What suppression adds can
only grow downward, so most neighbours are passed over by a bound and not looked at. After the descents from the top
and from a path upward a population of nodes evolves: the better half is crossed, a level is changed here and there,
all by a fixed sequence of numbers. When no generation improves it any more, the best node is descended from, levels of two
attributes are exchanged, and a population is made anew, in turns around the best node and anywhere. A genetic algorithm with
local search: Holland 1975; Moscato 1989.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.search.sweep import EQUAL, Levels

Real = NDArray[np.float64]
_POPULATION = 100
_ELITE = 20
_IN_VAIN = 15  # generations in a row without a better node, after which the population is made anew


class Looked(Protocol):
    """What is known of a node that was checked: its loss (infinite where it suppresses too much) and its penalty."""

    @property
    def loss(self) -> float: ...

    @property
    def penalty(self) -> float: ...


class Descents:
    """Descents over nodes that `check` looks at, until `over` says that the time is spent."""

    def __init__(
        self, parts: Sequence[Real], check: Callable[[Levels], Looked], over: Callable[[], bool], *, additive: bool = True
    ) -> None:
        self.parts = parts
        self.additive = additive  # otherwise parts and penalty give no bound of a neighbour, and each is looked at
        self.check = check
        self.over = over
        self.top: Levels = tuple(part.size - 1 for part in parts)
        self.nodes = math.prod(part.size for part in parts)
        self.seen: set[Levels] = set()
        self.best: tuple[float, Levels] = (check(self.top).loss, self.top)

    def start(self) -> None:
        """Descend from the top and from the cheapest path upward."""
        self._descend(self.top)
        self._descend(self._first_feasible())

    def evolve(self) -> None:
        """Let a population evolve until the time is spent."""
        draws = _numbers()
        around = False
        while not self.over() and len(self.seen) < self.nodes:
            self._population(self._anew(draws, around=around), draws)
            self._descend(self.best[1])
            while self._exchanged():
                self._descend(self.best[1])
            around = not around

    def _population(self, generation: list[Levels], draws: Iterator[int]) -> None:
        """Let one population evolve until it finds nothing better any more, whatever others found."""
        least, in_vain = float("inf"), 0
        while not self.over() and len(self.seen) < self.nodes and in_vain < _IN_VAIN:
            generation = self._next(generation, draws)
            loss = min(self._rank(node)[0] for node in generation[:_ELITE])
            in_vain = 0 if loss < least - EQUAL else in_vain + 1
            least = min(least, loss)

    def _exchanged(self) -> bool:
        """Whether one attribute lower and another one higher, by any number of levels, is better than the best node."""
        loss = self.best[0]
        for bound, node in sorted(self._exchanges(self.best[1])) if self.additive else ():
            if self.over() or bound >= loss - EQUAL:
                break
            if node not in self.seen and self._rank(node)[0] < loss - EQUAL:
                self.best = (self._rank(node)[0], node)
                return True
        return False

    def _exchanges(self, node: Levels) -> Iterator[tuple[float, Levels]]:
        """Nodes with one attribute lower and another one higher, with a lower bound of their loss: below the node that has only
        the higher one the penalty is no smaller than there."""
        for b, part in enumerate(self.parts):
            for higher in range(node[b] + 1, part.size):
                raised = _moved(node, b, higher - node[b])
                self._rank(raised)
                if self.over():
                    return
                bound = self._base(raised) + self.check(raised).penalty
                for a, levels in enumerate(self.parts):
                    for lower in range(node[a] if a != b else 0):
                        yield bound - float(levels[node[a]] - levels[lower]), _moved(raised, a, lower - node[a])

    def _anew(self, draws: Iterator[int], *, around: bool) -> list[Levels]:
        """A population: the best node, and nodes near it or else near the top and anywhere."""
        nodes = [self.best[1]] if around else []  # the first population is not drawn towards the node that descents found
        while len(nodes) < _POPULATION:
            if around:
                nodes.append(self._changed(self.best[1], draws, 1 + next(draws) % 8))
            elif len(nodes) % 2:
                nodes.append(tuple(max(height - next(draws) % 2, 0) for height in self.top))
            else:
                nodes.append(tuple(next(draws) % (height + 1) for height in self.top))
        return nodes

    def _next(self, nodes: list[Levels], draws: Iterator[int]) -> list[Levels]:
        """The elite, and children of nodes that won a tournament."""
        ranked = sorted(nodes, key=self._rank)
        if self.over():
            return ranked
        if self._rank(ranked[0])[0] < self.best[0] - EQUAL:
            self.best = (self._rank(ranked[0])[0], ranked[0])
        children = list(dict.fromkeys(ranked[:_ELITE]))
        while len(children) < _POPULATION:
            first, second = (ranked[min(next(draws) % len(ranked) for _ in range(3))] for _ in range(2))
            child = tuple(one if next(draws) % 2 else other for one, other in zip(first, second, strict=True))
            children.append(self._nudged(child, draws) if next(draws) % 2 else child)
        return children

    def _rank(self, node: Levels) -> tuple[float, float]:
        """Nodes that suppress too much come last, those that add least by it first."""
        if self.over() and node not in self.seen:
            return float("inf"), float("inf")
        looked = self.check(node)
        self.seen.add(node)
        return looked.loss, looked.penalty

    def _base(self, node: Levels) -> float:
        return float(sum(part[level] for part, level in zip(self.parts, node, strict=True)))

    def _first_feasible(self) -> Levels:
        """The lowest node of the cheapest path upward that suppresses few enough records."""
        node, path = [0] * len(self.parts), [tuple([0] * len(self.parts))]
        while tuple(node) != self.top:
            open_ = [a for a, level in enumerate(node) if level < self.top[a]]
            a = min(open_, key=lambda i: (float(self.parts[i][node[i] + 1] - self.parts[i][node[i]]), i))
            node[a] += 1
            path.append(tuple(node))
        low, high = 0, len(path) - 1
        while low < high and not self.over():
            middle = (low + high) // 2
            if self.check(path[middle]).loss < np.inf:
                high = middle
            else:
                low = middle + 1
        return path[high]

    def _descend(self, start: Levels) -> None:
        """Move to the first better neighbour, those with the lowest bound first, as long as there is one."""
        node, here = start, self.check(start)
        while not self.over():
            step = self._better(node, here)
            if step is None:
                break
            node, here = step
        if here.loss < self.best[0] - EQUAL:
            self.best = (here.loss, node)

    def _better(self, node: Levels, here: Looked) -> tuple[Levels, Looked] | None:
        penalty = here.penalty
        for bound, near in sorted(self._neighbours(node, penalty)):
            if self.over() or bound >= here.loss - EQUAL:
                return None
            looked = self.check(near)
            if looked.loss < here.loss - EQUAL:
                return near, looked
        return None

    def _neighbours(self, node: Levels, penalty: float) -> Iterator[tuple[float, Levels]]:
        """Neighbours with a lower bound of their loss: below a node the penalty is no smaller than its own."""
        base = self._base(node)
        down = [(float(part[n - 1] - part[n]), a) for a, (part, n) in enumerate(zip(self.parts, node, strict=True)) if n > 0]
        up = [
            (float(part[n + 1] - part[n]), a)
            for a, (part, n) in enumerate(zip(self.parts, node, strict=True))
            if n < part.size - 1
        ]
        none = 0.0 if self.additive else -math.inf
        for saved, a in down:
            yield base + saved + penalty + none, _moved(node, a, -1)
        for cost, a in up:
            yield base + cost + none, _moved(node, a, 1)

    def _nudged(self, node: Levels, draws: Iterator[int]) -> Levels:
        """One attribute a level up or down."""
        a, step = next(draws) % len(node), 1 if next(draws) % 2 else -1
        return _moved(node, a, step) if 0 <= node[a] + step <= self.top[a] else node

    def _changed(self, node: Levels, draws: Iterator[int], count: int) -> Levels:
        levels = list(node)
        for _ in range(count):
            a = next(draws) % len(levels)
            if self.top[a]:
                levels[a] = (levels[a] + 1 + next(draws) % self.top[a]) % (self.top[a] + 1)
        return tuple(levels)


def _moved(node: Levels, a: int, step: int) -> Levels:
    return (*node[:a], node[a] + step, *node[a + 1 :])


def _numbers() -> Iterator[int]:
    """A fixed sequence that looks random: the same table gives the same nodes (Lehmer, 1951, with Park and Miller's factor)."""
    state = 20_061
    while True:
        state = state * 48_271 % 2_147_483_647
        yield state >> 4
