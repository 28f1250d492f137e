"""Random inputs for every kernel, and the form in which results of its two versions are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.kernels import attack_inputs, itemset_inputs, linkage_inputs, microaggregation_inputs, swapping_inputs

COUNTS = st.one_of(
    st.integers(0, 4),
    st.sampled_from([0, 0, 1, 10, 1_000, 2**31, 2**31 + 1, 2**40]),
)
SHARES = st.sampled_from([0.05, 0.1, 0.2, 0.25, 1 / 3, 0.5, 0.9, 1.0])


@st.composite
def totals(draw: DrawFn, width: int) -> np.ndarray:
    """Totals with one histogram: records, units, population, then the histogram whose sum is the records."""
    rows = draw(st.integers(0, 6))
    histogram = np.array(
        draw(st.lists(st.lists(COUNTS, min_size=width, max_size=width), min_size=rows, max_size=rows)), dtype=np.int64
    ).reshape(rows, width)
    records = histogram.sum(axis=1, keepdims=True)
    others = np.array(
        draw(st.lists(st.lists(COUNTS, min_size=2, max_size=2), min_size=rows, max_size=rows)), dtype=np.int64
    ).reshape(rows, 2)
    return np.ascontiguousarray(np.hstack([records, others, histogram]))


@st.composite
def distribution(draw: DrawFn, width: int) -> np.ndarray:
    weights = draw(st.lists(st.integers(0, 9), min_size=width, max_size=width))
    weights = weights if sum(weights) else [1] * width
    return np.array(weights, dtype=np.float64) / sum(weights)


@st.composite
def too_few(draw: DrawFn) -> tuple[Any, ...]:
    return draw(totals(2)), draw(st.integers(0, 2)), draw(st.sampled_from([1, 2, 5, 2**33]))


@st.composite
def distinct(draw: DrawFn) -> tuple[Any, ...]:
    width = draw(st.integers(1, 5))
    return draw(totals(width)), 3, width, draw(st.integers(0, 1)), draw(st.integers(1, 6))


@st.composite
def entropy(draw: DrawFn) -> tuple[Any, ...]:
    width = draw(st.integers(1, 5))
    return draw(totals(width)), 3, width, draw(st.sampled_from([1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0]))


@st.composite
def recursive(draw: DrawFn) -> tuple[Any, ...]:
    width = draw(st.integers(1, 5))
    return draw(totals(width)), 3, width, draw(st.sampled_from([0.3, 0.7, 1.0, 1.1, 2.0, 4.0])), draw(st.integers(1, 6))


@st.composite
def closeness(draw: DrawFn) -> tuple[Any, ...]:
    width = draw(st.integers(1, 5))
    shares = draw(distribution(width))
    alone = np.array(draw(st.one_of(st.just(range(width)), st.permutations(range(width)))))  # a number of its own for each value
    rows = [alone]
    if draw(st.booleans()):
        parents = np.sort(np.array(draw(st.lists(st.integers(0, 2), min_size=width, max_size=width))))
        rows.append(width + np.unique(parents, return_inverse=True)[1])
    groups = np.ascontiguousarray(np.stack(rows).astype(np.int64))
    reference = np.zeros(int(groups.max()) + 1)
    for level in groups:
        np.add.at(reference, level, shares)
    sizes = draw(totals(width))
    need = np.array(draw(st.lists(st.sampled_from([0, 0, 4, -1]), min_size=len(sizes), max_size=len(sizes))), dtype=np.int64)
    times = draw(st.sampled_from([1, 1, 30]))  # more classes than are looked at side by side
    return np.tile(sizes, (times, 1)), 3, width, groups, reference, draw(SHARES), np.tile(need, times)


@st.composite
def ordered_closeness(draw: DrawFn) -> tuple[Any, ...]:
    width = draw(st.integers(1, 5))
    return draw(totals(width)), 3, width, draw(distribution(width)), draw(SHARES)


@st.composite
def shares_outside(draw: DrawFn) -> tuple[Any, ...]:
    width = draw(st.integers(1, 5))
    limits = st.lists(SHARES, min_size=width, max_size=width)
    low = np.array(draw(st.one_of(limits, st.just([-1.0] * width))))
    high = np.array(draw(st.one_of(limits, st.just([2.0] * width))))
    return draw(totals(width)), 3, width, low / 4, high, draw(st.integers(0, 1))


@st.composite
def group_keys(draw: DrawFn) -> tuple[Any, ...]:
    keys = st.one_of(st.integers(0, 5), st.integers(0, 2**62))
    return (np.array(draw(st.lists(keys, max_size=40)), dtype=np.int64),)


@st.composite
def _packed(draw: DrawFn) -> tuple[Any, ...]:
    """Packed keys of two attributes (3 and 2 bits), each with a table of losses."""
    count = draw(st.integers(0, 12))
    codes = st.lists(st.integers(0, 31), min_size=count, max_size=count, unique=True)
    keys = np.array(draw(codes), dtype=np.int64)
    shifts, masks = np.array([0, 3], dtype=np.int64), np.array([7, 3], dtype=np.int64)
    losses = np.array(draw(st.lists(st.floats(0, 0.5), min_size=12, max_size=12)))
    sizes = np.array(draw(st.lists(st.lists(COUNTS, min_size=2, max_size=2), min_size=count, max_size=count)), dtype=np.int64)
    return keys, sizes.reshape(count, 2), shifts, masks, np.array([0, 8], dtype=np.int64), losses


@st.composite
def roll_up(draw: DrawFn) -> tuple[Any, ...]:
    keys, sizes, *_ = draw(_packed())
    parents = np.array(draw(st.lists(st.integers(0, 7), min_size=8, max_size=8)), dtype=np.int64)
    return keys, sizes, 0, 7, parents ^ np.arange(8)


@st.composite
def class_losses(draw: DrawFn) -> tuple[Any, ...]:
    keys, _, *rest = draw(_packed())
    return keys, *rest


@st.composite
def small_classes(draw: DrawFn) -> tuple[Any, ...]:
    keys, sizes, *rest = draw(_packed())
    return keys, sizes, draw(st.integers(0, 1)), draw(st.sampled_from([1, 2, 5, 2**33])), *rest


@st.composite
def failing_classes(draw: DrawFn) -> tuple[Any, ...]:
    keys, sizes, *rest = draw(_packed())
    # a class without records never fails
    need = np.array([draw(st.sampled_from([0, -1, 1, int(size)])) if size else 0 for size in sizes[:, 0]], dtype=np.int64)
    return keys, sizes, need, *rest


@st.composite
def roll_up_family(draw: DrawFn) -> tuple[Any, ...]:
    """The first attribute has two steps up, the second one; some of the six nodes, in their order."""
    keys, sizes, shifts, masks, *_ = draw(_packed())
    steps = np.zeros((3, 8), dtype=np.int64)
    for row, (bits, shift) in enumerate(((8, 0), (8, 0), (4, 3))):
        parents = np.array(draw(st.lists(st.integers(0, bits - 1), min_size=bits, max_size=bits)), dtype=np.int64)
        steps[row, :bits] = (parents ^ np.arange(bits)) << shift
    nodes = [(one, other) for one in range(3) for other in range(2)]
    chosen = sorted(draw(st.sets(st.sampled_from(nodes), min_size=1)))
    room = max(len(keys) * len(chosen), 1)
    levels = np.array(chosen, dtype=np.int64)
    buffers = np.zeros(room, dtype=np.int64), np.zeros((room, 2), dtype=np.int64)
    return keys, sizes, shifts, masks, levels, np.array([0, 2], dtype=np.int64), steps, *buffers


@st.composite
def kept_in_family(draw: DrawFn) -> tuple[Any, ...]:
    keys, sizes, need, shifts, masks, _, losses = draw(failing_classes())
    cut = draw(st.integers(0, len(keys)))
    places = np.array([[0, 8], [0, 8]], dtype=np.int64)
    return keys, sizes, need, np.array([0, cut, len(keys)], dtype=np.int64), shifts, masks, places, losses


@st.composite
def keep_enough(draw: DrawFn) -> tuple[Any, ...]:
    _, sizes, need, *_ = draw(failing_classes())
    return sizes, draw(st.integers(1, 8)), need


@st.composite
def group_at_top(draw: DrawFn) -> tuple[Any, ...]:
    keys, sizes, shifts, masks, *_ = draw(_packed())
    changes = np.zeros((2, 8), dtype=np.int64)
    for row, (bits, shift) in enumerate(((8, 0), (4, 3))):
        parents = np.array(draw(st.lists(st.integers(0, bits - 1), min_size=bits, max_size=bits)), dtype=np.int64)
        changes[row, :bits] = (parents ^ np.arange(bits)) << shift
    return keys, sizes, shifts, masks, changes


@st.composite
def split_off(draw: DrawFn) -> tuple[Any, ...]:
    keys, sizes, *_ = draw(_packed())
    groups = draw(st.lists(st.integers(0, 2), min_size=len(keys), max_size=len(keys)))
    need = draw(st.lists(st.sampled_from([-1, 0, 2, 5]), min_size=3, max_size=3))
    return keys, sizes, np.array(groups, dtype=np.int64), np.array(need, dtype=np.int64), np.array([0, 2, 5], dtype=np.int64)


@st.composite
def raise_bounds(draw: DrawFn) -> tuple[Any, ...]:
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    base = np.array(draw(st.lists(st.sampled_from([0.0, 0.25, 0.5]), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))))
    nodes = draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in shape)), min_size=1, max_size=3))
    penalties = draw(st.lists(st.sampled_from([0.0, 0.125, np.inf]), min_size=len(nodes), max_size=len(nodes)))
    least = draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.75, 1.0]), min_size=len(nodes), max_size=len(nodes)))
    curves = [draw(st.sampled_from([((0, 1), (0, 0)), ((0, 0.5, 1), (0, 0.25, 0.3))])) for _ in range(sum(shape))]
    starts = np.cumsum([0, *(len(sizes) for sizes, _ in curves)], dtype=np.int64)
    corners = (np.array([x for curve in curves for x in curve[i]], dtype=np.float64) for i in range(2))
    known = np.array(shape, dtype=np.int64), np.array(nodes, dtype=np.int64), np.array(penalties), np.array(least)
    return base.copy(), base, *known, starts, *corners


@st.composite
def add_up(draw: DrawFn) -> tuple[Any, ...]:
    _, sizes, *_ = draw(_packed())
    groups = draw(st.integers(1, 5))
    numbers = draw(st.lists(st.integers(0, groups - 1), min_size=len(sizes), max_size=len(sizes)))
    return np.array(numbers, dtype=np.int64), sizes, groups


@st.composite
def nearest(draw: DrawFn) -> tuple[Any, ...]:
    """Two attributes with 3 and 2 leaves; a cost for every pair of node and leaf."""
    count = draw(st.integers(0, 8))
    widths, nodes = [3, 2], [4, 3]
    codes = np.array(
        [draw(st.lists(st.integers(0, width - 1), min_size=count, max_size=count)) for width in widths], dtype=np.int32
    ).reshape(2, count)
    left = np.array(draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)), dtype=np.int64)
    cells = widths[0] * nodes[0] + widths[1] * nodes[1]
    # few different costs, so that ties are common
    tables = np.array(draw(st.lists(st.sampled_from([0.0, 0.25, 0.5]), min_size=cells, max_size=cells)))
    at = np.array([draw(st.integers(0, n - 1)) for n in nodes], dtype=np.int64)
    starts = np.array([0, widths[0] * nodes[0]], dtype=np.int64)
    return codes, left, tables, starts, np.array(widths, dtype=np.int64), at


def words(draw: DrawFn, values: SearchStrategy[int], size: int) -> np.ndarray:
    return np.array(draw(st.lists(values, min_size=size, max_size=size)), dtype=np.uint64)


@st.composite
def units(draw: DrawFn) -> tuple[Any, ...]:
    """Rows of a few units, of 64 or of 128 bits, with a leaf each."""
    rows = draw(st.integers(0, 30))
    few = st.sampled_from([0, 1, 2, 5, 2**63, 2**64 - 1])
    low = words(draw, few, rows)
    high = words(draw, few, rows if draw(st.booleans()) else 0)
    leaves = draw(st.lists(st.integers(0, 5), min_size=rows, max_size=rows))
    shares = draw(st.integers(1, 5))
    key = np.uint64(draw(st.integers(0, 2**64 - 1)))
    return low, high, np.array(leaves, dtype=np.int32), key, draw(st.integers(0, shares - 1)), shares


@st.composite
def contributions(draw: DrawFn) -> tuple[Any, ...]:
    """What `rows_by_unit` returns, two bounds, a value and two conditions per row."""
    from sfumato.kernels.classes.bounding import rows_by_unit

    order, leaf, starts, seeds = rows_by_unit.twin(*draw(units()))
    first = draw(st.integers(0, seeds.size))
    last = draw(st.integers(first, seeds.size))
    ordered = order, leaf, starts[first : last + 1], seeds[first:last]
    rows = int(order.max(initial=-1)) + 1
    values = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=rows, max_size=rows))
    flags = draw(st.lists(st.integers(0, 1), min_size=2 * rows, max_size=2 * rows))
    groups = np.array(draw(st.lists(st.integers(0, 5), min_size=6, max_size=6)), dtype=np.int32)
    bounds = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    keys = words(draw, st.integers(0, 2**64 - 1), 2)
    return (
        *ordered,
        keys,
        groups,
        *bounds,
        np.array(values, np.int64).reshape(rows, 1),
        np.array(flags, np.uint8).reshape(rows, 2),
    )


INPUTS: dict[str, Callable[[], SearchStrategy[tuple[Any, ...]]]] = {
    "add_up": add_up,
    "assign": linkage_inputs.assignments,
    "bounded_sums": contributions,
    "bucket_partners": swapping_inputs.buckets,
    "candidates": attack_inputs.windowed,
    "cheapest": nearest,
    "class_losses": class_losses,
    "closeness": closeness,
    "closest": linkage_inputs.sought,
    "distance_partners": swapping_inputs.distances,
    "distinct": distinct,
    "drawn_by_row": swapping_inputs.rows,
    "entropy": entropy,
    "failing_classes": failing_classes,
    "farthest": nearest,
    "farthest_in_blocks": microaggregation_inputs.farthest,
    "farthest_in_shell": microaggregation_inputs.shell,
    "frequent_sets": itemset_inputs.frequent,
    "group_at_top": group_at_top,
    "group_keys": group_keys,
    "grow_tree": linkage_inputs.grown,
    "keep_enough": keep_enough,
    "kept_in_family": kept_in_family,
    "mixed_distances": microaggregation_inputs.mixed,
    "nearest_in_blocks": microaggregation_inputs.nearest,
    "nearest_wrong": attack_inputs.searched,
    "optimal_groups": microaggregation_inputs.ascending,
    "ordered_closeness": ordered_closeness,
    "pair_counts": itemset_inputs.coded,
    "raise_bounds": raise_bounds,
    "rank_within": linkage_inputs.ranked,
    "recursive": recursive,
    "remove_from_blocks": microaggregation_inputs.removed,
    "roll_up": roll_up,
    "roll_up_family": roll_up_family,
    "rows_by_unit": units,
    "shares_outside": shares_outside,
    "small_classes": small_classes,
    "split_off": split_off,
    "spatial_order": microaggregation_inputs.order,
    "stable_order": swapping_inputs.values,
    "tid_bits": itemset_inputs.coded,
    "too_few": too_few,
    "window_partners": swapping_inputs.window,
}


def comparable(name: str, result: Any) -> list[Any]:
    """Numbers in an order that does not depend on how a kernel walks over its input."""
    if name == "roll_up":
        keys, sums = result
        order = np.argsort(keys)
        return [keys[order].tolist(), sums[order].tolist()]
    parts = result if isinstance(result, tuple) else (result,)
    if name == "remove_from_blocks":  # no bound where nothing lives
        parts = tuple(np.nan_to_num(part, nan=-99.0) for part in parts)
    return [part.ravel().tolist() if isinstance(part, np.ndarray) else part for part in parts]
