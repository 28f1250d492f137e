"""A ledger in PostgreSQL, for several machines: the same tables, writers one after the other.

Every writing transaction first locks the one row that holds the ledger's identity (`SELECT … FOR UPDATE`), so
appends happen in a single order. URLs carry passwords: only host, port and database name are ever shown.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import LedgerError, NoLedger, raise_alone
from sfumato.core.extras import require_extra
from sfumato.ledger.chain import FORMAT
from sfumato.ledger.store import DEFINITIONS, LATER_INDICES, Tables

if TYPE_CHECKING:
    import psycopg

PREFIX = "sfumato_ledger_"
PATIENCE = 30.0
#: Held while the tables are created; any fixed number does.
_CREATION_LOCK = 0x5366756D

_APPEND_ONLY = (
    "CREATE FUNCTION {t}append_only() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN RAISE EXCEPTION 'append only' USING ERRCODE = 'integrity_constraint_violation'; END $$",
    "CREATE TRIGGER {t}entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {t}entries"
    " FOR EACH STATEMENT EXECUTE FUNCTION {t}append_only()",
)

#: By the first two characters of SQLSTATE, longer ones first.
_REASONS = {
    "25006": "the server or the transaction is read-only",
    "55P03": "another program holds it and did not let go. Try again when that has finished",
    "53100": "the server's disk is full. Nothing was entered",
    "28": "the server refused the user or password. Check the URL",
    "3D": "the database does not exist. Check the URL",
    "42": "tables or rights are missing. The user needs the right to create tables in its schema",
    "23": "an entry would be doubled or changed, which a ledger never does. Run verify",
    "53": "the server has run out of something (disk, memory, connections). Nothing was entered",
    "57": "the server was shut down or stopped the statement. Try again",
    "XX": "the server reports damaged data. Restore the database from a copy",
}


class PostgresStore:
    """One connection to the server, shared by the threads of this process, reopened after a fork or a lost
    connection.
    """

    def __init__(self, url: str, *, read_only: bool = False, patience: float = PATIENCE) -> None:
        self._url = url
        self._read_only = read_only
        self._patience = patience
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._abandoned: list[psycopg.Connection[Any]] = []
        self._connection = self._connect()
        self._prepare()

    @property
    def description(self) -> str:
        """Host, port and database."""
        return redacted(self._url)

    def __repr__(self) -> str:
        return f"PostgresStore({self.description})"

    @contextmanager
    def writing(self) -> Iterator[Tables]:
        """A transaction of the only writer."""
        with self._transaction() as tables:
            self.run("SELECT value FROM {t}meta WHERE name = 'identity' FOR UPDATE")
            yield tables

    @contextmanager
    def reading(self) -> Iterator[Tables]:
        """A transaction that sees the tables as they are now."""
        with self._transaction("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY") as tables:
            yield tables

    def run(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:  # cells
        """One statement."""
        text = statement.replace("{t}", PREFIX).replace("{c}", ' COLLATE "C"').replace("?", "%s")
        cursor = self._connection.execute(text, parameters or None)
        return cursor.fetchall() if cursor.description is not None else [(cursor.rowcount,)]

    def sound(self) -> bool:
        """True: a server watches over its own files."""
        return True

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._process == os.getpid():
                self._connection.close()

    @contextmanager
    def _transaction(self, first: str | None = None) -> Iterator[Tables]:
        with self._lock, self._explained():
            self._reconnect()
            with self._connection.transaction():
                if first is not None:
                    self.run(first)
                yield Tables(self)

    def _connect(self) -> psycopg.Connection[Any]:
        require_extra("psycopg", "postgres", "a ledger in PostgreSQL")
        import psycopg

        with self._explained():
            connection = psycopg.connect(self._url, autocommit=True, connect_timeout=10, application_name="sfumato ledger")
            wait = max(1, int(self._patience * 1000))  # zero would mean for ever
            connection.execute("SELECT set_config('lock_timeout', %s, false)", (f"{wait}ms",))
            connection.execute("SET synchronous_commit = on")
            connection.read_only = True if self._read_only else None
            return connection

    def _reconnect(self) -> None:
        if self._process != os.getpid():
            # The parent goes on using this socket; closing it here would end the parent's session.
            self._abandoned.append(self._connection)
            self._process = os.getpid()
            self._connection = self._connect()
        elif self._connection.closed:
            self._connection = self._connect()

    def _prepare(self) -> None:
        with self._lock, self._explained(), self._connection.transaction():
            if self._exists():
                self._add_later_indices()
                return
            if self._read_only:
                raise NoLedger(f"there is no ledger in {self.description}")
            self.run("SELECT pg_advisory_xact_lock(?)", (_CREATION_LOCK,))
            if self._exists():  # another process was faster
                return
            for statement in (*DEFINITIONS, *_APPEND_ONLY):
                self.run(statement)
            for fact in (("format", FORMAT), ("identity", uuid.uuid4().hex)):
                self.run("INSERT INTO {t}meta (name, value) VALUES (?, ?)", fact)

    def _add_later_indices(self) -> None:
        """A ledger written before an index existed gets it when somebody who may create it opens it."""
        if self._read_only:
            return
        for name, statement in LATER_INDICES.items():
            visible = "indexname = ? AND schemaname = ANY(current_schemas(false))"
            if self.run(f"SELECT 1 FROM pg_catalog.pg_indexes WHERE {visible}", (f"{PREFIX}{name}",)):  # noqa: S608
                continue
            owned = "SELECT pg_has_role(tableowner, 'USAGE') FROM pg_catalog.pg_tables WHERE tablename = ?"
            if self.run(f"{owned} AND schemaname = ANY(current_schemas(false))", (f"{PREFIX}spends",)) == [(True,)]:
                self.run("SELECT pg_advisory_xact_lock(?)", (_CREATION_LOCK,))
                self.run(statement.replace("INDEX", "INDEX IF NOT EXISTS", 1))

    def _exists(self) -> bool:
        # Not to_regclass: its cache may not have heard yet of tables that were created while the lock was
        # waited for.
        visible = "tablename = ? AND schemaname = ANY(current_schemas(false))"
        if not self.run(f"SELECT 1 FROM pg_catalog.pg_tables WHERE {visible}", (f"{PREFIX}meta",)):  # noqa: S608
            return False
        format = Tables(self).meta("format")
        if format != FORMAT:
            raise LedgerError(f"the ledger in {self.description} has another format; this version reads {FORMAT}.")
        return True

    @contextmanager
    def _explained(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            # The driver's own message may repeat the URL or a parameter, so only the error code is used.
            code = error.sqlstate or ""
            reasons = (text for start, text in _REASONS.items() if code.startswith(start))
            lost = "the server cannot be reached. Check that it runs and that the URL is right"
            reason = next(reasons, f"the server reports {code}" if code else lost)
            raise_alone(LedgerError(f"the ledger in {self.description} cannot be used: {reason}."))


def redacted(url: str) -> str:
    """The URL without user, password and options."""
    require_extra("psycopg", "postgres", "a ledger in PostgreSQL")
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        return "postgresql://…"
    host, port = parts.get("host") or "", parts.get("port")
    return f"postgresql://{host}{f':{port}' if port else ''}/{parts.get('dbname') or ''}"
