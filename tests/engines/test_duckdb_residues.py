"""DuckDB files that held something before: nothing of a replaced table, or of rows that were not published, stays in them."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from sfumato.core.errors import SourceError, Unsupported, VerificationFailed
from sfumato.engines import write
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.plan import Plan, Scan
from sfumato.engines.staging.destinations import DatabaseTable, check_destination, staged

MARK = b"Ada"
OTHER_CONTENT = """
CREATE SCHEMA archive; CREATE SEQUENCE numbers START 5; SELECT nextval('numbers');
CREATE TYPE mood AS ENUM ('glad', 'sad');
CREATE TABLE archive.days (day INTEGER PRIMARY KEY DEFAULT nextval('numbers'), mood mood, CHECK (day > 0));
INSERT INTO archive.days VALUES (1, 'glad'), (2, 'sad');
CREATE UNIQUE INDEX moods ON archive.days (mood);
CREATE VIEW seen AS SELECT * FROM archive.days; CREATE VIEW also_seen AS SELECT * FROM seen;
CREATE MACRO next_day(x) AS x + 1; COMMENT ON TABLE archive.days IS 'kept'; COMMENT ON COLUMN archive.days.day IS 'its number';
"""


def marked(count: int = 30_000) -> pa.Table:
    """Texts that do not pack well, each with the mark in it."""
    digests = [hashlib.sha256(str(i).encode()) for i in range(count)]
    return pa.table({"who": [base64.b85encode(each.digest()).decode() + MARK.decode() for each in digests], "n": range(count)})


def everything(table: pa.Table) -> tuple[MemoryRelation, Plan]:
    relation = MemoryRelation(table)
    return relation, Scan("rows", tuple(relation.fields.values()))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "kept.duckdb")) as connection:
        connection.execute(OTHER_CONTENT)
    (tmp_path / "kept.duckdb").chmod(0o640)
    return tmp_path / "kept.duckdb"


def content(path: Path) -> dict[str, object]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return {
            "days": connection.execute("SELECT * FROM archive.days ORDER BY ALL").fetchall(),
            "seen": connection.execute("SELECT * FROM also_seen ORDER BY ALL").fetchall(),
            "tables": connection.execute("SELECT sql, comment FROM duckdb_tables() WHERE schema_name = 'archive'").fetchall(),
            "indexes": connection.execute("SELECT sql FROM duckdb_indexes()").fetchall(),
            "sequence": connection.execute("SELECT sql FROM duckdb_sequences()").fetchall(),
            "macro": connection.execute("SELECT next_day(1)").fetchall(),
        }


def bytes_of(folder: Path) -> bytes:
    """All bytes of all files, however deep."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def stage(database: Path, *, publish: bool, overwrite: bool = False) -> None:
    destination = DatabaseTable(str(database), "release", overwrite)
    with staged(*everything(marked()), {}, destination) as result:
        if publish:
            result.publish()


def test_rows_that_are_not_published_leave_no_byte_in_a_file_that_was_there(database: Path) -> None:
    before = database.read_bytes()
    stage(database, publish=False)
    assert database.read_bytes() == before and MARK not in bytes_of(database.parent)
    assert [each.name for each in database.parent.iterdir()] == ["kept.duckdb"]


def test_a_table_that_is_refused_when_read_back_leaves_no_byte(database: Path) -> None:
    def refuse(table: pa.Table) -> None:
        raise VerificationFailed("not what was promised")

    before = database.read_bytes()
    with pytest.raises(VerificationFailed):
        write.write_table(marked(), database, confirm=refuse)
    assert database.read_bytes() == before and [each.name for each in database.parent.iterdir()] == ["kept.duckdb"]


@pytest.mark.parametrize("how", ["staged", "written"])
def test_a_replaced_table_leaves_no_byte_and_the_rest_is_kept(database: Path, how: str) -> None:
    with duckdb.connect(str(database)) as connection:
        connection.register("old", marked())
        connection.execute("CREATE TABLE release AS SELECT * FROM old")
    assert MARK in database.read_bytes()
    kept = content(database)
    if how == "staged":
        destination = DatabaseTable(str(database), "release", overwrite=True)
        with staged(*everything(pa.table({"who": ["x"] * 5})), {}, destination) as result:
            result.publish()
    else:
        write.write_table(pa.table({"who": ["x"] * 5}), database, table_name="release", overwrite=True)
    assert MARK not in bytes_of(database.parent) and content(database) == kept
    with duckdb.connect(str(database), read_only=True) as connection:
        assert connection.execute("SELECT * FROM release").fetchall() == [("x",)] * 5
    assert stat.S_IMODE(database.stat().st_mode) == 0o640


def test_a_table_beside_others_is_published(database: Path) -> None:
    kept = content(database)
    stage(database, publish=True)
    assert content(database) == kept and [each.name for each in database.parent.iterdir()] == ["kept.duckdb"]
    with duckdb.connect(str(database), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM release").fetchall() == [(30_000,)]


def test_a_link_is_followed(database: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "link.duckdb"
    os.symlink(database, link)
    stage(link, publish=True)
    assert link.is_symlink()
    with duckdb.connect(str(database), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM release").fetchall() == [(30_000,)]


@pytest.mark.parametrize("content", ["foreign keys", "a hard link"])
def test_content_that_cannot_be_kept_is_refused_before_the_work(database: Path, content: str) -> None:
    if content == "foreign keys":
        with duckdb.connect(str(database)) as connection:
            connection.execute("CREATE TABLE one (i INTEGER PRIMARY KEY); CREATE TABLE another (i INTEGER REFERENCES one (i))")
    else:
        os.link(database, database.parent / "second.duckdb")
    with pytest.raises(Unsupported, match="another file"):
        check_destination(DatabaseTable(str(database)))


def test_a_file_that_was_changed_meanwhile_is_left_as_it_is(database: Path) -> None:
    destination = DatabaseTable(str(database), "release")
    with pytest.raises(SourceError, match="changed"):
        with staged(*everything(marked(10)), {}, destination) as result:
            os.utime(database, (1, 1))
            result.publish()
    with duckdb.connect(str(database), read_only=True) as connection:
        assert ("release",) not in connection.execute("SHOW TABLES").fetchall()


def test_nobody_else_writes_while_rows_are_staged(database: Path) -> None:
    import subprocess
    import sys

    program = f"import duckdb; duckdb.connect({str(database)!r}).execute('CREATE TABLE late (i INTEGER)')"
    with staged(*everything(marked(10)), {}, DatabaseTable(str(database))) as result:
        late = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
        result.publish()
    assert late.returncode and b"lock" in late.stderr.lower()


def test_what_was_left_in_a_log_is_kept(database: Path) -> None:
    import subprocess
    import sys

    made = "CREATE TABLE logged AS SELECT 7 AS i"
    program = f"import duckdb, os; c = duckdb.connect({str(database)!r}); c.execute({made!r}); os._exit(0)"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert (database.parent / "kept.duckdb.wal").exists()
    stage(database, publish=True)
    with duckdb.connect(str(database), read_only=True) as connection:
        assert connection.execute("SELECT i FROM logged").fetchall() == [(7,)]
        assert connection.execute("SELECT count(*) FROM release").fetchall() == [(30_000,)]
    assert not (database.parent / "kept.duckdb.wal").exists()
