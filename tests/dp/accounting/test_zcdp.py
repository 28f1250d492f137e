"""zCDP in ε and δ: never understated, nearly the optimum, and consistent in all three directions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP
from sfumato.dp.accounting.gaussian import gaussian_delta
from sfumato.dp.accounting.zcdp import approx_from_zcdp, delta_for, epsilon_for, epsilon_for_simple, rho_for
from tests.dp.accounting.precise import real, smallest_zcdp_delta
from tests.examples import examples

rhos = st.fractions(min_value=Fraction(1, 10**6), max_value=20, max_denominator=10**6)
deltas = st.integers(1, 15).map(lambda power: Fraction(1, 10**power))
epsilons = st.fractions(min_value=Fraction(1, 1000), max_value=50, max_denominator=1000)


def test_known_digits() -> None:
    assert float(epsilon_for("0.1", "1e-6")) == pytest.approx(2.14193892839, abs=1e-11)
    assert float(epsilon_for_simple("0.1", "1e-6")) == pytest.approx(2.45078800048, abs=1e-11)
    assert float(rho_for(1, "1e-6")) == pytest.approx(0.0243559703595, abs=1e-12)


@settings(max_examples=examples(15))
@given(rhos, deltas)
def test_epsilon_is_never_understated_and_is_the_optimum_to_eleven_digits(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_for(rho, delta)
    assert smallest_zcdp_delta(rho, epsilon) <= real(delta)
    if epsilon > 0:
        assert smallest_zcdp_delta(rho, epsilon * (1 - Fraction(1, 10**10))) >= real(delta) * (1 - real("1e-9"))


@settings(max_examples=examples(15))
@given(rhos, epsilons)
def test_delta_is_never_understated_and_is_the_optimum(rho: Fraction, epsilon: Fraction) -> None:
    found, truth = delta_for(rho, epsilon), smallest_zcdp_delta(rho, epsilon)
    assert real(found) >= min(truth, 1)
    assert real(found) <= truth * (1 + real("1e-9")) + real("2e-60")


@settings(max_examples=examples(15))
@given(epsilons, deltas)
def test_rho_is_never_overstated_and_nearly_all_of_it_is_granted(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_for(epsilon, delta)
    assert smallest_zcdp_delta(rho, epsilon) <= real(delta)
    assert smallest_zcdp_delta(rho * (1 + Fraction(1, 10**9)), epsilon) >= real(delta) * (1 - real("1e-6"))


@given(rhos, deltas)
def test_the_three_directions_agree(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_for(rho, delta)
    assert delta_for(rho, epsilon) <= delta * (1 + Fraction(1, 10**8))
    if epsilon > 0:
        assert rho * (1 - Fraction(1, 10**9)) <= rho_for(epsilon, delta) <= rho * (1 + Fraction(1, 10**9))


@given(rhos, deltas)
def test_the_optimum_never_exceeds_the_simple_formula(rho: Fraction, delta: Fraction) -> None:
    assert epsilon_for(rho, delta) <= epsilon_for_simple(rho, delta)


@given(st.fractions(min_value=Fraction(1, 100), max_value=5, max_denominator=1000), deltas)
def test_a_gaussian_of_this_rho_really_keeps_the_stated_delta(sigma: Fraction, delta: Fraction) -> None:
    """Normal noise of deviation σ on sensitivity 1 is 1/(2σ²)-zCDP; its exact δ is below the one stated."""
    assert gaussian_delta(epsilon_for(1 / (2 * sigma**2), delta), sigma, 1) <= delta


@given(rhos, rhos, deltas)
def test_more_rho_never_means_less_epsilon(one: Fraction, other: Fraction, delta: Fraction) -> None:
    low, high = sorted((one, other))
    assert epsilon_for(low, delta) <= epsilon_for(high, delta) * (1 + Fraction(1, 10**10))


def test_no_loss_is_no_loss() -> None:
    assert epsilon_for(0, "1e-6") == delta_for(0, 0) == epsilon_for_simple(0, "0.1") == 0


def test_a_loss_is_stated_for_the_same_neighbours_and_unit() -> None:
    stated = approx_from_zcdp(ConcentratedDP("0.1", neighbours="replace", unit="user"), "1e-6")
    assert stated == ApproxDP(epsilon_for("0.1", "1e-6"), "1e-6", neighbours="replace", unit="user")


@pytest.mark.parametrize("delta", [0, 1, 2, -1])
def test_a_delta_that_is_no_probability_between_is_refused(delta: int) -> None:
    with pytest.raises(ParameterError, match="strictly between 0 and 1"):
        epsilon_for("0.1", delta)
    with pytest.raises(ParameterError, match="strictly between 0 and 1"):
        rho_for(1, delta)


def test_negative_amounts_are_refused() -> None:
    for compute in (lambda: epsilon_for(-1, "0.1"), lambda: delta_for(1, -1), lambda: rho_for(-1, "0.1")):
        with pytest.raises(ParameterError, match="negative"):
            compute()
