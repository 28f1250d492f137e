"""What goes wrong around a ledger gives one clear error, without secrets, and leaves the ledger as it was."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sfumato.core.errors import InputError, LedgerError
from sfumato.ledger import Charge, Ledger, LossAmount
from sfumato.ledger.sqlite import SqliteStore
from tests.ledger.conftest import Place


def test_a_new_file_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        with Ledger.open(tmp_path / "ledger.db") as ledger:
            ledger.note("d", {}, token="t")
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(previous)
    assert "ledger.db-wal" in modes and set(modes.values()) == {0o600}


def test_nothing_of_the_driver_hangs_on_an_error(ledger: Ledger) -> None:
    for transaction in (ledger._store.reading, ledger._store.writing):
        with pytest.raises(LedgerError) as caught, transaction():
            ledger._store.run("SELECT 'canary' FROM nowhere")
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        assert "canary" not in str(caught.value)


def test_every_commit_reaches_the_disk(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ledger.db")
    assert store.run("PRAGMA journal_mode") == [("wal",)] and store.run("PRAGMA synchronous") == [(2,)]
    store.close()


def test_an_empty_file_becomes_a_ledger(tmp_path: Path) -> None:
    """A process killed right after creating the file leaves this."""
    (tmp_path / "ledger.db").touch(0o600)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.verify().ok


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_bytes(b"Dear reader, " * 500)
    with pytest.raises(LedgerError, match="not an SQLite file"):
        Ledger.open(path)
    assert path.read_bytes() == b"Dear reader, " * 500


def test_another_database_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE people (name TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_a_ledger_of_a_later_format_is_refused(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "ledger.db").close()
    with sqlite3.connect(tmp_path / "ledger.db") as other:
        other.execute("PRAGMA user_version = 2")
    other.close()
    with pytest.raises(LedgerError, match="format 2"):
        Ledger.open(tmp_path / "ledger.db")


def test_a_damaged_file_is_said_to_be_damaged(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        for number in range(200):
            ledger.note("d", {"text": "x" * 500}, token=str(number))
    content = bytearray(path.read_bytes())
    content[8192:] = os.urandom(len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="damaged"), Ledger.open(path) as ledger:
        ledger.verify()


@pytest.mark.parametrize(
    "edit", ["UPDATE entries SET sequence = 'x' WHERE sequence = 3", "UPDATE entries SET sequence = 'x' WHERE sequence = 2"]
)
def test_a_text_where_entries_are_numbered_is_said_to_be_damage(tmp_path: Path, edit: str) -> None:
    """SQLite keeps a text in a column of numbers; it sorts behind every number."""
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        ledger.grant("d", "ann", LossAmount.pure(3))
        ledger.commit(ledger.reserve("d", "ann", Charge(LossAmount.pure(1)), "q"), {"n": 1})
    with sqlite3.connect(path) as edited:
        for (name,) in edited.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            edited.execute(f"DROP TRIGGER {name}")
        edited.execute(edit)
    with Ledger.open(path) as ledger:
        for look in (ledger.head, ledger.verify, lambda: ledger.note("d", {}, token="t"), lambda: ledger.spends("d")):
            with pytest.raises(LedgerError, match="edited or damaged"):
                look()


@pytest.mark.parametrize("cut", [100, 5000, 20_000])
def test_a_cut_off_file_is_said_to_be_damaged(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        for number in range(100):
            ledger.note("d", {"text": "x" * 500}, token=str(number))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(LedgerError, match="damaged|not an SQLite file"), Ledger.open(path) as ledger:
        ledger.verify()


def test_no_flipped_bit_is_taken_for_an_intact_ledger(tmp_path: Path) -> None:
    """Found, refused, or in a place that holds nothing: never another content under an intact chain."""
    path, damaged = tmp_path / "ledger.db", tmp_path / "damaged.db"
    with Ledger.open(path) as ledger:
        ledger.grant("d", "ann", LossAmount.pure(1))
        for number in range(40):
            ledger.commit(ledger.reserve("d", "ann", Charge(LossAmount.pure("0.01")), f"q{number}"), number)
        entries, accounts, head = ledger.entries(), ledger.accounts(), ledger.head()
    original, draws, found = path.read_bytes(), random.Random(7), 0
    for _ in range(150):
        content = bytearray(original)
        content[draws.randrange(len(content))] ^= 1 << draws.randrange(8)
        for leftover in tmp_path.glob("damaged*"):
            leftover.unlink()
        damaged.write_bytes(content)
        try:
            with Ledger.open(damaged) as ledger:
                intact = ledger.verify(head).ok
                assert not intact or (ledger.entries(), ledger.accounts()) == (entries, accounts)
        except LedgerError:
            intact = False
        found += not intact
    assert found > 20


def test_a_missing_folder_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="folder exists"):
        Ledger.open(tmp_path / "nowhere" / "ledger.db")
    with pytest.raises(LedgerError):
        Ledger.open(tmp_path)
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.open(tmp_path / "absent.db", read_only=True)
    assert not (tmp_path / "absent.db").exists()


def test_a_ledger_held_by_another_program_is_said_to_be_held(place: Place) -> None:
    with place.open() as holder, place.open(patience=0.2) as ledger:
        with holder._store.writing(), pytest.raises(LedgerError, match="another program holds it"):
            ledger.note("d", {}, token="t")
        assert ledger.note("d", {}, token="t").sequence == 1


def test_a_ledger_opened_for_reading_is_not_written(place: Place) -> None:
    place.open().close()
    with place.open(read_only=True) as ledger:
        with pytest.raises(LedgerError, match="read-only"):
            ledger.note("d", {}, token="t")
        assert ledger.verify().entries == 0


def test_a_read_only_file_is_said_to_be_read_only(tmp_path: Path) -> None:
    """As an unprivileged user, because modes do not bind the administrator."""
    script = (
        "import os, sys\n"
        "from sfumato.core.errors import LedgerError\n"
        "from sfumato.ledger import Ledger\n"
        # everything is loaded while the program may still read its own files, wherever they lie
        "Ledger.open(sys.argv[2]).note('d', {}, token='t')\n"
        "Ledger.open(sys.argv[2], read_only=True).verify()\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "try: Ledger.open(sys.argv[1]).note('d', {}, token='t')\n"
        "except LedgerError as error: print(error)\n"
        "print(Ledger.open(sys.argv[1], read_only=True).verify())\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        Ledger.open(path).close()
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        command = [sys.executable, "-c", script, str(path), str(tmp_path / "other.db")]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        Path(folder).chmod(0o755)
    assert "read-only" in told.stdout and "0 entries, chain" in told.stdout, told.stdout + told.stderr


def test_a_full_disk_enters_nothing_and_says_so(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ledger.db")
    ledger = Ledger(store)
    kept = ledger.note("d", {}, token="kept")
    pages = store.run("PRAGMA page_count")[0][0]
    store.run(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LedgerError, match="disk is full"):
        ledger.note("d", {"text": "x" * 100_000}, token="too long")
    store.run("PRAGMA max_page_count = 1000000")
    assert ledger.entries() == [kept] and ledger.verify().ok
    assert ledger.note("d", {"text": "x" * 100_000}, token="too long").sequence == 2
    ledger.close()


def test_a_disk_that_stops_taking_bytes_enters_nothing(tmp_path: Path) -> None:
    """A real limit on the size of files, in a process of its own."""
    path = tmp_path / "ledger.db"
    script = (
        "import resource, signal, sys\n"
        "from sfumato.ledger import Ledger\n"
        "from sfumato.core.errors import LedgerError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "ledger = Ledger.open(sys.argv[1])\n"
        "ledger.note('d', {}, token='kept')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))\n"
        "try: ledger.note('d', {'text': 'x' * 300_000}, token='too long')\n"
        "except LedgerError as error: print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert "Nothing was entered" in told.stdout, told.stderr
    with Ledger.open(path) as ledger:
        assert [entry.token for entry in ledger.entries()] == ["kept"] and ledger.verify().ok
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 150_000


def test_a_closed_ledger_says_that_it_is_closed(place: Place) -> None:
    ledger = place.open()
    ledger.close()
    if "://" in place.address:
        assert ledger.head().sequence == 0, "a connection to a server is made again"
        ledger.close()
    else:
        with pytest.raises(LedgerError, match="closed"):
            ledger.head()


@pytest.mark.parametrize("address", ["mysql://user:hush@host/db", "sqlite:///x.db", "https://example.org"])
def test_other_databases_are_refused_without_echoing_the_address(address: str) -> None:
    with pytest.raises(InputError) as caught:
        Ledger.open(address)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://joseph:hush@127.0.0.1:1/ledger",
        "postgresql://joseph@127.0.0.1:1/ledger?password=hush",
        "postgresql://joseph:hu%sh@127.0.0.1:1/hush@x?hush",
        "postgres://:hush@/ledger?host=127.0.0.1&port=1",
    ],
)
def test_an_unreachable_server_is_reported_without_the_password(address: str) -> None:
    with pytest.raises(LedgerError) as caught:
        Ledger.open(address)
    assert "hush" not in str(caught.value) and "joseph" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_description_names_the_place_and_no_secret(place: Place) -> None:
    with place.open() as ledger:
        assert repr(ledger) == f"Ledger({ledger.description})"
        assert "search_path" not in ledger.description and "@" not in ledger.description


@pytest.mark.postgres
def test_a_lost_connection_is_reported_and_made_again(postgres_url: str) -> None:
    import psycopg

    from tests.ledger.conftest import postgres_place

    places = postgres_place(postgres_url)
    place = next(places)
    with place.open() as ledger, psycopg.connect(postgres_url, autocommit=True) as admin:
        ledger.note("d", {}, token="before")
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sfumato ledger'")
        with pytest.raises(LedgerError, match="shut down|cannot be reached"):
            ledger.note("d", {}, token="during")
        assert ledger.note("d", {}, token="after").sequence == 2 and ledger.verify().ok
    next(places, None)
