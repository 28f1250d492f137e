"""The upper tail of the normal law, enclosed to more than twenty digits.

Up to 3 by a power series of positive terms with a geometric bound on the rest; beyond by Laplace's continued fraction,
whose convergents lie in turn above and below the value. All terms are positive, so that rounding errors stay relative
and are bounded by four units of the last place per term.
Abramowitz, Stegun, "Handbook of mathematical functions", 1964, 26.2.11 and 26.2.14.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

from sfumato.dp.accounting.enclosure import NEAREST, PI, PRECISION, Enclosure

_TERMS = 160
_RELATIVE_ERROR = Decimal(4 * (_TERMS + 1)).scaleb(1 - PRECISION)


def upper_tail(x: Enclosure) -> Enclosure:
    """The probability that a standard normal number exceeds x."""
    return Enclosure(_tail_at(x.high).low, _tail_at(x.low).high)


def density(x: Enclosure) -> Enclosure:
    """The density of the standard normal law."""
    return (x * x / -2).exp() / (PI * 2).sqrt()


def _tail_at(point: Decimal) -> Enclosure:
    if point < 0:
        return (1 - _tail_at(point.copy_negate())).most(0)
    x = Enclosure(point, point)
    if point < 3:
        return Enclosure.of(1) / 2 - density(x) * _series(point)
    return density(x) / _continued_fraction(point)


def _series(x: Decimal) -> Enclosure:
    """x + x³/3 + x⁵/(3·5) + …, for x below 3."""
    with localcontext(NEAREST):
        square, term, total = x * x, x, x
        for step in range(1, _TERMS):
            term = term * square / (2 * step + 1)
            total += term
            if step > 8 and term <= total.scaleb(-PRECISION):
                break
        # Each further term is less than half of the one before, so the rest is less than the last term.
        return Enclosure(total * (1 - _RELATIVE_ERROR), (total + term) * (1 + _RELATIVE_ERROR))


def _continued_fraction(x: Decimal) -> Enclosure:
    """x + 1/(x + 2/(x + 3/(x + …))), for x from 3 on: the density divided by the tail."""
    with localcontext(NEAREST):
        ends = []
        # The further out, the sooner two convergents agree; two neighbours enclose the value at any depth.
        terms = min(_TERMS, 10 + int(1400 / (x * x)))
        for depth in (terms, terms - 1):
            value = x
            for step in range(depth, 0, -1):
                value = x + step / value
            ends.append(value)
        return Enclosure(min(ends) * (1 - _RELATIVE_ERROR), max(ends) * (1 + _RELATIVE_ERROR))
