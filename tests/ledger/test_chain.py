"""Whatever is done to a ledger behind its back, the walk finds the first place that is wrong."""

from __future__ import annotations

import hashlib
import json

import pytest

from sfumato.core.errors import InputError
from sfumato.ledger import Charge, Entry, Head, Ledger, LossAmount
from sfumato.ledger.chain import FORMAT, genesis
from tests.ledger.conftest import Place


def fill(ledger: Ledger) -> None:
    """Seven entries: grant, reserve, commit, reserve, rollback, release, release."""
    ledger.grant("d", "ann", LossAmount.pure(1))
    ledger.commit(ledger.reserve("d", "ann", Charge(LossAmount.pure("0.1")), "q1"), 42)
    ledger.roll_back(ledger.reserve("d", "ann", Charge(LossAmount.pure("0.2")), "q2"))
    ledger.enter_release("d", {"rows": 1}, token="r1")
    ledger.enter_release("d", {"rows": 2}, token="r2")


def rehashed(entry: Entry, **changes: object) -> Entry:
    return Entry(**{**entry.__dict__, **changes}).sealed()  # type: ignore[arg-type]


def forging(entry: Entry) -> str:
    changed = f"payload = '{entry.payload_text}', hash = '{entry.hash}'"
    return f"UPDATE {{t}}entries SET {changed} WHERE sequence = {entry.sequence}"


@pytest.fixture
def filled(place: Place) -> Place:
    with place.open() as ledger:
        fill(ledger)
    return place


def damage_after(place: Place, statement: str, *anchors: Head | str) -> int | None:
    place.edit(statement)
    with place.open() as ledger:
        report = ledger.verify(*anchors)
    assert not report.ok and report.finding
    return report.first_damaged


def test_an_untouched_ledger_is_intact(filled: Place) -> None:
    with filled.open(read_only=True) as ledger:
        report = ledger.verify(ledger.head(), str(ledger.head()), ledger.releases("d")[0].hash)
    assert report.ok and report.entries == 7 and report.first_damaged is None
    assert report.head.sequence == 7


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("time", "'2020-01-01T00:00:00.000000+00:00'"),
        ("dataset", "'other'"),
        ("kind", "'note'"),
        ("kind", "'nonsense'"),
        ("analyst", "'bob'"),
        ("token", "'another'"),
        ("payload", "'{}'"),
        ("previous", f"'{'0' * 64}'"),
        ("hash", f"'{'0' * 64}'"),
        ("sequence", "99"),
        ("sequence", "-1"),
    ],
)
@pytest.mark.parametrize("sequence", [1, 4, 7])
def test_a_modified_field_is_found(filled: Place, sequence: int, column: str, value: str) -> None:
    found = damage_after(filled, f"UPDATE {{t}}entries SET {column} = {value} WHERE sequence = {sequence}")
    # An entry numbered -1 stands before all others, so the first place is the one that is wrong.
    assert found == (1 if value == "-1" else sequence)


@pytest.mark.parametrize("sequence", [1, 3, 6])
def test_a_removed_entry_is_found(filled: Place, sequence: int) -> None:
    assert damage_after(filled, f"DELETE FROM {{t}}entries WHERE sequence = {sequence}") == sequence


def test_a_removed_and_renumbered_entry_is_found(filled: Place) -> None:
    filled.edit("DELETE FROM {t}entries WHERE sequence = 6")
    assert damage_after(filled, "UPDATE {t}entries SET sequence = 6 WHERE sequence = 7") == 6


def test_exchanged_entries_are_found(filled: Place) -> None:
    for before, after in ((6, 100), (7, 6), (100, 7)):
        filled.edit(f"UPDATE {{t}}entries SET sequence = {after} WHERE sequence = {before}")
    assert damage_after(filled, "SELECT 1") == 6


def test_a_modified_and_rehashed_entry_breaks_the_next(filled: Place) -> None:
    with filled.open() as ledger:
        forged = rehashed(ledger.entries()[5], payload_text='{"rows":9}')
    assert damage_after(filled, forging(forged)) == 7


def test_a_rewritten_end_is_found_with_a_head_noted_elsewhere(filled: Place) -> None:
    with filled.open() as ledger:
        head, forged = ledger.head(), rehashed(ledger.entries()[6], payload_text='{"rows":9}')
    filled.edit(forging(forged))
    with filled.open() as ledger:
        assert ledger.verify().ok, "who may write the file can write a new end"
        assert ledger.verify(head).first_damaged == 7
        assert not ledger.verify(head.hash).ok


def test_a_cut_off_end_is_found_with_a_head_noted_elsewhere(filled: Place) -> None:
    with filled.open() as ledger:
        head = ledger.head()
    filled.edit("DELETE FROM {t}entries WHERE sequence = 7")
    with filled.open() as ledger:
        assert ledger.verify().ok
        report = ledger.verify(str(head))
    assert report.first_damaged == 7 and "cut off" in report.finding


