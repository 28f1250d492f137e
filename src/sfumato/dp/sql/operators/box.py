"""Where an expression lies when its parts lie between known ends: the operators on intervals.

An image holds the value of the expression at every point between the ends of its parts, so that it holds the true value whenever
all the parts' intervals hold theirs. It may be wider than need be where a part occurs twice, and never too narrow. See
docs/theory/margins.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class Box:
    """The ends between which values lie, one row per group; infinite where nothing bounds them.

    `lost` says where there may be no value: the ends are about the value if there is one. A condition lies between 0, false, and
    1, true.
    """

    low: Floats
    high: Floats
    lost: Truths

    @classmethod
    def of(cls, low: Floats, high: Floats, lost: Truths | bool = False) -> Box:
        """Ends that are no numbers bound nothing."""
        low, high = np.broadcast_arrays(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))
        unknown = np.isnan(low) | np.isnan(high)
        return cls(np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high), np.broadcast_to(lost, low.shape) | unknown)

    @classmethod
    def exactly(cls, values: Floats) -> Box:
        """Values that are known; missing where they are no numbers."""
        return cls.of(values, values)

    @classmethod
    def exactly_or_missing(cls, values: Floats, missing: Truths) -> Box:
        """Known values, or none at all: ends beyond each other, which add nothing to another value."""
        return cls.of(np.where(missing, np.inf, values), np.where(missing, -np.inf, values), missing)

    @classmethod
    def truth(cls, sure: Truths, possible: Truths, lost: Truths) -> Box:
        """A condition that surely holds, or possibly does."""
        return cls.of(sure.astype(np.float64), possible.astype(np.float64), lost)

    def rising(self, compute: Callable[[Floats], Floats]) -> Box:
        """What rises with the value, or stays."""
        return Box.of(compute(self.low), compute(self.high), self.lost)

    def minus(self) -> Box:
        """With the other sign."""
        return Box(-self.high, -self.low, self.lost)

    def size(self) -> Box:
        """Without the sign."""
        smallest = np.maximum(np.maximum(self.low, -self.high), 0.0)
        return Box(smallest, np.maximum(-self.low, self.high), self.lost)

    def above(self, least: float, *, strictly: bool = False) -> Box:
        """The part from a number on: what is below has no value in the function to come."""
        below = self.low <= least if strictly else self.low < least
        return Box(np.maximum(self.low, least), np.maximum(self.high, least), self.lost | below)

    def within(self, other: Box) -> Box:
        """The part inside other ends; at the nearer of those where there is none."""
        return Box(np.clip(self.low, other.low, other.high), np.clip(self.high, other.low, other.high), self.lost)

    def joined(self, other: Box) -> Box:
        """One value or the other."""
        return Box.of(np.minimum(self.low, other.low), np.maximum(self.high, other.high), self.lost | other.lost)

    def or_else(self, other: Box) -> Box:
        """The value, or the other where it is missing."""
        low, high = (
            np.where(self.lost, np.minimum(self.low, other.low), self.low),
            np.where(self.lost, np.maximum(self.high, other.high), self.high),
        )
        return Box.of(low, high, self.lost & other.lost)

    def unless(self, other: Box) -> Box:
        """The value, missing where it equals the other."""
        same = equal(self, other)
        # Where both are known and equal there is no value: ends beyond each other, which add nothing to a default.
        low, high = np.where(same.low > 0, np.inf, self.low), np.where(same.low > 0, -np.inf, self.high)
        return Box.of(low, high, same.lost | (same.high > 0))


def added(one: Box, other: Box) -> Box:
    """The sum."""
    return Box.of(one.low + other.low, one.high + other.high, one.lost | other.lost)


def subtracted(one: Box, other: Box) -> Box:
    """The difference."""
    return added(one, other.minus())


def multiplied(one: Box, other: Box) -> Box:
    """The product."""
    products = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    # An end that nothing bounds, times zero: each number that it may be gives zero.
    ends = [np.where(np.isnan(product), 0.0, product) for product in products]
    return Box.of(np.minimum.reduce(ends), np.maximum.reduce(ends), one.lost | other.lost)


def divided(one: Box, other: Box) -> Box:
    """The quotient; anything where the divisor may have either sign. There is no value where it is zero."""
    zero = (other.low <= 0) & (other.high >= 0)
    either = zero & ~((other.low == 0) ^ (other.high == 0))
    low, high = (np.where(either, 1.0, end) for end in (other.low, np.where(other.high == 0, -0.0, other.high)))
    # Each quotient by itself: a reciprocal is rounded, and 49 * (1 / 49) is less than 1.
    quotients = [a / b for a in (one.low, one.high) for b in (low, high)]
    # Of two ends that nothing bounds: each number over one without bounds comes as near to zero as one likes.
    ends = [np.where(np.isnan(quotient), 0.0, quotient) for quotient in quotients]
    lowest, highest = np.minimum.reduce(ends), np.maximum.reduce(ends)
    return Box.of(np.where(either, -np.inf, lowest), np.where(either, np.inf, highest), one.lost | other.lost | zero)


def raised(one: Box, other: Box) -> Box:
    """The power with a known exponent; anything where that is not known."""
    if not np.array_equal(other.low, other.high) or other.low.size != 1 or not abs(float(other.low.flat[0])) < 100:
        return Box.of(one.low * np.nan, one.high * np.nan, lost=True)
    exponent = float(other.low.flat[0])
    if exponent < 0:
        return divided(Box.exactly(np.ones((1, 1))), raised(one, other.minus()))
    if exponent != int(exponent):
        one = one.above(0.0)
    elif exponent % 2 == 0:
        one = one.size()
    return one.rising(lambda ends: np.power(ends, exponent))


def smaller(one: Box, other: Box) -> Box:
    """The smaller of both."""
    return Box.of(np.minimum(one.low, other.low), np.minimum(one.high, other.high), one.lost | other.lost)


def larger(one: Box, other: Box) -> Box:
    """The larger of both."""
    return Box.of(np.maximum(one.low, other.low), np.maximum(one.high, other.high), one.lost | other.lost)


def equal(one: Box, other: Box) -> Box:
    """Whether both are equal."""
    same = (one.low == one.high) & (one.low == other.low) & (other.low == other.high)
    return Box.truth(same, (one.low <= other.high) & (other.low <= one.high), one.lost | other.lost)


def different(one: Box, other: Box) -> Box:
    """Whether both differ."""
    return denied(equal(one, other))


def less(one: Box, other: Box) -> Box:
    """Whether the first is less."""
    return Box.truth(one.high < other.low, one.low < other.high, one.lost | other.lost)


def at_most(one: Box, other: Box) -> Box:
    """Whether the first is less or equal."""
    return Box.truth(one.high <= other.low, one.low <= other.high, one.lost | other.lost)


def denied(one: Box) -> Box:
    """Whether a condition does not hold."""
    return Box.of(1 - one.high, 1 - one.low, one.lost)


def chosen(conditions: list[Box], values: list[Box]) -> Box:
    """The first value whose condition holds, else the last one; one or the other where a condition decides nothing."""
    taken = values[-1]
    for condition, value in zip(reversed(conditions), reversed(values[:-1]), strict=True):
        holds, fails = (condition.low > 0) & ~condition.lost, condition.high <= 0
        either = value.joined(taken)
        taken = Box.of(
            np.where(holds, value.low, np.where(fails, taken.low, either.low)),
            np.where(holds, value.high, np.where(fails, taken.high, either.high)),
            np.where(holds, value.lost, np.where(fails, taken.lost, either.lost)),
        )
    return taken
