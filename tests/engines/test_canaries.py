"""No failing path of any engine tells a value: not in the message, not in what hangs on the error, not on stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.core.errors import Cancelled, SfumatoError, SourceError, raise_alone, reported_as
from sfumato.data.microdata import Microdata
from sfumato.data.relation import COUNT
from sfumato.data.schema import Column, Schema
from sfumato.engines.class_queries import ROWS
from sfumato.engines.duckdb.relation import DuckDBRelation
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.plan import AggregateColumn, Group, Scan
from sfumato.engines.postgres.relation import PostgresRelation
from sfumato.engines.snapshots import held_still, one_state, read_once
from sfumato.engines.sources import read
from sfumato.engines.write import write_table
from sfumato.wire.keys import OwnerKey
from sfumato.workflow.protect import fingerprint
from tests.engines.tables import recoding_of

CANARY = "canary-7291"
TABLE = pa.table({"s": ["1", CANARY, "3"], "n": [1, 2, 3]})


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error and everything that hangs on it."""
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is not None:
            yield current
            waiting += [current.__cause__, current.__context__, *getattr(current, "exceptions", ())]


def assert_silent(error: BaseException) -> None:
    for each in chain(error):
        shown = [str(each), repr(each), repr(each.args), repr(getattr(each, "__notes__", ())), repr(vars(each))]
        shown += traceback.format_exception_only(each)
        assert not any(CANARY in text for text in shown), type(each)
        assert isinstance(each, SfumatoError), f"{type(each)} of a library hangs on the error"


def fields(relation: Any) -> tuple[Any, ...]:
    return tuple(relation.fields.values())


def recoded(relation: Any) -> Any:
    kind = relation.schema().field("s").type
    keys = pa.table({"s": pa.array(["1"]).cast(kind), COUNT: pa.array([3])})
    return relation.recode(recoding_of(keys, ["s"], ["s"], [0]), ["s", "n"])


def people(relation: Any) -> Microdata:
    return Microdata(relation, Schema(dataset="canaries", columns={name: Column() for name in relation.fields}))


def held(relation: Any) -> Any:
    with held_still(relation) as still:
        return still.group(["s"])


def whole_run(relation: Any) -> Any:
    with one_state(people(relation)) as still:
        return still.relation.group(["s"])


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "group": lambda relation: relation.group(["s"]),
    "grouped by unit": lambda relation: relation.group(["n"], unit="s"),
    "recode": recoded,
    "batches": lambda relation: list(relation.batches()),
    "run": lambda relation: relation.run(Group(Scan(ROWS, fields(relation)), ("s",), (AggregateColumn("n", "count"),))),
    "stream": lambda relation: list(relation.stream(Scan(ROWS, fields(relation)))),
    "snapshot": held,
    "one state": whole_run,
    "read once": lambda relation: read_once(people(relation)),
    "fingerprint": lambda relation: fingerprint(people(relation), OwnerKey.generate()),
}


def failing(operation: str, relation: Any) -> SfumatoError:
    with pytest.raises(SfumatoError) as caught:
        OPERATIONS[operation](relation)
    assert_silent(caught.value)
    return caught.value


# Without a database -------------------------------------------------------------------------------------------------------


def test_the_check_itself_finds_a_canary_that_hangs_on_an_error() -> None:
    with pytest.raises(SourceError) as caught:
        try:
            raise ValueError(CANARY)
        except ValueError:
            raise SourceError("hidden, not gone") from None
    with pytest.raises(AssertionError):
        assert_silent(caught.value)


def test_an_error_is_raised_without_what_led_to_it() -> None:
    def inner() -> Iterator[int]:
        with reported_as(lambda error: SourceError(type(error).__name__)):
            yield 1
            raise ValueError(CANARY)

    with pytest.raises(SourceError, match="ValueError") as caught:
        list(inner())
    assert_silent(caught.value)
    with pytest.raises(SourceError) as caught:
        try:
            raise ValueError(CANARY)
        except ValueError:
            raise_alone(SourceError("alone"))
    assert_silent(caught.value)


def test_our_own_errors_and_stops_pass() -> None:
    def lost(error: Exception) -> SfumatoError:
        return SourceError("lost")

    for kind in (Cancelled, KeyboardInterrupt, SystemExit):
        with pytest.raises(kind), reported_as(lost):
            raise kind("stop")


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_file_that_contradicts_its_schema(tmp_path: Path, engine: Any, ending: str) -> None:
    path = tmp_path / f"rows{ending}"
    if ending == ".csv":
        path.write_text(f"s,n\n1,2\n{CANARY},3\n")
    else:
        pq.write_table(TABLE, path)
    schema = {"dataset": "d", "columns": {"s": {"type": "integer"}, "n": {"type": "integer"}}}
    with pytest.raises(SfumatoError) as caught:
        read(path, schema, engine=engine).table()
    assert_silent(caught.value)


