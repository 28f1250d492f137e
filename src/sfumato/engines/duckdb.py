"""Rows in DuckDB: a table of a database file, or a Parquet or CSV file that is never loaded whole.

Each question opens the file read-only in a connection that can reach nothing else and whose settings are
locked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.core.errors import SourceError
from sfumato.data.schema import Type
from sfumato.engines.canonical import canonical, canonical_table
from sfumato.engines.class_queries import ROWS
from sfumato.engines.expressions import Kind
from sfumato.engines.plan import Field, Plan, Scan, scans
from sfumato.engines.sql_relation import SqlRelation, declared_fields

if TYPE_CHECKING:
    import duckdb

    from sfumato.engines.compile import CompiledQuery, PhysicalTable

BATCH_ROWS = 131_072

_EXACT: Mapping[str, Kind] = {
    "BOOLEAN": "boolean",
    "FLOAT": "number",
    "DOUBLE": "number",
    "DATE": "date",
    "TIME": "time",
    "BLOB": "binary",
    "TIMESTAMP": "datetime",
    "TIMESTAMP_S": "datetime",
    "TIMESTAMP_MS": "datetime",
    "TIMESTAMP_NS": "datetime",
    "TIMESTAMP WITH TIME ZONE": "instant",
}
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"})


class DuckDBRelation(SqlRelation):
    """A table (or view) of a DuckDB file, or a Parquet or CSV file read lazily.

    `types` and `missing` declare columns as the schema does. `threads` and `memory_limit` (such as "2GB")
    limit what a question may use; what does not fit is spilled to a private folder and removed.
    """

    engine = "duckdb"

    def __init__(
        self,
        path: str | Path,
        table: str | None = None,
        *,
        types: Mapping[str, Type] | None = None,
        missing: Mapping[str, Sequence[str]] | None = None,
        threads: int | None = None,
        memory_limit: str | None = None,
        separator: str | None = None,
    ) -> None:
        self._path = Path(path)
        self._table = table
        self._types = types
        self._missing = missing
        self._threads = threads
        self._memory_limit = memory_limit
        self._separator = separator
        if not self._path.is_file():
            raise SourceError(f"there is no file '{path}'")

    def __repr__(self) -> str:
        return f"DuckDBRelation('{self._path.name}'{f', table {self._table!r}' if self._table else ''})"

    @property
    def _database(self) -> bool:
        return is_database(self._path)

    @cached_property
    def _source(self) -> PhysicalTable:
        from sfumato.engines.compile import PhysicalTable

        if self._database:
            return PhysicalTable(self._found_table())
        if any(character in self._path.name for character in "*?[]{}"):
            raise SourceError(f"'{self._path}': DuckDB reads *, ?, [ and {{ in a file name as a pattern; rename the file")
        path = str(self._path.resolve())
        if self._path.suffix.lower() in (".parquet", ".pq"):
            return PhysicalTable((path,), "read_parquet", columns=self._parquet_names(path))
        options: list[tuple[str, str | bool]] = [
            ("all_varchar", True),
            ("allow_quoted_nulls", False),
            ("header", True),
        ]
        if self._separator is not None:
            options.append(("delim", self._separator))
        return PhysicalTable((path,), "read_csv", tuple(options))

    def _parquet_names(self, path: str) -> dict[str, str]:
        """DuckDB renames columns that differ in case alone; the file's own names are the truth."""
        import pyarrow.parquet as pq

        from sfumato.engines.compile import PhysicalTable

        try:
            names = pq.read_schema(path).names
        except (pa.ArrowException, OSError):
            raise SourceError(f"'{self._path}' is not a readable Parquet file") from None
        with self._connected() as connection:
            described = _described(connection, PhysicalTable((path,), "read_parquet"))
        return {own: theirs for own, (theirs, _) in zip(names, described, strict=True) if own != theirs}

    def _found_table(self) -> tuple[str, ...]:
        with self._connected() as connection:
            found = list_tables(connection)
        if self._table is None:
            if len(found) == 1:
                return next(iter(found.values()))
            raise SourceError(f"'{self._path}' has {len(found)} tables; name one with table=: {_listed(found)}")
        if self._table not in found:
            raise SourceError(f"'{self._path}' has no table '{self._table}'; it has: {_listed(found)}")
        return found[self._table]

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The columns by name, in order."""
        source = self._source
        with self._connected() as connection:
            described = _described(connection, source)
            if source.function == "read_csv":
                from sfumato.engines.csv_types import text_kinds

                declared = self._types or {}
                open_names = [name for name, _ in described if name not in declared]
                found = text_kinds(connection, source, open_names, self._missing or {})
                stored: dict[str, Kind] = {name: "string" for name, _ in described}
                types = {**found, **declared}
                return declared_fields(stored, types, self._missing)
        own = {theirs: name for name, theirs in source.columns.items()}
        stored = {own.get(name, name): kind_of_sql_type(given) for name, given in described}
        return declared_fields(stored, self._types, self._missing)

    def run(self, plan: Plan, uploads: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """The answer to a plan over `rows` and uploaded tables."""
        source = self._source  # opens a connection of its own
        with self._connected() as connection:
            return _answer(connection, plan, {ROWS: source}, uploads or {})

    def stream(self, plan: Plan) -> Iterator[pa.RecordBatch]:
        """The answer to a plan over `rows`, a batch at a time."""
        source = self._source
        with self._connected() as connection:
            query = _compiled(plan, {ROWS: source})
            result = connection.sql(query.sql)
            reader = getattr(result, "to_arrow_reader", None) or result.fetch_arrow_reader
            for batch in reader(BATCH_ROWS):
                table = _canonical(pa.Table.from_batches([batch]), query)
                yield from table.combine_chunks().to_batches()

    @contextmanager
    def _connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        import duckdb

        with tempfile.TemporaryDirectory(prefix="sfumato-spill-") as spill:
            try:
                connection = duckdb.connect(str(self._path), read_only=True) if self._database else duckdb.connect(":memory:")
            except duckdb.Error as error:
                raise SourceError(
                    f"'{self._path}' cannot be opened as a DuckDB database ({type(error).__name__}). "
                    "Another process may have it open for writing, or it is no DuckDB file."
                ) from None
            with connection, _plain_errors(f"'{self._path}'"):
                _lock(connection, spill, self._path, self._threads, self._memory_limit)
                yield connection


def run_in_process(plan: Plan, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The answer to a plan over Arrow tables in this process."""
    import duckdb

    with duckdb.connect(":memory:") as connection, _plain_errors("tables in memory"):
        _lock(connection, None, None, None, None)
        return _answer(connection, plan, {}, tables)


