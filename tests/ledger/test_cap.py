"""A cap for everybody together, answers shared between analysts, and the listing of spends."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.core.errors import BudgetRefused, InputError
from sfumato.ledger import Charge, Ledger, LossAmount
from sfumato.ledger.accounts import EVERYBODY
from tests.examples import examples
from tests.ledger.conftest import Place

TENTH = LossAmount.pure("0.1")


def test_a_cap_binds_everybody_together(place: Place) -> None:
    with place.open() as ledger:
        ledger.grant("d", "ann", LossAmount.pure(1))
        ledger.grant("d", "bob", LossAmount.pure(1))
        ledger.cap("d", LossAmount.pure("0.3"))
        ledger.reserve("d", "ann", Charge(LossAmount.pure("0.2")), "q1")
        ledger.reserve("d", "bob", Charge(TENTH), "q2")
        assert ledger.remaining("d") == LossAmount.pure(0) == ledger.remaining("d", "ann")
        with pytest.raises(
            BudgetRefused, match="cap for everybody together does not suffice.*left of a cap of ε = 0.3"
        ) as caught:
            ledger.reserve("d", "ann", Charge(TENTH), "q3")
        assert caught.value.exit_code == 3
        before = ledger.head()
        spent = {account.analyst: account.spent for account in ledger.accounts("d")}
        assert spent == {"*": LossAmount.pure("0.3"), "ann": LossAmount.pure("0.2"), "bob": TENTH}
    with place.open() as ledger:
        assert ledger.head() == before and ledger.verify().ok


def test_the_refusal_says_which_account_is_short(ledger: Ledger) -> None:
    ledger.grant("d", "ann", TENTH)
    ledger.cap("d", LossAmount.pure(1))
    with pytest.raises(BudgetRefused, match="the budget does not suffice.*grant of ε = 0.1"):
        ledger.reserve("d", "ann", Charge(LossAmount.pure("0.2")), "q")
    assert ledger.remaining("d") == LossAmount.pure(1), "a refused question charges neither account"


def test_a_cap_alone_grants_nothing(ledger: Ledger) -> None:
    ledger.cap("d", LossAmount.pure(1))
    with pytest.raises(BudgetRefused, match="no budget was granted"):
        ledger.reserve("d", "ann", Charge(TENTH), "q")
    assert ledger.remaining("d", "ann") is None


def test_nobody_is_called_everybody(ledger: Ledger) -> None:
    for call in (
        lambda: ledger.grant("d", EVERYBODY, TENTH),
        lambda: ledger.reserve("d", EVERYBODY, Charge(TENTH), "q"),
        lambda: ledger.answer("d", EVERYBODY, "q"),
    ):
        with pytest.raises(InputError, match="ledger cap"):
            call()
    assert ledger.head().sequence == 0


def test_what_was_spent_before_there_was_a_cap_counts(ledger: Ledger) -> None:
    ledger.grant("d", "ann", LossAmount.pure(1))
    kept = ledger.reserve("d", "ann", Charge(LossAmount.pure("0.5")), "q1")
    ledger.roll_back(ledger.reserve("d", "ann", Charge(TENTH), "q2"))
    ledger.cap("d", LossAmount.pure("0.55"))
    assert ledger.remaining("d") == LossAmount.pure("0.05")
    with pytest.raises(BudgetRefused, match="cap"):
        ledger.reserve("d", "ann", Charge(TENTH), "q3")
    ledger.roll_back(kept)
    assert ledger.remaining("d") == LossAmount.pure("0.55") and ledger.verify().ok


def test_a_cap_belongs_to_its_dataset(ledger: Ledger) -> None:
    for dataset in ("d", "e"):
        ledger.grant(dataset, "ann", LossAmount.pure(1))
    ledger.cap("d", TENTH)
    ledger.reserve("e", "ann", Charge(LossAmount.pure("0.5")), "q")
    assert ledger.remaining("d") == TENTH and ledger.remaining("e") is None and ledger.verify().ok


def test_a_cap_of_another_kind_is_charged_exactly_or_refuses(ledger: Ledger) -> None:
    ledger.grant("d", "ann", LossAmount.pure(5))
    ledger.grant("d", "bob", LossAmount.approx(1, "1e-6"))
    ledger.cap("d", LossAmount.zcdp(1))
    ledger.reserve("d", "ann", Charge(LossAmount.pure(1)), "q1")
    assert ledger.remaining("d") == LossAmount.zcdp("0.5") and ledger.remaining("d", "ann") == LossAmount.pure(4)
    with pytest.raises(BudgetRefused, match="the cap for everybody together: .*no exact counterpart"):
        ledger.reserve("d", "bob", Charge(LossAmount.approx("0.1", "1e-9")), "q2")
    assert ledger.remaining("d", "bob") == LossAmount.approx(1, "1e-6") and ledger.verify().ok


@pytest.mark.parametrize("column", ["granted", "spent"])
def test_verify_finds_an_edited_cap(place: Place, column: str) -> None:
    with place.open() as ledger:
        ledger.grant("d", "ann", LossAmount.pure(1))
        ledger.cap("d", LossAmount.pure(1))
        ledger.reserve("d", "ann", Charge(TENTH), "q")
        assert ledger.verify().ok
    place.edit(f"""UPDATE {{t}}accounts SET {column} = '{{"epsilon":"0/1","kind":"pure"}}' WHERE analyst = '*'""")
    with place.open() as ledger:
        assert "balances" in ledger.verify().finding and not ledger.verify().ok


def test_another_analyst_gets_the_stored_answer_for_nothing(place: Place) -> None:
    """E-40: returning what was answered before is post-processing, whoever asks."""
    with place.open() as ledger:
        for analyst in ("ann", "bob"):
            ledger.grant("d", analyst, LossAmount.pure(1))
        shown = ledger.commit(ledger.reserve("d", "ann", Charge(TENTH), "q"), {"count": 41})
        asked = ledger.reserve("d", "bob", Charge(TENTH), "q")
        assert asked.answer == shown and ledger.commit(asked, {"count": 7}) == shown
        assert ledger.remaining("d", "bob") == LossAmount.pure(1)
        assert ledger.answer("d", "bob", "q") == shown
        assert ledger.answer("e", "bob", "q") is None, "another dataset answers for itself"
        with pytest.raises(BudgetRefused, match="no budget was granted to 'eve'"):
            ledger.reserve("d", "eve", Charge(TENTH), "q")
        assert ledger.answer("d", "eve", "q") is None, "who has no grant sees nothing"
        assert ledger.verify().ok


def test_a_dataset_never_gives_two_answers_to_one_question(ledger: Ledger) -> None:
    for analyst in ("ann", "bob"):
        ledger.grant("d", analyst, LossAmount.pure(1))
    one, other = ledger.reserve("d", "ann", Charge(TENTH), "q"), ledger.reserve("d", "bob", Charge(TENTH), "q")
    shown = ledger.commit(other, 5)
    assert ledger.commit(one, 6) == shown
    assert ledger.answer("d", "ann", "q") == ledger.answer("d", "bob", "q") == shown
    assert ledger.remaining("d", "ann") == LossAmount.pure("0.9"), "noise was drawn for both, so both are charged"
    assert ledger.count("d", "commit") == 1 and ledger.verify().ok


def test_a_ledger_from_before_shared_answers_works_and_the_first_answer_counts(place: Place) -> None:
    with place.open() as ledger:
        for analyst in ("ann", "bob", "cec"):
            ledger.grant("d", analyst, LossAmount.pure(1))
        reservations = [ledger.reserve("d", analyst, Charge(TENTH), "q") for analyst in ("ann", "bob")]
    place.edit("DROP INDEX {t}spends_by_question")
    with place.open() as ledger:  # what earlier versions did: an answer of its own for each analyst
        for number, reservation in enumerate(reservations):
            with ledger._store.writing() as tables:
                payload = {"answer": number, "question": "q", "reservation": reservation.token}
                tables._run("DROP INDEX IF EXISTS {t}spends_by_question")
                entry = ledger._append(tables, "commit", "d", payload, analyst=reservation.analyst)
                tables.close_spend(reservation.token, "committed", entry.sequence)
    with place.open(read_only=True) as ledger:
        assert ledger.verify().ok and [ledger.answer("d", name, "q").value for name in ("ann", "bob")] == [0, 0]  # type: ignore[union-attr]
    with place.open() as ledger:
        assert ledger.reserve("d", "cec", Charge(TENTH), "q").answer.value == 0  # type: ignore[union-attr]
        assert ledger.verify().ok


def test_spends_are_listed_with_time_loss_and_state(ledger: Ledger) -> None:
    ledger.grant("d", "ann", LossAmount.pure(1))
    ledger.grant("e", "bob", LossAmount.zcdp(1))
    answered = ledger.reserve("d", "ann", Charge(TENTH), "q1")
    shown = ledger.commit(answered, 1)
    ledger.reserve("d", "ann", Charge(LossAmount.pure("0.2")), "q2")
    ledger.roll_back(ledger.reserve("e", "bob", Charge(LossAmount.zcdp("0.5")), "q3"))
    found = ledger.spends()
    assert [(s.dataset, s.analyst, s.question, s.state) for s in found] == [
        ("d", "ann", "q1", "committed"),
        ("d", "ann", "q2", "reserved"),
        ("e", "bob", "q3", "rolled back"),
    ]
    assert [str(s.loss) for s in found] == ["ε = 0.1", "ε = 0.2", "ρ = 0.5"]
    assert found[0].closed_by == shown.entry and found[1].closed_by is None
    assert found[0].time == ledger.entry(found[0].reserved_by).time  # type: ignore[union-attr]
    assert ledger.spends("e") == found[2:] and ledger.spends("f") == []


def test_a_charge_is_found_by_the_hash_of_its_entry(ledger: Ledger) -> None:
    grant = ledger.grant("d", "ann", LossAmount.pure(1))
    reservation = ledger.reserve("d", "ann", Charge(TENTH), "q")
    shown = ledger.commit(reservation, {"count": 3})
    [spend] = ledger.spends()
    assert ledger.charge(shown.entry) == spend == ledger.charge(spend.reserved_by)
    assert ledger.charge(grant.hash) is None and ledger.charge("0" * 64) is None
    assert ledger.entry("0" * 64) is None


def test_the_latest_entries_and_their_number(ledger: Ledger) -> None:
    for number in range(5):
        ledger.note("d" if number % 2 else "e", {}, token=str(number))
    assert [entry.token for entry in ledger.latest(2)] == ["3", "4"]
    assert [entry.token for entry in ledger.latest(9, "d")] == ["1", "3"]
    assert (ledger.count(), ledger.count("e"), ledger.count("e", "note"), ledger.count(kind="grant")) == (5, 3, 3, 0)


steps = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "reserve", "commit", "roll back", "grant", "cap"]),
        st.sampled_from(["ann", "bob"]),
        st.integers(0, 20),
    ),
    max_size=25,
)


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_no_interleaving_exceeds_a_grant_or_the_cap(ledger: Ledger, script: list[tuple[str, str, int]]) -> None:
    """Against a model that adds up by hand."""
    dataset = f"d{ledger.head().sequence}"
    granted: dict[str, Fraction] = {}
    charged = {"ann": Fraction(0), "bob": Fraction(0)}
    pending = []
    for place, (verb, analyst, number) in enumerate(script):
        amount = Fraction(number, 10)
        if verb == "grant":
            ledger.grant(dataset, analyst, LossAmount.pure(amount))
            granted[analyst] = amount
        elif verb == "cap":
            ledger.cap(dataset, LossAmount.pure(amount))
            granted["*"] = amount
        elif verb == "reserve":
            fits = (
                analyst in granted
                and charged[analyst] + amount <= granted[analyst]
                and ("*" not in granted or sum(charged.values()) + amount <= granted["*"])
            )
            if fits:
                pending.append(ledger.reserve(dataset, analyst, Charge(LossAmount.pure(amount)), f"q{place}"))
                charged[analyst] += amount
            else:
                with pytest.raises(BudgetRefused):
                    ledger.reserve(dataset, analyst, Charge(LossAmount.pure(amount)), f"q{place}")
        elif pending:
            reservation = pending.pop(number % len(pending))
            if verb == "commit":
                ledger.commit(reservation, number)
            else:
                ledger.roll_back(reservation)
                charged[reservation.analyst] -= reservation.charge.loss.epsilon or 0
    for account in ledger.accounts(dataset):
        expected = sum(charged.values()) if account.is_cap else charged[account.analyst]
        assert account.spent == LossAmount.pure(expected)
    assert ledger.verify().ok
