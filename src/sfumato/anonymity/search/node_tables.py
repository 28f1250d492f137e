"""The classes of any lattice node, rolled up from the classes of less general nodes.

The classes of a node are kept as packed keys with totals. Attributes are generalised in a fixed order, so all nodes
that agree on the first attributes share the tables of that prefix; tables are made on demand and the least recently
used are dropped.
"""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.predicates.promises import Promises
from sfumato.anonymity.predicates.whole_table import may_cost_less, small_classes_out
from sfumato.anonymity.search.objectives import Objective
from sfumato.anonymity.search.verdicts import ColumnVerdict, NodeVerdict
from sfumato.data.class_table import ClassTable
from sfumato.kernels.classes.checks import too_few
from sfumato.kernels.classes.grouping import group_keys
from sfumato.kernels.classes.rollup import add_up, failing_classes, roll_up, small_classes

Int = NDArray[np.int64]
Real = NDArray[np.float64]
#: What the tables that are kept may take: so many bytes for each tuple, and what is little anyway.
CACHE_PER_TUPLE = 128
SMALL_CACHE = 16 * 1024 * 1024
KEY_BITS = 62


class NodeTables:
    """Class tables of lattice nodes over the tuples of a class table (or some of them)."""

    most_tables: ClassVar[float] = math.inf

    def __init__(self, table: ClassTable, promises: Promises, totals: Int, chosen: Int | None = None) -> None:
        self.promises = promises
        self.records = table.records
        self.heights = [tree.height for tree in table.hierarchies]
        codes = table.codes if chosen is None else table.codes[:, chosen]
        picked = totals if chosen is None else totals[chosen]
        self.level_codes = [_level_codes(tree.node_of, codes[a]) for a, tree in enumerate(table.hierarchies)]
        self.losses = [
            [float(w) * tree.loss[nodes] for nodes, _, _ in levels]
            for w, tree, levels in zip(table.weights, table.hierarchies, self.level_codes, strict=True)
        ]
        self.objective_losses: list[list[Real]] = []  # by attribute, level and dense code, where an objective asks for them
        self._pack(codes, picked)
        self.order = sorted(range(len(self.heights)), key=lambda a: -len(self.level_codes[a][0][0]))
        self._cache: OrderedDict[tuple[int, ...], tuple[Int, Int]] = OrderedDict()
        self._bytes = 0
        self._changes: dict[tuple[int, int, int], Int] = {}
        self._finest: tuple[Int, Int] | None = None
        self._base: list[Real] | None = None
        self.merges = any(limits.least for limits in table.limits.values())

    def measure(self, losses: list[list[Real]]) -> list[Real]:
        """Take these losses of nodes, by attribute and level, for `by_column`; returns those of all records."""
        self.objective_losses = [
            [loss[nodes] for loss, (nodes, _, _) in zip(by_level, levels, strict=True)]
            for by_level, levels in zip(losses, self.level_codes, strict=True)
        ]
        return self.base_losses(self.objective_losses)

    @property
    def finest(self) -> tuple[Int, Int]:
        """The classes of the lowest node: the tuples, merged where a least level makes some of them alike."""
        if not self.merges:
            return self.root
        if self._finest is None:
            keys, totals = self.root
            numbers, first = group_keys(self._root_marks())
            self._finest = (np.ascontiguousarray(keys[first]), add_up(numbers, totals, int(first.size)))
        return self._finest

    def _root_marks(self) -> Int:
        """What tells the tuples of different classes of the lowest node apart."""
        return self.root[0]

    @property
    def nodes(self) -> int:
        """How many nodes the lattice has."""
        return math.prod(height + 1 for height in self.heights)

    def _pack(self, codes: NDArray[np.int32], totals: Int) -> None:
        widths = [max((len(levels[0][0]) - 1).bit_length(), 1) for levels in self.level_codes]
        self.shifts = np.cumsum([0, *widths[:-1]]).astype(np.int64) if widths else np.zeros(0, np.int64)
        self.masks = np.array([(1 << width) - 1 for width in widths], dtype=np.int64)
        key = np.zeros(codes.shape[1], dtype=np.int64)
        for a, (_, dense, _) in enumerate(levels[0] for levels in self.level_codes):
            key |= dense[codes[a]].astype(np.int64) << self.shifts[a]
        self.root = (key, _compact(totals))

    def among(self, chosen: NDArray[np.bool_]) -> NodeTables:
        """The same tables over some of the tuples."""
        narrowed = copy.copy(self)
        keys, totals = self.root
        narrowed.root = (keys[chosen], totals[chosen])
        narrowed._cache, narrowed._bytes, narrowed._finest, narrowed._base = OrderedDict(), 0, None, None
        return narrowed

    def base_losses(self, losses: list[list[Real]] | None = None) -> list[Real]:
        """Per attribute and level: the loss of all these records without suppression, as a share of the table's records; the
        weighed loss, or another by attribute, level and value."""
        if losses is None:
            if self._base is None:
                self._base = self.base_losses(self.losses)
            return [per_level.copy() for per_level in self._base]
        counts = self.root[1][:, 0].astype(np.float64)
        result = []
        for a, levels in enumerate(self.level_codes):
            records = np.bincount(self._leaves(a), weights=counts, minlength=len(levels[0][0]))
            per_level = [float((records * losses[a][level][self.codes_at(a, 0, level)]).sum()) for level in range(len(levels))]
            result.append(np.array(per_level) / self.records)
        return result

    def largest_losses(self) -> list[tuple[Real, Real]]:
        """Per attribute and level: how much any number of records lose there at the most, as corners of a curve. Both are shares
        of the table's records."""
        totals = self.root[1]
        curves = []
        for a, levels in enumerate(self.level_codes):
            records = np.bincount(self._leaves(a), weights=totals[:, 0], minlength=len(levels[0][0])) / self.records
            for level in range(len(levels)):
                losses = self.losses[a][level][self.codes_at(a, 0, level)]
                order = np.argsort(-losses, kind="stable")
                sizes, sums = np.cumsum(records[order]), np.cumsum((records * losses)[order])
                ends = np.flatnonzero(np.diff(losses[order], append=-1.0))
                curves.append((np.concatenate([[0.0], sizes[ends]]), np.concatenate([[0.0], sums[ends]])))
        return curves

    def classes(self, levels: Sequence[int]) -> tuple[Int, Int]:
        """Packed keys and totals of the classes of a node."""
        prefix = tuple(levels[a] for a in self.order)
        return self._table(_strip(prefix))

    def verdict(self, levels: Sequence[int]) -> NodeVerdict:
        """Check every class of a node."""
        keys, totals = self.classes(levels)
        starts, losses = self._losses_at(levels)
        promises = self.promises
        if promises.only_k:
            units = promises.layout.units
            suppressed, kept, penalty = small_classes(
                keys, totals, units, promises.enough, self.shifts, self.masks, starts, losses
            )
            penalty /= self.records
            return NodeVerdict(int(suppressed), penalty, int(suppressed), penalty, int(kept))
        need, slack = self._needs(levels, keys, totals)
        suppressed, kept, penalty, least, least_penalty = failing_classes(
            keys, totals, need, self.shifts, self.masks, starts, losses
        )
        if promises.no_suppression and need.any():  # suppression mends nothing
            suppressed = self.records + 1
        return NodeVerdict(int(suppressed), penalty / self.records, int(least), least_penalty / self.records, int(kept), slack)

    def _needs(self, levels: Sequence[int], keys: Int, totals: Int) -> tuple[Int, float]:
        """What the classes of a node need, and how much less another choice of suppressed classes may lose."""
        promises, sizes = self.promises, totals[:, 0]
        if not promises.on_average:
            return promises.needs(totals), 0.0
        alone = promises.needs_alone(totals)
        costs = 1.0 - self._class_losses(levels, keys)
        need = small_classes_out(promises.on_average, sizes, alone, np.lexsort((self._marks(levels, keys), costs)))
        open_ = np.flatnonzero(alone == 0)
        slack = may_cost_less(promises.on_average, sizes[open_], need[open_] != 0, costs[open_])
        return need, slack / self.records

    def _class_losses(self, levels: Sequence[int], keys: Int) -> Real:
        """What a record of each class loses."""
        loss = np.zeros(keys.size)
        for a, level in enumerate(levels):
            loss += self.losses[a][level][self._codes_at(a, level, keys)]
        return loss

    def _marks(self, levels: Sequence[int], keys: Int) -> Int:
        """What tells the classes of a node apart, whatever the order of rows."""
        return keys

    def by_column(self, levels: Sequence[int], objective: Objective) -> ColumnVerdict:
        """Check every class of a node, and say what suppression adds to each column."""
        keys, totals = self.classes(levels)
        need, _ = self._needs(levels, keys, totals)
        failing = np.flatnonzero(need)
        gone = totals[failing, 0]
        least = np.minimum(np.maximum(need[failing], 0), gone)
        suppressed, kept = int(gone.sum()), int((totals[:, 0] > 0).sum()) - int((gone > 0).sum())
        if self.promises.no_suppression and need.any():  # suppression mends nothing
            suppressed = self.records + 1
        added = np.array(
            [
                objective.added(self.objective_losses[a][level][self._codes_at(a, level, keys[failing])])
                for a, level in enumerate(levels)
            ]
        ).reshape(len(levels), failing.size)
        return ColumnVerdict(
            NodeVerdict(suppressed, 0.0, int(np.maximum(need[failing], 0).sum()), 0.0, kept),
            (added * gone).sum(axis=1) / self.records,
            (added * least).sum(axis=1) / self.records,
        )

    def _codes_at(self, attribute: int, level: int, keys: Int) -> Int:
        """The dense code at its level of an attribute of these classes."""
        return np.asarray((keys >> self.shifts[attribute]) & self.masks[attribute])

    def suppressed(self, levels: Sequence[int]) -> tuple[int, int]:
        """Records a node suppresses, and how many any node below it suppresses at least."""
        _, totals = self.classes(levels)
        promises = self.promises
        if promises.only_k:
            gone = int(too_few(totals, promises.layout.units, promises.enough).sum())
            return gone, gone
        need = promises.needs(totals)
        least = int(np.maximum(need, 0).sum())
        return (self.records + 1 if promises.no_suppression and need.any() else int(totals[need != 0, 0].sum())), least

    def failing_keys(self, levels: Sequence[int]) -> tuple[Int, Int, NDArray[np.bool_]]:
        """Keys, totals and, per class, whether it must be suppressed."""
        keys, totals = self.classes(levels)
        return keys, totals, self._needs(levels, keys, totals)[0] != 0

    def keys_of_tuples(self, levels: Sequence[int]) -> Int:
        """The packed key of every tuple at a node."""
        keys = self.root[0].copy()
        for a, level in enumerate(levels):
            if level:
                keys ^= self.change(a, 0, level)[(keys >> self.shifts[a]) & self.masks[a]]
        return keys

    def _table(self, prefix: tuple[int, ...]) -> tuple[Int, Int]:
        if not prefix:
            return self.finest
        cached = self._cache.get(prefix)
        if cached is not None:
            self._cache.move_to_end(prefix)
            return cached
        head, last = prefix[:-1], prefix[-1]
        attribute = self.order[len(head)]
        below = 0
        keys_totals = None
        for level in range(last - 1, 0, -1):
            keys_totals = self._cache.get((*head, level))
            if keys_totals is not None:
                below = level
                break
        if keys_totals is None:
            keys_totals = self._table(_strip(head))
        shift, mask = int(self.shifts[attribute]), int(self.masks[attribute])
        return self._kept(prefix, roll_up(*keys_totals, shift, mask, self.change(attribute, below, last)))

    def _kept(self, key: tuple[int, ...], table: tuple[Int, Int]) -> tuple[Int, Int]:
        """Keep a table, and drop those that were used least lately."""
        self._cache[key] = table
        self._bytes += table[0].nbytes + table[1].nbytes
        most = max(SMALL_CACHE, CACHE_PER_TUPLE * self.root[0].size)
        while (self._bytes > most or len(self._cache) > self.most_tables) and len(self._cache) > 1:
            _, dropped = self._cache.popitem(last=False)
            self._bytes -= dropped[0].nbytes + dropped[1].nbytes
        return table

    def _leaves(self, attribute: int) -> Int:
        """The dense leaf of every tuple."""
        return np.asarray((self.root[0] >> self.shifts[attribute]) & self.masks[attribute])

    def codes_at(self, attribute: int, below: int, level: int) -> Int:
        """Dense code at `level` of every dense code at `below`."""
        levels = self.level_codes[attribute]
        leaves = levels[below][2]
        return levels[level][1][leaves].astype(np.int64)

    def change(self, attribute: int, below: int, level: int) -> Int:
        """The bits to flip in a packed key when an attribute climbs from one level to another, by its field."""
        key = (attribute, below, level)
        change = self._changes.get(key)
        if change is None:
            codes = self.codes_at(attribute, below, level)
            change = np.zeros(int(self.masks[attribute]) + 1, dtype=np.int64)
            change[: codes.size] = (codes ^ np.arange(codes.size)) << self.shifts[attribute]
            self._changes[key] = change
        return change

    def _losses_at(self, levels: Sequence[int]) -> tuple[Int, Real]:
        parts = [self.losses[a][level] for a, level in enumerate(levels)]
        starts = np.zeros(len(parts), dtype=np.int64)
        total = 0
        for a, part in enumerate(parts):
            starts[a] = total
            total += part.size
        return starts, np.concatenate(parts)


