"""Connections of DuckDB that see some files and nothing else, with their settings locked.

Opening one takes longer than a small question, so that idle ones are kept, but for large files. A database file is attached
for the length of a question and let go afterwards, because whoever holds it keeps writers out. What does not fit into memory
is spilled encrypted, under a key that is in memory alone; where this DuckDB cannot encrypt, nothing is spilled.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.errors import SourceError, reported_as
from sfumato.core.stopping import interrupted_on_stop
from sfumato.core.temporary import HeldFolder, hold_temporary

if TYPE_CHECKING:
    import duckdb


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
            with plain_errors(self._where), interrupted_on_stop(chosen.connection.interrupt):
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
        if self._memory_limit is not None:
            connection.execute(f"SET memory_limit = {_text(str(self._memory_limit))}")
        readable = [str(path.resolve()) for path in (*self._files, *self._databases.values())]
        logs = [f"{path.resolve()}.wal" for path in self._databases.values()]
        if readable:
            connection.execute(f"SET allowed_paths = [{', '.join(map(_text, readable + logs))}]")
        connection.execute("SET autoinstall_known_extensions = false")
        connection.execute("SET autoload_known_extensions = false")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")


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
