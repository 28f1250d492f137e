"""Probabilistic information loss against its definition, written out in plain Python, and against simulation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import combinations
from statistics import NormalDist, fmean, pstdev

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.measures.utility.probabilistic_loss import (
    FAMILIES,
    QUANTILES,
    PairMoments,
    ProbabilisticInformationLoss,
    central_moment,
    central_moment_variance,
    kernel_density,
    mean_variance,
    probabilistic_loss,
    quantile_variances,
    silverman_bandwidth,
)
from tests.examples import examples
from tests.measures.masked_tables import data_like, microdata, noisy, people, synthetic, taken, with_gaps

PIL = ProbabilisticInformationLoss()


@pytest.mark.golden("G-RSK-07")
def test_a_mean_shifted_by_its_own_deviation() -> None:
    """n = 100, μ₂ = 1, mean shifted by 0.1 = √(μ₂/n): 100 (2Φ(1) − 1) = 68.2689."""
    values = np.repeat([-1.0, 1.0], 50)
    found = PIL.score(microdata({"x": values}), pa.table({"x": values + 0.1}))
    assert round(100 * found.parts["means"], 4) == 68.2689
    assert found.parts["variances"] == 0  # its deviation is 0 here (μ₄ = μ₂²), and nothing changed
    assert "correlations" not in found.parts


@pytest.mark.golden("G-RSK-05")
def test_nothing_is_lost_where_nothing_changed() -> None:
    data = people()
    found = PIL.score(data, data)
    assert found.value == 0
    assert set(found.parts.values()) == {0.0}
    assert set(FAMILIES) < set(found.parts)


# --- the definition in plain Python -----------------------------------------------------------------------------------


def plain_pil(original: dict[str, list[float | None]], masked: dict[str, list[float | None]]) -> dict[str, float]:
    """Every statistic by itself, with the quotients as the definition has them and a density over all values."""
    losses: dict[str, list[float]] = {family: [] for family in FAMILIES}
    for name, column in original.items():
        x, y = ([v for v in side if v is not None] for side in (column, masked[name]))
        n, mu2, mu4 = len(x), moment(x, 2), moment(x, 4)
        losses["means"].append(chance(fmean(y) - fmean(x), mu2 / n))
        losses["variances"].append(chance(moment(y, 2) - mu2, (mu4 - mu2**2) / n))
        for step in range(1, 20):
            q = step / 20
            density = plain_density(x, quantile(x, q))
            losses["quantiles"].append(chance(quantile(y, q) - quantile(x, q), q * (1 - q) / (n * density**2)))
    for a, b in combinations(original, 2):
        x1, x2 = complete(original[a], original[b])
        y1, y2 = complete(masked[a], masked[b])
        n = len(x1)
        mu = {(i, j): joint(x1, x2, i, j) for i in range(5) for j in range(5) if i + j in (2, 4)}
        losses["covariances"].append(chance(joint(y1, y2, 1, 1) - mu[1, 1], (mu[2, 2] - mu[1, 1] ** 2) / n))
        rho = mu[1, 1] / math.sqrt(mu[2, 0] * mu[0, 2])
        inner = (
            mu[2, 2] / mu[1, 1] ** 2
            + (mu[4, 0] / mu[2, 0] ** 2 + mu[0, 4] / mu[0, 2] ** 2 + 2 * mu[2, 2] / (mu[2, 0] * mu[0, 2])) / 4
            - (mu[3, 1] / (mu[1, 1] * mu[2, 0]) + mu[1, 3] / (mu[1, 1] * mu[0, 2]))
        )
        shown = joint(y1, y2, 1, 1) / math.sqrt(joint(y1, y2, 2, 0) * joint(y1, y2, 0, 2))
        losses["correlations"].append(chance(shown - rho, rho**2 / n * inner))
    families = {family: fmean(found) for family, found in losses.items()}
    return {**families, "all": fmean(families.values())}


def chance(difference: float, variance: float) -> float:
    return 2 * NormalDist().cdf(abs(difference) / math.sqrt(variance)) - 1


def moment(values: list[float], order: int) -> float:
    mean = fmean(values)
    return fmean((value - mean) ** order for value in values)


def joint(first: list[float], second: list[float], i: int, j: int) -> float:
    a, b = fmean(first), fmean(second)
    return fmean((x - a) ** i * (y - b) ** j for x, y in zip(first, second, strict=True))


def complete(first: list[float | None], second: list[float | None]) -> tuple[list[float], list[float]]:
    both = [(x, y) for x, y in zip(first, second, strict=True) if x is not None and y is not None]
    return [x for x, _ in both], [y for _, y in both]


def quantile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def plain_density(values: list[float], point: float) -> float:
    width = 0.9 * min(pstdev(values), (quantile(values, 0.75) - quantile(values, 0.25)) / 1.34) * len(values) ** -0.2
    return fmean(NormalDist(value, width).pdf(point) for value in values)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_all_families_equal_the_definition(gaps: float) -> None:
    data = with_gaps(people(150), gaps)
    masked = noisy(data, 0.3)
    names = ["age", "income", "spent"]
    expected = plain_pil(*({name: side.column(name).to_pylist() for name in names} for side in (data.table(), masked)))
    found = PIL.score(data, masked)
    assert found.value == pytest.approx(expected["all"], abs=1e-9)
    assert {family: found.parts[family] for family in FAMILIES} == pytest.approx(
        {family: expected[family] for family in FAMILIES}, abs=1e-9
    )


# --- the asymptotic variances against simulation ----------------------------------------------------------------------

SKEWED = np.random.default_rng(3).gamma(3.0, 2.0, 1000)
RELATED = 0.5 * SKEWED + np.random.default_rng(4).normal(0, 2, 1000)
DRAWS = 4000


def bootstrap(statistic: Callable[[np.ndarray], np.ndarray | float]) -> np.ndarray:
    """Variance of the statistic over samples drawn from the sample; its own relative error is about √(2/4000) = 2.2 %."""
    draw = np.random.default_rng(5)
    found = np.array([statistic(draw.integers(0, SKEWED.size, SKEWED.size)) for _ in range(DRAWS)])
    return np.asarray(found.var(axis=0))


# Tolerances are 12 %: five relative errors of the simulation (false alarms below 6e-7) and one per cent for the terms of
# order 1/n that the asymptotic variances leave out.
def test_the_variance_of_a_mean_is_that_of_resampled_means() -> None:
    assert mean_variance(SKEWED) == pytest.approx(float(bootstrap(lambda rows: SKEWED[rows].mean())), rel=0.12)


@pytest.mark.parametrize("order", [2, 3])
def test_the_variance_of_a_central_moment_is_that_of_resampled_moments(order: int) -> None:
    simulated = float(bootstrap(lambda rows: central_moment(SKEWED[rows], order)))
    # the third moment has heavier tails, hence a larger relative error of the simulation
    assert central_moment_variance(SKEWED, order) == pytest.approx(simulated, rel=0.12 if order == 2 else 0.2)


def test_the_variance_of_a_covariance_is_that_of_resampled_covariances() -> None:
    pair = PairMoments.of(SKEWED, RELATED)
    simulated = bootstrap(lambda rows: float(np.cov(SKEWED[rows], RELATED[rows], bias=True)[0, 1]))
    assert pair is not None and pair.covariance_variance == pytest.approx(float(simulated), rel=0.12)


def test_the_variance_of_a_correlation_is_that_of_resampled_correlations() -> None:
    pair = PairMoments.of(SKEWED, RELATED)
    simulated = bootstrap(lambda rows: float(np.corrcoef(SKEWED[rows], RELATED[rows])[0, 1]))
    assert pair is not None and pair.correlation_variance == pytest.approx(float(simulated), rel=0.12)


def test_the_variance_of_an_absent_correlation_is_the_limit() -> None:
    """For μ₁₁ = 0 the definition has μ₂₂/(n μ₂₀ μ₀₂), where its quotients by μ₁₁ would fail."""
    x, y = np.array([-1.0, -1, 1, 1, 0, 3, -3]), np.array([1.0, -1, 1, -1, 2, 0, 0])
    pair = PairMoments.of(x, y)
    assert pair is not None and pair.mu11 == pytest.approx(0, abs=1e-15)
    assert pair.correlation_variance == pytest.approx(pair.mu22 / (7 * pair.mu20 * pair.mu02))


def test_the_variance_of_quantiles_is_near_that_of_fresh_samples() -> None:
    """Fresh samples of a normal law; the density is estimated from one of them, so only the order of magnitude is exact:
    within 45 % for the deciles, where its relative error at n = 4000 is about 5 % (squared 10 %)."""
    draw = np.random.default_rng(6)
    samples = np.sort(draw.normal(size=(1500, 4000)), axis=1)
    simulated = np.quantile(samples, QUANTILES, axis=1).var(axis=1)
    found = quantile_variances(samples[0])
    assert np.all(np.abs(found / simulated - 1) < 0.45)
    exact = QUANTILES * (1 - QUANTILES) / (4000 * np.array([NormalDist().pdf(NormalDist().inv_cdf(q)) ** 2 for q in QUANTILES]))
    assert np.all(np.abs(found / exact - 1) < 0.3)


@given(st.lists(st.floats(-50, 50), min_size=3, max_size=60), st.floats(0.01, 20))
def test_the_density_at_a_few_points_is_the_sum_over_all_values(values: list[float], width: float) -> None:
    ordered = np.sort(np.array(values))
    points = np.array([-40.0, 0.0, 7.5])
    expected = [fmean(NormalDist(value, width).pdf(point) for value in values) for point in points.tolist()]
    assert kernel_density(ordered, points, width) == pytest.approx(expected, abs=1e-12)


def test_half_the_values_equal_leave_the_deviation_for_the_width() -> None:
    ordered = np.sort(np.r_[np.zeros(90), np.arange(1, 11)])
    assert silverman_bandwidth(ordered) == pytest.approx(0.9 * ordered.std() * 100**-0.2)


# --- laws -------------------------------------------------------------------------------------------------------------


def test_more_noise_loses_more_on_average() -> None:
    data = people(1000)
    means = [np.mean([PIL.score(data, noisy(data, amount, seed)).value for seed in range(8)]) for amount in (0.03, 0.1, 1.0)]
    assert means[0] < means[1] < means[2] < 1


@settings(max_examples=examples(15))
@given(st.integers(0, 10_000), st.floats(1e-3, 1e6), st.floats(-1e6, 1e6), st.floats(0, 2))
def test_units_do_not_matter_and_the_loss_is_a_chance(seed: int, factor: float, shift: float, amount: float) -> None:
    draw = np.random.default_rng(seed)
    x, y = draw.normal(size=(2, 40))
    x2, y2 = x + amount * draw.normal(size=40), y + amount * draw.normal(size=40)
    plain = PIL.score(microdata({"x": x, "y": y}), pa.table({"x": x2, "y": y2})).value
    scaled = PIL.score(microdata({"x": x * factor + shift, "y": -y}), pa.table({"x": x2 * factor + shift, "y": -y2})).value
    assert 0 <= plain <= 1
    assert scaled == pytest.approx(plain, abs=1e-5)


def test_the_order_of_rows_does_not_matter() -> None:
    data = people()
    masked = noisy(data, 0.2)
    turned = synthetic(data, masked.take(pa.array(np.random.default_rng(0).permutation(len(data)))))
    assert PIL.score(data, turned).value == pytest.approx(PIL.score(data, masked).value, abs=1e-9)
    assert PIL.score(data, taken(data, np.arange(len(data))[::-1])).value == pytest.approx(0, abs=1e-9)


def test_a_resample_of_the_original_loses_half() -> None:
    """Its statistics move by one deviation, and 2Φ(|Z|) − 1 is uniform on [0, 1]."""
    draw = np.random.default_rng(8)
    data = microdata({"x": draw.normal(size=500)})
    found = [
        PIL.score(data, pa.table({"x": np.random.default_rng(s).choice(data.table()["x"].to_numpy(), 500)})) for s in range(200)
    ]
    # the loss of the mean is uniform on [0, 1]: its mean over 200 lies within 5 · 0.289/√200 of 1/2 but for one run in 10^6
    assert np.mean([score.parts["means"] for score in found]) == pytest.approx(0.5, abs=0.11)


# --- edges ------------------------------------------------------------------------------------------------------------


def test_a_deviation_of_zero_asks_for_equality() -> None:
    assert probabilistic_loss([0.0, 0.5, 0.5], [0.0, 0.0, math.inf]).tolist() == [0, 1, 0]


def test_a_constant_column_is_kept_or_lost() -> None:
    data = microdata({"c": [0.1] * 30, "x": np.arange(30.0)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = PIL.score(data, data)
        other = PIL.score(data, pa.table({"c": [0.2] * 30, "x": np.arange(30.0)}))
    assert same.value == 0
    assert other.parts["means"] == 0.5  # that of c is lost, that of x kept
    assert other.parts["variances"] == 0
    assert other.parts["column x"] == 0
    assert "correlations" not in other.parts  # there was none to lose


def test_a_statistic_that_is_gone_is_lost() -> None:
    draw = np.random.default_rng(0)
    data = microdata({"x": draw.normal(size=50), "y": draw.normal(size=50)})
    flat = PIL.score(data, pa.table({"x": np.full(50, data.table()["x"].to_numpy().mean()), "y": data.table()["y"]}))
    assert flat.parts["correlations"] == 1
    assert flat.parts["means"] == pytest.approx(0, abs=1e-9)
    empty = PIL.score(data, pa.table({"x": pa.nulls(50, pa.float64()), "y": data.table()["y"]}))
    assert empty.parts["correlations"] == empty.parts["covariances"] == 1
    assert empty.parts["means"] == 0.5


def test_columns_that_depend_on_each_other_exactly() -> None:
    x = np.arange(1.0, 41)
    data = microdata({"x": x, "y": 3 * x + 0.1})
    assert PIL.score(data, data).value == 0
    assert PIL.score(data, noisy(data, 0.01)).parts["correlations"] == 1


@pytest.mark.parametrize("size", [1e-300, 1e150])
def test_very_small_and_very_large_numbers_do_not_overflow(size: float) -> None:
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(2, 60))
    plain = PIL.score(microdata({"x": x}), pa.table({"x": y})).value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PIL.score(microdata({"x": x * size}), pa.table({"x": y * size})).value == pytest.approx(plain)


def test_one_record_is_kept_or_lost() -> None:
    data = microdata({"x": [1.0], "y": [2.0]})
    assert PIL.score(data, data).value == 0
    assert PIL.score(data, pa.table({"x": [5.0], "y": [2.0]})).parts["means"] == 0.5


def test_what_cannot_be_compared_is_refused() -> None:
    data = people(20)
    with pytest.raises(Unsupported, match="no column of numbers"):
        ProbabilisticInformationLoss(("sex",)).score(data, data)
    with pytest.raises(Unsupported, match="the masked table has no records"):
        PIL.score(data, data.table().slice(0, 0))
    with pytest.raises(Unsupported, match="the original table has no records"):
        PIL.score(data_like(data, data.table().slice(0, 0)), data.table())
    with pytest.raises(Unsupported, match="'x' has no known value"):
        PIL.score(microdata({"x": pa.nulls(3, pa.float64())}), pa.table({"x": [1.0, 2.0, 3.0]}))
    with pytest.raises(ParameterError, match="columns must be a list of one or more different columns"):
        ProbabilisticInformationLoss(()).score(data, data)
    with pytest.raises(InputError, match="original records"):
        PIL.score(data.table(), data)
