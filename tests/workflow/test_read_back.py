"""What was written is read back a column at a time; where it is something else, what was read counts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sfumato import Schema
from sfumato.core.errors import SourceError, VerificationFailed
from sfumato.data.writers import parquet_bytes, write_parquet
from sfumato.workflow.publishing.saving import read_back, read_back_bytes

PLAIN = Schema.of(quasi=["job", "age"])


def rows(jobs: list[str | None] | None = None) -> pa.Table:
    jobs = ["clerk", "nurse", None, "clerk"] if jobs is None else jobs
    return pa.table({"job": pa.array(jobs).dictionary_encode(), "age": pa.array([30, 31, 32, None])})


def test_the_table_that_was_written_stands_for_an_equal_one(tmp_path: Path) -> None:
    table = rows()
    write_parquet(table, tmp_path / "data.parquet")
    assert read_back(tmp_path / "data.parquet", PLAIN, table) is table
    assert read_back_bytes(parquet_bytes(table), PLAIN, table) is table


def test_a_cell_that_is_read_as_missing_is_missing() -> None:
    schema = Schema.of(quasi=["job", "age"])
    job = schema.columns["job"].model_copy(update={"missing": ("clerk",)})
    schema = schema.replace(columns={**schema.columns, "job": job})
    back = read_back_bytes(parquet_bytes(rows()), schema, rows())
    assert back.column("job").to_pylist() == [None, "nurse", None, None]
    assert back.column("age").to_pylist() == [30, 31, 32, None]


def test_one_other_cell_is_seen() -> None:
    other = rows(["clerk", "nurse", None, "nurse"])
    assert read_back_bytes(parquet_bytes(other), PLAIN, rows()).column("job").to_pylist() == ["clerk", "nurse", None, "nurse"]


def test_fewer_rows_or_other_columns_are_refused() -> None:
    for other in (rows().slice(1), rows().select(["age", "job"]), rows().select(["job"])):
        with pytest.raises(VerificationFailed, match="were written; nothing was released"):
            read_back_bytes(parquet_bytes(other), PLAIN, rows())


def test_a_name_that_begins_like_another_is_a_column_of_its_own() -> None:
    table = pa.table({"a": [1, 2], "a.b": [3, 4]})
    assert read_back_bytes(parquet_bytes(table), Schema.of(quasi=["a"]), table).equals(table)


def test_a_file_that_was_cut_short_is_refused() -> None:
    with pytest.raises(SourceError, match="not a complete Parquet file"):
        read_back_bytes(parquet_bytes(rows())[:-9], PLAIN, rows())
