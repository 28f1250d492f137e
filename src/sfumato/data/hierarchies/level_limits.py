"""Limits of generalisation: the levels of a hierarchy that a column may show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.core.errors import SchemaError, all_at_once

if TYPE_CHECKING:
    from sfumato.data.hierarchies.hierarchy import Hierarchy
    from sfumato.data.schema import Column, Schema


@dataclass(frozen=True, eq=False)
class LevelLimits:
    """A column is shown on levels `least` to `greatest` of its `tree`; `capped` where values that meet only above stay apart."""

    least: int
    greatest: int
    tree: Hierarchy = field(repr=False)

    @property
    def capped(self) -> bool:
        """Whether the owner leaves out levels at the top."""
        return self.greatest < self.tree.height


def limited_columns(schema: Schema, least: Mapping[str, int], greatest: Mapping[str, int]) -> dict[str, Column]:
    """The columns of a schema with the least and the greatest level of some of them; all faults at once."""
    columns, faults = dict(schema.columns), []
    for key, levels in (("least_level", least), ("greatest_level", greatest)):
        for name, level in levels.items():
            if name not in columns:
                faults.append(f"{key} names column '{name}', which the schema does not describe")
            elif isinstance(level, bool) or not isinstance(level, int) or not 0 <= level <= 10_000:
                faults.append(f"{key} of column '{name}' must be a whole number of at least 0")
            else:
                columns[name] = columns[name].model_copy(update={key: level})
    limited = dict.fromkeys(name for name in (*least, *greatest) if name in columns)
    faults += [f"column '{name}': {fault}" for name in limited if (fault := columns[name].level_fault())]
    all_at_once(SchemaError, f"schema '{schema.dataset}'", faults)
    return columns
