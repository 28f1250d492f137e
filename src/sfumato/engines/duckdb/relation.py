"""Rows in DuckDB: a table of a database file, or a Parquet or CSV file that is never loaded whole.

Each question has a connection to itself that can read this file and nothing else. Sampled contributions are bounded
in this process from the few columns they need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import SourceError, raise_alone
from sfumato.data.recoding import RecodingTable
from sfumato.data.relation import COUNT, Relation
from sfumato.data.schema import Type
from sfumato.data.texts.number_codes import codes_as_written
from sfumato.data.texts.reading import PLAIN, Reading
from sfumato.engines import class_queries
from sfumato.engines.canonical import canonical_columns
from sfumato.engines.class_queries import ROWS
from sfumato.engines.duckdb.broken_text import asked_again, reads_leniently
from sfumato.engines.duckdb.connections import (
    Connections,
    answered,
    canonical_answer,
    catalogue_name,
    compiled,
    delivered,
    described_columns,
    streamed,
)
from sfumato.engines.duckdb.csv_form import csv_table
from sfumato.engines.duckdb.stored_types import exact_kind_of, is_read_by_text, kind_of_sql_type
from sfumato.engines.duckdb.written_texts import refuse_dates_in_place, rewritten
from sfumato.engines.expressions import Kind
from sfumato.engines.joining import not_together
from sfumato.engines.plan import Field, Plan, Scan
from sfumato.engines.sql.relation import SqlRelation, declared_fields
from sfumato.engines.sql.unreadable_texts import unreadable_counted

if TYPE_CHECKING:
    import duckdb

    from sfumato.engines.sql.compile import PhysicalTable

R = TypeVar("R")


class DuckDBRelation(SqlRelation):
    """A table (or view) of a DuckDB file, or a Parquet or CSV file read lazily.

    `types` and `missing` declare columns as the schema does, and `reading` how the texts of a CSV file are written.
    `threads` and `memory_limit` (such as "2GB")
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
        reading: Reading = PLAIN,
    ) -> None:
        self._path = Path(path)
        self._table = table
        self._types = types
        self._missing = missing
        self._threads = threads
        self._memory_limit = memory_limit
        self._reading = reading
        self._joined: dict[tuple[Any, ...], Connections] = {}
        self._state: tuple[object, ...] | None = None
        if not self._path.is_file():
            raise SourceError(f"there is no file '{path}'")

    @property
    def infers_types(self) -> bool:  # type: ignore[override]
        """Text files have no types of their own."""
        return not self._database and self._path.suffix.lower() not in (".parquet", ".pq")

    def __repr__(self) -> str:
        return f"DuckDBRelation('{self._path.name}'{f', table {self._table!r}' if self._table else ''})"

    @property
    def limits(self) -> tuple[int | None, str | None]:
        """How many threads and how much memory a question may use; None where DuckDB decides."""
        return self._threads, self._memory_limit

    def reads(self, path: Path) -> bool:
        """Whether the rows are in this file."""
        return path.resolve() in {file.resolve() for file in self._files}

    @property
    def _files(self) -> tuple[Path, ...]:
        return (self._path,)

    @property
    def _database(self) -> bool:
        return is_database(self._path)

    @cached_property
    def _source(self) -> PhysicalTable:
        from sfumato.engines.sql.compile import PhysicalTable

        if self._database:
            return PhysicalTable(self._found_table())
        if self._path.suffix.lower() in (".parquet", ".pq"):
            return self._parquet((self._path,))
        self._refuse_pattern(self._path)
        refuse_dates_in_place(self._reading)
        return csv_table(self._path, self._reading)

    def _refuse_pattern(self, path: Path) -> None:
        if any(character in str(path.resolve()) for character in "*?[]{}"):
            raise SourceError(
                f"'{self._path}': DuckDB reads *, ?, [ and {{ in the name of a file or folder as a pattern; rename the file or "
                "folder"
            )

    def _parquet(self, paths: Sequence[Path]) -> PhysicalTable:
        """DuckDB renames columns that differ in case alone, and adds columns from names of folders such as `year=2024`; the
        files' own names are the truth."""
        import pyarrow.parquet as pq

        from sfumato.engines.sql.compile import PhysicalTable

        for path in paths:
            self._refuse_pattern(path)
        files = tuple(str(path.resolve()) for path in paths)
        try:
            names = pq.read_schema(files[0]).names
        except (pa.ArrowException, OSError):
            raise_alone(SourceError(f"'{self._path}' is not a readable Parquet file"))
        stored = PhysicalTable(files, "read_parquet", (("hive_partitioning", False),))
        with self._connected() as connection:
            described = described_columns(connection, stored)
        return replace(stored, columns={own: theirs for own, (theirs, _) in zip(names, described, strict=True) if own != theirs})

    def _found_table(self) -> tuple[str, ...]:
        with self._connected() as connection:
            tables = list_tables(connection, catalogue_name(self._path))
        if self._table is None:
            if len(tables) == 1:
                return next(iter(tables.values()))
            raise SourceError(
                f"'{self._path}' has {len(tables)} tables; name one with table= in Python, or "
                f"--table where a command has it: {_listed(tables)}"
            )
        if self._table not in tables:
            raise SourceError(f"'{self._path}' has no table '{self._table}'; it has: {_listed(tables)}")
        return tables[self._table]

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The columns by name, in order."""
        source = self._source
        with self._connected() as connection:
            if source.function == "read_csv":
                from sfumato.engines.duckdb.csv_types import text_kinds

                declared = self._types or {}
                open_names = [name for name in source.columns if name not in declared]
                read_types = text_kinds(connection, source, open_names, self._missing or {}, self._reading)
                stored: dict[str, Kind] = dict.fromkeys(source.columns, "string")
                types = {**read_types, **declared}
                return declared_fields(stored, types, self._missing)
            described = described_columns(connection, source)
        own = {theirs: name for name, theirs in source.columns.items()}
        stored = {own.get(name, name): kind_of_sql_type(sql_type) for name, sql_type in described}
        exact = {own.get(name, name): kind for name, sql_type in described if (kind := exact_kind_of(sql_type)) is not None}
        by_text = {own.get(name, name) for name, sql_type in described if is_read_by_text(sql_type)}
        return declared_fields(stored, self._types, self._missing, exact, by_text)

    @cached_property
    def _rows(self) -> PhysicalTable:
        """The source, its texts as they are read."""
        if self._reading.plain or self._source.function != "read_csv":
            return self._source
        texts = rewritten(self.fields, self._reading)
        numbers = [name for name in texts if self.fields[name].kind in ("integer", "number")]
        codes = {name: tuple(codes_as_written(self.fields[name].missing, self._reading)) for name in numbers}
        return replace(self._source, texts=texts, codes=codes) if texts else self._source

    def run(
        self,
        plan: Plan,
        uploads: Mapping[str, pa.Table] | None = None,
        beside: Mapping[str, Relation] | None = None,
    ) -> pa.Table:
        """The answer to a plan over `rows`, uploaded tables and other relations that DuckDB reads."""
        tables, connections = self._together(beside or {})
        clean = {name: canonical_columns(table) for name, table in (uploads or {}).items()}
        with unreadable_counted(plan, {**(beside or {}), ROWS: self}), connections.one() as connection:
            answer = asked_again(connection, plan, tables, lambda where: answered(connection, plan, where, clean))
        self._check_unchanged()
        return answer

    def recode_counted(self, recoding: RecodingTable, keep: Sequence[str]) -> tuple[pa.Table, NDArray[np.int64]]:
        """What `recode` gives, rows that hold the same once, and how often: most rows of a release equal another one, and those
        of the source never come into this process."""
        class_queries.check_recoding(recoding, keep, list(self.fields))
        cells = class_queries.cell_table(recoding, self.fields)
        answer = self.run(class_queries.counted_plan(self.fields, recoding, cells, keep), {class_queries.CELLS: cells})
        counts = answer.column(COUNT).to_numpy().astype(np.int64)
        class_queries.check_all_assigned(recoding, int(counts.sum()))
        carried = {name: answer.column(name) for name in keep if name not in recoding.quasi}
        klass = answer.column(class_queries.CLASS).to_numpy()
        return class_queries.released_table(recoding, keep, klass, carried), counts

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """The same rows, refused once the file is another than it is now."""
        held = self._with_fields(self.fields)
        held._state = self._now()
        yield held

    def rehearse(self, plans: Sequence[Plan], beside: Mapping[str, Relation] | None = None) -> None:
        """Refuse, without looking at a row, files that are gone or cannot be opened."""
        tables, connections = self._together(beside or {})
        with connections.one() as connection:
            for source in tables.values():
                described_columns(connection, source)

    def _check_unchanged(self) -> None:
        if self._state is not None and self._now() != self._state:
            raise SourceError(
                f"'{self._path}' was changed while it was read, so that its answers would be about different rows. "
                "Run it again when nobody writes to the file, or on a copy."
            )

    def _now(self) -> tuple[object, ...]:
        return tuple(state_of(path) for path in self._files)

    def stream(self, plan: Plan) -> Iterator[pa.RecordBatch]:
        """The answer to a plan over `rows`, a batch at a time."""
        tables = {ROWS: self._rows}
        with unreadable_counted(plan, {ROWS: self}), self._connected() as connection:

            def batches(where: Mapping[str, PhysicalTable]) -> Iterator[pa.RecordBatch]:
                query = compiled(plan, where)
                for batch in streamed(connection, query):
                    table = canonical_answer(pa.Table.from_batches([batch]), query)
                    yield from table.combine_chunks().to_batches()

            if reads_leniently(plan):  # all or nothing: the cell that stops DuckDB may come last
                yield from asked_again(connection, plan, tables, lambda where: list(batches(where)))
            else:
                yield from batches(tables)
        self._check_unchanged()

    def deliver(
        self, plan: Plan, uploads: Mapping[str, pa.Table], order: Sequence[str], take: Callable[[Iterator[pa.RecordBatch]], R]
    ) -> R:
        """Give the answer to a plan over `rows` and uploaded tables to `take`, sorted (see `sorted_answers`), a batch at a time.
        Text that cannot be read may make it begin again."""
        tables, connections = self._together({})
        clean = {name: canonical_columns(table) for name, table in uploads.items()}
        with unreadable_counted(plan, {ROWS: self}), connections.one() as connection:
            result = asked_again(connection, plan, tables, lambda where: delivered(connection, plan, where, clean, order, take))
        self._check_unchanged()
        return result

    def _together(self, beside: Mapping[str, Relation]) -> tuple[dict[str, PhysicalTable], Connections]:
        """Where every table is, and connections that see them all."""
        if not beside:
            return {ROWS: self._rows}, self._connections
        tables: dict[str, PhysicalTable] = {}
        databases: dict[str, Path] = {}
        files: list[Path] = []
        for name, other in {**beside, ROWS: self}.items():
            if not isinstance(other, DuckDBRelation):
                raise not_together(self, name, other)
            tables[name] = other._rows
            if not other._database:
                files.extend(other._files)
                continue
            path = other._path.resolve()
            attached_as = [catalogue for catalogue, attached in databases.items() if attached == path]
            catalogue = attached_as[0] if attached_as else catalogue_name(path, [label.lower() for label in databases])
            databases[catalogue] = path
            tables[name] = replace(other._rows, path=(catalogue, *other._rows.path[1:]))
        together = (tuple(databases.items()), tuple(files))
        if together not in self._joined:
            where = f"'{self._path}' and what is joined with it"
            self._joined[together] = Connections(where, databases, files, threads=self._threads, memory_limit=self._memory_limit)
        return tables, self._joined[together]

    @cached_property
    def _connections(self) -> Connections:
        databases, files = ({catalogue_name(self._path): self._path}, ()) if self._database else ({}, self._files)
        return Connections(f"'{self._path}'", databases, files, threads=self._threads, memory_limit=self._memory_limit)

    def _connected(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        return self._connections.one()


@cache
def _in_process() -> Connections:
    return Connections("tables in memory")


def deliver_in_process(
    plan: Plan, tables: Mapping[str, pa.Table], order: Sequence[str], take: Callable[[Iterator[pa.RecordBatch]], R]
) -> R:
    """Give the sorted answer to a plan over canonical Arrow tables to `take`, a batch at a time."""
    with _in_process().one() as connection:
        return delivered(connection, plan, {}, tables, order, take)


def run_in_process(plan: Plan, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The answer to a plan over canonical Arrow tables in this process."""
    with _in_process().one() as connection:
        return answered(connection, plan, {}, tables)


