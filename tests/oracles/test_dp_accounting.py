"""Accounting against dp-accounting: equal where both are exact, never below it where ours is a bound."""

from __future__ import annotations

import math
from fractions import Fraction

import dp_accounting
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant as rdp

from sfumato.core.guarantees.loss import ConcentratedDP, PureDP, RenyiDP
from sfumato.dp.accounting.advanced import optimal_composition
from sfumato.dp.accounting.composition import repeated, sequential
from sfumato.dp.accounting.gaussian import discrete_gaussian_delta, gaussian_delta, gaussian_epsilon, gaussian_sigma
from sfumato.dp.accounting.numeric import Events, NoisyAnswer
from sfumato.dp.accounting.renyi import approx_from_renyi, laplace_divergence
from sfumato.dp.accounting.zcdp import epsilon_for

pytestmark = pytest.mark.oracle


DELTA = "1e-5"


def renyi_epsilon(event: object, orders: list[float] | None = None) -> float:
    accountant = rdp.RdpAccountant(orders) if orders else rdp.RdpAccountant()
    accountant.compose(event)
    return float(accountant.get_epsilon(float(DELTA)))


@pytest.mark.slow
def test_a_thousand_sampled_gaussian_steps() -> None:
    """The anchor: deviation 1, one in a hundred, a thousand steps. 1.828 by numbers, 2.101 by Rényi orders."""
    ours = Events((NoisyAnswer("gaussian", 1, times=1000, sampling="0.01"),)).epsilon(DELTA)
    assert float(ours.epsilon) == pytest.approx(1.828, abs=5e-4)
    sampled = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
    assert renyi_epsilon(dp_accounting.SelfComposedDpEvent(sampled, 1000)) == pytest.approx(2.101, abs=5e-4)


@pytest.mark.parametrize(("sigma", "epsilon"), [(1, "1"), (5, "0.5"), (20, "0.1"), ("0.7", "4")])
def test_the_gaussian_mechanism_agrees(sigma: str | int, epsilon: str) -> None:
    theirs = pld.from_gaussian_mechanism(float(Fraction(sigma))).get_delta_for_epsilon(float(epsilon))
    assert float(gaussian_delta(epsilon, sigma)) == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize(("epsilon", "delta"), [("0.5", "1e-5"), ("1", "1e-6"), ("8", "1e-9")])
def test_the_calibrated_deviation_agrees_and_is_not_below(epsilon: str, delta: str) -> None:
    ours = gaussian_sigma(epsilon, delta)
    theirs = dp_accounting.get_sigma_gaussian(float(epsilon), float(delta))
    assert float(ours) == pytest.approx(theirs, rel=1e-6)
    assert float(dp_accounting.get_epsilon_gaussian(float(ours), float(delta))) <= float(epsilon) * (1 + 1e-6)


@pytest.mark.parametrize(("variance", "sensitivity"), [(4, 1), (100, 3), ("0.5", 1)])
def test_the_discrete_gaussian_agrees(variance: str | int, sensitivity: int) -> None:
    """Their value is pessimistic by its grid, ours exact: within their grid and not above."""
    ours = float(discrete_gaussian_delta("0.3", variance, sensitivity))
    theirs = pld.from_discrete_gaussian_mechanism(math.sqrt(Fraction(variance)), sensitivity).get_delta_for_epsilon(0.3)
    assert ours == pytest.approx(theirs, rel=2e-3)
    assert ours <= theirs * (1 + 1e-9)


@pytest.mark.parametrize("rho", ["0.01", "0.1", "1"])
def test_zcdp_means_what_their_rényi_accountant_says(rho: str) -> None:
    orders = [1 + step / 20 for step in range(1, 2000)]
    theirs = renyi_epsilon(dp_accounting.ZCDpEvent(float(rho)), orders)
    ours = float(epsilon_for(rho, DELTA))
    assert ours <= theirs + 1e-9  # theirs is restricted to some orders
    assert ours == pytest.approx(theirs, rel=1e-3)


@pytest.mark.parametrize("times", [1, 5, 30])
def test_composed_gaussians_are_never_understated(times: int) -> None:
    """Sums of ρ against the exact loss of so many Gaussian answers, which is that of one with less noise."""
    total = sequential(*[ConcentratedDP(Fraction(1, 50))] * times)
    ours = float(epsilon_for(total.rho, DELTA))  # type: ignore[attr-defined]
    tight = float(Events((NoisyAnswer("gaussian", 5, times=times),)).epsilon(DELTA).epsilon)
    squared = Fraction(25, times)
    exact = float(gaussian_epsilon(Fraction(math.isqrt(squared.numerator * 10**24 // squared.denominator), 10**12), DELTA))
    assert ours >= tight >= exact * (1 - 1e-9)
    assert tight == pytest.approx(exact, rel=1e-3)
    assert ours == pytest.approx(exact, rel=0.15)


@pytest.mark.parametrize("times", [1, 10, 100])
def test_composed_pure_losses_are_never_understated(times: int) -> None:
    """Laplace answers: numeric ≤ best bound from ε alone ≤ plain sum."""
    tight = float(Events((NoisyAnswer("laplace", 10, times=times),)).epsilon(DELTA).epsilon)
    best = float(optimal_composition(PureDP("0.1"), times, DELTA).epsilon)
    plain = float(repeated(PureDP("0.1"), times).epsilon)  # type: ignore[attr-defined]
    assert tight <= best * (1 + 1e-6) <= plain * (1 + 2e-6)


@pytest.mark.parametrize("times", [3, 40])
def test_the_best_bound_is_that_of_randomised_responses(times: int) -> None:
    likely = math.exp(0.2) / (1 + math.exp(0.2))
    law = pld.from_randomized_response(2 * (1 - likely), 2, value_discretization_interval=1e-5).self_compose(times)
    ours = float(optimal_composition(PureDP("0.2"), times, DELTA).epsilon)
    theirs = law.get_epsilon_for_delta(float(DELTA))
    assert ours == pytest.approx(theirs, rel=1e-3)
    assert ours <= theirs + 1e-9


def test_rényi_curves_of_laplace_agree() -> None:
    orders = [2.0, 4.0, 8.0, 16.0, 32.0]
    event = dp_accounting.SelfComposedDpEvent(dp_accounting.LaplaceDpEvent(5.0), 20)
    theirs = renyi_epsilon(event, orders)
    losses = [RenyiDP(int(order), 20 * laplace_divergence(5, 1, int(order))) for order in orders]
    ours = float(approx_from_renyi(*losses, delta=DELTA).epsilon)
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert ours >= theirs * (1 - 1e-9)


def test_different_noises_compose() -> None:
    """Mixed answers: their accountant on the same events, within the grid of privacy losses."""
    events = Events().then(
        NoisyAnswer("laplace", 10, times=3), NoisyAnswer("gaussian", 8, times=2), NoisyAnswer("discrete_laplace", 20)
    )
    accountant = PLDAccountant()
    accountant.compose(dp_accounting.LaplaceDpEvent(10.0), 3)
    accountant.compose(dp_accounting.GaussianDpEvent(8.0), 2)
    accountant.compose(dp_event.DiscreteLaplaceDpEvent(1 / 20, 1))
    ours = events.epsilon(DELTA)
    assert float(ours.epsilon) == pytest.approx(accountant.get_epsilon(float(DELTA)), rel=1e-6)
    assert float(events.delta(ours.epsilon).delta) == pytest.approx(1e-5, rel=1e-3)
