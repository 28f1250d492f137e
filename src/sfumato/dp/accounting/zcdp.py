"""Zero-concentrated differential privacy and what it means in ε and δ, with both inverse problems.

ρ-zCDP bounds the Rényi divergence of every order α by ρα, and every order gives a valid (ε, δ): the order is searched in
floating point, the bound at that order is then enclosed and rounded to the safe side, so that a poor search could only
cost tightness. Bun, Steinke, "Concentrated differential privacy", TCC 2016 (Proposition 1.3); Canonne, Kamath, Steinke,
"The discrete Gaussian for differential privacy", NeurIPS 2020 (Corollary 13).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from sfumato.core.declared import require
from sfumato.core.exact import Number, exact
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP
from sfumato.dp.accounting.enclosure import Enclosure

#: Orders are written as 1 plus a fraction with this many bits below one; the bound holds for any order.
_ORDER_BITS = 48


def epsilon_for(rho: Number, delta: Number) -> Fraction:
    """The smallest ε, rounded up, such that ρ-zCDP is certainly (ε, δ)-differential privacy.

    >>> float(epsilon_for("0.1", "1e-6"))
    2.14193892839
    """
    rho, delta = _not_negative(rho, "rho"), between_zero_and_one(delta, "delta")
    if rho == 0:
        return Fraction(0)
    order = best_order(lambda excess: _epsilon_at(float(rho), -log_of(delta), excess))
    return epsilon_of_order(order, rho * order, delta)


def delta_for(rho: Number, epsilon: Number) -> Fraction:
    """The smallest δ, rounded up, such that ρ-zCDP is certainly (ε, δ)-differential privacy."""
    rho, epsilon = _not_negative(rho, "rho"), _not_negative(epsilon, "epsilon")
    if rho == 0:
        return Fraction(0)
    order = best_order(lambda excess: _log_delta_at(float(rho), float(epsilon), excess))
    return delta_of_order(order, rho * order, epsilon)


def rho_for(epsilon: Number, delta: Number) -> Fraction:
    """The largest ρ, rounded down, such that ρ-zCDP is certainly (ε, δ)-differential privacy.

    >>> float(rho_for(1, "1e-6"))
    0.0243559703595
    """
    epsilon, delta = _not_negative(epsilon, "epsilon"), between_zero_and_one(delta, "delta")
    order = best_order(lambda excess: -_rho_at(float(epsilon), -log_of(delta), excess))
    room = Enclosure.of(epsilon) - _surcharge(order, delta)
    rho = (room / order).down()
    return max(rho, Fraction(0))


def epsilon_for_simple(rho: Number, delta: Number) -> Fraction:
    """The well-known formula ρ + 2√(ρ ln(1/δ)), rounded up: never below `epsilon_for`, a yardstick for it."""
    rho, delta = _not_negative(rho, "rho"), between_zero_and_one(delta, "delta")
    if rho == 0:
        return Fraction(0)
    return ((-Enclosure.of(delta).ln() * rho).sqrt() * 2 + rho).up()


def approx_from_zcdp(loss: ConcentratedDP, delta: Number) -> ApproxDP:
    """A zCDP loss stated as (ε, δ), for the same neighbours and unit."""
    return ApproxDP(epsilon_for(loss.rho, delta), delta, neighbours=loss.neighbours, unit=loss.unit)


def epsilon_of_order(order: Fraction, divergence: Fraction, delta: Fraction) -> Fraction:
    """The ε, rounded up, that a Rényi divergence of one order gives together with δ."""
    return max((_surcharge(order, delta) + divergence).up(), Fraction(0))


def delta_of_order(order: Fraction, divergence: Fraction, epsilon: Fraction) -> Fraction:
    """The δ, rounded up, that a Rényi divergence of one order gives together with ε."""
    above = order - 1
    exponent = Enclosure.of((divergence - epsilon) * above) + Enclosure.of(above / order).ln() * above - Enclosure.of(order).ln()
    if exponent.low > 0:
        return Fraction(1)
    return min(exponent.exp().up(), Fraction(1))


def best_order(cost: Callable[[float], float]) -> Fraction:
    """The order α whose cost, a function of α − 1 in floating point, is about the smallest.

    A golden-section search on the logarithm of α − 1; the costs fall and then rise.
    """
    low, high, ratio = -30.0, 40.0, (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = cost(math.exp(left)), cost(math.exp(right))
    for _ in range(70):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = cost(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = cost(math.exp(right))
    excess = math.exp((low + high) / 2)
    return 1 + max(Fraction(round(excess * 2**_ORDER_BITS), 2**_ORDER_BITS), Fraction(1, 2**_ORDER_BITS))


def log_of(value: Fraction) -> float:
    """The logarithm in floating point, of numbers too small for a float too."""
    return math.log(value.numerator) - math.log(value.denominator)


def between_zero_and_one(value: Number, name: str) -> Fraction:
    """A probability strictly between zero and one, exact."""
    number = exact(value, name)
    require(0 < number < 1, f"{name} must lie strictly between 0 and 1, for example 1e-6")
    return number


def _not_negative(value: Number, name: str) -> Fraction:
    number = exact(value, name)
    require(number >= 0, f"{name} must not be negative")
    return number


def _surcharge(order: Fraction, delta: Fraction) -> Enclosure:
    """What an (ε, δ) statement adds to the divergence of an order: ln(1/(αδ))/(α − 1) + ln(1 − 1/α)."""
    return -Enclosure.of(order * delta).ln() / (order - 1) + Enclosure.of(1 - 1 / order).ln()


def _epsilon_at(rho: float, log_inverse_delta: float, excess: float) -> float:
    return rho * (1 + excess) + (log_inverse_delta - math.log1p(excess)) / excess - math.log1p(1 / excess)


def _rho_at(epsilon: float, log_inverse_delta: float, excess: float) -> float:
    return (epsilon - (log_inverse_delta - math.log1p(excess)) / excess + math.log1p(1 / excess)) / (1 + excess)


def _log_delta_at(rho: float, epsilon: float, excess: float) -> float:
    return excess * ((1 + excess) * rho - epsilon) - math.log1p(excess) - excess * math.log1p(1 / excess)
