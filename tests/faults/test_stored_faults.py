"""Publishing without rows when the table or its server does not hold still: the state of the run, or nothing at all, and never a
value of a record in a message."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import SourceError, Unsupported
from sfumato.engines.digests.row_digest import table_sums
from sfumato.engines.write import write_table
from tests.workflow.people import schema, table

ROWS = 800
PROMISE, SEARCH = [sf.KAnonymity(5)], sf.Lattice(suppression=0.05)
CANARY = "person 0"


def other_people() -> pa.Table:
    """The same cells, and other visits."""
    rows = table(ROWS)
    return rows.set_column(4, "visits", pa.array([7] * ROWS, pa.int64()))


def content(folder: Path) -> str:
    parts = sorted((folder / "public" / "data").iterdir())
    return table_sums(pa.concat_tables([pq.read_table(part) for part in parts])).content_digest()


def expected() -> str:
    return table_sums(sf.protect(sf.read(table(ROWS), schema()), PROMISE, SEARCH).data).content_digest()


def when(phase: str, change: Callable[[], None]) -> Callable[[str, int, int | None], None]:
    """Progress that changes something once, when a stage begins."""
    waiting = [change]

    def told(now: str, done: int, total: int | None) -> None:
        if now == phase and waiting:
            waiting.pop()()

    return told


def nothing_left(place: Path, error: BaseException) -> None:
    assert CANARY not in str(error) and error.__context__ is None
    assert list(place.iterdir()) == []


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


@pytest.mark.parametrize("phase", ["writing rows", "grouping what was written"])
def test_a_file_that_is_replaced_between_the_steps_publishes_nothing(phase: str, tmp_path: Path, place: Path) -> None:
    source = tmp_path / "people.parquet"
    pq.write_table(table(ROWS), source)
    people = sf.read(source, schema(), engine="duckdb")
    change = when(phase, lambda: pq.write_table(other_people(), source))
    with pytest.raises(SourceError, match="changed while it was read") as raised:
        sf.protect(people, PROMISE, SEARCH, destination=place / "out", progress=change)
    nothing_left(place, raised.value)


@pytest.mark.spark
@pytest.mark.parametrize("phase", ["writing rows", "grouping what was written"])
def test_a_file_of_spark_that_is_replaced_between_the_steps_publishes_nothing(
    phase: str, spark: Any, tmp_path: Path, place: Path
) -> None:
    source = tmp_path / "people.parquet"
    pq.write_table(table(ROWS), source)
    people = sf.read(spark.read.parquet(str(source)), schema())
    change = when(phase, lambda: pq.write_table(other_people(), source))
    if os.environ.get("SFUMATO_SPARK") == "connect":  # computed once there, since its files are out of reach
        sf.protect(people, PROMISE, SEARCH, destination=place / "out", progress=change)
        assert content(place / "out") == expected()
        return
    with pytest.raises(SourceError, match="changed while it was being read") as raised:
        sf.protect(people, PROMISE, SEARCH, destination=place / "out", progress=change)
    nothing_left(place, raised.value)


@pytest.mark.spark
def test_what_spark_computes_from_files_is_computed_once_whatever_becomes_of_them(
    spark: Any, tmp_path: Path, place: Path
) -> None:
    source = tmp_path / "people.parquet"
    pq.write_table(table(ROWS), source)
    people = sf.read(spark.read.parquet(str(source)).filter("age >= 0"), schema())
    change = when("writing rows", lambda: pq.write_table(other_people(), source))
    sf.protect(people, PROMISE, SEARCH, destination=place / "out", progress=change)
    assert content(place / "out") == expected()


@pytest.mark.spark
def test_a_column_that_is_drawn_anew_is_refused_before_the_work(spark: Any, tmp_path: Path, place: Path) -> None:
    from pyspark.sql import functions as f

    pq.write_table(table(ROWS), tmp_path / "people.parquet")
    frame = spark.read.parquet(str(tmp_path / "people.parquet")).withColumn("visits", f.floor(4 * f.rand()))
    with pytest.raises(Unsupported, match="may have other rows each time") as raised:
        sf.protect(frame, PROMISE, SEARCH, schema=schema(), destination=place / "out")
    nothing_left(place, raised.value)


@pytest.mark.postgres
def test_an_update_between_the_steps_is_not_seen(postgres_url: str, place: Path) -> None:
    write_table(table(ROWS), postgres_url, table_name="moving_people", overwrite=True)

    def change() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("UPDATE moving_people SET visits = 7")

    people = sf.read(postgres_url, schema(), table="moving_people")
    sf.protect(people, PROMISE, SEARCH, destination=place / "out", progress=when("writing rows", change))
    assert content(place / "out") == expected()


@pytest.mark.postgres
def test_a_statement_that_takes_more_than_a_second_publishes_nothing(postgres_url: str, place: Path) -> None:
    write_table(table(ROWS), postgres_url, table_name="waiting_people", overwrite=True)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE VIEW slow_people AS SELECT name, age, zip, sex, visits, disease FROM waiting_people "
            "WHERE pg_sleep(0.01) IS NOT NULL"
        )
    impatient = f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-c%20statement_timeout%3D1000"
    with pytest.raises(SourceError, match="57014") as raised:
        sf.protect(sf.read(impatient, schema(), table="slow_people"), PROMISE, SEARCH, destination=place / "out")
    nothing_left(place, raised.value)


@pytest.fixture(scope="module")
def standby_url(postgres_url: str) -> Iterator[str]:
    """A second server that follows the first one and takes no writes."""
    write_table(table(ROWS), postgres_url, table_name="people_of_a_primary", overwrite=True)
    folder = Path(tempfile.mkdtemp(prefix="sfsb"))
    folder.chmod(0o755)
    try:
        identity, programs = copied_server(postgres_url, folder)
        own: dict[str, Any] = {"user": identity.st_uid, "group": identity.st_gid} if os.geteuid() == 0 else {}
        quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **own}
        options = f"-k {folder} -c listen_addresses="
        subprocess.run([programs / "pg_ctl", "-D", folder / "data", "-w", "-o", options, "start"], **quiet)
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            subprocess.run([programs / "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop"], **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def copied_server(url: str, folder: Path) -> tuple[os.stat_result, Path]:
    """The files of a running server in `folder`, told to follow it; returns whose they are, and where its programs are."""
    with psycopg.connect(url, autocommit=True) as connection:
        source = connection.execute("SHOW data_directory").fetchone()[0]  # type: ignore[index]
        identity = os.stat(source)
        server = (Path(source) / "postmaster.pid").read_text().splitlines()[0]
        connection.execute("SELECT pg_backup_start('standby', true)")
        shutil.copytree(source, folder / "data", ignore=shutil.ignore_patterns(".s.PGSQL*", "postmaster.*"))
        label = connection.execute("SELECT labelfile FROM pg_backup_stop(false)").fetchone()[0]  # type: ignore[index]
        where = f"host={connection.info.host} user={connection.info.user} port={connection.info.port}"
    shutil.copytree(Path(source) / "pg_wal", folder / "data" / "pg_wal", dirs_exist_ok=True)
    (folder / "data" / "backup_label").write_text(label)
    (folder / "data" / "standby.signal").touch()
    with (folder / "data" / "postgresql.auto.conf").open("a") as settings:
        settings.write(f"primary_conninfo = '{where}'\n")
    (folder / "data").chmod(0o700)
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, identity.st_uid, identity.st_gid)
    return identity, Path(os.readlink(f"/proc/{server}/exe")).parent


@pytest.mark.postgres
@pytest.mark.slow
def test_a_standby_is_published_from_into_another_place_and_refuses_tables_of_its_own(
    standby_url: str, postgres_url: str, place: Path
) -> None:
    people = sf.read(standby_url, schema(), table="people_of_a_primary")
    sf.protect(people, PROMISE, SEARCH, destination=place / "out")
    assert content(place / "out") == expected() and sf.verify(place / "out").accepted
    with pytest.raises(SourceError, match="takes no writes") as raised:
        sf.protect(people, PROMISE, SEARCH, destination=standby_url, table_name="release")
    assert CANARY not in str(raised.value)
    options: dict[str, Any] = {"destination": postgres_url, "table_name": "of_the_standby", "overwrite": True}
    sf.protect(people, PROMISE, SEARCH, **options)
    stored = sf.read(postgres_url, table="of_the_standby", engine="memory").table()
    assert table_sums(stored).content_digest() == expected()
