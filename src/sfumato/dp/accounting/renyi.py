"""Rényi differential privacy: what common mechanisms cost at each order, and what an order means in ε and δ.

Each curve is a closed form, enclosed and rounded up; δ follows from the divergence of one order by the tight conversion.
Mironov, "Rényi differential privacy", CSF 2017 (Table II, Proposition 6); Bun, Steinke, "Concentrated differential
privacy", TCC 2016 (Proposition 3.3); Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy",
NeurIPS 2020 (Proposition 12).
"""

from __future__ import annotations

from fractions import Fraction

from sfumato.core.declared import require
from sfumato.core.exact import Number, exact
from sfumato.core.guarantees.loss import ApproxDP, RenyiDP
from sfumato.dp.accounting.enclosure import Enclosure
from sfumato.dp.accounting.zcdp import between_zero_and_one, delta_of_order, epsilon_of_order


def pure_divergence(epsilon: Number, order: Number) -> Fraction:
    """The largest divergence of this order under ε-differential privacy, rounded up: randomised response attains it."""
    epsilon, order = _positive(epsilon, "epsilon", zero=True), _order(order)
    if epsilon == 0:
        return Fraction(0)
    rise = Enclosure.of(epsilon * order).exp() + Enclosure.of(epsilon * (1 - order)).exp()
    divergence = (rise / (Enclosure.of(epsilon).exp() + 1)).ln() / (order - 1)
    # No divergence exceeds ε, and none ε²α/2; rounding up must not make the tight value the worse one.
    return min(divergence.up(), epsilon, epsilon**2 * order / 2)


def gaussian_divergence(sigma: Number, sensitivity: Number, order: Number) -> Fraction:
    """α·sensitivity²/(2σ²), exact; the discrete Gaussian never exceeds it."""
    return _order(order) * (_positive(sensitivity, "sensitivity", zero=True) / _positive(sigma, "sigma")) ** 2 / 2


def laplace_divergence(scale: Number, sensitivity: Number, order: Number) -> Fraction:
    """The divergence of Laplace noise on real numbers, rounded up."""
    order, ratio = _order(order), _positive(sensitivity, "sensitivity", zero=True) / _positive(scale, "scale")
    if ratio == 0:
        return Fraction(0)
    up = Enclosure.of((order - 1) * ratio).exp() * (order / (2 * order - 1))
    down = Enclosure.of(-order * ratio).exp() * ((order - 1) / (2 * order - 1))
    return min(((up + down).ln() / (order - 1)).up(), ratio)


def discrete_laplace_divergence(scale: Number, sensitivity: int, order: Number) -> Fraction:
    """The divergence of discrete Laplace noise (the geometric mechanism) on whole numbers, rounded up."""
    order, scale = _order(order), _positive(scale, "scale")
    require(isinstance(sensitivity, int) and sensitivity >= 0, "the sensitivity of a whole-number query is a whole number")
    if sensitivity == 0:
        return Fraction(0)
    decay = Enclosure.of(-1 / scale).exp()
    far, near = Enclosure.of((order - 1) * sensitivity / scale).exp(), Enclosure.of(-order * sensitivity / scale).exp()
    step = Enclosure.of(-(2 * order - 1) / scale).exp()
    between = step * (1 - Enclosure.of(-(2 * order - 1) * (sensitivity - 1) / scale).exp()) / (1 - step)
    mass = ((far + near) / (1 - decay) + far * between) * (1 - decay) / (decay + 1)
    return min((mass.ln() / (order - 1)).up(), sensitivity / scale)


def randomised_response_divergence(truth: Number, answers: int, order: Number) -> Fraction:
    """The divergence, rounded up, of giving the true one of some answers with probability `truth`, else any other one."""
    order, truth = _order(order), between_zero_and_one(truth, "truth")
    require(isinstance(answers, int) and answers >= 2, "there are at least two answers")
    other = (1 - truth) / (answers - 1)
    if truth == other:
        return Fraction(0)
    honest, lie = Enclosure.of(truth), Enclosure.of(other)
    mass = honest.power(order) * lie.power(1 - order) + lie.power(order) * honest.power(1 - order) + other * (answers - 2)
    return max((mass.ln() / (order - 1)).up(), Fraction(0))


def approx_from_renyi(*losses: RenyiDP, delta: Number) -> ApproxDP:
    """The smallest (ε, δ), rounded up, that follows from bounds of one release at one or several orders."""
    require(bool(losses), "at least one Rényi loss is needed")
    first = losses[0]
    require(
        all((loss.neighbours, loss.unit) == (first.neighbours, first.unit) for loss in losses),
        "the orders of one release state the same neighbours and unit",
    )
    chance = between_zero_and_one(delta, "delta")
    epsilon = min(epsilon_of_order(Fraction(loss.order), Fraction(loss.epsilon), chance) for loss in losses)
    return ApproxDP(epsilon, chance, neighbours=first.neighbours, unit=first.unit)


def delta_from_renyi(*losses: RenyiDP, epsilon: Number) -> Fraction:
    """The smallest δ, rounded up, that follows for this ε from bounds at one or several orders."""
    require(bool(losses), "at least one Rényi loss is needed")
    at = _positive(epsilon, "epsilon", zero=True)
    return min(delta_of_order(Fraction(loss.order), Fraction(loss.epsilon), at) for loss in losses)


def _order(order: Number) -> Fraction:
    number = exact(order, "order")
    require(number > 1, "order must be above 1")
    return number


def _positive(value: Number, name: str, *, zero: bool = False) -> Fraction:
    number = exact(value, name)
    require(number >= 0 if zero else number > 0, f"{name} must {'not be negative' if zero else 'be above 0'}")
    return number
