"""No mechanism of this library is refuted on the worst neighbours we know, and each is when its claim is understated.

The tester is wrong with a chance of at most 1e-6 per call; randomness is seeded, and time is no limit.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, LossGuarantee, PureDP
from sfumato.core.randomness import StreamRandomness
from sfumato.dp.mechanisms.base import Mechanism
from sfumato.dp.refute.tester import Refutation, refute

dp = sf.dp
ABC = ("a", "b", "c")
RHO_DELTA = 1e-6

#: Mechanism and two neighbouring values, as far apart as the mechanism allows; several where the worst is not obvious.
CASES: dict[str, list[tuple[Mechanism[Any, Any], Any, Any]]] = {
    "BoundedLaplace": [
        (dp.BoundedLaplace(0, 10, sensitivity=1, epsilon=1), 0, 1),
        (dp.BoundedLaplace(0, 3, sensitivity=1, epsilon=1, steps=12), 2, 3),
    ],
    "ClampingDownMean": [(dp.ClampingDownMean(0, 1, epsilon=1), (1.0,), (0.0,)), (dp.ClampingDownMean(0, 1, 1), (), ())],
    "Constant": [(dp.Constant(999), (1, 2, 3), (1, 2))],
    "Covariance": [(dp.Covariance(((0, 1), (0, 1)), epsilon=1), [(1, 1), (0, 0)], [(1, 1)])],
    "Exponential": [
        (dp.Exponential(ABC, sensitivity=1, epsilon=1), (0, 0, 0), (1, 0, 0)),
        (dp.Exponential(ABC, sensitivity=1, epsilon=1), (0, 1, 1), (1, 0, 0)),
        (dp.Exponential(ABC, sensitivity=1, epsilon=1, monotone=True), (0, 0, 0), (1, 0, 0)),
    ],
    "Gaussian": [
        (dp.Gaussian(1, epsilon=1, delta="0.01"), 0, 1),
        (dp.Gaussian(1, rho="0.5"), 0, 1),
    ],
    "Geometric": [(dp.Geometric(sensitivity=1, epsilon=1), 3, 2), (dp.Geometric(sensitivity=5, epsilon=1), 0, 5)],
    "GridHistogram": [(dp.GridHistogram((0, 2), (0, 2), 2, 2, epsilon=1), [(0.5, 0.5), (2, 2)], [(0.5, 0.5)])],
    "Histogram": [
        (dp.Histogram(edges=(0, 1, 2, 3), epsilon=1), (0.5, 2.5), (0.5,)),
        (dp.Histogram(categories=("x", "y"), epsilon=1, neighbours="replace"), ("x",), ("y",)),
    ],
    "HistogramMean": [(dp.HistogramMean((0, 1, 2), epsilon=1), (0.5, 1.5), (0.5,))],
    "Laplace": [
        (dp.Laplace(1, epsilon=1), 0.0, 1.0),
        (dp.Laplace(1, epsilon=1), 0.3, 1.3),
        (dp.Laplace(1, epsilon="0.5", delta="0.1"), 0.0, 1.0),
        (dp.Laplace(2, epsilon=1, coordinates=2), (0.0, 0.0), (1.0, 1.0)),
    ],
    "MeanAndVariance": [(dp.MeanAndVariance(0, 1, epsilon=1), (1.0, 0.0), (1.0,))],
    "Median": [(dp.Median(0, 1, epsilon=1, points=64), (0.0, 1.0), (0.0,)), (dp.Median(0, 1, epsilon=1, points=64), (), (1.0,))],
    "NoisyAverage": [(dp.NoisyAverage(0, 1, epsilon=1), (1.0,), (1.0, 0.0)), (dp.NoisyAverage(0, 1, 1), (), (1.0,))],
    "PermuteAndFlip": [
        (dp.PermuteAndFlip(ABC, sensitivity=1, epsilon=1), (0, 0, 0), (1, 0, 0)),
        (dp.PermuteAndFlip(ABC, sensitivity=1, epsilon=1), (0, 1, 1), (1, 0, 0)),
    ],
    "Quantiles": [(dp.Quantiles(("0.25", "0.75"), 0, 1, epsilon=1, points=64), (0.0, 1.0, 1.0), (0.0, 1.0))],
    "RandomisedResponse": [(dp.RandomisedResponse(ABC, epsilon=1), "a", "b")],
    "Redraw": [(dp.Redraw(0, 10, sensitivity=1, epsilon=1), 0, 1)],
    "Regression": [(dp.Regression(((0, 1), (0, 1)), epsilon=1), [(1, 1), (0, 0)], [(0, 0)])],
    "ReportNoisyMax": [
        (dp.ReportNoisyMax(ABC, sensitivity=1, epsilon=1), (0, 0, 0), (1, 0, 0)),
        (dp.ReportNoisyMax(ABC, sensitivity=1, epsilon=1), (0, 1, 1), (1, 0, 0)),
    ],
    "SparseVector": [
        (dp.SparseVector(1, sensitivity=1, epsilon=1), (0, 0, 0, 1), (1, 1, 1, 0)),
        (dp.SparseVector(1, sensitivity=1, epsilon=1, positives=2), (0, 1, 0, 1), (1, 0, 1, 0)),
        (dp.SparseVector(1, sensitivity=1, epsilon=1, monotone=True), (0, 0, 0, 0), (1, 1, 1, 1)),
    ],
    "TruncatedGeometric": [
        (dp.TruncatedGeometric((30, 40, 50), epsilon=1), 30, 40),
        (dp.TruncatedGeometric((30, 40, 50), ratio="1/2", form="renormalised"), 30, 40),
    ],
    "TruncatedMean": [
        (dp.TruncatedMean(0, 1, epsilon=1, neighbours="replace"), (0.0,), (1.0,)),
        (dp.TruncatedMean(0, 1, epsilon=1), (0.0,), (0.0, 1.0)),
        (dp.TruncatedMean(0, 1, epsilon=1), (), (1.0,)),
    ],
    "Variance": [(dp.Variance(0, 1, epsilon=1), (1.0, 0.0), (1.0,))],
}

#: Their loss is attained at the neighbours above, so that a claim of 0.6 ε must fall.
TIGHT = (
    "ClampingDownMean",
    "Geometric",
    "Laplace",
    "RandomisedResponse",
    "TruncatedGeometric",
    "TruncatedMean",
)

SAMPLES = 5_000
#: Where an answer is several draws, of which each alone is among the others.
FEWER = {"Covariance": 2_000, "GridHistogram": 2_500, "MeanAndVariance": 2_000, "Quantiles": 2_500, "Regression": 1_300}

PAIRS = [(name, place) for name, cases in CASES.items() for place in range(len(cases))]


def exported() -> set[str]:
    found = set()
    for name in dp.__all__:
        value = getattr(dp, name)
        if inspect.isclass(value) and issubclass(value, Mechanism) and not inspect.isabstract(value):
            found.add(name)
    return found


def claim(loss: LossGuarantee) -> tuple[float, float]:
    """ε, rounded up in its ninth digit where it is no short decimal, and δ."""
    if isinstance(loss, ConcentratedDP):
        rho = float(loss.rho)
        return math.ceil((rho + 2 * math.sqrt(rho * math.log(1 / RHO_DELTA))) * 1e9) / 1e9, RHO_DELTA
    assert isinstance(loss, (PureDP, ApproxDP))
    delta = float(loss.delta) if isinstance(loss, ApproxDP) else 0.0
    return math.ceil(float(loss.epsilon) * 1e9) / 1e9, delta


def tried(name: str, place: int, share: float, samples: int) -> Refutation:
    mechanism, first, second = CASES[name][place]
    source = StreamRandomness(f"{name} {place}")
    epsilon, delta = claim(mechanism.loss())
    return refute(
        lambda value: mechanism.answer(value, source),
        (first, second),
        round(share * epsilon, 9),
        delta,
        samples=samples,
        seconds=3000,
    )


def test_every_mechanism_has_a_case() -> None:
    assert exported() == set(CASES)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "place"), PAIRS)
def test_no_mechanism_is_refuted(name: str, place: int) -> None:
    found = tried(name, place, 1.0, FEWER.get(name, SAMPLES))
    assert not found.refuted, found.explain()


@pytest.mark.stress
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("name", "place"), PAIRS)
def test_no_mechanism_is_refuted_by_many_draws(name: str, place: int) -> None:
    found = tried(name, place, 1.0, 80_000)
    assert not found.refuted, found.explain()


@pytest.mark.parametrize("name", TIGHT)
def test_an_understated_claim_is_refuted(name: str) -> None:
    assert tried(name, 0, 0.6, SAMPLES).refuted
