"""A ledger that is deleted, replaced, cut or edited while somebody has it open is noticed before it is charged."""

from __future__ import annotations

import os
import shutil
import sqlite3
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.errors import BudgetRefused, LedgerError
from sfumato.ledger import Charge, Ledger, LossAmount, Protected
from tests.ledger.conftest import Place, postgres_place

TENTH = LossAmount.pure("0.1")


def ask(ledger: Ledger, question: str, dataset: str = "d", analyst: str = "ann") -> None:
    reservation = ledger.reserve(dataset, analyst, Charge(TENTH), question)
    ledger.draw(reservation)
    ledger.commit(reservation, {"n": question})


def started(place: Place) -> Ledger:
    """An open ledger with a grant and two answers."""
    ledger = place.open()
    ledger.grant("d", "ann", LossAmount.pure(1))
    ask(ledger, "first")
    ask(ledger, "second")
    return ledger


class TestFiles:
    """What can happen to a file."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "ledger.db"

    @pytest.fixture
    def ledger(self, path: Path) -> Ledger:
        return started(Place(str(path), lambda _: None))

    @pytest.fixture
    def older(self, path: Path, tmp_path: Path) -> Path:
        """A whole copy from before the last answers."""
        copy = tmp_path / "older.db"
        with Ledger.open(path) as ledger:
            ledger.grant("d", "ann", LossAmount.pure(1))
            ask(ledger, "copied")
            source, target = sqlite3.connect(path), sqlite3.connect(copy)
            source.backup(target)
            target.close()
            source.close()
        return copy

    def test_a_deleted_file_is_not_charged(self, path: Path, ledger: Ledger) -> None:
        path.unlink()
        with pytest.raises(LedgerError, match="deleted or moved while it was open"):
            ledger.reserve("d", "ann", Charge(TENTH), "third")
        assert not path.exists()

    def test_a_moved_file_is_not_charged_and_one_put_back_is(self, path: Path, ledger: Ledger) -> None:
        path.rename(path.with_suffix(".away"))
        with pytest.raises(LedgerError, match="deleted or moved"):
            ledger.reserve("d", "ann", Charge(TENTH), "third")
        path.with_suffix(".away").rename(path)
        ask(ledger, "third")
        assert ledger.remaining("d", "ann") == LossAmount.pure("0.7") and ledger.verify().ok

    def test_a_fresh_file_in_its_place_is_not_charged(self, path: Path, ledger: Ledger) -> None:
        for each in path.parent.glob("ledger.db*"):
            each.unlink()
        with Ledger.open(path) as fresh:
            fresh.grant("d", "ann", LossAmount.pure(100))
        with pytest.raises(LedgerError, match="replaced by another file"):
            ledger.reserve("d", "ann", Charge(LossAmount.pure(50)), "third")
        with Ledger.open(path) as fresh:
            assert fresh.spends() == []

    def test_an_older_copy_in_its_place_is_not_charged(self, path: Path, older: Path) -> None:
        ledger = Ledger.open(path)
        ask(ledger, "first")
        for each in path.parent.glob("ledger.db*"):
            each.unlink()
        os.replace(older, path)
        with pytest.raises(LedgerError, match="replaced by another file"):
            ledger.reserve("d", "ann", Charge(TENTH), "second")

    def test_an_older_copy_written_over_it_is_not_charged(self, path: Path, older: Path) -> None:
        """The same file, other bytes: what was held in memory does not hide it."""
        ledger = Ledger.open(path)
        ask(ledger, "first")
        sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copyfile(older, path)
        with pytest.raises(LedgerError):
            ledger.reserve("d", "ann", Charge(TENTH), "second")

    def test_a_file_without_its_end_is_not_charged(self, path: Path, ledger: Ledger) -> None:
        sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)")
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(LedgerError):
            ledger.reserve("d", "ann", Charge(TENTH), "third")

    def test_a_removed_write_ahead_log_is_noticed(self, path: Path, ledger: Ledger) -> None:
        Path(f"{path}-wal").unlink()
        with pytest.raises(LedgerError, match="while it was open"):
            ledger.reserve("d", "ann", Charge(TENTH), "third")

    def test_a_removed_write_ahead_log_is_noticed_behind_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "kept").mkdir()
        link, path = tmp_path / "link.db", tmp_path / "kept" / "ledger.db"
        Ledger.open(path).close()
        link.symlink_to(path)
        ledger = started(Place(str(link), lambda _: None))
        Path(f"{path}-wal").unlink()
        with pytest.raises(LedgerError, match="while it was open"):
            ledger.reserve("d", "ann", Charge(TENTH), "third")

    def test_a_link_that_leads_elsewhere_is_noticed(self, tmp_path: Path) -> None:
        link = tmp_path / "link.db"
        for name in ("one.db", "two.db"):
            Ledger.open(tmp_path / name).close()
        link.symlink_to(tmp_path / "one.db")
        ledger = started(Place(str(link), lambda _: None))
        link.unlink()
        link.symlink_to(tmp_path / "two.db")
        with pytest.raises(LedgerError, match="replaced by another file"):
            ledger.reserve("d", "ann", Charge(TENTH), "third")

    def test_another_folder_to_work_in_changes_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledger: Ledger
    ) -> None:
        monkeypatch.chdir(tmp_path)
        named = Ledger.open("ledger.db")
        monkeypatch.chdir("/")
        ask(named, "third")
        assert ledger.remaining("d", "ann") == LossAmount.pure("0.7")

    def test_a_session_is_refused_before_the_charge(self, tmp_path: Path) -> None:
        place = tmp_path / "session.db"
        people = sf.read(sf.data.sample_table(50), schema=sf.data.sample_schema())
        asked = sf.Session(people, ledger=place, budget=sf.PureDP(1))
        asked.sql("SELECT COUNT(*) FROM people", epsilon="0.5")
        for each in tmp_path.glob("session.db*"):
            each.unlink()
        for query in ("SELECT COUNT(*) AS again FROM people", "SELECT AVG(age) FROM people"):
            with pytest.raises(LedgerError, match="deleted or moved"):
                asked.sql(query, epsilon="0.5")


class TestEntries:
    """What can happen to the tables, in a file or on a server."""

    def test_entries_cut_off_are_noticed(self, place: Place) -> None:
        ledger = started(place)
        place.edit("DELETE FROM {t}entries WHERE sequence > 3")
        with pytest.raises(LedgerError, match="cut or replaced by an older copy.* 5 entries, and 3 are left"):
            ledger.reserve("d", "ann", Charge(TENTH), "third")

    def test_a_whole_older_state_is_noticed(self, place: Place) -> None:
        ledger = started(place)
        place.edit("DELETE FROM {t}entries WHERE sequence > 3")
        place.edit("DELETE FROM {t}spends WHERE question = 'second'")
        place.edit("""UPDATE {t}accounts SET spent = '{"epsilon":"1/10","kind":"pure"}'""")
        with Ledger.open(place.address) as opened:
            assert opened.verify().ok, "by itself it is in order"
        with pytest.raises(LedgerError, match="older copy"):
            ledger.reserve("d", "ann", Charge(TENTH), "third")

    def test_a_rewritten_end_is_noticed(self, place: Place) -> None:
        ledger = started(place)
        place.edit("DELETE FROM {t}entries WHERE sequence > 3")
        with place.open() as another:
            another.enter_release("d", {"rows": 1}, token="a")
            another.enter_release("d", {"rows": 2}, token="b")
            another.enter_release("d", {"rows": 3}, token="c")
        with pytest.raises(LedgerError, match="rewritten while it was open: entry 5"):
            ledger.reserve("d", "ann", Charge(TENTH), "third")

    def test_another_identity_is_noticed(self, place: Place) -> None:
        ledger = started(place)
        place.edit("UPDATE {t}meta SET value = 'ffffffffffffffffffffffffffffffff' WHERE name = 'identity'")
        with pytest.raises(LedgerError, match="replaced by another one"):
            ledger.reserve("d", "ann", Charge(TENTH), "third")

    def test_an_edited_balance_is_not_charged(self, place: Place) -> None:
        ledger = started(place)
        place.edit("""UPDATE {t}accounts SET spent = '{"epsilon":"0/1","kind":"pure"}'""")
        for opened in (ledger, place.open()):
            with pytest.raises(LedgerError, match="not what the entries say"):
                opened.reserve("d", "ann", Charge(TENTH), "third")

    def test_an_edited_grant_or_cap_is_not_charged(self, place: Place) -> None:
        ledger = started(place)
        ledger.cap("d", LossAmount.pure(2))
        ask(ledger, "third")
        place.edit("""UPDATE {t}accounts SET granted = '{"epsilon":"90/1","kind":"pure"}' WHERE analyst = '*'""")
        with pytest.raises(LedgerError, match="not what the entries say"):
            ledger.reserve("d", "ann", Charge(TENTH), "fourth")

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE {t}meta SET value = replace(value, 'patient', 'record') WHERE name = 'unit:d'",
            "DELETE FROM {t}meta WHERE name = 'unit:d'",
            "UPDATE {t}meta SET value = replace(value, '\"most\": 2', '\"most\": 1') WHERE name = 'changes:d'",
            "DELETE FROM {t}meta WHERE name = 'changes:d'",
        ],
    )
    def test_an_edited_unit_is_not_charged(self, place: Place, statement: str) -> None:
        ledger = started(place)
        ledger.change_unit("d", "patient", rows_per_unit=2)
        for analyst in ("ann", "bob"):
            ledger.grant("d", analyst, LossAmount.pure(2))
        ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "third")
        place.edit(statement)
        for opened in (ledger, place.open()):
            for analyst in ("ann", "bob"):
                with pytest.raises(LedgerError, match="not what the entries say"):
                    opened.reserve(
                        "d", analyst, Charge(TENTH, Protected("record" if "'record'" in statement else "patient")), "fourth"
                    )

    def test_a_unit_that_another_fixes_in_between_is_followed(self, place: Place) -> None:
        with place.open() as ledger, place.open() as other:
            for analyst in ("ann", "bob"):
                ledger.grant("d", analyst, LossAmount.pure(1))
            with pytest.raises(BudgetRefused, match="does not suffice"):
                ledger.reserve("d", "ann", Charge(LossAmount.pure(2), Protected("patient")), "first")
            other.reserve("d", "bob", Charge(TENTH, Protected("patient")), "first")
            ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "second")
            other.change_unit("d", "home", rows_per_unit=3)
            ledger.reserve("d", "ann", Charge(TENTH, Protected("home")), "third")
            assert ledger.remaining("d", "ann") == LossAmount.pure("0.3") and ledger.verify().ok

    def test_what_others_do_in_between_is_followed(self, place: Place) -> None:
        ledger, other = started(place), place.open()
        other.grant("d", "bob", LossAmount.pure(1))
        other.cap("d", LossAmount.pure(3))
        ask(other, "third", analyst="bob")
        ask(ledger, "fourth")
        other.roll_back(other.reserve("d", "ann", Charge(TENTH), "fifth"))
        other.roll_back(other.reserve("d", "bob", Charge(TENTH), "sixth"))
        other.grant("d", "ann", LossAmount.approx(2, "1e-6"))
        ask(ledger, "seventh")
        assert ledger.remaining("d", "ann") == LossAmount.approx("1.6", "1e-6")
        assert ledger.remaining("d") == LossAmount.pure("2.5") and ledger.verify().ok

    @pytest.mark.postgres
    def test_tables_that_were_dropped_and_made_anew_are_not_charged(self, postgres_url: str) -> None:
        import psycopg

        for place in postgres_place(postgres_url):
            ledger = started(place)
            with psycopg.connect(place.address, autocommit=True) as connection:
                for table in ("meta", "entries", "accounts", "spends"):
                    connection.execute(f"DROP TABLE sfumato_ledger_{table} CASCADE")
                connection.execute("DROP FUNCTION sfumato_ledger_append_only() CASCADE")
            with pytest.raises(LedgerError, match="cannot be used"):
                ledger.reserve("d", "ann", Charge(TENTH), "third")
            with place.open() as fresh:
                fresh.grant("d", "ann", LossAmount.pure(100))
            with pytest.raises(LedgerError, match="replaced by another one"):
                ledger.reserve("d", "ann", Charge(TENTH), "third")


class TestTheClock:
    def test_a_clock_that_runs_backwards_is_noted_and_not_refused(self, place: Place) -> None:
        times = iter([datetime(2026, 5, 1, tzinfo=UTC) + timedelta(hours=hour) for hour in (0, 2, 1, 3, 2)])
        with place.open(clock=lambda: next(times)) as ledger:
            for number in range(5):
                ledger.enter_release("d", {"rows": number}, token=str(number))
            report = ledger.verify()
        assert report.ok and report.first_damaged is None
        assert report.notes[0].startswith("the clock ran backwards before entry 3 and 1 more")

    def test_a_steady_clock_is_not(self, ledger: Ledger) -> None:
        for number in range(3):
            ledger.enter_release("d", {"rows": number}, token=str(number))
        assert ledger.verify().notes == ()


class TestTheSchema:
    """The schema names the ledger that keeps its account."""

    def opened(self, named: str | None, place: Path | None) -> list[str]:
        schema = sf.data.sample_schema().replace(ledger=named)
        people = sf.read(sf.data.sample_table(20), schema=sf.Schema.parse(_parsed(schema.to_toml())))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sf.Session(people, ledger=place, budget=sf.PureDP(1))
        return [str(each.message) for each in caught]

    def test_another_ledger_than_the_schema_names_warns(self, tmp_path: Path) -> None:
        with Ledger.open(tmp_path / "one.db") as one:
            named = one.identity
        assert self.opened(None, tmp_path / "other.db") == []
        assert self.opened(named, tmp_path / "one.db") == []
        (told,) = self.opened(named, tmp_path / "other.db")
        assert named in told and "charges another one" in told
        (told,) = self.opened(named, None)
        assert "keeps no ledger" in told

    def test_an_id_that_is_none_is_refused(self) -> None:
        with pytest.raises(sf.core.errors.SchemaError, match="ledger"):
            sf.Schema.parse({"dataset": "d", "ledger": "my ledger"})


def _parsed(text: str) -> dict[str, object]:
    import tomllib

    return tomllib.loads(text)


def test_a_unit_named_while_a_session_is_open_is_no_edited_balance(place: Place) -> None:
    ledger = started(place)
    open_one = ledger.reserve("d", "ann", Charge(TENTH), "not answered")
    with place.open() as owner:
        owner.change_unit("d", "patient", rows_per_unit=2)
    ledger.roll_back(open_one)
    assert ledger.remaining("d", "ann") == LossAmount.pure("0.6")  # two answers, each twice
    ledger.commit(ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "third"), {"n": 3})
    ledger.change_unit("d", "patient", rows_per_unit=3)
    ledger.commit(ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "fourth"), {"n": 4})
    assert ledger.remaining("d", "ann") == LossAmount.pure("0.2")
    assert ledger.verify().ok
    ledger.close()
