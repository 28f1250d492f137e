"""One or more examples of every mechanism: with a value to answer and how far an answer is from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato import dp

D10 = [1000, 2000, 3000, 2000, 1000, 6000, 2000, 10000, 2000, 4000]
D16 = [1234, 1300, 1233, 1250, 1284, 2000, 2300, 2044, 2573, 2745, 2853, 2483, 3633, 3182, 3274, 3935]

INCOMES = [float(1000 + 37 * i % 4000) for i in range(400)]
PAIRS = [[i % 20, 2.0 * (i % 20) + (i * 7 % 5)] for i in range(1000)]
SCORES = {"a": 30, "b": 32.5, "c": 28, "d": 0}


@dataclass(frozen=True)
class Case:
    """`distance` gives one or several distances between an answer and the truth."""

    mechanism: dp.Mechanism[Any, Any]
    value: Any
    distance: Callable[[Any], Any]
    answers: int = 1000


def from_value(value: Any) -> Callable[[Any], Any]:
    return lambda answer: np.abs(np.asarray(answer, dtype=float) - np.asarray(value, dtype=float)).ravel()


def gap(answer: str) -> float:
    return max(SCORES.values()) - SCORES[answer]


def clamped_mean(values: list[float], low: float, high: float) -> float:
    return float(np.mean(np.clip(values, low, high)))


def scaled_products(rows: list[list[float]], bounds: list[tuple[float, float]]) -> np.ndarray[Any, Any]:
    table = np.array(
        [[(x - (low + high) / 2) / ((high - low) / 2) for x, (low, high) in zip(row, bounds, strict=True)] for row in rows]
    )
    return np.asarray(table.T @ table / len(rows))


BOUNDS = [(0.0, 20.0), (0.0, 50.0)]
NEEDLES = [0.0, 5.0, 40.0, 0.0, 60.0]
CELLS = [(i / 50, (i * i % 50) / 50) for i in range(50)]

IN_CELLS = np.histogram2d([y for _, y in CELLS], [x for x, _ in CELLS], bins=(2, 3), range=((0, 1), (0, 1)))[0]

CASES: dict[str, list[Case]] = {
    "BoundedLaplace": [
        Case(dp.BoundedLaplace(0, 10, 1, 1), 0.0, from_value(0)),
        Case(dp.BoundedLaplace(0, 10, 1, 1, neighbours="replace"), 4.0, from_value(4)),
        Case(dp.BoundedLaplace(0, 10, 1, "1/10"), 2.0, from_value(2)),
        Case(dp.BoundedLaplace(-1, 1, 2, 3, "naive"), 1.0, from_value(1)),
    ],
    "ClampingDownMean": [
        Case(dp.ClampingDownMean(2000, 4000, 1), D10, from_value(2700)),
        Case(dp.ClampingDownMean(0, 1, "1/2"), [1.0], from_value(1)),
    ],
    "Constant": [Case(dp.Constant(constant=999), D10, from_value(0))],
    "Covariance": [
        Case(dp.Covariance(tuple(BOUNDS), 1, size=1000), PAIRS, from_value(np.cov(np.array(PAIRS).T, bias=True))),
        Case(dp.Covariance(tuple(BOUNDS), 4, neighbours="replace"), PAIRS, from_value(np.cov(np.array(PAIRS).T, bias=True))),
    ],
    "Exponential": [
        Case(dp.Exponential(tuple(SCORES), 1, "1/2"), list(SCORES.values()), gap),
        Case(dp.Exponential(tuple(SCORES), 1, 1, monotone=True), SCORES, gap),
    ],
    "Gaussian": [
        Case(dp.Gaussian(1, "1/2", "1e-5"), 3.25, from_value(3.25)),
        Case(dp.Gaussian(2, "1/2", "1e-5", form="classic"), 3, from_value(3)),
        Case(dp.Gaussian(1, rho="1/10", coordinates=3), [1.0, 2.0, 3.0], from_value([1, 2, 3]), 400),
        Case(dp.Gaussian("0.3", 2, "1e-6", coordinates=2), [1.0, 2.0], from_value([1, 2]), 400),
    ],
    "Geometric": [
        Case(dp.Geometric(1, 1), 7, from_value(7)),
        Case(dp.Geometric(3, "1/2"), [1, 2, 3], from_value([1, 2, 3]), 400),
        Case(dp.Geometric(dp.Sensitivity.of(2, "replace", unit="person"), 4), -3, from_value(-3)),
    ],
    "GridHistogram": [Case(dp.GridHistogram((0, 1), (0, 1), 3, 2, "1/2"), CELLS, from_value(IN_CELLS), 400)],
    "Histogram": [
        Case(dp.Histogram(edges=(1000, 2000, 3000, 4000), epsilon=1), D16, from_value([5, 7, 4]), 400),
        Case(dp.Histogram(categories=("a", "b"), epsilon=1, neighbours="replace"), list("abbcb"), from_value([1, 3]), 400),
    ],
    "HistogramMean": [
        Case(dp.HistogramMean((0, 1000, 2000, 3000, 4000, 5000), 1, size=400), INCOMES, from_value(np.mean(INCOMES))),
        Case(dp.HistogramMean((0, 1000, 2000, 3000, 4000, 5000), 1), [], from_value(2500), 200),
    ],
    "Laplace": [
        Case(dp.Laplace(1, "1/2"), 3.25, from_value(3.25)),
        Case(dp.Laplace("0.3", 2, coordinates=2), [1.1, 2.2], from_value([1.1, 2.2]), 400),
        Case(dp.Laplace(1, "1/2", "1/10"), 0, from_value(0)),
        Case(dp.Laplace(1, "1/2", "1/10", "printed"), 0, from_value(0)),
    ],
    "MeanAndVariance": [
        Case(dp.MeanAndVariance(0, 5000, 1, size=400), INCOMES, lambda answer: abs(answer.variance - np.var(INCOMES)), 400),
        Case(dp.MeanAndVariance(0, 5000, 1), INCOMES, lambda answer: abs(answer.variance - np.var(INCOMES)), 200),
    ],
    "Median": [Case(dp.Median(0, 5000, 1), INCOMES, from_value(np.median(INCOMES)), 200)],
    "NoisyAverage": [
        Case(dp.NoisyAverage(1000, 5000, 1, size=400), INCOMES, from_value(np.mean(INCOMES))),
        Case(dp.NoisyAverage(1000, 5000, "1/10", size=10), INCOMES[:10], from_value(np.mean(INCOMES[:10]))),
    ],
    "PermuteAndFlip": [Case(dp.PermuteAndFlip(tuple(SCORES), 1, "1/2"), SCORES, gap)],
    "Quantiles": [
        Case(dp.Quantiles(("1/4", "1/2", "3/4"), 0, 5000, 2), INCOMES, from_value(np.quantile(INCOMES, [0.25, 0.5, 0.75])), 100),
        Case(
            dp.Quantiles(("1/4", 1), 0, 5000, 2, neighbours="replace"),
            INCOMES,
            from_value([np.quantile(INCOMES, 0.25), 5000]),
            100,
        ),
    ],
    "RandomisedResponse": [Case(dp.RandomisedResponse(("flu", "cold", "none"), 1), "flu", lambda answer: float(answer != "flu"))],
    "Redraw": [Case(dp.Redraw(0, 10, 1, 1), 1.0, from_value(1))],
    "Regression": [
        Case(
            dp.Regression(tuple(BOUNDS), 1, size=1000),
            PAIRS,
            lambda fit: np.abs(fit.moments.products - scaled_products(PAIRS, BOUNDS)).ravel(),
            400,
        )
    ],
    "ReportNoisyMax": [Case(dp.ReportNoisyMax(tuple(SCORES), 1, "1/2"), SCORES, gap)],
    "SparseVector": [
        Case(dp.SparseVector(30, 1, 2, positives=2), NEEDLES, lambda found: float(found != (False, False, True, False, True)))
    ],
    "TruncatedGeometric": [
        Case(dp.TruncatedGeometric((0, 1, 2, 3, 4), epsilon=1), 0, from_value(0)),
        Case(dp.TruncatedGeometric((0, 1, 2), ratio="1/2", form="renormalised"), 1, from_value(1)),
        Case(dp.TruncatedGeometric((0, 1, 2, 3, 4), ratio="1/2", sensitivity=2), 2, from_value(2)),
    ],
    "TruncatedMean": [
        Case(dp.TruncatedMean(2000, 4000, 1, 5, (1000, 100000)), D10, from_value(3300)),
        Case(
            dp.TruncatedMean(0, 100, 2, 400, neighbours="replace"),
            [float(i % 101) for i in range(400)],
            from_value(clamped_mean([i % 101 for i in range(400)], 0, 100)),
        ),
    ],
    "Variance": [Case(dp.Variance(0, 5000, 2, size=400), INCOMES, from_value(np.var(INCOMES)), 400)],
}

#: Rounding of records to places is inside the stated error; this is the slack of floating-point comparison alone.
SLACK = 1e-9
