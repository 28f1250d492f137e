"""DuckDB in particular: locked down, out of core, exact about names and collations."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.core.errors import SourceError, Unsupported
from sfumato.engines.duckdb.relation import DuckDBRelation
from tests.engines.tables import nasty_table, rows


def database(path: Path, *statements: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


@pytest.mark.parametrize("kind", ["database", "parquet"])
def test_the_connection_reaches_nothing_else(tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    if kind == "database":
        relation = DuckDBRelation(database(tmp_path / "d.duckdb", "CREATE TABLE t AS SELECT 1 AS a"))
    else:
        pq.write_table(pa.table({"a": [1]}), tmp_path / "d.parquet")
        relation = DuckDBRelation(tmp_path / "d.parquet")
    assert relation.count() == 1
    with relation._connected() as connection:
        for statement in (
            f"SELECT * FROM read_csv('{secret}')",
            f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
            f"ATTACH '{tmp_path / 'other.db'}'",
            "SET enable_external_access = true",
            "SET threads = 1",
            "SELECT * FROM secret",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(statement)
    assert not (tmp_path / "out.csv").exists()


def test_a_database_is_opened_for_reading_only(tmp_path: Path) -> None:
    relation = DuckDBRelation(database(tmp_path / "d.duckdb", "CREATE TABLE t AS SELECT 1 AS a"))
    with relation._connected() as connection, pytest.raises(duckdb.Error, match="read-only"):
        connection.execute("INSERT INTO d.t VALUES (2)")


def test_the_file_is_released_between_questions(tmp_path: Path) -> None:
    path = database(tmp_path / "d.duckdb", "CREATE TABLE t AS SELECT 1 AS a")
    relation = DuckDBRelation(path)
    assert relation.count() == 1
    database(path, "INSERT INTO t VALUES (2)")
    assert relation.count() == 2


def test_table_names_are_data_not_sql(tmp_path: Path) -> None:
    name = 'x"; DROP TABLE keep; --'
    quoted = name.replace('"', '""')
    path = database(
        tmp_path / "d.duckdb",
        "CREATE TABLE keep AS SELECT 1 AS a",
        f'CREATE TABLE "{quoted}" AS SELECT 2 AS a',
    )
    assert DuckDBRelation(path, name).group(["a"]).column("a").to_pylist() == [2]
    with pytest.raises(SourceError, match="has no table"):
        DuckDBRelation(path, 'keep" UNION SELECT 1 --').count()
    assert DuckDBRelation(path, "keep").count() == 1


def test_the_only_table_need_not_be_named_and_several_are_listed(tmp_path: Path) -> None:
    path = database(tmp_path / "d.duckdb", "CREATE TABLE one AS SELECT 1 AS a")
    assert DuckDBRelation(path).count() == 1
    database(path, "CREATE SCHEMA s", "CREATE TABLE s.two AS SELECT 1 AS a")
    with pytest.raises(SourceError, match="one, s.two"):
        DuckDBRelation(path).count()
    assert DuckDBRelation(path, "s.two").count() == 1


def test_a_case_insensitive_collation_does_not_merge_values(tmp_path: Path) -> None:
    path = database(tmp_path / "d.duckdb", "CREATE TABLE t (s TEXT COLLATE NOCASE)", "INSERT INTO t VALUES ('a'), ('A')")
    assert DuckDBRelation(path).group(["s"]).num_rows == 2


def test_types_without_a_kind_are_read_as_text(tmp_path: Path) -> None:
    path = database(
        tmp_path / "d.duckdb",
        "CREATE TABLE t AS SELECT [1, 2] AS l, INTERVAL 1 DAY AS i, 'x'::ENUM('x') AS e, "
        "1.5::DECIMAL(9, 2) AS d, 7::HUGEINT AS h",
    )
    relation = DuckDBRelation(path)
    text = pa.dictionary(pa.int32(), pa.string())
    assert relation.schema().types == [text, text, text, pa.float64(), pa.int64()]
    assert rows(pa.Table.from_batches(relation.batches())) == [("[1, 2]", "1 day", "x", 1.5, 7)]


def test_errors_carry_no_value(tmp_path: Path) -> None:
    canary = 9_223_372_036_854_775_807 * 2
    path = database(tmp_path / "d.duckdb", f"CREATE TABLE t AS SELECT {canary}::HUGEINT AS h, 'canary-7291' AS s")
    with pytest.raises(SourceError) as caught:
        DuckDBRelation(path).group(["h"])
    assert str(canary) not in str(caught.value)
    with pytest.raises(SourceError) as caught:
        DuckDBRelation(path, types={"s": "integer"}).group(["s"])
    assert "canary" not in str(caught.value)
    assert caught.value.__suppress_context__
    with pytest.raises(Unsupported, match="stored as integer and declared as boolean"):
        DuckDBRelation(path, types={"h": "boolean"}).count()


def test_declared_types_and_missing_codes(tmp_path: Path) -> None:
    path = database(
        tmp_path / "d.duckdb",
        "CREATE TABLE t (zip INT, n TEXT)",
        "INSERT INTO t VALUES (1234, '7'), (-9, '?'), (5, NULL)",
    )
    relation = DuckDBRelation(path, types={"zip": "string", "n": "integer"}, missing={"zip": ["-9"], "n": ["?"]})
    assert rows(pa.Table.from_batches(relation.batches())) == sorted([("1234", 7), (None, None), ("5", None)], key=repr)


def test_csv_stays_on_disk_with_careful_types(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(
        'zip;country;age;height;when;member;code;text\n01234;NO;39;1.5;2024-02-29;true;?;""\n1234;;40;;2023-01-01;false;7;x\n',
        encoding="utf-8",
    )
    relation = DuckDBRelation(path, missing={"code": ["?"]})
    kinds = {name: field.kind for name, field in relation.fields.items()}
    assert kinds == {
        "zip": "string", "country": "string", "age": "integer", "height": "number", "when": "date",
        "member": "boolean", "code": "integer", "text": "string",
    }  # fmt: skip
    table = pa.Table.from_batches(relation.batches())
    assert table.column("zip").to_pylist() == ["01234", "1234"]
    assert table.column("country").to_pylist() == ["NO", None]
    assert table.column("text").to_pylist() == ["", "x"]
    assert table.column("code").to_pylist() == [None, 7]


def test_limits_are_accepted(tmp_path: Path) -> None:
    pq.write_table(nasty_table(), tmp_path / "rows.parquet")
    relation = DuckDBRelation(tmp_path / "rows.parquet", threads=1, memory_limit="200MB")
    assert relation.group(["age"]).num_rows == 5


def test_unreadable_files_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no file"):
        DuckDBRelation(tmp_path / "none.duckdb")
    (tmp_path / "half.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(SourceError, match="Parquet"):
        DuckDBRelation(tmp_path / "half.parquet").count()
    (tmp_path / "half.duckdb").write_bytes(b"\0" * 8 + b"DUCK" + b"\0" * 100)
    with pytest.raises(SourceError, match="half.duckdb"):
        DuckDBRelation(tmp_path / "half.duckdb").count()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a[1].parquet")
    with pytest.raises(SourceError, match="rename"):
        DuckDBRelation(tmp_path / "a[1].parquet").count()
