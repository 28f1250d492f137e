"""Random records for linkage: few different values, so that ties, duplicates and missing values are common."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from sfumato.kernels.linkage.tree import grow_tree

_COARSE = st.sampled_from([0.0, 1.0, 2.0, 3.0, 0.5, float("nan")])
_FINE = st.floats(-3, 3, width=32)


@st.composite
def files(draw: DrawFn, rows: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Queries, points, kinds, costs and neutral terms."""
    width = draw(st.integers(0, 4))
    values = draw(st.sampled_from([_COARSE, _FINE, st.one_of(_COARSE, _FINE)]))
    count, asked = draw(st.integers(0, rows)), draw(st.integers(0, 8))
    numbers = draw(st.lists(values, min_size=(count + asked) * width, max_size=(count + asked) * width))
    both = np.array(numbers, dtype=np.float64).reshape(count + asked, width)
    kinds = np.array(draw(st.lists(st.integers(0, 2), min_size=width, max_size=width)), dtype=np.int64)
    costs = np.array(draw(st.lists(st.sampled_from([1.0, 0.5]), min_size=width, max_size=width)))
    neutral = np.array(draw(st.lists(st.sampled_from([0.0, 0.3, 2.0]), min_size=width, max_size=width)))
    return both[:asked], both[asked:].copy(), kinds, costs, neutral


@st.composite
def grown(draw: DrawFn) -> tuple[Any, ...]:
    _, points, kinds, _, _ = draw(files())
    return points, kinds, draw(st.sampled_from([1, 2, 5, 64]))


@st.composite
def ranked(draw: DrawFn) -> tuple[Any, ...]:
    queries, points, kinds, costs, neutral = draw(files())
    nodes = grow_tree.twin(points, kinds, draw(st.sampled_from([1, 3, 64])))
    limits = draw(st.lists(st.one_of(st.sampled_from([0.0, 1.0, 1.3, 2.0]), _FINE.map(abs)), min_size=8, max_size=8))
    held = np.ascontiguousarray(points[nodes[0]].T)
    slack = draw(st.sampled_from([0.0, 1e-9, 0.5]))
    return queries, np.array(limits[: len(queries)]), np.full(len(queries), slack), held, nodes, kinds, costs, neutral


@st.composite
def sought(draw: DrawFn) -> tuple[Any, ...]:
    queries, points, kinds, costs, neutral = draw(files())
    nodes = grow_tree.twin(points, kinds, draw(st.sampled_from([1, 3, 64])))
    limits = draw(st.lists(st.sampled_from([float("inf"), 1.0, 2.0]), min_size=8, max_size=8))
    discounts = np.zeros(len(points))
    if draw(st.booleans()):
        drawn = draw(st.lists(st.sampled_from([0.0, -0.5, -1.0]), min_size=len(points), max_size=len(points)))
        discounts = np.array(drawn, dtype=np.float64)
    peaks = np.array([discounts[a:b].max(initial=-np.inf) for a, b in zip(nodes[1], nodes[2], strict=True)])
    asked = np.array(limits[: len(queries)]), draw(st.integers(1, 4)), draw(st.booleans())
    held = np.ascontiguousarray(points[nodes[0]].T)
    return queries, *asked, held, discounts, peaks, nodes, kinds, costs, neutral


@st.composite
def assignments(draw: DrawFn) -> tuple[Any, ...]:
    """A few candidates per row, one of them a column of the row's own; nothing assigned yet."""
    rows = draw(st.integers(0, 7))
    places = draw(st.integers(1, max(rows, 1)))
    own = np.array([i % places for i in range(rows)], dtype=np.int64)
    more = [draw(st.lists(st.integers(0, places - 1), max_size=4)) for _ in range(rows)]
    columns = [[*found, int(own[i])] for i, found in enumerate(more)]
    starts = np.cumsum([0, *(len(found) for found in columns)])
    edges = np.array([c for found in columns for c in found], dtype=np.int64)
    costs = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.5]), min_size=edges.size, max_size=edges.size)))
    capacity = np.bincount(own, minlength=places).astype(np.int64)
    return starts.astype(np.int64), edges, costs, capacity, np.zeros(places), np.full(rows, -1, dtype=np.int64)
