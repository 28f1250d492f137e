"""Columns that are published as they are and tell who somebody is: what the owner should think about, although no promise forbids
it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.texts import percent

#: Below this many records nearly every column has nearly as many values as records.
FEW_RECORDS = 50
#: From this share of the records on it is said that they are alone in several columns together.
_MANY_ALONE = 0.05


def telling_columns(table: pa.Table, names: Sequence[str]) -> list[str]:
    """What is to be said of those columns of a released table that no promise covers."""
    if table.num_rows < FEW_RECORDS:
        return []
    different = {name: len(table.column(name).drop_null().unique()) for name in names}
    telling = [telling_column(name, count, table.num_rows) for name, count in different.items() if count > table.num_rows / 2]
    return telling + _telling_together(table, names)


def telling_column(name: str, different: int, records: int) -> str:
    """What the owner should think about where a column that is published as it is has nearly as many values as records."""
    return (
        f"column '{name}' is published as it is and has {different:,} different values in {records:,} "
        "records: whoever knows one finds the record. Should it be a quasi-identifier?"
    )


def _telling_together(table: pa.Table, names: Sequence[str]) -> list[str]:
    """How many records are alone in what the columns show together, where there are several and it is many."""
    single = [name for name in names if not pa.types.is_nested(table.schema.field(name).type)]
    if len(single) < 2:
        return []
    counts = table.select(single).group_by(single).aggregate([([], "count_all")]).column("count_all")
    alone = int(pc.sum(pc.equal(counts, 1)).as_py() or 0)
    if alone < _MANY_ALONE * table.num_rows:
        return []
    return [
        f"{alone:,} of {table.num_rows:,} records ({percent(alone / table.num_rows)}) are alone in what the {len(single)} columns "
        "that are published as they are show together: whoever knows enough of these values finds the record. No promise covers it"
    ]