def test_a_cut_off_spend_is_found_from_the_balances_alone(filled: Place) -> None:
    assert damage_after(filled, "DELETE FROM {t}entries WHERE sequence > 3") is None


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE {t}accounts SET spent = '{"epsilon":"0/1","kind":"pure"}'""",
        """UPDATE {t}accounts SET granted = '{"epsilon":"9/1","kind":"pure"}'""",
        "UPDATE {t}accounts SET spent = 'nonsense'",
        "DELETE FROM {t}accounts",
        "DELETE FROM {t}spends",
        "UPDATE {t}spends SET state = 'rolled back', closed_by = 3 WHERE question = 'q1'",
    ],
)
def test_edited_balances_are_found(filled: Place, statement: str) -> None:
    assert damage_after(filled, statement) is None


def test_an_entry_that_cannot_have_happened_is_found(filled: Place) -> None:
    """A chain of valid hashes that charges more than was granted."""
    with filled.open() as ledger:
        last = ledger.entries()[-1]
    payload = json.dumps({"loss": LossAmount.pure(5).to_mapping(), "question": "q9"}, separators=(",", ":"))
    forged = rehashed(last, sequence=8, kind="reserve", analyst="ann", token="x", payload_text=payload, previous=last.hash)
    values = ", ".join(f"'{value}'" for value in list(forged.__dict__.values())[1:])
    assert damage_after(filled, f"INSERT INTO {{t}}entries VALUES (8, {values})") == 8


@pytest.mark.parametrize("payload", ["[]", "7", "x", '{"loss":"x"}', '{"loss":{}}', '{"loss":{"kind":[]}}', "[" * 100_000])
def test_payloads_that_are_nonsense_are_found(filled: Place, payload: str) -> None:
    with filled.open() as ledger:
        last = ledger.entries()[-1]
    forged = rehashed(last, sequence=8, kind="grant", analyst="ann", token="x", payload_text=payload, previous=last.hash)
    values = ", ".join(f"'{value}'" for value in list(forged.__dict__.values())[1:])
    assert damage_after(filled, f"INSERT INTO {{t}}entries VALUES (8, {values})") == 8


def test_entries_of_another_ledger_do_not_fit(filled: Place) -> None:
    with filled.open() as ledger:
        head = ledger.head()
        assert not ledger.verify(Head("0" * 32, head.sequence, head.hash)).ok
    assert damage_after(filled, f"UPDATE {{t}}meta SET value = '{'0' * 32}' WHERE name = 'identity'") == 1


def test_the_database_itself_refuses_changes(filled: Place) -> None:
    from sfumato.core.errors import LedgerError

    with filled.open() as ledger:
        for statement in ("UPDATE {t}entries SET analyst = 'x'", "DELETE FROM {t}entries"):
            with pytest.raises(LedgerError, match="never does"), ledger._store.writing() as tables:
                tables._run(statement)
        assert ledger.verify().ok


def test_the_hash_can_be_computed_without_sfumato(filled: Place) -> None:
    """The frozen format, spelled out once more."""
    with filled.open() as ledger:
        identity = ledger.head().ledger
        entry = ledger.entries()[0]
    fields = {
        "analyst": "ann",
        "dataset": "d",
        "format": "sfumato-ledger-1",
        "kind": "grant",
        "payload": '{"loss":{"epsilon":"1/1","kind":"pure"}}',
        "previous": hashlib.sha256(f"sfumato-ledger-1:{identity}".encode()).hexdigest(),
        "sequence": 1,
        "time": entry.time,
        "token": entry.token,
    }
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    assert entry.hash == hashlib.sha256(text.encode()).hexdigest()
    assert entry.previous == genesis(identity) and FORMAT == "sfumato-ledger-1"


def test_the_format_is_frozen() -> None:
    """An entry written by the first version has this hash for ever."""
    entry = Entry(
        3,
        "2026-01-01T00:00:00.000000+00:00",
        "d",
        "commit",
        "ann",
        "t",
        '{"answer":42,"question":"ü"}',
        "0" * 64,
    )
    assert entry.sealed().hash == "0bb3328a8c5be1890e4c0fdb13b325123344232e9dec479e017b9141edb42e44"


def test_a_head_survives_being_printed() -> None:
    head = Head("a" * 32, 12, "b" * 64)
    assert Head.parse(f" {head}\n") == head
    for wrong in ("", "x", str(head)[:-1], f"{head}:1", "sfumato-ledger-2:a:1:" + "b" * 64):
        with pytest.raises(InputError):
            Head.parse(wrong)
