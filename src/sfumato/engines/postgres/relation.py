"""Rows in PostgreSQL: questions run in read-only transactions, answers are copied out as text and parsed by
Arrow.

Tables that a question brings along are uploaded as temporary ones, or written into the query where the server allows none.
Numbers of type `numeric` arrive as float64, except in a unit column; dates and times without a finite value (`infinity`)
arrive as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa

from sfumato.core.errors import SourceError
from sfumato.data.relation import Relation
from sfumato.data.schema import Type
from sfumato.engines.address import redacted
from sfumato.engines.canonical import ARROW_TYPES, canonical_columns
from sfumato.engines.class_queries import ROWS
from sfumato.engines.distinct_units import exact_kind
from sfumato.engines.expressions import Kind
from sfumato.engines.joining import not_together
from sfumato.engines.plan import Field, Plan, Scan, scans
from sfumato.engines.postgres.runs import Run, begin_run, limited, may_create_temporary_tables, may_read
from sfumato.engines.postgres.transport import connect, copied_out, plain_errors, received, upload, written_out
from sfumato.engines.sql.relation import SqlRelation, declared_fields
from sfumato.engines.sql.unreadable_texts import unreadable_counted

if TYPE_CHECKING:
    import psycopg

    from sfumato.engines.sql.compile import CompiledQuery

R = TypeVar("R")

_KINDS: Mapping[str, Kind] = {
    "bool": "boolean",
    "bytea": "binary",
    "int2": "integer",
    "int4": "integer",
    "int8": "integer",
    "float4": "number",
    "float8": "number",
    "numeric": "number",
    "date": "date",
    "timestamp": "datetime",
    "timestamptz": "instant",
    "time": "time",
}

_FIND_TABLE = """
SELECT c.oid, n.nspname, c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND (n.nspname || '.' || c.relname = %(name)s
       OR (c.relname = %(name)s AND pg_catalog.pg_table_is_visible(c.oid)))
ORDER BY pg_catalog.pg_table_is_visible(c.oid) DESC, n.nspname
"""
_LIST_TABLES = """
SELECT n.nspname || '.' || c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
ORDER BY 1 LIMIT 20
"""
_LIST_COLUMNS = """
SELECT a.attname, COALESCE(b.typname, t.typname), GREATEST(a.atttypmod, t.typtypmod) FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_type b ON b.oid = NULLIF(t.typbasetype, 0)
WHERE a.attrelid = %(table)s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


def read_table(connection: psycopg.Connection, path: tuple[str, ...]) -> pa.Table:
    """The rows of a table as this connection sees them, what it has not committed yet included."""
    from psycopg import sql

    from sfumato.engines.sql.compile import PhysicalTable, compile_plan

    (table,) = connection.execute("SELECT %s::regclass::oid", [sql.Identifier(*path).as_string(connection)]).fetchone() or (0,)
    stored, exact, by_text = _stored(connection, table)
    fields = tuple(declared_fields(stored, None, None, exact, by_text).values())
    query = compile_plan(Scan(ROWS, fields), "postgres", {ROWS: PhysicalTable(path)})
    batches = [received(batch, query) for batch in copied_out(connection, query) if batch.num_rows]
    empty = pa.schema([(field.name, ARROW_TYPES[field.kind]) for field in fields]).empty_table()
    return pa.concat_tables(batches) if batches else empty


def _stored(connection: psycopg.Connection, table: int) -> tuple[dict[str, Kind], dict[str, Kind], frozenset[str]]:
    """What the columns hold, how those of type `numeric` are read without loss, and which numbers have 32 bits."""
    rows = connection.execute(_LIST_COLUMNS, {"table": table}).fetchall()
    exact = {name: exact_kind(*_digits_and_scale(modifier)) for name, sql_type, modifier in rows if sql_type == "numeric"}
    by_text = frozenset(name for name, sql_type, _ in rows if sql_type == "float4")
    return {name: _KINDS.get(sql_type, "string") for name, sql_type, _ in rows}, exact, by_text


