"""PostgreSQL in particular: secrets, read-only questions, names and collations."""

from __future__ import annotations

import datetime
import traceback
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from sfumato.core.errors import SourceError
from sfumato.engines.address import redacted
from sfumato.engines.canonical import canonical_columns
from sfumato.engines.class_queries import table_fields
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.plan import Scan
from sfumato.engines.postgres.relation import PostgresRelation
from sfumato.engines.sources import read
from sfumato.engines.write import write_table
from tests.engines.tables import recoding_of, rows

PASSWORD = "hunter2-canary"
SECRET_URLS = [
    f"postgresql://owner:{PASSWORD}@127.0.0.1:1/people",
    f"postgresql://127.0.0.1:1/people?user=owner&password={PASSWORD}",
    f"postgres://owner:{PASSWORD}@127.0.0.1:port/people",
    f"postgresql://owner:p@ss/{PASSWORD}@127.0.0.1:1/people",
]


@pytest.mark.parametrize("url", SECRET_URLS)
def test_no_password_in_errors_reprs_or_descriptions(url: str) -> None:
    relation = PostgresRelation(url, "people")
    assert PASSWORD not in repr(relation) + relation.address + redacted(url)
    for action in (
        relation.count,
        lambda: read(url, table="people"),
        lambda: write_table(pa.table({"a": [1]}), url),
    ):
        with pytest.raises(SourceError) as caught:
            action()
        shown = "".join(traceback.format_exception(caught.value, limit=0)) + str(caught.value) + repr(caught.value)
        assert PASSWORD not in shown
    with pytest.raises(SourceError, match="table=") as caught:
        read(url)
    assert PASSWORD not in str(caught.value)


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.mark.postgres
def test_questions_run_in_read_only_transactions(postgres_url: str) -> None:
    execute(
        postgres_url,
        "DROP TABLE IF EXISTS touched; CREATE TABLE touched (a INT)",
        "CREATE OR REPLACE FUNCTION touch() RETURNS INT LANGUAGE sql VOLATILE AS 'INSERT INTO touched VALUES (1) RETURNING a'",
        "CREATE OR REPLACE VIEW sneaky AS SELECT touch() AS a",
    )
    with pytest.raises(SourceError, match="25006"):
        PostgresRelation(postgres_url, "sneaky").group(["a"])


