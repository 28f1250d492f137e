"""The laws that are drawn are the stated ones: exactly where they are finite, by chi-square for the samplers."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato import dp
from sfumato.core.randomness import default
from sfumato.dp.accounting.gaussian import discrete_gaussian_delta
from sfumato.dp.mechanisms.choices.exact_choice import choose
from sfumato.dp.mechanisms.grid import Grid, power_of_two_below
from sfumato.dp.mechanisms.noise.laws import Law, laplace_delta, laplace_law, uniform_law
from sfumato.kernels.changes.channel import Channel
from tests.examples import examples

#: False-alarm rate of each chi-square test; there are fewer than thirty.
ALARM = 1e-8


def fits(drawn: list[Any], law: dict[Any, Any]) -> bool:
    counts = Counter(drawn)
    assert set(counts) <= set(law)
    likely = [(counts[entry], float(p) * len(drawn)) for entry, p in law.items() if float(p) * len(drawn) >= 5]
    rest = len(drawn) - sum(count for count, _ in likely)
    expected_rest = len(drawn) - sum(expected for _, expected in likely)
    if expected_rest >= 5:
        likely.append((rest, expected_rest))
    observed, expected = (np.array(column, dtype=float) for column in zip(*likely, strict=True))
    return bool(chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > ALARM)


@pytest.mark.covering
@pytest.mark.parametrize("kind", [dp.BoundedLaplace, dp.Redraw])
@pytest.mark.parametrize(("epsilon", "value"), [(1, 0), (1, 3), ("1/20", 5)])
def test_bounded_laplace_and_redraw_have_the_same_law(kind: type[dp.BoundedLaplace], epsilon: Any, value: int) -> None:
    mechanism = kind(0, 10, sensitivity=1, epsilon=epsilon, steps=20)
    source = default(11)
    assert fits([mechanism.answer(value, source) for _ in range(4000)], mechanism.grid_law(value))


@settings(max_examples=examples(20))
@given(
    st.integers(2, 25),
    st.fractions(Fraction(1, 30), 3, max_denominator=30),
    st.fractions(Fraction(1, 10), 1, max_denominator=20),
)
def test_bounded_laplace_never_leaks_more_than_epsilon(steps: int, epsilon: Fraction, share: Fraction) -> None:
    mechanism = dp.BoundedLaplace(0, 1, sensitivity=share, epsilon=epsilon, steps=steps)
    values = [Fraction(k, steps) for k in range(steps + 1)]
    matrix = [list(mechanism.grid_law(value).values()) for value in values]
    near = [(a, b) for a in range(steps + 1) for b in range(steps + 1) if a != b and abs(values[a] - values[b]) <= share]
    found = Channel(matrix).epsilon(near) if near else 0.0
    assert found <= float(epsilon) * (1 + 1e-9)


def test_the_corrected_scale_is_hardly_larger_than_needed() -> None:
    mechanism = dp.BoundedLaplace(0, 10, sensitivity=1, epsilon=1, steps=100)
    matrix = [list(mechanism.grid_law(Fraction(k, 10)).values()) for k in range(101)]
    near = [(a, b) for a in range(101) for b in range(101) if 0 < abs(a - b) <= 10]
    assert 0.999 <= Channel(matrix).epsilon(near) <= 1


@pytest.mark.parametrize("form", ["accumulated", "renormalised"])
@pytest.mark.parametrize("given_by", [{"ratio": "1/3"}, {"epsilon": "7/10"}])
@pytest.mark.parametrize("sensitivity", [1, 2])
def test_truncated_geometric_leaks_what_it_says(form: Any, given_by: dict[str, str], sensitivity: int) -> None:
    domain = ("a", "b", "c", "d", "e")
    mechanism = dp.TruncatedGeometric(domain, sensitivity=sensitivity, form=form, **given_by)  # type: ignore[arg-type]
    matrix = [list(mechanism.law(value).values()) for value in domain]
    near = [(a, b) for a in range(5) for b in range(5) if 0 < abs(a - b) <= sensitivity]
    assert Channel(matrix).epsilon(near) == pytest.approx(float(mechanism.loss().epsilon), rel=1e-9)
    source = default(12)
    assert fits([mechanism.answer("b", source) for _ in range(4000)], mechanism.law("b"))


def test_randomised_response_leaks_epsilon_and_treats_the_unknown_alike() -> None:
    mechanism = dp.RandomisedResponse(("a", "b", "c"), "3/2")
    rows = [list(mechanism.law(value).values()) for value in ("a", "b", "c", "none of them")]
    assert Channel(rows).epsilon() == pytest.approx(1.5)
    source = default(13)
    for value in ("a", "none of them"):
        assert fits([mechanism.answer(value, source) for _ in range(4000)], mechanism.law(value))


def permute_and_flip_law(exponents: list[float]) -> list[float]:
    """By going through all permutations."""
    chances = [math.exp(min(exponents) - exponent) for exponent in exponents]
    law = [0.0] * len(exponents)
    for order in permutations(range(len(exponents))):
        left = 1.0
        for place in order:
            law[place] += left * chances[place] / math.factorial(len(exponents))
            left *= 1 - chances[place]
    return law


SCORES = ("a", "b", "c", "d"), [3, 5.5, 5, -2]


def test_exponential_draws_its_law() -> None:
    mechanism, source = dp.Exponential(SCORES[0], 1, 1), default(14)
    assert fits([mechanism.answer(SCORES[1], source) for _ in range(4000)], mechanism.law(SCORES[1]))


def test_permute_and_flip_draws_its_law_and_is_never_worse_than_exponential() -> None:
    mechanism, source = dp.PermuteAndFlip(SCORES[0], 1, 1), default(15)
    law = permute_and_flip_law([float(x) for x in mechanism.exponents(SCORES[1])])
    assert fits([mechanism.answer(SCORES[1], source) for _ in range(4000)], dict(zip(SCORES[0], law, strict=True)))
    other = list(dp.Exponential(SCORES[0], 1, 1).law(SCORES[1]).values())
    assert np.dot(law, SCORES[1]) >= np.dot(other, SCORES[1])


@settings(max_examples=examples(15))
@given(
    st.lists(st.integers(-3, 3), min_size=2, max_size=4),
    st.data(),
    st.booleans(),
    st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(3)]),
)
def test_selection_is_private_for_scores_that_each_change_by_one(
    scores: list[int], data: Any, monotone: bool, epsilon: Fraction
) -> None:
    low = 0 if monotone else -1
    other = [score + data.draw(st.integers(low, 1)) for score in scores]
    names = tuple(str(place) for place in range(len(scores)))
    exponential = dp.Exponential(names, 1, epsilon, monotone=monotone)
    flip = dp.PermuteAndFlip(names, 1, epsilon, monotone=monotone)
    laws = [list(exponential.law(s).values()) for s in (scores, other)]
    assert Channel(laws).epsilon() <= float(epsilon) + 1e-9
    laws = [permute_and_flip_law([float(x) for x in flip.exponents(s)]) for s in (scores, other)]
    assert Channel(laws).epsilon() <= float(epsilon) + 1e-9


def noisy_max_law(scores: list[int], ratio: float) -> list[float]:
    """By adding up over the noise of the winner; equal noisy scores go to the earlier one."""
    reach = range(-60, 61)
    mass = {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in reach}
    below = {k: sum(mass[j] for j in reach if j < k) for k in range(-140, 141)}
    law = []
    for place, score in enumerate(scores):
        total = 0.0
        for k in reach:
            chance = mass[k]
            for position, other in enumerate(scores):
                if position != place:
                    chance *= below[max(-140, min(140, score + k - other + (position > place)))]
            total += chance
        law.append(total)
    return law


@settings(max_examples=examples(25))
@given(st.lists(st.integers(-2, 2), min_size=2, max_size=3), st.data(), st.sampled_from([Fraction(1), Fraction(2)]))
def test_report_noisy_max_is_private_with_its_rule_for_ties(scores: list[int], data: Any, epsilon: Fraction) -> None:
    mechanism = dp.ReportNoisyMax(tuple("abc"[: len(scores)]), 1, epsilon, step=1)
    assert mechanism._scale == 2 / epsilon
    other = [score + data.draw(st.integers(-1, 1)) for score in scores]
    laws = [noisy_max_law(s, math.exp(-float(epsilon) / 2)) for s in (scores, other)]
    assert Channel([[p / sum(row) for p in row] for row in laws]).epsilon() <= float(epsilon) + 1e-6


def test_report_noisy_max_draws_its_law() -> None:
    mechanism, source = dp.ReportNoisyMax(("a", "b", "c"), 1, 1, step=1), default(16)
    law = noisy_max_law([2, 2, 0], math.exp(-1 / 2))
    assert fits([mechanism.answer([2, 2, 0], source) for _ in range(4000)], dict(zip("abc", law, strict=True)))


def above_threshold_law(gaps: list[int], scales: tuple[float, float], positives: int) -> dict[tuple[bool, ...], float]:
    """Of every sequence of answers, by adding up over the noise of the threshold."""
    reach = range(-150, 151)
    first, second = (math.exp(-1 / scale) for scale in scales)

    def at_least(k: int) -> float:
        return second**k / (1 + second) if k > 0 else 1 - second ** (1 - k) / (1 + second)

    law: dict[tuple[bool, ...], float] = {}
    for noise in reach:
        open_runs: dict[tuple[bool, ...], float] = {(): (1 - first) / (1 + first) * first ** abs(noise)}
        for gap in gaps:
            grown: dict[tuple[bool, ...], float] = {}
            for answers, p in open_runs.items():
                if sum(answers) == positives:
                    grown[answers] = grown.get(answers, 0) + p
                    continue
                above = at_least(noise - gap)
                grown[(*answers, True)] = p * above
                grown[(*answers, False)] = p * (1 - above)
            open_runs = grown
        for answers, p in open_runs.items():
            law[answers] = law.get(answers, 0) + p
    return law


@pytest.mark.parametrize("positives", [1, 2])
@pytest.mark.parametrize("monotone", [False, True])
def test_sparse_vector_is_private_for_every_sequence_of_answers(positives: int, monotone: bool) -> None:
    mechanism = dp.SparseVector(0, 1, 1, positives=positives, monotone=monotone)
    step = float(mechanism.grid.step)
    scales = tuple(float(scale) * step for scale in mechanism.scales)
    first = above_threshold_law([0, -2, 1], scales, positives)  # type: ignore[arg-type]
    for shift in ([1, 1, 1], [-1, -1, -1]) if monotone else ([1, -1, 1], [-1, 1, -1], [1, 1, 1], [-1, -1, -1]):
        second = above_threshold_law([g + s for g, s in zip([0, -2, 1], shift, strict=True)], scales, positives)  # type: ignore[arg-type]
        worst = max(abs(math.log(first[answers] / second[answers])) for answers in first)
        assert worst <= 1 + 1e-3


def test_sparse_vector_draws_its_law_and_stops() -> None:
    mechanism, source = dp.SparseVector(5, 1, 2), default(17)
    scales = tuple(float(scale * mechanism.grid.step) for scale in mechanism.scales)
    drawn = [mechanism.answer([5, 3, 6], source) for _ in range(4000)]
    assert all(sum(answers) <= 1 and (True not in answers[:-1]) for answers in drawn)
    # The grid is finer than whole numbers: the law on whole numbers is near, so only its likeliest answer is compared.
    law = above_threshold_law([0, -2, 1], scales, 1)  # type: ignore[arg-type]
    share = Counter(drawn)[(True,)] / 4000
    assert abs(share - law[(True,)]) < 0.13


@settings(max_examples=examples(15))
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60)), min_size=1, max_size=6))
def test_choosing_with_multiplicities_never_takes_what_is_not_there(entries: list[tuple[int, int]]) -> None:
    counts, penalties = [count for count, _ in entries], [penalty for _, penalty in entries]
    if any(counts):
        assert counts[choose(counts, penalties, Fraction(1, 7), default(1))] > 0


def test_choosing_with_multiplicities_draws_its_law() -> None:
    counts, penalties, source = [3, 0, 1, 1000, 0], [3, 0, 0, 40, 3], default(18)
    weights = [count * math.exp(-penalty / 6) for count, penalty in zip(counts, penalties, strict=True)]
    drawn = [choose(counts, penalties, Fraction(1, 6), source) for _ in range(4000)]
    assert fits(drawn, {place: weight / sum(weights) for place, weight in enumerate(weights)})


def test_a_choice_on_the_border_draws_more_bits() -> None:
    """All bits zero and all bits one lie next to a border of the cumulative weights: the choice is still right."""

    class Fixed:
        private, description = False, "fixed"

        def __init__(self, byte: int) -> None:
            self.byte, self.asked = byte, 0

        def bytes(self, count: int) -> bytes:
            self.asked += count
            return bytes([self.byte if self.asked < 100 else 7]) * count

    assert choose([1, 1, 1], [0, 1, 2], Fraction(1), Fixed(0)) == 0
    assert choose([1, 1, 1], [0, 1, 2], Fraction(1), last := Fixed(255)) == 2
    assert last.asked > 8


@settings(max_examples=examples(20))
@given(
    st.integers(1, 40),
    st.fractions(0, 2, max_denominator=20),
    st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100),
    st.sampled_from(["printed", "tight"]),
)
def test_laplace_with_delta_holds_on_the_grid(shift: int, epsilon: Fraction, delta: Fraction, form: Any) -> None:
    """The exact δ of the discrete law, term by term, for a coarse grid where it differs most from the continuous one."""
    mechanism = dp.Laplace(shift, epsilon, delta, form, step=1)
    ratio = math.exp(-1 / float(mechanism.units))
    total = (1 - ratio) / (1 + ratio)
    reach = range(-2000, 2000 + shift)
    found = sum(max(0.0, total * (ratio ** abs(k) - math.exp(float(epsilon)) * ratio ** abs(k - shift))) for k in reach)
    assert found <= float(delta) + 1e-9


def test_the_tight_form_wastes_nothing() -> None:
    mechanism = dp.Laplace(1, 0.5, 0.1)
    assert laplace_delta(0.5, float(mechanism.scale), 1) == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [("1/2", "1e-5"), (2, "1e-9"), ("1/100", "1/100")])
def test_the_discrete_gaussian_that_is_drawn_keeps_delta(epsilon: Any, delta: Any) -> None:
    mechanism = dp.Gaussian("0.7", epsilon, delta)
    assert discrete_gaussian_delta(epsilon, mechanism.variance, int(mechanism.shift)) <= Fraction(delta)
    coarse = dp.Gaussian(3, epsilon, delta, step=1)
    assert discrete_gaussian_delta(epsilon, coarse.variance, 3) <= Fraction(delta)


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e3, 1e3)), min_size=1, max_size=5),
    st.fractions(Fraction(1, 64), 8, max_denominator=97),
)
def test_rounding_is_inside_the_shift(pairs: list[tuple[float, float]], step: Fraction) -> None:
    grid = Grid(step)
    one, two = [a for a, _ in pairs], [a + b for a, b in pairs]
    exact = sum((abs(Fraction(a) - Fraction(b)) for a, b in zip(one, two, strict=True)), Fraction(0))
    moved = sum(abs(a - b) for a, b in zip(grid.units_of(one), grid.units_of(np.array(two)), strict=True))
    assert moved <= grid.shift(exact, len(pairs))


@given(st.fractions(Fraction(1, 10**9), 10**9))
def test_the_step_is_a_power_of_two(value: Fraction) -> None:
    power = power_of_two_below(value)
    assert power <= value < 2 * power
    assert math.log2(float(power)).is_integer()


def test_laws_sum_to_one_and_their_densities_integrate() -> None:
    points = np.linspace(-40, 40, 200_001)
    laws: list[Law] = [
        laplace_law(1, 2),
        uniform_law(0, 5),
        dp.TruncatedMean(0, 10, 1, 5).law([3.0] * 7),
        dp.BoundedLaplace(0, 10, 1, 1).law(2.0),
        dp.ClampingDownMean(0, 10, 1).law([3.0, 5.0]),
        dp.ClampingDownMean(0, 10, 1).law([]),
    ]
    for law in laws:
        mass = float(np.trapezoid([law.density(x) for x in points], points)) + sum(law.atoms.values())
        assert mass == pytest.approx(1, abs=1e-3)
        assert law.between(-1000, 1000) == pytest.approx(1)


def test_uniform_noise_is_not_private_but_only_delta() -> None:
    """count + U[0, 5] for counts 2 and 3: (0, 0.2) and nothing better for any ε."""
    two, three = uniform_law(2, 7), uniform_law(3, 8)
    assert two.between(2, 3) == pytest.approx(0.2) and three.between(2, 2.999999) == pytest.approx(0, abs=1e-6)


def test_laplace_is_half_an_exponential_with_variance_two() -> None:
    law = laplace_law(0, 1)
    assert law.density(2.0) == pytest.approx(math.exp(-2) / 2)
    points = np.linspace(-60, 60, 400_001)
    assert float(np.trapezoid([x * x * law.density(x) for x in points], points)) == pytest.approx(2, abs=1e-3)
