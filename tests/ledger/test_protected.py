"""A budget is about one kind of unit: who fixes it, what is refused, and that nobody changes it unnoticed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.core.errors import BudgetRefused, InputError, LedgerError
from sfumato.core.guarantees.loss import ConcentratedDP, PureDP
from sfumato.ledger import Charge, Entry, Ledger, LossAmount, Protected
from sfumato.ledger.accounts import Spend
from tests.examples import examples
from tests.ledger.conftest import Place

TENTH = LossAmount.pure("0.1")
ONE = LossAmount.pure(1)


def units(ledger: Ledger, dataset: str = "d") -> set[Protected | None]:
    return {account.protected for account in ledger.accounts(dataset)}


def test_the_first_spend_fixes_the_unit_for_everybody_on_the_dataset(place: Place) -> None:
    with place.open() as ledger:
        for analyst in ("ann", "bob"):
            ledger.grant("d", analyst, ONE)
            ledger.grant("e", analyst, ONE)
        assert units(ledger) == {None}
        ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "q1")
        ledger.cap("d", ONE)
    with place.open() as ledger:
        assert units(ledger) == {Protected("patient")} and units(ledger, "e") == {None}
        for wrong in ("record", "household", "Patient", "patient "):
            with pytest.raises(BudgetRefused, match="protects one patient, and this would protect one") as caught:
                ledger.reserve("d", "bob", Charge(TENTH, Protected(wrong)), "q2")
            assert caught.value.exit_code == 3 and f"one {wrong}:" in str(caught.value)
            assert "unit='patient'" in str(caught.value) and "sfumato ledger unit d --unit" in str(caught.value)
        ledger.reserve("d", "bob", Charge(TENTH, Protected("patient")), "q2")
        ledger.reserve("e", "bob", Charge(TENTH), "q2")
        assert ledger.remaining("d") == LossAmount.pure("0.8") and units(ledger, "e") == {Protected("record")}
        assert ledger.verify().ok


def test_a_refused_unit_charges_nothing_and_enters_nothing(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE, unit="patient")
    ledger.cap("d", ONE)
    before = ledger.head(), ledger.accounts()
    with pytest.raises(BudgetRefused, match="Name that unit: unit='patient'"):
        ledger.reserve("d", "ann", Charge(TENTH), "q")
    assert (ledger.head(), ledger.accounts()) == before and ledger.spends() == []


def test_a_refused_amount_does_not_fix_the_unit(ledger: Ledger) -> None:
    ledger.grant("d", "ann", TENTH)
    with pytest.raises(BudgetRefused, match="does not suffice"):
        ledger.reserve("d", "ann", Charge(ONE, Protected("patient")), "q")
    with pytest.raises(BudgetRefused, match="no budget was granted"):
        ledger.reserve("d", "bob", Charge(TENTH, Protected("patient")), "q")
    assert units(ledger) == {None}
    ledger.reserve("d", "ann", Charge(TENTH, Protected("record")), "q")
    assert units(ledger) == {Protected("record")} and ledger.verify().ok


def test_a_budget_about_records_says_how_to_ask(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE, unit="record")
    with pytest.raises(BudgetRefused, match="protects one record, and this would protect one patient.*--unit record"):
        ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "q")


def test_neighbour_relations_are_not_mixed_either(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE)
    ledger.grant("e", "ann", ONE, unit="record", neighbours="replace")
    ledger.reserve("d", "ann", Charge(TENTH), "q")
    with pytest.raises(BudgetRefused, match="about one record added or removed, and this would be about one record replaced"):
        ledger.reserve("d", "ann", Charge(TENTH, Protected(neighbours="replace")), "q2")
    with pytest.raises(BudgetRefused, match="neighbours='replace'"):
        ledger.reserve("e", "ann", Charge(TENTH), "q2")
    ledger.reserve("e", "ann", Charge(TENTH, Protected(neighbours="replace")), "q2")
    assert ledger.verify().ok


def test_a_stored_answer_is_free_whatever_the_unit(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE)
    shown = ledger.commit(ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "q"), 5)
    assert ledger.reserve("d", "ann", Charge(TENTH, Protected("record")), "q").answer == shown
    assert units(ledger) == {Protected("patient")}


def test_the_owner_changes_the_unit_as_long_as_nothing_is_spent(place: Place) -> None:
    with place.open() as ledger:
        ledger.grant("d", "ann", ONE, unit="patient")
        ledger.grant("d", "bob", ONE, unit="household")
        assert units(ledger) == {Protected("household")}, "the last word of the owner holds for everybody"
        ledger.roll_back(ledger.reserve("d", "ann", Charge(TENTH, Protected("household")), "q1"))
        ledger.grant("d", "ann", ONE, unit="patient")
        with pytest.raises(BudgetRefused, match="protects one patient"):
            ledger.reserve("d", "bob", Charge(TENTH, Protected("household")), "q2")
        ledger.reserve("d", "bob", Charge(TENTH, Protected("patient")), "q2")
        before = ledger.head(), ledger.accounts()
        for call in (
            lambda: ledger.grant("d", "ann", ONE, unit="household"),
            lambda: ledger.grant("d", "eve", ONE, unit="record"),
            lambda: ledger.grant("d", "ann", ONE, unit="patient", neighbours="replace"),
            lambda: ledger.cap("d", ONE, unit="household"),
        ):
            with pytest.raises(BudgetRefused, match="what was spent on dataset 'd' is about one patient added or removed"):
                call()
        assert (ledger.head(), ledger.accounts()) == before
        ledger.grant("d", "ann", LossAmount.pure(2))
        ledger.cap("d", LossAmount.pure(2), unit="patient")
        assert units(ledger) == {Protected("patient")} and ledger.verify().ok


@pytest.mark.parametrize("wrong", ["", "a\nb", "x" * 201, "\ud800", None, 7])
def test_odd_units_are_refused(ledger: Ledger, wrong: Any) -> None:
    ledger.grant("d", "ann", ONE)
    with pytest.raises(InputError, match="unit"):
        ledger.reserve("d", "ann", Charge(TENTH, Protected(wrong)), "q")
    if wrong is not None:
        with pytest.raises(InputError, match="unit"):
            ledger.grant("d", "ann", ONE, unit=wrong)
    with pytest.raises(InputError, match="neighbours"):
        ledger.grant("d", "ann", ONE, unit="patient", neighbours="next door")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="together with the unit"):
        ledger.grant("d", "ann", ONE, neighbours="replace")
    assert ledger.head().sequence == 1


def test_spends_tell_what_they_are_about(ledger: Ledger) -> None:
    ledger.grant("d", "ann", ONE)
    ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "q")
    [spend] = ledger.spends()
    assert spend.protected == Protected("patient") == Protected.of(PureDP(1, unit="patient"))
    assert Protected.of(ConcentratedDP(1, neighbours="replace")) == Protected("record", "replace")
    assert (Protected("patient").short, Protected("patient", "replace").short) == ("patient", "patient (replaced)")
    reserve = ledger.entries("d", "reserve")[0]
    assert (reserve.payload["unit"], reserve.payload["neighbours"]) == ("patient", "add_remove")


# Ledgers of earlier versions, whose entries do not say what they are about.


def spend_without_a_unit(ledger: Ledger, question: str) -> None:
    """What earlier versions did."""
    with ledger._store.writing() as tables:
        account = tables.account("d", "ann")
        assert account is not None
        entry = ledger._append(tables, "reserve", "d", {"loss": TENTH.to_mapping(), "question": question}, analyst="ann")
        tables.replace_account(account, account.charged(TENTH))
        tables.add_spend(Spend(entry.token, "d", "ann", question, TENTH))


@pytest.fixture
def earlier(place: Place) -> Place:
    with place.open() as ledger:
        ledger.grant("d", "ann", ONE)
        spend_without_a_unit(ledger, "q1")
    return place


def test_a_ledger_of_an_earlier_version_goes_on_and_the_next_spend_fixes_the_unit(earlier: Place) -> None:
    with earlier.open(read_only=True) as ledger:
        assert ledger.verify().ok and units(ledger) == {None} and ledger.spends()[0].protected is None
    with earlier.open() as ledger:
        ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "q2")
        with pytest.raises(BudgetRefused, match="protects one patient"):
            ledger.reserve("d", "ann", Charge(TENTH), "q3")
        assert ledger.remaining("d", "ann") == LossAmount.pure("0.8") and ledger.verify().ok


def test_the_owner_may_say_what_a_ledger_of_an_earlier_version_is_about(earlier: Place) -> None:
    with earlier.open() as ledger:
        ledger.grant("d", "ann", ONE, unit="patient")
        with pytest.raises(BudgetRefused, match="is about one patient added or removed"):
            ledger.grant("d", "ann", ONE, unit="record")
        assert units(ledger) == {Protected("patient")} and ledger.verify().ok


def test_nobody_spends_without_a_unit_once_there_is_one(earlier: Place) -> None:
    with earlier.open() as ledger:
        ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "q2")
        spend_without_a_unit(ledger, "q3")
        report = ledger.verify()
    assert not report.ok and report.first_damaged == 4 and "cannot have happened" in report.finding


# Whoever edits it is found out.


@pytest.fixture
def fixed(place: Place) -> Place:
    with place.open() as ledger:
        ledger.grant("d", "ann", ONE, unit="patient")
        ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "q")
    return place


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE {t}meta SET value = '{"neighbours":"add_remove","unit":"record"}' WHERE name = 'unit:d'""",
        """UPDATE {t}meta SET value = '{"neighbours":"replace","unit":"patient"}' WHERE name = 'unit:d'""",
        "UPDATE {t}meta SET value = '{}' WHERE name = 'unit:d'",
        "UPDATE {t}meta SET name = 'unit:e' WHERE name = 'unit:d'",
        "DELETE FROM {t}meta WHERE name = 'unit:d'",
        """INSERT INTO {t}meta VALUES ('unit:e', '{"neighbours":"add_remove","unit":"record"}')""",
    ],
)
def test_verify_finds_an_edited_unit(fixed: Place, statement: str) -> None:
    fixed.edit(statement)
    with fixed.open() as ledger:
        report = ledger.verify()
    assert not report.ok and "units of the budgets differ" in report.finding