@pytest.mark.parametrize(
    "content", [b"s\n\xff" + CANARY.encode() + b"\n", b's\n"' + CANARY.encode() + b"\n", b"s\n" + CANARY.encode() + b",2,3\n"]
)
def test_a_damaged_text_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    for options in ({"encoding": "utf-8"}, {"engine": "duckdb"}):
        try:
            read(path, **options).table()
        except SfumatoError as error:
            assert_silent(error)


@pytest.mark.parametrize("frame", [[CANARY], {"s": CANARY}, pa.table({"s": [[CANARY]]}).column(0), {"s": [{CANARY: 1}, 2]}])
def test_things_that_are_no_tables(frame: Any) -> None:
    with pytest.raises(SfumatoError) as caught:
        read(frame)
    assert_silent(caught.value)


def test_numbers_beyond_64_bits() -> None:
    number = 18_446_744_073_709_551_557
    with pytest.raises(SfumatoError) as caught:
        MemoryRelation(pa.table({"s": pa.array([number], pa.uint64())})).group(["s"])
    assert all(str(number) not in str(each) + repr(each) for each in chain(caught.value))
    assert all(isinstance(each, SfumatoError) for each in chain(caught.value))


# DuckDB -------------------------------------------------------------------------------------------------------------------


def _duckdb_cast(folder: Path) -> DuckDBRelation:
    pq.write_table(TABLE, folder / "rows.parquet")
    return DuckDBRelation(folder / "rows.parquet", types={"s": "integer"})


def _duckdb_view(folder: Path) -> DuckDBRelation:
    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT '{CANARY}' AS s, 1 AS n")
        connection.execute("CREATE VIEW v AS SELECT error(s) AS s, n FROM t")
    return DuckDBRelation(folder / "rows.duckdb", "v")


def _duckdb_gone(folder: Path) -> DuckDBRelation:
    path = folder / f"{CANARY[:6]}.parquet"
    pq.write_table(TABLE, path)
    relation = DuckDBRelation(path)
    _ = relation.fields
    path.write_bytes(f"PAR1{CANARY}".encode())
    return relation


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("fault", [_duckdb_cast, _duckdb_view, _duckdb_gone])
def test_duckdb(tmp_path: Path, fault: Any, operation: str, caplog: Any, capfd: Any) -> None:
    failing(operation, fault(tmp_path))
    assert CANARY not in caplog.text + "".join(capfd.readouterr())


def test_duckdb_rejecting_what_it_wrote(tmp_path: Path) -> None:
    def confirm(table: pa.Table) -> None:
        raise ValueError(table.column("s")[1].as_py())

    with pytest.raises(SfumatoError) as caught:
        write_table(TABLE, tmp_path / "out.duckdb", confirm=confirm)
    assert_silent(caught.value)
    assert list(tmp_path.iterdir()) == []


# PostgreSQL ---------------------------------------------------------------------------------------------------------------

_FAULTS = {
    "cast": f"CREATE TABLE {{0}} AS SELECT '{CANARY}' AS s, 1 AS n",
    "division": f"CREATE TABLE {{0}}_t AS SELECT '{CANARY}' AS s, 0 AS n; "
    "CREATE VIEW {0} AS SELECT s || (1 / n) AS s, n FROM {0}_t",
    "function": f"CREATE TABLE {{0}}_t AS SELECT '{CANARY}' AS s, 0 AS n; "
    "CREATE OR REPLACE FUNCTION fail(v TEXT) RETURNS TEXT LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'no %', v USING DETAIL = v, HINT = v; END $$; "
    "CREATE VIEW {0} AS SELECT fail(s) AS s, n FROM {0}_t",
    "timeout": f"CREATE TABLE {{0}}_t AS SELECT '{CANARY}' AS s, 0 AS n; "
    "CREATE VIEW {0} AS SELECT s || CAST(pg_sleep(5) AS TEXT) AS s, n FROM {0}_t",
    "dropped": f"CREATE TABLE {{0}} AS SELECT '{CANARY}' AS s, 1 AS n",
    "denied": f"CREATE TABLE {{0}} AS SELECT '{CANARY}' AS s, 1 AS n",
}


