"""Bounded contributions: at most so many rows of a unit per group and so many groups per unit, chosen at random.

Rows are brought together by unit (a radix partition, then counting within it). Each row and each group of a unit has a
pseudo-random priority, SplitMix64 of a key, the unit and a number; the smallest priorities are kept. Which rows are
kept decides how representative a sum is and nothing about privacy, which rests on how many are kept, so that a fast
generator is enough. Time depends on how many rows units have in how many groups, hardly on values: see decision 0006.
Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Word = NDArray[np.uint64]
Code = NDArray[np.int32]
Flag = NDArray[np.uint8]
Int = NDArray[np.int64]
#: What `rows_by_unit` and `bounded_sums` return.
Ordered = tuple[Code, Code, Code, Word]
Sums = tuple[Int, Int, Int, Int, Int, Int]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)


def _mixed(word: Any) -> Any:
    """The finaliser of SplitMix64, a bijection of 64-bit words; for arrays and for scalars in arrays alike."""
    word = (word ^ (word >> _S30)) * _MIX_1
    word = (word ^ (word >> _S27)) * _MIX_2
    return word ^ (word >> _S31)


def _hashes(low: Word, high: Word, key: np.uint64) -> Word:
    hashed: Word = _mixed(low ^ key)
    if high.size:
        hashed = _mixed(hashed ^ high)
    return hashed


def _partition_bits(rows: int, shares: int) -> int:
    """So many parts that each fits a fast cache, and few enough that filling them does too; at least one for each share."""
    bits = 0
    while (1 << bits) < shares or (bits < 12 and rows >> bits > 16_384):
        bits += 1
    return bits


def _rows_by_unit_numpy(low: Word, high: Word, leaf: Code, key: np.uint64, share: int, shares: int) -> Ordered:
    hashed = _hashes(low, high, key)
    bits = _partition_bits(low.size, shares)
    part = (hashed >> np.uint64(64 - bits)).astype(np.int64) if bits else np.zeros(low.size, dtype=np.int64)
    own = np.flatnonzero((part >= (share << bits) // shares) & (part < ((share + 1) << bits) // shares))
    low, high, hashed = low[own], high[own] if high.size else high, hashed[own]
    if high.size:
        _, first, unit = np.unique(np.stack([low, high]), axis=1, return_index=True, return_inverse=True)
    else:
        _, first, unit = np.unique(low, return_index=True, return_inverse=True)
    ranked = np.lexsort((first, part[own][first]))
    rank = np.empty(first.size, dtype=np.int64)
    rank[ranked] = np.arange(first.size)
    unit = rank[unit.reshape(-1)]
    starts = np.zeros(first.size + 1, dtype=np.int32)
    starts[1:] = np.cumsum(np.bincount(unit, minlength=first.size))
    order = own[np.argsort(unit, kind="stable")].astype(np.int32)
    return order, leaf[order], starts, hashed[first[ranked]]


@kernel(
    "Tuple((int32[::1], int32[::1], int32[::1], uint64[::1]))(uint64[::1], uint64[::1], int32[::1], uint64, int64, int64)",
    twin=_rows_by_unit_numpy,
)
def rows_by_unit(low: Word, high: Word, leaf: Code, key: np.uint64, share: int, shares: int) -> Ordered:
    """The rows of a share of the units, in an order in which those of a unit are neighbours (otherwise as given), their
    leaves in that order, where each unit starts, and its hash.

    A unit is a 64-bit word (`low`), or a 128-bit one where `high` is not empty. Each unit is in one of `shares` shares,
    by its hash, so that threads can take one each.
    """
    row_count = low.size
    bits = 0
    while (1 << bits) < shares or (bits < 12 and row_count >> bits > 16_384):
        bits += 1
    parts = ((share + 1) << bits) // shares - (share << bits) // shares
    begin_parts = (share << bits) // shares
    shift = np.uint64(63 - bits)
    wide = high.size > 0
    place = np.zeros(parts + 1, dtype=np.int64)
    bounds = np.zeros(parts + 1, dtype=np.int64)
    rows = 0
    hashed = np.empty(0, dtype=np.uint64)
    packed = np.empty(0, dtype=np.int64)
    for scatter in range(2):  # first count, then fill
        for row in range(row_count):
            word = low[row] ^ key
            word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            word = word ^ (word >> np.uint64(31))
            if wide:
                word = word ^ high[row]
                word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                word = word ^ (word >> np.uint64(31))
            own = np.int64((word >> np.uint64(1)) >> shift) - begin_parts
            if own < 0 or own >= parts:
                continue
            if scatter:
                hashed[place[own]] = word
                packed[place[own]] = (np.int64(row) << 32) | np.int64(leaf[row])
                place[own] += 1
            else:
                bounds[own + 1] += 1
        if not scatter:
            for part in range(parts):
                bounds[part + 1] += bounds[part]
                place[part] = bounds[part]
            rows = bounds[parts]
            hashed = np.empty(rows, dtype=np.uint64)
            packed = np.empty(rows, dtype=np.int64)
    largest = 0
    for part in range(parts):
        largest = max(largest, bounds[part + 1] - bounds[part])
    table = 2
    while table < 2 * largest:
        table *= 2
    slots = np.empty(table, dtype=np.int32)
    unit_of = np.empty(largest, dtype=np.int32)
    first = np.empty(largest, dtype=np.int32)
    filled = np.empty(largest + 1, dtype=np.int64)
    order = np.empty(rows, dtype=np.int32)
    leaves = np.empty(rows, dtype=np.int32)
    starts = np.empty(rows + 1, dtype=np.int32)
    seeds = np.empty(rows, dtype=np.uint64)
    units = 0
    for part in range(parts):
        begin, count = bounds[part], bounds[part + 1] - bounds[part]
        table = 2
        while table < 2 * count:
            table *= 2
        slots[:table] = -1
        number = 0
        for i in range(count):
            word = hashed[begin + i]
            # the upper bits are the same within a part
            slot = np.int64(word & np.uint64(table - 1))
            while True:
                unit = slots[slot]
                if unit < 0:
                    slots[slot] = number
                    first[number] = i
                    filled[number] = 0
                    seeds[units + number] = word
                    unit = number
                    number += 1
                    break
                if seeds[units + unit] == word:
                    # a 64-bit unit is known by its hash, a bijection; of two 128-bit ones the hashes might be equal
                    if not wide:
                        break
                    one, other = packed[begin + first[unit]] >> 32, packed[begin + i] >> 32
                    if low[one] == low[other] and high[one] == high[other]:
                        break
                slot = (slot + 1) & (table - 1)
            unit_of[i] = unit
            filled[unit] += 1
        total = begin
        for unit in range(number):
            starts[units + unit] = total
            total += filled[unit]
            filled[unit] = starts[units + unit]
        for i in range(count):
            unit = unit_of[i]
            order[filled[unit]] = packed[begin + i] >> 32
            leaves[filled[unit]] = packed[begin + i] & 0xFFFFFFFF
            filled[unit] += 1
        units += number
    starts[units] = rows
    return order, leaves, starts[: units + 1].copy(), seeds[:units].copy()


def _bounded_sums_numpy(
    order: Code,
    leaf: Code,
    starts: Code,
    seeds: Word,
    keys: Word,
    group_of_leaf: Code,
    rows: int,
    groups: int,
    values: Int,
    flags: Flag,
) -> Sums:
    leaves = group_of_leaf.size
    order, leaf, starts = order[starts[0] : starts[-1]], leaf[starts[0] : starts[-1]], starts - starts[0]
    sizes = np.diff(starts)
    unit = np.repeat(np.arange(sizes.size), sizes)
    seed = seeds[unit]
    at = np.arange(order.size) - starts[:-1].astype(np.int64)[unit]
    with np.errstate(over="ignore"):
        row_priority = _mixed((seed ^ keys[0]) + _GAMMA * (at + 1).astype(np.uint64))
    group = group_of_leaf[leaf].astype(np.int64)
    _, first, pair = np.unique(unit * max(leaves, 1) + group, return_index=True, return_inverse=True)
    pair = pair.reshape(-1)
    # pairs of a unit are numbered by their first row
    by_first = np.lexsort((first, unit[first]))
    local = np.empty(first.size, dtype=np.int64)
    local[by_first] = _place_within(unit[first][by_first])
    with np.errstate(over="ignore"):
        pair_priority = _mixed((seed[first] ^ keys[1]) + _GAMMA * (local + 1).astype(np.uint64))
    by_priority = np.lexsort((pair_priority, unit[first]))
    chosen = np.empty(first.size, dtype=np.bool_)
    chosen[by_priority] = _place_within(unit[first][by_priority]) < groups
    within = np.lexsort((row_priority, pair))
    kept = np.empty(order.size, dtype=np.bool_)
    kept[within] = _place_within(pair[within]) < rows
    kept &= chosen[pair]
    row, owner, leaf_of = order[kept], unit[kept], leaf[kept]
    counts = np.zeros((flags.shape[1], leaves), dtype=np.int64)
    units = np.zeros((flags.shape[1], leaves), dtype=np.int64)
    for f in range(flags.shape[1]):
        set_ = flags[row, f] != 0
        counts[f] = np.bincount(leaf_of[set_], minlength=leaves)
        units[f] = _units_per_leaf(owner[set_], leaf_of[set_], leaves)
    upper = np.zeros((values.shape[1], leaves), dtype=np.int64)
    lower = np.zeros((values.shape[1], leaves), dtype=np.int64)
    for v in range(values.shape[1]):
        value = values[row, v]
        np.add.at(upper[v], leaf_of, value >> 32)
        np.add.at(lower[v], leaf_of, value & 0xFFFFFFFF)
    kept_rows = np.bincount(leaf_of, minlength=leaves).astype(np.int64)
    return kept_rows, _units_per_leaf(owner, leaf_of, leaves), counts, units, upper, lower


def _place_within(groups: Int) -> Int:
    """The place of each entry among its neighbours of the same group, from 0."""
    fresh = np.ones(groups.size, dtype=np.bool_)
    fresh[1:] = groups[1:] != groups[:-1]
    begin = np.maximum.accumulate(np.where(fresh, np.arange(groups.size), 0))
    place: Int = np.arange(groups.size) - begin
    return place


def _units_per_leaf(unit: Int, leaf: Code, leaves: int) -> Int:
    pairs = np.unique(unit.astype(np.int64) * max(leaves, 1) + leaf)
    counted: Int = np.bincount(pairs % max(leaves, 1), minlength=leaves).astype(np.int64)
    return counted


@kernel(
    "Tuple((int64[::1], int64[::1], int64[:,::1], int64[:,::1], int64[:,::1], int64[:,::1]))"
    "(int32[::1], int32[::1], int32[::1], uint64[::1], uint64[::1], int32[::1], int64, int64,"
    " int64[:,::1], uint8[:,::1])",
    twin=_bounded_sums_numpy,
)
def bounded_sums(
    order: Code,
    leaf: Code,
    starts: Code,
    seeds: Word,
    keys: Word,
    group_of_leaf: Code,
    rows: int,
    groups: int,
    values: Int,
    flags: Flag,
) -> Sums:
    """Per leaf, over the kept rows: rows, units, per flag the rows and units where it is set, and the sums of the values
    in two halves (a sum is upper · 2^32 + lower).

    The first four are what `rows_by_unit` returns, or its `starts` and `seeds` of some neighbouring units; `keys` are two
    words, for rows and for groups. A row counts where its leaf is, and `group_of_leaf` is the group to which that
    belongs. There must be fewer than 2^31 rows.
    """
    leaves = group_of_leaf.size
    units = starts.size - 1
    kept_rows = np.zeros(leaves, dtype=np.int64)
    kept_units = np.zeros(leaves, dtype=np.int64)
    counts = np.zeros((flags.shape[1], leaves), dtype=np.int64)
    flagged = np.zeros((flags.shape[1], leaves), dtype=np.int64)
    upper = np.zeros((values.shape[1], leaves), dtype=np.int64)
    lower = np.zeros((values.shape[1], leaves), dtype=np.int64)
    last_unit = np.full((flags.shape[1] + 1, leaves), -1, dtype=np.int32)
    all_rows = flags.shape[1]
    all_groups = 1
    for i in range(leaves):
        all_groups = max(all_groups, group_of_leaf[i] + 1)
    seen_by = np.full(all_groups, -1, dtype=np.int32)
    local_of = np.empty(all_groups, dtype=np.int32)
    most = 1
    for unit in range(units):
        most = max(most, starts[unit + 1] - starts[unit])
    local = np.empty(most, dtype=np.int32)
    size = np.empty(most, dtype=np.int32)
    begin = np.empty(most + 1, dtype=np.int64)
    priority = np.empty(most, dtype=np.uint64)
    sorted_rows = np.empty(most, dtype=np.uint64)
    row_limit = np.empty(most, dtype=np.uint64)
    group_priority = np.empty(most, dtype=np.uint64)
    sorted_groups = np.empty(most, dtype=np.uint64)
    for unit in range(units):
        start, end = np.int64(starts[unit]), np.int64(starts[unit + 1])
        seed = seeds[unit]
        local_groups = 0
        for i in range(end - start):
            group = group_of_leaf[leaf[start + i]]
            if seen_by[group] != unit:
                seen_by[group] = unit
                local_of[group] = local_groups
                size[local_groups] = 0
                word = (seed ^ keys[1]) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(local_groups + 1)
                word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                group_priority[local_groups] = word ^ (word >> np.uint64(31))
                local_groups += 1
            local[i] = local_of[group]
            size[local[i]] += 1
            word = (seed ^ keys[0]) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(i + 1)
            word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            priority[i] = word ^ (word >> np.uint64(31))
        total = np.int64(0)
        for g in range(local_groups):
            begin[g] = total
            total += size[g]
            sorted_groups[g] = group_priority[g]
        for i in range(end - start):
            sorted_rows[begin[local[i]]] = priority[i]
            begin[local[i]] += 1
        # priorities within a unit are all different, so that a limit keeps exactly as many as asked for
        for g in range(local_groups + 1):
            if g < local_groups:
                part = sorted_rows[begin[g] - size[g] : begin[g]]
            else:
                part = sorted_groups[:local_groups]
            if part.size > 24:
                part.sort()
            else:
                for i in range(1, part.size):
                    word = part[i]
                    j = i - 1
                    while j >= 0 and part[j] > word:
                        part[j + 1] = part[j]
                        j -= 1
                    part[j + 1] = word
            if g < local_groups:
                row_limit[g] = part[min(rows, part.size) - 1]
        group_limit = sorted_groups[min(groups, local_groups) - 1]
        for i in range(end - start):
            if priority[i] > row_limit[local[i]] or group_priority[local[i]] > group_limit:
                continue
            row = order[start + i]
            place = leaf[start + i]
            kept_rows[place] += 1
            if last_unit[all_rows, place] != unit:
                last_unit[all_rows, place] = unit
                kept_units[place] += 1
            for f in range(flags.shape[1]):
                if flags[row, f]:
                    counts[f, place] += 1
                    if last_unit[f, place] != unit:
                        last_unit[f, place] = unit
                        flagged[f, place] += 1
            for v in range(values.shape[1]):
                upper[v, place] += values[row, v] >> 32
                lower[v, place] += values[row, v] & 0xFFFFFFFF
    return kept_rows, kept_units, counts, flagged, upper, lower
