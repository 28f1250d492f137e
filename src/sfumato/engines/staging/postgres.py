"""Rows staged as a table of PostgreSQL, in one transaction that nobody else sees into, and published by its commit.

A session that dies takes its transaction along, so that nothing is left of it. Where the original is in the same database the
rows never leave it, and the transaction sees the state that the run sees; otherwise sorted rows come a batch at a time.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.core.errors import SourceError, reported_as
from sfumato.engines import write
from sfumato.engines.class_queries import ROWS, table_fields
from sfumato.engines.expressions import Kind
from sfumato.engines.plan import Plan
from sfumato.engines.postgres.relation import PostgresRelation
from sfumato.engines.postgres.transport import PostgresRefusal, connect, copy_in, create_table
from sfumato.engines.sql.unreadable_texts import unreadable_counted
from sfumato.engines.staging.base import DatabaseTable, Staged, unwritten

if TYPE_CHECKING:
    import psycopg

#: Writes rows into the table of this path, on a connection that is in a transaction.
Fill = Callable[["psycopg.Connection", tuple[str, ...]], None]


def check_postgres(destination: DatabaseTable, columns: Sequence[str] = ()) -> None:
    """Refuse a table that is there already, or that this user may not make."""
    write.check_names([destination.name, *columns], list(columns), fold_case=False)
    with connect(destination.address) as connection:
        path, _ = write.refuse_existing(connection, destination.address, destination.name, destination.overwrite)
        row = connection.execute(
            "SELECT pg_catalog.has_schema_privilege(COALESCE(%s, pg_catalog.current_schema()), 'CREATE'), "
            "pg_catalog.current_setting('transaction_read_only') = 'off' AND NOT pg_catalog.pg_is_in_recovery()",
            [path[0] if len(path) > 1 else None],
        ).fetchone()
        allowed, written = row or (False, True)
        if not written:
            raise SourceError(
                f"{destination}: this server takes no writes (a standby, or a session that is read-only). Publish into a folder "
                "or another database."
            )
        if not allowed:
            raise SourceError(
                f"{destination}: you may not make tables there. Choose another schema, or ask for the right CREATE."
            )


@contextmanager
def staged_in_postgres(fill: Fill, columns: Mapping[str, Kind], destination: DatabaseTable) -> Iterator[Staged]:
    """A table that `fill` fills, which nobody sees before it is published."""
    check_postgres(destination, list(columns))

    def failed(error: Exception) -> SourceError:
        code = getattr(error, "sqlstate", None)
        return unwritten(destination, f"PostgreSQL gave up ({f'SQLSTATE {code}' if code else type(error).__name__})")

    with connect(destination.address) as connection:
        outer = destination_path(connection, destination)[:-1]
        with reported_as(failed):
            connection.execute("SET idle_in_transaction_session_timeout = 0")
            connection.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        done = False
        try:
            staging = (*outer, f"sfumato_staging_{secrets.token_hex(8)}")
            with reported_as(failed), _refusals(destination):
                fill(connection, staging)
                relation = PostgresRelation.uncommitted(destination.address, staging, connection)

            def prepare() -> None:
                with reported_as(failed):  # a view over the table that is replaced stops it here
                    _rename(connection, staging, destination)

            def publish() -> None:
                nonlocal done
                with reported_as(failed):
                    connection.execute("COMMIT")
                done = True

            with _refusals(destination):
                rows = relation.count()
            yield Staged(rows, relation, publish, prepare=prepare)
        finally:
            if not done and not connection.closed:
                connection.rollback()


def destination_path(connection: psycopg.Connection, destination: DatabaseTable) -> tuple[str, ...]:
    """Where the table goes; refused if one is there that may not be replaced."""
    return write.refuse_existing(connection, destination.address, destination.name, destination.overwrite)[0]


def _rename(connection: psycopg.Connection, staging: tuple[str, ...], destination: DatabaseTable) -> None:
    from psycopg import sql

    path, existing = write.refuse_existing(connection, destination.address, destination.name, destination.overwrite)
    if existing:
        connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(*path)))
    rename = sql.SQL("ALTER TABLE {} RENAME TO {}").format(sql.Identifier(*staging), sql.Identifier(path[-1]))
    connection.execute(rename)


@contextmanager
def _refusals(destination: DatabaseTable) -> Iterator[None]:
    """What PostgreSQL refuses while rows are written is an error of writing."""
    try:
        yield
    except PostgresRefusal as refusal:
        code = f" (SQLSTATE {refusal.sqlstate})" if refusal.sqlstate else ""
        raise unwritten(destination, f"PostgreSQL gave up{code}") from None


def fill_in_place(relation: PostgresRelation, plan: Plan, uploads: Mapping[str, pa.Table], order: Sequence[str]) -> Fill:
    """Rows of the same database, which never leave it."""
    from sqlglot import exp

    from sfumato.engines.sql.compile import PhysicalTable
    from sfumato.engines.sql.sorted_answers import in_order

    def fill(connection: psycopg.Connection, path: tuple[str, ...]) -> None:
        query = in_order(relation.prepared_on(connection, plan, uploads), order)
        shown = [
            exp.alias_(exp.column(own, table="s"), name, quoted=True)
            for own, name in zip(query.physical_names(), query.columns, strict=True)
        ]
        rows = exp.select(*shown).from_(query.expression.subquery("s"))
        table = PhysicalTable(path).expression().sql(dialect="postgres")
        with unreadable_counted(plan, {ROWS: relation}):
            connection.execute(f"CREATE TABLE {table} AS {rows.sql(dialect='postgres')}".encode())

    return fill


def fill_from(deliver: Callable[[Callable[[Iterator[pa.RecordBatch]], None]], None], schema: pa.Schema) -> Fill:
    """Rows from elsewhere, a batch at a time."""

    def fill(connection: psycopg.Connection, path: tuple[str, ...]) -> None:
        create_table(connection, path, table_fields(schema.empty_table()), schema.names, text="")

        def take(batches: Iterator[pa.RecordBatch]) -> None:
            for batch in batches:
                copy_in(connection, path, pa.Table.from_batches([batch]))

        deliver(take)

    return fill
