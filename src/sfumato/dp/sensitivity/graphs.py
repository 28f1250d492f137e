"""Sensitivities for graphs: neighbours that differ in one edge, or in one vertex with all its edges.

For vertices the sensitivity grows with the number of vertices before one is added.
Hay, Li, Miklau, Jensen, "Accurate estimation of the degree distribution of private networks", ICDM 2009; Kasiviswanathan,
Nissim, Raskhodnikova, Smith, "Analyzing graphs with node differential privacy", TCC 2013.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Literal, TypeAlias

from sfumato.core.declared import require
from sfumato.dp.sensitivity.base import Sensitivity
from sfumato.dp.sensitivity.brute_force import Answer, largest_change

Differing = Literal["edge", "node"]
#: A simple graph: how many vertices, and which pairs of them are joined.
Graph: TypeAlias = tuple[int, frozenset[tuple[int, int]]]

_MOST_VERTICES = 6


def edge_count(differing: Differing, *, vertices: int | None = None) -> Sensitivity:
    """How many edges there are: 1 for an edge; for a node the number of `vertices` it can be joined to."""
    if _checked(differing, vertices) == "edge":
        return Sensitivity.of(1, "add_remove", unit="edge", why="one edge added or removed")
    return Sensitivity.of(vertices or 0, "add_remove", unit="node", why="a new vertex is joined to at most all present ones")


def degree_at_least(differing: Differing, *, vertices: int | None = None) -> Sensitivity:
    """How many vertices have at least some degree: 2 for an edge, which has two ends; for a node all vertices and itself."""
    if _checked(differing, vertices) == "edge":
        return Sensitivity.of(2, "add_remove", unit="edge", why="one edge changes the degrees of its two ends")
    return Sensitivity.of(
        (vertices or 0) + 1, "add_remove", unit="node", why="a new vertex counts itself and lifts all present ones"
    )


def brute_force(query: Callable[[Graph], Answer], differing: Differing, vertices: int) -> Sensitivity:
    """The largest change over all graphs of that many vertices, by trying them all.

    With `differing="node"` a further vertex is added, joined to any subset of the others.
    """
    require(1 <= vertices <= _MOST_VERTICES, f"all graphs are tried for 1 to {_MOST_VERTICES} vertices")
    _checked(differing, vertices)
    pairs = _with_one_edge_more(vertices) if differing == "edge" else _with_one_vertex_more(vertices)
    return largest_change(query, pairs, "add_remove", unit=differing)


def _checked(differing: Differing, vertices: int | None) -> Differing:
    require(differing in {"edge", "node"}, "differing is 'edge' or 'node'")
    require(differing == "edge" or (vertices is not None and vertices >= 1), "for nodes, state the public number of vertices")
    return differing


def _graphs(vertices: int) -> Iterator[Graph]:
    places = list(combinations(range(vertices), 2))
    for chosen in range(2 ** len(places)):
        yield vertices, frozenset(pair for place, pair in enumerate(places) if chosen >> place & 1)


def _with_one_edge_more(vertices: int) -> Iterator[tuple[Graph, Graph]]:
    for graph in _graphs(vertices):
        for pair in combinations(range(vertices), 2):
            if pair not in graph[1]:
                yield graph, (vertices, graph[1] | {pair})


def _with_one_vertex_more(vertices: int) -> Iterator[tuple[Graph, Graph]]:
    for graph in _graphs(vertices):
        for chosen in range(2**vertices):
            ends = frozenset((place, vertices) for place in range(vertices) if chosen >> place & 1)
            yield graph, (vertices + 1, graph[1] | ends)


def degrees(graph: Graph) -> list[int]:
    """The degree of every vertex."""
    counts = [0] * graph[0]
    for one, two in graph[1]:
        counts[one] += 1
        counts[two] += 1
    return counts
