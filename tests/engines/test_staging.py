"""Rows written by the engine that holds them: sorted alike on every engine, read back where they are staged, published whole."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import InputError, MissingColumn, SourceError
from sfumato.core.files import hold_folder
from sfumato.data.relation import Relation
from sfumato.engines.class_queries import ROWS, table_fields
from sfumato.engines.expressions import Reference
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.plan import Join, Named, Plan, Project, Scan
from sfumato.engines.snapshots import Snapshot, held_still
from sfumato.engines.staging import folder as staging_folder
from sfumato.engines.staging.destinations import (
    DatabaseTable,
    ParquetFolder,
    SparkTable,
    Staged,
    check_destination,
    destination_of,
    staged,
)
from sfumato.workflow.publishing.released_form import released_form
from tests.engines.conftest import OpenTable
from tests.engines.tables import nasty_table

TABLE = nasty_table()


def everything(relation: Relation) -> Plan:
    return Scan(ROWS, tuple(relation.fields.values()))  # type: ignore[attr-defined]


def values(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows in their order, whatever types carry them."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def written(result: Staged) -> pa.Table:
    return pa.concat_tables(pq.read_table(file.path) for file in result.files)


def test_written_files_hold_the_rows_in_the_order_of_a_release(on_engine: OpenTable, tmp_path: Path) -> None:
    relation = on_engine(TABLE)
    place = tmp_path / "out"
    with staged(relation, everything(relation), {}, ParquetFolder(place, rows_per_file=3)) as result:
        expected = released_form(TABLE)
        assert values(written(result)) == values(expected)
        assert written(result).column_names == TABLE.column_names
        assert result.rows == 8
        assert sum(file.rows for file in result.files) == 8
        assert values(released_form(read(result.relation))) == values(expected)
        assert not place.exists()
        result.publish()
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("rows")] == ["out"]
    names = sorted(path.name for path in place.iterdir())
    assert names == [f"part-{number:05d}.parquet" for number in range(len(names))]
    for file in result.files:
        content = file.path.read_bytes()
        assert (file.path.parent, file.bytes, file.sha256) == (place, len(content), hashlib.sha256(content).hexdigest())
        assert stat.S_IMODE(file.path.stat().st_mode) == 0o644
    assert stat.S_IMODE(place.stat().st_mode) == 0o755


def read(relation: Relation) -> pa.Table:
    return pa.Table.from_batches(relation.batches(), schema=relation.schema())


def test_what_a_plan_joins_in_is_written(on_engine: OpenTable, tmp_path: Path) -> None:
    relation = on_engine(TABLE)
    shown = pa.table({"plain": ["a", "b", "é", None], "group": ["low", "low", None, "none"]})
    joined = Join(everything(relation), Scan("shown", table_fields(shown)), (("plain", "plain"),))
    plan = Project(joined, (Named("group", Reference("group")), Named("age", Reference("age"))))
    with staged(relation, plan, {"shown": shown}, ParquetFolder(tmp_path / "out"), order=["age"]) as result:
        expected = [(None, -1), ("low", 39), ("low", 39), ("low", 50), ("low", 50), ("none", 2**62)]
        assert values(written(result)) == expected
    assert not (tmp_path / "out").exists()


def test_rows_of_a_snapshot_are_written(on_engine: OpenTable, tmp_path: Path) -> None:
    relation = on_engine(TABLE)
    with held_still(relation) as held:
        with staged(Snapshot(held), everything(relation), {}, ParquetFolder(tmp_path / "out")) as result:
            assert values(written(result)) == values(released_form(TABLE))


def test_no_rows_are_one_file_without_any(on_engine: OpenTable, tmp_path: Path) -> None:
    relation = on_engine(TABLE.slice(0, 0))
    with staged(relation, everything(relation), {}, ParquetFolder(tmp_path / "out")) as result:
        assert (result.rows, len(result.files)) == (0, 1)
        assert written(result).column_names == TABLE.column_names
        assert result.relation.count() == 0


cells = st.fixed_dictionaries(
    {
        "text": st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3),
        "number": st.none() | st.floats(allow_infinity=True),
        "whole": st.none() | st.integers(-(2**63), 2**63 - 1),
        "truth": st.none() | st.booleans(),
    }
)
TYPES = pa.schema([("text", pa.string()), ("number", pa.float64()), ("whole", pa.int64()), ("truth", pa.bool_())])


@settings(max_examples=30)
@given(rows=st.lists(cells, max_size=12), per_file=st.integers(1, 5))
def test_files_in_turn_are_the_released_form_whatever_the_rows(
    rows: list[dict[str, Any]], per_file: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = pa.Table.from_pylist(rows, schema=TYPES)
    relation = MemoryRelation(table)
    place = tmp_path_factory.mktemp("staging") / "out"
    with staged(relation, everything(relation), {}, ParquetFolder(place, rows_per_file=per_file)) as result:
        assert values(written(result)) == values(released_form(table))
        assert [file.rows for file in result.files[:-1]] == [per_file] * (len(result.files) - 1)


def test_the_same_rows_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    digests = set()
    for number, table in enumerate((TABLE, TABLE.take(pa.array([5, 2, 7, 1, 0, 6, 4, 3])))):
        relation = MemoryRelation(table)
        with staged(relation, everything(relation), {}, ParquetFolder(tmp_path / str(number), rows_per_file=3)) as result:
            digests.add(tuple(file.sha256 for file in result.files))
    assert len(digests) == 1


def test_files_carry_no_metadata_of_the_source(tmp_path: Path) -> None:
    marked = TABLE.replace_schema_metadata({"owner": "canary"})
    relation = MemoryRelation(marked)
    with staged(relation, everything(relation), {}, ParquetFolder(tmp_path / "out")) as result:
        assert pq.ParquetFile(result.files[0].path).metadata.metadata is None


@pytest.mark.spark
def test_spark_writes_no_metadata_of_columns_and_keeps_the_sessions_settings(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql.functions import col

    from sfumato.engines.spark.relation import SparkRelation

    named = col("name").alias("name", metadata={"owner": "canary"})
    frame = spark.createDataFrame([("x", 1)], "name string, n int").select(named)
    before = spark.conf.get("spark.sql.parquet.outputTimestampType")
    relation = SparkRelation(frame)
    with staged(relation, everything(relation), {}, ParquetFolder(tmp_path / "out")) as result:
        assert all(b"canary" not in file.path.read_bytes() for file in result.files)
        assert [path.name for path in result.files[0].path.parent.iterdir()] == ["part-00000.parquet"]
        assert stat.S_IMODE(result.files[0].path.stat().st_mode) == 0o600
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == before
    assert spark.conf.get("spark.sql.caseSensitive") == "false"


def test_staged_files_are_their_owners_alone(tmp_path: Path) -> None:
    relation = MemoryRelation(TABLE)
    before = os.umask(0)
    try:
        with staged(relation, everything(relation), {}, ParquetFolder(tmp_path / "out")) as result:
            (hidden,) = tmp_path.iterdir()
            assert stat.S_IMODE(hidden.stat().st_mode) == 0o700
            assert {stat.S_IMODE(file.path.stat().st_mode) for file in result.files} == {0o600}
    finally:
        os.umask(before)


def test_a_block_that_ends_without_publishing_leaves_nothing(tmp_path: Path) -> None:
    relation = MemoryRelation(TABLE)
    with staged(relation, everything(relation), {}, ParquetFolder(tmp_path / "out")):
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RuntimeError), staged(relation, everything(relation), {}, ParquetFolder(tmp_path / "out")):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_rows_are_published_once(tmp_path: Path) -> None:
    relation = MemoryRelation(TABLE)
    with staged(relation, everything(relation), {}, ParquetFolder(tmp_path / "out")) as result:
        result.publish()
        with pytest.raises(InputError, match="already"):
            result.publish()


def test_a_folder_that_appeared_meanwhile_is_left_alone(tmp_path: Path) -> None:
    relation, place = MemoryRelation(TABLE), tmp_path / "out"
    with staged(relation, everything(relation), {}, ParquetFolder(place)) as result:
        place.mkdir()
        (place / "notes.txt").write_text("mine")
        with pytest.raises(InputError):
            result.publish()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in place.iterdir()] == ["notes.txt"]


def test_a_folder_of_parts_is_replaced_in_one_step_when_asked(tmp_path: Path) -> None:
    relation, place = MemoryRelation(TABLE), tmp_path / "out"
    with staged(relation, everything(relation), {}, ParquetFolder(place, rows_per_file=1)) as result:
        result.publish()
    with pytest.raises(InputError, match="overwrite"):
        check_destination(ParquetFolder(place))
    few = MemoryRelation(TABLE.slice(0, 2))
    with staged(few, everything(few), {}, ParquetFolder(place, overwrite=True)) as result:
        assert len(list(place.iterdir())) == 8
        result.publish()
    assert [path.name for path in place.iterdir()] == ["part-00000.parquet"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (place / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="other files"):
        check_destination(ParquetFolder(place, overwrite=True))


def test_places_are_refused_before_the_work(tmp_path: Path) -> None:
    check_destination(ParquetFolder(tmp_path / "out"))
    with pytest.raises(SourceError, match="no folder"):
        check_destination(ParquetFolder(tmp_path / "missing" / "out"))
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="not a folder"):
        check_destination(ParquetFolder(tmp_path / "file"))
    with pytest.raises(InputError, match="pattern"):
        check_destination(ParquetFolder(tmp_path / "out*"))
    with pytest.raises(InputError, match="rows_per_file"):
        check_destination(ParquetFolder(tmp_path / "out", rows_per_file=0))
    relation = MemoryRelation(TABLE)
    with (
        pytest.raises(MissingColumn, match="sort by"),
        staged(relation, everything(relation), {}, ParquetFolder(tmp_path / "out"), order=["nobody"]),
    ):
        pass


def test_what_killed_runs_left_is_removed_and_what_is_held_stays(tmp_path: Path) -> None:
    names = [tmp_path / f"{staging_folder.PREFIX}{digit * 16}" for digit in "ab"]
    names[0].mkdir()
    (names[0] / "part-00000.parquet").write_bytes(b"half")
    other = tmp_path / f"{staging_folder.PREFIX}notes"
    other.mkdir()
    held = hold_folder(lambda: names[1])
    relation = MemoryRelation(TABLE)
    with staged(relation, everything(relation), {}, ParquetFolder(tmp_path / "out")):
        assert not names[0].exists() and names[1].exists() and other.exists()
    held.remove()


def test_destinations_are_told_by_their_form(tmp_path: Path) -> None:
    assert destination_of(tmp_path / "out") == ParquetFolder(tmp_path / "out")
    assert destination_of("spark:lake.people", overwrite=True) == SparkTable("lake.people")
    assert destination_of("out.duckdb", "people") == DatabaseTable("out.duckdb", "people")
    assert destination_of("postgresql://u:secret@h/d") == DatabaseTable("postgresql://u:secret@h/d", "release")
    assert "secret" not in f"{destination_of('postgresql://u:secret@h/d')!r} {destination_of('postgresql://u:secret@h/d')}"
    for wrong, name in (("s3://bucket/x", None), ("spark:a", "b"), (str(tmp_path), "b")):
        with pytest.raises(InputError):
            destination_of(wrong, name)


PLAIN = TABLE.drop_columns(["country"])  # DuckDB does not tell it from "Country"


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.getfixturevalue("postgres_url")) if request.param == "postgres" else str(tmp_path / "out.duckdb")


DATABASES = pytest.mark.parametrize("database", ["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)


def stored(database: str, name: str) -> Relation:
    from sfumato.engines.duckdb.relation import DuckDBRelation
    from sfumato.engines.postgres.relation import PostgresRelation

    return PostgresRelation(database, name) if "://" in database else DuckDBRelation(database, name)


@DATABASES
def test_a_table_holds_the_rows_in_the_order_of_a_release_and_appears_when_published(
    on_engine: OpenTable, database: str, request: pytest.FixtureRequest
) -> None:
    relation = on_engine(PLAIN)
    if relation.engine == "spark":
        pytest.skip("rows on Spark are written to folders")
    name = f"release {relation.engine} {secrets.token_hex(4)}"
    place = DatabaseTable(database, name)
    expected = values(released_form(PLAIN))
    with staged(relation, everything(relation), {}, place) as result:
        assert (result.rows, result.files) == (8, ())
        assert values(read(result.relation)) == expected
        assert result.relation.group(["plain"]).num_rows == 6
        if "://" in database or Path(database).exists():
            with pytest.raises(SourceError):
                stored(database, name).count()
        result.publish()
    assert values(read(stored(database, name))) == expected
    with pytest.raises(SourceError, match="overwrite"):
        check_destination(place)
    few = MemoryRelation(PLAIN.slice(0, 2))
    again = DatabaseTable(database, name, overwrite=True)
    with staged(few, everything(few), {}, again):
        pass
    assert stored(database, name).count() == 8
    with staged(few, everything(few), {}, again) as result:
        result.publish()
    assert stored(database, name).count() == 2


@pytest.mark.postgres
def test_a_table_of_the_same_database_shows_the_state_of_the_run(postgres_url: str) -> None:
    import psycopg

    from sfumato.engines.postgres.relation import PostgresRelation
    from sfumato.engines.write import write_table

    write_table(PLAIN, postgres_url, table_name="state", overwrite=True)
    relation = PostgresRelation(postgres_url, "state")
    with held_still(relation) as held:
        assert held.count() == 8
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("DELETE FROM state")
        with staged(held, everything(relation), {}, DatabaseTable(postgres_url, "state copy", overwrite=True)) as result:
            assert result.rows == 8
            result.publish()
    assert PostgresRelation(postgres_url, "state copy").count() == 8


def test_the_file_that_is_read_is_not_written(tmp_path: Path) -> None:
    from sfumato.engines.duckdb.relation import DuckDBRelation
    from sfumato.engines.write import write_table

    write_table(PLAIN, tmp_path / "people.duckdb", table_name="people")
    relation = DuckDBRelation(tmp_path / "people.duckdb")
    place = DatabaseTable(str(tmp_path / "people.duckdb"), "release")
    with pytest.raises(InputError, match="is read"):
        check_destination(place, relation)
    with pytest.raises(InputError, match="is read"), staged(relation, everything(relation), {}, place):
        pass
