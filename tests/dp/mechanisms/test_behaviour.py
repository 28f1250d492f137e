"""What single mechanisms promise beyond the laws that all of them keep."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sfumato import dp
from sfumato.core.errors import BudgetRefused, ParameterError
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, Neighbours
from sfumato.core.randomness import default
from sfumato.dp.mechanisms.statistics.moments import UNIT, change, exact_moments
from sfumato.kernels.changes.channel import Channel
from sfumato.lessons.regression_leak import MILLIONAIRE, generated_incomes, least_squares
from tests.dp.mechanisms.cases import INCOMES
from tests.dp.mechanisms.test_laws import fits
from tests.examples import examples

BOTH: tuple[Neighbours, ...] = ("add_remove", "replace")


def median_law(records: tuple[int, ...], points: int, epsilon: float, neighbours: Neighbours) -> list[float]:
    """From the definition: every point scored by the ranks beside it."""
    change = 0.5 if neighbours == "add_remove" else 1.0
    scores = [-abs(0.5 * sum(x < c for x in records) - 0.5 * sum(x > c for x in records)) for c in range(points + 1)]
    weights = [math.exp(epsilon * score / (2 * change)) for score in scores]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("neighbours", BOTH)
def test_median_draws_the_exponential_mechanism(neighbours: Neighbours) -> None:
    mechanism, records, source = dp.Median(0, 6, 1, 6, neighbours=neighbours), (1, 1, 4, 6, 6), default(31)
    law = median_law(records, 6, 1, neighbours)
    drawn = [mechanism.answer(records, source) for _ in range(4000)]
    assert fits(drawn, {float(place): mass for place, mass in enumerate(law)})


@settings(max_examples=examples(15))
@given(st.lists(st.integers(0, 5), max_size=5), st.integers(0, 5), st.integers(0, 5), st.sampled_from(BOTH))
def test_the_law_of_the_median_is_private(rest: list[int], one: int, other: int, neighbours: Neighbours) -> None:
    tables = (tuple(rest), (*rest, one)) if neighbours == "add_remove" else ((*rest, one), (*rest, other))
    laws = [median_law(table, 5, 1.0, neighbours) for table in tables]
    assert Channel(laws).epsilon() <= 1 + 1e-9


@pytest.mark.parametrize("neighbours", BOTH)
def test_quantiles_rise_and_keep_their_rank_error(neighbours: Neighbours) -> None:
    """At 95 % for all answers together; false alarms below 1e-9."""
    wanted = [Fraction(k, 10) for k in range(1, 10)]
    mechanism = dp.Quantiles(tuple(wanted), 0, 10_000, 4, neighbours=neighbours)
    records, source = np.arange(2000) * 5.0, default(32)
    missed = 0
    for _ in range(20):
        answers = mechanism.answer(records, source)
        assert list(answers) == sorted(answers)
        ranks = np.searchsorted(records, answers)
        missed += bool(np.any(np.abs(ranks - [float(q) * 2000 for q in wanted]) > mechanism.rank_error()))
    assert missed <= binom.isf(1e-9, 20, 0.05)


def test_halving_beats_one_choice_per_quantile() -> None:
    """Nine quantiles take four levels, so each choice has a quarter of the budget and not a ninth."""
    mechanism = dp.Quantiles(tuple(Fraction(k, 10) for k in range(1, 10)), 0, 1, 1)
    assert mechanism._each == Fraction(1, 4)
    assert dp.Quantiles((0.5,), 0, 1, 1, neighbours="replace")._each == 1
    assert dp.Quantiles((0.25, 0.5, 0.75), 0, 1, 1, neighbours="replace")._each == Fraction(1, 4)


def test_extreme_quantiles_are_allowed() -> None:
    low, high = dp.Quantiles((0, 1), 0, 100, 50).answer([20.0] * 50 + [80.0] * 50, default(1))
    assert low <= 21 and high >= 79


@pytest.mark.parametrize("neighbours", BOTH)
@settings(max_examples=examples(20))
@given(
    rows=st.lists(st.tuples(st.floats(-1, 5), st.floats(-9, 9)), max_size=4),
    one=st.tuples(st.floats(-1, 5), st.floats(-9, 9)),
    two=st.tuples(st.floats(-1, 5), st.floats(-9, 9)),
)
def test_moments_change_by_no_more_than_stated(
    neighbours: Neighbours, rows: list[Any], one: tuple[float, float], two: tuple[float, float]
) -> None:
    bounds = [(Fraction(0), Fraction(4)), (Fraction(-8), Fraction(8))]
    tables = ([*rows], [*rows, one]) if neighbours == "add_remove" else ([*rows, two], [*rows, one])
    found = []
    for table in tables:
        array = np.array(table, dtype=float).reshape(-1, 2)
        count, sums, products = exact_moments([array[:, 0], array[:, 1]], bounds)
        found.append(np.concatenate([[count * (neighbours == "add_remove")], sums / UNIT, products / UNIT**2]))
    assert np.abs(found[0] - found[1]).sum() <= change(2, neighbours) + 1e-12


def test_variance_shares_one_epsilon_in_thirds() -> None:
    """Count, sum and sum of squares of values scaled to [-1, 1]: sensitivity 3, so a third of ε for each."""
    assert change(1, "add_remove") == 3
    assert dp.MeanAndVariance(0, 10, 1).loss().epsilon == 1
    both = dp.MeanAndVariance(0, 5000, 500).answer(INCOMES, default(2))
    assert both.mean == pytest.approx(np.mean(INCOMES), rel=1e-2)
    assert both.variance == pytest.approx(np.var(INCOMES), rel=1e-2)
    assert dp.Variance(0, 5000, "1/1000").answer([1.0], default(2)) >= 0


def test_covariance_is_symmetric_without_negative_variances() -> None:
    rows = np.column_stack([np.arange(50.0), 50 - np.arange(50.0), np.arange(50.0) % 7])
    matrix = dp.Covariance(((0, 50), (0, 50), (0, 7)), "1/5").answer(rows, default(4))
    assert np.allclose(matrix, matrix.T) and np.linalg.eigvalsh(matrix).min() >= -1e-6
    near = dp.Covariance(((0, 50), (0, 50), (0, 7)), 10**5).answer(rows, default(4))
    assert np.allclose(near, np.cov(rows.T, bias=True), atol=0.1)


def test_regression_finds_the_line_of_many_people() -> None:
    age = np.array([20 + 45 * (i % 1000) / 1000 for i in range(20_000)])
    income = 500 + 100 * age + 200 * np.sin(np.arange(20_000))
    fit = dp.Regression(((20, 65), (0, 10_000)), 2).answer(np.column_stack([age, income]), default(6))
    assert fit.coefficients[0] == pytest.approx(100, rel=0.05)
    assert fit.predict([[40.0]])[0] == pytest.approx(4500, rel=0.05)


def test_private_regression_does_not_betray_the_millionaire() -> None:
    """With declared bounds the outlier is clamped; the noise hides what is left."""
    people = generated_incomes()
    mechanism = dp.Regression(((20, 70), (0, 15_000)), 1)
    lines = [
        [mechanism.answer(table, default(seed)).coefficients[0] for seed in range(30)]
        for table in (people, [*people, MILLIONAIRE])
    ]
    moved, spread = abs(np.mean(lines[0]) - np.mean(lines[1])), np.std(lines[0])
    assert moved < 3 * spread
    assert least_squares([*people, MILLIONAIRE])[1] > 5 * least_squares(people)[1]


def test_two_predictors() -> None:
    x, y = np.meshgrid(np.arange(40.0), np.arange(40.0))
    rows = np.column_stack([x.ravel(), y.ravel(), 1 + 2 * x.ravel() - y.ravel()])
    fit = dp.Regression(((0, 40), (0, 40), (-40, 80)), 200).answer(rows, default(8))
    assert fit.coefficients == pytest.approx((2, -1), abs=0.02) and fit.intercept == pytest.approx(1, abs=0.5)


def test_buckets_are_half_open() -> None:
    mechanism = dp.Histogram(edges=(1000, 2000, 3000), epsilon=1)
    assert mechanism.counts([999.9, 1000, 1999.9, 2000, 2999, 3000, float("nan"), None]).tolist() == [2, 2]
    assert dp.Histogram(categories=("a", 1), epsilon=1).counts(["a", "b", 1, None]).tolist() == [1, 1]


def test_cells_of_a_map_include_the_outer_border() -> None:
    mechanism = dp.GridHistogram((0, 2), (0, 2), columns=2, rows=2, epsilon=1)
    points = [(0, 0), (1, 0), (2, 2), (0.5, 1.5), (2.1, 0), (float("nan"), 1)]
    assert mechanism.counts(points).tolist() == [[1, 1], [1, 1]]


def test_mean_from_a_histogram_is_guarded() -> None:
    assert dp.mean_from_histogram([-3, 1, -5], (0, 10, 20)) == 10
    assert dp.mean_from_histogram([-1, 0, 3], (0, 10, 20)) == 20
    assert 0 <= dp.HistogramMean((0, 10, 20), "1/100").answer([], default(3)) <= 20


def test_a_run_of_sparse_vector_is_refused_after_its_positives() -> None:
    run = dp.SparseVector(10, 1, 20, positives=2).start(default(1))
    asked = 0
    while not run.finished:
        run.above(100.0)
        asked += 1
    assert asked == 2 and repr(run) == "Run(left=0)"
    with pytest.raises(BudgetRefused, match="used up"):
        run.above(100.0)


def test_losses_are_stated_in_their_own_kind() -> None:
    assert dp.Laplace(1, 1, "1e-6").loss() == ApproxDP(1, "1e-6")
    assert dp.Gaussian(1, 1, "1e-6").loss() == ApproxDP(1, "1e-6")
    assert dp.Gaussian(1, rho="1/8", unit="person").loss() == ConcentratedDP("1/8", unit="person")
    assert dp.Gaussian(2, rho="1/8", step=1).variance == 16
    assert dp.Constant().loss().epsilon == 0


def test_a_vector_pays_for_the_rounding_of_each_coordinate() -> None:
    assert dp.Laplace(1, 1, coordinates=3, step=1).units == 3
    assert dp.Laplace(1, 1, step=1).units == 1
    fine = dp.Laplace(1, 1, coordinates=1000)
    assert 1 <= float(fine.scale) <= 1 + 1e-5


@pytest.mark.parametrize("mechanism", [dp.Laplace("0.3", "0.7"), dp.Gaussian("0.3", "0.7", "1e-6")])
def test_answers_lie_on_the_grid_whatever_the_value(mechanism: Any) -> None:
    """The precision attack has nothing to hold on to: every answer is a multiple of one step."""
    source, step = default(9), mechanism.grid.step
    for value in (0.1, 1 / 3, 1e-9, 12345.678):
        answers = [mechanism.answer(value, source) for _ in range(100)]
        assert all((Fraction(answer) / step).denominator == 1 for answer in answers)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda: dp.Laplace(1, 1, "1/10", coordinates=2), "one coordinate"),
        (lambda: dp.Laplace(1, 1, 1), "delta"),
        (lambda: dp.Laplace(1, 1, form="loose"), "form"),  # type: ignore[arg-type]
        (lambda: dp.Laplace(0, 1), "Constant"),
        (lambda: dp.Laplace(1, 1, coordinates=0), "coordinates"),
        (lambda: dp.Laplace(1, 1, step=0), "step"),
        (lambda: dp.Laplace(1, 1).answer([1.0, 2.0]), "coordinates"),
        (lambda: dp.Gaussian(1, 1), "never epsilon-private"),
        (lambda: dp.Gaussian(1, 1, "1e-6", rho=1), "rho alone"),
        (lambda: dp.Gaussian(1, 2, "1e-6", form="classic"), "analytic"),
        (lambda: dp.Geometric("1/2", 1), "Laplace"),
        (lambda: dp.Geometric(1, 1).answer(1.5), "whole numbers"),  # type: ignore[call-overload]
        (lambda: dp.Geometric(1, 1).answer([1.5]), "whole numbers"),  # type: ignore[list-item]
        (lambda: dp.TruncatedGeometric((1, 2)), "epsilon, or the ratio"),
        (lambda: dp.TruncatedGeometric((1, 1), 1), "different"),
        (lambda: dp.TruncatedGeometric((1, 2), ratio=1), "ratio"),
        (lambda: dp.BoundedLaplace(1, 0, 1, 1), "below upper"),
        (lambda: dp.ClampingDownMean(3, 3, 1), "declared"),
        (lambda: dp.NoisyAverage(0, 1, 1, neighbours="replace"), "ClampingDownMean"),
        (lambda: dp.NoisyAverage(0, 1, 1, count_share=1), "count_share"),
        (lambda: dp.TruncatedMean(0, 1, 1, 0), "min_size"),
        (lambda: dp.Exponential((), 1, 1), "candidates"),
        (lambda: dp.Exponential(("a", "a"), 1, 1), "different"),
        (lambda: dp.Exponential(("a", "b"), 1, 1).answer([1]), "one score"),
        (lambda: dp.Exponential(("a",), 1, 1, monotone=True, neighbours="replace"), "one direction"),
        (lambda: dp.SparseVector(1, 1, 1, positives=0), "positives"),
        (lambda: dp.RandomisedResponse(("a",), 1), "two"),
        (lambda: dp.Histogram(epsilon=1), "edges"),
        (lambda: dp.Histogram(edges=(2, 1), epsilon=1), "rise"),
        (lambda: dp.Quantiles((0.5, 0.2), 0, 1, 1), "rise"),
        (lambda: dp.Quantiles((1.5,), 0, 1, 1), "quantiles must be numbers from 0 to 1 that rise"),
        (lambda: dp.Covariance(((1, 0),), 1), "below"),
        (lambda: dp.Regression(((0, 1),), 1), "predictor"),
        (lambda: dp.Regression(((0, 1), (0, 1)), 1).answer([[1, 2, 3]]), "2 numbers"),
    ],
)
def test_what_would_not_hold_is_refused_with_its_reason(wrong: Any, why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        wrong()
