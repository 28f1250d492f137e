"""A withdrawal is the owner's statement that a release was never given away: entered once, for ever, and for rows alone."""

from __future__ import annotations

import json

import pytest

from sfumato.core.errors import InputError, LedgerError
from sfumato.ledger import Charge, Entry, Ledger, LossAmount
from sfumato.ledger.chain import withdrawal_token
from sfumato.ledger.withdrawals import LONGEST_REASON
from tests.ledger.conftest import Place
from tests.ledger.test_chain import forging, rehashed

REASON = "the review found a wrong role; the folder was deleted unread"
ROWS = {"rows": 10, "claims": {"KAnonymity": 5.0}}
NOISY = {"rows": 0, "evidence": "process", "charged": "0" * 64}


def entered(ledger: Ledger) -> tuple[Entry, Entry, Entry]:
    """A release of rows, a private result of the same dataset, and a release of another one."""
    rows = ledger.enter_release("d", ROWS, token="rows")
    noisy = ledger.enter_release("d", NOISY, token="noisy")
    return rows, noisy, ledger.enter_release("other", ROWS, token="other")


def test_a_release_is_withdrawn_with_its_reason_and_the_chain_stays_intact(ledger: Ledger) -> None:
    rows, _, other = entered(ledger)
    entry = ledger.withdraw(rows.hash, f"  {REASON} ", dataset="d")
    ledger.withdraw(other.hash[:8], REASON)
    [stated] = ledger.withdrawals("d")
    assert (stated.release, stated.reason, stated.dataset, stated.entry) == (rows.hash, REASON, "d", entry.hash)
    assert [each.release for each in ledger.withdrawals()] == [rows.hash, other.hash]
    assert rows.hash in [each.hash for each in ledger.releases("d")]  # nothing is ever taken out
    assert ledger.verify(entry.hash).ok and REASON not in repr(stated)


@pytest.mark.parametrize(
    ("said", "which", "options"),
    [
        ("privacy charge never returns", lambda entries: entries[1].hash, {}),
        ("is about dataset 'd', and 'other' was named", lambda entries: entries[0].hash, {"dataset": "other"}),
        ("has no entry", lambda entries: "f" * 64, {}),
        ("has no entry", lambda entries: "0" * 9, {}),
        ("is no id of a release", lambda entries: entries[0].hash[:7], {}),
        ("is no id of a release", lambda entries: "the first one", {}),
        ("is no id of a release", lambda entries: 7, {}),
        ("needs its reason", lambda entries: entries[0].hash, {"reason": " "}),
        ("needs its reason", lambda entries: entries[0].hash, {"reason": "two\nlines"}),
        ("needs its reason", lambda entries: entries[0].hash, {"reason": "x" * (LONGEST_REASON + 1)}),
        ("needs its reason", lambda entries: entries[0].hash, {"reason": None}),
    ],
)
def test_what_cannot_be_withdrawn_is_refused_and_nothing_is_entered(ledger: Ledger, said: str, which, options) -> None:
    entries = entered(ledger)
    with pytest.raises(InputError, match=said) as refused:
        ledger.withdraw(which(entries), **{"reason": REASON, **options})
    assert str(refused.value).endswith("Nothing was entered.")
    assert ledger.count() == 3 and not ledger.withdrawals()


def test_only_releases_are_withdrawn_and_each_once(ledger: Ledger) -> None:
    rows, _, _ = entered(ledger)
    grant = ledger.grant("d", "ann", LossAmount.pure(1))
    with pytest.raises(InputError, match="is no release but a grant"):
        ledger.withdraw(grant.hash, REASON)
    withdrawn = ledger.withdraw(rows.hash, REASON)
    for named, said in ((rows.hash, "was withdrawn already on 20"), (withdrawn.hash, "no release but a withdrawal")):
        with pytest.raises(InputError, match=said):
            ledger.withdraw(named, REASON)
    assert ledger.count() == 5 and len(ledger.withdrawals()) == 1


