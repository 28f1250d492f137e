"""How tables travel to and from PostgreSQL: COPY in its CSV form, written and parsed by Arrow.

A missing value is an empty field, an empty text a quoted one; dates and times travel as integers, so that
no text form of a date is ever guessed.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from sfumato.core.errors import SourceError, raise_alone, reported_as
from sfumato.core.extras import require_extra
from sfumato.engines import class_queries
from sfumato.engines.address import redacted
from sfumato.engines.canonical import ARROW_TYPES, canonical_table, decoded_table
from sfumato.engines.digests.secret_columns import holds_secret, refuse_secret
from sfumato.engines.expressions import Kind
from sfumato.engines.plan import Field
from sfumato.engines.time_limits import statement_seconds, timed_out

if TYPE_CHECKING:
    import psycopg

    from sfumato.engines.sql.compile import CompiledQuery, PhysicalTable

BLOCK_BYTES = 1 << 24
CONNECT_SECONDS = 20
#: The SQLSTATE of a statement that was cancelled, by its time-out or by somebody.
_CANCELLED = "57014"

#: How a kind travels as text and, where that is not its own type, as what it is parsed.
_TRAVELS: Mapping[Kind, tuple[str, pa.DataType]] = {
    "date": ("CASE WHEN ISFINITE({0}) THEN {0} - CAST('1970-01-01' AS DATE) END", pa.int32()),
    "datetime": (
        "CASE WHEN ISFINITE({0}) THEN CAST(EXTRACT(EPOCH FROM {0}) * 1000000 AS BIGINT) END",
        pa.int64(),
    ),
    "instant": (
        "CASE WHEN ISFINITE({0}) THEN CAST(EXTRACT(EPOCH FROM {0}) * 1000000 AS BIGINT) END",
        pa.int64(),
    ),
    "time": ("CAST(EXTRACT(EPOCH FROM {0}) * 1000000 AS BIGINT)", pa.int64()),
    "binary": ("ENCODE({0}, 'hex')", pa.string()),
}


class PostgresRefusal(SourceError):
    """PostgreSQL answered with an error; `sqlstate` is its code."""

    def __init__(self, message: str, sqlstate: str | None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


@contextmanager
def connect(url: str) -> Iterator[psycopg.Connection]:
    """A connection whose settings make text forms unambiguous; the URL appears in no message."""
    require_extra("psycopg", "postgres", "a PostgreSQL database")
    import psycopg

    try:
        connection = psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name="sfumato",
            client_encoding="utf8",
        )
    except (psycopg.Error, UnicodeError, ValueError) as error:
        raise_alone(
            SourceError(
                f"cannot connect to {redacted(url)} ({type(error).__name__}). "
                "Check host, database, user and password, and that the server accepts connections from here."
            )
        )
    with connection, plain_errors(redacted(url)):
        connection.execute("SET DateStyle = 'ISO, YMD'")
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET extra_float_digits = 1")
        connection.execute("SET bytea_output = 'hex'")
        connection.execute("SET standard_conforming_strings = on")
        # The planner takes the many equalities of a null-safe join for very selective and would sort both
        # sides by all of them; hashing is an order of magnitude faster.
        connection.execute("SET enable_mergejoin = off")
        connection.execute("SET enable_nestloop = off")
        yield connection


@contextmanager
def plain_errors(where: str) -> Iterator[None]:
    """PostgreSQL quotes values and addresses in its messages; ours name the class of the error and its code
    alone."""
    with reported_as(lambda error: _refused(where, error)):
        yield


def _refused(where: str, error: Exception) -> SourceError:
    import psycopg

    if not isinstance(error, psycopg.Error):
        return SourceError(
            f"{where}: the answer of PostgreSQL could not be read ({type(error).__name__}); a value may be beyond what its "
            "column's type holds here"
        )
    if error.sqlstate == _CANCELLED and (seconds := statement_seconds()) is not None:
        return timed_out(where, seconds)
    code = f", SQLSTATE {error.sqlstate}" if error.sqlstate else ""
    return PostgresRefusal(f"{where}: PostgreSQL refused the question ({type(error).__name__}{code})", error.sqlstate)


def upload(connection: psycopg.Connection, name: str, table: pa.Table) -> PhysicalTable:
    """Copy a canonical table into a temporary one that ends with the connection."""
    from sqlglot import exp

    from sfumato.engines.sql.compile import PhysicalTable

    columns = {column: f"u{i}" for i, column in enumerate(table.column_names)}
    path = ("pg_temp", name)
    create_table(connection, path, class_queries.table_fields(table), list(columns.values()))
    copy_in(connection, path, table)
    if not holds_secret(table.column_names):  # statistics are values that stay in the server's catalogue and log
        analyse = exp.Analyze(kind=None, this=PhysicalTable(path).expression()).sql(dialect="postgres")
        connection.execute(analyse.encode())
    return PhysicalTable(path, columns=columns, clean=True)


def written_out(table: pa.Table) -> PhysicalTable:
    """A canonical table as constants of the query: one array per column."""
    from sqlglot import exp

    from sfumato.engines.sql.compile import PhysicalTable
    from sfumato.engines.sql.values import as_kind, sql_type, text_literal

    refuse_secret(
        table.column_names,
        "this PostgreSQL user may not create temporary tables, and a key written into a query is in the server's log. "
        "Ask for the privilege TEMPORARY on the database, drop the columns, or read the table into memory.",
    )
    columns = {column: f"u{i}" for i, column in enumerate(table.column_names)}
    arrays, shown = [], []
    for name, field, values in zip(
        columns.values(), class_queries.table_fields(table), decoded_table(table).columns, strict=True
    ):
        kind = exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[sql_type(field.kind, "postgres")], nested=True)
        arrays.append(exp.cast(text_literal(_array_text(values)), kind))
        shown.append(exp.alias_(as_kind(exp.column(name), field.kind, "postgres"), name))
    alias = exp.TableAlias(this=exp.to_identifier("given"), columns=[exp.to_identifier(name) for name in columns.values()])
    rows = exp.select(*shown).from_(exp.Unnest(expressions=arrays, alias=alias)).subquery()
    return PhysicalTable((), columns=columns, clean=True, rows=rows)


def _array_text(column: pa.ChunkedArray) -> str:
    """A column as PostgreSQL writes an array: every value quoted, so that none is taken for a missing one."""
    if pa.types.is_binary(column.type):
        texts = [None if value is None else "\\x" + value.hex() for value in column.to_pylist()]
    else:
        texts = column.cast(pa.string()).to_pylist()
    quoted = ("NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts)
    return "{" + ",".join(quoted) + "}"


def create_table(
    connection: psycopg.Connection,
    path: tuple[str, ...],
    fields: Sequence[Field],
    names: Sequence[str],
    *,
    text: str = "C",
) -> None:
    """Create a table for these columns; `text` is the collation of text columns, empty for the database's
    own."""
    from sqlglot import exp

    from sfumato.engines.sql.compile import PhysicalTable
    from sfumato.engines.sql.values import identifier, sql_type

    definitions = []
    for name, field in zip(names, fields, strict=True):
        constraints = []
        if field.kind == "string" and text:
            constraints = [exp.ColumnConstraint(kind=exp.CollateColumnConstraint(this=identifier(text)))]
        kind = sql_type(field.kind, "postgres")
        definitions.append(exp.ColumnDef(this=identifier(name), kind=kind, constraints=constraints))
    table = exp.Schema(this=PhysicalTable(path).expression(), expressions=definitions)
    statement = exp.Create(this=table, kind="TABLE")
    connection.execute(statement.sql(dialect="postgres").encode())


def copy_in(connection: psycopg.Connection, path: tuple[str, ...], table: pa.Table) -> None:
    """Fill a table; a missing value travels as an empty field, an empty text as a quoted one."""
    from psycopg import sql

    plain = decoded_table(table)
    for place, (name, column) in enumerate(zip(plain.column_names, plain.columns, strict=True)):
        if pa.types.is_binary(column.type):
            hexadecimal = pa.chunked_array([[None if v is None else "\\x" + v.hex() for v in column.to_pylist()]], pa.string())
            plain = plain.set_column(place, name, hexadecimal)
    statement = sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(sql.Identifier(*path))
    options = pa_csv.WriteOptions(include_header=False)
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for batch in plain.to_batches(max_chunksize=65_536):
            buffer = io.BytesIO()
            with pa_csv.CSVWriter(buffer, batch.schema, write_options=options) as writer:
                writer.write_batch(batch)
            copy.write(buffer.getvalue())


def copied_out(connection: psycopg.Connection, query: CompiledQuery) -> Iterator[pa.RecordBatch]:
    """The answer to a query in the forms in which it travels, a batch at a time."""
    from sqlglot import exp, parse_one

    shown = []
    for name, kind in zip(query.physical_names(), query.columns.values(), strict=True):
        form = _TRAVELS[kind][0] if kind in _TRAVELS else "{0}"
        shown.append(parse_one(form.format(f"q.{name}"), dialect="postgres"))
    whole = exp.select(*shown).from_(query.expression.subquery("q"))
    statement = f"COPY ({whole.sql(dialect='postgres')}) TO STDOUT (FORMAT csv)"
    names = list(query.physical_names())
    travels = {
        name: _TRAVELS[kind][1] if kind in _TRAVELS else pa.string() if kind == "string" else ARROW_TYPES[kind]
        for name, kind in zip(names, query.columns.values(), strict=True)
    }
    with connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
        stream = _Blocks(copy)
        if stream.exhausted():
            return
        yield from pa_csv.open_csv(
            stream,
            read_options=pa_csv.ReadOptions(use_threads=False, column_names=names, block_size=BLOCK_BYTES),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=pa_csv.ConvertOptions(
                column_types=travels,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["t"],
                false_values=["f"],
            ),
        )


def received(batch: pa.RecordBatch, query: CompiledQuery) -> pa.Table:
    """A batch of `copied_out` in canonical form."""
    columns = []
    for column, kind in zip(batch.columns, query.columns.values(), strict=True):
        if kind == "binary":
            columns.append(pa.array([None if v is None else bytes.fromhex(v) for v in column.to_pylist()], pa.binary()))
        elif kind in _TRAVELS:
            target = ARROW_TYPES[kind]
            columns.append(column.cast(target) if kind != "instant" else pc.cast(column, pa.timestamp("us")).cast(target))
        else:
            columns.append(column)
    table = pa.table(columns, names=[f"c{i}" for i in range(len(columns))])
    return canonical_table(table, list(query.columns), list(query.columns.values()))


class _Blocks(io.RawIOBase):
    """The bytes of a COPY as a file; rows are gathered into blocks, because each arrives on its own."""

    def __init__(self, copy: Any) -> None:
        self._copy = copy
        self._rest = b""

    def exhausted(self) -> bool:
        if not self._rest:
            self._rest = bytes(self._copy.read())
        return not self._rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts, length = [self._rest], len(self._rest)
        while size < 0 or length < size:
            block = self._copy.read()
            if not block:
                break
            parts.append(bytes(block))
            length += len(block)
        whole = b"".join(parts)
        end = len(whole) if size < 0 else size
        self._rest = whole[end:]
        return whole[:end]
