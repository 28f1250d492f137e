"""Linear models on both sides and the overlap of their confidence intervals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import MissingColumn, ParameterError, Unsupported
from sfumato.measures.utility.regression import RegressionLoss, interval_overlap, least_squares
from tests.measures.masked_tables import microdata, noisy, people, synthetic, with_gaps

ends = st.tuples(st.integers(-20, 20), st.integers(1, 20)).map(lambda pair: (float(pair[0]), float(pair[0] + pair[1])))


@given(ends, ends)
def test_the_overlap_is_the_mean_share_of_both_intervals(first: tuple[float, float], second: tuple[float, float]) -> None:
    shared = len(set(range(int(first[0]), int(first[1]))) & set(range(int(second[0]), int(second[1]))))
    found = interval_overlap(first, second)
    if shared:
        assert found == pytest.approx((shared / (first[1] - first[0]) + shared / (second[1] - second[0])) / 2)
    else:
        assert found <= 0
    assert found == pytest.approx(interval_overlap(second, first))
    assert found <= 1


def test_an_interval_without_width_is_inside_or_not() -> None:
    assert interval_overlap((1.0, 1.0), (1.0, 1.0)) == 1
    assert interval_overlap((1.0, 1.0), (2.0, 2.0)) == 0
    assert interval_overlap((1.0, 1.0), (0.0, 4.0)) == 0.5


@pytest.mark.oracle
def test_coefficients_and_errors_are_those_of_another_implementation() -> None:
    from scipy.stats import linregress, t

    draw = np.random.default_rng(0)
    x = draw.normal(5, 2, 60)
    y = 3 - 2 * x + draw.normal(size=60)
    other = linregress(x, y)
    found = least_squares(np.column_stack([np.ones(60), x]), y)
    assert found is not None
    assert found.values == pytest.approx([other.intercept, other.slope])
    assert found.errors == pytest.approx([other.intercept_stderr, other.stderr])
    reach = t.ppf(0.975, 58) * other.stderr
    assert found.interval(1, 0.95) == pytest.approx((other.slope - reach, other.slope + reach))


def test_several_predictors_solve_the_normal_equations() -> None:
    draw = np.random.default_rng(1)
    design = np.column_stack([np.ones(80), draw.normal(size=(80, 3)) * [1, 1e4, 1e-4]])
    target = design @ [1.0, 2.0, 3e-4, 4e4] + draw.normal(size=80)
    found = least_squares(design, target)
    assert found is not None and found.determined.all() and found.freedom == 76
    exact = np.linalg.solve(design.T @ design, design.T @ target)
    assert found.values == pytest.approx(exact, rel=1e-6)
    variance = ((target - design @ exact) ** 2).sum() / 76
    assert found.errors == pytest.approx(np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design))), rel=1e-6)


def test_the_score_is_the_mean_overlap_that_is_missed() -> None:
    data = people(300)
    found = RegressionLoss("spent", ("age", "income", "sex")).score(data, noisy(data, 0.2))
    overlaps = [part for name, part in found.parts.items() if name.startswith("overlap")]
    assert [name for name in found.parts if name.startswith("overlap")] == [
        "overlap intercept",
        "overlap age",
        "overlap income",
        "overlap sex 2",
    ]
    assert found.value == pytest.approx(1 - np.mean([max(0.0, overlap) for overlap in overlaps]))
    assert found.parts["overlap income"] < found.parts["overlap sex 2"]  # noise on a predictor weakens its own coefficient most


def test_nothing_is_lost_where_nothing_changed() -> None:
    for data in (people(), with_gaps(people(), 0.1)):
        found = RegressionLoss("income").score(data, data)
        assert found.value == pytest.approx(0, abs=1e-9)
        assert all(part == pytest.approx(0, abs=1e-9) for name, part in found.parts.items() if name.startswith("moved"))
        assert RegressionLoss("income").score(data, synthetic(data, data.table())).value == pytest.approx(0, abs=1e-9)


def test_more_noise_misses_more_on_average() -> None:
    data = people(500)
    measure = RegressionLoss("spent", ("income", "age"))
    means = [np.mean([measure.score(data, noisy(data, k, seed)).value for seed in range(6)]) for k in (0.01, 0.1, 1.0)]
    assert means[0] < means[1] < means[2]


def exact_line() -> dict[str, Any]:
    x = np.arange(20.0)
    return {"x": x, "y": 2 * x + 1}


def test_an_exact_line_has_intervals_without_width() -> None:
    data = microdata(exact_line())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RegressionLoss("y").score(data, data).value == 0
        moved = RegressionLoss("y").score(data, pa.table({"x": np.arange(20.0), "y": 3 * np.arange(20.0) + 1}))
    assert moved.value == 1


def test_a_coefficient_that_the_masked_data_do_not_determine_is_missed() -> None:
    draw = np.random.default_rng(0)
    x, z = draw.normal(size=(2, 100))
    data = microdata({"x": x, "z": z, "y": x + z + draw.normal(size=100)})
    table = data.table()
    shown = table.set_column(0, "x", pa.array(np.zeros(100)))
    found = RegressionLoss("y").score(data, shown)
    assert found.parts["overlap x"] == 0 and "moved x" not in found.parts
    assert found.parts["overlap z"] > 0.5
    doubled = RegressionLoss("y").score(data, table.set_column(0, "x", table["z"]))
    assert doubled.parts["overlap x"] == doubled.parts["overlap z"] == 0
    few = RegressionLoss("y").score(data, synthetic(data, table.slice(0, 3)))
    assert few.value == 1


def test_what_has_no_model_is_refused() -> None:
    data = microdata({"x": np.arange(9.0), "z": 2 * np.arange(9.0), "c": [1.0] * 9, "y": np.arange(9.0) ** 2, "s": ["a"] * 9})
    for predictors in (("x", "z"), ("x", "c")):
        with pytest.raises(Unsupported, match="does not determine"):
            RegressionLoss("y", predictors).score(data, data)
    with pytest.raises(Unsupported, match="does not determine"):
        RegressionLoss("y", ("x",)).score(
            microdata({"x": [1.0, 2.0], "y": [1.0, 3.0]}), pa.table({"x": [1.0, 2.0], "y": [1.0, 3.0]})
        )
    with pytest.raises(Unsupported, match="target of numbers"):
        RegressionLoss("s", ("x",)).score(data, data)
    with pytest.raises(MissingColumn, match="'w'"):
        RegressionLoss("w").score(data, data)
    for wrong in ({"level": 1.0}, {"predictors": ("y",)}, {"predictors": ()}):
        with pytest.raises(ParameterError, match="RegressionLoss"):
            RegressionLoss("y", **wrong)
