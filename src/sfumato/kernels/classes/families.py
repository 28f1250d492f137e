"""Families of lattice nodes that differ in a few attributes only: their classes and what they lose, in one go.

The nodes of a family stand in the order of their levels, the last attribute changing fastest; the classes of node i are rows
`starts[i]` to `starts[i + 1]` of what all nodes have.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.classes.rollup import class_losses, roll_up
from sfumato.kernels.compiled import kernel

Int = NDArray[np.int64]
Real = NDArray[np.float64]


def _roll_up_family_numpy(
    keys: Int, totals: Int, shifts: Int, masks: Int, nodes: Int, first_steps: Int, steps: Int, all_keys: Int, all_totals: Int
) -> Int:
    starts = np.zeros(nodes.shape[0] + 1, dtype=np.int64)
    for node in range(nodes.shape[0]):
        merged, summed = keys, totals
        for attribute, level in enumerate(nodes[node]):
            for step in range(first_steps[attribute], first_steps[attribute] + level):
                merged, summed = roll_up.twin(merged, summed, int(shifts[attribute]), int(masks[attribute]), steps[step])
        starts[node + 1] = starts[node] + merged.size
        all_keys[starts[node] : starts[node + 1]] = merged
        all_totals[starts[node] : starts[node + 1]] = summed
    return starts


@kernel(
    "int64[::1](int64[::1], int64[:,::1], int64[::1], int64[::1], int64[:,::1], int64[::1], int64[:,::1],"
    " int64[::1], int64[:,::1])",
    twin=_roll_up_family_numpy,
)
def roll_up_family(
    keys: Int, totals: Int, shifts: Int, masks: Int, nodes: Int, first_steps: Int, steps: Int, all_keys: Int, all_totals: Int
) -> Int:
    """The classes of some nodes of a family, written into `all_keys` and `all_totals`; returns where each node starts.

    `nodes[i, a]` is the level of attribute a. Row `first_steps[a] + l` of `steps` are the bits that change with the step of
    attribute a from level l to the next. Each node is rolled up from the smallest table that is below it: of a node before it,
    or of the keys themselves, which are those of the lowest node.
    """
    columns = totals.shape[1]
    attributes = shifts.size
    bits = 4
    while (1 << bits) < 2 * keys.size:
        bits += 1
    slots = np.empty(1 << bits, dtype=np.int32)
    starts = np.zeros(nodes.shape[0] + 1, dtype=np.int64)
    bottom = np.zeros(attributes, dtype=np.int64)
    for node in range(nodes.shape[0]):
        source = -1
        rows = keys.size
        for other in range(node):
            size = starts[other + 1] - starts[other]
            if size < rows:
                below = True
                for attribute in range(attributes):
                    if nodes[other, attribute] > nodes[node, attribute]:
                        below = False
                if below:
                    source = other
                    rows = size
        low = nodes[source] if source >= 0 else bottom
        source_keys = all_keys[starts[source] : starts[source + 1]] if source >= 0 else keys
        source_totals = all_totals[starts[source] : starts[source + 1]] if source >= 0 else totals
        end = starts[node]
        bits = 4
        while (1 << bits) < 2 * rows:
            bits += 1
        wrap = (1 << bits) - 1
        for slot in range(wrap + 1):
            slots[slot] = -1
        for row in range(rows):
            key = source_keys[row]
            for attribute in range(attributes):
                for level in range(low[attribute], nodes[node, attribute]):
                    key ^= steps[first_steps[attribute] + level, (key >> shifts[attribute]) & masks[attribute]]
            mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
            place = np.int64(mixed >> np.uint64(64 - bits)) & wrap
            while True:
                group = slots[place]
                if group < 0:
                    slots[place] = end
                    all_keys[end] = key
                    for column in range(columns):
                        all_totals[end, column] = source_totals[row, column]
                    end += 1
                    break
                if all_keys[group] == key:
                    for column in range(columns):
                        all_totals[group, column] += source_totals[row, column]
                    break
                place = (place + 1) & wrap
        starts[node + 1] = end
    return starts


def _failing_in_family_numpy(
    keys: Int, totals: Int, need: Int, starts: Int, shifts: Int, masks: Int, places: Int, losses: Real
) -> tuple[Int, Real]:
    counts = np.zeros((starts.size - 1, 3), dtype=np.int64)
    penalties = np.zeros((starts.size - 1, 2))
    for node in range(starts.size - 1):
        rows = np.arange(starts[node], starts[node + 1])
        failing = rows[need[rows] != 0]
        spared = 1.0 - class_losses.twin(keys[failing], shifts, masks, places[node], losses)
        gone = totals[failing, 0]
        least = np.maximum(need[failing], 0)
        kept = int((totals[rows, 0] > 0).sum()) - int((gone > 0).sum())
        counts[node] = gone.sum(), kept, least.sum()
        penalties[node] = (gone * spared).sum(), (np.minimum(least, gone) * spared).sum()
    return counts, penalties


@kernel(
    "Tuple((int64[:,::1], float64[:,::1]))"
    "(int64[::1], int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[:,::1], float64[::1])",
    twin=_failing_in_family_numpy,
)
def failing_in_family(
    keys: Int, totals: Int, need: Int, starts: Int, shifts: Int, masks: Int, places: Int, losses: Real
) -> tuple[Int, Real]:
    """Per node of a family its failing classes (need not 0): their records, the number of the other classes, a lower bound of
    records for every less general node; and what suppressing them adds to the loss, with its lower bound.

    At node i attribute a reads `losses[places[i, a] + field a]`.
    """
    nodes = starts.size - 1
    counts = np.zeros((nodes, 3), dtype=np.int64)
    penalties = np.zeros((nodes, 2), dtype=np.float64)
    for node in range(nodes):
        for row in range(starts[node], starts[node + 1]):
            records = totals[row, 0]
            if need[row] == 0:
                if records > 0:
                    counts[node, 1] += 1
                continue
            loss = 0.0
            for attribute in range(shifts.size):
                loss += losses[places[node, attribute] + ((keys[row] >> shifts[attribute]) & masks[attribute])]
            least = max(need[row], 0)
            counts[node, 0] += records
            counts[node, 2] += least
            penalties[node, 0] += records * (1.0 - loss)
            penalties[node, 1] += min(least, records) * (1.0 - loss)
    return counts, penalties


def _split_off_numpy(
    keys: Int, totals: Int, groups: Int, gone: Int, shifts: Int, masks: Int, attributes: Int, places: Int, losses: Real
) -> tuple[Int, Int, int, Real]:
    leaves = gone[groups] != 0
    records = totals[leaves, 0]
    lost = np.zeros(attributes.size)
    for i, attribute in enumerate(attributes):
        fields = (keys[leaves] >> shifts[attribute]) & masks[attribute]
        lost[i] = (records * losses[places[i] + fields]).sum()
    return keys[~leaves], totals[~leaves], int(records.sum()), lost


@kernel(
    "Tuple((int64[::1], int64[:,::1], int64, float64[::1]))"
    "(int64[::1], int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], float64[::1])",
    twin=_split_off_numpy,
)
def split_off(
    keys: Int, totals: Int, groups: Int, gone: Int, shifts: Int, masks: Int, attributes: Int, places: Int, losses: Real
) -> tuple[Int, Int, int, Real]:
    """Leave out the rows of groups that are gone: the other rows, the records that left, and the loss of these records in
    several respects (attribute `attributes[i]` reads `losses[places[i] + field]`)."""
    rows = keys.size
    columns = totals.shape[1]
    kept = 0
    for row in range(rows):
        if gone[groups[row]] == 0:
            kept += 1
    kept_keys = np.empty(kept, dtype=np.int64)
    kept_totals = np.empty((kept, columns), dtype=np.int64)
    lost = np.zeros(attributes.size, dtype=np.float64)
    records = 0
    place = 0
    for row in range(rows):
        if gone[groups[row]] == 0:
            kept_keys[place] = keys[row]
            for column in range(columns):
                kept_totals[place, column] = totals[row, column]
            place += 1
            continue
        count = totals[row, 0]
        records += count
        for i in range(attributes.size):
            field = (keys[row] >> shifts[attributes[i]]) & masks[attributes[i]]
            lost[i] += count * losses[places[i] + field]
    return kept_keys, kept_totals, records, lost


def _raise_bounds_numpy(bounds: Real, base: Real, shape: Int, nodes: Int, penalties: Real) -> int:
    box, bottom = bounds.reshape(tuple(shape)), base.reshape(tuple(shape))
    for node, penalty in zip(nodes, penalties, strict=True):
        below = tuple(slice(0, int(level) + 1) for level in node)
        np.maximum(box[below], bottom[below] + penalty, out=box[below])
        box[tuple(node)] = np.inf
    return int(np.argmin(bounds))


@kernel("int64(float64[::1], float64[::1], int64[::1], int64[:,::1], float64[::1])", twin=_raise_bounds_numpy)
def raise_bounds(bounds: Real, base: Real, shape: Int, nodes: Int, penalties: Real) -> int:
    """What checked nodes say about the nodes below them: their bounds become at least base plus penalty, in place. The bound of a
    checked node is infinite. Returns the place of the lowest bound, the first of equal ones."""
    attributes = shape.size
    strides = np.ones(attributes, dtype=np.int64)
    for attribute in range(attributes - 2, -1, -1):
        strides[attribute] = strides[attribute + 1] * shape[attribute + 1]
    levels = np.zeros(attributes, dtype=np.int64)
    for node in range(nodes.shape[0]):
        penalty = penalties[node]
        place = 0
        levels[:] = 0
        while True:
            bound = base[place] + penalty
            if bound > bounds[place]:
                bounds[place] = bound
            attribute = attributes - 1
            while attribute >= 0 and levels[attribute] == nodes[node, attribute]:
                place -= levels[attribute] * strides[attribute]
                levels[attribute] = 0
                attribute -= 1
            if attribute < 0:
                break
            levels[attribute] += 1
            place += strides[attribute]
        for attribute in range(attributes):
            place += nodes[node, attribute] * strides[attribute]
        bounds[place] = np.inf
    lowest = 0
    for place in range(bounds.size):
        if bounds[place] < bounds[lowest]:
            lowest = place
    return lowest
