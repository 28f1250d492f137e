"""Ranges of mechanisms and algorithms: exact numbers kept as written, numbers that rise, bounds with room between them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import dp
from sfumato.core.errors import ParameterError
from sfumato.core.ranges import Refused
from sfumato.dp.algorithms.top_k import TopK
from sfumato.dp.ranges import EXACT, INTERVAL, AsWritten, Floating, Rising


@pytest.mark.parametrize("value", ["0.1", 0.1, Fraction(1, 10), 1])
def test_a_cost_is_checked_as_an_exact_number_and_kept_as_it_was_written(value: Any) -> None:
    assert AsWritten(above=0).settled(value) is value
    assert TopK("word", 3, epsilon=value).parameters()["epsilon"] == (str(value) if isinstance(value, Fraction) else value)


@pytest.mark.parametrize("value", [0, "0", -1, "a tenth", True, None, float("nan"), "1e999999999", "1e-300"])
def test_what_is_no_cost_is_refused(value: Any) -> None:
    with pytest.raises(Refused):
        AsWritten(above=0).settled(value)


@pytest.mark.parametrize("value", [(1, 1), (2, 1), (1,), (1, 2, 3), "12", 1, (1, float("inf"))])
def test_an_interval_is_two_numbers_the_first_below_the_second(value: Any) -> None:
    with pytest.raises(Refused, match="two numbers, the first below the second"):
        INTERVAL.settled(value)


def test_numbers_that_rise_are_exact_or_floating() -> None:
    assert Rising(EXACT).settled([0, 0.1, "1/3"]) == (Fraction(0), Fraction(1, 10), Fraction(1, 3))
    floating = Rising(Floating()).settled(np.array([0, 1]))
    assert floating == (0.0, 1.0) and all(type(entry) is float for entry in floating)


def test_all_that_is_wrong_with_a_mechanism_is_said_at_once() -> None:
    with pytest.raises(ParameterError) as refusal:
        dp.NoisyAverage("low", 1, 0, count_share=1, size=0, neighbours="both")  # type: ignore[arg-type]
    text = str(refusal.value)
    assert text.startswith("NoisyAverage: 5 faults") and "epsilon must be a number above 0, not 0; an answer that costs" in text
    assert all(f" {name} must be " in text for name in ("lower", "epsilon", "count_share", "size", "neighbours"))


def test_a_relation_and_a_unit_come_from_the_sensitivity() -> None:
    stated = dp.Sensitivity(Fraction(1), Fraction(1), Fraction(1), "replace", "person")
    assert (dp.Laplace(stated, 1).neighbours, dp.Laplace(stated, 1).unit) == ("replace", "person")
    assert (dp.Laplace(1, 1).neighbours, dp.Laplace(1, 1).unit) == ("add_remove", "record")
    with pytest.raises(ParameterError, match="Laplace: the sensitivity names another neighbour relation or unit"):
        dp.Laplace(stated, 1, neighbours="add_remove")
