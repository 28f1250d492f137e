"""Families of lattice nodes that differ in a few attributes only: their classes and what they lose, in one go.

The nodes of a family stand in the order of their levels, the last attribute changing fastest; the classes of node i are rows
`starts[i]` to `starts[i + 1]` of what all nodes have.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.classes.grouping import group_keys
from sfumato.kernels.classes.rollup import add_up, class_losses, roll_up
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
    "int64[::1](int64[::1], count[:,::1], int64[::1], int64[::1], int64[:,::1], int64[::1], int64[:,::1],"
    " int64[::1], count[:,::1])",
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
    climbs = np.empty((steps.shape[0], 3), dtype=np.int64)  # steps from a source to its node: row of `steps`, shift and mask
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
        climbed = 0
        for attribute in range(attributes):
            for level in range(low[attribute], nodes[node, attribute]):
                climbs[climbed, 0] = first_steps[attribute] + level
                climbs[climbed, 1] = shifts[attribute]
                climbs[climbed, 2] = masks[attribute]
                climbed += 1
        end = starts[node]
        bits = 4
        while (1 << bits) < 2 * rows:
            bits += 1
        wrap = (1 << bits) - 1
        for slot in range(wrap + 1):
            slots[slot] = -1
        for row in range(rows):
            key = source_keys[row]
            for climb in range(climbed):
                key ^= steps[climbs[climb, 0], (key >> climbs[climb, 1]) & climbs[climb, 2]]
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


def _kept_in_family_numpy(
    keys: Int, totals: Int, need: Int, starts: Int, shifts: Int, masks: Int, places: Int, losses: Real
) -> tuple[Int, Real]:
    counts = np.zeros((starts.size - 1, 3), dtype=np.int64)
    lost = np.zeros((starts.size - 1, 2))
    for node in range(starts.size - 1):
        rows = np.arange(starts[node], starts[node + 1])
        rows = rows[(need[rows] < totals[rows, 0]) & (totals[rows, 0] > 0)]
        loss = class_losses.twin(keys[rows], shifts, masks, places[node], losses)
        records, whole = totals[rows, 0], need[rows] == 0
        left = records - np.maximum(need[rows], 0)
        counts[node] = records[whole].sum(), whole.sum(), left.sum()
        lost[node] = (records * loss)[whole].sum(), (left * loss).sum()
    return counts, lost


@kernel(
    "Tuple((int64[:,::1], float64[:,::1]))"
    "(int64[::1], count[:,::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[:,::1], float64[::1])",
    twin=_kept_in_family_numpy,
)
def kept_in_family(
    keys: Int, totals: Int, need: Int, starts: Int, shifts: Int, masks: Int, places: Int, losses: Real
) -> tuple[Int, Real]:
    """Per node of a family the records of the classes it keeps (need 0), how many classes these are, and how many records any
    less general node keeps at the most; and what both lose.

    At node i attribute a reads `losses[places[i, a] + field a]`.
    """
    nodes = starts.size - 1
    counts = np.zeros((nodes, 3), dtype=np.int64)
    lost = np.zeros((nodes, 2), dtype=np.float64)
    for node in range(nodes):
        for row in range(starts[node], starts[node + 1]):
            records = totals[row, 0]
            if need[row] >= records:
                continue
            loss = 0.0
            for attribute in range(shifts.size):
                loss += losses[places[node, attribute] + ((keys[row] >> shifts[attribute]) & masks[attribute])]
            left = records - max(need[row], 0)
            counts[node, 2] += left
            lost[node, 1] += left * loss
            if need[row] == 0:
                counts[node, 0] += records
                counts[node, 1] += 1
                lost[node, 0] += records * loss
    return counts, lost


def _group_at_top_numpy(keys: Int, totals: Int, shifts: Int, masks: Int, changes: Int) -> tuple[Int, Int]:
    for shift, mask, change in zip(shifts, masks, changes, strict=True):
        keys = keys ^ change[(keys >> shift) & mask]
    numbers, first = group_keys.twin(keys)
    return numbers, add_up.twin(numbers, totals, first.size)


@kernel(
    "Tuple((int64[::1], count[:,::1]))(int64[::1], count[:,::1], int64[::1], int64[::1], int64[:,::1])",
    twin=_group_at_top_numpy,
)
def group_at_top(keys: Int, totals: Int, shifts: Int, masks: Int, changes: Int) -> tuple[Int, Int]:
    """The class of each row once some attributes are generalised (row i of `changes` are the bits that change in field i), and
    the totals of these classes."""
    rows = keys.size
    columns = totals.shape[1]
    bits = 4
    while (1 << bits) < 2 * rows:
        bits += 1
    wrap = (1 << bits) - 1
    slots = np.full(1 << bits, -1, dtype=np.int32)
    general = np.empty(rows, dtype=np.int64)
    numbers = np.empty(rows, dtype=np.int64)
    groups = 0
    for row in range(rows):
        key = keys[row]
        for i in range(shifts.size):
            key ^= changes[i, (key >> shifts[i]) & masks[i]]
        mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
        place = np.int64(mixed >> np.uint64(64 - bits)) & wrap
        while True:
            group = slots[place]
            if group < 0:
                slots[place] = groups
                general[groups] = key
                numbers[row] = groups
                groups += 1
                break
            if general[group] == key:
                numbers[row] = group
                break
            place = (place + 1) & wrap
    summed = np.zeros((groups, columns), dtype=totals.dtype)
    for row in range(rows):
        group = numbers[row]
        for column in range(columns):
            summed[group, column] += totals[row, column]
    return numbers, summed


def _split_off_numpy(keys: Int, totals: Int, groups: Int, need: Int, records: Int) -> tuple[Int, Int]:
    stays = (need[groups] < records[groups]) | (records[groups] == 0)
    return keys[stays], totals[stays]


@kernel(
    "Tuple((int64[::1], count[:,::1]))(int64[::1], count[:,::1], int64[::1], int64[::1], count[:])",
    twin=_split_off_numpy,
)
def split_off(keys: Int, totals: Int, groups: Int, need: Int, records: Int) -> tuple[Int, Int]:
    """The rows without those of groups that must lose all their records."""
    rows = keys.size
    columns = totals.shape[1]
    kept = 0
    for row in range(rows):
        group = groups[row]
        if need[group] < records[group] or records[group] == 0:
            kept += 1
    kept_keys = np.empty(kept, dtype=np.int64)
    kept_totals = np.empty((kept, columns), dtype=totals.dtype)
    place = 0
    for row in range(rows):
        group = groups[row]
        if need[group] < records[group] or records[group] == 0:
            kept_keys[place] = keys[row]
            for column in range(columns):
                kept_totals[place, column] = totals[row, column]
            place += 1
    return kept_keys, kept_totals


def _raise_bounds_numpy(
    bounds: Real, base: Real, shape: Int, nodes: Int, penalties: Real, least: Real, starts: Int, sizes: Real, sums: Real
) -> int:
    box, bottom = bounds.reshape(tuple(shape)), base.reshape(tuple(shape))
    for node, penalty, gone in zip(nodes, penalties, least, strict=True):
        below = tuple(slice(0, int(level) + 1) for level in node)
        added = np.full((), gone)
        first = 0
        for levels, level in zip(shape, node, strict=True):
            cuts = [slice(starts[first + lower], starts[first + lower + 1]) for lower in range(int(level) + 1)]
            added = added[..., None] - np.array([np.interp(gone, sizes[cut], sums[cut]) for cut in cuts])
            first += levels
        np.maximum(box[below], bottom[below] + np.maximum(penalty, added), out=box[below])
        box[tuple(node)] = np.inf
    return int(np.argmin(bounds))


@kernel(
    "int64(float64[::1], float64[::1], int64[::1], int64[:,::1], float64[::1], float64[::1], int64[::1], float64[::1],"
    " float64[::1])",
    twin=_raise_bounds_numpy,
)
def raise_bounds(
    bounds: Real, base: Real, shape: Int, nodes: Int, penalties: Real, least: Real, starts: Int, sizes: Real, sums: Real
) -> int:
    """What checked nodes say about the nodes below them: their bounds become at least base plus what suppression adds, in place.
    The bound of a checked node is infinite. Returns the place of the lowest bound, the first of equal ones.

    Suppression adds no less than `penalties`; and `least` records that go save no more, column by column, than the records that
    lose most there: entries `starts[i]` to `starts[i + 1]` of `sizes` and `sums` are the corners of what that is, by share of
    records, for level i of all levels of all attributes.
    """
    attributes = shape.size
    strides = np.ones(attributes, dtype=np.int64)
    for attribute in range(attributes - 2, -1, -1):
        strides[attribute] = strides[attribute + 1] * shape[attribute + 1]
    first = np.zeros(attributes + 1, dtype=np.int64)
    for attribute in range(attributes):
        first[attribute + 1] = first[attribute] + shape[attribute]
    saved = np.zeros(first[attributes], dtype=np.float64)
    together = np.zeros(attributes + 1, dtype=np.float64)  # what is left of `least` by the levels of the first attributes
    levels = np.zeros(attributes, dtype=np.int64)
    for node in range(nodes.shape[0]):
        penalty = penalties[node]
        gone = least[node]
        for attribute in range(attributes):
            for level in range(nodes[node, attribute] + 1):
                i = first[attribute] + level
                corner = starts[i] + 1
                while corner < starts[i + 1] - 1 and sizes[corner] < gone:
                    corner += 1
                width = sizes[corner] - sizes[corner - 1]
                share = min((gone - sizes[corner - 1]) / width, 1.0) if width > 0 else 1.0
                saved[i] = sums[corner - 1] + share * (sums[corner] - sums[corner - 1])
        place = 0
        levels[:] = 0
        together[0] = gone
        for attribute in range(attributes):
            together[attribute + 1] = together[attribute] - saved[first[attribute]]
        while True:
            bound = base[place] + max(penalty, together[attributes])
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
            for other in range(attribute, attributes):
                together[other + 1] = together[other] - saved[first[other] + levels[other]]
        for attribute in range(attributes):
            place += nodes[node, attribute] * strides[attribute]
        bounds[place] = np.inf
    lowest = 0
    for place in range(bounds.size):
        if bounds[place] < bounds[lowest]:
            lowest = place
    return lowest
