"""A question that takes too long, or is stopped, ends in the engine as well; it stays charged and shows no value."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError, SourceError, TimedOut
from sfumato.engines.time_limits import statement_seconds, statements_within, stopped_in_time
from sfumato.engines.write import write_table

SCHEMA = {
    "dataset": "visits",
    "unit": "record",
    "columns": {"city": {"type": "string", "domain": ["Bonn", "Ulm"]}, "ward": {"type": "integer", "bounds": [0, 9]}},
}
ROWS = pa.table({"city": ["Bonn"] * 300 + ["Ulm"] * 500, "ward": [1, 2] * 400})
QUERY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
#: Long enough that nobody waits for it, and an end all the same.
ENDLESS = 10**12


def spent(session: sf.Session) -> float:
    left = session.remaining()
    assert left is not None
    return 1.0 - float(left.epsilon or 0)


def opened(data: sf.Microdata, tmp_path: Path, timeout: float | None) -> sf.Session:
    return sf.Session(data, ledger=tmp_path / "ledger.db", budget=sf.PureDP(1), digest=False, timeout=timeout)


def check_late(session: sf.Session, at_work: Callable[[], int]) -> None:
    begin = time.monotonic()
    with pytest.raises(TimedOut, match="did not answer within 1 s.*stays charged.*may depend on the data") as raised:
        session.sql(QUERY, epsilon=0.5)
    assert time.monotonic() - begin < 60
    assert not any(city in str(raised.value) for city in ("Bonn", "Ulm"))
    assert raised.value.__cause__ is None and raised.value.__context__ is None
    assert spent(session) == 0.5
    assert ended(at_work)


def ended(at_work: Callable[[], int]) -> bool:
    """Whether nothing is at work any more, in a moment."""
    for _ in range(100):
        if at_work() == 0:
            return True
        time.sleep(0.1)
    return False


@contextmanager
def pressed(at_work: Callable[[], int]) -> Iterator[None]:
    """Ctrl-C as soon as the engine is at work."""

    def press() -> None:
        for _ in range(300):
            if at_work() > 0:
                time.sleep(0.3)
                break
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
    thread = threading.Thread(target=press)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)


# DuckDB, also behind tables in memory


@pytest.fixture
def slow_file(tmp_path: Path) -> sf.Microdata:
    path = tmp_path / "visits.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"CREATE VIEW visits AS SELECT CASE WHEN hash(range) % 2 = 0 THEN 'Bonn' ELSE 'Ulm' END AS city, "
            f"CAST(range % 9 AS BIGINT) AS ward FROM range({ENDLESS})"
        )
    return sf.read(path, SCHEMA, table="visits")


def test_duckdb_is_interrupted_when_time_is_over(slow_file: sf.Microdata, tmp_path: Path) -> None:
    check_late(opened(slow_file, tmp_path, 1), lambda: 0)


def test_ctrl_c_ends_a_question_to_duckdb_which_stays_charged(slow_file: sf.Microdata, tmp_path: Path) -> None:
    session = opened(slow_file, tmp_path, None)
    with pressed(lambda: 1):
        session.sql(QUERY, epsilon=0.5)
    assert spent(session) == 0.5


def test_rows_that_are_drawn_in_this_process_are_late_as_well(tmp_path: Path) -> None:
    path = tmp_path / "visits.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"CREATE VIEW visits AS SELECT 'Bonn' AS city, CAST(range % 9 AS BIGINT) AS ward FROM range({ENDLESS})"
        )
    schema = {**SCHEMA, "columns": {**SCHEMA["columns"], "ward": {"role": "unit", "type": "integer"}}}  # type: ignore[dict-item]
    del schema["unit"]
    data = sf.read(path, schema, table="visits")
    session = sf.Session(data, budget=sf.PureDP(1), max_rows=1, max_groups=1, timeout=1)
    with pytest.raises(TimedOut, match="stays charged"):
        session.sql(QUERY, epsilon=0.5)
    assert spent(session) == 0.5


def test_a_batch_that_is_late_is_charged_as_a_whole(slow_file: sf.Microdata, tmp_path: Path) -> None:
    session = opened(slow_file, tmp_path, 1)
    with pytest.raises(TimedOut):
        session.sql_batch([QUERY, "SELECT COUNT(*) AS n FROM visits"], epsilon=0.25)
    assert spent(session) == 0.5


def test_in_time_the_answer_is_the_same() -> None:
    tables = [sf.Session(sf.read(ROWS, SCHEMA), budget=sf.PureDP(1), seed=3, timeout=limit) for limit in (None, 60)]
    first, second = (session.sql(QUERY, epsilon=0.5).table for session in tables)
    assert first.equals(second)


# PostgreSQL


@pytest.fixture
def slow_table(postgres_url: str) -> Iterator[sf.Microdata]:
    """A view that takes half a minute before its first row."""
    write_table(ROWS, postgres_url, table_name="quick_visits", overwrite=True)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE OR REPLACE VIEW slow_visits AS SELECT city, ward FROM quick_visits, pg_sleep(30)")
        yield sf.read(postgres_url, SCHEMA, table="slow_visits")
        connection.execute("DROP VIEW slow_visits")


def asking(url: str) -> Callable[[], int]:
    def active() -> int:
        with psycopg.connect(url, autocommit=True) as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sfumato' AND state = 'active' "
                "AND wait_event = 'PgSleep'"
            ).fetchone()
        return int(row[0]) if row else 0

    return active


@pytest.mark.postgres
def test_postgres_stops_a_statement_when_time_is_over(slow_table: sf.Microdata, postgres_url: str, tmp_path: Path) -> None:
    check_late(opened(slow_table, tmp_path, 1), asking(postgres_url))


@pytest.mark.postgres
def test_ctrl_c_cancels_the_statement_in_postgres(slow_table: sf.Microdata, postgres_url: str, tmp_path: Path) -> None:
    session = opened(slow_table, tmp_path, None)
    with pressed(asking(postgres_url)):
        session.sql(QUERY, epsilon=0.5)
    assert ended(asking(postgres_url))
    assert spent(session) == 0.5


@pytest.mark.postgres
def test_a_backend_that_is_terminated_leaves_the_question_charged(
    slow_table: sf.Microdata, postgres_url: str, tmp_path: Path
) -> None:
    session = opened(slow_table, tmp_path, None)

    def terminate() -> None:
        for _ in range(300):
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                ends = connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sfumato' "
                    "AND state = 'active' AND wait_event = 'PgSleep'"
                ).fetchall()
            if ends:
                return
            time.sleep(0.1)

    thread = threading.Thread(target=terminate)
    thread.start()
    with pytest.raises(SourceError, match="stays charged") as raised:
        session.sql(QUERY, epsilon=0.5)
    thread.join()
    assert "Bonn" not in str(raised.value) and "://" not in str(raised.value)
    assert spent(session) == 0.5


@pytest.mark.postgres
def test_a_shorter_limit_of_the_server_stays_in_force(slow_table: sf.Microdata, postgres_url: str, tmp_path: Path) -> None:
    limited = f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-c%20statement_timeout%3D500"
    session = opened(sf.read(limited, SCHEMA, table="slow_visits"), tmp_path, 20)
    begin = time.monotonic()
    with pytest.raises(SourceError, match="stays charged"):
        session.sql(QUERY, epsilon=0.5)
    assert time.monotonic() - begin < 15
    assert spent(session) == 0.5


# Spark


def endless(spark: Any) -> sf.Microdata:
    frame = spark.range(ENDLESS).selectExpr("IF(hash(id) % 2 = 0, 'Bonn', 'Ulm') AS city", "id % 9 AS ward")
    return sf.read(frame, SCHEMA)


def jobs(spark: Any) -> Callable[[], int]:
    if getattr(spark, "_jsc", None) is None:
        pytest.skip("a Connect client does not see the jobs of its server")
    return lambda: len(spark.sparkContext.statusTracker().getActiveJobsIds())


@pytest.mark.spark
def test_spark_cancels_its_jobs_when_time_is_over(spark: Any, tmp_path: Path) -> None:
    check_late(opened(endless(spark), tmp_path, 1), jobs(spark))
    answer = sf.Session(
        sf.read(spark.range(100).selectExpr("'Ulm' AS city", "id % 9 AS ward"), SCHEMA), budget=sf.PureDP(1), timeout=60
    )
    assert answer.sql(QUERY, epsilon=0.5).table.num_rows == 2  # the next question is not affected


@pytest.mark.spark
def test_ctrl_c_cancels_the_jobs_in_spark(spark: Any, tmp_path: Path) -> None:
    session = opened(endless(spark), tmp_path, None)
    with pressed(jobs(spark)):
        session.sql(QUERY, epsilon=0.5)
    assert ended(jobs(spark))
    assert spent(session) == 0.5


# The limit itself


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), "30", True, 10**9])
def test_a_limit_is_a_number_of_seconds(limit: Any) -> None:
    with pytest.raises(ParameterError, match="timeout"):
        sf.Session(sf.read(ROWS, SCHEMA), budget=sf.PureDP(1), timeout=limit)


def test_a_limit_holds_inside_its_block_alone() -> None:
    assert statement_seconds() is None
    with statements_within(5):
        assert statement_seconds() == 5
        with statements_within(None):
            assert statement_seconds() == 5
    assert statement_seconds() is None


def test_an_answer_that_comes_too_late_is_refused_and_what_runs_is_interrupted_again() -> None:
    interrupted: list[float] = []
    with pytest.raises(TimedOut), statements_within(0.1), stopped_in_time(lambda: interrupted.append(time.monotonic()), "it"):
        time.sleep(0.8)
    assert len(interrupted) > 1
    before = len(interrupted)
    time.sleep(0.5)
    assert len(interrupted) == before
