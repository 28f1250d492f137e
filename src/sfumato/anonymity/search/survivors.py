"""Verdicts on families of nodes, counted over the classes that some node may still keep.

Attributes are generalised in a fixed order. All nodes that agree on the first ones lie below one node: the same levels there,
the highest everywhere else. A class that must lose all its records at that node loses them at every one of these nodes, so its
tuples are left out of their tables; how many records they are and what they lose at which level is kept. The last attributes,
few levels in all, make up a family, whose nodes are counted together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.search.node_tables import NodeTables
from sfumato.anonymity.search.verdicts import NodeVerdict
from sfumato.kernels.classes.families import failing_in_family, roll_up_family, split_off
from sfumato.kernels.classes.grouping import group_keys
from sfumato.kernels.classes.rollup import add_up, roll_up

Int = NDArray[np.int64]
Real = NDArray[np.float64]
Levels = tuple[int, ...]
FAMILY = 24  # nodes of a family at most
ROWS = 1 << 16  # rows that all nodes of a family may have together
FEW = 48  # tables of so few rows are not worth the trouble
_CACHE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class SurvivingClasses:
    """Classes that may be kept somewhere below; of the others the records and, per attribute and level, what these lose."""

    keys: Int
    totals: Int
    gone: int
    lost: Real


class NodeFamily:
    """The nodes that differ in the last attributes of the order only, and what counting them together takes."""

    def __init__(self, tables: NodeTables, attributes: list[int], place: list[list[int]], first: list[int]) -> None:
        self.attributes = attributes
        heights = [tables.heights[a] for a in attributes]
        self.members = list(product(*(range(height + 1) for height in heights)))
        self.levels = np.array(self.members, dtype=np.int64)
        self.first_steps = np.cumsum([0, *heights[:-1]], dtype=np.int64)
        self.shifts, self.masks = tables.shifts[attributes], tables.masks[attributes]
        steps = [tables.change(a, level - 1, level) for a in attributes for level in range(1, tables.heights[a] + 1)]
        self.steps = np.zeros((len(steps), max((step.size for step in steps), default=0)), dtype=np.int64)
        for row, step in zip(self.steps, steps, strict=True):
            row[: step.size] = step
        self.places = np.zeros((len(self.members), len(tables.order)), dtype=np.int64)
        self.lost = np.zeros((len(self.members), len(attributes)), dtype=np.int64)
        for i, member in enumerate(self.members):
            for j, (a, level) in enumerate(zip(attributes, member, strict=True)):
                self.places[i, a] = place[a][level]
                self.lost[i, j] = first[a] + level

    def node(self, node: Levels, member: Levels) -> Levels:
        """A member, with the other levels as this node has them."""
        levels = list(node)
        for a, level in zip(self.attributes, member, strict=True):
            levels[a] = level
        return tuple(levels)


class Survivors:
    """Families of nodes over packed tables; only where a class that must lose everything tells about all parts of it."""

    def __init__(self, tables: NodeTables) -> None:
        self.tables = tables
        order = tables.order
        self._lay_out_losses()
        self.families: list[NodeFamily | None] = [None] * len(order)
        for depth in range(len(order)):
            if math.prod(tables.heights[a] + 1 for a in order[depth:]) <= FAMILY or depth == len(order) - 1:
                self.families[depth] = NodeFamily(tables, order[depth:], self._place, self._first)
        self._merged: dict[Levels, tuple[Int, Int]] = {}
        self._parts: dict[Levels, SurvivingClasses] = {}
        self._bytes = 0
        self._room = (np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.int64))

    @staticmethod
    def suit(tables: NodeTables) -> bool:
        """Whether verdicts can be had this way. Where k is all that is asked, single nodes are checked faster."""
        promises = tables.promises
        single = promises.only_k or promises.moving or promises.no_suppression or promises.on_average
        return type(tables) is NodeTables and bool(tables.order) and not single

    def verdicts(self, node: Levels, wanted: Callable[[Levels], bool]) -> Iterator[tuple[Levels, NodeVerdict]]:
        """The wanted nodes of a family of this node with their verdicts."""
        tables = self.tables
        prefix, part, family = self._family(node)
        nodes = [family.node(node, member) for member in family.members]
        chosen = np.array([i for i, each in enumerate(nodes) if wanted(each)])
        keys, totals = self._buffers(part.keys.size * chosen.size, part.totals.shape[1])
        starts = roll_up_family(
            part.keys,
            part.totals,
            family.shifts,
            family.masks,
            family.levels[chosen],
            family.first_steps,
            family.steps,
            keys,
            totals,
        )
        end = int(starts[-1])
        keys, totals = keys[:end], totals[:end]
        places = family.places[chosen]
        for a, level in zip(tables.order, prefix, strict=False):
            places[:, a] = self._place[a][level]
        need = tables.promises.needs(totals)
        counts, penalties = failing_in_family(keys, totals, need, starts, tables.shifts, tables.masks, places, self._losses)
        gone = part.gone - sum(float(part.lost[self._first[a] + level]) for a, level in zip(tables.order, prefix, strict=False))
        penalties = (penalties + (gone - part.lost[family.lost[chosen]].sum(axis=1))[:, None]) / tables.records
        for i, (suppressed, kept, least), losses in zip(chosen.tolist(), counts.tolist(), penalties.tolist(), strict=True):
            yield nodes[i], NodeVerdict(suppressed + part.gone, losses[0], least + part.gone, losses[1], kept)

    def _family(self, node: Levels) -> tuple[Levels, SurvivingClasses, NodeFamily]:
        """The largest family of a node that is counted quickly."""
        levels = tuple(node[a] for a in self.tables.order)
        for depth, family in enumerate(self.families):
            if family is not None:
                part = self._part(levels[:depth])
                if part.keys.size * len(family.members) <= ROWS or depth == len(self.families) - 1:
                    return levels[:depth], part, family
        raise AssertionError("the last attribute is a family of its own")

    def _part(self, prefix: Levels) -> SurvivingClasses:
        """What is left of the tuples for the nodes that begin with these levels."""
        part = self._parts.get(prefix)
        if part is not None:
            return part
        if not prefix:
            return self._keep_part(prefix, SurvivingClasses(*self.tables.finest, 0, np.zeros(self._levels)))
        before = self._part(prefix[:-1])
        keys, totals = self._merged_table(prefix, before)
        return self._keep_part(prefix, self._thinned(prefix, SurvivingClasses(keys, totals, before.gone, before.lost)))

    def _merged_table(self, prefix: Levels, before: SurvivingClasses) -> tuple[Int, Int]:
        """The classes of the part before, with one attribute more generalised; from the next lower level that is there."""
        level, attribute = prefix[-1], self.tables.order[len(prefix) - 1]
        if level == 0:
            return before.keys, before.totals
        tables = self.tables
        below, source = 0, (before.keys, before.totals)
        for lower in range(level - 1, 0, -1):
            cached = self._merged.get((*prefix[:-1], lower))
            if cached is not None:
                below, source = lower, cached
                break
        shift, mask = int(tables.shifts[attribute]), int(tables.masks[attribute])
        table = roll_up(*source, shift, mask, tables.change(attribute, below, level))
        self._merged[prefix] = table
        self._count(table[0].nbytes + table[1].nbytes)
        return table

    def _thinned(self, prefix: Levels, part: SurvivingClasses) -> SurvivingClasses:
        """Without the classes that must lose everything at the most general node with this beginning."""
        if part.keys.size < FEW:
            return part
        tables, depth = self.tables, len(prefix)
        general = part.keys
        for a in tables.order[depth:]:
            if tables.heights[a]:
                change = tables.change(a, 0, tables.heights[a])
                general = general ^ change[(general >> tables.shifts[a]) & tables.masks[a]]
        groups, first = group_keys(general)
        sums = add_up(groups, part.totals, int(first.size))
        need = tables.promises.needs(sums)
        gone = ((need > 0) & (need >= sums[:, 0])).astype(np.int64)
        if not gone.any():
            return part
        attributes, places, where = self._respects(prefix)
        keys, totals, records, lost = split_off(
            part.keys, part.totals, groups, gone, tables.shifts, tables.masks, attributes, places, self._losses
        )
        together = part.lost.copy()
        together[where] += lost
        return SurvivingClasses(keys, totals, part.gone + int(records), together)

    def _respects(self, prefix: Levels) -> tuple[Int, Int, Int]:
        """Attributes and levels that nodes with this beginning may have, and where their losses are."""
        depth, order = len(prefix), self.tables.order
        pairs = [(a, prefix[i], self._place[a][prefix[i]]) for i, a in enumerate(order[:depth])]
        pairs += [(a, level, place) for a in order[depth:] for level, place in enumerate(self._leaf_place[a])]
        attributes, _, places = (np.array(each, dtype=np.int64) for each in zip(*pairs, strict=True))
        where = np.array([self._first[a] + level for a, level, _ in pairs], dtype=np.int64)
        return attributes, places, where

    def _lay_out_losses(self) -> None:
        """All losses in one array: by the code at a level, and by the leaf what it loses at a level."""
        tables = self.tables
        arrays: list[Real] = []
        end = 0

        def put(losses: Real) -> int:
            nonlocal end
            arrays.append(losses)
            end += losses.size
            return end - losses.size

        self._place = [[put(losses) for losses in levels] for levels in tables.losses]
        self._leaf_place = [
            [put(losses[tables.codes_at(a, 0, level)]) for level, losses in enumerate(levels)]
            for a, levels in enumerate(tables.losses)
        ]
        self._losses = np.concatenate(arrays)
        heights = [height + 1 for height in tables.heights]
        self._first = [sum(heights[:a]) for a in range(len(heights))]
        self._levels = sum(heights)

    def _buffers(self, rows: int, columns: int) -> tuple[Int, Int]:
        if self._room[0].size < rows or self._room[1].shape[1] != columns:
            self._room = (np.empty(rows, dtype=np.int64), np.empty((rows, columns), dtype=np.int64))
        return self._room

    def _keep_part(self, prefix: Levels, part: SurvivingClasses) -> SurvivingClasses:
        self._parts[prefix] = part
        self._count(part.keys.nbytes + part.totals.nbytes)
        return part

    def _count(self, size: int) -> None:
        """Forget everything where it has grown too large."""
        self._bytes += size
        if self._bytes > _CACHE_BYTES:
            self._merged.clear()
            self._parts.clear()
            self._bytes = 0
