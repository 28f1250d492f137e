"""A run is about one state of a table, whoever writes to it meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import SourceError, Unsupported
from sfumato.data.relation import COUNT
from sfumato.engines.snapshots import held_still
from sfumato.engines.write import write_table
from sfumato.wire.keys import OwnerKey
from sfumato.workflow.protect import fingerprint

_SCHEMA = {
    "dataset": "incomes",
    "columns": {
        "age": {"role": "quasi", "type": "integer", "hierarchy": {"intervals": [10, 40]}},
        "city": {"role": "quasi", "type": "string"},
        "income": {"role": "sensitive", "type": "integer"},
    },
}
ROWS = 2_000


def table(shift: int = 0) -> pa.Table:
    rows = range(ROWS)
    return pa.table(
        {
            "age": [20 + row % 40 for row in rows],
            "city": ["Ulm" if row % 3 else "Bonn" for row in rows],
            "income": [1_000_000 * (shift + 1) + row for row in rows],
        }
    )


def fingerprint_of(rows: pa.Table, key: OwnerKey) -> str | None:
    return fingerprint(sf.read(rows, _SCHEMA), key)


def published(data: Any, change: Callable[[], None], key: OwnerKey, **options: Any) -> sf.Release:
    """Protect, while somebody changes the table before each step of the work."""

    def interfering(phase: str, done: int, total: int | None) -> None:
        if done == 0:
            change()

    return sf.protect(data, [sf.KAnonymity(5), sf.TCloseness(0.9, "income")], key=key, progress=interfering, **options)


def assert_one_state(release: sf.Release, key: OwnerKey) -> None:
    """All incomes are of the table whose fingerprint the certificate shows."""
    incomes = set(release.data.column("income").to_pylist())
    shift = next(iter(incomes)) // 1_000_000 - 1
    known = table(shift)
    assert incomes <= set(known.column("income").to_pylist())
    assert release.certificate.fingerprint == fingerprint_of(known, key)


@pytest.mark.postgres
def test_postgres_is_read_in_one_transaction(postgres_url: str, tmp_path: Path) -> None:
    write_table(table(), postgres_url, table_name="moving", overwrite=True)
    changes = []

    def change() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("UPDATE moving SET income = income + 1000000, age = age + 1")
        changes.append(1)

    key = OwnerKey.generate()
    release = published(sf.read(postgres_url, _SCHEMA, table="moving"), change, key)
    assert len(changes) > 2
    assert_one_state(release, key)
    # saved later: the certificate, the card and the figures are still about the state that was read
    release.save(tmp_path / "out")
    assert sf.verify(tmp_path / "out", original=table()).holds
    original = release.content.references.original
    assert original is not None and original.relation.group(["age"]).column(COUNT).to_pylist()
    with pytest.raises(SourceError, match="run that read this table is over"):
        original.table()


@pytest.mark.postgres
def test_a_population_on_postgres_is_one_state_too(postgres_url: str, tmp_path: Path) -> None:
    write_table(table(), postgres_url, table_name="everybody", overwrite=True)

    def change() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("UPDATE everybody SET age = age + 1")

    key = OwnerKey.generate()
    people = sf.read(table().slice(0, 500), _SCHEMA)
    register = sf.read(postgres_url, _SCHEMA, table="everybody")

    def interfering(phase: str, done: int, total: int | None) -> None:
        if done == 0:
            change()

    release = sf.protect(people, [sf.KMap(5)], population=register, key=key, progress=interfering)
    assert release.content.references.population_digest == fingerprint_of(table(), key)
    release.save(tmp_path / "out")


def saved_with_a_public_population(register: Any, folder: Path) -> None:
    """The tree of a public population is published: it is asked for when the run is over."""
    schema = {**_SCHEMA, "columns": {**_SCHEMA["columns"], "city": {"role": "quasi", "hierarchy": {"frequency": [1, 2]}}}}
    for name, options in {"class": {}, "mask": {"method": sf.AdditiveNoise(0.1, columns=("income",))}}.items():
        data = sf.read(table().slice(0, 500), schema)
        made = sf.protect(data, [sf.KMap(5)], population=register, population_public=True, **options)
        made.save(folder / name)
        assert (folder / name / "public" / "hierarchy-1.csv").exists() == (name == "class")  # a mask generalises nothing
        assert sf.verify(folder / name, population=table()).holds


def test_a_public_population_in_a_duckdb_file_is_saved(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "everybody.parquet")
    saved_with_a_public_population(sf.read(tmp_path / "everybody.parquet", engine="duckdb"), tmp_path)


@pytest.mark.postgres
def test_a_public_population_on_postgres_is_saved(postgres_url: str, tmp_path: Path) -> None:
    write_table(table(), postgres_url, table_name="everybody", overwrite=True)
    saved_with_a_public_population(sf.read(postgres_url, table="everybody"), tmp_path)


@pytest.mark.postgres
def test_questions_of_a_run_are_read_only(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS run_written (a INT)")
        connection.execute(
            "CREATE OR REPLACE FUNCTION writes() RETURNS INT LANGUAGE sql AS 'INSERT INTO run_written VALUES (1) RETURNING a'"
        )
        connection.execute("CREATE OR REPLACE VIEW writing AS SELECT writes() AS a")
    with held_still(sf.read(postgres_url, table="writing").relation) as held:
        for _ in range(2):
            with pytest.raises(SourceError, match="25006"):
                held.group(["a"])


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".duckdb"])
def test_a_file_that_changes_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows{ending}"
    shifts = iter(range(100))

    def change() -> None:
        rows = table(next(shifts))
        if ending == ".duckdb":
            with duckdb.connect(str(path)) as connection:
                connection.register("given", rows)
                connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM given")
        elif ending == ".csv":
            import pyarrow.csv as pa_csv

            pa_csv.write_csv(rows, path)
        else:
            pq.write_table(rows, path)

    change()
    people = sf.read(path, _SCHEMA, engine="duckdb")
    with pytest.raises(SourceError, match="changed while it was read"):
        published(people, change, OwnerKey.generate())
    key = OwnerKey.generate()
    assert_one_state(published(people, lambda: None, key), key)


def test_a_ledger_knows_nothing_of_a_refused_run(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(table(), path)
    with pytest.raises(SourceError, match="changed while it was read"):
        published(
            sf.read(path, _SCHEMA, engine="duckdb"),
            lambda: pq.write_table(table(1), path),
            OwnerKey.generate(),
            ledger=tmp_path / "ledger.db",
        )
    with sf.Ledger.open(tmp_path / "ledger.db") as ledger:
        assert not list(ledger.releases("incomes"))


@pytest.mark.spark
def test_spark_is_computed_once(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "rows")
    shifts = iter(range(100))

    def change() -> None:
        target = tmp_path / "next.parquet"
        pq.write_table(table(next(shifts)), target)
        (tmp_path / "rows").mkdir(exist_ok=True)
        target.replace(tmp_path / "rows" / "part.parquet")
        spark.catalog.refreshByPath(path)

    change()
    key = OwnerKey.generate()
    release = published(sf.read(spark.read.parquet(path).filter("age > 0"), _SCHEMA), change, key)
    assert next(shifts) > 2
    assert_one_state(release, key)


@pytest.mark.spark
def test_frames_that_draw_are_refused(spark: Any) -> None:
    from pyspark.sql import functions as f
    from pyspark.sql.functions import udf

    frame = spark.range(10)
    frame.withColumn("r", f.rand()).createOrReplaceTempView("drawing")
    drawn = {
        "rand": frame.withColumn("r", f.rand()),
        "a seed does not help": frame.withColumn("r", f.rand(3)),
        "filter": frame.filter(f.rand() > 0.5),
        "uuid": frame.withColumn("u", f.expr("uuid()")),
        "number": frame.withColumn("m", f.monotonically_increasing_id()),
        "function": frame.withColumn("n", udf(lambda value: value, "int").asNondeterministic()("id")),
        "view": spark.table("drawing"),
        "subquery": spark.sql("SELECT id, (SELECT max(r) FROM drawing) AS m FROM range(3)"),
    }
    spark.udf.register("drawing_too", udf(lambda value: value, "int").asNondeterministic())
    drawn["registered"] = spark.sql("SELECT drawing_too(id) AS n, id FROM range(3)")
    for what, each in drawn.items():
        with pytest.raises(Unsupported, match="localCheckpoint"):
            sf.read(each)
            pytest.fail(what)
    with pytest.raises(Unsupported, match="localCheckpoint"):
        sf.read("drawing", engine="spark", session=spark)
    assert len(sf.read(drawn["rand"].localCheckpoint())) == 10
    steady = frame.groupBy((frame.id % 3).alias("g")).agg(f.sum("id"), f.count("*")).filter("g > 0")
    assert len(sf.read(steady.select("g", "sum(id)"))) == 2