def fits(table: ClassTable) -> bool:
    """Whether the combinations of a table can be packed into keys."""
    different = [present(codes, len(tree.leaves)).size for codes, tree in zip(table.codes, table.hierarchies, strict=True)]
    return sum(max((count - 1).bit_length(), 1) for count in different) <= KEY_BITS


def present(codes: NDArray[np.int32], leaves: int) -> Int:
    """The leaves that occur, in order."""
    return np.flatnonzero(np.bincount(codes, minlength=leaves))


def _compact(totals: Int) -> Int:
    """In half the memory, where no sum of them needs more."""
    small = totals.size > 0 and totals.min() >= 0 and totals.sum(axis=0).max() < 2**31
    return np.ascontiguousarray(totals, dtype=np.int32) if small else np.ascontiguousarray(totals)


def _strip(prefix: tuple[int, ...]) -> tuple[int, ...]:
    end = len(prefix)
    while end and prefix[end - 1] == 0:
        end -= 1
    return prefix[:end]


def _level_codes(node_of: NDArray[np.int32], codes: NDArray[np.int32]) -> list[tuple[Int, NDArray[np.int32], Int]]:
    """Per level: the nodes that occur, the dense code of every leaf (-1 when it does not occur), and one leaf per dense code."""
    used = present(codes, node_of.shape[1])
    result = []
    for row in node_of:
        nodes, first, inverse = np.unique(row[used], return_index=True, return_inverse=True)
        dense = np.full(row.size, -1, dtype=np.int32)
        dense[used] = inverse.reshape(-1)
        result.append((nodes.astype(np.int64), dense, used[first].astype(np.int64)))
    return result


