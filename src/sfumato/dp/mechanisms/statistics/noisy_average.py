"""Noisy average: a noisy sum divided by a noisy count, both from the same budget.

Values are counted from the middle of their bounds, which halves what one record adds to the sum.
Dwork, Roth, "The algorithmic foundations of differential privacy", Foundations and Trends 9, 2014.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated

from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.calibrated import source_of
from sfumato.dp.mechanisms.grid import plain_scale
from sfumato.dp.mechanisms.noise.errors import BoundedError
from sfumato.dp.mechanisms.statistics.clamped import Clamped
from sfumato.dp.mechanisms.statistics.records import PLACES, Records, places
from sfumato.dp.ranges import PART, PublicSize
from sfumato.kernels.sampling.noise import discrete_laplace_one


@dataclass(frozen=True)
class NoisyAverage(Clamped[float]):
    """The mean of records clamped to [`lower`, `upper`], when a record may come or go: (sum + noise) / (count + noise).

    ε-private (`epsilon`). The part s of ε, `count_share`, goes to the count: its noise has the scale 1/(sε), that of the sum
    (upper - lower)/(2(1-s)ε). `size` is a public guess of the number of records: it is used to state the error, never to
    answer.
    """

    count_share: Annotated[Number, PART, "the part of ε that goes to the count"] = "1/2"
    size: PublicSize = None

    def coherent(self) -> Iterable[str]:
        yield from super().coherent()
        if self.neighbours != "add_remove":
            yield "with a public number of records nothing needs to be spent on it: use ClampingDownMean"

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
        units = places(value, Fraction(self.lower), Fraction(self.upper))
        count = units.size + discrete_laplace_one(self._count_scale, source)
        total = 2 * int(units.sum()) - units.size * PLACES + 2 * discrete_laplace_one(self._sum_scale, source)
        share = Fraction(1, 2) + Fraction(total, 2 * PLACES * max(count, 1))
        inside = min(max(share, Fraction(0)), Fraction(1))
        return float(Fraction(self.lower) + inside * (Fraction(self.upper) - Fraction(self.lower)))
