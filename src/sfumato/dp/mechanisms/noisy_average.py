"""Noisy average: a noisy sum divided by a noisy count, both from the same budget.

Values are counted from the middle of their bounds, which halves what one record adds to the sum.
Dwork, Roth, "The algorithmic foundations of differential privacy", Foundations and Trends 9, 2014.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sfumato.core.errors import ParameterError
from sfumato.core.exact import Number, exact
from sfumato.core.guarantees.loss import PureDP
from sfumato.core.params import require
from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.calibrated import Stated, source_of
from sfumato.dp.mechanisms.errors import BoundedError
from sfumato.dp.mechanisms.grid import plain_scale
from sfumato.dp.mechanisms.records import PLACES, Records, places
from sfumato.kernels.sampling import discrete_laplace_one


@dataclass(frozen=True)
class NoisyAverage(Stated[Records, float]):
    """The mean of records clamped to [lower, upper], when a record may come or go.

    ε-private; `count_share` of ε goes to the count. `size` is a public guess of the number of records: it is used to state
    the error, never to answer.
    """

    lower: Number
    upper: Number
    epsilon: Number
    count_share: Number = "1/2"
    size: int | None = None

    def __post_init__(self) -> None:
        self._check_bounds()
        self._check_epsilon()
        if self.neighbours != "add_remove":
            raise ParameterError("with a public number of records nothing needs to be spent on it: use ClampingDownMean")
        object.__setattr__(self, "count_share", exact(self.count_share, "count_share"))
        require(0 < Fraction(self.count_share) < 1, "count_share lies between 0 and 1")
        require(self.size is None or isinstance(self.size, int) and self.size >= 1, "size is a whole number of at least 1")

    @cached_property
    def _count_scale(self) -> Fraction:
        return plain_scale(1 / (Fraction(self.epsilon) * Fraction(self.count_share)))

    @cached_property
    def _sum_scale(self) -> Fraction:
        """In places: one record lies at most half of them from the middle."""
        return plain_scale(Fraction(PLACES, 2) / (Fraction(self.epsilon) * (1 - Fraction(self.count_share))))

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> BoundedError:
        """The width without a guess of the size; with one, a bound from the deviations of both noises.

        While the noisy count is at least n/2, the error is at most 2 (|sum noise| + width/2 · |count noise|) / n.
        """
        width = float(Fraction(self.upper) - Fraction(self.lower))
        if self.size is None:
            return BoundedError.of(width, width)
        total = float(self._sum_scale) / PLACES * width
        count = float(self._count_scale)
        noise = 2 * math.sqrt(2 * total**2 + width**2 / 2 * count**2) / self.size
        rare = math.exp(-self.size / 2 / count) / 2
        return BoundedError.of(math.sqrt(noise**2 + width**2 * rare) + width / PLACES, width)

    def answer(self, value: Records, randomness: Randomness | None = None) -> float:
        source = source_of(randomness)
        found = places(value, Fraction(self.lower), Fraction(self.upper))
        count = found.size + discrete_laplace_one(self._count_scale, source)
        total = 2 * int(found.sum()) - found.size * PLACES + 2 * discrete_laplace_one(self._sum_scale, source)
        share = Fraction(1, 2) + Fraction(total, 2 * PLACES * max(count, 1))
        inside = min(max(share, Fraction(0)), Fraction(1))
        return float(Fraction(self.lower) + inside * (Fraction(self.upper) - Fraction(self.lower)))
