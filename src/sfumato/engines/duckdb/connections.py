"""Connections of DuckDB that see some files and nothing else, with their settings locked, and the answers of plans on them.

Opening one takes longer than a small question, so that idle ones are kept, but for large files. A database file is attached
for the length of a question and let go afterwards, because whoever holds it keeps writers out. What does not fit into memory
is spilled encrypted, under a key that is in memory alone; where this DuckDB cannot encrypt, nothing is spilled. For a plan,
uploaded tables are registered, sampled contributions are bounded in this process first, and the rest is one query.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from sfumato.core.errors import SourceError, reported_as
from sfumato.core.files import HeldFolder, hold_temporary
from sfumato.core.memory_limit import memory_limit
from sfumato.core.stopping import interrupted_on_stop
from sfumato.engines.canonical import canonical_table
from sfumato.engines.duckdb.broken_text import errors_of_a_reader
from sfumato.engines.plan import BoundedGroup, Field, Plan, Scan, columns, parts, scans, validate
from sfumato.engines.time_limits import LIMIT, stopped_in_time

if TYPE_CHECKING:
    import duckdb

    from sfumato.engines.sql.compile import CompiledQuery, PhysicalTable

R = TypeVar("R")

BATCH_ROWS = 16_384


@dataclass(frozen=True)
class _Open:
    connection: duckdb.DuckDBPyConnection
    spill: HeldFolder
    process: int

    def close(self) -> None:
        if self.process != os.getpid():
            return  # it belongs to the process from which this one was forked
        self.connection.close()
        self.spill.remove()


#: From this size of the files on, what DuckDB keeps of a GROUP BY until its connection is closed is much.
_LARGE_BYTES = 8 * 1024 * 1024


#: What DuckDB needs at least beside everything else.
_LEAST_BYTES = 128 * 1024 * 1024


class Connections:
    """Connections that read some database files, each under a name, and some other files."""

    def __init__(
        self,
        where: str,
        databases: Mapping[str, Path] | None = None,
        files: Sequence[Path] = (),
        *,
        threads: int | None = None,
        memory_limit: str | None = None,
    ) -> None:
        self._where = where
        self._databases = dict(databases or {})
        self._files = files
        self._threads = threads
        self._memory_limit = memory_limit
        self._idle: list[_Open] = []
        weakref.finalize(self, _close_all, self._idle)

    @contextmanager
    def one(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection for one question; nothing else uses it meanwhile."""
        chosen = self._taken() or self._opened()
        whole = False
        try:
            for name, path in self._databases.items():
                _attach(chosen.connection, name, path)
            interrupt = chosen.connection.interrupt
            limited = interrupted_on_stop(interrupt) if LIMIT.get() is None else stopped_in_time(interrupt, self._where)
            with limited, plain_errors(self._where):
                yield chosen.connection
                for name in self._databases:
                    chosen.connection.execute(f"DETACH {_identifier(name)}")
            whole = True
        finally:
            if whole and not self._large():
                self._idle.append(chosen)
            else:
                chosen.close()

    def _large(self) -> bool:
        """Whether what a question about these files leaves behind is worth more than opening another connection."""
        size = 0
        for path in (*self._files, *self._databases.values()):
            with suppress(OSError):
                size += path.stat().st_size
        return size > _LARGE_BYTES

    def _taken(self) -> _Open | None:
        while self._idle:
            with suppress(IndexError):  # another thread was faster
                chosen = self._idle.pop()
                if chosen.process == os.getpid():
                    return chosen
        return None

    def _opened(self) -> _Open:
        import duckdb

        connection = duckdb.connect(":memory:")
        chosen = _Open(connection, hold_temporary("spill"), os.getpid())
        try:
            with plain_errors(self._where):
                self._lock(connection, str(chosen.spill.path) if _encrypts_spills(connection) else "")
        except BaseException:
            chosen.close()
            raise
        return chosen

    def _lock(self, connection: duckdb.DuckDBPyConnection, spill: str) -> None:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET python_enable_replacements = false")
        # Written out rather than bound: DuckDB imports pandas, where there is one, to bind a parameter.
        connection.execute(f"SET temp_directory = {_text(spill)}")
        if self._threads is not None:
            connection.execute(f"SET threads = {int(self._threads)}")
        limit = self._memory_limit or _share_of_limit()
        if limit is not None:
            connection.execute(f"SET memory_limit = {_text(str(limit))}")
        readable = [str(path.resolve()) for path in (*self._files, *self._databases.values())]
        logs = [f"{path.resolve()}.wal" for path in self._databases.values()]
        if readable:
            connection.execute(f"SET allowed_paths = [{', '.join(map(_text, readable + logs))}]")
        connection.execute("SET autoinstall_known_extensions = false")
        connection.execute("SET autoload_known_extensions = false")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")