class WideTables(NodeTables):
    """Node tables for many or rich quasi-identifiers, whose combinations do not fit into one packed key.

    A class is known by one of its tuples; two tuples are in the same class when the exclusive or of a fixed 64-bit mark per
    shown value agrees (Zobrist hashing). Among a million tuples two different classes share a mark with probability below 10⁻⁷,
    and the release is measured again from its file in any case.
    """

    most_tables: ClassVar[float] = 512  # all of them are looked through for each new one

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
        self.root = (np.arange(codes.shape[1], dtype=np.int64), _compact(totals))

    def _hashes(self, levels: Sequence[int], tuples: Int) -> Int:
        result = np.zeros(tuples.size, dtype=np.int64)
        for a, level in enumerate(levels):
            dense = self.level_codes[a][level][1]
            result ^= self.marks[a][level][dense[self.codes[a, tuples]]]
        return result

    def _codes_at(self, attribute: int, level: int, keys: Int) -> Int:
        return np.asarray(self.level_codes[attribute][level][1][self.codes[attribute, keys]], dtype=np.int64)

    def _marks(self, levels: Sequence[int], keys: Int) -> Int:
        return self._hashes(levels, keys)

    def _root_marks(self) -> Int:
        return self._hashes([0] * len(self.heights), self.root[0])

    def classes(self, levels: Sequence[int]) -> tuple[Int, Int]:
        """A tuple and the totals of each class of a node, from the smallest table of a less general node that is there: with many
        attributes nodes rarely share the levels of their first ones."""
        node = tuple(levels)
        if not any(node):
            return self.finest
        cached = self._cache.get(node)
        if cached is not None:
            self._cache.move_to_end(node)
            return cached
        tuples, totals = self._smallest_below(node)
        numbers, first = group_keys(self._hashes(node, tuples))
        return self._kept(node, (tuples[first], add_up(numbers, totals, int(first.size))))

    def _smallest_below(self, node: tuple[int, ...]) -> tuple[Int, Int]:
        smallest = self.root
        for below, table in self._cache.items():
            if table[0].size < smallest[0].size and all(low <= high for low, high in zip(below, node, strict=True)):
                smallest = table
        return smallest

    def _leaves(self, attribute: int) -> Int:
        return np.asarray(self.level_codes[attribute][0][1][self.codes[attribute, self.root[0]]], dtype=np.int64)

    def verdict(self, levels: Sequence[int]) -> NodeVerdict:
        """Check every class of a node."""
        tuples, totals = self.classes(levels)
        need, slack = self._needs(levels, tuples, totals)
        failing = np.flatnonzero(need)
        gone = totals[failing, 0]
        least = np.maximum(need[failing], 0)
        loss = self._class_losses(levels, tuples[failing])
        suppressed, kept = int(gone.sum()), int((totals[:, 0] > 0).sum()) - int((gone > 0).sum())
        if self.promises.no_suppression and need.any():  # suppression mends nothing
            suppressed = self.records + 1
        return NodeVerdict(
            suppressed,
            float((gone * (1.0 - loss)).sum()) / self.records,
            int(least.sum()),
            float((np.minimum(least, gone) * (1.0 - loss)).sum()) / self.records,
            kept,
            slack,
        )

    def keys_of_tuples(self, levels: Sequence[int]) -> Int:
        """The representative of every tuple's class at a node."""
        tuples, _ = self.classes(levels)
        class_marks = self._hashes(levels, tuples)
        order = np.argsort(class_marks)
        tuple_marks = self._hashes(levels, self.root[0])
        return np.asarray(tuples[order[np.searchsorted(class_marks, tuple_marks, sorter=order)]])


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
