"""What a PostgreSQL server lets this user do: asked of its catalogue, without looking at a row and without writing anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sfumato.core.errors import SfumatoError
from sfumato.engines.address import redacted
from sfumato.engines.class_queries import ROWS
from sfumato.engines.doctor.findings import EngineFinding, failed, kept, warning
from sfumato.engines.plan import Scan
from sfumato.engines.postgres.runs import may_create_temporary_tables
from sfumato.engines.postgres.transport import connect, plain_errors

if TYPE_CHECKING:
    import psycopg

#: The version that the tests run with.
TRIED = 18
#: A statement of a large table may well take this long.
_SHORT_SECONDS = 60

_SETTINGS = "SELECT name, setting FROM pg_catalog.pg_settings WHERE name IN ('statement_timeout', 'temp_file_limit', 'work_mem')"
_MAY_CREATE = (
    "SELECT pg_catalog.current_schema(), pg_catalog.has_schema_privilege(pg_catalog.current_schema(), 'CREATE'), "
    "pg_catalog.current_setting('transaction_read_only') = 'on', pg_catalog.pg_is_in_recovery()"
)


def postgres_findings(url: str, table: str | None) -> Iterator[EngineFinding]:
    """What can be said about a server, from whether it is reached on."""
    where = redacted(url)
    try:
        with connect(url) as connection:
            yield kept("reachable", "the server answers, and this user may log in")
            yield from _version(connection)
            if table is not None:
                yield _table(url, table)
            yield from _rights(connection, where)
            yield from _settings(connection, where)
    except SfumatoError as error:
        yield failed("reachable", str(error))


def postgres_destination(url: str) -> EngineFinding:
    """Whether tables can be created there."""
    try:
        with connect(url) as connection:
            return _written(connection, redacted(url), "destination")
    except SfumatoError as error:
        return failed("destination", str(error))


def _version(connection: psycopg.Connection) -> Iterator[EngineFinding]:
    major = connection.info.server_version // 10_000
    if major == TRIED:
        yield kept("version", f"PostgreSQL {major}, which the tests run with")
    else:
        yield warning("version", f"PostgreSQL {major} is not tried: the tests run with {TRIED}", "Try a question on a copy first")


def _table(url: str, table: str) -> EngineFinding:
    from sfumato.engines.postgres.relation import PostgresRelation

    try:
        relation = PostgresRelation(url, table)
        relation.rehearse([Scan(ROWS, tuple(relation.fields.values()))])
    except SfumatoError as error:
        return failed("table", str(error), "Grant SELECT on the table to this user, or name another table")
    return kept("table", f"'{table}' has {len(relation.fields)} columns, and this user may read all of them")


def _rights(connection: psycopg.Connection, where: str) -> Iterator[EngineFinding]:
    with plain_errors(where):
        connection.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        temporary = may_create_temporary_tables(connection)
        (standby,) = connection.execute("SELECT pg_catalog.pg_is_in_recovery()").fetchone() or (False,)
        connection.execute("ROLLBACK")
    if temporary:
        yield kept("temporary tables", "this user may create them; tables that a question brings along are uploaded")
    else:
        yield warning(
            "temporary tables",
            "this user may create none; tables that a question brings along are written into the query",
            "GRANT TEMPORARY ON DATABASE … TO this user where they are large",
        )
    if standby:
        yield warning(
            "snapshot",
            "this is a standby: a run sees one state of the data, and the server may cancel it when the primary cleans up",
            "Ask the primary, or raise max_standby_streaming_delay",
        )
    else:
        yield kept("snapshot", "a run sees one state of the data (REPEATABLE READ)")
    yield _written(connection, where, "write access")


def _written(connection: psycopg.Connection, where: str, what: str) -> EngineFinding:
    with plain_errors(where):
        row = connection.execute(_MAY_CREATE).fetchone()
    schema, creates, reads_only, standby = row or (None, False, False, False)
    elsewhere = "Questions need none; publish into another place, or ask for the right to create tables"
    state = failed if what == "destination" else warning
    if standby:
        return state(what, "a standby takes no tables", elsewhere)
    if reads_only:
        return state(what, "transactions of this user are read-only", elsewhere)
    if schema is None or not creates:
        return state(what, "this user may create no table in the current schema", elsewhere)
    return kept(what, f"this user may create tables in the schema '{schema}'")


def _settings(connection: psycopg.Connection, where: str) -> Iterator[EngineFinding]:
    with plain_errors(where):
        settings = {str(name): int(value) for name, value in connection.execute(_SETTINGS).fetchall()}
    seconds = settings.get("statement_timeout", 0) / 1000
    if 0 < seconds < _SHORT_SECONDS:
        yield warning(
            "time-out",
            f"the server stops a statement after {seconds:g} s; a question that is stopped stays charged",
            "Ask for a longer statement_timeout of this user where tables are large",
        )
    else:
        server = f"the server stops a statement after {seconds:g} s" if seconds else "the server sets none"
        yield kept("time-out", f"{server}; timeout= (--timeout) sets one for a session")
    limit = settings.get("temp_file_limit", -1)
    spill = "sorting beyond it goes to the server's disk"
    if limit >= 0:
        yield warning("memory", f"{settings['work_mem']:,} kB for one sort; {spill}, of which {limit:,} kB may be used")
    else:
        yield kept("memory", f"{settings['work_mem']:,} kB for one sort; {spill}")
