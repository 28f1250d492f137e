"""Releases, grants, reservations and answers on both databases."""

from __future__ import annotations

import datetime
import threading
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.core.errors import BudgetRefused, InputError, LedgerError
from sfumato.ledger import Charge, Ledger, LossAmount
from tests.examples import examples
from tests.ledger.conftest import Place

TENTH = LossAmount.pure("0.1")


def test_a_release_is_entered_and_listed(ledger: Ledger) -> None:
    first = ledger.enter_release("patients", {"guarantees": ["KAnonymity(5)"], "rows": 10}, token="r1")
    second = ledger.enter_release("patients", {"naïve": "ü—✓"}, token="r2")
    ledger.enter_release("others", {}, token="r3")
    assert ledger.releases("patients") == [first, second]
    assert first.payload == {"guarantees": ["KAnonymity(5)"], "rows": 10}
    assert (first.sequence, second.sequence, second.previous) == (1, 2, first.hash)
    assert ledger.verify().ok and ledger.head().sequence == 3


def test_entering_with_the_same_token_changes_nothing(place: Place) -> None:
    with place.open() as ledger:
        first = ledger.enter_release("d", {"a": 1, "b": 2}, token="same")
    with place.open() as ledger:
        assert ledger.enter_release("d", {"b": 2, "a": 1}, token="same") == first
        assert ledger.head().sequence == 1
        for changed in (("d", {"a": 2}), ("e", {"a": 1, "b": 2})):
            with pytest.raises(LedgerError, match="another entry"):
                ledger.enter_release(*changed, token="same")
        with pytest.raises(LedgerError, match="another entry"):
            ledger.note("d", {"a": 1, "b": 2}, token="same")
        assert ledger.head().sequence == 1


def test_time_is_written_in_utc(place: Place) -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    with place.open(clock=lambda: datetime.datetime(2026, 3, 1, 1, 30, tzinfo=zone)) as ledger:
        assert ledger.note("d", {}, token="t").time == "2026-02-28T23:30:00.000000+00:00"


@pytest.mark.parametrize("wrong", ["", " d", "a\nb", "a\x00b", "x" * 201, "\ud800", None])
def test_odd_names_are_refused(ledger: Ledger, wrong: str) -> None:
    for call in (
        lambda: ledger.enter_release(wrong, {}, token="t"),
        lambda: ledger.enter_release("d", {}, token=wrong),
        lambda: ledger.grant("d", wrong, TENTH),
        lambda: ledger.grant(wrong, "ann", TENTH),
    ):
        with pytest.raises(InputError):
            call()
    assert ledger.head().sequence == 0


@pytest.mark.parametrize("payload", [{"a": float("nan")}, {"a": b"x"}, {"a": {1, 2}}, ["a"], {"a": "\ud800"}])
def test_a_payload_is_plain_data_and_its_refusal_does_not_echo_it(ledger: Ledger, payload: object) -> None:
    with pytest.raises(InputError) as caught:
        ledger.enter_release("d", payload, token="t")  # type: ignore[arg-type]
    assert caught.value.__cause__ is None and caught.value.__suppress_context__ or payload == ["a"]
    assert ledger.head().sequence == 0


def test_an_overlong_payload_is_refused(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="longer"):
        ledger.enter_release("d", {"a": "x" * 5_000_000}, token="t")


def test_control_characters_in_a_payload_survive(ledger: Ledger) -> None:
    payload = {"a": "zero\x00 quote' percent%s question? \U0001f600"}
    ledger.enter_release("d'; DROP TABLE entries; --", payload, token="%s?")
    assert ledger.releases("d'; DROP TABLE entries; --")[0].payload == payload
    assert ledger.verify().ok


def test_a_question_is_reserved_answered_and_then_free(place: Place) -> None:
    with place.open() as ledger:
        ledger.grant("d", "ann", LossAmount.pure(1))
        reservation = ledger.reserve("d", "ann", Charge(TENTH), "q1")
        assert ledger.remaining("d", "ann") == LossAmount.pure("0.9")
        assert ledger.answer("d", "ann", "q1") is None
        shown = ledger.commit(reservation, {"count": 41, "error": 3.5})
        assert shown.value == {"count": 41, "error": 3.5}
    with place.open() as ledger:
        assert ledger.answer("d", "ann", "q1") == shown
        again = ledger.reserve("d", "ann", Charge(TENTH), "q1")
        assert again.answer == shown and ledger.commit(again, {"count": 7}) == shown
        ledger.roll_back(again)
        assert ledger.remaining("d", "ann") == LossAmount.pure("0.9")
        assert ledger.answer("d", "bob", "q1") is None and ledger.answer("e", "ann", "q1") is None
        assert ledger.verify().ok


