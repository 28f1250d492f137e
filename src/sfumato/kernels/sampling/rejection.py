"""Exact decisions with probability e^(-x) in bulk, and the discrete Gaussian by rejection from the discrete Laplace.

A table of whole numbers encloses 2^32·e^(-x) from both sides. A random word outside this enclosure settles the
decision; a word inside (about one in a million) is compared with as many certified digits of e^(-x) as it takes.
The enclosure decides how fast a draw is, never which one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.core.randomness import Randomness
from sfumato.kernels.sampling.inversion import BITS, discrete_laplace_block, settle, words
from sfumato.kernels.sampling.thresholds import exp_threshold

Int = NDArray[np.int64]

PLACES = 24  # binary places of an exponent in the tables
FAR = 32  # from this exponent on, 2^32·e^(-x) is below 1
_FIXED = 31
_ROUNDED_DOWN = 7  # four table entries and three products, each less than one unit too small


@lru_cache(maxsize=1)
def _tables() -> tuple[Int, Int, Int, Int]:
    """floor(2^31·e^(-x)) for whole x, and for x with 8, 16 and 24 binary places."""
    whole = [exp_threshold(Fraction(i), _FIXED) for i in range(FAR + 4)]
    parts = [[exp_threshold(Fraction(i, 1 << places), _FIXED) for i in range(256)] for places in (8, 16, 24)]
    first, second, third = (np.array(part, dtype=np.int64) for part in parts)
    return np.array(whole, dtype=np.int64), first, second, third


def enclose(exponents: Int, excess: int) -> tuple[Int, Int]:
    """Whole numbers below and above 2^32·e^(-x), where x lies between exponent and exponent + excess, times 2^-24.

    An exponent of 32 or more stands for every x from there on.
    """
    whole, first, second, third = _tables()
    value = whole.take(exponents >> PLACES)
    for table, shift in ((first, 16), (second, 8), (third, 0)):
        value *= table.take((exponents >> shift) & 255)
        value >>= _FIXED
    # e^(-x) falls by less than the excess, and 2^31 units are 1
    return 2 * (value - (excess << (_FIXED - PLACES))), 2 * (value + _ROUNDED_DOWN)


def decide(word: int, exponent: Fraction, source: Randomness, bits: int = BITS) -> bool:
    """Whether a uniform real whose first digits are `word` lies below e^(-exponent)."""
    return settle(word, bits, lambda precision: (exp_threshold(exponent, precision),), source) == 0


@dataclass(frozen=True)
class GaussianPlan:
    """Proposals and their acceptance: y with mass ~ e^(-centre·|y|/variance), kept with chance e^(-unit·(step·|y| - offset)²).

    Their product is e^(-y²/(2·variance)) up to a constant, for centre = offset/step and unit = 1/(2·variance·step²).
    The centre is close to the standard deviation, where about three of four proposals are kept.
    """

    step: int
    offset: int
    unit: Fraction
    proposal: Fraction
    farthest: int  # a distance whose exponent is at least 32
    drop: int  # binary digits left out before the square
    drop_square: int  # and after it
    factor: int
    shift: int
    excess: int

    def exponents(self, proposed: Int) -> Int:
        """The exponent of each proposal in units of 2^-24, rounded down by at most `excess`, cut off at 32 or above."""
        most = (self.farthest + self.offset) // self.step + 1
        distance = np.abs(np.minimum(np.abs(proposed), most) * self.step - self.offset)
        distance = np.minimum(distance, self.farthest) >> self.drop
        square = (distance * distance) >> self.drop_square
        scaled: Int = (square * self.factor) >> self.shift
        return scaled

    def exact_exponent(self, proposed: int) -> Fraction:
        """The same, exactly."""
        return self.unit * (self.step * abs(proposed) - self.offset) ** 2

    def keep(self, proposed: Int, source: Randomness) -> NDArray[np.bool_]:
        """True for each proposal with the chance that it is kept."""
        low, high = enclose(self.exponents(proposed), self.excess)
        drawn = words(proposed.size, BITS, source).astype(np.int64)
        kept = drawn < low
        for place in np.flatnonzero((drawn < high) & ~kept):
            kept[place] = decide(int(drawn[place]), self.exact_exponent(int(proposed[place])), source)
        return kept


@lru_cache(maxsize=64)
def gaussian_plan(variance: Fraction) -> GaussianPlan:
    """Numbers that keep every product within 62 bits, and the bound of what they round off."""
    step = 1
    while step * step * variance < 16:
        step *= 2
    offset = math.isqrt(math.floor(step * step * variance))
    unit = 1 / (2 * variance * step * step)
    farthest = math.isqrt(math.ceil(FAR / unit)) + 1
    drop = max(0, farthest.bit_length() - 28)
    largest = farthest >> drop
    drop_square = max(0, (largest * largest).bit_length() - 31)
    square = (largest * largest) >> drop_square
    shown = unit * (1 << (2 * drop + drop_square))
    fixed = 31 + (shown.denominator // shown.numerator).bit_length() - 1
    factor = math.floor(shown * (1 << fixed))
    lost = Fraction(square, 1 << fixed) + Fraction(1, 1 << PLACES)
    if drop:
        lost += unit * (1 << (2 * drop)) * (2 * largest + 1)
    if drop_square:
        lost += shown
    return GaussianPlan(
        step=step,
        offset=offset,
        unit=unit,
        proposal=variance * step / offset,
        farthest=farthest,
        drop=drop,
        drop_square=drop_square,
        factor=factor,
        shift=fixed - PLACES,
        excess=math.ceil(lost * (1 << PLACES)),
    )


def discrete_gaussian_block(variance: Fraction, count: int, source: Randomness) -> Int:
    """Draws of `discrete_gaussian_one`, in bulk."""
    plan = gaussian_plan(variance)
    drawn = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        proposed = discrete_laplace_block(plan.proposal, (count - filled) * 7 // 5 + 16, source)
        kept = proposed[plan.keep(proposed, source)][: count - filled]
        drawn[filled : filled + kept.size] = kept
        filled += kept.size
    return drawn
