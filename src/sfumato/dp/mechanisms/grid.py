"""Fixed point: real numbers as whole multiples of a step, so that noise can be drawn in integers.

Rounding never moves two numbers apart by more than the distance between them rounded up to whole steps, because it is
monotone and commutes with whole steps; that is how the rounding is inside the sensitivity.
Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.errors import ParameterError

Real: TypeAlias = int | float | Fraction
Reals: TypeAlias = Sequence[Real] | NDArray[np.floating] | NDArray[np.integer]

#: A sensitivity is at least this many steps of the grid that is chosen for it, in bits.
FINENESS = 20

#: Numbers are held between plus and minus two to this many steps; holding them there brings neighbours no further apart.
WIDEST = 62

_PLAIN_DENOMINATOR, _PLAIN_NUMERATOR = 2**16, 2**46
_LONGEST = 5000


@dataclass(frozen=True)
class Grid:
    """All multiples of `step`.

    >>> Grid(Fraction(1, 4)).units(0.3), Grid(Fraction(1, 4)).shift(Fraction(3, 10))
    (1, 2)
    """

    step: Fraction

    @classmethod
    def for_sensitivity(cls, change: Fraction, coordinates: int = 1) -> Grid:
        """The largest power of two that is at most 2^-20 of the change, per coordinate."""
        return cls(power_of_two_below(change / (coordinates * 2**FINENESS)))

    def units(self, value: Real) -> int:
        """The nearest multiple, halves upwards. What is missing or not finite counts as 0: an error would reveal something about
        the data."""
        number = real_of(value)
        if isinstance(number, float):
            return 0
        most = 1 << WIDEST
        return max(-most, min(most, math.floor(number / self.step + Fraction(1, 2))))

    def units_of(self, values: Reals) -> list[int]:
        """The same for many numbers."""
        return [self.units(value) for value in _plain(values)]

    def shift(self, change: Fraction, coordinates: int = 1) -> int:
        """How many steps apart, summed over coordinates, numbers are rounded that differ by `change` in total."""
        return math.ceil(change / self.step) + coordinates - 1

    def real(self, units: int) -> float:
        """The number that many steps from zero."""
        return float(units * self.step)

    def reals(self, units: Sequence[int]) -> NDArray[np.float64]:
        """The same for many numbers."""
        return np.array([self.real(entry) for entry in units], dtype=np.float64)

    def noisy(
        self,
        value: Real | Reals,
        coordinates: int,
        one: Callable[[], int],
        several: Callable[[int], NDArray[np.int64]],
    ) -> float | NDArray[np.float64]:
        """A number, or as many as the mechanism answers at a time, in whole steps with whole noise."""
        if not many(value):
            return self.real(self.units(value) + one())  # type: ignore[arg-type]
        units = self.units_of(value)  # type: ignore[arg-type]
        require(len(units) == coordinates, f"this mechanism answers {coordinates} numbers at a time: set coordinates")
        return self.reals([unit + extra for unit, extra in zip(units, several(len(units)).tolist(), strict=True)])


def power_of_two_below(value: Fraction) -> Fraction:
    """The largest power of two that does not exceed a positive number."""
    power = value.numerator.bit_length() - value.denominator.bit_length()
    two = Fraction(2) ** power
    return two if two <= value else two / 2


def plain_scale(scale: Fraction) -> Fraction:
    """The scale itself when it has few digits, otherwise rounded up: more noise never costs privacy."""
    if scale.denominator <= _PLAIN_DENOMINATOR and scale.numerator <= _PLAIN_NUMERATOR:
        return scale
    fine = 1 if scale >= _PLAIN_DENOMINATOR else _PLAIN_DENOMINATOR
    return Fraction(math.ceil(scale * fine), fine)


def many(value: object) -> bool:
    """Whether a value has coordinates."""
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def _plain(values: Reals) -> list[Real]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def real_of(value: Real | Decimal | None) -> Fraction | float:
    """A number of any type exactly, a float as the binary fraction it is; NaN where it is missing, infinities as floats.

    What is no number is refused by its type, whatever it holds.
    """
    if value is None:
        return math.nan
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, float | np.floating):
        if not np.isfinite(value):
            return float(value)
        return Fraction(*(int(part) for part in value.as_integer_ratio()))
    if not isinstance(value, Rational):
        raise ParameterError("a mechanism answers about a number, and was given something else")
    return Fraction(value)


def _decimal(value: Decimal) -> Fraction | float:
    if not value.is_finite():
        return math.nan if value.is_nan() else math.copysign(math.inf, 1 if value > 0 else -1)
    # An exponent of millions would be written out; nothing a mechanism measures is as large or as small as these.
    if value.adjusted() > _LONGEST:
        return Fraction(10) ** _LONGEST * (1 if value > 0 else -1)
    return Fraction(0) if value.adjusted() < -_LONGEST else Fraction(value)
