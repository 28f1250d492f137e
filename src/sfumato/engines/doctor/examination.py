"""What an engine can do here, said before anything is asked of it: versions, rights, snapshots, limits, where it spills."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.core.errors import MissingExtra, ParameterError, SourceError, forgetting, reported_as
from sfumato.engines.address import is_postgres_url, redacted
from sfumato.engines.doctor.findings import Diagnosis, EngineFinding, failed, folder_finding, kept
from sfumato.engines.sources import TableLike
from sfumato.engines.time_limits import statements_within

_SECONDS = 120.0
_SPARK = re.compile(r"spark:(?P<remote>sc://.*)?")


@forgetting()
def doctor(source: TableLike, *, table: str | None = None, destination: str | Path | None = None) -> Diagnosis:
    """What an engine can do here, before anything is asked of it: each finding is kept, warned about or failed, with what to do.

    `source` is the URL of a PostgreSQL database, a DuckDB database, a Parquet or CSV file, a Spark session or frame, "spark:" for
    the running session (one is started where none runs) or "spark:sc://host" for a Connect server. `table` is looked up as
    well; `destination` is a place to publish into: a folder, a file, or the URL of a PostgreSQL database. Nothing is written,
    and no finding shows a password or a value.

    >>> import pyarrow as pa, pyarrow.parquet, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.parquet"
    >>> pa.parquet.write_table(pa.table({"age": [34, 51]}), path)
    >>> diagnosis = doctor(path)
    >>> diagnosis.engine, diagnosis.usable, diagnosis["table"].text
    ('duckdb', True, '1 column')
    """
    with statements_within(_SECONDS):
        engine, where, findings = _examined(source, table)
    if destination is not None:
        findings.append(_destination(destination))
    return Diagnosis(engine, where, tuple(findings))


def _examined(source: Any, table: str | None) -> tuple[str, str, list[EngineFinding]]:
    if is_postgres_url(source):
        from sfumato.engines.doctor.postgres import postgres_findings

        return "postgres", redacted(source), list(postgres_findings(source, table))
    if isinstance(source, str) and (match := _SPARK.fullmatch(source)) is not None:
        remote = match["remote"]
        return "spark", "the Connect server" if remote else "the running session", _of_spark(remote, table)
    if isinstance(source, str) and "://" in source:
        kind = source.split("://")[0]
        raise SourceError(f"addresses of the kind '{kind}://' are not supported; use postgresql://, spark: or a file")
    if isinstance(source, (str, Path)):
        from sfumato.engines.doctor.duckdb import duckdb_findings

        return "duckdb", f"'{source}'", list(duckdb_findings(Path(source), table))
    session = getattr(source, "sparkSession", source)
    if type(session).__module__.startswith("pyspark."):
        from sfumato.engines.doctor.spark import spark_findings

        return "spark", "the given session", list(spark_findings(session, table))
    raise ParameterError("doctor looks at a postgresql:// URL, a file, a Spark session or frame, or 'spark:'")


def _of_spark(remote: str | None, table: str | None) -> list[EngineFinding]:
    from sfumato.engines.doctor.spark import spark_findings

    try:
        with _session(remote) as session:
            return list(spark_findings(session, table))
    except MissingExtra as error:
        return [failed("version", str(error))]
    except SourceError as error:
        return [failed("reachable", str(error), "Check that Java 17 or later is installed, or the address of the Connect server")]


@contextmanager
def _session(remote: str | None) -> Iterator[Any]:
    """The running session; one that had to be started ends again."""
    from sfumato.engines.spark.relation import active_session

    session = None if remote else active_session()
    if session is not None:
        yield session
        return
    with reported_as(lambda error: SourceError(f"no Spark session could be started ({type(error).__name__})")):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName("sfumato doctor")
        session = (builder.remote(remote) if remote else builder.config("spark.ui.enabled", "false")).getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def _destination(place: str | Path) -> EngineFinding:
    if is_postgres_url(place):
        from sfumato.engines.doctor.postgres import postgres_destination

        return postgres_destination(str(place))
    if isinstance(place, str) and place.startswith("spark:"):
        return kept("destination", "a Spark table; its right to write shows when publishing begins")
    if "://" in str(place):
        return failed(
            "destination", "addresses of this kind are not written", "Name a folder, a DuckDB file or a postgresql:// URL"
        )
    return folder_finding("destination", Path(place).absolute())
