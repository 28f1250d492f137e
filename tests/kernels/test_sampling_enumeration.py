"""Exact enumeration: over all random bytes, each outcome gathers exactly the probability that its law gives it.

What a path has not settled when the enumeration stops is kept aside as mass, so that the gathered probability g and
the law p must satisfy g <= p <= g + unsettled for every outcome. Layer by layer: uniform integers over bytes, coins over
uniform integers, noise over coins; then the bulk path over all words of one byte.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.randomness import below
from sfumato.kernels.sampling import inversion as sampling_inversion
from sfumato.kernels.sampling import noise as sampling
from sfumato.kernels.sampling import rejection as sampling_rejection
from sfumato.kernels.sampling import scalar as sampling_scalar
from sfumato.kernels.sampling.thresholds import digit_thresholds, exp_bracket, exp_threshold, geometric_thresholds
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
    assert found[place] == min((1 - laws.exp(count * exponent)) * 2**32 // 1, 2**32 - 1)  # a law never reaches 1
    assert list(found) == sorted(found)


@given(POSITIVE, st.integers(1, 255), st.sampled_from([8, 32, 64]))
def test_thresholds_of_a_digit_are_the_digits_of_its_cumulative_law(exponent: Fraction, place: int, bits: int) -> None:
    found = digit_thresholds(exponent, 256, bits)
    assert len(found) == 255
    exact = (1 - laws.exp(place * exponent)) / (1 - laws.exp(256 * exponent))
    assert found[place - 1] == min(exact * 2**bits // 1, 2**bits - 1)


@pytest.mark.parametrize("scale", [F(1, 4), F(1), F(10, 3), F(40), F(1000), F(12345, 7)])
@pytest.mark.parametrize("part", ["rest", "lower", "sign"])
def test_one_digit_has_its_law_over_all_bytes(scale: Fraction, part: str) -> None:
    """Words of one byte: a word that equals a threshold draws another, and so on."""
    digits = sampling_inversion.digits_of(scale, bits=8)
    if part == "lower" and not digits.lower:
        return
    inversion = {"rest": digits.rest, "sign": sampling_inversion.sign_of(scale, bits=8)}.get(part) or digits.lower[0]
    depth = 2 if part == "lower" else 3
    found, unsettled = masses_over_bytes(lambda path: int(inversion.draw(1, path)[0]), depth)
    size = len(inversion.thresholds(8))
    assert unsettled <= F(size, 256**depth)  # at most the words that tie to the end
    cumulative = {
        "rest": lambda i: 1 - laws.exp(i * sampling_inversion.BASE ** len(digits.lower) / scale),
        "lower": lambda i: (1 - laws.exp(i / scale)) / (1 - laws.exp(256 / scale)),
        "sign": lambda i: F(0) if i == 0 else laws.exp(1 / scale) / (1 + laws.exp(1 / scale)),
    }[part]
    brackets(found, unsettled, lambda i: (F(1) if i == size else cumulative(i + 1)) - cumulative(i))


@pytest.mark.parametrize(
    ("noise", "scale", "places"),
    [
        ("geometric", F(1, 2), 0),
        ("geometric", F(9, 4), 1),
        ("geometric", F(7, 5), 1),
        ("laplace", F(1, 2), 0),
        ("laplace", F(2, 3), 0),
        pytest.param("laplace", F(9, 4), 1, marks=pytest.mark.slow),
    ],
)
def test_a_draw_in_bulk_has_its_law_over_all_words_of_a_byte(
    noise: str, scale: Fraction, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All strings of one byte per digit at once; a draw whose word ties, or that passes the table, is set aside.

    With base 4 and a short table, so that one byte per digit tells something about the number.
    """
    monkeypatch.setattr(sampling_inversion, "BASE", 4)
    monkeypatch.setattr(sampling_inversion, "REACH", 4)
    digits, sign = sampling_inversion.digits_of.__wrapped__(scale, bits=8), sampling_inversion.sign_of(scale, bits=8)
    assert len(digits.lower) == places
    parts = [digits.rest, *reversed(digits.lower), *([sign] if noise == "laplace" else [])]
    strings = np.stack(np.meshgrid(*[np.arange(256, dtype=np.uint8)] * len(parts), indexing="ij")).reshape(len(parts), -1)
    open_ = strings[0] > digits.rest.table[-1]
    for part, played in zip(parts, strings, strict=True):
        open_ |= np.isin(played, part.table)
    settled = np.ascontiguousarray(strings[:, ~open_])
    monkeypatch.setattr(sampling_inversion, "digits_of", lambda _: digits)
    monkeypatch.setattr(sampling_inversion, "sign_of", lambda _: sign)
    block = {"geometric": sampling_inversion.geometric_block, "laplace": sampling_inversion.discrete_laplace_block}[noise]
    drawn = block(scale, settled.shape[1], Path(settled.tobytes()))
    values, times = np.unique(drawn, return_counts=True)
    found = {int(value): F(int(often), strings.shape[1]) for value, often in zip(values, times, strict=True)}
    unsettled = F(int(open_.sum()), strings.shape[1])
    assert unsettled < F(1, 10)
    brackets(found, unsettled, {"geometric": laws.geometric_mass, "laplace": laws.laplace_mass}[noise](scale))


@pytest.mark.parametrize("scale", [F(100), F(12345, 77), F(10**6, 3)])
def test_the_digits_of_a_geometric_variable_make_up_its_law(scale: Fraction) -> None:
    """The product of the digits' masses is the mass of the number: they are independent, and none is missing."""
    digits = sampling_inversion.digits_of(scale)
    mass = laws.geometric_mass(scale)
    for number in (0, 1, 255, 256, 257, 65_535, 65_536, 1_000_003):
        rest, product = number, F(1)
        for place in range(len(digits.lower)):
            rest, digit = divmod(rest, 256)
            unit = 256**place / scale
            product *= laws.exp(digit * unit) * (1 - laws.exp(unit)) / (1 - laws.exp(256 * unit))
        unit = 256 ** len(digits.lower) / scale
        product *= laws.exp(rest * unit) * (1 - laws.exp(unit))
        assert abs(product - mass(number)) < ERROR


@given(POSITIVE, st.integers(0, 2**40), st.integers(-20, 90))
def test_the_enclosure_of_an_acceptance_holds_its_probability(variance: Fraction, share: int, power: int) -> None:
    """What decides a kept proposal lies around the exact probability, and close to it."""
    variance *= F(2) ** power
    plan = sampling_rejection.gaussian_plan(variance)
    most = (plan.farthest + plan.offset) // plan.step + 3
    proposed = share % (most + 1)
    exponents = plan.exponents(np.array([proposed, -proposed]))
    if plan.step * proposed - plan.offset <= plan.farthest:
        assert 0 <= plan.exact_exponent(proposed) * 2**24 - int(exponents[0]) <= plan.excess
    low, high = sampling_rejection.enclose(exponents, plan.excess)
    chance = laws.exp(plan.exact_exponent(proposed)) * 2**32
    assert low[0] == low[1] and high[0] == high[1]
    assert int(low[0]) <= chance <= int(high[0])
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
