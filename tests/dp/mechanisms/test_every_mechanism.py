"""Laws that every exported mechanism keeps, found by itself through the public table."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sfumato import dp
from sfumato.core.declared import build, parameters
from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.randomness import default
from sfumato.core.registry import names
from tests.dp.mechanisms.cases import CASES, SLACK, Case

MECHANISMS = names("mechanism")
EACH = [(name, place) for name in MECHANISMS for place in range(len(CASES.get(name, ())))]
#: With this false-alarm rate per comparison, all of them together stay below one in a million.
ALARM = 1e-9


def case(name: str, place: int) -> Case:
    return CASES[name][place]


def test_every_mechanism_has_an_example() -> None:
    assert sorted(CASES) == MECHANISMS


def same(one: Any, two: Any) -> bool:
    return repr(one) == repr(two)


@pytest.mark.parametrize(("name", "place"), EACH)
def test_a_mechanism_knows_its_loss_and_error_before_it_is_run(name: str, place: int) -> None:
    mechanism = case(name, place).mechanism
    loss, error = mechanism.loss(), mechanism.error()
    assert isinstance(loss, LossGuarantee) and isinstance(error, dp.Error)
    assert loss.neighbours in {"add_remove", "replace"} and loss.unit
    assert error.deviation >= 0 and error.bias >= 0
    assert error.margin(0.5) <= error.margin(0.9) <= error.margin(0.999)


@pytest.mark.parametrize(("name", "place"), EACH)
def test_parameters_round_trip(name: str, place: int) -> None:
    mechanism = case(name, place).mechanism
    again = build(type(mechanism), parameters(mechanism))
    assert again == mechanism
    assert mechanism.parameters() == parameters(again)
    assert again.loss() == mechanism.loss() and again.error() == mechanism.error()


@pytest.mark.parametrize(("name", "place"), EACH)
def test_a_mechanism_cannot_be_changed(name: str, place: int) -> None:
    mechanism = case(name, place).mechanism
    field = dataclasses.fields(mechanism)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mechanism, field, None)


@pytest.mark.parametrize(("name", "place"), EACH)
def test_a_seed_reproduces_an_answer(name: str, place: int) -> None:
    example = case(name, place)
    answers = [example.mechanism.answer(example.value, default(seed)) for seed in (5, 5)]
    assert same(*answers)
    if name != "Constant":
        assert not all(same(answers[0], example.mechanism.answer(example.value, default(seed))) for seed in range(200))


def test_without_a_source_the_operating_system_is_asked() -> None:
    """False alarms: two equal answers of scale 2^21 steps thrice in a row, below 1e-18."""
    mechanism = dp.Laplace(1, "1/2")
    assert len({mechanism.answer(0) for _ in range(4)}) > 1


@cache
def distances(name: str, place: int) -> np.ndarray[Any, Any]:
    """One row per answer, one column per coordinate."""
    example, source = case(name, place), default(20261115)
    drawn = [example.distance(example.mechanism.answer(example.value, source)) for _ in range(example.answers)]
    return np.array([np.atleast_1d(distance) for distance in drawn], dtype=float)


@pytest.mark.parametrize(("name", "place"), EACH)
def test_answers_stay_within_the_stated_margins(name: str, place: int) -> None:
    """False alarms: binomial, below 1e-9 for each of some hundred comparisons."""
    example, error = case(name, place), case(name, place).mechanism.error()
    if name in {"Constant", "SparseVector"}:
        return
    found = distances(name, place).ravel()
    for confidence in (0.5, 0.9, 0.99):
        beyond = int(np.sum(found > error.margin(confidence) * (1 + SLACK)))
        # Coordinates of one answer share noise, so they are counted as one: the worst coordinate may fail all at once.
        per_answer = found.size // example.answers
        assert beyond <= per_answer * binom.isf(ALARM, example.answers, 1 - confidence)


@pytest.mark.parametrize(("name", "place"), EACH)
def test_answers_deviate_as_stated(name: str, place: int) -> None:
    """The mean square lies within ten standard errors (of Laplace noise) of a stated deviation, or below a bound."""
    example, error = case(name, place), case(name, place).mechanism.error()
    if name in {"Constant", "SparseVector"}:
        return
    found = distances(name, place)
    worst = float(np.max(np.mean(found**2, axis=0)))
    slack = 22.4 / math.sqrt(example.answers)
    assert worst <= (error.deviation**2 + error.bias**2) * (1 + slack)
    if error.law in {"laplace", "gaussian"} and getattr(error, "width", math.inf) == math.inf:
        assert worst >= error.deviation**2 * (1 - min(slack, 0.9))


@pytest.mark.parametrize(("name", "place"), EACH)
def test_no_value_shows_in_the_representation(name: str, place: int) -> None:
    mechanism = case(name, place).mechanism
    before = repr(mechanism)
    mechanism.answer(case(name, place).value, default(1))
    assert repr(mechanism) == before
    assert vars(mechanism).keys() >= {field.name for field in dataclasses.fields(mechanism)}  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in {"Constant", "TruncatedGeometric", "Gaussian"}])
@pytest.mark.parametrize("epsilon", [0, -1, "nan", "many", True])
def test_an_epsilon_that_is_none_is_refused(name: str, epsilon: Any) -> None:
    given = {**parameters(case(name, 0).mechanism), "epsilon": epsilon}
    with pytest.raises(ParameterError):
        build(type(case(name, 0).mechanism), given)


RECORDS = [
    "ClampingDownMean",
    "HistogramMean",
    "Median",
    "MeanAndVariance",
    "NoisyAverage",
    "Quantiles",
    "TruncatedMean",
    "Variance",
]


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize(
    "records", [[], [None], [float("nan")], [float("inf"), float("-inf")], [1e308, -1e308], [2500], np.array([1, 2, 3])]
)
def test_odd_records_are_answered_inside_the_bounds(name: str, records: Any) -> None:
    mechanism = case(name, 0).mechanism
    answer = np.atleast_1d(np.array(mechanism.answer(records, default(3)), dtype=float))
    assert np.all(np.isfinite(answer))
    error = mechanism.error()
    assert isinstance(error, dp.Error)


@pytest.mark.parametrize("name", RECORDS)
def test_a_refused_record_is_not_told(name: str) -> None:
    with pytest.raises(ParameterError) as caught:
        case(name, 0).mechanism.answer(["canary-7391", 3.0], default(3))
    assert "canary" not in str(caught.value) and caught.value.__cause__ is None


@pytest.mark.parametrize("name", ["Laplace", "Gaussian", "BoundedLaplace", "Redraw"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 10**400, 1e300])
def test_values_that_are_not_finite_or_huge_are_answered(name: str, value: Any) -> None:
    assert math.isfinite(case(name, 0).mechanism.answer(value, default(3)))
