"""Multiplicative noise: factors with mean 1 and the spread asked for; zeros are refused or owned up to."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported

COUNT = 200_000


def factors(mask: sf.masking.Mask, seed: int = 1) -> np.ndarray:
    real = np.random.default_rng(9).uniform(1.0, 2.0, COUNT) * np.where(np.arange(COUNT) % 2, 1.0, -1.0)
    return mask.apply(pa.table({"x": real}), seed=seed).result.table.column("x").to_numpy() / real


@pytest.mark.parametrize("law", ["normal", "lognormal"])
@pytest.mark.parametrize("alpha", [5.0, 40.0, 150.0])
def test_factors_are_positive_with_mean_1_and_the_variance_that_is_told(law: str, alpha: float) -> None:
    """Fixed seed; limits are six standard errors (1e-8), from the moments of the law."""
    mask = sf.MultiplicativeNoise(alpha, law, columns=("x",))  # type: ignore[arg-type]
    drawn = factors(mask)
    variance = mask.factor_variance()
    assert drawn.min() > 0
    assert abs(drawn.mean() - 1.0) < 6 * math.sqrt(variance / COUNT)
    kurtosis = ((drawn - 1.0) ** 4).mean() / variance**2
    assert abs(drawn.var() - variance) < 6 * variance * math.sqrt(max(kurtosis - 1.0, 1.0) / COUNT)
    assert mask.apply(pa.table({"x": [math.pi, math.e]}), seed=1).result.transparency["factor_variance"] == variance


def test_small_normal_factors_are_as_good_as_not_cut_off() -> None:
    assert sf.MultiplicativeNoise(10).factor_variance() == pytest.approx(0.01, rel=1e-12)


def test_normal_factors_follow_the_truncated_law() -> None:
    """Fixed seed; the Kolmogorov distance of 200,000 draws exceeds 0.0066 with probability below 1e-7."""
    spread = 0.8
    cut = stats.truncnorm(-1 / spread, np.inf, loc=1.0, scale=spread)
    drawn = factors(sf.MultiplicativeNoise(80, columns=("x",))) * cut.mean()
    assert stats.kstest(drawn, cut.cdf).statistic < 0.0066
    assert sf.MultiplicativeNoise(80).factor_variance() == pytest.approx(cut.var() / cut.mean() ** 2, rel=1e-9)


def test_signs_and_missing_values_stay() -> None:
    data = pa.table({"x": pa.array([-5.0, None, 7.0, 0.0])})
    masked = sf.MultiplicativeNoise(50, columns=("x",)).apply(data, seed=1).result.table.column("x").to_pylist()
    assert masked[0] < 0 < masked[2] and masked[1] is None and masked[3] == 0


def test_columns_of_mostly_zeros_are_refused_unless_the_owner_says_so() -> None:
    data = pa.table({"gain": [0.0, 0.0, 0.0, math.pi, math.e]})
    with pytest.raises(Unsupported, match="60 % of column 'gain' is zero"):
        sf.MultiplicativeNoise(10, columns=("gain",)).apply(data)
    outcome = sf.MultiplicativeNoise(10, zeros=0.6, columns=("gain",)).apply(data, seed=1)
    assert outcome.details["expected_unchanged"]["gain"] == pytest.approx(0.6)
    assert outcome.result.transparency["zeros_stay"] is True


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("values", [[1, 2, 1, 2, 1], [1.0, 2.0, 1.0, 2.0, 1.0], [0, 0, 0, 1, 2]])
def test_small_whole_numbers_are_refused_where_rounding_takes_the_factor_back(values: list[float], whole: bool) -> None:
    with pytest.raises(Unsupported, match="'n' is so small"):
        sf.MultiplicativeNoise(5, zeros=0.9, columns=("n",), whole=whole).apply(pa.table({"n": values}))


def test_zeros_that_the_owner_allows_do_not_count_as_rounded_back() -> None:
    data = pa.table({"gain": [0.0] * 97 + [100.0, 200.0, 301.0]})
    outcome = sf.MultiplicativeNoise(10, zeros=0.98, columns=("gain",)).apply(data, seed=1)
    assert 0.97 < outcome.details["expected_unchanged"]["gain"] < 0.98


def test_dates_cannot_be_multiplied() -> None:
    days = pa.array([1, 2, 3], pa.int32()).cast(pa.date32())
    with pytest.raises(Unsupported, match="'day' holds dates"):
        sf.MultiplicativeNoise(10, columns=("day",)).apply(pa.table({"day": days}))


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"alpha": 0}, "alpha"),
        ({"alpha": -5}, "alpha"),
        ({"alpha": 2000}, "alpha"),
        ({"alpha": float("nan")}, "alpha"),
        ({"alpha": 10, "law": "uniform"}, "law"),
        ({"alpha": 10, "zeros": 2}, "zeros"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, object], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        sf.MultiplicativeNoise(**parameters)  # type: ignore[arg-type]