@pytest.fixture(scope="module")
def faulty(postgres_url: str) -> Iterator[Callable[[str], PostgresRelation]]:
    def execute(statement: str) -> None:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(statement.encode())

    for fault, statement in _FAULTS.items():
        execute(statement.format(f"canary_{fault}"))
    execute("DO $$ BEGIN CREATE ROLE hasty LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    execute("ALTER ROLE hasty SET statement_timeout = '100ms'")
    execute("GRANT SELECT ON canary_timeout TO hasty")

    def open_faulty(fault: str) -> PostgresRelation:
        url = postgres_url.replace("postgres:@", "hasty:@") if fault in ("timeout", "denied") else postgres_url
        relation = PostgresRelation(url, f"canary_{fault}", types={"s": "integer"} if fault == "cast" else None)
        _ = relation.fields
        if fault == "dropped":
            relation.__dict__["_found"] = (relation._found[0], ("public", "canary_gone"))
        return relation

    yield open_faulty
    execute("; ".join(f"DROP TABLE IF EXISTS canary_{f}_t CASCADE" for f in ("division", "function", "timeout")))
    execute("; ".join(f"DROP TABLE canary_{f}" for f in ("cast", "dropped", "denied")))


@pytest.mark.postgres
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("fault", _FAULTS)
def test_postgres(faulty: Callable[[str], PostgresRelation], fault: str, operation: str, caplog: Any, capfd: Any) -> None:
    failing(operation, faulty(fault))
    assert CANARY not in caplog.text + "".join(capfd.readouterr())


@pytest.mark.postgres
def test_postgres_rejecting_what_was_written(postgres_url: str) -> None:
    def confirm(table: pa.Table) -> None:
        raise ValueError(table.column("s")[1].as_py())

    with pytest.raises(SfumatoError) as caught:
        write_table(TABLE, postgres_url, table_name="canary_out", confirm=confirm)
    assert_silent(caught.value)
    with pytest.raises(SourceError, match="no table"):
        PostgresRelation(postgres_url, "canary_out").count()


@pytest.mark.postgres
def test_a_failed_question_leaves_the_run_usable(faulty: Callable[[str], PostgresRelation]) -> None:
    with held_still(faulty("division")) as still:
        for _ in range(2):
            with pytest.raises(SourceError, match="22012"):
                still.group(["s"])
        assert still.group(["n"]).num_rows == 1
        half_read = still.batches(["n"])
        next(half_read)
        with pytest.raises(SourceError, match="still being read"):
            still.count()
        half_read.close()
        assert still.count() == 1


# Spark --------------------------------------------------------------------------------------------------------------------


def _failfast_csv(spark: Any, folder: Path) -> Any:
    (folder / "rows.csv").write_text(f"s,n\n1,1\n{CANARY},2\n")
    reader = spark.read.option("mode", "FAILFAST").option("header", True).schema("s int, n int")
    return reader.csv(str(folder / "rows.csv"))


def _failfast_json(spark: Any, folder: Path) -> Any:
    (folder / "rows.json").write_text(json.dumps({"s": 1, "n": 1}) + "\n" + f'{{"s": "{CANARY}", "n": 2}}\n')
    return spark.read.option("mode", "FAILFAST").schema("s int, n int").json(str(folder / "rows.json"))


def _cast(spark: Any, folder: Path) -> Any:
    pq.write_table(TABLE, folder / "rows.parquet")
    return spark.read.parquet(str(folder / "rows.parquet")).selectExpr("cast(s AS int) AS s", "n")


def _function(spark: Any, folder: Path) -> Any:
    from pyspark.sql.functions import udf

    def fail(value: str) -> str:
        raise ValueError(value)

    pq.write_table(TABLE, folder / "rows.parquet")
    frame = spark.read.parquet(str(folder / "rows.parquet"))
    return frame.withColumn("s", udf(fail, "string")("s"))


def _gone(spark: Any, folder: Path) -> Any:
    path = folder / CANARY
    path.mkdir()
    pq.write_table(TABLE, path / "rows.parquet")
    frame = spark.read.parquet(str(path / "rows.parquet"))
    (path / "rows.parquet").unlink()
    return frame


@pytest.mark.spark
@pytest.mark.parametrize("operation", ["recode", "batches", "snapshot"])
@pytest.mark.parametrize("fault", [_failfast_csv, _failfast_json, _cast, _function, _gone])
def test_spark(spark: Any, tmp_path: Path, fault: Any, operation: str) -> None:
    from sfumato.engines.spark.relation import SparkRelation

    with pytest.raises(SfumatoError) as caught:  # behind a Connect server, opening the frame may fail already
        OPERATIONS[operation](SparkRelation(fault(spark, tmp_path)))
    assert_silent(caught.value)


_QUIET = """
import sys
from pathlib import Path
from tests.engines.test_canaries import CANARY, _cast, _failfast_csv, _function, failing
from tests.services import spark_session
from sfumato.engines.spark.relation import SparkRelation
folder = Path(sys.argv[1])
with spark_session() as spark:
    spark.sparkContext.setLogLevel("WARN")
    for fault in (_failfast_csv, _cast, _function):
        failing("group", SparkRelation(fault(spark, folder)))
    print("OURS ARE ASKED", file=sys.stderr, flush=True)
    try:
        _failfast_csv(spark, folder).collect()
    except Exception:
        pass
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("SFUMATO_SPARK") == "connect", reason="a Connect server writes its own log")
def test_spark_logs_no_value_of_our_questions_and_logs_the_users_own_again(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _QUIET, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    ours, asked, theirs = done.stderr.partition("OURS ARE ASKED")
    assert asked
    assert CANARY not in ours + done.stdout
    assert CANARY in theirs, "outside our questions the session logs as its owner wants"
