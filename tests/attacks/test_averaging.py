"""Asking again and again."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato import attacks
from sfumato.attacks.outputs.averaging import Averaging, NoiseKnown, deviation
from sfumato.core.errors import InputError, ParameterError
from sfumato.core.randomness import default
from sfumato.core.view import View


def answers(truth: np.ndarray, times: int, scale: int = 10) -> np.ndarray:
    mechanism = sf.dp.Laplace(sensitivity=1, epsilon=f"1/{scale}")
    source = default(4)
    return np.array([[mechanism.answer(float(value), source) for _ in range(times)] for value in truth])


def test_the_mean_of_many_answers_forgets_the_noise() -> None:
    """Of 60 means each misses by more than 4 deviations with probability below 10^-4: two or more below 10^-4; 0.9 is far."""
    truth = np.arange(60) * 7.0
    many = answers(truth, 400)
    found = attacks.Averaging(tolerance=3).run(View(many, None), NoiseKnown(10, truth))
    assert found.success > 0.9
    assert found.baseline < 0.6
    assert found.details["expected_deviation"] == pytest.approx(10 * math.sqrt(2 / 400))
    # The deviation of 60 means: 6 standard errors are 0.55 of it.
    assert (many.mean(axis=1) - truth).std() == pytest.approx(deviation(10, 400), rel=0.55)
    by_law = Averaging(tolerance=3).run(View(many, None), NoiseKnown(10))
    assert by_law.success == pytest.approx(math.erf(3 / deviation(10, 400) / math.sqrt(2)))
    assert by_law.baseline == pytest.approx(1 - math.exp(-0.3))


def test_the_deviation_is_the_scale_times_the_root_of_two_over_the_number_of_answers() -> None:
    assert [deviation(1, times) for times in (1, 2, 200)] == pytest.approx([math.sqrt(2), 1, 0.1])


def test_a_session_shows_the_stored_answer_and_averaging_gains_nothing() -> None:
    people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    session = sf.Session(people, max_rows=1, max_groups=1, budget=sf.PureDP(1), seed=1)
    asked = [session.sql("SELECT COUNT(*) AS n FROM people", epsilon="0.1").table["n"][0].as_py() for _ in range(20)]
    for known in (NoiseKnown(10, [500]), NoiseKnown(10)):
        found = Averaging(tolerance=2).run(View(asked, None), known)
        assert found.success == found.baseline
        assert found.details["always_the_same_answer"] == 1
    assert "told nothing more" in found.finding


def test_what_cannot_be_attacked_is_said() -> None:
    for knowledge in (None, NoiseKnown(), "the truth"):
        with pytest.raises(InputError, match="NoiseKnown"):
            Averaging(1).run(View([1.0], None), knowledge)
    with pytest.raises(InputError, match="numbers"):
        Averaging(1).run(View([[1.0], [1.0, 2.0]], None), NoiseKnown(1))
    with pytest.raises(InputError, match="2 numbers are needed"):
        Averaging(1).run(View([[1.0], [2.0]], None), NoiseKnown(truth=[1]))
    with pytest.raises(ParameterError):
        Averaging(0)
    with pytest.raises(ParameterError):
        NoiseKnown(-1)
    with pytest.raises(ParameterError):
        deviation(1, 0)
