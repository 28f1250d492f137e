"""Margins of integer noise cover at least what they state, by the mass functions of the noise."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError
from sfumato.dp.algorithms.integer_noise import DiscreteGaussianError, DiscreteLaplaceError
from sfumato.dp.algorithms.spending import LossShare

LEVELS = (0.01, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 1 - 1e-6)
AMOUNTS = ("1/100", "1/8", "1/2", "1", "3/2", "2", "10", "1000")
CHANGES = (1, 2, 7)


def laplace_inside(scale: float, margin: float) -> float:
    """P(|X| <= margin) for P(x) proportional to exp(-|x| / scale), summed."""
    weights = [math.exp(-x / scale) for x in range(1, int(60 * scale) + 60)]
    return (1 + 2 * math.fsum(weights[: math.floor(margin)])) / (1 + 2 * math.fsum(weights))


def gaussian_inside(variance: float, margin: float) -> float:
    """P(|X| <= margin) for P(x) proportional to exp(-x² / 2 variance), summed."""
    weights = [math.exp(-x * x / (2 * variance)) for x in range(1, int(40 * math.sqrt(variance)) + 40)]
    return (1 + 2 * math.fsum(weights[: math.floor(margin)])) / (1 + 2 * math.fsum(weights))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("amount", AMOUNTS)
def test_a_margin_covers_what_it_states_and_no_whole_number_less_does(amount: str, change: int) -> None:
    for spending in (LossShare.of(amount), LossShare.of(None, amount)):
        error = spending.error(change, change**2)
        parameter = float(spending.noise_parameter(change, change**2))
        inside = laplace_inside if spending.law == "laplace" else gaussian_inside
        for level in LEVELS:
            margin = error.margin(level)
            assert inside(parameter, margin) >= level * (1 - 1e-12)
            assert margin == 0 or inside(parameter, margin - 1) < level + 1e-9


def test_wide_gaussian_noise_is_covered_too() -> None:
    for deviation in (199.0, 201.0, 5000.0):
        error = DiscreteGaussianError.of(Fraction(deviation) ** 2)
        for level in LEVELS:
            assert gaussian_inside(deviation**2, error.margin(level)) >= level


def test_the_margins_of_algorithms_are_those_of_their_noise() -> None:
    assert sf.dp.PrivateHistogram(("a",), epsilon=1, max_rows=1).error().margin(0.95) == 3
    schema = sf.Schema.model_validate({"dataset": "d", "columns": {"a": {"type": "string", "domain": ["x", "y"]}}})
    error = sf.dp.Mst(rho="3/2").error(schema)
    assert gaussian_inside(error.deviation**2, error.margin(0.95)) >= 0.95


@pytest.mark.parametrize("confidence", [0, 1])
@pytest.mark.parametrize("error", [DiscreteLaplaceError.of(Fraction(1)), DiscreteGaussianError.of(Fraction(1))])
def test_no_margin_is_certain_or_empty(error: DiscreteLaplaceError | DiscreteGaussianError, confidence: float) -> None:
    with pytest.raises(ParameterError, match="confidence"):
        error.margin(confidence)
