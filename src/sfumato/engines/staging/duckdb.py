"""Rows staged as a table of a DuckDB file that is written beside its place.

The table is written, read back and judged in a file of a hidden folder, and published by giving the file its name. Sorted rows
come a batch at a time. A file that is there already is written anew with all of its other content (`fresh_copy`), so that neither
rows that were not published nor those of a replaced table stay in it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.core.errors import SourceError, reported_as
from sfumato.core.files import hold_folder
from sfumato.engines import write
from sfumato.engines.duckdb.connections import Connections
from sfumato.engines.duckdb.fresh_copy import fresh_copy
from sfumato.engines.duckdb.relation import DuckDBRelation
from sfumato.engines.expressions import Kind
from sfumato.engines.sql.compile import PhysicalTable
from sfumato.engines.staging.base import DatabaseTable, Staged, unwritten
from sfumato.engines.staging.folder import PREFIX, sweep_folders

if TYPE_CHECKING:
    import duckdb

#: Hands sorted rows to a function, a batch at a time, and returns what that returns.
Deliver = Callable[[Callable[[Iterator[pa.RecordBatch]], int]], int]


@contextmanager
def staged_in_duckdb(deliver: Deliver, columns: Mapping[str, Kind], destination: DatabaseTable) -> Iterator[Staged]:
    """Sorted rows in a table of a DuckDB file that nobody sees before it is published."""
    from sfumato.engines.sql.sorted_answers import plain_schema

    path = _place(destination)
    check_duckdb(destination, columns)
    sweep_folders(path.parent)

    def failed(error: Exception) -> SourceError:
        return unwritten(destination, f"DuckDB gave up ({type(error).__name__}); check the disk and who has the file open")

    with ExitStack() as stack:
        with reported_as(failed):
            held = hold_folder(lambda: path.parent / f"{PREFIX}{secrets.token_hex(8)}")
            stack.callback(held.remove)
            target, put = stack.enter_context(_beside(path, held.path, destination))
        with _opened(target, failed) as connection:
            schema = plain_schema(columns)

            def fill(batches: Iterator[pa.RecordBatch]) -> int:
                with reported_as(failed):
                    return _fill(connection, destination, schema, batches)

            rows = deliver(fill)

            def prepare() -> None:
                with reported_as(failed):
                    connection.commit()
                    connection.close()  # the log goes into the file

            def publish() -> None:
                with reported_as(failed):
                    put()

            yield Staged(rows, _OpenTable(target, destination.name, connection), publish, prepare=prepare)


def _place(destination: DatabaseTable) -> Path:
    """Where the file is or will be; a link is followed, and what it points to is replaced."""
    return Path(os.path.realpath(destination.address))


@contextmanager
def _beside(path: Path, folder: Path, destination: DatabaseTable) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A file in the folder for everything that is to be in the database, and what gives it its place."""
    if path.exists():
        with fresh_copy(path, folder, destination.name if destination.overwrite else None) as (target, put):
            yield target, put
        return
    target = folder / path.name

    def link() -> None:
        target.chmod(0o600)  # a database is its owner's, whatever the umask
        os.link(target, path)  # unlike a rename, it replaces nothing

    yield target, link


def check_duckdb(destination: DatabaseTable, columns: Mapping[str, Kind] | None = None) -> None:
    """Refuse a file or a table name that cannot be written."""
    path = _place(destination)
    write.check_destination(path, table_name=destination.name, overwrite=destination.overwrite)
    if not os.access(path.parent, os.W_OK | os.X_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise SourceError(f"you may not write '{path}'. Choose another place, or ask for the right.")
    write.check_names([destination.name, *(columns or ())], list(columns or ()), fold_case=True)


@contextmanager
def _opened(target: Path, failed: Callable[[Exception], SourceError]) -> Iterator[duckdb.DuckDBPyConnection]:
    import duckdb

    with reported_as(failed):
        connection = duckdb.connect(str(target))
        connection.execute("SET python_enable_replacements = false")
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET temp_directory = ''")  # nothing is spilled beside the file
    try:
        yield connection
    finally:
        # Closing rolls back what was not committed.
        connection.close()


def _fill(
    connection: duckdb.DuckDBPyConnection, destination: DatabaseTable, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> int:
    from sqlglot import exp

    from sfumato.engines.sql.values import identifier

    plain = pa.schema([(f"u{place}", field.type) for place, field in enumerate(schema)])
    stream = (pa.RecordBatch.from_arrays(batch.columns, schema=plain) for batch in batches)
    connection.register("sfumato_rows", pa.RecordBatchReader.from_batches(plain, stream))
    shown = [exp.alias_(exp.column(f"u{place}"), name, quoted=True) for place, name in enumerate(schema.names)]
    statement = exp.Create(
        this=exp.Table(this=identifier(destination.name)),
        kind="TABLE",
        replace=destination.overwrite,
        expression=exp.select(*shown).from_("sfumato_rows"),
    )
    connection.begin()
    try:
        connection.execute(statement.sql(dialect="duckdb"))
        row = connection.execute(
            exp.select("count(*)").from_(exp.Table(this=identifier(destination.name))).sql(dialect="duckdb")
        ).fetchone()
    except BaseException:
        connection.rollback()
        raise
    finally:
        connection.unregister("sfumato_rows")
    return int(row[0]) if row is not None else 0


class _OpenTable(DuckDBRelation):
    """A table as the connection sees it that is writing it."""

    def __init__(self, path: Path, table: str, connection: duckdb.DuckDBPyConnection) -> None:
        super().__init__(path, table)
        self._connection = connection

    @cached_property
    def _source(self) -> PhysicalTable:
        return PhysicalTable((str(self._table),))

    @property
    def _database(self) -> bool:
        return True

    @cached_property
    def _connections(self) -> Connections:
        return _Borrowed(f"'{self._path.name}'", self._connection)


class _Borrowed(Connections):
    """The one connection that somebody else has."""

    def __init__(self, where: str, connection: duckdb.DuckDBPyConnection) -> None:
        super().__init__(where)
        self._connection = connection

    @contextmanager
    def one(self) -> Iterator[duckdb.DuckDBPyConnection]:
        from sfumato.engines.duckdb.connections import plain_errors

        with plain_errors(self._where):
            yield self._connection
