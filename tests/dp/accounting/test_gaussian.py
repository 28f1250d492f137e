"""The Gaussian mechanism, continuous and discrete, against its definition in a hundred digits."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError
from sfumato.dp.accounting.gaussian import (
    classic_sigma,
    discrete_gaussian_delta,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)
from sfumato.dp.accounting.zcdp import delta_for
from tests.dp.accounting import precise
from tests.examples import examples

epsilons = st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=1000)
sigmas = st.fractions(min_value=Fraction(1, 10), max_value=1000, max_denominator=100)
deltas = st.integers(1, 12).map(lambda power: Fraction(1, 10**power))


@pytest.mark.golden("G-DP-35")
def test_the_textbook_deviation_wastes_what_the_exact_one_saves() -> None:
    classic = classic_sigma("0.5", "1e-5", 1)
    assert f"{float(classic):.6f}" == "9.689611"
    assert f"{float(gaussian_delta('0.5', classic, 1)):.3e}" == "1.608e-08"
    assert f"{float(gaussian_sigma('0.5', '1e-5', 1)):.6f}" == "7.031827"


@given(epsilons, sigmas, st.sampled_from([Fraction(1), Fraction(1, 3), Fraction(7)]))
def test_delta_is_never_understated_and_exact_to_nine_digits(epsilon: Fraction, sigma: Fraction, sensitivity: Fraction) -> None:
    found = precise.real(gaussian_delta(epsilon, sigma, sensitivity))
    truth = precise.gaussian_delta(epsilon, sigma, sensitivity)
    assert truth <= found <= truth * (1 + precise.real("1e-9")) + precise.real("2e-60")


@settings(max_examples=examples(25), deadline=None)
@given(epsilons, deltas)
def test_the_deviation_suffices_and_a_smaller_one_does_not(epsilon: Fraction, delta: Fraction) -> None:
    sigma = gaussian_sigma(epsilon, delta)
    assert precise.gaussian_delta(epsilon, sigma, Fraction(1)) <= precise.real(delta)
    assert precise.gaussian_delta(epsilon, sigma * (1 - Fraction(1, 10**10)), Fraction(1)) > precise.real(delta)


@settings(max_examples=examples(25), deadline=None)
@given(st.fractions(min_value=Fraction(1, 2), max_value=100, max_denominator=100), deltas)
def test_the_epsilon_of_a_deviation_suffices(sigma: Fraction, delta: Fraction) -> None:
    epsilon = gaussian_epsilon(sigma, delta)
    assert precise.gaussian_delta(epsilon, sigma, Fraction(1)) <= precise.real(delta) or epsilon == 0
    if epsilon > 0:
        smaller = epsilon * (1 - Fraction(1, 10**9))
        assert precise.gaussian_delta(smaller, sigma, Fraction(1)) > precise.real(delta) * (1 - precise.real("1e-6"))


def test_the_deviation_grows_with_the_sensitivity() -> None:
    assert float(gaussian_sigma(1, "1e-6", 10) / gaussian_sigma(1, "1e-6")) == pytest.approx(10)
    assert gaussian_sigma(1, "1e-6", 0) == 0 == gaussian_delta(1, 1, 0) == gaussian_epsilon(1, "0.1", 0)


def test_no_epsilon_at_all_leaves_the_total_variation() -> None:
    assert float(gaussian_delta(0, 1)) == pytest.approx(0.3829249225480, abs=2e-12)


@settings(max_examples=examples(30), deadline=None)
@given(
    st.fractions(min_value=0, max_value=4, max_denominator=20),
    st.fractions(min_value=Fraction(1, 5), max_value=60, max_denominator=7),
    st.integers(1, 6),
)
def test_discrete_delta_is_its_definition_summed(epsilon: Fraction, variance: Fraction, sensitivity: int) -> None:
    found = precise.real(discrete_gaussian_delta(epsilon, variance, sensitivity))
    truth = precise.discrete_gaussian_delta(epsilon, variance, sensitivity, reach=int(40 * variance**0.5) + 40)
    assert truth <= found * (1 + precise.real("1e-60")) + precise.real("1e-90")
    assert found <= truth * (1 + precise.real("1e-9")) + precise.real("2e-60")


@settings(max_examples=examples(30), deadline=None)
@given(st.fractions(min_value=0, max_value=3, max_denominator=20), st.integers(1, 4000))
def test_discrete_noise_never_exceeds_its_zcdp_bound(epsilon: Fraction, variance: int) -> None:
    assert discrete_gaussian_delta(epsilon, variance) <= delta_for(Fraction(1, 2 * variance), epsilon)


@pytest.mark.parametrize("sensitivity", [1, 100, 800])
def test_beyond_the_summed_variances_the_bound_is_close_and_above(sensitivity: int) -> None:
    """At the border both ways are possible: the bound by integrals may not fall below the sum."""
    epsilon = Fraction(3 * sensitivity, 500)
    summed = discrete_gaussian_delta(epsilon, 250_000, sensitivity)
    bounded = discrete_gaussian_delta(epsilon, 250_001, sensitivity)
    assert summed * (1 - Fraction(1, 10**4)) <= bounded <= summed * Fraction(101, 100)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [("0.002", 1), ("0.05", 100), ("0.4", 800), ("0.6", 100)])
def test_the_bound_by_integrals_is_never_below_the_sum(epsilon: str, sensitivity: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.dp.accounting import gaussian

    summed = discrete_gaussian_delta(epsilon, 250_000, sensitivity)
    monkeypatch.setattr(gaussian, "_SUMMED_VARIANCE", 1)
    assert summed <= discrete_gaussian_delta(epsilon, 250_000, sensitivity)


def test_a_huge_variance_is_no_burden() -> None:
    assert discrete_gaussian_delta("1e-6", 10**14) <= delta_for(Fraction(1, 2 * 10**14), "1e-6")


def test_the_textbook_formula_is_refused_where_it_does_not_hold() -> None:
    with pytest.raises(ParameterError, match="up to 1"):
        classic_sigma(2, "1e-5")


@pytest.mark.parametrize("arguments", [(-1, 1, 1), (1, 0, 1), (1, 1, -1)])
def test_parameters_out_of_range_are_refused(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ParameterError):
        gaussian_delta(*arguments)