def test_without_a_grant_nothing_is_reserved(ledger: Ledger) -> None:
    ledger.grant("d", "ann", LossAmount.pure(1))
    for dataset, analyst in (("d", "bob"), ("e", "ann")):
        with pytest.raises(BudgetRefused, match="ledger grant") as caught:
            ledger.reserve(dataset, analyst, Charge(TENTH), "q")
        assert caught.value.exit_code == 3
        assert ledger.remaining(dataset, analyst) is None


def test_a_grant_is_spent_to_the_last_bit_and_not_further(ledger: Ledger) -> None:
    ledger.grant("d", "ann", LossAmount.pure(1))
    for number in range(10):
        ledger.reserve("d", "ann", Charge(TENTH), f"q{number}")
    assert ledger.remaining("d", "ann") == LossAmount.pure(0)
    with pytest.raises(BudgetRefused, match="ε = 0 is left of a grant of ε = 1"):
        ledger.reserve("d", "ann", Charge(LossAmount.pure(Fraction(1, 10**30))), "more")


def test_an_open_reservation_stays_spent(place: Place) -> None:
    with place.open() as ledger:
        ledger.grant("d", "ann", TENTH)
        lost = ledger.reserve("d", "ann", Charge(TENTH), "q")
    with place.open() as ledger:
        assert ledger.remaining("d", "ann") == LossAmount.pure(0)
        with pytest.raises(LedgerError, match="stays spent"):
            ledger.roll_back(lost)


def test_a_reservation_is_rolled_back_only_before_noise_is_drawn(ledger: Ledger) -> None:
    ledger.grant("d", "ann", TENTH)
    refunded = ledger.reserve("d", "ann", Charge(TENTH), "q")
    ledger.roll_back(refunded)
    assert ledger.remaining("d", "ann") == TENTH
    with pytest.raises(LedgerError):
        ledger.roll_back(refunded)
    with pytest.raises(LedgerError, match="rolled back"):
        ledger.commit(refunded, 1)
    drawn = ledger.reserve("d", "ann", Charge(TENTH), "q")
    ledger.draw(drawn)
    with pytest.raises(LedgerError, match="noise"):
        ledger.roll_back(drawn)
    ledger.commit(drawn, 1)
    assert ledger.remaining("d", "ann") == LossAmount.pure(0) and ledger.verify().ok


def test_two_who_ask_the_same_at_once_see_the_same_answer(ledger: Ledger) -> None:
    ledger.grant("d", "ann", LossAmount.pure(1))
    one, other = ledger.reserve("d", "ann", Charge(TENTH), "q"), ledger.reserve("d", "ann", Charge(TENTH), "q")
    shown = ledger.commit(one, 5)
    assert ledger.commit(other, 6) == shown and ledger.commit(one, 7) == shown
    assert ledger.answer("d", "ann", "q") == shown
    assert ledger.remaining("d", "ann") == LossAmount.pure("0.8"), "noise was drawn twice, so both are charged"
    assert ledger.verify().ok


def test_a_failed_commit_leaves_the_reservation_spent_and_open(ledger: Ledger) -> None:
    ledger.grant("d", "ann", LossAmount.pure(1))
    reservation = ledger.reserve("d", "ann", Charge(TENTH), "q")
    with pytest.raises(InputError):
        ledger.commit(reservation, float("inf"))
    assert ledger.remaining("d", "ann") == LossAmount.pure("0.9") and ledger.verify().ok
    assert ledger.commit(reservation, 3).value == 3


def test_spends_convert_exactly_upward_or_are_refused(ledger: Ledger) -> None:
    ledger.grant("d", "ann", LossAmount.zcdp(1))
    ledger.grant("d", "bob", LossAmount.approx(1, "1e-6"))
    ledger.reserve("d", "ann", Charge(LossAmount.pure(1)), "q")
    ledger.reserve("d", "bob", Charge(TENTH), "q")
    assert ledger.remaining("d", "ann") == LossAmount.zcdp("0.5")
    assert ledger.remaining("d", "bob") == LossAmount.approx("0.9", "1e-6")
    with pytest.raises(BudgetRefused, match="no exact counterpart"):
        ledger.reserve("d", "ann", Charge(LossAmount.approx("0.1", "1e-9")), "q2")
    with pytest.raises(BudgetRefused, match="does not suffice"):
        ledger.reserve("d", "bob", Charge(LossAmount.approx("0.1", "1e-5")), "q2")
    assert ledger.verify().ok