def test_a_spend_is_as_it_was_after_a_withdrawal(ledger: Ledger) -> None:
    rows, _, _ = entered(ledger)
    ledger.grant("d", "ann", LossAmount.pure(1))
    ledger.commit(ledger.reserve("d", "ann", Charge(LossAmount.pure("0.25")), "q"), 1)
    ledger.withdraw(rows.hash, REASON)
    assert ledger.remaining("d", "ann") == LossAmount.pure("0.75") and ledger.verify().ok


def test_ids_that_begin_alike_need_more_digits(place: Place) -> None:
    with place.open() as ledger:
        rows, noisy, _ = entered(ledger)
        place.edit(f"UPDATE {{t}}entries SET hash = '{rows.hash[:12] + noisy.hash[12:]}' WHERE sequence = {noisy.sequence}")
        with pytest.raises(InputError, match="several entries of the ledger begin with"):
            ledger.withdraw(rows.hash[:12], REASON)
        assert ledger.withdrawable(rows.hash[:13] if rows.hash[12] != noisy.hash[12] else rows.hash).hash == rows.hash


def test_what_is_released_again_after_a_withdrawal_counts_as_another_release(ledger: Ledger) -> None:
    first = ledger.enter_release("d", ROWS, token="rows")
    assert ledger.enter_release("d", ROWS, token="rows").hash == first.hash
    ledger.withdraw(first.hash, REASON)
    second = ledger.enter_release("d", ROWS, token="rows")
    assert second.hash != first.hash and ledger.enter_release("d", ROWS, token="rows").hash == second.hash
    ledger.withdraw(second.hash, REASON)
    third = ledger.enter_release("d", ROWS, token="rows")
    assert third.hash not in {each.release for each in ledger.withdrawals("d")} and ledger.verify().ok


def test_a_note_is_no_withdrawal_whatever_its_token(ledger: Ledger) -> None:
    rows = ledger.enter_release("d", ROWS, token="rows")
    ledger.note("d", {"release": rows.hash, "reason": REASON}, token=withdrawal_token(rows.hash))
    assert not ledger.withdrawals() and ledger.enter_release("d", ROWS, token="rows").hash == rows.hash


@pytest.mark.parametrize(
    "changed",
    [
        {"release": "f" * 64},  # nothing of that id
        {"release": "noisy"},
        {"release": "other"},
        {"reason": ""},
        {"release": None},
        {"more": 1},
    ],
)
def test_the_walk_finds_a_withdrawal_that_no_ledger_enters(place: Place, changed: dict[str, object]) -> None:
    with place.open() as ledger:
        rows, noisy, other = entered(ledger)
        entry = ledger.withdraw(rows.hash, REASON)
        if "release" in changed:
            changed = {"release": {"noisy": noisy.hash, "other": other.hash}.get(str(changed["release"]), changed["release"])}
    payload = json.dumps({**entry.payload, **changed}, sort_keys=True, separators=(",", ":"))
    token = withdrawal_token(str(changed.get("release", rows.hash)))
    forged = rehashed(entry, payload_text=payload, token=token)
    place.edit(f"{forging(forged).split(' WHERE')[0]}, token = '{token}' WHERE sequence = {entry.sequence}")
    with place.open() as ledger:
        report = ledger.verify()
    assert not report.ok and report.first_damaged == entry.sequence and "withdrawals" in report.finding


def test_the_walk_finds_a_second_withdrawal_and_one_without_its_token(place: Place) -> None:
    with place.open() as ledger:
        rows, _, other = entered(ledger)
        first = ledger.withdraw(rows.hash, REASON)
        second = ledger.withdraw(other.hash, REASON)
    again = rehashed(second, dataset="d", payload_text=first.payload_text)
    place.edit(f"{forging(again).split(' WHERE')[0]}, dataset = 'd' WHERE sequence = {second.sequence}")
    with place.open() as ledger:
        assert ledger.verify().first_damaged == second.sequence


def test_a_withdrawal_that_was_emptied_is_damage_and_no_crash(place: Place) -> None:
    with place.open() as ledger:
        rows, _, _ = entered(ledger)
        entry = ledger.withdraw(rows.hash, REASON)
    place.edit(f"UPDATE {{t}}entries SET payload = '{{}}' WHERE sequence = {entry.sequence}")
    with place.open() as ledger, pytest.raises(LedgerError, match="cannot be read"):
        ledger.withdrawals()
