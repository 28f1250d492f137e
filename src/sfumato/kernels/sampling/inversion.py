"""Exact geometric and discrete Laplace noise in bulk: digits by inversion with words of 32 bits.

The digits of a geometric variable (base 256) are independent. Each is found where a uniform real lies among the
cumulative probabilities; its first 32 binary digits, one random word, settle this unless they equal the first
digits of such a probability. Then, and only then, further digits of both are compared. Beyond the last digit's
table the law starts again, because a geometric variable has no memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from sfumato.core.randomness import Randomness
from sfumato.kernels.sampling.scalar import geometric_one
from sfumato.kernels.sampling.thresholds import digit_thresholds, geometric_thresholds, negative_thresholds

Int = NDArray[np.int64]

BITS = 32
BASE = 256
REACH = 16  # the last digit's table ends where the chance to pass it is e^-16
_KINDS = {8: "<u1", 16: "<u2", 32: "<u4"}


def words(count: int, bits: int, source: Randomness) -> NDArray[np.unsignedinteger]:
    """Uniform unsigned integers of 8, 16 or 32 bits."""
    return np.frombuffer(source.bytes(count * bits // 8), dtype=_KINDS[bits])


def settle(word: int, bits: int, thresholds: Callable[[int], Sequence[int]], source: Randomness) -> int:
    """How many of the probabilities lie below a uniform real whose first digits are `word`; draws more as needed."""
    precision = bits
    while True:
        table = thresholds(precision)
        below = bisect_right(table, word)
        if below == 0 or table[below - 1] != word:
            return below
        word = (word << bits) | int.from_bytes(source.bytes(bits // 8), "little")
        precision += bits


@dataclass(frozen=True)
class Inversion:
    """A variable given by the thresholds of its cumulative probabilities, for any number of binary digits."""

    thresholds: Callable[[int], Sequence[int]]
    table: NDArray[np.unsignedinteger]
    bits: int

    @staticmethod
    def of(thresholds: Callable[[int], Sequence[int]], bits: int = BITS) -> Inversion:
        """With words of that many bits."""
        return Inversion(thresholds, np.array(thresholds(bits), dtype=_KINDS[bits]), bits)

    def draw(self, count: int, source: Randomness) -> Int:
        """That many independent draws: the number of cumulative probabilities below a uniform real."""
        drawn = words(count, self.bits, source)
        places = np.searchsorted(self.table, drawn, side="right").astype(np.int64, copy=False)
        # where nothing lies below, the entry before the first is the last one, which is larger than the word
        for place in np.flatnonzero(self.table.take(places - 1, mode="wrap") == drawn):
            places[place] = settle(int(drawn[place]), self.bits, self.thresholds, source)
        return places


@dataclass(frozen=True)
class Digits:
    """A geometric variable: its lower digits, and the rest of the number in one table with a tail."""

    scale: Fraction
    lower: tuple[Inversion, ...]
    rest: Inversion

    def draw(self, count: int, source: Randomness) -> Int:
        """That many independent draws."""
        total = self.rest.draw(count, source)
        end = self.rest.table.size
        for place in np.flatnonzero(total == end):
            total[place] = end + self._beyond(source)
        for digit in reversed(self.lower):
            total *= BASE
            total += digit.draw(count, source)
        return total

    def _beyond(self, source: Randomness) -> int:
        """What follows the end of the table: the same law once more."""
        unit = BASE ** len(self.lower)
        further = geometric_one(self.scale / unit, source)
        if further * unit >= 1 << 62:  # below a scale of 2^48 the chance is less than e^-16000
            raise OverflowError("a draw does not fit into 64 bits")
        return further


@lru_cache(maxsize=64)
def digits_of(scale: Fraction, bits: int = BITS) -> Digits:
    """The digits of a geometric variable of this scale."""
    lower: list[Inversion] = []
    unit = 1 / scale  # the exponent of one step in the current digit
    while REACH >= (BASE - 1) * unit:
        lower.append(Inversion.of(partial(digit_thresholds, unit, BASE), bits))
        unit *= BASE
    length = -(-REACH * unit.denominator // unit.numerator)
    return Digits(scale, tuple(lower), Inversion.of(partial(geometric_thresholds, unit, length), bits))


@lru_cache(maxsize=64)
def sign_of(scale: Fraction, bits: int = BITS) -> Inversion:
    """0 when a discrete Laplace variable of this scale is negative, otherwise 1."""
    return Inversion.of(partial(negative_thresholds, 1 / scale), bits)


def geometric_block(scale: Fraction, count: int, source: Randomness) -> Int:
    """Draws of `geometric_one`, in bulk."""
    return digits_of(scale).draw(count, source)


def discrete_laplace_block(scale: Fraction, count: int, source: Randomness) -> Int:
    """Draws of `discrete_laplace_one`, in bulk.

    x below 0 has the chance 1/(1 + e^(1/scale)), and on either side the distance from 0 (or from -1) is geometric.
    """
    magnitude = digits_of(scale).draw(count, source)
    sign = sign_of(scale).draw(count, source)
    return magnitude ^ (sign - 1)  # in two's complement, all bits flipped is -x - 1
