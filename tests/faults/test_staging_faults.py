"""Rows that an engine writes, with the disk full, the writer killed or the connection cut: nothing is published, nothing is left,
and no message has a value of a record."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.core.errors import Cancelled, SfumatoError, SourceError
from sfumato.engines.class_queries import ROWS
from sfumato.engines.duckdb.relation import DuckDBRelation
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.plan import Scan
from sfumato.engines.staging.destinations import DatabaseTable, ParquetFolder, staged
from tests.faults.test_disk_and_kill import ROOT, files_no_longer_than

CANARY = "Zylberquist"
PEOPLE = pa.table({"name": [f"{CANARY} {number:06d}" for number in range(20_000)], "age": list(range(20_000))})


def scan(relation: Any) -> Scan:
    return Scan(ROWS, tuple(relation.fields.values()))


@pytest.fixture
def people(tmp_path: Path) -> Iterator[DuckDBRelation]:
    (tmp_path / "source").mkdir()
    pq.write_table(PEOPLE, tmp_path / "source" / "people.parquet")
    yield DuckDBRelation(tmp_path / "source" / "people.parquet")


@pytest.mark.parametrize("limit", [0, 3, 5_000, 50_000])
@pytest.mark.parametrize("place", ["out", "out.duckdb"])
def test_a_full_disk_leaves_nothing(people: DuckDBRelation, tmp_path: Path, limit: int, place: str) -> None:
    folder = tmp_path / "place"
    folder.mkdir()
    target = ParquetFolder(folder / place) if place == "out" else DatabaseTable(str(folder / place))
    people.count()  # what it needs is open
    with files_no_longer_than(limit), pytest.raises(SfumatoError) as raised:
        with staged(people, scan(people), {}, target) as result:
            result.publish()
    assert CANARY not in str(raised.value) and raised.value.__context__ is None
    assert str(folder / place) in str(raised.value) and "Nothing was published" in str(raised.value)
    assert list(folder.iterdir()) == []


def test_who_cancels_leaves_nothing(people: DuckDBRelation, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()

    def cancel(phase: str, done: int, total: int) -> None:
        raise Cancelled("stopped")

    with pytest.raises(Cancelled), staged(people, scan(people), {}, ParquetFolder(tmp_path / "place" / "out"), progress=cancel):
        pass
    assert list((tmp_path / "place").iterdir()) == []


WRITER = """
import sys, time
from pathlib import Path
from sfumato.engines.class_queries import ROWS
from sfumato.engines.staging.destinations import ParquetFolder, staged
from sfumato.engines.duckdb.relation import DuckDBRelation
from sfumato.engines.plan import Scan

people = DuckDBRelation(Path(sys.argv[1]))
with staged(people, Scan(ROWS, tuple(people.fields.values())), {}, ParquetFolder(Path(sys.argv[2]))):
    print("staged", flush=True)
    time.sleep(120)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["INT", "TERM", "KILL"])
def test_a_writer_that_is_stopped_leaves_nothing_or_what_the_next_one_removes(
    people: DuckDBRelation, tmp_path: Path, name: str
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    stop = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
    process = subprocess.Popen(
        [sys.executable, "-c", stop + WRITER, str(tmp_path / "source" / "people.parquet"), str(place / "out")],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline().strip() == "staged"
    (hidden,) = place.iterdir()
    process.send_signal(getattr(signal, f"SIG{name}"))
    process.communicate(timeout=60)
    assert [path.name for path in place.iterdir()] == ([hidden.name] if name == "KILL" else [])
    few = MemoryRelation(PEOPLE.slice(0, 3))
    with staged(few, scan(few), {}, ParquetFolder(place / "out")) as result:
        assert not hidden.exists()
        result.publish()
    assert [path.name for path in place.iterdir()] == ["out"]


@pytest.mark.postgres
def test_a_terminated_backend_leaves_no_table(people: DuckDBRelation, postgres_url: str) -> None:
    import psycopg

    with pytest.raises(SourceError) as raised, staged(people, scan(people), {}, DatabaseTable(postgres_url, "cut")) as result:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'sfumato' AND state = 'idle in transaction'"
            )
        result.publish()
    assert CANARY not in str(raised.value) and "Nothing was published" in str(raised.value)
    assert tables(postgres_url) == []


@pytest.mark.postgres
def test_a_statement_that_takes_too_long_leaves_no_table(people: DuckDBRelation, postgres_url: str) -> None:
    impatient = f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-c%20statement_timeout%3D1"
    with pytest.raises(SourceError) as raised, staged(people, scan(people), {}, DatabaseTable(impatient, "late")):
        pass
    assert CANARY not in str(raised.value)
    assert tables(postgres_url) == []


def tables(url: str) -> list[str]:
    import psycopg

    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT relname FROM pg_class WHERE relname IN ('cut', 'late') OR relname LIKE 'sfumato%'")
        return [name for (name,) in rows.fetchall()]


def test_two_writers_into_one_place_publish_one_whole_folder(tmp_path: Path) -> None:
    """Both stage at the same time, and neither removes what the other one holds; the second finds the place taken."""
    tables_of = [MemoryRelation(PEOPLE.slice(0, 10)), MemoryRelation(PEOPLE.slice(0, 20))]
    both = threading.Barrier(2)
    outcomes: list[int | str] = []

    def work(relation: MemoryRelation) -> None:
        try:
            with staged(relation, scan(relation), {}, ParquetFolder(tmp_path / "out")) as result:
                both.wait(60)
                result.publish()
            outcomes.append(result.rows)
        except SfumatoError:
            outcomes.append("refused")

    threads = [threading.Thread(target=work, args=(relation,)) for relation in tables_of]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (rows,) = (outcome for outcome in outcomes if outcome != "refused")
    assert outcomes.count("refused") == 1
    assert pq.read_table(tmp_path / "out").num_rows == rows
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
