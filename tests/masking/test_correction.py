"""Statistics corrected by what a mask publishes about itself come back to those of the original."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.certificate import plain
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.kernels.changes.recovered_frequencies import recovered_frequencies
from sfumato.masking.correction import recover_correlation, recover_variance

COLUMNS = ("a", "b", "c")
COUNT = 40_000


def matrix(count: int = COUNT, seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    x = random.normal(size=(count, 3)) @ np.array([[1.0, 0.8, 0.3], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    return x + [3.0, 5.0, -4.0] + (np.arange(count) % 4)[:, None]


X = matrix()
TABLE = pa.table({**{name: X[:, i] for i, name in enumerate(COLUMNS)}, "stratum": np.arange(COUNT) % 4})


def close(found: np.ndarray, relative: float) -> bool:
    truth = np.cov(X.T)
    scale = np.sqrt(np.outer(np.diag(truth), np.diag(truth)))
    return bool(np.all(np.abs(found - truth) <= relative * scale))


@pytest.mark.parametrize(
    "mask",
    [
        sf.AdditiveNoise(0.5, columns=COLUMNS),
        sf.AdditiveNoise(0.5, rescale=True, columns=("a", "b")),
        sf.AdditiveNoise(0.5, rescale=True, columns=COLUMNS, strata=("stratum",)),
        sf.CorrelatedNoise(0.8, columns=COLUMNS),
        sf.CorrelatedNoise(0.8, True, columns=COLUMNS, strata=("stratum",)),
        sf.MultiplicativeNoise(20, columns=COLUMNS),
        sf.MultiplicativeNoise(20, "lognormal", columns=("b",), strata=("stratum",)),
        sf.Sampling(0.9, columns=COLUMNS),
        sf.Combined(masks=(sf.AdditiveNoise(0.3, rescale=True, columns=COLUMNS), sf.MultiplicativeNoise(10, columns=("a",)))),
    ],
    ids=lambda mask: f"{type(mask).__name__}{'-strata' if mask.strata else ''}",
)
def test_covariances_come_back_from_the_published_parameters_alone(mask: sf.masking.Mask) -> None:
    """Fixed seed. An entry's relative standard error is below 1.1 % with 40,000 records; 7 % is six of them."""
    masked = mask.apply(TABLE, seed=5).result
    told = json.loads(json.dumps(plain(dict(masked.transparency))))  # as somebody else reads it from a file
    correction = sf.masking.Correction(masked.table, told)
    assert close(correction.covariance(COLUMNS), 0.07)
    assert np.allclose(correction.correlation(COLUMNS), np.corrcoef(X.T), atol=0.07)
    assert correction.mean("a") == pytest.approx(X[:, 0].mean(), abs=0.05)


def test_without_correction_they_would_be_wrong() -> None:
    masked = sf.AdditiveNoise(0.5, columns=COLUMNS).apply(TABLE, seed=5).result.table
    assert not close(np.cov(np.column_stack([masked.column(name).to_numpy() for name in COLUMNS]).T), 0.4)


def test_exact_moments_are_corrected_exactly() -> None:
    masked = sf.CorrelatedNoise(0.7, moments="exact", columns=COLUMNS).apply(TABLE, seed=1).result
    assert np.allclose(sf.masking.Correction.of(masked).covariance(COLUMNS), np.cov(X.T), rtol=1e-8)


def test_a_slope_that_noise_pulled_to_zero_is_straightened() -> None:
    """Fixed seed; the standard error of a slope is below 0.012, and without correction it is wrong by more than 0.1."""
    masked = sf.AdditiveNoise(0.5, columns=("b", "c")).apply(TABLE, seed=3).result
    truth = np.linalg.lstsq(np.column_stack([np.ones(COUNT), X[:, 1:]]), X[:, 0], rcond=None)[0]
    found = sf.masking.Correction.of(masked).regression("a", ["b", "c"])
    assert list(found) == ["intercept", "b", "c"]
    assert found["b"] == pytest.approx(truth[1], abs=0.07) and found["c"] == pytest.approx(truth[2], abs=0.07)
    assert found["intercept"] == pytest.approx(truth[0], abs=0.5)
    noisy = np.column_stack([np.ones(COUNT), *(masked.table.column(n).to_numpy() for n in ("b", "c"))])
    assert abs(np.linalg.lstsq(noisy, X[:, 0], rcond=None)[0][1] - truth[1]) > 0.1


def test_frequencies_behind_pram_come_back() -> None:
    """Fixed seed; the standard error of a share is below 0.005 with 40,000 records."""
    words = np.random.default_rng(1).choice(["x", "y", "z"], COUNT, p=[0.7, 0.25, 0.05])
    masked = sf.Pram(stay=0.6, columns=("w",)).apply(pa.table({"w": words}), seed=2).result
    found = sf.masking.Correction.of(masked).frequencies("w")
    assert [found[label] for label in "xyz"] == pytest.approx([(words == label).mean() for label in "xyz"], abs=0.03)
    assert sum(found.values()) == pytest.approx(1.0)
    raw = np.mean(np.array(masked.table.column("w").to_pylist()) == "x")
    assert abs(raw - 0.7) > 0.15


def test_suppression_after_pram_is_corrected_too() -> None:
    words = np.random.default_rng(1).choice(["x", "y"], COUNT, p=[0.8, 0.2])
    masked = sf.Pram(stay=0.9, suppress=0.3, columns=("w",)).apply(pa.table({"w": words}), seed=2).result
    found = sf.masking.Correction.of(masked).frequencies("w")
    assert set(found) == {"x", "y"} and found["x"] == pytest.approx(0.8, abs=0.03)


