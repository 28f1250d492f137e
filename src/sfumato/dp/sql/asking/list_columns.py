"""Columns of an answer that are lists: measured, kept and published element by element, and shown together."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def with_lists(table: pa.Table, lists: Sequence[str | None]) -> pa.Table:
    """The table with neighbouring columns of one list (None: of none) as one column of lists, called like the list."""
    if not any(lists):
        return table
    import pyarrow as pa

    names: list[str] = []
    columns = []
    for name, group in itertools.groupby(zip(lists, table.column_names, strict=True), key=lambda each: each[0] or each):
        members = [table.column(column) for _, column in group]
        if not isinstance(name, str):
            names.append(name[1])
            columns.append(members[0])
            continue
        kind = pa.list_(members[0].type)
        cells = zip(*(member.to_pylist() for member in members), strict=True)
        names.append(name)
        columns.append(pa.chunked_array([pa.array([list(row) for row in cells], kind)]))
    return pa.Table.from_arrays(columns, names=names)


def beside(table: pa.Table, margins: pa.Table, noisy: Collection[str]) -> pa.Table:
    """The table with the margins of each noisy column right of it, called after the column; no other column has that name."""
    import pyarrow as pa

    taken = set(table.column_names)
    names: list[str] = []
    columns = []
    for place, name in enumerate(table.column_names):
        names.append(name)
        columns.append(table.column(place))
        if name in noisy:
            free = (f"{name}_margin{number}" for number in ("", *range(2, len(taken) + 3)))
            names.append(next(each for each in free if each not in taken))
            taken.add(names[-1])
            columns.append(margins.column(place))
    return pa.Table.from_arrays(columns, names=names)
