"""Writing to databases: whole or not at all, never over something else by accident."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest

from sfumato.core.errors import SourceError, Unsupported, VerificationFailed
from sfumato.engines.duckdb.relation import DuckDBRelation
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.postgres.relation import PostgresRelation
from sfumato.engines.write import check_destination, write_table
from tests.engines.tables import ODD, nasty_table, rows

TABLE = nasty_table().drop_columns(["country"])  # DuckDB does not tell it from "Country"


def canonical_rows(table: pa.Table) -> list[Any]:
    return rows(pa.Table.from_batches(MemoryRelation(table).batches()))


def read_duckdb(path: Path, table: str | None = None) -> list[Any]:
    relation = DuckDBRelation(path, table)
    return rows(pa.Table.from_batches(relation.batches(), schema=relation.schema()))


def test_a_duckdb_file_holds_every_value(tmp_path: Path) -> None:
    path = tmp_path / "out.duckdb"
    write_table(TABLE, path)
    assert read_duckdb(path, "release") == canonical_rows(TABLE)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.duckdb"]


def test_an_existing_table_is_refused_unless_overwriting(tmp_path: Path) -> None:
    path = tmp_path / "out.duckdb"
    write_table(TABLE, path, table_name="people")
    with pytest.raises(SourceError, match="overwrite=True"):
        write_table(TABLE.slice(0, 1), path, table_name="People")
    assert len(read_duckdb(path)) == 8
    write_table(TABLE.slice(0, 1), path, table_name="people", overwrite=True)
    write_table(TABLE, path, table_name=ODD)
    assert len(read_duckdb(path, "people")) == 1
    assert len(read_duckdb(path, ODD)) == 8


def test_a_failure_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sfumato.engines.write as module

    def fail(*_: object) -> None:
        raise duckdb.IOException("disk full: canary-7291")

    monkeypatch.setattr(module, "_fill_duckdb", fail)
    with pytest.raises(SourceError, match="Nothing was changed") as caught:
        write_table(TABLE, tmp_path / "out.duckdb")
    assert "canary" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def reject(rows_read_back: pa.Table) -> None:
    assert rows_read_back.num_rows
    raise VerificationFailed("rejected")


def test_a_table_that_is_rejected_when_read_back_does_not_stay(tmp_path: Path) -> None:
    seen: list[pa.Table] = []
    path = tmp_path / "out.duckdb"
    with pytest.raises(VerificationFailed):
        write_table(TABLE, path, confirm=reject)
    assert list(tmp_path.iterdir()) == []
    write_table(TABLE, path, confirm=seen.append)
    assert rows(seen[0]) == canonical_rows(TABLE)
    with pytest.raises(VerificationFailed):
        write_table(TABLE.slice(0, 1), path, overwrite=True, confirm=reject)
    with pytest.raises(VerificationFailed):
        write_table(TABLE.slice(0, 1), path, table_name="other", confirm=reject)
    assert read_duckdb(path) == canonical_rows(TABLE)  # still one table, the old one


@pytest.mark.postgres
def test_postgres_rolls_a_rejected_table_back(postgres_url: str) -> None:
    seen: list[pa.Table] = []
    write_table(nasty_table(), postgres_url, table_name="read back", overwrite=True, confirm=seen.append)
    assert rows(seen[0]) == canonical_rows(nasty_table())
    with pytest.raises(VerificationFailed):
        write_table(TABLE.slice(0, 1), postgres_url, table_name="read back", overwrite=True, confirm=reject)
    with pytest.raises(VerificationFailed):
        write_table(TABLE, postgres_url, table_name="rejected", confirm=reject)
    assert PostgresRelation(postgres_url, "read back").count() == 8
    with pytest.raises(SourceError, match="no table 'rejected'"):
        PostgresRelation(postgres_url, "rejected").count()
    empty: list[pa.Table] = []
    write_table(TABLE.slice(0, 0), postgres_url, table_name="read back", overwrite=True, confirm=empty.append)
    assert empty[0].num_rows == 0 and empty[0].column_names == TABLE.column_names


def test_a_destination_is_checked_without_writing(tmp_path: Path) -> None:
    path = tmp_path / "out.duckdb"
    check_destination(path)
    assert list(tmp_path.iterdir()) == []
    write_table(TABLE, path, table_name="people")
    check_destination(path, table_name="others")
    check_destination(path, table_name="people", overwrite=True)
    with pytest.raises(SourceError, match="overwrite=True"):
        check_destination(path, table_name="People")
    with pytest.raises(SourceError, match="no folder"):
        check_destination(tmp_path / "missing" / "out.duckdb")
    for address in ("mysql://ada:hunter2@db/x", "postgresql://ada:hunter2@127.0.0.1:1/x"):
        with pytest.raises(SourceError) as caught:
            check_destination(address)
        assert "hunter2" not in str(caught.value)


def test_other_files_and_folders_are_not_overwritten(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("notes")
    with pytest.raises(SourceError, match="no DuckDB database"):
        write_table(TABLE, other, overwrite=True)
    assert other.read_text() == "notes"
    with pytest.raises(SourceError, match="could not be written"):
        write_table(TABLE, tmp_path / "missing" / "out.duckdb")


def test_names_that_a_database_cannot_hold_are_refused_all_at_once(tmp_path: Path) -> None:
    table = pa.table({"a": [1], "A": [2], "b\x00": [3]})
    with pytest.raises(Unsupported) as caught:
        write_table(table, tmp_path / "out.duckdb")
    assert "'a' and 'A'" in str(caught.value) and "NUL" in str(caught.value)
    with pytest.raises(Unsupported, match="63 bytes"):
        write_table(pa.table({"é" * 40: [1]}), "postgresql://127.0.0.1:1/x")
    with pytest.raises(Unsupported, match="NUL"):
        write_table(pa.table({"a": ["x\x00y"]}), "postgresql://127.0.0.1:1/x")
    with pytest.raises(Unsupported, match="without columns"):
        write_table(pa.table({}), tmp_path / "out.duckdb")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.postgres
def test_postgres_is_all_or_nothing(postgres_url: str) -> None:
    write_table(nasty_table(), postgres_url, table_name="written", overwrite=True)

    def written() -> list[Any]:
        return rows(pa.Table.from_batches(PostgresRelation(postgres_url, "written").batches()))

    assert written() == canonical_rows(nasty_table())
    with pytest.raises(SourceError, match="overwrite=True"):
        write_table(TABLE, postgres_url, table_name="written")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE OR REPLACE VIEW looks_at_written AS SELECT * FROM written")
        # the view depends on the table: replacing it fails after the transaction began
        with pytest.raises(SourceError, match="2BP01"):
            write_table(TABLE.slice(0, 1), postgres_url, table_name="written", overwrite=True)
        assert written() == canonical_rows(nasty_table())
        connection.execute("DROP VIEW looks_at_written")
    write_table(TABLE.slice(0, 1), postgres_url, table_name="written", overwrite=True)
    assert len(written()) == 1


@pytest.mark.postgres
def test_postgres_schemas(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS published")
    write_table(TABLE, postgres_url, table_name="published.people", overwrite=True)
    assert PostgresRelation(postgres_url, "published.people").count() == 8
    write_table(TABLE, postgres_url, table_name="no.schema", overwrite=True)
    assert PostgresRelation(postgres_url, "no.schema").count() == 8


def test_a_pipe_is_refused_before_anything_waits_for_it(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for refuse in (lambda: check_destination(tmp_path / "pipe"), lambda: write_table(TABLE, tmp_path / "pipe")):
        with pytest.raises(SourceError, match="a pipe"):
            refuse()
