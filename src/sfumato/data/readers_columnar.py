"""Parquet and Arrow files, whose columns carry their types.

Text columns of Parquet are read as dictionaries, which keeps a table about people small in memory.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.core.errors import SourceError
from sfumato.data.read_result import RawTable


def read_parquet(source: Path | bytes, where: str) -> RawTable:
    """Read a Parquet file, or its content; an index that pandas stored as a column is left out."""
    import pyarrow.parquet as pq

    try:
        found = pq.read_schema(_opened(source))
        texts = [field.name for field in found if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
        table = pq.ParquetFile(_opened(source), read_dictionary=texts).read()
        table.validate(full=True)
        return of_table(table)
    except (OSError, UnicodeDecodeError, pa.ArrowException):
        raise SourceError(f"{where} is not a complete Parquet file: it is damaged, cut short or of another format") from None


def _opened(source: Path | bytes) -> Any:
    return pa.BufferReader(source) if isinstance(source, bytes) else source


def read_arrow(path: Path, where: str) -> RawTable:
    """Read an Arrow IPC file (Feather version 2) or stream."""
    try:
        with pa.OSFile(str(path)) as source:
            try:
                table = pa.ipc.open_file(source).read_all()
            except pa.ArrowInvalid:
                source.seek(0)
                table = pa.ipc.open_stream(source).read_all()
        table.validate(full=True)
        return of_table(table)
    except (OSError, UnicodeDecodeError, pa.ArrowException):
        raise SourceError(f"{where} is not a complete Arrow file: it is damaged, cut short or of another format") from None


def of_table(table: pa.Table) -> RawTable:
    """A table in memory, without the index columns that pandas adds."""
    index = _pandas_index(table.schema)
    kept = [i for i, name in enumerate(table.column_names) if name not in index]
    notes = (f"the pandas index ({len(index)} columns) was left out",) if len(kept) < table.num_columns else ()
    names = tuple(table.column_names[i] for i in kept)
    return RawTable(names, tuple(table.column(i) for i in kept), False, notes)


def _pandas_index(schema: pa.Schema) -> set[str]:
    stored = (schema.metadata or {}).get(b"pandas")
    if stored is None:
        return set()
    try:
        columns = json.loads(stored).get("index_columns", [])
    except (ValueError, AttributeError, RecursionError):
        return set()
    if not isinstance(columns, list):
        return set()
    return {name for name in columns if isinstance(name, str) and name.startswith("__index_level_")}
