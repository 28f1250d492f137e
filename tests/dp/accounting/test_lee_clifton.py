"""ε from the risk of identification: the worked example, the formula, and the search behind the exact value."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError, Unsupported
from sfumato.dp.accounting.lee_clifton import (
    Worlds,
    epsilon_by_risk,
    epsilon_by_risk_closed,
    identification_risk,
    leave_one_out,
)
from tests.examples import examples

FOUR = leave_one_out([1, 2, 3, 10])


@pytest.mark.golden("G-DP-26")
def test_four_people_and_a_risk_of_one_third() -> None:
    assert (len(FOUR.values), FOUR.sensitivity, FOUR.spread) == (4, Fraction(17, 6), 3)
    closed = epsilon_by_risk_closed(4, "1/3", FOUR.sensitivity, FOUR.spread)
    assert f"{float(closed):.6f}" == "0.382939"
    assert f"{float(identification_risk(FOUR, closed)):.6f}" == "0.323250"
    assert f"{float(epsilon_by_risk(FOUR, '1/3')):.6f}" == "0.431720"


def test_e39_the_quoted_number_is_no_recommendation_for_means() -> None:
    """0.3829 belongs to four people of these ages; a fifth person changes the answer."""
    other = leave_one_out([1, 2, 3, 10, 11])
    assert abs(epsilon_by_risk_closed(5, "1/3", other.sensitivity, other.spread) - Fraction("0.3829")) > Fraction(1, 10)


def largest_on_a_grid(worlds: Worlds, epsilon: float) -> float:
    """The posterior of each world after many possible answers, by Bayes' rule and Laplace densities."""
    scale = float(worlds.sensitivity) / epsilon
    values = [float(value) for value in worlds.values]
    low, high = min(values) - 3 * scale, max(values) + 3 * scale
    answers = [low + (high - low) * step / 400 for step in range(401)] + values
    found = 0.0
    for answer in answers:
        likelihoods = [math.exp(-abs(answer - value) / scale) for value in values]
        found = max(found, max(likelihoods) / sum(likelihoods))
    return found


universes = st.lists(st.integers(0, 40), min_size=3, max_size=6, unique=True)


@settings(max_examples=examples(15))
@given(universes, st.fractions(min_value=Fraction(1, 100), max_value=4, max_denominator=100))
def test_the_risk_is_the_largest_posterior_over_all_answers(universe: list[int], epsilon: Fraction) -> None:
    worlds = leave_one_out(universe)
    assert float(identification_risk(worlds, epsilon)) == pytest.approx(largest_on_a_grid(worlds, float(epsilon)), abs=1e-9)


@settings(max_examples=examples(25))
@given(universes, st.sampled_from(["0.4", "0.5", "0.9"]))
def test_the_exact_epsilon_keeps_the_risk_and_no_larger_one_does(universe: list[int], risk: str) -> None:
    worlds = leave_one_out(universe)
    epsilon = epsilon_by_risk(worlds, risk)
    assert identification_risk(worlds, epsilon) <= Fraction(risk) + Fraction(1, 10**11)
    assert identification_risk(worlds, epsilon * (1 + Fraction(1, 10**9))) > Fraction(risk)


@settings(max_examples=examples(25))
@given(universes, st.sampled_from(["0.4", "0.5", "0.9"]))
def test_the_closed_form_is_never_above_the_exact_value(universe: list[int], risk: str) -> None:
    worlds = leave_one_out(universe)
    assume(worlds.spread > 0)
    closed = epsilon_by_risk_closed(len(universe), risk, worlds.sensitivity, worlds.spread)
    assert closed <= epsilon_by_risk(worlds, risk) * (1 + Fraction(1, 10**10))


def test_other_queries_have_their_own_worlds() -> None:
    worlds = leave_one_out([1, 2, 3, 10], query=max)
    assert worlds.values == (10, 10, 10, 3) and worlds.sensitivity == 8


def test_where_every_value_belongs_to_several_worlds_nothing_is_ever_certain() -> None:
    with pytest.raises(Unsupported, match="several worlds"):
        epsilon_by_risk(Worlds((Fraction(1), Fraction(1), Fraction(2), Fraction(2)), Fraction(1)), "0.6")


@pytest.mark.parametrize("risk", ["1/4", "0.1", 1])
def test_a_risk_below_a_blind_guess_cannot_be_kept(risk: str) -> None:
    with pytest.raises(ParameterError, match="blind guess"):
        epsilon_by_risk(FOUR, risk)
