"""Filter and odometer against analysts who choose what to ask, how much to spend and when to stop by looking at the answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import BudgetRefused, ParameterError
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, LossGuarantee, PureDP, RenyiDP
from sfumato.dp.accounting.odometer import Odometer, at_any_time
from sfumato.dp.accounting.zcdp import epsilon_for, epsilon_for_simple
from sfumato.ledger import Account, Ledger, LossAmount
from sfumato.ledger.accounts import Charge, Protected
from tests.cli.test_commands import as_json

Answers = tuple[int, ...]
#: What to ask next after these answers: the loss, or None to stop.
Analyst = Callable[[Answers], LossGuarantee | None]


def one_response(loss: LossGuarantee) -> tuple[list[float], list[float]]:
    """The probabilities of answers 0, 1 (and 2, 3: the secret itself) in both worlds: the worst mechanism of a loss."""
    if isinstance(loss, ApproxDP):
        epsilon, delta = float(Fraction(loss.epsilon)), float(Fraction(loss.delta))
    elif isinstance(loss, ConcentratedDP):
        # A randomised response of ε has a loss of ρ ≥ its divergences: ε²/2.
        epsilon, delta = math.sqrt(2 * float(Fraction(loss.rho))), 0.0
    else:
        epsilon, delta = float(Fraction(loss.epsilon)), 0.0  # type: ignore[attr-defined]
    likely = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    rare = (1 - delta) / (1 + math.exp(epsilon))
    return [likely, rare, delta, 0.0], [rare, likely, 0.0, delta]


def transcripts(analyst: Analyst, granted: LossAmount, rounds: int) -> Iterator[tuple[float, float, float]]:
    """All that an analyst may see under a grant: its probability in both worlds, and what was spent on the way."""

    def continued(answers: Answers, here: float, there: float, account: Account) -> Iterator[tuple[float, float, float]]:
        asked = analyst(answers) if len(answers) < rounds else None
        try:
            charged = None if asked is None else account.charged(LossAmount.of(asked))
        except BudgetRefused:
            charged = None
        if asked is None or charged is None:
            yield here, there, float(account.spent.epsilon or account.spent.rho or 0)
            return
        for number, (p, q) in enumerate(zip(*one_response(asked), strict=True)):
            if p or q:
                yield from continued((*answers, number), here * p, there * q, charged)

    yield from continued((), 1.0, 1.0, Account("d", "ann", granted, LossAmount.nothing(granted.kind)))


def greedy(amounts: list[LossGuarantee]) -> Analyst:
    """Asks for much while the answers point one way, for little otherwise, and stops when they have said enough."""

    def ask(answers: Answers) -> LossGuarantee | None:
        lead = sum(1 if answer in (0, 2) else -1 for answer in answers)
        return None if lead >= 4 else amounts[min(abs(lead), len(amounts) - 1)]

    return ask


def test_the_grant_of_an_account_limits_pure_losses_that_are_chosen_on_the_way() -> None:
    analyst = greedy([PureDP("0.3"), PureDP("0.7"), PureDP("0.2"), PureDP("1.1")])
    seen = list(transcripts(analyst, LossAmount.pure(2), 9))
    assert len({spent for _, _, spent in seen}) > 2  # the losses really depend on the answers
    assert sum(p for p, _, _ in seen) == pytest.approx(1)
    for here, there, spent in seen:  # every transcript, at the time it ended, and never more than granted
        assert abs(math.log(here / there)) <= spent + 1e-9 <= 2 + 1e-8


def test_the_grant_of_an_account_limits_approximate_losses_that_are_chosen_on_the_way() -> None:
    analyst = greedy([ApproxDP("0.3", "0.01"), ApproxDP("0.9", "0.002"), ApproxDP("0.2", "0.03"), ApproxDP("0.6", 0)])
    granted = LossAmount.approx("1.5", "0.05")
    seen = list(transcripts(analyst, granted, 8))
    for sign in (1, -1):
        excess = sum(max(here - math.exp(1.5) * there, 0) for here, there, _ in (row[:2][::sign] + row[2:] for row in seen))
        assert 0 < excess <= 0.05 + 1e-12


@pytest.mark.parametrize("order", [1.01, 1.5, 2, 4, 16, 64])
def test_the_grant_of_an_account_limits_concentrated_losses_that_are_chosen_on_the_way(order: float) -> None:
    analyst = greedy([ConcentratedDP("0.05"), ConcentratedDP("0.2"), ConcentratedDP("0.02"), ConcentratedDP("0.4")])
    seen = list(transcripts(analyst, LossAmount.zcdp("0.6"), 9))
    for sign in (1, -1):
        pairs = [row[:2][::sign] for row in seen]
        moment = sum(q * (p / q) ** order for p, q in pairs)
        assert math.log(moment) / (order - 1) <= order * 0.6 + 1e-9


# Loss of Gaussian answers to one bit, simulated: each question of ρ adds a normal loss with mean ρ and variance 2ρ.

PATHS, DELTA = 20_000, Fraction(1, 20)


def losses_of(rho: Callable[[np.ndarray, np.ndarray], np.ndarray], steps: int) -> tuple[np.ndarray, np.ndarray]:
    """ρ spent and the loss over time, of analysts who choose each next ρ by what they spent and what they saw."""
    draw = np.random.default_rng(20)
    spent, loss, history = np.full(PATHS, 0.01), np.zeros(PATHS), []
    loss = spent + np.sqrt(2 * spent) * draw.standard_normal(PATHS)
    for _ in range(steps):
        history.append((spent, loss))
        amount = rho(spent, loss)
        spent, loss = spent + amount, loss + amount + np.sqrt(2 * amount) * draw.standard_normal(PATHS)
    return np.array([row[0] for row in history]), np.array([row[1] for row in history])


#: Five standard deviations of a share near δ: a false alarm once in three million runs.
NOISE = 5 * math.sqrt(float(DELTA) / PATHS)


@pytest.mark.slow
def test_who_stops_at_a_chosen_time_breaks_the_bound_of_a_fixed_number_of_questions_but_not_the_odometer() -> None:
    spent, loss = losses_of(lambda spent, _: 0.06 * spent, 160)
    amounts = [Fraction(float(each)) for each in spent[:, 0]]
    naive = np.array([[float(epsilon_for_simple(each, DELTA))] for each in amounts])
    odometer = np.array([[float(at_any_time(each, DELTA))] for each in amounts])
    # At any one time fixed beforehand the naive bound is exceeded with probability at most δ.
    assert (loss > naive).mean(axis=1).max() <= float(DELTA) + NOISE
    # At a time chosen by looking it is exceeded far more often, and the odometer is not.
    assert (loss > naive).any(axis=0).mean() > 2 * float(DELTA)
    assert 0 < (loss > odometer).any(axis=0).mean() <= float(DELTA) + NOISE


@pytest.mark.slow
def test_the_odometer_holds_where_amounts_are_chosen_by_the_answers() -> None:
    # More while the answers have said less than usual, little when they point out the secret.
    spent, loss = losses_of(lambda spent, loss: np.where(loss < spent + np.sqrt(2 * spent), 0.1, 0.01) * spent, 120)
    assert spent[-1].max() > 3 * spent[-1].min()
    grid = np.exp(np.linspace(math.log(0.009), math.log(spent.max()), 500))
    bounds = np.array([float(at_any_time(Fraction(float(each)), DELTA)) for each in grid])
    below = bounds[np.searchsorted(grid, spent, side="right") - 1]  # of a little less than was spent: never above the reading
    assert 0 < (loss > below).any(axis=0).mean() <= float(DELTA) + NOISE


def test_readings_are_above_the_bound_of_a_fixed_number_of_questions_and_not_far() -> None:
    for rho in ("0.001", "0.01", "0.1", "1", "10", "100"):
        reading = at_any_time(Fraction(rho), Fraction(1, 10**6))
        assert epsilon_for(rho, "1e-6") < reading < Fraction(3, 2) * epsilon_for_simple(rho, "1e-6")


def test_the_reading_never_falls_and_is_the_sum_where_that_is_less() -> None:
    odometer = Odometer(delta="1e-9", allowed="1e-6")
    losses: list[LossGuarantee] = [PureDP("0.1"), ApproxDP("0.2", "1e-7"), PureDP("0.05")] * 200
    readings = [odometer.reading(losses[:count]) for count in (0, 1, 2, 3, 9)]
    assert [float(each.epsilon) for each in readings] == [0, 0.1, 0.3, 0.35, 1.05] and all(each.added for each in readings)
    assert readings[-1].delta == Fraction(1, 10**6)
    many = Odometer(delta="1e-9").reading([PureDP("0.01")] * 5000)
    assert not many.added and many.epsilon < 50 and many.delta == Fraction(1, 10**9) and many.questions == 5000
    assert Odometer(delta=0).reading([PureDP("0.01")] * 5000).epsilon == 50
    steps = [odometer.reading([ConcentratedDP("0.01")] * count).epsilon for count in range(1, 40)]
    assert steps == sorted(steps)


def test_what_has_no_reading_is_refused() -> None:
    with pytest.raises(ParameterError, match="allowed beforehand"):
        Odometer().reading([ApproxDP(1, "1e-6")])
    with pytest.raises(ParameterError, match="has no ε without a δ"):
        Odometer(delta=0).reading([ConcentratedDP(1)])
    with pytest.raises(ParameterError, match="Rényi"):
        Odometer().reading([RenyiDP(4, 1)])
    with pytest.raises(ParameterError, match="delta"):
        Odometer(delta=1)


def test_weights_of_the_fixed_list_add_up_to_one() -> None:
    from sfumato.dp.accounting.odometer import _weight

    parts = sum(_weight(step) for step in range(-1000, 1001))
    assert 1 - Fraction(1, 500) < parts < 1


def test_a_session_reads_what_was_spent_in_all_sessions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = {"dataset": "d", "unit": "record", "columns": {"x": {"type": "integer", "bounds": [0, 9]}}}
    data = sf.read(pa.table({"x": list(range(10))}), schema=schema)
    place = tmp_path / "ledger.db"
    with Ledger.open(place) as ledger:
        for analyst in ("ann", "bob"):
            ledger.grant("d", analyst, LossAmount.zcdp(5))
    first = sf.Session(data, ledger=place, analyst="ann")
    assert first.spent_so_far().epsilon == 0
    for low in range(4):
        first.sql(f"SELECT COUNT(*) FROM d WHERE x > {low}", rho="0.02")
    again = sf.Session(data, ledger=place, analyst="ann")
    again.sql("SELECT COUNT(*) FROM d WHERE x > 3", rho="0.02")  # repeated: at no cost
    again.sql("SELECT SUM(x) FROM d", epsilon="0.2")
    expected = at_any_time(Fraction(1, 10), Fraction(1, 10**6))
    reading = again.spent_so_far()
    assert (reading.epsilon, reading.delta, reading.questions) == (expected, Fraction(1, 10**6), 5)
    assert reading.epsilon > epsilon_for("0.1", "1e-6")  # not the bound that holds for a fixed number of questions
    sf.Session(data, ledger=place, analyst="bob").sql("SELECT SUM(x * 2) FROM d", rho="0.9")
    facts = as_json(["ledger", "odometer", "d", "--ledger", str(place), "--analyst", "ann"], capsys)
    assert Fraction(facts["epsilon"]) == expected and facts["questions"] == 5
    assert run(["ledger", "odometer", "d", "--ledger", str(place)]) == 0
    assert "6 charged questions have lost at most ε = " in capsys.readouterr().out


def test_a_session_without_a_ledger_has_a_reading_too() -> None:
    schema = {"dataset": "d", "unit": "record", "columns": {"x": {"type": "integer", "bounds": [0, 9]}}}
    session = sf.Session(sf.read(pa.table({"x": [1, 2]}), schema=schema), budget=sf.ApproxDP(3, "1e-5"))
    for low, epsilon in itertools.product(range(2), ("0.1", "0.25")):
        session.sql(f"SELECT COUNT(*) FROM d WHERE x > {low}", epsilon=epsilon)
    reading = session.spent_so_far()
    assert (float(reading.epsilon), reading.delta, reading.added) == (0.7, Fraction(1, 10**5), True)
    assert "0.7" in str(reading)


def test_charges_that_nobody_can_restate_for_the_unit_of_now_are_said_to_be_not_covered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "ledger.db"
    with Ledger.open(place) as ledger:
        ledger.grant("d", "ann", LossAmount.pure(1))
        ledger.commit(ledger.reserve("d", "ann", Charge(LossAmount.pure("0.1"), Protected()), "q1"), {"n": 1})
        ledger.change_unit("d", "patient")
    assert run(["ledger", "odometer", "d", "--ledger", str(place)]) == 0
    printed = capsys.readouterr().out
    assert "not covered: ε = 0.1 was charged earlier" in printed and "lost at most ε = 0," in printed
    assert len(as_json(["ledger", "odometer", "d", "--ledger", str(place)], capsys)["not_covered"]) == 1


def test_a_grant_that_is_lowered_after_answers_limits_none_of_them(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("d", "ann", LossAmount.approx(20, "1e-3"))
        ledger.commit(ledger.reserve("d", "ann", Charge(LossAmount.approx(1, "1e-6"), Protected()), "q1"), {"n": 1})
        ledger.grant("d", "ann", LossAmount.approx(20, "1e-6"))
        ledger.cap("d", LossAmount.approx(20, "1e-5"))
        assert ledger.charges("d", "ann").allowed == ledger.charges("d").allowed == Fraction(1, 1000)
        ledger.cap("e", LossAmount.approx(20, "1e-5"))
        ledger.grant("e", "ann", LossAmount.approx(20, "1e-3"))
        assert ledger.charges("e").allowed == Fraction(1, 10**5)
        ledger.cap("e", LossAmount.approx(20, "1e-4"))
        assert ledger.charges("e").allowed == Fraction(1, 10**4)


@pytest.mark.parametrize("options", [["f"], ["d", "--analyst", "bob"]])
def test_a_reading_of_nobody_or_nothing_is_refused(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "ledger.db"
    with Ledger.open(place) as ledger:
        ledger.grant("d", "ann", LossAmount.pure(1))
    assert run(["ledger", "odometer", *options, "--ledger", str(place)]) == 2
    assert "nothing was ever granted" in capsys.readouterr().err
