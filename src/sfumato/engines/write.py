"""Write a table into a DuckDB file or a PostgreSQL database, whole or not at all.

The table is read back and may still be rejected before anybody sees it: in PostgreSQL inside the transaction that writes it, in
DuckDB in a file beside the place, which gets its name when it is complete.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import SourceError, Unsupported, all_at_once, reported_as
from sfumato.core.files import hold_folder, refuse_special
from sfumato.engines.address import is_postgres_url, redacted
from sfumato.engines.canonical import canonical_column, decoded_table
from sfumato.engines.duckdb.fresh_copy import fresh_copy, refuse_uncopied

if TYPE_CHECKING:
    import duckdb
    import psycopg

#: Looks at the rows as the database gives them back, and raises when they may not stay.
Confirm = Callable[[pa.Table], None]

DEFAULT_TABLE = "release"
_ANOTHER_TABLE = "choose another table name, or pass overwrite=True (--overwrite; with --write-to: --write-overwrite)"
_LONGEST_POSTGRES_NAME = 63


def write_table(
    table: pa.Table,
    destination: str | Path,
    *,
    table_name: str | None = None,
    overwrite: bool = False,
    confirm: Confirm | None = None,
) -> None:
    """Write `table` to a DuckDB file (path) or a PostgreSQL database (URL).

    An existing table of that name is refused unless `overwrite` is set. `table_name` defaults to "release";
    in PostgreSQL it may name a schema: `published.people`. `confirm` is given the rows as they are read back
    before anybody else can see them; when it raises, the database is left as it was.
    """
    name = table_name or DEFAULT_TABLE
    names = table.column_names
    columns = [canonical_column(column, label) for label, column in zip(names, table.columns, strict=True)]
    if is_postgres_url(destination):
        check_names([name, *names], names, fold_case=False)
        _write_postgres(_assembled(names, columns), str(destination), name, overwrite, confirm)
    else:
        _refuse_other_addresses(destination)
        check_names([name, *names], names, fold_case=True)
        _write_duckdb(decoded_table(_assembled(names, columns)), Path(destination), name, overwrite, confirm)


def check_destination(destination: str | Path, *, table_name: str | None = None, overwrite: bool = False) -> None:
    """Refuse a place where the table could not be written, before the work that makes it."""
    name = table_name or DEFAULT_TABLE
    if is_postgres_url(destination):
        from sfumato.engines.postgres.transport import connect

        with connect(str(destination)) as connection:
            refuse_existing(connection, str(destination), name, overwrite)
        return
    _refuse_other_addresses(destination)
    import duckdb

    path = Path(destination)
    refuse_special(path)  # opening a pipe would wait for its other end
    if not path.parent.is_dir():
        raise SourceError(f"there is no folder '{path.parent}' to write '{path.name}' into")
    if not _is_there(path):
        return
    closed = reported_as(
        lambda error: SourceError(f"'{path}' cannot be opened ({type(error).__name__}); does another process have it open?")
    )
    with closed:
        with duckdb.connect(str(path), read_only=True) as opened:
            _refuse_known(opened, str(path), name, overwrite)
        refuse_uncopied(path)


def _refuse_other_addresses(destination: str | Path) -> None:
    if "://" in str(destination):
        kind = str(destination).split("://")[0]
        raise SourceError(f"addresses of the kind '{kind[:20]}://' are not supported; use postgresql:// or a DuckDB file")


def _assembled(names: list[str], columns: list[pa.ChunkedArray]) -> pa.Table:
    if not names:
        raise Unsupported("a table without columns cannot be written to a database")
    return pa.table(columns, schema=pa.schema([(n, c.type) for n, c in zip(names, columns, strict=True)]))


def check_names(everything: list[str], columns: list[str], *, fold_case: bool) -> None:
    """Refuse names that the database cannot keep apart or at all; DuckDB folds case."""
    faults = []
    for name in everything:
        if not name or "\x00" in name:
            faults.append("a name is empty or contains the character NUL")
        if not fold_case and len(name.encode()) > _LONGEST_POSTGRES_NAME and name in columns:
            faults.append(f"the column name '{name}' is longer than PostgreSQL keeps ({_LONGEST_POSTGRES_NAME} bytes)")
    earlier: dict[str, str] = {}
    for name in columns:
        key = name.lower() if fold_case else name
        if earlier.get(key) == name:
            faults.append(f"the column name '{name}' occurs more than once")
        elif key in earlier:
            faults.append(f"DuckDB does not tell apart the columns '{earlier[key]}' and '{name}'")
        earlier[key] = name
    all_at_once(Unsupported, "column names", faults)


def _is_there(path: Path) -> bool:
    from sfumato.engines.duckdb.relation import is_database

    existing = path.exists()
    if existing and not is_database(path):
        raise SourceError(f"'{path}' exists and is no DuckDB database; choose another file")
    return existing


def _write_duckdb(table: pa.Table, path: Path, name: str, overwrite: bool, confirm: Confirm | None) -> None:
    import duckdb

    from sfumato.engines.staging.folder import PREFIX, sweep_folders

    refuse_special(path)
    existing = _is_there(path)
    path = path.resolve()

    def unwritten(error: Exception) -> SourceError:
        return SourceError(
            f"'{path}' could not be written ({type(error).__name__}). Nothing was changed; check the disk, "
            "the folder's permissions, and whether another process or this one has the file open."
        )

    with ExitStack() as stack, reported_as(unwritten):
        sweep_folders(path.parent)
        held = hold_folder(lambda: path.parent / f"{PREFIX}{secrets.token_hex(8)}")
        stack.callback(held.remove)
        if existing:
            with duckdb.connect(str(path), read_only=True) as opened:
                _refuse_known(opened, str(path), name, overwrite)
            target, put = stack.enter_context(fresh_copy(path, held.path, name if overwrite else None))
        else:
            target = held.path / path.name
        with duckdb.connect(str(target)) as connection:
            _fill_duckdb(connection, table, name, overwrite, str(path), confirm)
        if existing:
            put()
        else:
            target.chmod(0o600)  # a database is its owner's, whatever the umask
            os.replace(target, path)


def _fill_duckdb(
    connection: duckdb.DuckDBPyConnection, table: pa.Table, name: str, overwrite: bool, where: str, confirm: Confirm | None
) -> None:
    from sqlglot import exp

    from sfumato.engines.duckdb.relation import read_table
    from sfumato.engines.sql.values import identifier

    connection.execute("SET python_enable_replacements = false")
    _refuse_known(connection, where, name, overwrite)
    connection.register("sfumato_rows", table.rename_columns([f"u{i}" for i in range(table.num_columns)]))
    shown = [exp.alias_(exp.column(f"u{i}"), label, quoted=True) for i, label in enumerate(table.column_names)]
    statement = exp.Create(
        this=exp.Table(this=identifier(name)),
        kind="TABLE",
        replace=overwrite,
        expression=exp.select(*shown).from_("sfumato_rows"),
    )
    connection.begin()
    try:
        connection.execute(statement.sql(dialect="duckdb"))
        if confirm is not None:
            confirm(read_table(connection, name))
        connection.commit()
    except BaseException:  # an interruption too must not leave the table
        connection.rollback()
        raise
    connection.unregister("sfumato_rows")


def _refuse_known(connection: duckdb.DuckDBPyConnection, where: str, name: str, overwrite: bool) -> None:
    from sfumato.engines.duckdb.relation import list_tables

    if name.lower() in {table.lower() for table in list_tables(connection)} and not overwrite:
        raise SourceError(f"'{where}' already has a table '{name}'; {_ANOTHER_TABLE}")


def _write_postgres(table: pa.Table, url: str, name: str, overwrite: bool, confirm: Confirm | None) -> None:
    from psycopg import sql

    from sfumato.engines.class_queries import table_fields
    from sfumato.engines.postgres.relation import read_table
    from sfumato.engines.postgres.transport import connect, copy_in, create_table

    faults = (
        f"column '{label}' has texts with the character NUL, which PostgreSQL cannot store"
        for label, column in zip(table.column_names, table.columns, strict=True)
        if pa.types.is_dictionary(column.type) and _has_nul(column)
    )
    all_at_once(Unsupported, "values", faults)
    with connect(url) as connection, connection.transaction():
        path, existing = refuse_existing(connection, url, name, overwrite)
        if existing:
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(*path)))
        create_table(connection, path, table_fields(table), table.column_names, text="")
        copy_in(connection, path, table)
        if confirm is not None:
            confirm(read_table(connection, path))


def refuse_existing(connection: psycopg.Connection, url: str, name: str, overwrite: bool) -> tuple[tuple[str, ...], bool]:
    """Where the table goes, and whether one is there; refused unless it may be overwritten."""
    outer, _, inner = name.partition(".")
    row = connection.execute("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", [outer]).fetchone()
    path = (outer, inner) if inner and row else (name,)
    existing = connection.execute(
        "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relname = %s AND n.nspname = COALESCE(%s, current_schema())",
        [path[-1], path[0] if len(path) > 1 else None],
    ).fetchone()
    if existing and not overwrite:
        raise SourceError(f"{redacted(url)} already has a table '{name}'; {_ANOTHER_TABLE}")
    return path, existing is not None


def _has_nul(column: pa.ChunkedArray) -> bool:
    return any(
        bool(pc.any(pc.match_substring(chunk.dictionary, "\x00")).as_py()) for chunk in column.chunks if len(chunk.dictionary)
    )
