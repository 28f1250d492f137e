"""What a loss means for belief, guessing and testing."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, LossGuarantee, PureDP, RenyiDP
from sfumato.dp.accounting.bayes import best_guess, largest_power, meaning, posterior_interval
from tests.dp.accounting.precise import real, tail

priors = st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000), max_denominator=1000)
epsilons = st.fractions(min_value=0, max_value=10, max_denominator=100)


@pytest.mark.golden("G-DP-36")
def test_posterior_intervals() -> None:
    low, high = posterior_interval("1/2", math.log(3))
    assert (float(low), float(high)) == (pytest.approx(0.25, abs=1e-11), pytest.approx(0.75, abs=1e-11))
    low, high = posterior_interval("0.01", 1)
    assert (f"{float(low):.6f}", f"{float(high):.6f}") == ("0.003702", "0.026724")


@given(priors, epsilons)
def test_no_answer_of_randomised_response_moves_a_belief_out_of_the_interval(prior: Fraction, epsilon: Fraction) -> None:
    low, high = posterior_interval(prior, epsilon)
    likely = mpmath.exp(real(epsilon)) / (1 + mpmath.exp(real(epsilon)))
    for chance in (likely, 1 - likely):
        posterior = real(prior) * chance / (real(prior) * chance + (1 - real(prior)) * (1 - chance))
        assert real(low) - mpmath.mpf("1e-80") <= posterior <= real(high) + mpmath.mpf("1e-80")
    assert low <= prior <= high


def test_who_is_certain_stays_certain_and_no_loss_moves_nobody() -> None:
    assert posterior_interval(0, 5) == (0, 0) and posterior_interval(1, 5) == (1, 1)
    assert posterior_interval("0.3", 0) == (Fraction(3, 10), Fraction(3, 10))
    with pytest.raises(ParameterError, match="prior"):
        posterior_interval(2, 1)


@given(epsilons, st.fractions(min_value=0, max_value=Fraction(1, 10), max_denominator=1000))
def test_the_best_guess_is_attained(epsilon: Fraction, delta: Fraction) -> None:
    """Tell the truth outright with probability δ, else answer by randomised response: the guesser gets what is stated."""
    likely = mpmath.exp(real(epsilon)) / (1 + mpmath.exp(real(epsilon)))
    attained = real(delta) + (1 - real(delta)) * likely
    found = real(best_guess(ApproxDP(epsilon, delta)))
    assert attained - mpmath.mpf("1e-90") <= found <= attained * (1 + mpmath.mpf("1e-10"))


@given(st.fractions(min_value=Fraction(1, 10), max_value=20, max_denominator=100), st.sampled_from(["0.01", "0.05", "0.5"]))
def test_gaussian_noise_stays_within_what_zcdp_means(sigma: Fraction, level: str) -> None:
    """The best test between two normal laws has power Q(q(level) − 1/σ) and guesses right with Φ(1/(2σ))."""
    loss = ConcentratedDP(1 / (2 * sigma**2))
    assert 1 - tail(1 / (2 * real(sigma))) <= real(best_guess(loss))
    quantile = -mpmath.sqrt(2) * mpmath.erfinv(2 * real(level) - 1)
    assert tail(quantile - 1 / real(sigma)) <= real(largest_power(loss, level)) + mpmath.mpf("1e-20")


@given(epsilons, st.sampled_from(["0", "0.05", "0.3", "1"]))
def test_a_test_of_randomised_response_has_at_most_the_stated_power(epsilon: Fraction, level: str) -> None:
    likely, alarm = mpmath.exp(real(epsilon)) / (1 + mpmath.exp(real(epsilon))), real(level)
    # The best test of that level: alarm on the likely answer first, then on the other one too.
    unlikely = 1 - likely
    power = alarm * likely / unlikely if alarm <= unlikely else likely + (alarm - unlikely) / likely * unlikely
    assert power <= real(largest_power(PureDP(epsilon), level)) + mpmath.mpf("1e-80")


@pytest.mark.parametrize("loss", [PureDP(0), ApproxDP(0, 0), ConcentratedDP(0), RenyiDP(2, 0)])
def test_no_loss_is_a_coin(loss: LossGuarantee) -> None:
    assert best_guess(loss) == Fraction(1, 2) and meaning(loss).advantage == 0


def test_the_words_say_who_what_and_how_much() -> None:
    told = meaning(PureDP(1, neighbours="replace", unit="user"))
    assert "one user replaced by another" in str(told) and "73.2 %" in str(told) and "13.6 %" in str(told)
    assert "between 0.37 % and 2.7 %" in str(told)
    assert "1e-06" in str(meaning(ApproxDP(1, "1e-6")))
    assert "next to nothing" in str(meaning(PureDP(8))) and "99.97 %" in str(meaning(PureDP(8)))
    assert "at most 100 %" in str(meaning(PureDP(2000)))


@given(st.fractions(min_value=0, max_value=3, max_denominator=100), st.fractions(min_value=0, max_value=3, max_denominator=100))
def test_more_loss_never_means_less(one: Fraction, other: Fraction) -> None:
    low, high = sorted((one, other))
    for kind in (PureDP, ConcentratedDP):
        assert best_guess(kind(low)) <= best_guess(kind(high)) and largest_power(kind(low)) <= largest_power(
            kind(high)
        ) + Fraction(1, 10**10)
