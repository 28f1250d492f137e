"""Linear regression from noisy sufficient statistics: count, sums and products of the columns, then ordinary least squares.

The fit is post-processing of the noisy moments, with a ridge as large as their noise so that it is always defined.
Dwork, Smith, "Differential privacy for statistics", 2009; Wang, "Revisiting differentially private linear regression: optimal
and adaptive prediction and estimation in unbounded domain", UAI 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core import ranges
from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import Each
from sfumato.dp.mechanisms.calibrated import Stated, source_of
from sfumato.dp.mechanisms.noise.errors import BoundedError
from sfumato.dp.mechanisms.statistics.covariance import columns_of
from sfumato.dp.mechanisms.statistics.moments import Moments, deviation, measure, scale
from sfumato.dp.mechanisms.statistics.records import Records
from sfumato.dp.ranges import INTERVAL, Epsilon, PublicSize


@dataclass(frozen=True)
class RegressionFit:
    """target ≈ intercept + coefficients · predictors. `moments` are the noisy ones it was made from, in scaled units."""

    intercept: float
    coefficients: tuple[float, ...]
    moments: Moments

    def predict(self, rows: object) -> NDArray[np.float64]:
        """The fitted target of new predictors."""
        table = np.asarray(rows, dtype=np.float64).reshape(-1, len(self.coefficients))
        return np.asarray(self.intercept + table @ np.array(self.coefficients))


@dataclass(frozen=True)
class Regression(Stated[Any, RegressionFit]):
    """Least squares of the last column on the others, from rows whose columns are clamped to `bounds`.

    ε-private (`epsilon`) for everything in the fit. `ridge` is added to the variance of each scaled predictor; by default the
    deviation of the noise in it. `size` is a public guess of the number of rows, for stating the error alone.
    """

    bounds: Annotated[
        tuple[tuple[Number, Number], ...],
        Each(INTERVAL, at_least=2, what="one pair (lower, upper) for the target and for each predictor, at least one of these"),
        "the ends of the values of each column, declared by the owner; the target is the last one",
    ]
    epsilon: Epsilon
    ridge: Annotated[float | None, ranges.Number(at_least=0), "what is added to the variance of each scaled predictor"] = None
    size: PublicSize = None

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> BoundedError:
        """Of one scaled mean or mean product, the statistics that the fit is made from; no bound holds for coefficients
        of every table, because predictors may hardly vary."""
        if self.size is None:
            return BoundedError.of(2.0, 2.0)
        one = deviation(len(self.bounds), self.neighbours, Fraction(self.epsilon), self.size)
        return BoundedError.of(one, 2.0)

    def answer(self, value: Records, randomness: Randomness | None = None) -> RegressionFit:
        columns = columns_of(value, len(self.bounds))
        pairs = [(Fraction(low), Fraction(high)) for low, high in self.bounds]
        moments = measure(columns, pairs, self.neighbours, Fraction(self.epsilon), source_of(randomness))
        return self._fit(moments)

    def _fit(self, moments: Moments) -> RegressionFit:
        covariance, predictors = moments.covariance, len(self.bounds) - 1
        noise = float(scale(len(self.bounds), self.neighbours, Fraction(self.epsilon))) / max(moments.count, 1.0)
        ridge = max(noise if self.ridge is None else self.ridge, 1e-12)
        slopes = np.linalg.solve(
            covariance[:predictors, :predictors] + ridge * np.eye(predictors), covariance[:predictors, predictors]
        )
        halves = np.array([float(Fraction(high) - Fraction(low)) / 2 for low, high in self.bounds])
        middles = np.array([float(Fraction(high) + Fraction(low)) / 2 for low, high in self.bounds])
        means = middles + halves * moments.means
        coefficients = slopes * halves[-1] / halves[:-1]
        return RegressionFit(float(means[-1] - coefficients @ means[:-1]), tuple(coefficients.tolist()), moments)