def test_a_unit_that_is_nonsense_is_a_fault_of_the_ledger(fixed: Place) -> None:
    fixed.edit("UPDATE {t}meta SET value = 'nonsense' WHERE name = 'unit:d'")
    with fixed.open() as ledger:
        with pytest.raises(LedgerError, match="Run verify"):
            ledger.reserve("d", "ann", Charge(TENTH, Protected("patient")), "q2")
        assert "cannot be read" in ledger.verify().finding and not ledger.verify().ok


@pytest.mark.parametrize("sequence", [1, 2])
def test_verify_finds_a_unit_edited_inside_an_entry(fixed: Place, sequence: int) -> None:
    fixed.edit(f"""UPDATE {{t}}entries SET payload = replace(payload, 'patient', 'record') WHERE sequence = {sequence}""")
    with fixed.open() as ledger:
        report = ledger.verify()
    assert report.first_damaged == sequence and "modified" in report.finding


def test_a_rehashed_end_about_another_unit_cannot_have_happened(fixed: Place) -> None:
    with fixed.open() as ledger:
        last = ledger.entries()[-1]
    text = last.payload_text.replace("patient", "record")
    forged = Entry(**{**last.__dict__, "payload_text": text}).sealed()
    fixed.edit(f"UPDATE {{t}}entries SET payload = '{text}', hash = '{forged.hash}' WHERE sequence = {last.sequence}")
    with fixed.open() as ledger:
        report = ledger.verify()
    assert report.first_damaged == last.sequence and "cannot have happened" in report.finding


