"""Laws as tables that an engine can look up: cells of quantiles, and aliases of categories.

A law of numbers becomes cells of equal probability, within each of which a draw is uniform: z = left + fraction · width, one
multiplication and one addition. The outermost two cells are divided again, so that the tails reach far. Ends are moved and scaled
together, so that mean and variance are those asked for. A law of categories becomes cells of equal probability with two
categories each, divided at a whole number. Walker, "An efficient method for generating discrete random variables with general
distributions", ACM TOMS 3(3), 1977; docs/theory/keyed-draws.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported

Real = NDArray[np.float64]
Int = NDArray[np.int64]

#: QuantileCells of equal probability, and parts of the first and of the last of them; both are powers of two.
CELLS, PARTS = 1 << 13, 1 << 11
#: The part of a cell that is not divided.
WHOLE = -1
#: How much of the last part lies inside the end that stands for infinity.
_BEYOND = 0.25
#: How far ends may be moved, as a share of the deviation, so that moments are those asked for.
_MOST_MOVED = 0.01


@dataclass(frozen=True, eq=False)
class QuantileCells:
    """Cell `first[i]`, or part `second[i]` of it, has the probability `chance[i]` and reaches from `left[i]` over `width[i]`."""

    first: Int = field(repr=False)
    second: Int = field(repr=False)
    chance: Real = field(repr=False)
    left: Real = field(repr=False)
    width: Real = field(repr=False)

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number that can be drawn."""
        return float(self.left.min()), float((self.left + self.width).max())

    def moments(self) -> tuple[float, float]:
        """Mean and variance of a draw."""
        right = self.left + self.width
        mean = math.fsum(self.chance * (self.left + right) / 2)
        low, high = self.left - mean, right - mean
        return mean, math.fsum(self.chance * (low * low + low * high + high * high) / 3)

    def share_below(self, values: Real) -> Real:
        """The probability of a draw of at most these values."""
        order = np.argsort(self.left, kind="stable")
        edges = np.append(self.left[order], self.ends[1])
        shares = np.append(0.0, np.cumsum(self.chance[order]))
        return np.asarray(np.interp(values, edges, shares))


def quantile_cells(quantile: Callable[[Real], Real], mean: float, variance: float) -> QuantileCells:
    """The cells of a law with this quantile function, moved and scaled to this mean and variance; refused where that would
    change the law by more than a hundredth of its deviation: its tails carry too much of its variance."""
    edges = np.arange(1, CELLS) / CELLS
    parts = np.arange(PARTS + 1) / PARTS / CELLS
    places = np.concatenate([parts, edges[1:-1], 1.0 - parts[::-1]])
    knots = np.asarray(quantile(places), dtype=np.float64)
    last = parts[1] * _BEYOND
    # also where a law has an end, as 0 of a log-normal one: nearly nothing of it lies between the end and the first part
    knots[0], knots[-1] = quantile(np.array([last, 1.0 - last]))
    tail, inner = np.arange(PARTS, dtype=np.int64), np.arange(1, CELLS - 1, dtype=np.int64)
    first = np.concatenate([np.zeros_like(tail), inner, np.full_like(tail, CELLS - 1)])
    second = np.concatenate([tail, np.full_like(inner, WHOLE), tail])
    chance = np.where(second == WHOLE, 1.0 / CELLS, 1.0 / CELLS / PARTS)
    raw = QuantileCells(first, second, chance, knots[:-1], np.diff(knots))
    centre, spread = raw.moments()
    factor = math.sqrt(variance / spread)
    if abs(factor - 1.0) > _MOST_MOVED or abs(centre - mean) > _MOST_MOVED * math.sqrt(variance):
        raise Unsupported("the tails of this law carry more of its variance than a table of quantiles holds; use less noise")
    return QuantileCells(first, second, chance, (raw.left - centre) * factor + mean, raw.width * factor)


def normal_cells() -> QuantileCells:
    """The standard normal law."""
    from scipy.special import ndtri

    return quantile_cells(ndtri, 0.0, 1.0)


@dataclass(frozen=True)
class Alias:
    """A cell of a law of categories: below `threshold` it is category `own`, otherwise `other`."""

    threshold: int
    own: int
    other: int


def alias_cells(probabilities: Sequence[float], bits: int) -> list[Alias]:
    """A law of categories as a power of two of equally likely cells, to be divided by a draw of so many bits.

    A probability is met up to 2^-bits times the number of categories.
    """
    count = 1 << max(len(probabilities) - 1, 0).bit_length()
    capacity = 1 << bits
    total = sum(map(Fraction, probabilities))
    weights = [int(Fraction(each) / total * count * capacity) for each in probabilities] + [0] * (count - len(probabilities))
    largest = max(range(len(probabilities)), key=weights.__getitem__)
    weights[largest] += count * capacity - sum(weights)
    cells = [Alias(capacity, place, place) for place in range(count)]
    small = [place for place, weight in enumerate(weights) if weight < capacity]
    large = [place for place, weight in enumerate(weights) if weight > capacity]
    while small:
        place = small.pop()
        giver = large[-1]
        cells[place] = Alias(weights[place], place, giver)
        weights[giver] -= capacity - weights[place]
        if weights[giver] <= capacity:
            large.pop()
            if weights[giver] < capacity:
                small.append(giver)
    return [cell if cell.threshold else Alias(capacity, cell.other, cell.other) for cell in cells]
