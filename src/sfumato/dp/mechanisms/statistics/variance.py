"""Variance, and mean with variance, from a noisy count, sum and sum of squares that share one budget.

Values are clamped to their bounds and counted from the middle, which makes the sums as small as they can be; ε/3 goes to
each of the three. The variance is never negative. Dwork, Roth, "The algorithmic foundations of differential privacy",
Foundations and Trends 9, 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.calibrated import source_of
from sfumato.dp.mechanisms.noise.errors import BoundedError
from sfumato.dp.mechanisms.statistics.clamped import Clamped
from sfumato.dp.mechanisms.statistics.moments import Moments, deviation, measure
from sfumato.dp.mechanisms.statistics.records import Records, numbers
from sfumato.dp.ranges import PublicSize


class MeanVariance(NamedTuple):
    """A mean and a variance that were released together."""

    mean: float
    variance: float


@dataclass(frozen=True)
class MeanAndVariance(Clamped[MeanVariance]):
    """The mean and the (population) variance of records clamped to [lower, upper].

    ε-private together: both come from the same noisy moments. `size` is a public guess of the number of records, for
    stating the error alone.
    """

    size: PublicSize = None

    @cached_property
    def _half(self) -> float:
        return float((Fraction(self.upper) - Fraction(self.lower)) / 2)

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> BoundedError:
        """Of the variance: a bound. The mean's is smaller."""
        most = self._half**2
        if self.size is None:
            return BoundedError.of(most, most)
        one = deviation(1, self.neighbours, Fraction(self.epsilon), self.size)
        # variance = products - mean², and the square moves by at most twice the error of the mean plus its square.
        return BoundedError.of(most * 3 * one, most)

    def answer(self, value: Records, randomness: Randomness | None = None) -> MeanVariance:
        moments = self._moments(value, randomness)
        middle = float((Fraction(self.lower) + Fraction(self.upper)) / 2)
        return MeanVariance(middle + self._half * float(moments.means[0]), self._half**2 * float(moments.covariance[0, 0]))

    def _moments(self, records: Records, randomness: Randomness | None) -> Moments:
        bounds = [(Fraction(self.lower), Fraction(self.upper))]
        column = numbers(records).ravel()
        return measure([column], bounds, self.neighbours, Fraction(self.epsilon), source_of(randomness))


@dataclass(frozen=True)
class Variance(Clamped[float]):
    """The (population) variance of records clamped to [lower, upper]; ε-private. `size` as for `MeanAndVariance`."""

    size: PublicSize = None

    @cached_property
    def _both(self) -> MeanAndVariance:
        return MeanAndVariance(self.lower, self.upper, self.epsilon, self.size, neighbours=self.neighbours, unit=self.unit)

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> BoundedError:
        return self._both.error()

    def answer(self, value: Records, randomness: Randomness | None = None) -> float:
        return self._both.answer(value, randomness).variance
