"""One transaction for several questions to PostgreSQL, and what the user may do there."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sfumato.core.errors import SourceError
from sfumato.engines.postgres.transport import plain_errors
from sfumato.engines.time_limits import statement_seconds, stopped_in_time

if TYPE_CHECKING:
    import psycopg


class Run:
    """A transaction that sees one state of the database; each question is a savepoint in it, so that its uploads and its
    failure leave the others alone."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._asked = threading.Lock()
        self.is_open = True

    @contextmanager
    def question(self) -> Iterator[psycopg.Connection]:
        """The connection for one question; read-only is undone with the savepoint."""
        if not self._asked.acquire(blocking=False):
            raise SourceError("a table is still being read in this run; finish reading it before the next question")
        try:
            self._connection.execute("SAVEPOINT question")
            try:
                yield self._connection
            finally:
                self._connection.execute("ROLLBACK TO SAVEPOINT question")
                self._connection.execute("RELEASE SAVEPOINT question")
        finally:
            self._asked.release()

    def exported(self) -> str:
        """The name by which another transaction may see the same state, as long as this one lasts."""
        row = self._connection.execute("SELECT pg_catalog.pg_export_snapshot()").fetchone()
        return str(row[0]) if row is not None else ""

    def close(self) -> None:
        """Whoever asks from now on gets the state of that moment."""
        self.is_open = False


@contextmanager
def limited(connection: psycopg.Connection, where: str) -> Iterator[None]:
    """In a transaction: each statement within the limit in force, which the server keeps as well should this process hang.
    Ctrl-C and termination cancel the statement there."""
    seconds = statement_seconds()
    if seconds is not None:
        # Never longer than what the server allows by itself; 0 there is no limit.
        connection.execute(
            "SELECT pg_catalog.set_config('statement_timeout', CASE WHEN setting::bigint BETWEEN 1 AND %(limit)s THEN setting "
            "ELSE %(limit)s::text END, true) FROM pg_catalog.pg_settings WHERE name = 'statement_timeout'",
            {"limit": max(1, round(seconds * 1000))},
        )
    with stopped_in_time(connection.cancel, where), plain_errors(where):
        yield


def begin_run(connection: psycopg.Connection, where: str) -> None:
    """Fix what the run will see; a search may take its time between two questions."""
    with plain_errors(where):
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        connection.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT 1")


def may_create_temporary_tables(connection: psycopg.Connection) -> bool:
    """False on a standby, in read-only transactions, and for a user without the right."""
    row = connection.execute(
        "SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMP') "
        "AND pg_catalog.current_setting('transaction_read_only') = 'off' AND NOT pg_catalog.pg_is_in_recovery()"
    ).fetchone()
    return row is not None and bool(row[0])


def may_read(connection: psycopg.Connection, path: Sequence[str], columns: Sequence[str]) -> None:
    """Ask for these columns and for no row: PostgreSQL refuses what is not there or not allowed."""
    from psycopg import sql

    listed = sql.SQL(", ").join(sql.Identifier(name) for name in columns)
    connection.execute(sql.SQL("SELECT {} FROM {} LIMIT 0").format(listed, sql.Identifier(*path)))
