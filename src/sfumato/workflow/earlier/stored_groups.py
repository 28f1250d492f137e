"""What a ledger keeps of rows that stayed in an engine: their groups, and how many records each stands for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import SourceError
from sfumato.data.microdata import ReleasedTable
from sfumato.data.schema import Column, Schema

#: The last column of the kept file, whatever it is called.
_COUNTS = "records"


def to_bytes(released: ReleasedTable) -> bytes:
    """The groups as a Parquet file, the counts in its last column."""
    from sfumato.data.writers import parquet_bytes

    name = _COUNTS
    while name in released.table.column_names:
        name += " of a group"
    return parquet_bytes(released.table.append_column(name, pa.array(released.counts)))


def kept_rows(path: Path, schema: Schema, *, grouped: bool) -> tuple[pa.Table, NDArray[np.int64] | None]:
    """The rows that were kept, or their groups with how many records each stands for."""
    from sfumato.data.readers.files import read_file

    if not grouped:
        return read_file(path, schema).table, None
    import pyarrow.parquet as pq

    *names, last = pq.read_schema(path).names
    described = {name: schema.columns.get(name, Column()) for name in names} | {last: Column(type="integer")}
    table = read_file(path, schema.replace(columns=described)).table
    counts = table.column(last)
    if counts.null_count or not pa.types.is_integer(counts.type):
        raise SourceError("the groups that were kept of an earlier release are damaged")
    return table.drop_columns([last]), counts.to_numpy().astype(np.int64)