@pytest.mark.postgres
def test_types_of_postgres(postgres_url: str) -> None:
    execute(
        postgres_url,
        "DROP TABLE IF EXISTS typed",
        "CREATE TABLE typed (i2 SMALLINT, nu NUMERIC(12, 3), f4 REAL, ch CHAR(5), vc VARCHAR(9), "
        "ts TIMESTAMP, tz TIMESTAMPTZ, "
        "d DATE, b BOOLEAN, u UUID, j JSONB, a INT[], t TIME, by BYTEA)",
        "INSERT INTO typed VALUES (1, 12.345, 1.5, 'ab', '01234', "
        "'1969-12-31 23:59:59.5', '2024-02-29 12:00+02', '0044-03-15 BC', "
        "true, '00000000-0000-0000-0000-000000000001', '{\"k\": 1}', '{1,2}', '12:00:00.25', '\\x00ff'), "
        "(NULL, 'NaN', 'NaN', NULL, '', 'infinity', NULL, '-infinity', NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    table = pa.Table.from_batches(PostgresRelation(postgres_url, "typed").batches())
    first, second = (
        {n: c[i].as_py() for n, c in zip(table.column_names, table.columns, strict=True) if n != "d"} for i in (0, 1)
    )
    assert {n: str(v) for n, v in first.items()} == {
        "i2": "1", "nu": "12.345", "f4": "1.5", "ch": "ab", "vc": "01234", "ts": "1969-12-31 23:59:59.500000",
        "tz": "2024-02-29 10:00:00+00:00", "b": "True", "u": "00000000-0000-0000-0000-000000000001",
        "j": '{"k": 1}', "a": "{1,2}", "t": "12:00:00.250000", "by": "b'\\x00\\xff'",
    }  # fmt: skip
    assert [name for name, value in second.items() if value is not None] == ["vc"]
    assert table.column("d").cast(pa.int32()).to_pylist() == [-735_160, None]


@pytest.mark.postgres
def test_table_names_are_data_not_sql(postgres_url: str) -> None:
    name = 'Robert"); DROP TABLE students; --'
    write_table(pa.table({'a" FROM x; --': [1, 2]}), postgres_url, table_name=name, overwrite=True)
    relation = PostgresRelation(postgres_url, name)
    assert relation.count() == 2
    assert relation.group(['a" FROM x; --']).num_rows == 2
    with pytest.raises(SourceError, match="has no table"):
        PostgresRelation(postgres_url, "x' OR '1'='1").count()


@pytest.mark.postgres
def test_a_table_is_found_by_its_schema(postgres_url: str) -> None:
    execute(
        postgres_url,
        "CREATE SCHEMA IF NOT EXISTS hospital; DROP TABLE IF EXISTS hospital.patients",
        "CREATE TABLE hospital.patients AS SELECT 1 AS a",
    )
    assert PostgresRelation(postgres_url, "hospital.patients").count() == 1
    with pytest.raises(SourceError, match="hospital.patients"):
        PostgresRelation(postgres_url, "patients").count()


@pytest.mark.postgres
def test_long_results_are_streamed(postgres_url: str) -> None:
    execute(
        postgres_url,
        "DROP TABLE IF EXISTS long; CREATE TABLE long AS SELECT g AS i, repeat('x', 200) AS s FROM generate_series(1, 100000) g",
    )
    batches = [batch.num_rows for batch in PostgresRelation(postgres_url, "long").batches()]
    assert sum(batches) == 100_000
    assert len(batches) > 1


@pytest.mark.postgres
def test_a_large_recoding_hashes_instead_of_comparing_every_pair(postgres_url: str) -> None:
    """20,000 keys against 40,000 rows: pairwise that would be 800 million comparisons."""
    execute(
        postgres_url,
        "DROP TABLE IF EXISTS wide; CREATE TABLE wide AS "
        "SELECT CASE WHEN g % 20000 > 0 THEN (g % 20000)::text END AS s, "
        "NULLIF(g % 7, 3) AS n FROM generate_series(1, 40000) g",
    )
    relation = PostgresRelation(postgres_url, "wide")
    grouped = relation.group(["s", "n"])
    released = relation.recode(recoding_of(grouped, ["s", "n"], ["s"], [0] * grouped.num_rows), ["s", "n"])
    assert released.num_rows == 40_000


@pytest.mark.postgres
def test_without_the_right_to_temporary_tables_the_cells_are_written_into_the_query(postgres_url: str) -> None:
    table = pa.table({"a": ["x", "y\\\"{NULL}'", None], "b": [1, 2, 3]})
    write_table(table, postgres_url, table_name="guarded", overwrite=True)
    execute(
        postgres_url,
        "DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        "GRANT SELECT ON guarded TO reader",
        "DO $$ BEGIN EXECUTE 'REVOKE TEMPORARY ON DATABASE ' || current_database() || ' FROM PUBLIC'; END $$",
    )
    try:
        relation = PostgresRelation(postgres_url.replace("postgres:@", "reader:@"), "guarded")
        grouped = relation.group(["a"])
        recoding = recoding_of(grouped, ["a"], ["a"], [0] * 3)
        assert rows(relation.recode(recoding, ["a", "b"])) == rows(MemoryRelation(table).recode(recoding, ["a", "b"]))
    finally:
        execute(
            postgres_url,
            "DO $$ BEGIN EXECUTE 'GRANT TEMPORARY ON DATABASE ' || current_database() || ' TO PUBLIC'; END $$",
        )


@pytest.mark.postgres
@pytest.mark.parametrize("rows_given", [0, 3])
def test_what_is_written_into_a_query_is_what_is_uploaded(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, rows_given: int
) -> None:
    moment = datetime.datetime(2024, 2, 29, 12, 0, 0, 250_000)
    given = canonical_columns(
        pa.table(
            {
                "s": ["", "a \"b\" {c,NULL} \\ 'd' \n é 🙂", None],
                "t": ["NULL", "\\x00", "{}"],
                "i": [-(2**63), 2**63 - 1, None],
                "f": [0.1, 1e300, float("inf")],
                "b": [True, False, None],
                "d": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None],
                "m": [moment, None, datetime.datetime(1969, 12, 31)],
                "z": pa.array([moment, None, moment], pa.timestamp("us", "UTC")),
                "h": [datetime.time(23, 59, 59, 999_999), None, datetime.time(0)],
                "y": [b"\x00\xff\\", b"", None],
            }
        ).slice(0, rows_given)
    )
    write_table(pa.table({"a": [1]}), postgres_url, table_name="one", overwrite=True)
    relation = PostgresRelation(postgres_url, "one")
    plan = Scan("given", tuple(table_fields(given)))
    uploaded = relation.run(plan, {"given": given})
    monkeypatch.setattr("sfumato.engines.postgres.relation.may_create_temporary_tables", lambda connection: False)
    written = relation.run(plan, {"given": given})
    assert written.schema == uploaded.schema
    assert rows(written) == rows(uploaded) == rows(given)


@pytest.mark.postgres
def test_errors_carry_no_value(postgres_url: str) -> None:
    write_table(pa.table({"s": ["canary-7291"]}), postgres_url, table_name="canaries", overwrite=True)
    with pytest.raises(SourceError) as caught:
        PostgresRelation(postgres_url, "canaries", types={"s": "integer"}).group(["s"])
    assert "canary" not in str(caught.value)
    assert "column 's': 1 of 1 values cannot be read as an integer" in str(caught.value)


def test_a_relation_is_not_serialised() -> None:
    relation: Any = PostgresRelation(SECRET_URLS[0], "people")
    with pytest.raises(TypeError, match="password"):
        relation.__reduce__()
