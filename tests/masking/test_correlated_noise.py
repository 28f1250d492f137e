"""Correlated noise: every covariance grows by the same factor, or stays; singular covariances are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.masking.base import Mask

COLUMNS = ("a", "b", "c")


def matrix(count: int = 200, seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.normal(size=(count, 3)) @ np.array([[1.0, 0.8, 0.0], [0.0, 0.5, 40.0], [0.0, 0.0, 9.0]]) + [0.0, 1e4, -3.0]


def table(values: np.ndarray) -> pa.Table:
    return pa.table({name: pa.array(values[:, i], mask=np.isnan(values[:, i])) for i, name in enumerate(COLUMNS)})


def shown(masked: pa.Table) -> np.ndarray:
    return np.column_stack([masked.column(name).to_numpy(zero_copy_only=False) for name in COLUMNS])


@pytest.mark.parametrize("rescale", [False, True])
@given(k=st.floats(0.01, 5.0), seed=st.integers(0, 10**6))
def test_exact_moments_hold_for_every_draw(rescale: bool, k: float, seed: int) -> None:
    x = matrix(40)
    masked = sf.CorrelatedNoise(k, rescale, "exact", columns=COLUMNS).apply(table(x), seed=seed).result.table
    factor = 1.0 if rescale else 1.0 + k
    assert np.allclose(shown(masked).mean(axis=0), x.mean(axis=0), rtol=1e-12, atol=1e-9)
    assert np.allclose(np.cov(shown(masked).T), factor * np.cov(x.T), rtol=1e-8, atol=1e-8)
    assert np.allclose(np.corrcoef(shown(masked).T), np.corrcoef(x.T), atol=1e-9)


def test_free_noise_has_the_shape_of_the_data_on_average() -> None:
    """Fixed seed. With 100,000 records each entry has a relative standard error below 0.8 %; 5 % is six of them."""
    x = matrix(100_000)
    masked = sf.CorrelatedNoise(0.5, columns=COLUMNS).apply(table(x), seed=3).result.table
    noise = shown(masked) - x
    scale = np.sqrt(np.outer(np.diag(np.cov(x.T)), np.diag(np.cov(x.T))))
    assert np.all(np.abs(np.cov(noise.T) - 0.5 * np.cov(x.T)) <= 0.05 * scale)


def test_the_regression_between_masked_columns_is_kept_exactly() -> None:
    x = matrix()
    y = shown(sf.CorrelatedNoise(1.0, moments="exact", columns=COLUMNS).apply(table(x), seed=1).result.table)
    before = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x[:, 1:]]), x[:, 0], rcond=None)[0]
    after = np.linalg.lstsq(np.column_stack([np.ones(len(y)), y[:, 1:]]), y[:, 0], rcond=None)[0]
    assert np.allclose(before, after, rtol=1e-6)


def test_missing_cells_stay_missing_and_complete_records_keep_exact_moments() -> None:
    x = matrix(300)
    gone = np.random.default_rng(4).random(x.shape) < 0.1
    holed = np.where(gone, np.nan, x)
    y = shown(sf.CorrelatedNoise(0.5, True, "exact", columns=COLUMNS).apply(table(holed), seed=2).result.table)
    assert np.array_equal(np.isnan(y), gone)
    complete = ~gone.any(axis=1)
    assert np.allclose(np.cov(y[complete].T), np.cov(x[complete].T), rtol=1e-8, atol=1e-8)
    assert np.all(y[~gone] != x[~gone])


def test_collinear_columns_are_refused_by_name() -> None:
    random = np.random.default_rng(1)
    a, b, d = random.normal(size=(3, 50))
    data = pa.table({"a": a, "b": b, "sum": 2 * a - 3 * b + 1, "free": d})
    with pytest.raises(Unsupported, match=r"singular: the columns 'a', 'b', 'sum' are linear combinations"):
        sf.CorrelatedNoise(0.1, columns=("a", "free", "b", "sum")).apply(data)


@pytest.mark.data
def test_the_identity_between_incomes_of_the_census_is_found(data_dir: Path) -> None:
    """PTOTVAL = PEARNVAL + POTHVAL in the reference file of the CASC project."""
    census = sf.read(data_dir / "casc" / "CASCrefmicrodata.csv")
    with pytest.raises(Unsupported, match="the columns 'PTOTVAL', 'POTHVAL', 'PEARNVAL' are"):
        sf.CorrelatedNoise(0.1, columns=census.column_names).apply(census)
    columns = tuple(name for name in census.column_names if name != "PTOTVAL")
    mask = sf.CorrelatedNoise(0.1, True, "exact", columns=columns, whole=False)
    masked = mask.apply(census, seed=1).result.table
    before, after = (np.column_stack([t.column(n).to_numpy() for n in columns]) for t in (census.table(), masked))
    assert np.allclose(np.corrcoef(before.T), np.corrcoef(after.T), atol=1e-9)


def test_no_more_records_than_columns_are_refused() -> None:
    with pytest.raises(Unsupported, match="3 columns is singular with 3 records"):
        sf.CorrelatedNoise(0.1, columns=COLUMNS).apply(table(matrix(3)))


def test_columns_that_no_two_records_know_together_are_refused() -> None:
    x = matrix(40)
    x[:20, 0], x[20:, 1] = np.nan, np.nan
    with pytest.raises(Unsupported, match="fewer than two records know both 'a' and 'b'"):
        sf.CorrelatedNoise(0.1, columns=COLUMNS).apply(table(x))


def test_covariances_that_contradict_each_other_are_refused() -> None:
    """a follows b, b follows c, and c opposes a, each seen on other records: no law has all three."""
    base = np.random.default_rng(1).normal(size=30)
    x = np.full((90, 3), np.nan)
    x[:30, 0], x[:30, 1] = base, base
    x[30:60, 1], x[30:60, 2] = base, base
    x[60:, 2], x[60:, 0] = base, -base
    with pytest.raises(Unsupported, match="contradict each other"):
        sf.CorrelatedNoise(0.1, columns=COLUMNS).apply(table(x))


def test_exact_moments_need_enough_complete_records() -> None:
    """Ten more than twice the columns: fewer could be worked out from the moments that anybody knows."""
    mask = sf.CorrelatedNoise(0.1, moments="exact", columns=COLUMNS)
    with pytest.raises(Unsupported, match="needs at least 16 records .* could work the values out"):
        mask.apply(table(matrix(15)))
    assert mask.apply(table(matrix(16)), seed=1).result.table.num_rows == 16


def test_exact_moments_need_complete_records_that_vary() -> None:
    x = matrix(40)
    x[:20, 0] = 7.0  # the other values of a are known where b is not
    x[21:, 1] = np.nan
    x[20, 0] = 7.0
    with pytest.raises(Unsupported, match="'a' does not vary in the records without missing values"):
        sf.CorrelatedNoise(0.1, moments="exact", columns=COLUMNS).apply(table(x))


def test_strata_get_noise_of_their_own_shape() -> None:
    x = matrix(200)
    half = np.arange(200) % 2
    x[half == 1] *= 50.0
    data = table(x).append_column("half", pa.array(half))
    masked = sf.CorrelatedNoise(0.5, moments="exact", columns=COLUMNS, strata=("half",)).apply(data, seed=1).result.table
    for stratum in (0, 1):
        inside = half == stratum
        assert np.allclose(np.cov(shown(masked)[inside].T), 1.5 * np.cov(x[inside].T), rtol=1e-7)


def test_rounded_away_noise_is_refused() -> None:
    data = pa.table({"n": np.random.default_rng(1).integers(0, 3, 200), "x": np.random.default_rng(2).normal(size=200)})
    with pytest.raises(Unsupported, match="'n' is so small"):
        sf.CorrelatedNoise(0.01, columns=("n", "x")).apply(data)


def test_k_must_be_positive() -> None:
    with pytest.raises(ParameterError, match="CorrelatedNoise: ratio must be"):
        sf.CorrelatedNoise(0)


@pytest.mark.parametrize("k", [10**30, Fraction(1, 10)])
@pytest.mark.parametrize("method", [sf.AdditiveNoise, sf.CorrelatedNoise])
def test_a_number_that_numpy_does_not_know_is_a_ratio_too(method: Callable[..., Mask], k: float) -> None:
    table = pa.table({"a": [float(i**2 % 97) for i in range(50)], "b": [float(i**3 % 89) for i in range(50)]})
    masked, plain = (method(ratio, columns=("a", "b")).apply(table, seed=1).result.table for ratio in (k, float(k)))
    assert masked.equals(plain)