def test_a_new_grant_replaces_the_old_and_keeps_what_was_spent(ledger: Ledger) -> None:
    ledger.grant("d", "ann", LossAmount.pure(1))
    ledger.grant("d", "ann", LossAmount.pure(1))
    ledger.reserve("d", "ann", Charge(LossAmount.pure("0.5")), "q1")
    ledger.roll_back(ledger.reserve("d", "ann", Charge(LossAmount.pure("0.5")), "q2"))
    ledger.grant("d", "ann", LossAmount.pure("0.2"))
    assert ledger.remaining("d", "ann") == LossAmount.pure(0)
    ledger.grant("d", "ann", LossAmount.zcdp(1))
    assert ledger.remaining("d", "ann") == LossAmount.zcdp("0.875")
    with pytest.raises(BudgetRefused):
        ledger.grant("d", "ann", LossAmount.pure(1)) and ledger.reserve("d", "ann", Charge(LossAmount.zcdp(1)), "q3")
    [account] = ledger.accounts("d")
    assert (account.analyst, account.granted, account.spent) == (
        "ann",
        LossAmount.pure(1),
        LossAmount.pure("0.5"),
    )
    assert ledger.verify().ok


def test_a_grant_that_cannot_count_earlier_spends_is_refused(ledger: Ledger) -> None:
    ledger.grant("d", "ann", LossAmount.zcdp(1))
    ledger.reserve("d", "ann", Charge(LossAmount.zcdp("0.1")), "q")
    before = ledger.head()
    with pytest.raises(BudgetRefused):
        ledger.grant("d", "ann", LossAmount.pure(5))
    assert ledger.head() == before and ledger.verify().ok


def test_threads_share_an_open_ledger(ledger: Ledger) -> None:
    def work(name: int) -> None:
        for number in range(10):
            ledger.note("d", {"n": number}, token=f"{name}-{number}")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.head().sequence == 40 and ledger.verify().ok


steps = st.lists(
    st.tuples(st.sampled_from(["reserve", "commit", "roll back", "forget", "grant"]), st.integers(0, 30)),
    max_size=25,
)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_no_interleaving_spends_more_than_the_grant(ledger: Ledger, script: list[tuple[str, int]]) -> None:
    """Against a model that adds up by hand: whatever is open or committed fits into the grant."""
    dataset = f"d{ledger.head().sequence}"
    ledger.grant(dataset, "ann", LossAmount.pure(1))
    granted, charged, pending, asked = Fraction(1), Fraction(0), [], 0
    for verb, number in script:
        if verb == "grant":
            granted = Fraction(number, 10)
            ledger.grant(dataset, "ann", LossAmount.pure(granted))
        elif verb == "reserve":
            loss, asked = Fraction(number, 30), asked + 1
            if charged + loss <= granted:
                pending.append(ledger.reserve(dataset, "ann", Charge(LossAmount.pure(loss)), f"q{asked}"))
                charged += loss
            else:
                with pytest.raises(BudgetRefused):
                    ledger.reserve(dataset, "ann", Charge(LossAmount.pure(loss)), f"q{asked}")
        elif pending:
            reservation = pending.pop(number % len(pending))
            if verb == "commit":
                assert ledger.commit(reservation, number).value == number
            elif verb == "roll back":
                ledger.roll_back(reservation)
                charged -= reservation.charge.loss.epsilon or 0
        assert ledger.remaining(dataset, "ann") == LossAmount.pure(max(granted - charged, Fraction(0)))
    assert ledger.verify().ok


def test_stored_answers_are_found_by_how_their_question_begins(ledger: Ledger) -> None:
    ledger.grant("d", "ann", LossAmount.pure(10))
    questions = ["ab:2", "ab:1", "AB:1", "ab;1", "ab", "ab:", "aba:1", "a:b", "ab:1:z", "ab9:1"]
    for number, question in enumerate(questions):
        ledger.commit(ledger.reserve("d", "ann", Charge(TENTH), question), {"number": number})
    found = [each.value["number"] for each in ledger.stored("d", "ann", "ab:")]
    assert found == [number for number, question in enumerate(questions) if question.startswith("ab:")]


def test_an_index_serves_the_search_for_stored_answers(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("d", "ann", LossAmount.pure(10))
        asked = []
        ledger._store._connection.set_trace_callback(asked.append)  # type: ignore[attr-defined]
        ledger.stored("d", "ann", "ab:")
        [search] = [each for each in asked if "s.question" in each]
        plan = ledger._store._connection.execute(f"EXPLAIN QUERY PLAN {search}").fetchall()  # type: ignore[attr-defined]
    assert any("spends_by_question (dataset=? AND question>? AND question<?)" in str(step) for step in plan), plan