def test_a_spend_after_the_unit_was_wiped_out_is_refused(fixed: Place) -> None:
    fixed.edit("DELETE FROM {t}meta WHERE name = 'unit:d'")
    with fixed.open() as ledger:
        before = ledger.head()
        with pytest.raises(LedgerError, match="whom it protects, is not what the entries say"):
            ledger.reserve("d", "ann", Charge(TENTH, Protected("record")), "q2")
        assert ledger.head() == before and not ledger.verify().ok


steps = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "reserve", "roll back", "grant", "state"]),
        st.sampled_from(["patient", "record"]),
        st.sampled_from(["add_remove", "replace"]),
    ),
    max_size=15,
)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_what_is_spent_on_a_dataset_is_about_one_unit_whatever_happens(
    ledger: Ledger, script: list[tuple[str, str, Any]]
) -> None:
    """Against a model of three lines: what is fixed, what is open, and whether anything is spent."""
    dataset = f"d{ledger.head().sequence}"
    ledger.grant(dataset, "ann", LossAmount.pure(100))
    model: Protected | None = None
    pending: list[Any] = []
    for place, (verb, unit, neighbours) in enumerate(script):
        asked = Protected(unit, neighbours)
        if verb == "reserve":
            if model in (None, asked):
                pending.append(ledger.reserve(dataset, "ann", Charge(TENTH, Protected(unit, neighbours)), f"q{place}"))
                model = asked
            else:
                with pytest.raises(BudgetRefused, match="do not add up"):
                    ledger.reserve(dataset, "ann", Charge(TENTH, Protected(unit, neighbours)), f"q{place}")
        elif verb == "roll back" and pending:
            ledger.roll_back(pending.pop())
        elif verb == "grant":
            ledger.grant(dataset, "ann", LossAmount.pure(100))
        elif verb == "state":
            if model in (None, asked) or not pending:
                ledger.grant(dataset, "ann", LossAmount.pure(100), unit=unit, neighbours=neighbours)
                model = asked
            else:
                with pytest.raises(BudgetRefused, match="what was spent"):
                    ledger.grant(dataset, "ann", LossAmount.pure(100), unit=unit, neighbours=neighbours)
    assert units(ledger, dataset) == {model}
    assert len({spend.protected for spend in ledger.spends(dataset) if spend.state != "rolled back"}) <= 1
    assert ledger.verify().ok
