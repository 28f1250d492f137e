"""Connections of DuckDB that see some files and nothing else, with their settings locked.

Opening one takes longer than a small question, so that idle ones are kept; a database file is let go after each
question instead, because whoever holds it keeps writers out.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.errors import SourceError

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class _Open:
    connection: duckdb.DuckDBPyConnection
    spill: tempfile.TemporaryDirectory[str]
    process: int

    def close(self) -> None:
        if self.process != os.getpid():
            return  # it belongs to the process from which this one was forked
        self.connection.close()
        self.spill.cleanup()


class Connections:
    """Connections to one database file (or to none), to further ones under other names, and to single files."""

    def __init__(
        self,
        where: str,
        database: Path | None = None,
        *,
        attached: Mapping[str, Path] | None = None,
        files: Sequence[Path] = (),
        threads: int | None = None,
        memory_limit: str | None = None,
    ) -> None:
        self._where = where
        self._database = database
        self._attached = dict(attached or {})
        self._files = [str(path.resolve()) for path in files]
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
            with plain_errors(self._where):
                yield chosen.connection
            whole = True
        finally:
            if whole and self._database is None and not self._attached:
                self._idle.append(chosen)
            else:
                chosen.close()

    def _taken(self) -> _Open | None:
        while self._idle:
            with suppress(IndexError):  # another thread was faster
                chosen = self._idle.pop()
                if chosen.process == os.getpid():
                    return chosen
        return None

    def _opened(self) -> _Open:
        import duckdb

        try:
            connection = duckdb.connect(str(self._database), read_only=True) if self._database else duckdb.connect(":memory:")
        except duckdb.Error as error:
            raise _unopened(self._where, error) from None
        spill = tempfile.TemporaryDirectory(prefix="sfumato-spill-")
        chosen = _Open(connection, spill, os.getpid())
        try:
            self._lock(connection, spill.name)
        except BaseException:
            chosen.close()
            raise
        return chosen

    def _lock(self, connection: duckdb.DuckDBPyConnection, spill: str) -> None:
        import duckdb

        with plain_errors(self._where):
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("SET python_enable_replacements = false")
            connection.execute("SET temp_directory = $1", [spill])
            if self._threads is not None:
                connection.execute("SET threads = $1", [self._threads])
            if self._memory_limit is not None:
                connection.execute("SET memory_limit = $1", [self._memory_limit])
        for name, path in self._attached.items():
            try:
                connection.execute(f"ATTACH {_quoted(str(path.resolve()))} AS {name} (READ_ONLY)")
            except duckdb.Error as error:
                raise _unopened(f"'{path}'", error) from None
        with plain_errors(self._where):
            if self._files:
                connection.execute("SET allowed_paths = $1", [self._files])
            connection.execute("SET autoinstall_known_extensions = false")
            connection.execute("SET autoload_known_extensions = false")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")


def _close_all(idle: list[_Open]) -> None:
    while idle:
        idle.pop().close()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _unopened(where: str, error: Exception) -> SourceError:
    return SourceError(
        f"{where} cannot be opened as a DuckDB database ({type(error).__name__}). "
        "Another process may have it open for writing, or it is no DuckDB file."
    )


@contextmanager
def plain_errors(where: str) -> Iterator[None]:
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
