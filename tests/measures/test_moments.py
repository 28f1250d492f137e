"""Moments and their differences, against the statistics module."""

from __future__ import annotations

import math
from statistics import correlation, covariance, fmean, pstdev, pvariance

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.errors import Unsupported
from sfumato.measures.utility.moments import MomentsLoss, standardised_distance
from tests.measures.masked_tables import microdata, noisy, people, synthetic, taken, with_gaps

NUMBERS = ["age", "income", "spent"]


def test_differences_equal_the_plain_statistics() -> None:
    data = people(80)
    shown = noisy(data, 0.4)
    x, y = ({name: table.column(name).to_pylist() for name in NUMBERS} for table in (data.table(), shown))
    units = {name: pstdev(values) for name, values in x.items()}
    means = [abs(fmean(y[n]) - fmean(x[n])) / units[n] for n in NUMBERS]
    variances = [abs(pvariance(y[n]) - pvariance(x[n])) / units[n] ** 2 for n in NUMBERS]
    pairs = [("income", "age"), ("spent", "age"), ("spent", "income")]
    unbiased = 79 / 80
    covariances = [abs(covariance(y[a], y[b]) - covariance(x[a], x[b])) * unbiased / units[a] / units[b] for a, b in pairs]
    correlations = [abs(correlation(y[a], y[b]) - correlation(x[a], x[b])) for a, b in pairs]
    found = MomentsLoss().score(data, shown)
    for family, expected in (
        ("means", means),
        ("variances", variances),
        ("covariances", covariances),
        ("correlations", correlations),
    ):
        assert found.parts[family] == pytest.approx(fmean(expected), abs=1e-9)
        assert found.parts[f"{family} squared"] == pytest.approx(fmean(v**2 for v in expected), abs=1e-9)
    assert found.value == pytest.approx(fmean(map(fmean, (means, variances, covariances, correlations))), abs=1e-9)
    moved = [abs(b - a) / (math.sqrt(2) * units[n]) for n in NUMBERS for a, b in zip(x[n], y[n], strict=True)]
    assert found.parts["values"] == pytest.approx(fmean(moved))


def test_nothing_moved_where_nothing_changed() -> None:
    data = with_gaps(people(), 0.1)
    found = MomentsLoss(eigenvalues=True).score(data, data)
    assert found.value == 0
    assert set(found.parts.values()) == {0.0}


def test_values_are_compared_with_the_record_behind_them() -> None:
    data = people()
    turned = taken(data, np.random.default_rng(0).permutation(len(data)))
    assert MomentsLoss().score(data, turned).parts["values"] == 0
    assert "values" not in MomentsLoss().score(data, synthetic(data, data.table())).parts


def test_values_missing_on_one_side_are_left_out() -> None:
    original, masked = np.array([[1.0, np.nan], [2.0, 5.0]]), np.array([[2.0, 1.0], [np.nan, 5.0]])
    assert standardised_distance(original, masked, np.ones(2)) == pytest.approx(0.5 / math.sqrt(2))
    assert standardised_distance(original, np.full((2, 2), np.nan), np.ones(2)) == 0


def test_eigenvalues_show_a_lost_correlation() -> None:
    x = np.arange(100.0)
    data = microdata({"x": x, "y": 2 * x})
    shown = pa.table({"x": x, "y": np.random.default_rng(0).permutation(2 * x)})
    found = MomentsLoss(eigenvalues=True).score(data, shown)
    # eigenvalues (2, 0) become (1 + |r|, 1 − |r|)
    r = abs(float(np.corrcoef(x, shown["y"].to_numpy())[0, 1]))
    assert found.parts["eigenvalues"] == pytest.approx(1 - r)


def test_a_constant_column_counts_in_its_own_unit() -> None:
    data = microdata({"c": [5.0] * 10, "x": np.arange(10.0)})
    assert MomentsLoss().score(data, data).value == 0
    assert MomentsLoss().score(data, pa.table({"c": [7.0] * 10, "x": np.arange(10.0)})).parts["means"] == 1


def test_a_column_that_became_constant_has_no_variance_and_no_correlation() -> None:
    x = np.arange(10.0)
    data = microdata({"x": x, "y": x})
    found = MomentsLoss().score(data, pa.table({"x": np.full(10, 4.5), "y": x}))
    assert found.parts["correlations"] == pytest.approx(1)
    assert found.parts["variances"] == pytest.approx(0.5)
    gone = MomentsLoss().score(data, pa.table({"x": pa.nulls(10, pa.float64()), "y": x}))
    assert gone.parts["covariances"] == pytest.approx(1)


def test_categories_have_no_moments() -> None:
    data = people(10)
    with pytest.raises(Unsupported, match="no column of numbers"):
        MomentsLoss(("sex", "town")).score(data, data)
