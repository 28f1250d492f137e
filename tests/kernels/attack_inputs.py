"""Random inputs for the kernels behind learnt distances and rank windows; small whole numbers, so that sums are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from sfumato.kernels.linkage.rank_windows import ranked, windows

VALUES = st.integers(-3, 3).map(float)


@st.composite
def searched(draw: DrawFn) -> tuple[Any, ...]:
    """Two files, categories or not, terms from one another, dyadic weights."""
    width, count, rows = draw(st.integers(1, 4)), draw(st.integers(1, 7)), draw(st.integers(0, 5))
    cells = st.lists(VALUES, min_size=width, max_size=width)
    seeking = np.array(draw(st.lists(cells, min_size=rows, max_size=rows)), dtype=np.float64).reshape(rows, width)
    sought = np.array(draw(st.lists(cells, min_size=count, max_size=count)), dtype=np.float64).reshape(count, width)
    category = np.array(draw(st.lists(st.integers(0, 1), min_size=width, max_size=width)), dtype=np.int64)
    partner = np.array(draw(st.lists(st.integers(0, count - 1), min_size=rows, max_size=rows)), dtype=np.int64)
    steps = draw(st.integers(0, 4))
    left = np.array([draw(st.integers(0, width + step - 1)) for step in range(steps)], dtype=np.int64)
    right = np.array([draw(st.integers(0, width + step - 1)) for step in range(steps)], dtype=np.int64)
    largest = np.array(draw(st.lists(st.integers(0, 1), min_size=steps, max_size=steps)), dtype=np.int64)
    theta = np.array(draw(st.lists(st.integers(0, 8), min_size=width + steps, max_size=width + steps)), dtype=np.float64) / 8
    keep = draw(st.integers(0, count - 1))
    return seeking, sought, category, partner, draw(st.integers(0, 1)), left, right, largest, theta, keep


@st.composite
def windowed(draw: DrawFn) -> tuple[Any, ...]:
    """Released columns with missing values, and the windows of some people in them."""
    width, count, people = draw(st.integers(1, 3)), draw(st.integers(1, 9)), draw(st.integers(0, 5))
    cell = st.one_of(VALUES, st.just(float("nan")))
    parts: list[list[Any]] = [[], [], [], [], []]
    for _ in range(width):
        shown = np.array(draw(st.lists(cell, min_size=count, max_size=count)))
        held = np.array(draw(st.lists(cell, min_size=people, max_size=people)), dtype=np.float64)
        order, place, size = ranked(shown)
        first, last = windows(held, shown, draw(st.integers(0, 4)))
        for entries, entry in zip(parts, (order, place, size, first, last), strict=True):
            entries.append(entry)
    orders, places, known, low, high = parts
    mine = np.array(draw(st.lists(st.integers(-1, 3), min_size=people, max_size=people)), dtype=np.int64)
    owner = np.array(draw(st.lists(st.integers(0, 4), min_size=count, max_size=count)), dtype=np.int64)
    sides = [np.ascontiguousarray(np.array(part, dtype=np.int64).reshape(width, people).T) for part in (low, high)]
    return np.array(orders), np.array(places), np.array(known, dtype=np.int64), *sides, owner, mine
