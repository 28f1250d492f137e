"""Junction trees: the shape in which a model of overlapping marginals can be computed with exactly.

Sets of columns become a graph, the graph is made chordal by eliminating columns one by one (the column whose
elimination makes the smallest table first), and its maximal cliques become the nodes of a tree in which the cliques
that hold a column are connected.
Lauritzen, Spiegelhalter, "Local computations with probabilities on graphical structures and their application to expert
systems", Journal of the Royal Statistical Society B 50(2), 1988.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Columns = tuple[int, ...]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which each comes after its parent; `separators[i]` is what clique i shares with its parent.

    The first clique is the root: its parent is -1 and its separator is empty. Parts that share no column are joined by
    an empty separator.
    """

    cliques: tuple[Columns, ...]
    parents: tuple[int, ...]
    separators: tuple[Columns, ...]

    def holding(self, columns: Columns, sizes: Sequence[int]) -> int | None:
        """The smallest clique that holds all these columns, if there is one."""
        names = set(columns)
        holders = [place for place, clique in enumerate(self.cliques) if names <= set(clique)]
        return min(holders, key=lambda place: cells(self.cliques[place], sizes)) if holders else None


def cells(columns: Iterable[int], sizes: Sequence[int]) -> int:
    """How many cells a table of these columns has."""
    return math.prod(sizes[column] for column in columns)


def maximal_cliques(sets: Iterable[Columns], sizes: Sequence[int]) -> list[Columns]:
    """The cliques of a chordal graph in which each of the sets is complete, largest tables avoided greedily."""
    cliques = _eliminated(sets, sizes)
    return sorted(tuple(column for column in range(len(sizes)) if clique >> column & 1) for clique in cliques)


def _eliminated(sets: Iterable[Columns], sizes: Sequence[int]) -> list[int]:
    """The cliques as bits of whole numbers: this is asked for every candidate of every round, and sets would be slow."""
    near = [1 << column for column in range(len(sizes))]  # a column and its neighbours
    for columns in sets:
        together = sum(1 << column for column in columns)
        for column in columns:
            near[column] |= together
    weights = [_weight(clique, sizes) for clique in near]
    left = list(range(len(sizes)))
    filled: list[int] = []
    while left:
        column = min(left, key=weights.__getitem__)
        clique = near[column]
        left.remove(column)
        gone = ~(1 << column)
        for member in left:
            if clique >> member & 1:
                joined = (near[member] | clique) & gone
                if joined != near[member]:
                    near[member] = joined
                    weights[member] = _weight(joined, sizes)
        if not any(clique & other == clique for other in filled):
            filled.append(clique)
    return filled


def _weight(clique: int, sizes: Sequence[int]) -> int:
    product = 1
    while clique:
        lowest = clique & -clique
        product *= sizes[lowest.bit_length() - 1]
        clique ^= lowest
    return product


def model_cells(sets: Iterable[Columns], sizes: Sequence[int]) -> int:
    """The cells of all cliques together: what a model with these marginals would occupy."""
    return sum(_weight(clique, sizes) for clique in _eliminated(sets, sizes))


def junction_tree(sets: Iterable[Columns], sizes: Sequence[int]) -> JunctionTree:
    """A tree over the cliques, of largest separators, rooted at the largest clique."""
    cliques = maximal_cliques(sets, sizes)
    root = max(range(len(cliques)), key=lambda place: (cells(cliques[place], sizes), -place))
    order, parents = [root], [-1]
    separators: list[Columns] = [()]
    waiting = [place for place in range(len(cliques)) if place != root]
    while waiting:
        # the pair with the most shared columns; among those the smallest separator table
        best = max(
            ((place, above) for place in waiting for above in range(len(order))),
            key=lambda pair: _shared_rank(cliques[pair[0]], cliques[order[pair[1]]], sizes),
        )
        place, above = best
        waiting.remove(place)
        order.append(place)
        parents.append(above)
        separators.append(tuple(sorted(set(cliques[place]) & set(cliques[order[above]]))))
    return JunctionTree(tuple(cliques[place] for place in order), tuple(parents), tuple(separators))


def _shared_rank(clique: Columns, other: Columns, sizes: Sequence[int]) -> tuple[int, int]:
    shared = set(clique) & set(other)
    return len(shared), -cells(shared, sizes)
