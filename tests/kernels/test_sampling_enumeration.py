"""Exact enumeration: over all random bytes, each outcome gathers exactly the probability that its law gives it.

What a path has not settled when the enumeration stops is kept aside as mass, so that the gathered probability g and
the law p must satisfy g <= p <= g + unsettled for every outcome. Layer by layer: uniform integers over bytes, coins over
uniform integers, noise over coins; then the bulk path over all words of one byte.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.randomness import below
from sfumato.kernels import sampling, sampling_inversion, sampling_rejection, sampling_scalar
from sfumato.kernels.sampling_thresholds import digit_thresholds, exp_bracket, exp_threshold, geometric_thresholds
from tests.kernels import exact_laws as laws
from tests.kernels.exact_laws import ERROR, Choices, Path, masses_over_bytes, masses_over_choices

F = Fraction
POSITIVE = st.builds(F, st.integers(1, 10**6), st.integers(1, 10**6))


def brackets(found: dict[Hashable, Fraction], unsettled: Fraction, mass: Callable[[Any], Fraction]) -> None:
    assert sum(found.values()) + unsettled == pytest.approx(1, abs=1e-40)
    for outcome, gathered in found.items():
        assert gathered - ERROR <= mass(outcome) <= gathered + unsettled + ERROR


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 100, 255, 256])
def test_every_value_below_a_bound_has_equally_many_bytes(bound: int) -> None:
    found, unsettled = masses_over_bytes(lambda path: below(path, bound), depth=1)
    assert set(found) == set(range(bound))
    assert len(set(found.values())) == 1
    assert unsettled < F(1, 2)


def test_every_value_below_a_bound_of_two_bytes_has_equally_many_byte_strings() -> None:
    found, _ = masses_over_bytes(lambda path: below(path, 300), depth=2)
    assert set(found) == set(range(300))
    assert set(found.values()) == {F(1, 512)}


@pytest.mark.parametrize("probability", [F(0), F(1), F(1, 2), F(1, 3), F(5, 7), F(1, 200)])
def test_a_coin_has_its_probability_over_all_bytes(probability: Fraction) -> None:
    found, unsettled = masses_over_bytes(lambda path: sampling.bernoulli(probability, path), depth=2)
    brackets(found, unsettled, lambda outcome: probability if outcome else 1 - probability)
    if probability.denominator in (1, 2):
        assert unsettled == 0


@pytest.mark.parametrize("exponent", [F(0), F(1), F(1, 2), F(2, 3), F(5, 2), F(3), F(1, 50), F(7, 5)])
def test_an_exponential_coin_has_its_probability_over_all_integers(exponent: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(choices: Choices) -> bool:
        monkeypatch.setattr(sampling_scalar, "below", choices.below)
        return sampling.bernoulli_exp(exponent, Path(b""))

    found, unsettled = masses_over_choices(draw, F(1, 10**7))
    assert unsettled < F(1, 10**4)
    brackets(found, unsettled, laws.bernoulli_exp_mass(exponent))


@pytest.mark.parametrize("exponent", [F(1, 2), F(2, 3)])
def test_an_exponential_coin_has_its_probability_over_all_bytes(exponent: Fraction) -> None:
    found, unsettled = masses_over_bytes(lambda path: sampling.bernoulli_exp(exponent, path), depth=2)
    assert unsettled < F(1, 2)
    brackets(found, unsettled, laws.bernoulli_exp_mass(exponent))


def test_a_geometric_draw_has_its_law_over_all_integers_and_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(choices: Choices) -> int:
        monkeypatch.setattr(sampling_scalar, "below", choices.below)
        monkeypatch.setattr(sampling_scalar, "_accept", choices.accept)
        return sampling.geometric_one(scale, Path(b""))

    for scale in (F(1), F(3), F(1, 2), F(5, 3), F(2, 7), F(40)):
        found, unsettled = masses_over_choices(draw, F(1, 10**9), starts="below")
        assert unsettled < F(1, 10**7)
        brackets(found, unsettled, laws.geometric_mass(scale))


def test_a_laplace_draw_has_its_law_over_all_signs_and_geometric_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(choices: Choices) -> int:
        monkeypatch.setattr(sampling_scalar, "below", choices.below)
        monkeypatch.setattr(sampling_scalar, "geometric_one", choices.geometric)
        return sampling.discrete_laplace_one(scale, Path(b""))

    for scale in (F(1), F(2), F(1, 2), F(5, 3), F(2, 7)):
        found, unsettled = masses_over_choices(draw, F(1, 10**12), starts="below")
        assert unsettled < F(1, 10**9)
        brackets(found, unsettled, laws.laplace_mass(scale))


def test_a_gaussian_draw_has_its_law_over_all_laplace_draws_and_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(choices: Choices) -> int:
        monkeypatch.setattr(sampling_scalar, "discrete_laplace_one", choices.laplace)
        monkeypatch.setattr(sampling_scalar, "_accept", choices.accept)
        return sampling.discrete_gaussian_one(variance, Path(b""))

    for variance in (F(1), F(1, 3), F(9, 4), F(1, 50), F(30)):
        found, unsettled = masses_over_choices(draw, F(1, 10**12), starts="laplace")
        assert unsettled < F(1, 10**9)
        brackets(found, unsettled, laws.gaussian_mass(variance))


# -- the bulk path -----------------------------------------------------------------------------------------------------


@given(POSITIVE, st.integers(8, 200))
def test_the_digits_of_an_exponential_are_its_digits(exponent: Fraction, bits: int) -> None:
    low, high = exp_bracket(exponent, bits)
    value = laws.exp(exponent)
    assert low - F(1, 10**9) <= value * 2**bits <= high + F(1, 10**9) or bits > 150  # the yardstick has 60 digits
    assert high - low <= 8
    if bits <= 150:
        assert exp_threshold(exponent, bits) == value * 2**bits // 1


@given(POSITIVE, st.integers(1, 300))
def test_thresholds_of_a_geometric_variable_are_the_digits_of_its_cumulative_law(exponent: Fraction, count: int) -> None:
    place = count - 1
    found = geometric_thresholds(exponent, count, 32)
    assert len(found) == count
    assert found[place] == (1 - laws.exp(count * exponent)) * 2**32 // 1
    assert list(found) == sorted(found)


@given(POSITIVE, st.integers(1, 255), st.sampled_from([8, 32, 64]))
def test_thresholds_of_a_digit_are_the_digits_of_its_cumulative_law(exponent: Fraction, place: int, bits: int) -> None:
    found = digit_thresholds(exponent, 256, bits)
    assert len(found) == 255
    exact = (1 - laws.exp(place * exponent)) / (1 - laws.exp(256 * exponent))
    assert found[place - 1] == exact * 2**bits // 1


@pytest.mark.parametrize("scale", [F(1, 4), F(1), F(10, 3), F(40), F(1000), F(12345, 7)])
@pytest.mark.parametrize("part", ["rest", "lower", "sign"])
def test_one_digit_has_its_law_over_all_bytes(scale: Fraction, part: str) -> None:
    """Words of one byte: a word that equals a threshold draws another, and so on to the third."""
    digits = sampling_inversion.digits_of(scale, bits=8)
    if part == "lower" and not digits.lower:
        return
    inversion = {"rest": digits.rest, "sign": sampling_inversion.sign_of(scale, bits=8)}.get(part) or digits.lower[0]
    found, unsettled = masses_over_bytes(lambda path: int(inversion.draw(1, path)[0]), depth=3)
    size = len(inversion.thresholds(8))
    assert unsettled <= F(size, 256**2)  # at most the words that tie twice
    cumulative = {
        "rest": lambda i: 1 - laws.exp(i * sampling_inversion.BASE ** len(digits.lower) / scale),
        "lower": lambda i: (1 - laws.exp(i / scale)) / (1 - laws.exp(256 / scale)),
        "sign": lambda i: F(0) if i == 0 else laws.exp(1 / scale) / (1 + laws.exp(1 / scale)),
    }[part]
    brackets(found, unsettled, lambda i: (F(1) if i == size else cumulative(i + 1)) - cumulative(i))


@pytest.mark.parametrize("scale", [F(1, 2), F(3), F(100), F(12345, 77)])
def test_a_geometric_draw_in_bulk_has_its_law_over_all_words_of_a_byte(scale: Fraction) -> None:
    """All strings of one byte per digit at once; a draw whose word ties, or that passes the table, is set aside."""
    digits = sampling_inversion.digits_of(scale, bits=8)
    parts = [digits.rest, *reversed(digits.lower)]
    strings = np.array(list(itertools.product(range(256), repeat=len(parts))), dtype=np.uint8).T
    tied = np.zeros(strings.shape[1], dtype=bool)
    for part, played in zip(parts, strings, strict=True):
        tied |= np.isin(played, part.table)
    tied |= strings[0] > digits.rest.table[-1]
    settled = np.ascontiguousarray(strings[:, ~tied])
    drawn = digits.draw(settled.shape[1], Path(settled.tobytes()))
    found = {int(value): F(int(times), strings.shape[1]) for value, times in zip(*np.unique(drawn, return_counts=True), strict=True)}
    assert len(found) > 10 * (scale > 1)
    brackets(found, F(int(tied.sum()), strings.shape[1]), laws.geometric_mass(scale))


@pytest.mark.parametrize("scale", [F(1, 2), F(1), F(7, 3)])
def test_a_laplace_draw_in_bulk_has_its_law_over_all_bytes(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling_inversion, "digits_of", partial(sampling_inversion.digits_of, bits=8))
    monkeypatch.setattr(sampling_inversion, "sign_of", partial(sampling_inversion.sign_of, bits=8))

    def draw(path: Path) -> int:
        return int(sampling_inversion.discrete_laplace_block(scale, 1, path)[0])

    found, unsettled = masses_over_bytes(draw, depth=2)
    assert unsettled < F(1, 2)
    brackets(found, unsettled, laws.laplace_mass(scale))


@given(POSITIVE, st.integers(0, 2**40), st.integers(-20, 90))
def test_the_enclosure_of_an_acceptance_holds_its_probability(variance: Fraction, share: int, power: int) -> None:
    """What decides a kept proposal lies around the exact probability, and close to it."""
    variance *= F(2) ** power
    plan = sampling_rejection.gaussian_plan(variance)
    most = (plan.farthest + plan.offset) // plan.step + 3
    proposed = share % (most + 1)
    low, high = sampling_rejection.enclose(plan.exponents(np.array([proposed, -proposed])), plan.excess)
    chance = laws.exp(plan.exact_exponent(proposed)) * 2**32
    assert low[0] == low[1] and high[0] == high[1]
    assert low[0] <= chance <= high[0]
    assert high[0] - low[0] < 2**32 / 10**6


@given(POSITIVE, st.integers(-30, 90))
def test_proposals_times_acceptance_are_the_gaussian(variance: Fraction, power: int) -> None:
    """The exponents of proposal and acceptance add up to x²/(2·variance), up to a constant."""
    variance *= F(2) ** power
    plan = sampling_rejection.gaussian_plan(variance)
    for x in (0, 1, 2, 17, 10**9):
        together = x / plan.proposal + plan.exact_exponent(x) - plan.exact_exponent(0)
        assert together == F(x * x) / (2 * variance)
        assert plan.exact_exponent(x) == plan.exact_exponent(-x)


@pytest.mark.parametrize("exponent", [F(0), F(1, 3), F(1), F(10), F(1, 10**6)])
def test_a_decision_left_open_is_settled_with_the_right_probability(exponent: Fraction) -> None:
    """Over all words of one byte and the further ones they ask for, to the third."""
    found, unsettled = masses_over_bytes(
        lambda path: sampling_rejection.decide(path.bytes(1)[0], exponent, path, bits=8), depth=3
    )
    assert unsettled <= F(1, 256**3)
    brackets(found, unsettled, laws.bernoulli_exp_mass(exponent))
