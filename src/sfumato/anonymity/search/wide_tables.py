"""Class tables for many or rich quasi-identifiers, whose combinations do not fit into one packed key.

A class is known by one of its tuples; two tuples are in the same class when the exclusive or of a fixed 64-bit mark
per shown value agrees (Zobrist hashing). Among a million tuples two different classes share a mark with probability
below 10⁻⁷, and the release is measured again from its file in any case.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.predicates.promises import Promises
from sfumato.anonymity.search.node_tables import Int, NodeTables, Verdict, fits
from sfumato.data.class_table import ClassTable
from sfumato.kernels.classes.grouping import group_keys
from sfumato.kernels.classes.rollup import add_up


class WideTables(NodeTables):
    """Node tables whose keys are representative tuples."""

    def _pack(self, codes: NDArray[np.int32], totals: Int) -> None:
        self.codes = codes
        self.marks: list[list[Int]] = []
        used = 0
        for levels in self.level_codes:
            rows = []
            for nodes, _, _ in levels:
                rows.append(_mixed(np.arange(used, used + nodes.size, dtype=np.uint64)).view(np.int64))
                used += nodes.size
            self.marks.append(rows)
        self.root = (np.arange(codes.shape[1], dtype=np.int64), np.ascontiguousarray(totals))

    def _hashes(self, levels: Sequence[int], tuples: Int) -> Int:
        result = np.zeros(tuples.size, dtype=np.int64)
        for a, level in enumerate(levels):
            dense = self.level_codes[a][level][1]
            result ^= self.marks[a][level][dense[self.codes[a, tuples]]]
        return result

    def _rolled(self, table: tuple[Int, Int], attribute: int, below: int, level: int, prefix: tuple[int, ...]) -> tuple[Int, Int]:
        tuples, totals = table
        levels = [0] * len(self.order)
        for position, chosen in enumerate(prefix):
            levels[self.order[position]] = chosen
        numbers, first = group_keys(self._hashes(levels, tuples))
        return tuples[first], add_up(numbers, totals, first.size)

    def _leaves(self, attribute: int) -> Int:
        return np.asarray(self.level_codes[attribute][0][1][self.codes[attribute, self.root[0]]], dtype=np.int64)

    def verdict(self, levels: Sequence[int]) -> Verdict:
        """Check every class of a node."""
        tuples, totals = self.classes(levels)
        need = self.promises.needs(totals)
        failing = np.flatnonzero(need)
        gone = totals[failing, 0]
        least = np.maximum(need[failing], 0)
        loss = np.zeros(failing.size)
        for a, level in enumerate(levels):
            loss += self.losses[a][level][self.level_codes[a][level][1][self.codes[a, tuples[failing]]]]
        suppressed, kept = int(gone.sum()), int((totals[:, 0] > 0).sum()) - int((gone > 0).sum())
        if self.promises.no_suppression and need.any():  # suppression mends nothing
            suppressed = self.records + 1
        return Verdict(
            suppressed,
            float((gone * (1.0 - loss)).sum()) / self.records,
            int(least.sum()),
            float((np.minimum(least, gone) * (1.0 - loss)).sum()) / self.records,
            kept,
        )

    def keys_of_tuples(self, levels: Sequence[int]) -> Int:
        """The representative of every tuple's class at a node."""
        tuples, _ = self.classes(levels)
        known = self._hashes(levels, tuples)
        order = np.argsort(known)
        asked = self._hashes(levels, self.root[0])
        return np.asarray(tuples[order[np.searchsorted(known, asked, sorter=order)]])


def node_tables(table: ClassTable, promises: Promises, totals: Int, chosen: Int | None = None) -> NodeTables:
    """Packed tables where the combinations fit into a key, wide ones otherwise."""
    return (NodeTables if fits(table) else WideTables)(table, promises, totals, chosen)


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Well-spread 64-bit marks of consecutive numbers (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))
