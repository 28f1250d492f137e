"""Costs are exact and never exceed what was granted; one record moves counts and scores as far as stated."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError
from sfumato.core.randomness import StreamRandomness
from sfumato.dp.synthesis.budget import (
    MarginalReach,
    Purse,
    choice_cost,
    choice_parameter,
    choose,
    noise_cost,
    noisy_counts,
    variance_for,
)
from sfumato.dp.synthesis.marginals import STEP, marginal, misfit

RHO = st.fractions(min_value=Fraction(1, 10**12), max_value=1000, max_denominator=10**15)
REACH = st.builds(MarginalReach.of, st.integers(1, 500), st.sampled_from(["add_remove", "replace"]))


@given(RHO, REACH)
def test_a_scale_never_costs_more_than_its_part_and_nearly_all_of_it(rho, reach):
    cost = noise_cost(variance_for(rho, reach), reach)
    assert rho * Fraction(9999, 10000) <= cost <= rho


@given(RHO)
def test_a_choice_never_costs_more_than_its_part(rho):
    assert choice_cost(choice_parameter(rho)) <= rho


@given(RHO, st.integers(1, 200), REACH)
def test_equal_parts_add_up_to_no_more_than_the_whole(rho, parts, reach):
    purse = Purse(rho)
    for _ in range(parts):
        purse.pay(noise_cost(variance_for(rho / (2 * parts), reach), reach))
        purse.pay(choice_cost(choice_parameter(rho / (2 * parts))))
    assert purse.spent <= rho


def test_more_than_is_left_is_refused_before_noise_is_drawn():
    class Silent:
        private, description = False, "none"

        def bytes(self, count: int) -> bytes:
            raise AssertionError("noise was drawn")

    purse = Purse(Fraction(1, 100))
    with pytest.raises(ParameterError):
        noisy_counts(np.zeros(3, np.int64), Fraction(1), MarginalReach(1, 1), purse, Silent())
    with pytest.raises(ParameterError):
        choose([1, 2], STEP, Fraction(1), MarginalReach(1, 1), purse, Silent())
    assert purse.left == Fraction(1, 100)


def test_reach_of_records_and_units():
    assert MarginalReach.of(1, "add_remove") == MarginalReach(1, 1)
    assert MarginalReach.of(1, "replace") == MarginalReach(2, 2)
    assert MarginalReach.of(3, "add_remove") == MarginalReach(3, 9)
    assert MarginalReach.of(3, "replace") == MarginalReach(6, 18)


CODES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=12)


@given(CODES, st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=0, max_size=3), st.integers(0, 2**32 - 1))
def test_neighbours_move_counts_and_scores_by_no_more_than_the_reach(base, own, seed):
    """Adding a unit of at most three records, and replacing one by another."""
    model = np.random.default_rng(seed).normal(1, 2, (3, 4))
    other = [(2 - a, 3 - b) for a, b in own][::-1]
    without, with_own, with_other = (np.array(base + more) for more in ([], own, other))
    for first, second, reach in (
        (without, with_own, MarginalReach.of(3, "add_remove")),
        (with_own, with_other, MarginalReach.of(3, "replace")),
    ):
        counts = [marginal(codes, (0, 1), (3, 4)) for codes in (first, second)]
        moved = np.abs(counts[0] - counts[1])
        assert moved.sum() <= reach.l1
        assert (moved**2).sum() <= reach.l2_squared
        assert abs(misfit(counts[0], model) - misfit(counts[1], model)) <= reach.l1 * STEP


def test_choices_follow_the_exponential_mechanism():
    """20,000 choices against the exact probabilities; each bound fails by chance with 1e-7 at most (Chernoff, union)."""
    scores, epsilon, reach = [0, 32, 64, 160], Fraction(1, 2), MarginalReach(1, 1)
    weights = np.exp([float(epsilon) * score / (2 * STEP) for score in scores])
    expected = weights / weights.sum()
    source = StreamRandomness(4)
    drawn = np.bincount([choose(scores, STEP, epsilon, reach, Purse(Fraction(1)), source) for _ in range(20_000)], minlength=4)
    allowed = np.sqrt(np.log(8 / 1e-7) / (2 * 20_000))
    assert np.abs(drawn / 20_000 - expected).max() < allowed


def test_a_measurement_is_the_counts_and_noise_of_the_stated_variance():
    """Variance of 50,000 draws within 4 % (its relative deviation is 0.6 %: more than 6 of them)."""
    counts = np.full(50_000, 7, dtype=np.int64)
    noisy = noisy_counts(counts, Fraction(30), MarginalReach(1, 1), Purse(Fraction(1)), StreamRandomness(8))
    assert abs((noisy - 7).mean()) < 0.15
    assert abs((noisy - 7).var() / 30 - 1) < 0.04