def read_table(connection: duckdb.DuckDBPyConnection, name: str) -> pa.Table:
    """The rows of a table as this connection sees them, what it has not committed yet included."""
    from sfumato.engines.sql.compile import PhysicalTable

    stored = {label: kind_of_sql_type(sql_type) for label, sql_type in described_columns(connection, PhysicalTable((name,)))}
    fields = tuple(declared_fields(stored, None, None).values())
    return answered(connection, Scan(ROWS, fields), {ROWS: PhysicalTable((name,))}, {})


def list_tables(connection: duckdb.DuckDBPyConnection, catalogue: str | None = None) -> dict[str, tuple[str, ...]]:
    """The tables and views of a database, by default the connection's own: name (with its schema unless that is
    `main`) and path."""
    rows = connection.execute(
        "SELECT table_catalog, table_schema, table_name FROM information_schema.tables "
        "WHERE table_catalog = coalesce($1, current_database()) "
        "AND table_schema NOT IN ('information_schema', 'pg_catalog') "
        "ORDER BY ALL",
        [catalogue],
    ).fetchall()
    return {(name if schema == "main" else f"{schema}.{name}"): (catalog, schema, name) for catalog, schema, name in rows}


def state_of(path: Path) -> tuple[object, ...]:
    """What changes when a file, or the log beside a database file, is written or replaced."""
    state: list[object] = []
    for each in (path, path.with_name(path.name + ".wal")):
        try:
            status = each.stat()
        except FileNotFoundError:
            state.append(None)
            continue
        state += [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    return tuple(state)


def is_database(path: Path) -> bool:
    """True for a DuckDB database file, by its magic bytes after the checksum."""
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except OSError:
        return False


def _listed(names: Mapping[str, object]) -> str:
    shown = ", ".join(list(names)[:20]) or "none"
    return shown + (", …" if len(names) > 20 else "")
