"""Finite channels: ε and δ(ε) by the definition, exactly."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError
from sfumato.kernels.changes.channel import Channel, exponential, within

STEPS = [(0, 1), (1, 2)]
RENORMALISED = Channel([[F(4, 7), F(2, 7), F(1, 7)], [F(1, 4), F(1, 2), F(1, 4)], [F(1, 7), F(2, 7), F(4, 7)]])
ACCUMULATED = Channel([[F(2, 3), F(1, 6), F(1, 6)], [F(1, 3)] * 3, [F(1, 6), F(1, 6), F(2, 3)]])


@st.composite
def channels(draw: st.DrawFn, least: int = 0) -> Channel:
    outputs = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(st.integers(least, 6), min_size=outputs, max_size=outputs), min_size=2, max_size=4))
    rows = [row if sum(row) else [1] * outputs for row in rows]
    return Channel([[F(entry, sum(row)) for entry in row] for row in rows])


def events(channel: Channel) -> list[tuple[int, ...]]:
    places = range(len(channel.outputs))
    return [event for size in places for event in itertools.combinations(places, size + 1)]


@pytest.mark.golden("G-DP-31")
def test_renormalising_a_truncated_geometric_costs_more_than_a_step() -> None:
    assert RENORMALISED.ratio(STEPS) == F(16, 7)
    assert RENORMALISED.epsilon(STEPS) == pytest.approx(0.826679, abs=5e-7)
    assert not RENORMALISED.holds("0.6931472", pairs=STEPS)
    assert ACCUMULATED.ratio(STEPS) == 2
    assert ACCUMULATED.epsilon(STEPS) == math.log(2)
    verdict = sf.dp.channel_verdict(RENORMALISED, F(693147, 10**6), pairs=STEPS)
    assert not verdict.holds and verdict.witness is not None
    assert verdict.witness.log_ratio == pytest.approx(math.log(16 / 7))
    assert sf.dp.channel_epsilon(ACCUMULATED, STEPS) == math.log(2)
    assert sf.dp.channel_verdict(ACCUMULATED, F(6931472, 10**7), pairs=STEPS).holds


@pytest.mark.golden("G-DP-20")
def test_a_count_plus_ten_tells_three_from_two_with_certainty() -> None:
    counted = Channel([[0, 1], [1, 0]], inputs=[3, 2], outputs=[12, 13])
    assert counted.epsilon() == math.inf
    worst = sf.dp.channel_verdict(counted, 100).witness
    assert worst is not None and worst.log_ratio == math.inf
    assert counted.delta(100) == 1.0


def test_zero_over_zero_counts_as_one() -> None:
    assert Channel([[F(1, 2), F(1, 2), 0], [F(1, 2), F(1, 2), 0]]).epsilon() == 0.0
    assert Channel([[1], [1]]).ratio() == 1


def test_one_input_has_nothing_to_be_told_from() -> None:
    assert Channel([[0.25, 0.75]]).epsilon() == 0.0


@given(channels())
def test_epsilon_is_the_largest_log_ratio_over_all_events(channel: Channel) -> None:
    matrix, largest = channel.matrix, F(1)
    infinite = False
    for one, two in itertools.permutations(range(len(channel.inputs)), 2):
        for event in events(channel):
            p, q = (sum(matrix[row, list(event)]) for row in (one, two))
            infinite |= p > 0 and q == 0
            largest = max(largest, p / q if q else F(1))
    assert channel.epsilon() == (math.inf if infinite else pytest.approx(math.log(largest)))


@given(channels(), st.fractions(0, 3, max_denominator=20))
def test_delta_is_the_largest_excess_over_all_events(channel: Channel, epsilon: F) -> None:
    matrix, growth = channel.matrix, math.exp(epsilon)
    brute = max(
        max(float(sum(matrix[one, list(event)])) - growth * float(sum(matrix[two, list(event)])) for event in events(channel))
        for one, two in itertools.permutations(range(len(channel.inputs)), 2)
    )
    assert channel.delta(epsilon) == pytest.approx(max(brute, 0.0), abs=1e-12)
    assert channel.holds(epsilon, 1) and channel.holds(epsilon, F(channel.delta(epsilon) + 1e-9).limit_denominator(10**12))
    assert channel.delta(epsilon) < 1e-12 or not channel.holds(epsilon)


@given(channels(least=1), channels(least=1))
def test_processing_afterwards_never_leaks_more(channel: Channel, after: Channel) -> None:
    if len(after.inputs) == len(channel.outputs):
        assert channel.cascade(after).ratio() <= channel.ratio()


@given(channels(least=1))
def test_two_independent_outputs_leak_exactly_twice_as_much_at_the_worst_output(channel: Channel) -> None:
    pairs = [(0, 1)]
    assert channel.product(channel).ratio(pairs) == channel.ratio(pairs) ** 2


@given(channels(least=1), st.integers(0, 3))
def test_posterior_odds_stay_within_the_ratio(channel: Channel, output: int) -> None:
    prior = [F(1, len(channel.inputs))] * len(channel.inputs)
    after = channel.posterior(prior, channel.outputs[output % len(channel.outputs)])
    assert sum(after) == 1
    assert max(after) <= channel.ratio() * min(after)


def test_floats_and_fractions_agree() -> None:
    floats = Channel(np.array(RENORMALISED.matrix, dtype=float))
    assert not floats.exact and RENORMALISED.exact
    assert floats.epsilon() == pytest.approx(RENORMALISED.epsilon())
    assert floats.delta(0.5) == pytest.approx(RENORMALISED.delta(0.5))
    assert floats.holds(1.4) and not floats.holds(1.3)


@pytest.mark.parametrize("digits", [30, 100])
@pytest.mark.parametrize("exponent", [F(1), F(1, 3), F(7, 2), F(1, 10**9)])
def test_the_exponential_lies_between_its_bounds(exponent: F, digits: int) -> None:
    low, high = exponential(exponent, digits)
    finer = exponential(exponent, 2 * digits)
    assert low < finer[0] < finer[1] < high
    assert within(low, exponent) and not within(high, exponent)


@pytest.mark.parametrize(
    "matrix", [[], [[]], [[1], [F(1, 2), F(1, 2)]], [[F(1, 2), F(1, 3)]], [[F(3, 2), F(-1, 2)]], [[math.nan, 1.0]], [[0.5, 0.4]]]
)
def test_what_is_no_channel_is_refused(matrix: list[list[F]]) -> None:
    with pytest.raises(ParameterError):
        Channel(matrix)


def test_neighbours_are_inputs() -> None:
    with pytest.raises(ParameterError):
        ACCUMULATED.epsilon([(0, 7)])
