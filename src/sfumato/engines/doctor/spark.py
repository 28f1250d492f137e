"""What a Spark session can do: its version and kind, a first job, a frame held still, and what its owner configured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sfumato.core.errors import SfumatoError
from sfumato.engines.doctor.findings import EngineFinding, failed, kept, warning
from sfumato.engines.spark.sessions import VERSIONS, asked_of, check_version

#: Where a session says that it has a table format, and the class of its extension.
_FORMATS = {
    "Delta": ("delta", "io.delta.sql.DeltaSparkSessionExtension"),
    "Iceberg": ("iceberg", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"),
}


def spark_findings(running: object, table: str | None) -> Iterator[EngineFinding]:
    """What can be said about a session."""
    session: Any = running
    connect = type(session).__module__.startswith("pyspark.sql.connect")
    try:
        check_version(session)
    except SfumatoError as error:
        yield failed("version", str(error))
        return
    listed = " and ".join(".".join(map(str, version)) for version in VERSIONS)
    yield kept("version", f"Spark {session.version}, {'a Connect client' if connect else 'classic'}; the tests run with {listed}")
    try:
        with asked_of(session):
            session.range(1).count()
        yield kept("reachable", "a first job ran")
    except SfumatoError as error:
        yield failed("reachable", str(error), "Look at the cluster's own page: no executor may be free")
        return
    if table is not None:
        yield _table(session, table)
    yield _held(session)
    yield kept("temporary tables", "views of this session; nothing is stored for a question")
    yield _encryption(session)
    yield _memory(session)
    yield kept("time-out", "Spark sets none; timeout= of a session cancels the jobs of a question")
    yield _formats(session, connect)
    yield warning(
        "write access",
        "not tried, because a catalogue says so only when something is written",
        "It is checked before the long work when a table is published there",
    )


def _table(session: Any, table: str) -> EngineFinding:
    from sfumato.engines.spark.relation import SparkRelation

    try:
        relation = SparkRelation(table, session=session)
        return kept("table", f"'{table}' has {len(relation.fields)} columns")
    except SfumatoError as error:
        return failed("table", str(error))


def _held(session: Any) -> EngineFinding:
    try:
        with asked_of(session):
            session.range(1).localCheckpoint(eager=True).count()
    except SfumatoError as error:
        return failed("snapshot", str(error), "Runs that need one state of the data are refused; write the table down first")
    return kept("snapshot", "a run computes the rows once and keeps them with the executors")


def _setting(session: Any, name: str, default: str) -> str:
    try:
        return str(session.conf.get(name, default)).lower()
    except Exception:  # what a server does not tell is as it is by default
        return default


def _encryption(session: Any) -> EngineFinding:
    if _setting(session, "spark.io.encryption.enabled", "false") == "true":
        return kept("spill", "what executors put on their disks is encrypted")
    return warning(
        "spill",
        "executors put rows that are shuffled or kept on their disks as they are",
        "Set spark.io.encryption.enabled=true when the cluster starts, or see that its disks are encrypted",
    )


def _memory(session: Any) -> EngineFinding:
    limit = _setting(session, "spark.driver.maxResultSize", "1g")
    return kept("memory", f"answers of up to {limit} come back (spark.driver.maxResultSize); questions return groups, not rows")


def _formats(session: Any, connect: bool) -> EngineFinding:
    extensions = _setting(session, "spark.sql.extensions", "")
    catalogue = _setting(session, "spark.sql.catalog.spark_catalog", "")
    there = [name for name, (word, _) in _FORMATS.items() if word in extensions or word in catalogue]
    if there:
        return kept("table formats", f"this session has {' and '.join(there)}")
    if not connect:
        there = [name for name, (_, extension) in _FORMATS.items() if _has_class(session, extension)]
        if there:
            text = f"{' and '.join(there)} can be loaded and is not configured"
            return warning("table formats", text, "Set spark.sql.extensions when the session starts")
    return kept("table formats", "Parquet; neither Delta nor Iceberg is configured in this session")


def _has_class(session: Any, name: str) -> bool:
    try:
        session._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    except Exception:  # no such class, or no way to ask for it
        return False
    return True
