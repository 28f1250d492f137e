"""The distance of every class from a reference, as exact fractions of counts.

Equal, ordered and hierarchical earth mover's distances of counts are rational: numerator and denominator
are computed in whole numbers wide enough not to overflow, from the occurring pairs alone, so that a
million classes times a million values need no matrix. Li, Li, Venkatasubramanian, "t-closeness", ICDE
2007.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.schema import Column
from sfumato.data.texts.values import as_numbers
from sfumato.measures.guarantees.classes import Integers, ValueCounts
from sfumato.measures.guarantees.compared import Compared
from sfumato.measures.guarantees.distances import levels_below_root
from sfumato.measures.guarantees.thresholds import Numbers, whole

Fractions = tuple[Numbers, Numbers]


def equal(compared: Compared) -> Fractions:
    """Half the sum of |p - q| over the protected values."""
    histogram = compared.histogram
    bound = 2 * compared.largest_class * compared.total
    sizes = whole(histogram.sizes, bound)
    numerator = _differences(histogram, compared.expected, compared.total, compared.mask, bound)
    return numerator, 2 * sizes * compared.total


def hierarchical(compared: Compared, tree: Hierarchy) -> Fractions:
    """The mean over the levels below the root of the distance between the distributions on that level."""
    histogram = compared.histogram
    positions = np.array([tree.index[value] for value in compared.values], dtype=np.int64)
    levels, height = levels_below_root(tree)
    bound = 2 * max(height, 1) * compared.largest_class * compared.total
    numerator = whole(np.zeros(histogram.sizes.size, dtype=np.int64), bound)
    for level in levels:
        node_of_value = level[positions].astype(np.int64)
        expected = np.zeros(int(node_of_value.max(initial=0)) + 1, dtype=np.int64)
        np.add.at(expected, node_of_value, compared.expected)
        everything = np.ones(expected.size, dtype=np.bool_)
        numerator = numerator + _differences(histogram.regrouped(node_of_value), expected, compared.total, everything, bound)
    return numerator, 2 * max(height, 1) * whole(histogram.sizes, bound) * compared.total


def ordered(compared: Compared, ranks: Integers) -> Fractions:
    """Σ |cumulated p - cumulated q| over the values in order, divided by their number less one.

    Between two values that occur in a class its cumulated share stands still while that of the reference
    grows: the sum over such a stretch needs only the point where the reference passes it and prefix sums
    of the reference.
    """
    histogram = compared.histogram
    values = len(compared.values)
    bound = 2 * max(values, 1) * max(compared.largest_class, 1) * max(compared.total, 1)
    total = compared.total
    cumulated = np.cumsum(compared.expected[np.argsort(ranks)])
    prefix = whole(np.concatenate([[0], np.cumsum(whole(cumulated, bound))]), bound)

    rank = ranks[histogram.value]
    order = np.lexsort((rank, histogram.klass))
    rank, klass = rank[order], histogram.klass[order]
    starts = histogram.starts
    running = np.cumsum(histogram.count[order])
    before = running[starts] - histogram.count[order][starts] if starts.size else running
    reached = whole(running - before[klass], bound)
    size = whole(histogram.sizes, bound)[klass]

    last = np.ones(rank.size, dtype=np.bool_)
    last[:-1] = klass[1:] != klass[:-1]
    until = np.where(last, values, np.concatenate([rank[1:], [values]]) if rank.size else rank)
    level = reached * total
    passed = np.searchsorted(cumulated, (level // size).astype(np.int64), side="right")
    passed = np.clip(passed, rank, until)
    above = level * (passed - rank) - size * (prefix[passed] - prefix[rank])
    beneath = size * (prefix[until] - prefix[passed]) - level * (until - passed)
    sums = histogram.per_class(above + beneath)
    if starts.size:
        sums = sums + whole(histogram.sizes, bound) * prefix[rank[starts]]
    return sums, whole(histogram.sizes, bound) * total * max(values - 1, 1)


def value_ranks(values: tuple[str | None, ...], column: Column, attribute: str) -> Integers:
    """The position of each value in the attribute's order: declared, numeric or by date.

    A missing value comes last. Two values need no order, because both orders give the same distance. The leaves
    of a hierarchy stand in no order that means something.
    """
    numbers = as_numbers(values)
    if column.order is not None:
        declared = {value: i for i, value in enumerate(column.order)}
        keys: list[Any] = [(value is None, declared.get(value or "", len(declared))) for value in values]
    elif numbers is not None:
        keys = [(value is None, number if value is not None else 0.0) for value, number in zip(values, numbers, strict=True)]
    elif column.type in ("date", "datetime") or (column.hierarchy and column.hierarchy.dates) or len(values) <= 2:
        keys = [(value is None, value or "") for value in values]
    else:
        raise Unsupported(
            f"the ordered distance needs an order for the values of '{attribute}', which are not numbers. "
            'Declare it in the schema (order = ["low", "middle", "high"]) or use distance = "equal" or '
            '"hierarchical".'
        )
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[sorted(range(len(values)), key=lambda i: keys[i])] = np.arange(len(values))
    return ranks


def attribute_tree(
    values: tuple[str | None, ...],
    counts: Integers | None,
    column: Column,
    attribute: str,
    folder: str | None,
) -> Hierarchy:
    """The hierarchy of a sensitive attribute over these values."""
    leaf_counts = None if counts is None else counts.tolist()
    return hierarchy_builders.build(attribute, column, values, leaf_counts, folder)


def _differences(histogram: ValueCounts, expected: Integers, total: int, mask: NDArray[np.bool_], bound: int) -> Numbers:
    """Σ |count · total - expected · size| over the masked values, per class: values that do not occur
    add expected · size.
    """
    sizes = whole(histogram.sizes, bound)
    size_of_pair = sizes[histogram.klass]
    absent = whole(expected, bound)[histogram.value] * size_of_pair
    here = np.abs(whole(histogram.count, bound) * total - absent) - absent
    here = np.where(mask[histogram.value], here, 0)
    return np.asarray(histogram.per_class(here) + sizes * int(expected[mask].sum()))
