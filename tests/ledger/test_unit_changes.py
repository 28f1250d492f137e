"""A unit that is named later opens no fresh account: what was spent is carried over, or said not to be covered."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.core.errors import BudgetRefused, InputError
from sfumato.ledger import Charge, Entry, Ledger, LossAmount, Protected
from sfumato.ledger.group_loss import grouped
from tests.examples import examples
from tests.ledger.conftest import Place
from tests.ledger.test_protected import spend_without_a_unit

TENTH = LossAmount.pure("0.1")
ONE = LossAmount.pure(1)


def spend(ledger: Ledger, question: str, loss: LossAmount = TENTH, analyst: str = "ann", **about: Any) -> None:
    ledger.commit(ledger.reserve("d", analyst, Charge(loss, Protected(**about)), question), {"n": 1})


def test_charges_per_record_count_as_those_of_so_many_rows(place: Place) -> None:
    with place.open() as ledger:
        for analyst in ("ann", "bob"):
            ledger.grant("d", analyst, ONE)
        ledger.grant("e", "ann", ONE)
        ledger.cap("d", LossAmount.pure(2))
        spend(ledger, "q1")
        ledger.reserve("e", "ann", Charge(TENTH), "q")
        entry = ledger.change_unit("d", "patient", rows_per_unit=8)
        assert (entry.kind, entry.analyst, entry.payload["rows_per_unit"]) == ("unit", "", 8)
        assert ledger.remaining("d", "ann") == LossAmount.pure("0.2") and ledger.remaining("d", "bob") == ONE
        assert ledger.remaining("d") == LossAmount.pure("1.2") and ledger.remaining("e", "ann") == LossAmount.pure("0.9")
        assert ledger.not_covered("d") == () and ledger.verify().ok
    with place.open() as ledger:
        with pytest.raises(BudgetRefused, match="protects one patient, and this would protect one record"):
            ledger.reserve("d", "bob", Charge(TENTH), "q2")
        spend(ledger, "q2", unit="patient")
        assert ledger.remaining("d", "ann") == TENTH
        assert [each.loss for each in ledger.spends("d")] == [TENTH, TENTH], "what was entered stays as it was"
        assert ledger.reserve("d", "ann", Charge(TENTH), "q1").answer is not None, "and so do stored answers"
        ledger.grant("d", "ann", LossAmount.pure(2))
        assert ledger.remaining("d", "ann") == LossAmount.pure("1.1") and ledger.verify().ok


def test_what_is_not_covered_is_in_no_bound(ledger: Ledger) -> None:
    """A charge that does not say for whom it was comes on top of the bound, and was counted in it as well."""
    ledger.grant("d", "ann", ONE)
    spend_without_a_unit(ledger, "q1")
    spend(ledger, "q2", LossAmount.pure("0.25"), unit="patient")
    assert "without saying for whom" in str(ledger.not_covered("d")[0])
    assert ledger.charges("d").amounts == (LossAmount.pure("0.25"),)


def test_more_than_the_grant_leaves_nothing_and_says_so(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE)
    spend(ledger, "q1", LossAmount.pure("0.5"))
    ledger.change_unit("d", "patient", rows_per_unit=8)
    assert ledger.remaining("d", "ann") == LossAmount.pure(0) and ledger.accounts("d")[0].spent == LossAmount.pure(4)
    with pytest.raises(
        BudgetRefused, match="nothing is left of the budget: what was spent amounts to ε = 4 about one patient"
    ) as caught:
        ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "q2")
    assert "grant of ε = 1" in str(caught.value) and ledger.verify().ok
    ledger.grant("d", "ann", LossAmount.pure(5))
    spend(ledger, "q2", unit="patient")
    assert ledger.remaining("d", "ann") == LossAmount.pure("0.9") and ledger.verify().ok


@pytest.mark.parametrize(
    ("granted", "spent", "left"),
    [
        (LossAmount.zcdp(1), LossAmount.zcdp("0.01"), LossAmount.zcdp("0.91")),
        (LossAmount.zcdp(1), LossAmount.pure("0.1"), LossAmount.zcdp("0.955")),
        (LossAmount.approx(1, "1e-5"), LossAmount.pure("0.1"), LossAmount.approx("0.7", "1e-5")),
    ],
)
def test_every_kind_is_carried_over_by_its_own_rule(
    ledger: Ledger, granted: LossAmount, spent: LossAmount, left: LossAmount
) -> None:
    ledger.grant("d", "ann", granted)
    spend(ledger, "q1", spent)
    ledger.change_unit("d", "patient", rows_per_unit=3)
    assert ledger.remaining("d", "ann") == left and ledger.verify().ok


def test_an_approximate_loss_is_carried_over_with_its_delta(ledger: Ledger) -> None:
    granted, spent = LossAmount.approx(1, "1e-4"), LossAmount.approx("0.1", "1e-6")
    ledger.grant("d", "ann", granted)
    spend(ledger, "q1", spent)
    ledger.change_unit("d", "patient", rows_per_unit=3)
    assert ledger.accounts("d")[0].spent == grouped(spent, 3) and ledger.verify().ok


def test_an_unknown_maximum_keeps_the_charges_and_says_that_they_are_not_covered(place: Place) -> None:
    with place.open() as ledger:
        ledger.grant("d", "ann", LossAmount.approx(2, "1e-4"))
        spend(ledger, "q1", TENTH)
        spend(ledger, "q2", LossAmount.approx("0.2", "1e-6"))
        ledger.roll_back(ledger.reserve("d", "ann", Charge(TENTH), "q3"))
        ledger.change_unit("d", "patient")
        spend(ledger, "q4", unit="patient")
    with place.open() as ledger:
        assert ledger.accounts("d")[0].spent == LossAmount.approx("0.4", "1e-6")
        [missing] = ledger.not_covered("d")
        assert missing.protected == Protected("record") and missing.current == Protected("patient")
        assert str(missing).startswith("not covered: ε = 0.2, δ = 0.000001 and ε = 0.1 was charged earlier on this data set")
        assert "for one record added or removed" in str(missing) and "one patient added or removed is not known" in str(missing)
        ledger.change_unit("d", "patient", rows_per_unit=2)
        assert ledger.not_covered("d") == () and ledger.verify().ok, "the owner found out how many there are"
        assert ledger.accounts("d")[0].spent.epsilon == LossAmount.pure("0.7").epsilon
        ledger.change_unit("d", "patient", rows_per_unit=3)
        assert ledger.accounts("d")[0].spent.epsilon == LossAmount.pure(1).epsilon and ledger.verify().ok, "and corrected it"


def test_a_record_is_covered_by_twice_what_was_charged_about_patients(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE)
    spend(ledger, "q1", unit="patient")
    ledger.change_unit("d", "record")
    assert ledger.remaining("d", "ann") == LossAmount.pure("0.8") and ledger.not_covered("d") == () and ledger.verify().ok


def test_what_returns_to_its_own_unit_counts_as_it_was_entered(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE)
    spend(ledger, "q1")
    ledger.change_unit("d", "patient")
    spend(ledger, "q2", unit="patient")
    ledger.change_unit("d", "record")
    assert ledger.remaining("d", "ann") == LossAmount.pure("0.7") and ledger.not_covered("d") == () and ledger.verify().ok


def test_a_detour_takes_nothing_from_what_is_carried_over(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE)
    spend(ledger, "q1")
    ledger.change_unit("d", "patient")
    ledger.change_unit("d", "record")
    ledger.change_unit("d", "patient", rows_per_unit=8)
    assert ledger.accounts("d")[0].spent == LossAmount.pure("0.8") and ledger.not_covered("d") == () and ledger.verify().ok


def test_a_detour_adds_nothing_to_what_is_carried_over(ledger: Ledger) -> None:
    ledger.grant("d", "ann", LossAmount.pure(100))
    spend(ledger, "q1")
    ledger.change_unit("d", "patient", rows_per_unit=8)
    spend(ledger, "q2", unit="patient")
    ledger.change_unit("d", "record")
    ledger.change_unit("d", "home", rows_per_unit=50)
    # The first by 50 rows; the second twice for a record, of which a home has 50.
    assert ledger.accounts("d")[0].spent == LossAmount.pure(15) and ledger.not_covered("d") == () and ledger.verify().ok


def test_replaced_units_cover_no_unit_that_comes_or_goes(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE)
    spend(ledger, "q1", neighbours="replace")
    with pytest.raises(InputError, match="however few rows"):
        ledger.change_unit("d", "patient", rows_per_unit=8)
    ledger.change_unit("d", "patient")
    assert "one record replaced by another" in str(ledger.not_covered("d")[0]) and ledger.verify().ok
    ledger.grant("e", "ann", ONE)
    ledger.reserve("e", "ann", Charge(TENTH), "q1")
    ledger.change_unit("e", "record", neighbours="replace")
    assert ledger.remaining("e", "ann") == LossAmount.pure("0.8") and ledger.verify().ok


def test_a_reservation_is_given_back_as_it_counts_now(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE)
    ledger.cap("d", ONE)
    pending = ledger.reserve("d", "ann", Charge(TENTH), "q1")
    spend(ledger, "q2")
    ledger.change_unit("d", "patient", rows_per_unit=4)
    assert ledger.remaining("d", "ann") == LossAmount.pure("0.2")
    ledger.roll_back(pending)
    assert ledger.remaining("d", "ann") == ledger.remaining("d") == LossAmount.pure("0.6") and ledger.verify().ok


def test_nothing_is_changed_that_says_nothing(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="nobody was granted anything on dataset 'd'"):
        ledger.change_unit("d", "patient")
    ledger.grant("d", "ann", ONE)
    spend(ledger, "q1")
    before = ledger.head(), ledger.accounts()
    for odd in (0, -1, True, "8", 1.5, 10**10):
        with pytest.raises(InputError, match="whole number"):
            ledger.change_unit("d", "patient", rows_per_unit=odd)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is about one record added or removed already"):
        ledger.change_unit("d", "record")
    with pytest.raises(InputError, match="already"):
        ledger.change_unit("d", "record", rows_per_unit=3)
    with pytest.raises(InputError, match="no maximum of rows is needed"):
        ledger.change_unit("d", "record", neighbours="replace", rows_per_unit=3)
    assert (ledger.head(), ledger.accounts()) == before


def test_charges_of_earlier_versions_that_do_not_say_about_whom_are_not_covered(place: Place) -> None:
    with place.open() as ledger:
        ledger.grant("d", "ann", ONE)
        spend_without_a_unit(ledger, "q1")
        assert ledger.not_covered("d") == ()
        ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "q2")
        assert "ε = 0.1 was charged earlier on this data set without saying for whom" in str(ledger.not_covered("d")[0])
    with place.open() as ledger:
        ledger.grant("d", "ann", LossAmount.pure(2), unit="patient")
        assert "without saying for whom" in str(ledger.not_covered("d")[0]), "a larger budget says nothing of what was charged"
        assert ledger.verify().ok


def test_the_owner_says_what_charges_of_earlier_versions_are_about_before_anything_else_is_spent(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE)
    spend_without_a_unit(ledger, "q1")
    ledger.grant("d", "ann", ONE, unit="patient")
    ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "q2")
    ledger.grant("d", "ann", LossAmount.pure(2), unit="patient")
    assert ledger.not_covered("d") == () and ledger.verify().ok


def test_charges_of_earlier_versions_are_carried_over_once_the_owner_said_what_they_are_about(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE)
    spend_without_a_unit(ledger, "q1")
    with pytest.raises(InputError, match="Say it first, by a grant with --unit"):
        ledger.change_unit("d", "patient", rows_per_unit=3)
    ledger.grant("d", "ann", ONE, unit="record")
    ledger.change_unit("d", "patient", rows_per_unit=3)
    assert ledger.remaining("d", "ann") == LossAmount.pure("0.7") and ledger.not_covered("d") == () and ledger.verify().ok


def test_verify_notes_a_correction_that_gave_budget_back(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE)
    spend(ledger, "q1")
    ledger.change_unit("d", "patient")
    for most in (4, 8):
        ledger.change_unit("d", "patient", rows_per_unit=most)
    assert ledger.verify().notes == (), "more is spent by these"
    ledger.change_unit("d", "patient", rows_per_unit=2)
    report = ledger.verify()
    assert report.ok and len(report.notes) == 1
    assert "entry 7 corrected the most rows of one patient on dataset 'd' from 8 to 2, which gave budget back" in str(report)


# Whoever edits it is found out.


@pytest.fixture
def changed(place: Place) -> Place:
    with place.open() as ledger:
        ledger.grant("d", "ann", ONE)
        spend(ledger, "q1")
        ledger.change_unit("d", "patient", rows_per_unit=8)
    return place


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        (
            "UPDATE {t}meta SET value = replace(value, '\"most\": 8', '\"most\": 2') WHERE name = 'changes:d'",
            "units of the budgets",
        ),
        ("DELETE FROM {t}meta WHERE name = 'changes:d'", "units of the budgets"),
        ("UPDATE {t}meta SET value = 'nonsense' WHERE name = 'changes:d'", "cannot be read"),
        ("UPDATE {t}accounts SET spent = replace(spent, '4/5', '1/10')", "balances differ"),
        ("UPDATE {t}entries SET payload = replace(payload, '8', '2') WHERE kind = 'unit'", "modified"),
    ],
)
def test_verify_finds_an_edited_change(changed: Place, statement: str, finding: str) -> None:
    changed.edit(statement)
    with changed.open() as ledger:
        report = ledger.verify()
    assert not report.ok and finding in report.finding


def test_a_rehashed_change_with_another_maximum_cannot_have_led_to_the_balances(changed: Place) -> None:
    with changed.open() as ledger:
        last = ledger.entries()[-1]
    text = last.payload_text.replace("8", "2")
    forged = Entry(**{**last.__dict__, "payload_text": text}).sealed()
    changed.edit(f"UPDATE {{t}}entries SET payload = '{text}', hash = '{forged.hash}' WHERE sequence = {last.sequence}")
    with changed.open() as ledger:
        assert not ledger.verify().ok


steps = st.lists(
    st.tuples(
        st.sampled_from(["spend", "spend", "roll back", "change", "grant"]),
        st.sampled_from(["record", "patient", "home"]),
        st.sampled_from(["add_remove", "add_remove", "replace"]),
        st.sampled_from([None, 1, 2, 3]),
    ),
    max_size=14,
)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps)
def test_whatever_happens_no_charge_counts_less_than_it_was_entered_and_the_ledger_verifies(
    ledger: Ledger, script: list[Any]
) -> None:
    dataset = f"d{ledger.head().sequence}"
    ledger.grant(dataset, "ann", LossAmount.pure(10**6))
    pending: list[Any] = []
    for number, (verb, unit, neighbours, most) in enumerate(script):
        if verb == "spend":
            about = ledger.accounts(dataset)[0].protected or Protected(unit, neighbours)
            pending.append(ledger.reserve(dataset, "ann", Charge(TENTH, about), f"q{number}"))
        elif verb == "roll back" and pending:
            ledger.roll_back(pending.pop(0))
        elif verb == "grant":
            ledger.grant(dataset, "ann", LossAmount.pure(10**6))
        elif verb == "change":
            before = ledger.head()
            try:
                ledger.change_unit(dataset, unit, neighbours=neighbours, rows_per_unit=most)
            except InputError:
                assert ledger.head() == before
    [account] = ledger.accounts(dataset)
    entered = LossAmount.pure("0.1").epsilon * len(pending)  # type: ignore[operator]
    assert account.spent.epsilon is not None and account.spent.epsilon >= entered
    assert (len(pending) == 0) <= (account.spent.epsilon == 0)
    assert ledger.verify().ok