@given(
    frequencies=st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3),
    stay=st.floats(0.5, 0.95),
)
def test_expected_frequencies_are_inverted_exactly(frequencies: list[float], stay: float) -> None:
    truth = np.array(frequencies) / sum(frequencies)
    law = np.full((3, 3), (1 - stay) / 2) + np.eye(3) * (stay - (1 - stay) / 2)
    assert np.allclose(recovered_frequencies(truth @ law, law), truth, atol=1e-9)


def test_a_negative_solution_is_replaced_by_the_most_likely_frequencies() -> None:
    law = np.array([[0.8, 0.2], [0.2, 0.8]])
    observed = np.array([0.9, 0.1])
    assert recovered_frequencies(observed, law, nonnegative=False) == pytest.approx([7 / 6, -1 / 6])
    assert recovered_frequencies(observed, law) == pytest.approx([1.0, 0.0], abs=1e-6)


def test_the_most_likely_frequencies_are_most_likely() -> None:
    """Against a grid of all frequencies in steps of 1/100."""
    law = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    observed = np.array([0.6, 0.39, 0.01])
    found = recovered_frequencies(observed, law)
    grid = [np.array([i, j, 100 - i - j]) / 100 for i in range(101) for j in range(101 - i)]
    best = max(float(observed @ np.log(point @ law)) for point in grid)
    assert float(observed @ np.log(found @ law)) >= best - 1e-9


def test_a_matrix_that_forgets_everything_cannot_be_inverted() -> None:
    with pytest.raises(Unsupported, match="cannot be inverted"):
        recovered_frequencies(np.array([0.5, 0.5]), np.array([[0.5, 0.5], [0.5, 0.5]]))
    with pytest.raises(ParameterError, match="add up to 1"):
        recovered_frequencies(np.array([0.5, 0.5]), np.array([[0.5, 0.6], [0.5, 0.5]]))
    with pytest.raises(ParameterError, match="one observed frequency"):
        recovered_frequencies(np.array([1.0]), np.eye(2))


def test_a_method_without_a_correction_is_refused_by_name() -> None:
    masked = sf.RankSwapping(10, columns=("a",)).apply(TABLE, seed=1).result
    correction = sf.masking.Correction.of(masked)
    with pytest.raises(Unsupported, match="'a' was masked by RankSwapping"):
        correction.variance("a")
    with pytest.raises(Unsupported, match="no transition matrix"):
        correction.frequencies("a")
    assert correction.variance("b") == pytest.approx(X[:, 1].var(ddof=1))


def test_noise_larger_than_what_is_left_gives_no_correlation() -> None:
    told = {"method": {"name": "MultiplicativeNoise"}, "masked_columns": ["a"], "noise": "multiplicative", "factor_variance": 9.0}
    correction = sf.masking.Correction(pa.table({"a": [9.0, 10.0, 11.0], "b": [1.0, 2.0, 4.0]}), told)
    assert correction.variance("a") == 0.0
    with pytest.raises(Unsupported, match="no variance left"):
        correction.correlation(["a", "b"])
    with pytest.raises(Unsupported, match="linear combinations"):
        correction.regression("b", ["a"])


def test_what_is_no_transparency_record_is_refused() -> None:
    with pytest.raises(InputError, match="not what a mask publishes"):
        sf.masking.Correction(TABLE, {"k": 3}).variance("a")
    with pytest.raises(InputError, match="columns of numbers"):
        told = sf.AdditiveNoise(0.1, columns=("x",)).apply(pa.table({"x": [1.1234567, 2.7654321]}), seed=1).result.transparency
        sf.masking.Correction(pa.table({"x": ["1", "one"]}), told).variance("x")
    with pytest.raises(ParameterError, match="a regression needs"):
        sf.masking.Correction.of(sf.AdditiveNoise(0.1, columns=("a",)).apply(TABLE, seed=1).result).regression("a", ["a"])


def test_missing_values_are_left_out_pair_by_pair() -> None:
    holes = np.random.default_rng(3).random(COUNT) < 0.2
    data = pa.table({"a": pa.array(X[:, 0], mask=holes), "b": X[:, 1]})
    masked = sf.AdditiveNoise(0.5, "exact", columns=("a",)).apply(data, seed=1).result
    assert sf.masking.Correction.of(masked).variance("a") == pytest.approx(X[~holes, 0].var(ddof=1), rel=1e-9)


def test_noise_within_different_strata_cannot_be_taken_out_together() -> None:
    mask = sf.Combined(
        masks=(
            sf.AdditiveNoise(0.5, columns=("a",), strata=("stratum",)),
            sf.AdditiveNoise(0.5, columns=("b",)),
        )
    )
    with pytest.raises(Unsupported, match="different strata"):
        sf.masking.Correction.of(mask.apply(TABLE, seed=1).result).covariance(["a", "b"])


@pytest.mark.golden("G-PBD-01")
def test_a_published_noise_parameter_recovers_the_variance() -> None:
    assert recover_variance(3.0, 0.5) == 2.0
    assert recover_correlation(0.5, 0.5, 0.5) == pytest.approx(0.75)
    with pytest.raises(ParameterError):
        recover_variance(3.0, -1)


def test_the_recovered_variance_is_that_of_the_data() -> None:
    draw = np.random.default_rng(11)
    data = draw.normal(0, 3, 200_000)
    noisy = data + draw.normal(0, math.sqrt(0.5 * 9), 200_000)
    assert recover_variance(float(noisy.var()), 0.5) == pytest.approx(9, rel=0.02)