def _digits_and_scale(modifier: int) -> tuple[int | None, int | None]:
    """What a `numeric` was declared with; PostgreSQL keeps both in one number, -1 for a numeric without bounds."""
    return ((modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF) if modifier >= 4 else (None, None)


def _prepared(
    connection: psycopg.Connection, plan: Plan, uploads: Mapping[str, pa.Table], stored: Mapping[str, tuple[str, str]]
) -> CompiledQuery:
    """The query of a plan over stored tables and those that it brings along, which are uploaded where the server lets us."""
    from sfumato.engines.sql.compile import PhysicalTable, compile_plan

    needed = {scan.table for scan in scans(plan)}
    brought = {name: table for name, table in uploads.items() if name in needed}
    tables = {name: PhysicalTable(path) for name, path in stored.items()}
    temporary = bool(brought) and may_create_temporary_tables(connection)
    for number, (name, table) in enumerate(brought.items()):
        clean = canonical_columns(table)
        tables[name] = upload(connection, f"sfumato_upload_{number}", clean) if temporary else written_out(clean)
    return compile_plan(plan, "postgres", tables)


class PostgresRelation(SqlRelation):
    """A table or view of a PostgreSQL database. `table` may be qualified by its schema: `public.people`."""

    engine = "postgres"

    def __init__(
        self,
        url: str,
        table: str,
        *,
        types: Mapping[str, Type] | None = None,
        missing: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._url = url
        self._table = table
        self._types = types
        self._missing = missing
        self._run: Run | None = None

    @property
    def address(self) -> str:
        """The database without secrets."""
        return redacted(self._url)

    def __repr__(self) -> str:
        return f"PostgresRelation('{self.address}', table {self._table!r})"

    # The URL is a secret: no dump of this object's state may carry it.
    def __reduce__(self) -> str:
        raise TypeError("a relation on a database is not serialised: its address may hold a password")

    @cached_property
    def _found(self) -> tuple[int, tuple[str, str]]:
        with self._connected() as connection:
            rows = connection.execute(_FIND_TABLE, {"name": self._table}).fetchall()
            if not rows:
                listed = ", ".join(name for (name,) in connection.execute(_LIST_TABLES).fetchall()) or "none"
                raise SourceError(f"{self.address} has no table '{self._table}'; it has: {listed}")
        return int(rows[0][0]), (rows[0][1], rows[0][2])

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The columns by name, in order."""
        table, _ = self._found
        with self._connected() as connection:
            stored, exact, by_text = _stored(connection, table)
        return declared_fields(stored, self._types, self._missing, exact, by_text)

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """The same rows, answered from one transaction that lasts until the end."""
        with ExitStack() as stack:
            connection = stack.enter_context(connect(self._url))
            begin_run(connection, self.address)
            held = self._with_fields(self.fields)
            held._run = Run(connection)
            try:
                yield held
            finally:
                held._run.close()
                # A failure of the run is no failure of this connection, which would report it in its own words.
                stack.pop_all().close()

    def in_run_of(self, other: object) -> Self | None:
        """The same rows, answered from the transaction of another table of the same database; None where there is none."""
        if not isinstance(other, PostgresRelation) or other._url != self._url or other._run is None:
            return None
        held = self._with_fields(self.fields)
        held._run = other._run
        return held

    def rehearse(self, plans: Sequence[Plan], beside: Mapping[str, Relation] | None = None) -> None:
        """Refuse, without looking at a row, what this user may not read or this server has no more."""
        relations: dict[str, Relation] = {ROWS: self, **(beside or {})}
        with self._transaction() as connection:
            connection.execute("SET TRANSACTION READ ONLY")
            for scan in (scan for plan in plans for scan in scans(plan)):
                relation = relations.get(scan.table)
                if isinstance(relation, PostgresRelation):
                    may_read(connection, relation._found[1], [field.name for field in scan.columns])

    def run(
        self,
        plan: Plan,
        uploads: Mapping[str, pa.Table] | None = None,
        beside: Mapping[str, Relation] | None = None,
    ) -> pa.Table:
        """The answer to a plan over `rows`, uploaded tables and other tables of the same database."""
        stored = {ROWS: self._found[1]}
        for name, other in (beside or {}).items():
            if not isinstance(other, PostgresRelation) or other._url != self._url:
                raise not_together(self, name, other)
            stored[name] = other._found[1]
        with unreadable_counted(plan, {**(beside or {}), ROWS: self}):
            batches = list(self._answer(plan, uploads or {}, stored))
        return pa.Table.from_batches(batches[1:], schema=batches[0].schema) if len(batches) > 1 else batches[0]

    def stream(self, plan: Plan) -> Iterator[pa.RecordBatch]:
        """The answer to a plan over `rows`, a batch at a time."""
        with unreadable_counted(plan, {ROWS: self}):
            answer = self._answer(plan, {}, {ROWS: self._found[1]})
            next(answer)
            yield from answer

    def deliver(
        self, plan: Plan, uploads: Mapping[str, pa.Table], order: Sequence[str], take: Callable[[Iterator[pa.RecordBatch]], R]
    ) -> R:
        """Give the answer to a plan over `rows` and uploaded tables to `take`, sorted (see `sorted_answers`), a batch at a
        time."""
        from sfumato.engines.sql.sorted_answers import in_order, plain_batch

        question = self._question(plan, uploads, {ROWS: self._found[1]})
        with unreadable_counted(plan, {ROWS: self}), question as (connection, query):
            shaped = in_order(query, order)
            return take(plain_batch(received(batch, shaped), shaped) for batch in copied_out(connection, shaped))

    def _answer(self, plan: Plan, uploads: Mapping[str, pa.Table], stored: Mapping[str, tuple[str, str]]) -> Iterator[Any]:
        """An empty table that shows the types, then the batches."""
        with self._question(plan, uploads, stored) as (connection, query):
            types = [pa.field(n, ARROW_TYPES[kind]) for n, kind in query.columns.items()]
            yield pa.schema(types).empty_table()
            for batch in copied_out(connection, query):
                if batch.num_rows:
                    yield from received(batch, query).combine_chunks().to_batches()

    @contextmanager
    def _question(
        self, plan: Plan, uploads: Mapping[str, pa.Table], stored: Mapping[str, tuple[str, str]]
    ) -> Iterator[tuple[psycopg.Connection, CompiledQuery]]:
        """A read-only transaction in which the uploads are, and the query of a plan over them."""
        with self._transaction() as connection:
            query = _prepared(connection, plan, uploads, stored)
            connection.execute("SET TRANSACTION READ ONLY")
            yield connection, query

    def prepared_on(self, connection: psycopg.Connection, plan: Plan, uploads: Mapping[str, pa.Table]) -> CompiledQuery:
        """The query of a plan over `rows` and uploaded tables in a transaction that another connection to this database has just
        begun; it sees the state that this run sees."""
        if self._run is not None and self._run.is_open:
            connection.execute(f"SET TRANSACTION SNAPSHOT '{self._run.exported()}'")
        return _prepared(connection, plan, uploads, {ROWS: self._found[1]})

    def is_in(self, url: str) -> bool:
        """Whether the rows are in the database of this URL."""
        return self._url == url

    @classmethod
    def uncommitted(cls, url: str, path: tuple[str, ...], connection: psycopg.Connection) -> PostgresRelation:
        """A table as the transaction sees it that has just made it."""
        from psycopg import sql

        row = connection.execute(
            "SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "
            "ON n.oid = c.relnamespace WHERE c.oid = %s::regclass",
            [sql.Identifier(*path).as_string(connection)],
        ).fetchone() or (0, "", "")
        same = cls(url, path[-1])
        same.__dict__["_found"] = (int(row[0]), (row[1], row[2]))
        stored, exact, by_text = _stored(connection, int(row[0]))
        same.__dict__["fields"] = declared_fields(stored, None, None, exact, by_text)
        same._run = Run(connection)
        return same

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection]:
        """A transaction for one question, or the run's; whatever was uploaded is gone afterwards."""
        with plain_errors(self.address):
            if self._run is not None and self._run.is_open:
                with self._run.question() as connection, limited(connection, self.address):
                    yield connection
                return
            with connect(self._url) as connection:
                connection.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                with limited(connection, self.address):
                    yield connection
                connection.execute("ROLLBACK")

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection]:
        with plain_errors(self.address), connect(self._url) as connection:
            yield connection