def _share_of_limit() -> str | None:
    """Half of what is left of what the system lets this process have, where it has a limit: DuckDB looks at the machine's memory
    alone."""
    limit = memory_limit()
    if limit is None:
        return None
    pa.set_memory_pool(pa.system_memory_pool())  # for a limit that was set after Arrow was loaded
    used = 0
    with suppress(OSError, ValueError, IndexError, AttributeError):  # another system than Linux
        used = int(Path("/proc/self/statm").read_text().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    return f"{max(limit - used, _LEAST_BYTES) // 2 // 1024}KiB"


def _encrypts_spills(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether what is spilled is encrypted from now on.

    DuckDB brings ciphers along but calls its generator of keys weaker than one for cryptography should be, hence the name of
    the second setting; the key is drawn afresh, never written, and guards files that the next start removes.
    """
    import duckdb

    try:
        connection.execute("SET force_mbedtls_unsafe = true")
        connection.execute("SET temp_file_encryption = true")
    except duckdb.Error:  # a version without them
        return False
    return True


def catalogue_name(path: Path, taken: Sequence[str] = ()) -> str:
    """The name under which a database file is attached: its own, which its views may use, unless that is taken."""
    return path.stem if path.stem.lower() not in {*taken, "memory", "system", "temp"} else f"{path.stem} {len(taken) + 1}"


def _attach(connection: duckdb.DuckDBPyConnection, name: str, path: Path) -> None:
    def unopened(error: Exception) -> SourceError:
        return SourceError(
            f"'{path}' cannot be opened as a DuckDB database ({type(error).__name__}). "
            "Another process may have it open for writing, or it is no DuckDB file."
        )

    with reported_as(unopened):
        connection.execute(f"ATTACH {_text(str(path.resolve()))} AS {_identifier(name)} (READ_ONLY)")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _close_all(idle: list[_Open]) -> None:
    while idle:
        idle.pop().close()


@contextmanager
def plain_errors(where: str) -> Iterator[None]:
    """DuckDB quotes values in its messages; ours name the source and the class of the error alone."""
    with reported_as(lambda error: _unreadable(where, error)):
        yield


def _unreadable(where: str, error: Exception) -> SourceError:
    reason = {
        "ConversionException": "a value is not of the declared type, or a whole number beyond 64 bits",
        "OutOfMemoryException": "the memory limit is too low",
    }.get(type(error).__name__, "the file may be damaged or may have changed")
    return SourceError(f"{where} could not be read by DuckDB ({type(error).__name__}): {reason}")


# Answers of plans ---------------------------------------------------------------------------------------------------------------


def answered(
    connection: duckdb.DuckDBPyConnection,
    plan: Plan,
    stored: Mapping[str, PhysicalTable],
    uploads: Mapping[str, pa.Table],
) -> pa.Table:
    """The answer to a plan over stored and canonical uploaded tables."""
    with _registered(connection, plan, stored, uploads) as tables:
        if isinstance(plan, BoundedGroup) and plan.sampled:
            return tables.drawn(plan)
        query = tables.query(plan)
        return canonical_answer(connection.sql(query.sql).to_arrow_table(), query)


def delivered(
    connection: duckdb.DuckDBPyConnection,
    plan: Plan,
    stored: Mapping[str, PhysicalTable],
    uploads: Mapping[str, pa.Table],
    order: Sequence[str],
    take: Callable[[Iterator[pa.RecordBatch]], R],
) -> R:
    """What `take` makes of the answer to a plan, sorted, a batch at a time; see `sorted_answers`."""
    from sfumato.engines.sql.sorted_answers import in_order, plain_batch

    with _registered(connection, plan, stored, uploads) as tables:
        query = in_order(tables.query(plan), order)
        return take(plain_batch(pa.Table.from_batches([batch]), query) for batch in streamed(connection, query))


class _Registered:
    """Tables on a connection, under the names that plans call them by."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, stored: Mapping[str, PhysicalTable]) -> None:
        self.connection = connection
        self.tables = dict(stored)
        self.views: list[str] = []

    def put(self, name: str, table: pa.Table) -> None:
        from sfumato.engines.sql.compile import PhysicalTable

        # Plain names: Arrow names may differ in case alone, which DuckDB does not tell apart.
        plain = {column: f"u{i}" for i, column in enumerate(table.column_names)}
        self.views.append(f"upload{len(self.views)}")
        self.connection.register(self.views[-1], table.rename_columns(list(plain.values())))
        self.tables[name] = PhysicalTable((self.views[-1],), columns=plain, clean=True)

    def query(self, plan: Plan) -> CompiledQuery:
        if any(isinstance(part, BoundedGroup) and part.sampled for part in parts(plan)):
            from sfumato.engines.duckdb.bounding_in_process import replace_sampled

            plan = replace_sampled(plan, self._scan)
        return compiled(plan, self.tables)

    def drawn(self, part: BoundedGroup) -> pa.Table:
        from sfumato.engines.duckdb.bounding_in_process import bounded_in_process

        return bounded_in_process(part, lambda rows: streamed(self.connection, compiled(rows, self.tables)))

    def _scan(self, part: BoundedGroup) -> Scan:
        name = f"\x00bounded{len(self.views)}"
        self.put(name, self.drawn(part))
        return Scan(name, tuple(Field(column, kind) for column, kind in columns(part).items()))


@contextmanager
def _registered(
    connection: duckdb.DuckDBPyConnection,
    plan: Plan,
    stored: Mapping[str, PhysicalTable],
    uploads: Mapping[str, pa.Table],
) -> Iterator[_Registered]:
    validate(plan)
    tables = _Registered(connection, stored)
    try:
        for name in dict.fromkeys(scan.table for scan in scans(plan)):
            if name in uploads:
                tables.put(name, uploads[name])
        yield tables
    finally:
        for view in tables.views:
            connection.unregister(view)


def streamed(connection: duckdb.DuckDBPyConnection, query: CompiledQuery) -> Iterator[pa.RecordBatch]:
    """The answer to a query, a batch at a time."""
    with errors_of_a_reader():
        yield from connection.sql(query.sql).to_arrow_reader(BATCH_ROWS)


def compiled(plan: Plan, tables: Mapping[str, PhysicalTable]) -> CompiledQuery:
    """A plan as a query of DuckDB."""
    from sfumato.engines.sql.compile import compile_plan

    return compile_plan(plan, "duckdb", tables)


def canonical_answer(answer: pa.Table, query: CompiledQuery) -> pa.Table:
    """The answer to a query in canonical form, under the plan's names."""
    return canonical_table(answer, list(query.columns), list(query.columns.values()))


def described_columns(connection: duckdb.DuckDBPyConnection, source: PhysicalTable) -> list[tuple[str, str]]:
    """What DuckDB calls the columns of a table, and their types."""
    from sqlglot import exp

    query = exp.select("*").from_(source.expression()).limit(0).sql(dialect="duckdb")
    result = connection.sql(query)
    return list(zip(result.columns, [str(sql_type) for sql_type in result.types], strict=True))
