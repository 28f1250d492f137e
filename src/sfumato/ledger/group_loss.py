"""The loss towards several units together: mε, (mε, δ(e^(mε) − 1)/(e^ε − 1)), m²ρ.

Two databases that differ in m units are joined by m steps of one unit each. Pure and concentrated losses stay exact
fractions; δ needs exponentials, which are enclosed by decimals of sixty digits and rounded up.
Dwork, Roth, "The algorithmic foundations of differential privacy", 2014 (Theorem 2.2); Vadhan, "The complexity of
differential privacy", 2017 (Lemma 2.2); Bun, Steinke, "Concentrated differential privacy", TCC 2016 (Proposition 1.9).
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from sfumato.core.errors import InputError
from sfumato.ledger.amounts import LossAmount

_UP = Context(60, ROUND_CEILING, MIN_EMIN, MAX_EMAX)
_DOWN = Context(60, ROUND_FLOOR, MIN_EMIN, MAX_EMAX)
_SHORT = Context(12, ROUND_CEILING, MIN_EMIN, MAX_EMAX)
#: From here on e^x times any δ that a ledger can hold is above 1.
_LARGEST = 10_000
#: Nobody has more rows than this.
MOST = 10**9


def grouped(loss: LossAmount, size: int) -> LossAmount:
    """What `size` units together lose where one loses `loss`.

    >>> str(grouped(LossAmount.pure("0.1"), 8)), str(grouped(LossAmount.zcdp("0.1"), 3))
    ('ε = 0.8', 'ρ = 0.9')
    """
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST:
        raise InputError(f"the number of rows of one unit is a whole number from 1 to {MOST:,}")
    if size == 1:
        return loss
    if loss.rho is not None:
        return LossAmount("zcdp", rho=loss.rho * size**2)
    epsilon = loss.epsilon or Fraction(0)
    if loss.delta is None:
        return LossAmount("pure", epsilon=epsilon * size)
    return LossAmount("approx", epsilon=epsilon * size, delta=_delta(epsilon, loss.delta, size))


def _delta(epsilon: Fraction, delta: Fraction, size: int) -> Fraction:
    """δ times 1 + e^ε + … + e^((m−1)ε), rounded up to twelve digits; from 1 on it says nothing, and is 1."""
    if epsilon == 0 or delta == 0:
        return min(delta * size, Fraction(1))
    if epsilon * (size - 1) > _LARGEST:
        return Fraction(1)
    # Every summand is at most the last: the bound where ε is so small that the quotient would lose its digits.
    factor = _UP.multiply(Decimal(size), _exponential(epsilon * (size - 1), _UP))
    growth = _DOWN.subtract(_exponential(epsilon, _DOWN), Decimal(1))
    if growth > 0:
        factor = min(factor, _UP.divide(_UP.subtract(_exponential(epsilon * size, _UP), Decimal(1)), growth))
    product = Fraction(factor) * delta
    if product >= 1:
        return Fraction(1)
    return min(Fraction(_SHORT.divide(Decimal(product.numerator), Decimal(product.denominator))), Fraction(1))


def _exponential(exponent: Fraction, context: Context) -> Decimal:
    """e to the power, on the context's side of the truth: Python rounds exponentials to the nearest decimal."""
    rounded = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    nearest = context.exp(rounded)
    return context.next_plus(nearest) if context is _UP else context.next_minus(nearest)
