"""A DuckDB file written anew beside itself, so that nothing of a table that is replaced, or was never published, stays in it.

DuckDB frees the blocks of dropped and rolled back tables and does not erase them: whoever has the file can read them. So a file
is never changed in place. All that is in it goes into a fresh one (`COPY FROM DATABASE`), without the table that is to be
replaced; what is written there appears by a rename, or is removed with the fresh file. The old file stays open for reading
meanwhile, which keeps other writers out. It needs as much room again on the disk.

What `COPY FROM DATABASE` loses is found by comparing the two catalogues, and then nothing is written; foreign keys it does not
copy at all.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.errors import SourceError, Unsupported
from sfumato.core.files import sync_folder
from sfumato.core.platforms import HAS_OWNERS

if TYPE_CHECKING:
    import duckdb

#: What a catalogue says of everything in it that somebody made.
_CATALOGUE = (
    "SELECT schema_name FROM duckdb_schemas() WHERE database_name = ?",
    "SELECT schema_name, table_name, comment, sql FROM duckdb_tables() WHERE database_name = ?",
    "SELECT schema_name, view_name, comment, sql FROM duckdb_views() WHERE database_name = ? AND NOT internal",
    "SELECT schema_name, table_name, index_name, comment, sql FROM duckdb_indexes() WHERE database_name = ?",
    "SELECT schema_name, table_name, column_name, comment FROM duckdb_columns() WHERE database_name = ? AND comment IS NOT NULL",
    "SELECT schema_name, sequence_name, comment, sql FROM duckdb_sequences() WHERE database_name = ?",
    "SELECT schema_name, type_name, comment, CAST(labels AS VARCHAR) FROM duckdb_types() "
    "WHERE database_name = ? AND NOT internal",
    "SELECT schema_name, function_name, comment, CAST(parameters AS VARCHAR), macro_definition FROM duckdb_functions() "
    "WHERE database_name = ? AND NOT internal",
)
_KEPT = "its other content cannot be copied into a fresh file"
_ELSEWHERE = "Write to another file: rows that were replaced, or not published, would stay readable in this one."


def refuse_uncopied(path: Path) -> None:
    """Raise where a file has content that would not be copied; its tables are not read."""
    import duckdb

    with duckdb.connect(":memory:") as opened:
        _attach(opened, path, "old", "READ_ONLY")
        opened.execute("ATTACH ':memory:' AS fresh")
        _refuse_keys(opened, path)
        _copied(opened, path, "old", "fresh", "(SCHEMA)")
        _refuse_lost(opened, path, "old", "fresh")
    if os.stat(path).st_nlink > 1:
        raise Unsupported(f"'{path}' has a second name (a hard link), under which the old content would stay. {_ELSEWHERE}")


@contextmanager
def fresh_copy(path: Path, folder: Path, without: str | None = None) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A copy in `folder`, on the same file system, without the table `without`; and what puts it in the place of the file.

    The file must be closed by then. Until the block ends nobody else can write to the old one.
    """
    import duckdb

    if path.with_name(path.name + ".wal").exists():
        duckdb.connect(str(path)).close()  # what an earlier process left in its log goes into the file
    about, fresh = os.stat(path), folder / path.name
    with duckdb.connect(":memory:") as opened:
        opened.execute("SET temp_directory = ''")
        _attach(opened, path, "old", "READ_ONLY")
        _refuse_keys(opened, path)
        source = "old"
        if without is not None and _has(opened, without):
            # Dropped in the copy itself, its rows would stay there: it is copied twice.
            _attach(opened, folder / "between", "between")
            _copied(opened, path, "old", "between")
            opened.execute(f"DROP TABLE between.main.{_quoted(without)}")
            source = "between"
        _attach(opened, fresh, "fresh")
        _copied(opened, path, source, "fresh")
        _refuse_lost(opened, path, source, "fresh")
        opened.execute("DETACH fresh")
        if source == "between":
            opened.execute("DETACH between")
            (folder / "between").unlink()
        os.chmod(fresh, stat.S_IMODE(about.st_mode))
        if HAS_OWNERS and (about.st_uid, about.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(fresh, about.st_uid, about.st_gid)

        def put() -> None:
            now = os.stat(path)
            if (now.st_ino, now.st_size, now.st_mtime_ns) != (about.st_ino, about.st_size, about.st_mtime_ns):
                raise SourceError(f"'{path}' was changed while the rows were being written; it is left as it is")
            os.replace(fresh, path)
            with suppress(OSError):  # the rows are there, whatever becomes of them later
                sync_folder(path.parent)

        yield fresh, put


def _attach(opened: duckdb.DuckDBPyConnection, path: Path, name: str, *options: str) -> None:
    text = str(path).replace("'", "''")
    opened.execute(f"ATTACH '{text}' AS {name}{''.join(f' ({option})' for option in options)}")


def _copied(opened: duckdb.DuckDBPyConnection, path: Path, source: str, target: str, what: str = "") -> None:
    import duckdb

    try:
        opened.execute(f"COPY FROM DATABASE {source} TO {target} {what}")
    except (duckdb.CatalogException, duckdb.ConstraintException, duckdb.BinderException, duckdb.NotImplementedException) as error:
        raise Unsupported(f"'{path}': {_KEPT} ({type(error).__name__}). {_ELSEWHERE}") from None


def _refuse_keys(opened: duckdb.DuckDBPyConnection, path: Path) -> None:
    asked = "SELECT count(*) FROM duckdb_constraints() WHERE database_name = 'old' AND constraint_type = 'FOREIGN KEY'"
    if (opened.execute(asked).fetchone() or (0,))[0]:
        raise Unsupported(f"'{path}': {_KEPT}, since it has foreign keys. {_ELSEWHERE}")


def _refuse_lost(opened: duckdb.DuckDBPyConnection, path: Path, source: str, target: str) -> None:
    for asked in _CATALOGUE:
        before, after = (opened.execute(f"{asked} ORDER BY ALL", [name]).fetchall() for name in (source, target))
        if before != after:
            raise Unsupported(f"'{path}': {_KEPT} without a loss. {_ELSEWHERE}")


def _has(opened: duckdb.DuckDBPyConnection, table: str) -> bool:
    asked = "SELECT 1 FROM duckdb_tables() WHERE database_name = 'old' AND schema_name = 'main' AND lower(table_name) = lower(?)"
    return opened.execute(asked, [table]).fetchone() is not None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
