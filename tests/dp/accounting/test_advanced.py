"""Composition that trades δ for ε, against the enumerated law of many randomised responses."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.loss import ApproxDP, PureDP
from sfumato.dp.accounting.advanced import advanced_composition, optimal_composition
from tests.dp.accounting.precise import real
from tests.examples import examples


def enumerated_delta(epsilon: Fraction, times: int, total: mpmath.mpf) -> mpmath.mpf:
    """The hockey-stick divergence of so many randomised responses, outcome by outcome."""
    likely = mpmath.exp(real(epsilon)) / (1 + mpmath.exp(real(epsilon)))
    excess = []
    for flips in product((0, 1), repeat=times):
        here = mpmath.fprod(1 - likely if flip else likely for flip in flips)
        there = mpmath.fprod(likely if flip else 1 - likely for flip in flips)
        excess.append(max(here - mpmath.exp(total) * there, 0))
    return mpmath.fsum(excess)


@settings(max_examples=examples(25))
@given(
    st.fractions(min_value=Fraction(1, 20), max_value=2, max_denominator=20),
    st.integers(1, 7),
    st.sampled_from(["0.2", "0.01", "1e-4", "1e-9"]),
)
def test_the_optimum_is_exact_for_randomised_response(epsilon: Fraction, times: int, delta: str) -> None:
    found = Fraction(optimal_composition(PureDP(epsilon), times, delta).epsilon)
    assert enumerated_delta(epsilon, times, real(found)) <= real(delta)
    if found > 0:
        assert enumerated_delta(epsilon, times, real(found) * (1 - mpmath.mpf("1e-9"))) > real(delta) * (1 - mpmath.mpf("1e-6"))


@given(st.fractions(min_value=Fraction(1, 100), max_value=1, max_denominator=100), st.integers(1, 60))
def test_the_optimum_never_exceeds_the_other_bounds(epsilon: Fraction, times: int) -> None:
    best = Fraction(optimal_composition(PureDP(epsilon), times, "1e-6").epsilon)
    assert best <= times * epsilon
    assert best <= Fraction(advanced_composition(PureDP(epsilon), times, "1e-6").epsilon)


def test_known_digits() -> None:
    """0.1 a hundred times: 10 by addition, 6.31 by the classic bound, 4.77 at best."""
    assert float(advanced_composition(PureDP("0.1"), 100, "1e-6").epsilon) == pytest.approx(6.30823095, abs=1e-8)
    assert float(optimal_composition(PureDP("0.1"), 100, "1e-6").epsilon) == pytest.approx(4.77456759, abs=1e-8)


def test_the_deltas_of_the_single_losses_are_inside_the_whole() -> None:
    one = ApproxDP("0.1", "1e-8")
    assert advanced_composition(one, 10, "1e-6").delta == Fraction(11, 10**7)
    total = optimal_composition(one, 10, "1e-6")
    assert total.delta == Fraction(1, 10**6)
    assert total.epsilon >= optimal_composition(PureDP("0.1"), 10, "1e-6").epsilon
    with pytest.raises(ParameterError, match="must exceed"):
        optimal_composition(one, 200, "1e-6")


def test_no_loss_repeated_is_no_loss() -> None:
    assert optimal_composition(PureDP(0), 10, "1e-6").epsilon == 0 == advanced_composition(PureDP(0), 10, "1e-6").epsilon
    with pytest.raises(ParameterError, match="times"):
        optimal_composition(PureDP(1), 0, "1e-6")
