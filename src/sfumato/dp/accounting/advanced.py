"""Composition of many equal losses that trades a little δ for a much smaller ε.

Two yardsticks: the bound of Dwork, Rothblum and Vadhan, and the best bound that follows from (ε, δ) alone, which is the
exact trade-off of so many randomised responses. Dwork, Rothblum, Vadhan, "Boosting and differential privacy", FOCS 2010;
Kairouz, Oh, Viswanath, "The composition theorem for differential privacy", ICML 2015 (Theorem 3.3).
"""

from __future__ import annotations

from fractions import Fraction

from sfumato.core.declared import require
from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import ApproxDP, LossGuarantee
from sfumato.dp.accounting.conversion import as_approx
from sfumato.dp.accounting.enclosure import Enclosure
from sfumato.dp.accounting.zcdp import between_zero_and_one

_MOST = 20_000


def advanced_composition(loss: LossGuarantee, times: int, slack: Number) -> ApproxDP:
    """(ε√(2k ln(1/δ')) + kε(e^ε − 1), kδ + δ') with δ' = `slack`, rounded up."""
    one, slack = as_approx(loss), between_zero_and_one(slack, "slack")
    epsilon, delta = Fraction(one.epsilon), Fraction(one.delta)
    _check(times)
    if epsilon == 0:
        total = Fraction(0)
    else:
        spread = (Enclosure.of(slack).ln() * (-2 * times)).sqrt() * epsilon
        total = (spread + (Enclosure.of(epsilon).exp() - 1) * (times * epsilon)).up()
    return ApproxDP(total, min(times * delta + slack, Fraction(1)), neighbours=one.neighbours, unit=one.unit)


def optimal_composition(loss: LossGuarantee, times: int, delta: Number) -> ApproxDP:
    """The smallest ε, rounded up, for which `times` such losses certainly are (ε, δ) together.

    No bound that knows only ε and δ of one run can be smaller. The whole δ, that of the single losses included, is `delta`.
    """
    one, whole = as_approx(loss), between_zero_and_one(delta, "delta")
    _check(times)
    epsilon, single = Fraction(one.epsilon), Fraction(one.delta)
    # The losses' own δ leave 1 − (1 − δ)^k; what remains is the trade-off of k randomised responses.
    kept = Enclosure.of(1 - single).power(times) if single < 1 else Enclosure.of(0)
    require(kept.low > 0 and 1 - Fraction(kept.low) < whole, "delta must exceed that of the single losses together")
    room = 1 - (Enclosure.of(1 - whole) / kept)
    stated = ApproxDP(_largest_exponent(epsilon, times, room), whole, neighbours=one.neighbours, unit=one.unit)
    return stated


def _largest_exponent(epsilon: Fraction, times: int, room: Enclosure) -> Fraction:
    """max over m of ln((A − room)/B), where A and B are the masses of the m likeliest outcomes in the two worlds.

    The hockey-stick divergence is the largest A − e^ε' B over such sets, as the outcomes are sorted by their ratio; so
    it stays within the room exactly if e^ε' is at least each of these quotients.
    """
    if epsilon == 0:
        return Fraction(0)
    scale = (Enclosure.of(epsilon).exp() + 1).power(times)
    ways, here, there, best = 1, Enclosure.of(0), Enclosure.of(0), Fraction(0)
    for flips in range(times // 2 + 1):
        weight = Enclosure.of(ways) / scale
        here = here + weight * Enclosure.of(epsilon * (times - flips)).exp()
        there = there + weight * Enclosure.of(epsilon * flips).exp()
        excess = here - room
        if excess.high > 0:
            quotient = Enclosure(excess.high, excess.high) / Enclosure(there.low, there.low)
            best = max(best, quotient.ln().up())
        ways = ways * (times - flips) // (flips + 1)
    return min(best, times * epsilon)


def _check(times: int) -> None:
    require(isinstance(times, int) and 1 <= times <= _MOST, f"a mechanism is composed between 1 and {_MOST} times")
