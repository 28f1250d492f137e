"""Truncated mean: the mean clamped to a narrower interval, Laplace noise, clamped again.

The last clamp is post-processing; the sensitivity is the smaller of what one record moves the mean by and the width of the
interval. Torra, "Data privacy: foundations, new developments and the big data challenge", Springer 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated

import numpy as np

from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import Count
from sfumato.dp.mechanisms.calibrated import source_of
from sfumato.dp.mechanisms.grid import Grid, plain_scale
from sfumato.dp.mechanisms.noise.errors import LaplaceError
from sfumato.dp.mechanisms.noise.laws import Law, clamped_laplace_law
from sfumato.dp.mechanisms.statistics.clamped import Clamped
from sfumato.dp.mechanisms.statistics.records import PLACES, Records, places
from sfumato.dp.ranges import INTERVAL
from sfumato.dp.sensitivity.base import Sensitivity
from sfumato.kernels.sampling.noise import discrete_laplace_one


@dataclass(frozen=True)
class TruncatedMean(Clamped[float]):
    """A mean between `lower` and `upper` of records whose declared `bounds` may be wider.

    ε-private under both relations and for every size: the deviations from the middle of the bounds are divided by
    max(n, min_size), which is the mean as soon as there are `min_size` records.

    >>> float(TruncatedMean(2000, 4000, epsilon=1, min_size=5, bounds=(1000, 100000)).sensitivity.l1)
    2000.0
    """

    min_size: Annotated[Count, "the least number that sums are divided by"] = 1
    bounds: Annotated[tuple[Number, Number] | None, INTERVAL, "the smallest and the largest possible value of a record"] = None

    @property
    def _bounds(self) -> tuple[Fraction, Fraction]:
        low, high = self.bounds if self.bounds is not None else (self.lower, self.upper)
        return Fraction(low), Fraction(high)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """min((max - min) / min_size, upper - lower)."""
        from sfumato.dp.sensitivity.numbers import truncated_mean

        return truncated_mean(self.lower, self.upper, self._bounds, self.min_size, self.neighbours, unit=self.unit)

    @cached_property
    def _grid(self) -> Grid:
        return Grid.for_sensitivity(self.sensitivity.l1)

    @cached_property
    def _units(self) -> Fraction:
        return plain_scale(self._grid.shift(self.sensitivity.l1) / Fraction(self.epsilon))

    @property
    def scale(self) -> Fraction:
        """The scale of the noise."""
        return self._units * self._grid.step

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> LaplaceError:
        """About the clamped mean: at most that of the noise, and at most the width."""
        width = float(Fraction(self.upper) - Fraction(self.lower))
        return LaplaceError.clamped(float(self._units), float(self._grid.step), width)

    def law(self, value: Records) -> Law:
        """The law of the answer, with its masses at both borders, as the continuous law that the grid's approaches."""
        return clamped_laplace_law(float(self._mean(value)), float(self.scale), float(self.lower), float(self.upper))

    def answer(self, value: Records, randomness: Randomness | None = None) -> float:
        units = self._grid.units(self._mean(value)) + discrete_laplace_one(self._units, source_of(randomness))
        return min(max(self._grid.real(units), float(self.lower)), float(self.upper))

    def _mean(self, records: Records) -> Fraction:
        low, high = self._bounds
        units = places(records, low, high)
        # Deviations from the middle: each adds at most half the width, whatever the number of records.
        deviations = int(np.sum(units)) - units.size * PLACES // 2
        mean = (low + high) / 2 + Fraction(deviations, PLACES * max(units.size, self.min_size)) * (high - low)
        return min(max(mean, Fraction(self.lower)), Fraction(self.upper))
