"""Rounding to the nearest multiple, and at random."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported


def rounded(mask: sf.masking.Mask, values: object, seed: int = 1) -> list[object]:
    return mask.apply(pa.table({"x": values}), seed=seed).result.table.column("x").to_pylist()


def test_halves_go_upward_and_missing_values_stay() -> None:
    assert rounded(sf.Rounding(5, columns=("x",), whole=False), [2.5, 7.5, -2.5, None, 12.4]) == [5, 10, 0, None, 10]


def test_decimal_bases_print_as_decimals() -> None:
    assert rounded(sf.Rounding(0.1, columns=("x",)), [0.31, 0.3, 1.27]) == [0.3, 0.3, 1.3]


@given(
    values=st.lists(st.integers(-10_000, 10_000), min_size=2, max_size=40),
    base=st.sampled_from([2, 3, 5, 10, 250]),
    how=st.sampled_from(["nearest", "random"]),
    seed=st.integers(0, 1000),
)
def test_every_value_becomes_a_neighbouring_multiple(values: list[int], base: int, how: str, seed: int) -> None:
    mask = sf.Rounding(base, how, columns=("x",))  # type: ignore[arg-type]
    if len(set(values)) == 1 or all(value % base == 0 for value in values):
        with pytest.raises(Unsupported):
            rounded(mask, values, seed)
        return
    for value, shown in zip(values, rounded(mask, values, seed), strict=True):
        assert isinstance(shown, int) and shown % base == 0
        if how == "nearest":
            assert shown == math.floor(Fraction(value, base) + Fraction(1, 2)) * base
        else:
            assert shown in (math.floor(value / base) * base, math.ceil(value / base) * base)


def test_random_rounding_changes_no_value_on_average() -> None:
    """Fixed seed; 7 of base 10 goes up 70 % of the time; 100,000 draws stray by 0.0087 with probability below 1e-8."""
    shown = np.array(rounded(sf.Rounding(10, "random", columns=("x",)), [7.0] * 100_000 + [3.0]))[:-1]
    assert abs((shown == 10).mean() - 0.7) < 0.0087


def test_each_column_has_its_base_and_the_owner_learns_what_did_not_change() -> None:
    outcome = sf.Rounding({"x": 5, "y": 100}, columns=("x", "y")).apply(pa.table({"x": [5, 7], "y": [149.0, 151.0]}))
    assert outcome.result.table.to_pydict() == {"x": [5, 5], "y": [100.0, 200.0]}
    assert outcome.details["unchanged"] == {"x": 0.5, "y": 0.0}


@pytest.mark.parametrize(
    ("mask", "match"),
    [
        (sf.Rounding(2.5, columns=("n",)), "'n' holds whole numbers"),
        (sf.Rounding(1, columns=("n",)), "every value of column 'n' is a multiple"),
        (sf.Rounding(1, columns=("n",), strata=("s",)), "every value of column 'n' is a multiple"),
        (sf.Rounding(2, columns=("even",)), "every value of column 'even' is a multiple"),
        (sf.Rounding({"n": 2}, columns=("n", "even")), "no base is given for column 'even'"),
        (sf.Rounding({"n": 2, "zzz": 3}, columns=("n",)), "'zzz' is not among the masked columns"),
    ],
)
def test_what_would_change_nothing_or_does_not_fit_is_refused(mask: sf.masking.Mask, match: str) -> None:
    with pytest.raises((ParameterError, Unsupported), match=match):
        mask.apply(pa.table({"n": [1, 2, 3], "even": [2, 4, 6], "s": [0, 0, 1]}))


@pytest.mark.parametrize("base", [0, -5, float("nan"), True, {}])
def test_a_base_is_positive(base: object) -> None:
    with pytest.raises(ParameterError, match="base"):
        sf.Rounding(base)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="how"):
        sf.Rounding(5, "up")  # type: ignore[arg-type]


def test_a_base_far_beyond_the_values_is_not_said_to_divide_them() -> None:
    assert rounded(sf.Rounding(1e12, columns=("x",)), [5.0, 70.5]) == [0, 0]
    details = sf.Rounding(1e12, columns=("x",)).apply(pa.table({"x": [5.0, 70.5, 0.0, 1e12]})).details
    assert details["unchanged"] == {"x": 0.5}
    with pytest.raises(Unsupported, match="lies beyond 2\\^53"):
        rounded(sf.Rounding(1e308, columns=("x",)), [5, 70])
