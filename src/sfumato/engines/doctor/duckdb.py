"""What DuckDB can do with a file here: opened as questions open it, read-only and with its settings locked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.errors import SfumatoError
from sfumato.engines.doctor.findings import EngineFinding, failed, folder_finding, kept, warning

if TYPE_CHECKING:
    import duckdb

#: From this version on, and before the next number.
OLDEST, BEFORE = (1, 4), 2
_GIB = 1024**3
_SETTING = "SELECT current_setting('temp_directory'), current_setting('memory_limit'), current_setting('threads')"


def duckdb_findings(path: Path, table: str | None) -> Iterator[EngineFinding]:
    """What can be said about a file that DuckDB reads."""
    from sfumato.engines.duckdb.relation import DuckDBRelation, is_database

    if not path.is_file():
        yield failed("reachable", f"there is no file '{path}'", "Check the path")
        return
    if not os.access(path, os.R_OK):
        yield failed("reachable", f"'{path}' cannot be read by this user", "Ask for the right to read it")
        return
    yield _version()
    relation = DuckDBRelation(path, table)
    try:
        with relation._connected() as connection:
            yield kept("reachable", f"'{path.name}' opens, {path.stat().st_size / _GIB:,.2f} GiB")
            settings = connection.execute(_SETTING).fetchone() or ("", "", 0)
            finding = _tables(connection, path) if is_database(path) and table is None else None
        columns = len(relation.fields) if finding is None else 0
        yield finding or kept("table", f"{columns} column{'' if columns == 1 else 's'}")
    except SfumatoError as error:
        yield failed("reachable", str(error))
        return
    log = path.with_name(path.name + ".wal")
    if is_database(path) and log.exists():
        yield warning(
            "snapshot",
            "there is a write-ahead log beside the file: somebody may be writing to it, and a run is refused once it changes",
            "Let the writer finish (CHECKPOINT), or read a copy",
        )
    else:
        yield kept("snapshot", "a run is refused once the file changes, so that its answers are about one state of the data")
    yield _spill(str(settings[0]))
    allowed = f"DuckDB may use {settings[1]} and {settings[2]} threads"
    yield kept("memory", f"{allowed}; memory_limit= and threads= of sf.read lower this")
    yield kept("time-out", "DuckDB sets none; timeout= (--timeout) sets one for a session")
    written = folder_finding("write access", path.parent)
    denied = warning("write access", written.text, "Questions need none; publish elsewhere")
    yield denied if written.state == "failed" else written


def _version() -> EngineFinding:
    import duckdb

    numbers = tuple(int(part) for part in duckdb.__version__.split(".")[:2])
    if OLDEST <= numbers < (BEFORE,):
        return kept("version", f"DuckDB {duckdb.__version__}")
    oldest = ".".join(map(str, OLDEST))
    return failed("version", f"DuckDB {duckdb.__version__} is not supported", f"Install {oldest} or later, below {BEFORE}")


def _tables(connection: duckdb.DuckDBPyConnection, path: Path) -> EngineFinding:
    from sfumato.engines.duckdb.connections import catalogue_name
    from sfumato.engines.duckdb.relation import list_tables

    tables = list_tables(connection, catalogue_name(path))
    if not tables:
        return failed("table", "the database has no table", "Write one first")
    several = "" if len(tables) == 1 else "; name one with table= (--table)"
    return kept("table", f"the database has {len(tables)} table{'' if len(tables) == 1 else 's'}{several}")


def _spill(folder: str) -> EngineFinding:
    if not folder:
        return warning(
            "spill",
            "this DuckDB cannot encrypt what it spills, so that nothing is spilled and large questions may not fit into memory",
            "Install DuckDB 1.5 or later",
        )
    free = shutil.disk_usage(folder if Path(folder).exists() else Path(folder).parent).free / _GIB
    text = f"what does not fit into memory goes, encrypted, to the temporary folder, which has {free:,.1f} GiB left"
    return kept("spill", text) if free >= 1 else warning("spill", text, "Free some space, or set TMPDIR to a larger place")
