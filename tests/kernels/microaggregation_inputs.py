"""Random inputs for the kernels of microaggregation: few records on a small grid, so that ties are common."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

BLOCK, FAN = 4, 2


@st.composite
def points(draw: DrawFn, least: int = 0) -> np.ndarray:
    count, attributes = draw(st.integers(least, 24)), draw(st.integers(1, 3))
    cells = draw(st.lists(st.integers(-3, 3), min_size=count * attributes, max_size=count * attributes))
    return np.array(cells, dtype=np.float64).reshape(count, attributes)


@st.composite
def order(draw: DrawFn) -> tuple[Any, ...]:
    return draw(points()), draw(st.integers(1, 5))


def enclosed(laid: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes and balls of blocks, boxes of groups, in the plainest way; NaN where nothing lives."""
    groups, attributes = laid.shape[0] // FAN, laid.shape[1]
    leaves = np.full((groups, 3, attributes, FAN), np.nan)
    radii = np.full((groups, FAN), np.nan)
    for block, cells in enumerate(laid):
        live = cells[:, ~np.isnan(cells[0])]
        if live.size:
            at = block // FAN, block % FAN
            centre = live.mean(axis=1)
            leaves[at[0], 0, :, at[1]], leaves[at[0], 1, :, at[1]] = live.min(axis=1), live.max(axis=1)
            leaves[at[0], 2, :, at[1]] = centre
            radii[at] = np.sqrt(((live - centre[:, None]) ** 2).sum(axis=0).max())
    outer = np.full((2, attributes, groups), np.nan)
    for group in range(groups):
        if not np.isnan(leaves[group, 0, 0]).all():
            outer[0, :, group] = np.nanmin(leaves[group, 0], axis=1)
            outer[1, :, group] = np.nanmax(leaves[group, 1], axis=1)
    return leaves, radii, outer


@st.composite
def laid_out(draw: DrawFn) -> tuple[Any, ...]:
    """Points in blocks with tight bounds, after some were taken away: points, live rows, rows by slot, slots by row, blocks and
    bounds."""
    from sfumato.kernels.microaggregation.order import spatial_order

    given = draw(points(least=1))
    count, attributes = given.shape
    ordered = spatial_order.twin(given, BLOCK)
    groups = -(-count // (BLOCK * FAN))
    slots = np.full((groups * FAN * BLOCK, attributes), np.nan)
    slots[:count] = given[ordered]
    rows = np.full(slots.shape[0], -1, dtype=np.int64)
    rows[:count] = ordered
    place = np.empty(count, dtype=np.int64)
    place[ordered] = np.arange(count)
    gone = draw(st.lists(st.integers(0, count - 1), max_size=count, unique=True))
    slots[place[gone]] = np.nan
    live = sorted(set(range(count)) - set(gone))
    blocks = np.ascontiguousarray(slots.reshape(groups * FAN, BLOCK, attributes).transpose(0, 2, 1))
    return given, live, rows, place, blocks, *enclosed(blocks)


def _point(draw: DrawFn, given: np.ndarray) -> np.ndarray:
    inside = st.sampled_from(range(len(given))).map(lambda row: given[row].copy())
    anywhere = st.lists(st.sampled_from([-4.0, -0.5, 0.0, 0.5, 4.0]), min_size=given.shape[1], max_size=given.shape[1])
    return np.array(draw(st.one_of(inside, anywhere)), dtype=np.float64)


@st.composite
def farthest(draw: DrawFn) -> tuple[Any, ...]:
    given, _, rows, _, blocks, leaves, radii, groups = draw(laid_out())
    return _point(draw, given), rows, blocks, leaves, radii, groups


@st.composite
def nearest(draw: DrawFn) -> tuple[Any, ...]:
    given, live, rows, _, blocks, leaves, _, groups = draw(laid_out())
    own = draw(st.sampled_from([-1, *live]))
    point = given[own].copy() if own >= 0 else _point(draw, given)
    start = draw(st.integers(0, blocks.shape[0] - 1))
    return point, draw(st.integers(1, 8)), own, start, rows, blocks, leaves, groups


@st.composite
def removed(draw: DrawFn) -> tuple[Any, ...]:
    _, live, _, place, blocks, leaves, radii, groups = draw(laid_out())
    gone = draw(st.lists(st.sampled_from(live), max_size=6, unique=True)) if live else []
    return np.array(gone, dtype=np.int64), place, draw(st.sampled_from([0.0, 0.5])), blocks, leaves, radii, groups


@st.composite
def shell(draw: DrawFn) -> tuple[Any, ...]:
    given = draw(points(least=1))
    anchor, point = _point(draw, given), _point(draw, given)
    reach = np.sqrt(((given - anchor) ** 2).sum(axis=1))
    inward = np.argsort(-reach, kind="stable")
    live = np.array(draw(st.lists(st.booleans(), min_size=len(given), max_size=len(given))))
    dead = int(np.argmax(live[inward])) if live.any() else 0
    moved = float(np.sqrt(((point - anchor) ** 2).sum()))
    return point, moved, draw(st.integers(0, dead)), given, inward, reach[inward], live


@st.composite
def ascending(draw: DrawFn) -> tuple[Any, ...]:
    k = draw(st.integers(1, 4))
    steps = st.one_of(st.integers(0, 3), st.sampled_from([0, 1, 100]))
    values = draw(st.lists(steps, min_size=k, max_size=30))
    return np.cumsum(values).astype(np.float64), k


@st.composite
def mixed(draw: DrawFn) -> tuple[Any, ...]:
    numbers = draw(points())
    count = len(numbers)
    codes = np.array(draw(st.lists(st.integers(0, 2), min_size=2 * count, max_size=2 * count)), dtype=np.int32)
    tables = np.array(draw(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=6, max_size=6)))
    point = _point(draw, numbers) if count else np.zeros(numbers.shape[1])
    return point, np.ascontiguousarray(numbers.T), codes.reshape(2, count), tables, np.array([0, 3], dtype=np.int64)
