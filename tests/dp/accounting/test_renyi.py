"""Rényi curves against sums and integrals of their definition, and what an order means in ε and δ."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError, Unsupported
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, PureDP, RenyiDP
from sfumato.dp.accounting.conversion import as_approx, as_renyi, as_zcdp
from sfumato.dp.accounting.renyi import (
    approx_from_renyi,
    delta_from_renyi,
    discrete_laplace_divergence,
    gaussian_divergence,
    laplace_divergence,
    pure_divergence,
    randomised_response_divergence,
)
from sfumato.dp.accounting.zcdp import epsilon_for
from tests.dp.accounting.precise import real, smallest_zcdp_delta
from tests.examples import examples

orders = st.fractions(min_value=Fraction(11, 10), max_value=64, max_denominator=20)
epsilons = st.fractions(min_value=Fraction(1, 100), max_value=8, max_denominator=100)


def divergence(pairs: list[tuple[mpmath.mpf, mpmath.mpf]], order: Fraction) -> mpmath.mpf:
    """The Rényi divergence of two laws on finitely many outcomes, by its definition."""
    alpha = real(order)
    return mpmath.log(mpmath.fsum(p**alpha * q ** (1 - alpha) for p, q in pairs)) / (alpha - 1)


def close_above(found: Fraction, truth: mpmath.mpf) -> bool:
    return truth <= real(found) <= truth * (1 + mpmath.mpf("1e-9")) + mpmath.mpf("1e-50")


@settings(max_examples=examples(15))
@given(epsilons, orders)
def test_randomised_response_attains_the_pure_curve(epsilon: Fraction, order: Fraction) -> None:
    likely = mpmath.exp(real(epsilon)) / (1 + mpmath.exp(real(epsilon)))
    truth = divergence([(likely, 1 - likely), (1 - likely, likely)], order)
    assert close_above(pure_divergence(epsilon, order), truth)


@given(epsilons, orders)
def test_the_pure_curve_is_below_both_of_its_simple_bounds(epsilon: Fraction, order: Fraction) -> None:
    assert pure_divergence(epsilon, order) <= min(epsilon, epsilon**2 * order / 2)


@given(st.fractions(min_value=Fraction(1, 50), max_value=Fraction(49, 50), max_denominator=100), st.integers(2, 9), orders)
def test_randomised_response_over_several_answers(truth: Fraction, answers: int, order: Fraction) -> None:
    other = (1 - truth) / (answers - 1)
    pairs = [(real(truth), real(other)), (real(other), real(truth))] + [(real(other), real(other))] * (answers - 2)
    found = randomised_response_divergence(truth, answers, order)
    assert real(found) >= divergence(pairs, order) - mpmath.mpf("1e-90")
    assert real(found) <= divergence(pairs, order) * (1 + mpmath.mpf("1e-9")) + mpmath.mpf("1e-40")


@settings(max_examples=examples(30))
@given(st.fractions(min_value=Fraction(1, 2), max_value=6, max_denominator=10), st.integers(1, 5), orders)
def test_discrete_laplace_is_its_definition_summed(scale: Fraction, sensitivity: int, order: Fraction) -> None:
    decay = mpmath.exp(-1 / real(scale))
    reach = int(120 * scale) + 10 * sensitivity
    mass = [decay ** abs(k) for k in range(-reach - sensitivity, reach + 1)]
    scaled = (1 - decay) / (1 + decay)
    pairs = [(scaled * mass[i + sensitivity], scaled * mass[i]) for i in range(len(mass) - sensitivity)]
    found = real(discrete_laplace_divergence(scale, sensitivity, order))
    truth = divergence(pairs, order)  # a sum over fewer outcomes: slightly below
    assert truth <= found <= truth * (1 + mpmath.mpf("1e-9")) + mpmath.mpf("1e-30")


@settings(max_examples=examples(15))
@given(st.fractions(min_value=Fraction(1, 2), max_value=10, max_denominator=10), orders)
def test_laplace_is_its_definition_integrated(scale: Fraction, order: Fraction) -> None:
    alpha, ratio = real(order), 1 / real(scale)
    with mpmath.workdps(30):
        parts = mpmath.quad(
            lambda x: mpmath.exp(-alpha * abs(x) * ratio - (1 - alpha) * abs(x - 1) * ratio) * ratio / 2,
            [-60 / ratio, -5 / ratio, 0, 1, 1 + 5 / ratio, 1 + 60 / ratio],
        )
        truth = mpmath.log(parts) / (alpha - 1)
    assert abs(real(laplace_divergence(scale, 1, order)) - truth) <= mpmath.mpf("1e-8")


def test_gaussian_is_exact() -> None:
    assert gaussian_divergence(2, 3, 4) == Fraction(9, 2)


@given(epsilons, orders)
def test_noise_never_diverges_more_than_the_pure_loss_allows(epsilon: Fraction, order: Fraction) -> None:
    tight = pure_divergence(epsilon, order) * (1 + Fraction(1, 10**10))
    assert laplace_divergence(1 / epsilon, 1, order) <= tight
    assert discrete_laplace_divergence(1 / epsilon, 1, order) <= tight


@given(st.fractions(min_value=Fraction(1, 100), max_value=3, max_denominator=100), st.sampled_from(["1e-3", "1e-6", "1e-9"]))
def test_one_order_of_a_zcdp_loss_never_says_more_than_all_orders(rho: Fraction, delta: str) -> None:
    stated = [as_renyi(ConcentratedDP(rho), order) for order in (2, 4, 8, 16, 32)]
    assert approx_from_renyi(*stated, delta=delta).epsilon >= epsilon_for(rho, delta) * (1 - Fraction(1, 10**10))


@settings(max_examples=examples(15))
@given(st.fractions(min_value=Fraction(1, 100), max_value=3, max_denominator=100), epsilons, orders)
def test_delta_of_an_order_is_never_understated(rho: Fraction, epsilon: Fraction, order: Fraction) -> None:
    found = delta_from_renyi(RenyiDP(order, rho * order), epsilon=epsilon)
    assert real(found) >= min(smallest_zcdp_delta(rho, epsilon), 1)


@given(epsilons, orders, orders)
def test_a_bound_holds_for_smaller_orders_and_is_refused_for_larger_ones(
    epsilon: Fraction, one: Fraction, other: Fraction
) -> None:
    loss = RenyiDP(max(one, other), epsilon)
    assert as_renyi(loss, min(one, other)).epsilon == epsilon
    with pytest.raises(Unsupported, match="smaller"):
        as_renyi(loss, max(one, other) + 1)


def test_conversions_keep_neighbours_and_unit() -> None:
    told = {"neighbours": "replace", "unit": "user"}
    pure = PureDP(1, neighbours="replace", unit="user")
    for stated in (as_approx(pure), as_zcdp(pure), as_renyi(pure, 2), as_approx(as_zcdp(pure), "1e-6")):
        assert {"neighbours": stated.neighbours, "unit": stated.unit} == told
    assert as_zcdp(ApproxDP(1, 0)).rho == Fraction(1, 2)


def test_what_has_no_counterpart_is_refused_with_the_reason() -> None:
    for compute in (
        lambda: as_approx(ConcentratedDP(1)),
        lambda: as_zcdp(ApproxDP(1, "1e-6")),
        lambda: as_zcdp(RenyiDP(2, 1)),
        lambda: as_renyi(ApproxDP(1, "1e-6"), 2),
    ):
        with pytest.raises(Unsupported):
            compute()


def test_orders_of_different_releases_are_not_mixed() -> None:
    with pytest.raises(ParameterError, match="same neighbours"):
        approx_from_renyi(RenyiDP(2, 1), RenyiDP(4, 1, neighbours="replace"), delta="1e-6")
    with pytest.raises(ParameterError, match="above 1"):
        pure_divergence(1, 1)
