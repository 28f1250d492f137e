"""Comparisons at the threshold are exact."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.guarantees.base import TOLERANCE
from sfumato.measures.guarantees.measure import measure
from sfumato.measures.guarantees.thresholds import at_most, below, ratios, written
from tests.measures.tables import classes_table, grouped_schema

HUGE = 10**30


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.floats(0.001, 5))
def test_at_most_equals_the_comparison_of_fractions(n: int, d: int, t: float) -> None:
    limit = written(t) + Fraction(repr(TOLERANCE))
    assert bool(at_most(np.array([n]), np.array([d]), t)[0]) == (Fraction(n, d) <= limit)
    assert bool(below(np.array([n]), np.array([d]), t)[0]) == (Fraction(n, d) < written(t))


@pytest.mark.parametrize("tenths", range(1, 10))
def test_a_tie_with_a_written_decimal_holds(tenths: int) -> None:
    assert at_most(np.array([tenths]), np.array([10]), tenths / 10)[0]
    assert at_most(np.array([tenths * HUGE], object), np.array([10 * HUGE], object), tenths / 10)[0]
    assert not below(np.array([tenths]), np.array([10]), tenths / 10)[0]


def test_just_above_the_threshold_fails_whatever_the_size() -> None:
    over = np.array([3 * HUGE + HUGE // 10**9], object), np.array([10 * HUGE], object)
    assert not at_most(*over, 0.3)[0]


def test_division_by_zero_is_above_everything() -> None:
    assert ratios(np.array([1]), np.array([0]))[0] == np.inf
    assert not at_most(np.array([1]), np.array([0]), 10.0**300)[0]
    assert not below(np.array([1]), np.array([0]), 10.0**300)[0]


@pytest.mark.parametrize(("share", "alpha", "holds"), [(3, 0.3, True), (3, 0.29999, False), (7, 0.7, True), (1, 0.1, True)])
def test_alpha_ties(share: int, alpha: float, holds: bool) -> None:
    released = classes_table([{"a": share, **{f"v{i}": 1 for i in range(10 - share)}}])
    guarantee = sf.AlphaKAnonymity(alpha, 1, "disease", ("a",))
    assert measure(released, grouped_schema(), guarantee).holds is holds


def test_an_even_class_has_exactly_as_many_effective_values() -> None:
    """exp(ln 1000) is 999.9999999999995 in floating point."""
    released = pa.table({"group": ["g"] * 7_000, "disease": np.arange(7_000) % 1_000})
    found = measure(released, grouped_schema(), sf.EntropyLDiversity(1_000, "disease"))
    assert (found.value, found.holds) == (1_000, True)


def test_t_ties_hold_and_the_next_distance_fails() -> None:
    """Distance exactly 0.3 from the table: half of 0.8 - 0.5 twice."""
    released = classes_table([{"a": 8, "b": 2}, {"a": 2, "b": 8}])
    for distance in ("equal", "variational", "hierarchical", "ordered"):
        tie = sf.TCloseness(0.3, "disease", distance=distance, reference="released")
        assert measure(released, grouped_schema(), tie).holds
        under = sf.TCloseness(0.2999999, "disease", distance=distance, reference="released")
        assert not measure(released, grouped_schema(), under).holds
