"""A ledger in one SQLite file: created readable by its owner only, write-ahead log, every commit on the disk.

Writers take the write lock at the beginning of a transaction (`BEGIN IMMEDIATE`) and wait for each other up
to `patience` seconds, looking again every few milliseconds.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sfumato.core.errors import LedgerError, NoLedger, raise_alone
from sfumato.core.platforms import flags
from sfumato.ledger.chain import FORMAT
from sfumato.ledger.store import DEFINITIONS, LATER_INDICES, VERSION, Tables

APPLICATION = 0x5366756D  # "Sfum", in the file's header: distinguishes a ledger from any other SQLite file
PATIENCE = 30.0
#: Seconds between two looks at the write lock. SQLite's own waiting sleeps up to 100 ms, and while everybody sleeps the
#: lock is free: with 16 writers that costs a quarter of the throughput and keeps the unlucky waiting.
FIRST_WAIT, LONGEST_WAIT = 0.0005, 0.004

_NEW = flags("O_CREAT", "O_EXCL", "O_RDWR", "O_CLOEXEC")
_APPEND_ONLY = tuple(
    f"CREATE TRIGGER entries_no_{verb} BEFORE {verb} ON entries BEGIN SELECT RAISE(ABORT, 'append only'); END"
    for verb in ("UPDATE", "DELETE")
)

_REASONS = {
    "SQLITE_NOTADB": "it is not an SQLite file. Name another file for the ledger, or restore it from a copy",
    "SQLITE_CORRUPT": "the file is damaged. Restore it from a copy and compare the head with a certificate",
    "SQLITE_BUSY": "another program holds it and did not let go. Try again when that has finished",
    "SQLITE_LOCKED": "another program holds it and did not let go. Try again when that has finished",
    "SQLITE_READONLY": "the file or its folder is read-only. Allow writing, or name another place",
    "SQLITE_FULL": "the disk is full. Nothing was entered; free some space and try again",
    "SQLITE_IOERR": "reading or writing the disk failed. Nothing was entered; check space and disk",
    "SQLITE_CANTOPEN": "the file cannot be opened. Check that its folder exists and may be written",
    "SQLITE_PERM": "access is not allowed. Check the permissions of file and folder",
    "OperationalError": "it holds text that cannot be read. Restore it from a copy",
    "ProgrammingError": "it was closed. Open it again",
    "SQLITE_CONSTRAINT": "an entry would be doubled or changed, which a ledger never does. Run verify",
}


class SqliteStore:
    """One connection to the file, shared by the threads of this process and reopened after a fork."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False, patience: float = PATIENCE) -> None:
        self._path = Path(path)
        self._place = str(self._path.absolute())
        #: Where the file itself lies: SQLite follows links, and keeps its log beside what they lead to.
        self._file = os.path.realpath(self._place)
        self._opened: dict[str, tuple[int, int]] = {}
        self._read_only = read_only
        self._patience = patience
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._abandoned: list[sqlite3.Connection] = []
        if not read_only:
            self._create_file()
        elif not self._path.is_file():
            raise NoLedger(f"there is no ledger at {self.description}")
        if not self._path.is_file():  # what is written to a device is lost
            raise LedgerError(f"the ledger {self.description} is not a plain file. Name another file.")
        self._connection = self._connect()

    @property
    def description(self) -> str:
        """The path of the file."""
        return str(self._path)

    @contextmanager
    def writing(self) -> Iterator[Tables]:
        """A transaction under the file's write lock."""
        with self._transaction("BEGIN IMMEDIATE") as tables:
            yield tables

    @contextmanager
    def reading(self) -> Iterator[Tables]:
        """A transaction that sees the file as it is now."""
        with self._transaction("BEGIN") as tables:
            yield tables

    def run(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:  # cells
        """One statement."""
        cursor = self._connection.execute(statement.replace("{t}", "").replace("{c}", ""), parameters)
        return cursor.fetchall() if cursor.description is not None else [(cursor.rowcount,)]

    def sound(self) -> bool:
        """True when SQLite finds tables and indices in order."""
        with self.reading():
            return self.run("PRAGMA integrity_check(1)") == [("ok",)]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._process == os.getpid():
                self._connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Tables]:
        with self._lock:
            self._after_fork()
            with self._explained():
                self._begin(begin)
                try:
                    self._check_file()
                    yield Tables(self)
                    self._connection.execute("COMMIT")
                except BaseException:
                    # SQLite has already rolled back after some failures, such as a full disk.
                    with suppress(sqlite3.Error):
                        self._connection.execute("ROLLBACK")
                    raise

    def _begin(self, statement: str) -> None:
        if statement != "BEGIN IMMEDIATE":
            self._connection.execute(statement)
            return
        # Pages that are held in memory would hide that the file was overwritten.
        self._connection.execute("PRAGMA shrink_memory")
        end, wait = time.monotonic() + self._patience, FIRST_WAIT
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            while not self._took_the_lock(last=time.monotonic() > end):
                time.sleep(wait)
                wait = min(2 * wait, LONGEST_WAIT)
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {int(self._patience * 1000)}")

    def _took_the_lock(self, *, last: bool) -> bool:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            return True
        except sqlite3.OperationalError as error:
            if last or not _reason_name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise
            return False

    def _check_file(self) -> None:
        """Refuse a file that was deleted or replaced since it was opened: what is written to it would be lost."""
        for place in dict.fromkeys((self._place, self._file, f"{self._file}-wal")):
            opened = self._opened.get(place)
            try:
                status = os.stat(place)
            except OSError:
                if opened is None:
                    continue
                raise LedgerError(
                    f"the ledger {self.description} was deleted or moved while it was open. Nothing was entered. Put it back, or "
                    "restore it from a copy and compare its head with a certificate, and open it again."
                ) from None
            if self._opened.setdefault(place, (status.st_dev, status.st_ino)) != (status.st_dev, status.st_ino):
                raise LedgerError(
                    f"the ledger {self.description} was replaced by another file while it was open. Nothing was entered. Compare "
                    "its head with a certificate (sfumato ledger verify), and open it again."
                )

    def _create_file(self) -> None:
        try:
            descriptor = os.open(self._path, _NEW, 0o600)
        except FileExistsError:
            return
        except OSError as error:
            raise LedgerError(
                f"the ledger {self.description} cannot be created: {error.strerror}. Check that its folder "
                "exists and may be written."
            ) from None
        os.close(descriptor)

    def _connect(self) -> sqlite3.Connection:
        with self._explained():
            connection = sqlite3.connect(
                f"{Path(self._place).as_uri()}?{self._mode()}",
                uri=True,
                timeout=self._patience,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA trusted_schema = OFF")
                self._prepare(connection)
                self._check_file()
            except BaseException:
                connection.close()
                raise
            return connection

    def _mode(self) -> str:
        if not self._read_only:
            return "mode=rw"
        # On a medium that cannot be written, SQLite must know that nobody else writes either.
        alone = not os.access(Path(self._file).parent, os.W_OK) and not Path(f"{self._file}-wal").exists()
        return "mode=ro&immutable=1" if alone else "mode=ro"

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if self._is_ledger(connection):
            self._add_later_indices(connection)
            return
        if self._read_only:
            raise NoLedger(f"{self.description} is an empty file, not a ledger")
        self._switch_to_write_ahead_log(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not self._is_ledger(connection):  # another process may have been faster
                for statement in (*DEFINITIONS, *_APPEND_ONLY):
                    connection.execute(statement.replace("{t}", ""))
                facts = (("format", FORMAT), ("identity", uuid.uuid4().hex))
                connection.executemany("INSERT INTO meta (name, value) VALUES (?, ?)", facts)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    def _add_later_indices(self, connection: sqlite3.Connection) -> None:
        """A ledger written before an index existed gets it when it is next written to."""
        if self._read_only:
            return
        for name, statement in LATER_INDICES.items():
            row = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?", (name,)).fetchone()
            if row is None:
                connection.execute(statement.replace("{t}", "").replace("INDEX", "INDEX IF NOT EXISTS", 1))

    def _is_ledger(self, connection: sqlite3.Connection) -> bool:
        """True for a ledger, False for an empty file; anything else is refused and left untouched."""
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application == APPLICATION:
            if version != VERSION:
                raise LedgerError(
                    f"the ledger {self.description} has format {version}; this version of sfumato reads "
                    f"format {VERSION}. "
                    "Use the version that wrote it."
                )
            return True
        with closing(connection.execute("SELECT count(*) FROM sqlite_master")) as cursor:
            if application or cursor.fetchone()[0]:
                raise LedgerError(f"{self.description} is an SQLite file but not a ledger. Name another file.")
        return False

    def _switch_to_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        # This switch does not wait for other connections by itself. Where the file system cannot do it (some
        # network
        # drives), SQLite keeps its rollback journal, which is slower and as safe.
        end = time.monotonic() + self._patience
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if not _reason_name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def _after_fork(self) -> None:
        if self._process != os.getpid():
            # Closing the parent's connection here would drop the parent's locks, so it is kept and not used.
            self._abandoned.append(self._connection)
            self._process = os.getpid()
            self._connection = self._connect()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            name = _reason_name(error)
            reason = next((text for start, text in _REASONS.items() if name.startswith(start)), f"SQLite reports {name}")
            raise_alone(LedgerError(f"the ledger {self.description} cannot be used: {reason}."))
        except UnicodeDecodeError:  # SQLite quotes a damaged schema in its message, which then is no text
            reason = _REASONS["SQLITE_CORRUPT"]
            raise_alone(LedgerError(f"the ledger {self.description} cannot be used: {reason}."))


def _reason_name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", None) or type(error).__name__
