"""Frequent itemsets: which sets of items are in at least so many baskets, depth first over sets of baskets as bits.

A set of baskets is a row of 64-bit words; the baskets of a larger itemset are those of two smaller ones, anded, over the words in
which the smaller one has any. Pairs are counted basket by basket beforehand. Zaki, "Scalable algorithms for association mining",
IEEE Transactions on Knowledge and Data Engineering 12(3), 2000 (Eclat).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Int = NDArray[np.int64]
Small = NDArray[np.int32]
Bits = NDArray[np.uint64]


def _tid_bits_numpy(starts: Int, codes: Small, items: int) -> Bits:
    rows = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    bits = np.zeros((items, (starts.size + 62) // 64), dtype=np.uint64)
    np.bitwise_or.at(bits, (codes, rows >> 6), np.uint64(1) << (rows & 63).astype(np.uint64))
    return bits


@kernel("uint64[:, ::1](int64[::1], int32[::1], int64)", twin=_tid_bits_numpy)
def tid_bits(starts: Int, codes: Small, items: int) -> Bits:
    """The baskets of each item, a bit for each."""
    bits = np.zeros((items, (starts.size + 62) // 64), dtype=np.uint64)
    for row in range(starts.size - 1):
        word, bit = row >> 6, np.uint64(1) << np.uint64(row & 63)
        for place in range(starts[row], starts[row + 1]):
            bits[codes[place], word] |= bit
    return bits


def _pair_counts_numpy(starts: Int, codes: Small, items: int) -> Int:
    bits = _tid_bits_numpy(starts, codes, items)
    counts = np.zeros((items, items), dtype=np.int64)
    for item in range(items):
        counts[item] = np.bitwise_count(bits & bits[item]).sum(axis=1)
    return counts


@kernel("int64[:, ::1](int64[::1], int32[::1], int64)", twin=_pair_counts_numpy)
def pair_counts(starts: Int, codes: Small, items: int) -> Int:
    """In how many baskets each two items are together, and on the diagonal each item."""
    counts = np.zeros((items, items), dtype=np.int64)
    for row in range(starts.size - 1):
        for place in range(starts[row], starts[row + 1]):
            for other in range(starts[row], starts[row + 1]):
                counts[codes[place], codes[other]] += 1
    return counts


def _frequent_sets_numpy(bits: Bits, pairs: Int, minimum: int, longest: int, most: int) -> tuple[Int, Int, Int, bool]:
    items = bits.shape[0]
    parents, last, supports = [-1] * items, list(range(items)), np.bitwise_count(bits).sum(axis=1).tolist()
    blocks, places, nodes, at = [bits], [np.arange(items)], [np.arange(items)], [0]
    while blocks:
        block, members, here = blocks[-1], places[-1], at[-1]
        if here >= members.size or len(blocks) >= longest:
            for stack in (blocks, places, nodes, at):
                stack.pop()
            continue
        at[-1] = here + 1
        live = np.flatnonzero(block[here])
        child = block[here + 1 :][:, live] & block[here, live]
        counts = pairs[here, here + 1 :] if len(blocks) == 1 and pairs.size else np.bitwise_count(child).sum(axis=1)
        kept = np.flatnonzero(counts >= minimum)
        if not kept.size:
            continue
        if len(parents) + kept.size > most:
            return np.array(parents, np.int64), np.array(last, np.int64), np.array(supports, np.int64), False
        parents += [int(nodes[-1][here])] * int(kept.size)
        last += members[here + 1 :][kept].tolist()
        supports += counts[kept].tolist()
        blocks.append(child[kept])
        places.append(members[here + 1 :][kept])
        nodes.append(np.arange(len(parents) - kept.size, len(parents)))
        at.append(0)
    return np.array(parents, np.int64), np.array(last, np.int64), np.array(supports, np.int64), True


@kernel(
    "Tuple((int64[::1], int64[::1], int64[::1], boolean))(uint64[:, ::1], int64[:, ::1], int64, int64, int64)",
    twin=_frequent_sets_numpy,
)
def frequent_sets(bits: Bits, pairs: Int, minimum: int, longest: int, most: int) -> tuple[Int, Int, Int, bool]:
    """Every set of at most `longest` items that is in at least `minimum` baskets, given items that are: for each the place of the
    set without its last item (-1: none), its last item, and its baskets. `pairs` has the counts of pairs, or no column. The last
    value is False where there are more than `most`."""
    m1, m2 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
    m4, h01 = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)
    s1, s2, s4, s56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
    items, words = bits.shape
    room = max(1024, items)
    parents, last, supports = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    for item in range(items):
        total = np.uint64(0)
        for word in range(words):
            x = bits[item, word]
            x = x - ((x >> s1) & m1)
            x = (x & m2) + ((x >> s2) & m2)
            x = (x + (x >> s4)) & m4
            total += (x * h01) >> s56
        parents[item], last[item], supports[item] = -1, item, np.int64(total)
    size = items
    blocks, places = [bits], [np.arange(items)]
    nodes, at = [np.arange(items)], [0]
    while len(blocks) > 0:
        block, members, node, here = blocks[-1], places[-1], nodes[-1], at[-1]
        width = members.size
        if here >= width or len(blocks) >= longest:
            blocks.pop()
            places.pop()
            nodes.pop()
            at.pop()
            continue
        at[-1] = here + 1
        live = np.flatnonzero(block[here])
        own = np.empty(live.size, np.uint64)
        for k in range(live.size):
            own[k] = block[here, live[k]]
        counts = np.zeros(width, np.int64)
        kept = 0
        counted = len(blocks) == 1 and pairs.size > 0
        for other in range(here + 1, width):
            if counted:
                counts[other] = pairs[here, other]
            else:
                total = np.uint64(0)
                for k in range(live.size):
                    x = block[other, live[k]] & own[k]
                    x = x - ((x >> s1) & m1)
                    x = (x & m2) + ((x >> s2) & m2)
                    x = (x + (x >> s4)) & m4
                    total += (x * h01) >> s56
                counts[other] = np.int64(total)
            if counts[other] >= minimum:
                kept += 1
        if kept == 0:
            continue
        if size + kept > most:
            return parents[:size].copy(), last[:size].copy(), supports[:size].copy(), False
        while size + kept > room:
            grown = 2 * room
            more = np.empty((3, grown), np.int64)
            more[0, :size], more[1, :size], more[2, :size] = parents[:size], last[:size], supports[:size]
            parents, last, supports, room = more[0].copy(), more[1].copy(), more[2].copy(), grown
        child, chosen, numbers = np.empty((kept, live.size), np.uint64), np.empty(kept, np.int64), np.empty(kept, np.int64)
        row = 0
        for other in range(here + 1, width):
            if counts[other] >= minimum:
                for k in range(live.size):
                    child[row, k] = block[other, live[k]] & own[k]
                chosen[row], numbers[row] = members[other], size
                parents[size], last[size], supports[size] = node[here], members[other], counts[other]
                size += 1
                row += 1
        blocks.append(child)
        places.append(chosen)
        nodes.append(numbers)
        at.append(0)
    return parents[:size].copy(), last[:size].copy(), supports[:size].copy(), True