def read_table(connection: duckdb.DuckDBPyConnection, name: str) -> pa.Table:
    """The rows of a table as this connection sees them, what it has not committed yet included."""
    from sfumato.engines.compile import PhysicalTable

    stored = {label: kind_of_sql_type(given) for label, given in _described(connection, PhysicalTable((name,)))}
    fields = tuple(declared_fields(stored, None, None).values())
    return _answer(connection, Scan(ROWS, fields), {ROWS: PhysicalTable((name,))}, {})


def list_tables(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[str, ...]]:
    """The tables and views of a database: name (with its schema unless that is `main`) and quoted path."""
    rows = connection.execute(
        "SELECT table_catalog, table_schema, table_name FROM information_schema.tables "
        "WHERE table_catalog = current_database() "
        "AND table_schema NOT IN ('information_schema', 'pg_catalog') "
        "ORDER BY ALL"
    ).fetchall()
    return {(name if schema == "main" else f"{schema}.{name}"): (catalog, schema, name) for catalog, schema, name in rows}


def kind_of_sql_type(given: str) -> Kind:
    """What a column of this DuckDB type holds; types without a kind of their own are read as text."""
    if given in _EXACT:
        return _EXACT[given]
    if given.startswith("DECIMAL"):
        return "number"
    return "integer" if given in _INTEGERS or given.removeprefix("U") in _INTEGERS else "string"


def is_database(path: Path) -> bool:
    """True for a DuckDB database file, by its magic bytes after the checksum."""
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except OSError:
        return False


def _lock(
    connection: duckdb.DuckDBPyConnection,
    spill: str | None,
    path: Path | None,
    threads: int | None,
    memory_limit: str | None,
) -> None:
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET python_enable_replacements = false")
    if spill is not None:
        connection.execute("SET temp_directory = $1", [spill])
    if threads is not None:
        connection.execute("SET threads = $1", [threads])
    if memory_limit is not None:
        connection.execute("SET memory_limit = $1", [memory_limit])
    if path is not None and not is_database(path):
        connection.execute("SET allowed_paths = $1", [[str(path.resolve())]])
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _answer(
    connection: duckdb.DuckDBPyConnection,
    plan: Plan,
    stored: Mapping[str, PhysicalTable],
    uploads: Mapping[str, pa.Table],
) -> pa.Table:
    from sfumato.engines.compile import PhysicalTable

    needed = {scan.table for scan in scans(plan)}
    tables = dict(stored)
    for number, (name, table) in enumerate(uploads.items()):
        if name not in needed:
            continue
        # Canonical columns under plain names: Arrow names may differ in case alone, which DuckDB does not
        # tell apart.
        view = f"upload{number}"
        table = canonical(table)
        columns = {column: f"u{i}" for i, column in enumerate(table.column_names)}
        connection.register(view, table.rename_columns(list(columns.values())))
        tables[name] = PhysicalTable((view,), columns=columns, clean=True)
    query = _compiled(plan, tables)
    return _canonical(connection.sql(query.sql).to_arrow_table(), query)


def _compiled(plan: Plan, tables: Mapping[str, PhysicalTable]) -> CompiledQuery:
    from sfumato.engines.compile import compile_plan

    return compile_plan(plan, "duckdb", tables)


def _canonical(answer: pa.Table, query: CompiledQuery) -> pa.Table:
    return canonical_table(answer, list(query.columns), list(query.columns.values()))


def _described(connection: duckdb.DuckDBPyConnection, source: PhysicalTable) -> list[tuple[str, str]]:
    from sqlglot import exp

    query = exp.select("*").from_(source.expression()).limit(0).sql(dialect="duckdb")
    result = connection.sql(query)
    return list(zip(result.columns, [str(given) for given in result.types], strict=True))


def _listed(names: Mapping[str, object]) -> str:
    shown = ", ".join(list(names)[:20]) or "none"
    return shown + (", …" if len(names) > 20 else "")


@contextmanager
def _plain_errors(where: str) -> Iterator[None]:
    """DuckDB quotes values in its messages; ours name the source and the class of the error alone."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        reason = {
            "ConversionException": "a value is not of the declared type, or a whole number beyond 64 bits",
            "OutOfMemoryException": "the memory limit is too low",
        }.get(type(error).__name__, "the file may be damaged or may have changed")
        raise SourceError(f"{where} could not be read by DuckDB ({type(error).__name__}): {reason}") from None
