"""Enclosures of real numbers: two decimals of sixty digits between which the true value certainly lies.

Exponentials, logarithms and roots of Python's decimal arithmetic are correctly rounded, so the neighbouring decimals
enclose the true value; sums, products and quotients are rounded outwards. A result leaves as a fraction of few digits,
rounded to the side that its user calls safe.
Moore, "Interval analysis", Prentice-Hall 1966; Cowlishaw, "General decimal arithmetic specification" (correct rounding).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from fractions import Fraction

from sfumato.core.errors import ParameterError

#: Working precision in decimal digits.
PRECISION = 60

#: Digits of a result; the twelfth digit is the one that is rounded to the safe side.
DIGITS = 12

#: Results are multiples of 10 to minus this, so that they fit what `core.exact` holds.
PLACES = 60

_LARGEST_EXPONENT = 10**6


def _context(rounding: str, precision: int = PRECISION) -> Context:
    return Context(precision, rounding, MIN_EMIN, MAX_EMAX, traps=[InvalidOperation, DivisionByZero, Overflow])


_DOWN, _UP = _context(ROUND_FLOOR), _context(ROUND_CEILING)

#: Arithmetic to the nearest decimal of the working precision.
NEAREST = _context(ROUND_HALF_EVEN)


@dataclass(frozen=True)
class Enclosure:
    """All numbers from `low` to `high`, both included."""

    low: Decimal
    high: Decimal

    @classmethod
    def of(cls, value: Fraction | int) -> Enclosure:
        """The decimals nearest to a rational number from below and above."""
        value = Fraction(value)
        top, bottom = Decimal(value.numerator), Decimal(value.denominator)
        return cls(_DOWN.divide(top, bottom), _UP.divide(top, bottom))

    def __add__(self, other: Enclosure | Fraction | int) -> Enclosure:
        them = _enclosed(other)
        return Enclosure(_DOWN.add(self.low, them.low), _UP.add(self.high, them.high))

    def __neg__(self) -> Enclosure:
        return Enclosure(self.high.copy_negate(), self.low.copy_negate())

    def __sub__(self, other: Enclosure | Fraction | int) -> Enclosure:
        return self + -_enclosed(other)

    def __rsub__(self, other: Fraction | int) -> Enclosure:
        return _enclosed(other) - self

    def __mul__(self, other: Enclosure | Fraction | int) -> Enclosure:
        them = _enclosed(other)
        if self.low >= 0 and them.low >= 0:
            return Enclosure(_DOWN.multiply(self.low, them.low), _UP.multiply(self.high, them.high))
        pairs = [(mine, theirs) for mine in (self.low, self.high) for theirs in (them.low, them.high)]
        return Enclosure(min(_DOWN.multiply(*pair) for pair in pairs), max(_UP.multiply(*pair) for pair in pairs))

    def __truediv__(self, other: Enclosure | Fraction | int) -> Enclosure:
        them = _enclosed(other)
        if them.low <= 0 <= them.high:
            raise ParameterError("these parameters are too extreme to compute with; choose less extreme ones")
        return self * Enclosure(_DOWN.divide(Decimal(1), them.high), _UP.divide(Decimal(1), them.low))

    __radd__, __rmul__ = __add__, __mul__

    def __rtruediv__(self, other: Fraction | int) -> Enclosure:
        return _enclosed(other) / self

    def exp(self) -> Enclosure:
        """e to this power; a power too large for any use is refused."""
        if self.high > _LARGEST_EXPONENT:
            raise ParameterError("these parameters are too extreme to compute with; choose less extreme ones")
        floor, one = Decimal(-_LARGEST_EXPONENT), Decimal(1)
        if self.low < floor:
            low = Decimal(0)
        else:
            low = NEAREST.next_minus(NEAREST.exp(self.low)) if self.low else one
        return Enclosure(low, NEAREST.next_plus(NEAREST.exp(max(self.high, floor))) if self.high else one)

    def ln(self) -> Enclosure:
        """The natural logarithm of a positive number."""
        if self.low <= 0:
            raise ParameterError("these parameters are too extreme to compute with; choose less extreme ones")
        return Enclosure(NEAREST.next_minus(NEAREST.ln(self.low)), NEAREST.next_plus(NEAREST.ln(self.high)))

    def sqrt(self) -> Enclosure:
        """The root; what lies below zero counts as zero."""
        low, high = max(self.low, Decimal(0)), max(self.high, Decimal(0))
        down = NEAREST.next_minus(NEAREST.sqrt(low)) if low else low
        return Enclosure(down, NEAREST.next_plus(NEAREST.sqrt(high)) if high else high)

    def power(self, exponent: Enclosure | Fraction | int) -> Enclosure:
        """A positive number to any power."""
        return (self.ln() * exponent).exp()

    def least(self, other: Enclosure | Fraction | int) -> Enclosure:
        """The smaller of two numbers."""
        them = _enclosed(other)
        return Enclosure(min(self.low, them.low), min(self.high, them.high))

    def most(self, other: Enclosure | Fraction | int) -> Enclosure:
        """The larger of two numbers."""
        them = _enclosed(other)
        return Enclosure(max(self.low, them.low), max(self.high, them.high))

    def up(self, digits: int = DIGITS) -> Fraction:
        """A fraction of few digits that is certainly not below the number."""
        return _short(self.high, digits, ROUND_CEILING)

    def down(self, digits: int = DIGITS) -> Fraction:
        """A fraction of few digits that is certainly not above the number."""
        return _short(self.low, digits, ROUND_FLOOR)

    def certainly_at_most(self, limit: Fraction) -> bool:
        """True when no number in the enclosure exceeds the limit."""
        return Fraction(self.high) <= limit


#: The ratio of a circle's circumference to its diameter, to seventy places.
PI = Enclosure(
    _DOWN.plus(Decimal("3.1415926535897932384626433832795028841971693993751058209749445923078164")),
    _UP.plus(Decimal("3.1415926535897932384626433832795028841971693993751058209749445923078165")),
)


def shortened(value: Fraction, *, upward: bool, digits: int = DIGITS) -> Fraction:
    """A rational number with few digits, rounded to the named side."""
    return Enclosure.of(value).up(digits) if upward else Enclosure.of(value).down(digits)


def _enclosed(value: Enclosure | Fraction | int) -> Enclosure:
    return value if isinstance(value, Enclosure) else Enclosure.of(value)


def _short(value: Decimal, digits: int, rounding: str) -> Fraction:
    rounded = _context(rounding, digits).plus(value)
    smallest = Decimal(1).scaleb(-PLACES)
    if rounded.as_tuple().exponent < -PLACES:  # type: ignore[operator]
        rounded = rounded.quantize(smallest, rounding, _context(rounding, digits + PLACES))
    return Fraction(rounded)
