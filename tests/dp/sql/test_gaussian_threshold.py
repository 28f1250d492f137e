"""Keys discovered with Gaussian noise: the whole answer of neighbours is (ε, δ)-close, computed and not sampled."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.dp.accounting.zcdp import epsilon_for
from sfumato.dp.algorithms.stability import gaussian_tail, gaussian_threshold
from sfumato.dp.sql.measuring.noise import Price, Request, price
from tests.dp.sql.database import session

UNITS = "SELECT coupon, COUNT(DISTINCT customer_id) AS n FROM orders GROUP BY coupon"
_REACH = 4000


def law(variance: Fraction) -> np.ndarray:
    """The discrete Gaussian from -_REACH to _REACH."""
    weights = np.exp(-(np.arange(-_REACH, _REACH + 1, dtype=float) ** 2) / (2 * float(variance)))
    return weights / weights.sum()


@pytest.mark.parametrize("variance", [Fraction(1, 9), Fraction(1), Fraction(37, 5), Fraction(4000)])
def test_the_tail_is_bounded_from_above_and_by_at_most_one_step(variance: Fraction) -> None:
    weights = law(variance)
    for value in (1, 2, 3, 10, 40, 120):
        exact = float(weights[_REACH + value :].sum())
        assert exact <= gaussian_tail(variance, value)
        assert gaussian_tail(variance, value + 1) <= exact + 1e-15 or value > 8 * math.sqrt(variance)


@pytest.mark.parametrize("delta", ["1e-2", "1e-6", "1e-12", "1e-100"])
def test_the_threshold_is_the_least_that_the_bound_allows(delta: str) -> None:
    for variance, keys in ((Fraction(1), 1), (Fraction(100), 7), (Fraction(10**9), 3)):
        least = gaussian_threshold(variance, Fraction(delta), keys)
        allowed = float(Fraction(delta)) / keys
        assert gaussian_tail(variance, least - 1) <= allowed
        assert least == 2 or gaussian_tail(variance, least - 2) > allowed * (1 - 1e-9)


def priced(request: Request, groups: int) -> Price:
    shop = session()
    question = shop._question(shop._parsed(UNITS), None)
    return price(question, request, shop._bounded(1, groups))


def outcomes(units: int, noise: np.ndarray, least: int) -> np.ndarray:
    """How likely each shown number of a group with so many units is, from the threshold up; the first is that it is not shown."""
    if units == 0:
        return np.eye(1, _REACH)[0]  # a group without units does not exist
    numbers = np.arange(-_REACH, _REACH + 1) + units
    shown = np.zeros(_REACH)
    places = numbers - least + 1
    inside = (places >= 1) & (places < _REACH)
    shown[places[inside]] = noise[inside]
    shown[0] = 1 - shown.sum()
    return shown


def beyond(one: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """The least δ for which one is (ε, δ)-close to the other."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


@pytest.mark.parametrize(
    "request_",
    [Request(rho="0.5", delta="0.02"), Request(rho="0.05", delta="0.001"), Request(epsilon=2, delta="0.01")],
    ids=["rho 0.5", "rho 0.05", "epsilon 2"],
)
@pytest.mark.parametrize("others", [1, 5, 30])
def test_one_unit_that_alone_holds_a_group_and_shares_another_changes_no_answer_beyond_the_loss(
    request_: Request, others: int
) -> None:
    """The unit is in two groups: one with `others` units, one of its own. All pairs of shown numbers are summed."""
    cost = priced(request_, 2)
    noise = cost.noises[cost.units or ""]
    loss = cost.loss
    assert noise.law == "gaussian" or request_.epsilon is not None
    weights = law(noise.amount) if noise.law == "gaussian" else _laplace(noise.amount)
    least = cost.threshold or 0
    width = 500
    sides = []
    for shared, own in ((others + 1, 1), (others, 0)):
        pair = [outcomes(units, weights, least)[:width] for units in (shared, own)]
        sides.append(np.outer(*pair).ravel())
    epsilon, delta = float(Fraction(loss.epsilon)), float(Fraction(loss.delta))  # type: ignore[attr-defined]
    assert beyond(sides[0], sides[1], epsilon) <= delta
    assert beyond(sides[1], sides[0], epsilon) <= delta
    assert sides[0].sum() > 1 - 1e-6


def _laplace(scale: Fraction) -> np.ndarray:
    weights = np.exp(-np.abs(np.arange(-_REACH, _REACH + 1, dtype=float)) / float(scale))
    return weights / weights.sum()


def test_what_is_charged_follows_from_rho_at_half_of_delta() -> None:
    cost = priced(Request(rho="0.1", delta="1e-6"), 3)
    assert cost.loss == sf.ApproxDP(epsilon_for("0.1", "5e-7"), "1e-6", unit="customer_id")
    assert {noise.law for noise in cost.noises.values()} == {"gaussian"}
    assert cost.threshold == gaussian_threshold(cost.noises[cost.units or ""].amount, Fraction(1, 2 * 10**6), 3)


def test_the_smaller_noise_is_taken_for_epsilon_and_delta() -> None:
    few, many = (priced(Request(epsilon=1, delta="1e-6"), groups) for groups in (1, 100))
    assert few.noises[few.units or ""].law == "laplace" and many.noises[many.units or ""].law == "gaussian"
    assert many.loss == few.loss == sf.ApproxDP(1, "1e-6", unit="customer_id")


def test_declared_keys_cost_rho_alone() -> None:
    shop = session()
    declared = shop.explain(UNITS, rho="0.1", delta="1e-6", keys={"coupon": ["spring", "summer"]})
    assert declared.loss == sf.ConcentratedDP("0.1", unit="customer_id") and declared.threshold is None
    with pytest.raises(Unsupported, match="rho and delta"):
        shop.explain(UNITS, rho="0.1")
    with pytest.raises(ParameterError, match="either with delta"):
        shop.explain(UNITS, rho="0.1", epsilon=1, delta="1e-6")


def test_frequent_keys_are_found_and_repeats_cost_nothing() -> None:
    shop = session(max_rows=5, max_groups=3)
    answer = shop.sql("SELECT coupon, COUNT(*) AS n FROM orders GROUP BY coupon", rho=20, delta="1e-6")
    assert {None, "spring", "summer"} <= set(answer.table["coupon"].to_pylist())
    left = shop.remaining()
    again = shop.sql("SELECT coupon AS c, COUNT(*) / 2 AS half FROM orders GROUP BY coupon", rho=20, delta="1e-6")
    assert again.repeated and shop.remaining() == left and again.table.num_rows == answer.table.num_rows
