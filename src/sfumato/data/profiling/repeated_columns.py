"""Columns that say nothing of their own: a copy of another one under its name, or an empty one behind the last separator."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.data.profiling.profile import ColumnProfile

_COPY = re.compile(r"(.+)\.[0-9]+", re.DOTALL)
_UNNAMED = re.compile(r"column [0-9]+")


def without_copy(column: ColumnProfile, table: pa.Table) -> ColumnProfile:
    """The column, dropped as an identifier is where it repeats another one or has neither name nor value."""
    if column.distinct == 0 and _UNNAMED.fullmatch(column.name):
        return replace(column, role="identifier", reason="no name and no value: dropped, as identifiers are")
    copied = _COPY.fullmatch(column.name)
    original = copied[1] if copied is not None else ""
    if original in table.column_names and table.column(original).equals(table.column(column.name)):
        return replace(column, role="identifier", reason=f"repeats column '{original}' in every row: dropped, as identifiers are")
    return column
