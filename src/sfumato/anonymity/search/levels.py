"""Least and greatest levels: a search sees the levels that the owner allows, and nothing else.

The hierarchy of a limited column loses the levels below its least and above its greatest one, so every node of the lattice,
every split and every common ancestor lies between them. Where a greatest level leaves no common root, values that meet only
above it stay in different classes: `coarsest` is the partition from which searches start that split classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import SchemaError, all_at_once
from sfumato.data.class_table import ClassTable
from sfumato.data.hierarchies.level_limits import LevelLimits
from sfumato.data.schema import Schema
from sfumato.kernels.classes.grouping import group_columns

Int = NDArray[np.int64]


def limited(table: ClassTable, schema: Schema) -> ClassTable:
    """The table with the hierarchies cut to the levels that the schema allows; ranges of limited columns are not free."""
    limits, faults = {}, []
    for name, tree in zip(table.quasi, table.hierarchies, strict=True):
        column = schema.columns[name]
        if not column.least_level and column.greatest_level is None:
            continue
        for key, level in (("least_level", column.least_level), ("greatest_level", column.greatest_level)):
            if level is not None and level > tree.height:
                faults.append(
                    f"column '{name}': {key} = {level}, but its hierarchy has levels 0 to {tree.height}. Choose one of these"
                )
        greatest = tree.height if column.greatest_level is None else column.greatest_level
        limits[name] = LevelLimits(column.least_level, greatest, tree)
    all_at_once(SchemaError, f"schema '{schema.dataset}'", faults)
    if not limits:
        return table
    trees = tuple(
        tree.between(limits[name].least, limits[name].greatest) if name in limits else tree
        for name, tree in zip(table.quasi, table.hierarchies, strict=True)
    )
    return replace(table, hierarchies=trees, free_ranges=table.free_ranges - set(limits), limits=limits)


def unlimited(table: ClassTable) -> ClassTable:
    """The table with its whole hierarchies."""
    trees = tuple(
        table.limits[name].tree if name in table.limits else tree
        for name, tree in zip(table.quasi, table.hierarchies, strict=True)
    )
    return replace(table, hierarchies=trees, limits={}) if table.limits else table


def whole_levels(table: ClassTable, levels: Sequence[int]) -> tuple[int, ...]:
    """Levels of the whole hierarchies that these levels of the limited ones are."""
    if not table.limits:
        return tuple(levels)
    lowest = (table.limits[name].least if name in table.limits else 0 for name in table.quasi)
    return tuple(level + least for level, least in zip(levels, lowest, strict=True))


def capped(table: ClassTable) -> tuple[str, ...]:
    """The columns whose values do not all meet within their greatest level, although they do above it."""
    return tuple(
        name
        for name, tree in zip(table.quasi, table.hierarchies, strict=True)
        if name in table.limits and table.limits[name].capped and not tree.has_root
    )


def coarsest(table: ClassTable) -> Int:
    """The class of every tuple in the coarsest partition that the greatest levels allow: one class where there are none."""
    tops = [
        (tree.node_of[-1, codes], len(tree.labels))
        for name, tree, codes in zip(table.quasi, table.hierarchies, table.codes, strict=True)
        if name in capped(table)
    ]
    if not tops:
        return np.zeros(table.tuples, dtype=np.int64)
    return group_columns([nodes for nodes, _ in tops], [size for _, size in tops])[0]


def in_words(table: ClassTable) -> str:
    """The greatest levels that keep values apart, in one sentence; empty where there are none."""
    listed = [f"'{name}' to level {table.limits[name].greatest} of {table.limits[name].tree.height}" for name in capped(table)]
    return f"The schema limits {', '.join(listed)} (greatest_level)." if listed else ""
