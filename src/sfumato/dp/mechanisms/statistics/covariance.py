"""Covariance matrix from noisy moments of columns with declared bounds, made positive semidefinite afterwards.

Dwork, Talwar, Thakurta, Zhang, "Analyze Gauss", STOC 2014 (the idea, with Gaussian noise); here with Laplace noise, ε-private.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import Each
from sfumato.dp.mechanisms.calibrated import Stated, source_of
from sfumato.dp.mechanisms.noise.errors import BoundedError
from sfumato.dp.mechanisms.statistics.moments import deviation, measure
from sfumato.dp.mechanisms.statistics.records import Records, numbers
from sfumato.dp.ranges import INTERVAL, Epsilon, PublicSize


@dataclass(frozen=True)
class Covariance(Stated[Any, NDArray[np.float64]]):
    """The (population) covariance matrix of rows whose columns are clamped to `bounds`, one pair per column.

    ε-private (`epsilon`) for the whole matrix. `size` is a public guess of the number of rows, for stating the error alone.
    """

    bounds: Annotated[
        tuple[tuple[Number, Number], ...],
        Each(INTERVAL, at_least=1, what="one pair (lower, upper) per column, the first below the second"),
        "the ends of the values of each column, declared by the owner",
    ]
    epsilon: Epsilon
    size: PublicSize = None

    @property
    def _widest(self) -> float:
        return max(float(Fraction(high) - Fraction(low)) / 2 for low, high in self.bounds)

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> BoundedError:
        """Of one entry: a bound for columns of the largest width.

        An entry is at most three moments' errors off; making the matrix positive brings it nearer to the true one as a
        whole, so that an entry is off by at most what all d² entries were off together.
        """
        width = 2 * len(self.bounds) * self._widest**2
        if self.size is None:
            return BoundedError.of(width, width)
        one = deviation(len(self.bounds), self.neighbours, Fraction(self.epsilon), self.size)
        return BoundedError.of(3 * one * len(self.bounds) * self._widest**2, width)

    def answer(self, value: Records, randomness: Randomness | None = None) -> NDArray[np.float64]:
        columns = columns_of(value, len(self.bounds))
        pairs = [(Fraction(low), Fraction(high)) for low, high in self.bounds]
        moments = measure(columns, pairs, self.neighbours, Fraction(self.epsilon), source_of(randomness))
        halves = np.array([float(high - low) / 2 for low, high in pairs])
        return moments.covariance * np.outer(halves, halves)


def columns_of(rows: Records, count: int) -> list[NDArray[np.float64]]:
    """A table of numbers as its columns."""
    table = numbers(rows)
    table = table.reshape(-1, count) if table.ndim == 1 and count == 1 or table.size == 0 else table
    require(table.ndim == 2 and table.shape[1] == count, f"rows must have {count} numbers each, one per pair of bounds")
    return [table[:, place] for place in range(count)]
