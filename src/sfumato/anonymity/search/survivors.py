"""Verdicts on families of nodes, counted over the classes that some node may still keep.

Attributes are generalised in a fixed order. All nodes that agree on the first ones lie below one node: the same levels there,
the highest everywhere else. A class that must lose all its records at that node loses them at every one of these nodes, so its
tuples are left out of their tables. A node is judged by what it keeps; all other records are lost, whether they are in its table
or not. The last attributes, few levels in all, make up a family, whose nodes are counted together.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.search.node_tables import NodeTables
from sfumato.anonymity.search.verdicts import NodeVerdicts
from sfumato.kernels.classes.families import group_at_top, kept_in_family, roll_up_family, split_off
from sfumato.kernels.classes.rollup import roll_up

Int = NDArray[np.int64]
Real = NDArray[np.float64]
Levels = tuple[int, ...]
Classes = tuple[Int, Int]  # keys and totals
FAMILY = 72  # nodes of a family at most
ROWS = 1 << 18  # rows that all nodes of a family may have together
FEW = 48  # tables of so few rows are not worth the trouble
_COLUMNS = 16  # that a processor adds at once, or two to four times
#: What the tables that are kept may take: so many times the table of all tuples, and what is little anyway.
_CACHED_TABLES = 6
_SMALL_CACHE = 64 * 1024 * 1024


class NodeFamily:
    """The nodes that differ in the last attributes of the order only, and what counting them together takes."""

    def __init__(self, tables: NodeTables, attributes: list[int], place: list[list[int]], base: list[Real]) -> None:
        self.attributes = attributes
        heights = [tables.heights[a] for a in attributes]
        self.levels = np.array(list(product(*(range(height + 1) for height in heights))), dtype=np.int64)
        self.first_steps = np.cumsum([0, *heights[:-1]], dtype=np.int64)
        self.shifts, self.masks = tables.shifts[attributes], tables.masks[attributes]
        self.steps = _side_by_side(
            [tables.change(a, level - 1, level) for a in attributes for level in range(1, tables.heights[a] + 1)]
        )
        self.places = np.zeros((len(self.levels), len(tables.order)), dtype=np.int64)
        for a, levels in zip(attributes, self.levels.T, strict=True):
            self.places[:, a] = np.array(place[a])[levels]
        self.base = np.sum([base[a][levels] for a, levels in zip(attributes, self.levels.T, strict=True)], axis=0)

    def nodes(self, node: Levels) -> Int:
        """All members, with the other levels as this node has them."""
        nodes = np.empty((len(self.levels), len(node)), dtype=np.int64)
        nodes[:] = node
        nodes[:, self.attributes] = self.levels
        return nodes


class Survivors:
    """Families of nodes over packed tables; only where a class that must lose everything tells about all parts of it."""

    def __init__(self, tables: NodeTables) -> None:
        self.tables = tables
        self.records = int(tables.root[1][:, 0].sum())
        self.base = tables.base_losses()
        order = tables.order
        self._lay_out_losses()
        self.families: list[NodeFamily | None] = [None] * len(order)
        for depth in range(len(order)):
            if math.prod(tables.heights[a] + 1 for a in order[depth:]) <= FAMILY or depth == len(order) - 1:
                self.families[depth] = NodeFamily(tables, order[depth:], self._place, self.base)
        self._to_top = [
            _side_by_side([tables.change(a, 0, tables.heights[a]) for a in order[depth:]]) for depth in range(len(order))
        ]
        self._merged: dict[Levels, Classes] = {}
        self._parts: dict[Levels, Classes] = {}
        self._bytes = 0
        self._most_bytes = max(_SMALL_CACHE, _CACHED_TABLES * sum(part.nbytes for part in tables.finest))
        self._room: Classes = (np.empty(0, dtype=np.int64), tables.root[1][:0])

    @staticmethod
    def suit(tables: NodeTables) -> bool:
        """Whether verdicts can be had this way. Where k is all that is asked, single nodes are checked faster."""
        promises = tables.promises
        single = promises.only_k or promises.moving or promises.no_suppression or promises.on_average
        return type(tables) is NodeTables and bool(tables.order) and not single

    def verdicts(self, node: Levels, wanted: NDArray[np.bool_]) -> NodeVerdicts:
        """The nodes of a family of this node that are wanted (by their levels) with their verdicts."""
        tables = self.tables
        prefix, part, family = self._family(node)
        nodes = family.nodes(node)
        chosen = wanted[tuple(nodes.T)]
        nodes = nodes[chosen]
        keys, totals = self._buffers(part[0].size * len(nodes), part[1])
        starts = roll_up_family(
            *part, family.shifts, family.masks, family.levels[chosen], family.first_steps, family.steps, keys, totals
        )
        keys, totals = keys[: starts[-1]], totals[: starts[-1]]
        places = family.places[chosen]
        for a, level in zip(tables.order, prefix, strict=False):
            places[:, a] = self._place[a][level]
        need = tables.promises.needs(totals)
        counts, lost = kept_in_family(keys, totals, need, starts, tables.shifts, tables.masks, places, self._losses)
        base = family.base[chosen] + sum(self.base[a][level] for a, level in zip(tables.order, prefix, strict=False))
        # what all records lose, less what the kept ones lose, is what the suppressed ones would
        gone = self.records - counts[:, [0, 2]]
        penalties = np.maximum((gone + lost) / tables.records - base[:, None], 0.0)
        return NodeVerdicts(nodes, gone[:, 0], penalties[:, 0], gone[:, 1], penalties[:, 1], counts[:, 1])

    def _family(self, node: Levels) -> tuple[Levels, Classes, NodeFamily]:
        """The largest family of a node that is counted quickly."""
        levels = tuple(node[a] for a in self.tables.order)
        for depth, family in enumerate(self.families):
            if family is not None:
                part = self._part(levels[:depth])
                if part[0].size * len(family.levels) <= ROWS or depth == len(self.families) - 1:
                    return levels[:depth], part, family
        raise AssertionError("the last attribute is a family of its own")

    def _part(self, prefix: Levels) -> Classes:
        """What is left of the tuples for the nodes that begin with these levels."""
        part = self._parts.get(prefix)
        if part is None:
            part = self._thinned(prefix, self._merged_table(prefix, self._part(prefix[:-1]))) if prefix else self._finest()
            self._parts[prefix] = part
            self._count(part)
        return part

    def _finest(self) -> Classes:
        """The classes of the lowest node; empty columns fill their rows up, since whole rows of numbers are added faster."""
        keys, totals = self.tables.finest
        spare = -totals.shape[1] % _COLUMNS
        return keys, np.pad(totals, ((0, 0), (0, spare))) if spare < _COLUMNS // 2 else totals

    def _merged_table(self, prefix: Levels, before: Classes) -> Classes:
        """The classes of the part before, with one attribute more generalised; from the next lower level that is there."""
        level, attribute = prefix[-1], self.tables.order[len(prefix) - 1]
        if level == 0:
            return before
        tables = self.tables
        below, source = 0, before
        for lower in range(level - 1, 0, -1):
            cached = self._merged.get((*prefix[:-1], lower))
            if cached is not None:
                below, source = lower, cached
                break
        shift, mask = int(tables.shifts[attribute]), int(tables.masks[attribute])
        table = roll_up(*source, shift, mask, tables.change(attribute, below, level))
        self._merged[prefix] = table
        self._count(table)
        return table

    def _thinned(self, prefix: Levels, part: Classes) -> Classes:
        """Without the classes that must lose everything at the most general node with this beginning."""
        depth, tables = len(prefix), self.tables
        if part[0].size < FEW or depth == len(tables.order):
            return part
        above = tables.order[depth:]
        groups, sums = group_at_top(*part, tables.shifts[above], tables.masks[above], self._to_top[depth])
        return split_off(*part, groups, tables.promises.needs(sums), sums[:, 0])

    def _lay_out_losses(self) -> None:
        """All losses in one array, by attribute, level and code."""
        sizes = [[losses.size for losses in levels] for levels in self.tables.losses]
        ends = np.cumsum([size for levels in sizes for size in levels]).tolist()
        starts = iter([0, *ends])
        self._place = [[next(starts) for _ in levels] for levels in sizes]
        self._losses = np.concatenate([losses for levels in self.tables.losses for losses in levels])

    def _buffers(self, rows: int, like: Int) -> Classes:
        if self._room[0].size < rows:
            self._room = (np.empty(rows, dtype=np.int64), np.empty((rows, like.shape[1]), dtype=like.dtype))
        return self._room

    def _count(self, table: Classes) -> None:
        """Forget everything where it has grown too large."""
        self._bytes += table[0].nbytes + table[1].nbytes
        if self._bytes > self._most_bytes:
            self._merged.clear()
            self._parts.clear()
            self._bytes = 0


def _side_by_side(changes: list[Int]) -> Int:
    """Changes of fields of different widths as rows of one array."""
    rows = np.zeros((len(changes), max((change.size for change in changes), default=0)), dtype=np.int64)
    for row, change in zip(rows, changes, strict=True):
        row[: change.size] = change
    return rows
