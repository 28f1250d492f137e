"""What a synthesis may spend, in exact parts: noise for counts, a temperature for choices, and their cost in ρ.

Discrete Gaussian noise of variance v on counts that one unit moves by at most L2 costs L2²/2v; a choice by the
exponential mechanism with parameter ε costs ε²/8. Scales are rounded to the safe side and what they then cost is
added up as fractions, so that the sum never exceeds ρ by a rounding unit.
Bun, Steinke, "Concentrated differential privacy", TCC 2016; Canonne, Kamath, Steinke, "The discrete Gaussian for
differential privacy", NeurIPS 2020; Cesar, Rogers, "Bounding, concentrating, and truncating", ALT 2021 (ε²/8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.loss import Neighbours
from sfumato.core.randomness import Randomness
from sfumato.kernels.sampling.noise import discrete_gaussian, select_by_exponent

_BITS = 16  # digits of a variance: short fractions are fast to draw with
_FINE = 1 << 30  # the grid of the parameter of a choice


@dataclass(frozen=True)
class MarginalReach:
    """How far one unit can move the counts of one marginal: in sum, and in squared length."""

    l1: int
    l2_squared: int

    @classmethod
    def of(cls, rows: int, neighbours: Neighbours) -> MarginalReach:
        """A unit with at most so many records. Replacing it takes them out of some cells and puts them into others."""
        sides = 2 if neighbours == "replace" else 1
        return cls(sides * rows, sides * rows**2)


def variance_for(rho: Fraction, reach: MarginalReach) -> Fraction:
    """The variance of noise that costs at most ρ, rounded up."""
    variance = Fraction(reach.l2_squared) / (2 * rho)
    shift = _BITS - (variance.numerator.bit_length() - variance.denominator.bit_length())
    grid = Fraction(2) ** shift
    return math.ceil(variance * grid) / grid


def noise_cost(variance: Fraction, reach: MarginalReach) -> Fraction:
    """The ρ of one noisy marginal."""
    return Fraction(reach.l2_squared) / (2 * variance)


def choice_parameter(rho: Fraction) -> Fraction:
    """The ε of a choice that costs at most ρ, rounded down."""
    return Fraction(math.isqrt(math.floor(8 * rho * _FINE**2)), _FINE)


def choice_cost(epsilon: Fraction) -> Fraction:
    """The ρ of one choice by the exponential mechanism."""
    return epsilon**2 / 8


class Purse:
    """ρ, and what is left of it. Paying more than is left is an error of the program, and refused before noise is drawn."""

    def __init__(self, rho: Fraction) -> None:
        self.rho = rho
        self.left = rho

    def pay(self, cost: Fraction) -> None:
        """Charge before drawing."""
        if cost > self.left:
            raise ParameterError("this step would cost more than what is left of rho")
        self.left -= cost

    @property
    def spent(self) -> Fraction:
        """What has been paid."""
        return self.rho - self.left


def noisy_counts(
    counts: NDArray[np.int64], variance: Fraction, reach: MarginalReach, purse: Purse, source: Randomness
) -> NDArray[np.float64]:
    """Counts with discrete Gaussian noise, paid for."""
    purse.pay(noise_cost(variance, reach))
    drawn = discrete_gaussian(variance, counts.size, source).reshape(counts.shape)
    return np.asarray(counts + drawn, dtype=np.float64)


def choose(scores: Sequence[int], step: int, epsilon: Fraction, reach: MarginalReach, purse: Purse, source: Randomness) -> int:
    """The index of a high score by the exponential mechanism, paid for.

    Scores count `step`-ths: one unit moves each by at most `step` times what it moves counts in sum.
    """
    purse.pay(choice_cost(epsilon))
    best = max(scores)
    return select_by_exponent([epsilon * (best - score) / (2 * reach.l1 * step) for score in scores], source)
