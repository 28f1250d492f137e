"""Noisy moments: the count, the sums and the sums of products of several columns, from one budget.

Each column is scaled so that its declared bounds become -1 and 1; then one record adds at most 1 to the count, to each
sum and to each sum of products, and everything is one integer vector with one L1 sensitivity.
Dwork, Smith, "Differential privacy for statistics: what we know and what we want to learn", Journal of Privacy and
Confidentiality 1(2), 2009; Wang, "Revisiting differentially private linear regression", UAI 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.core.guarantees.loss import Neighbours
from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.grid import plain_scale
from sfumato.dp.mechanisms.statistics.records import places
from sfumato.kernels.sampling.noise import discrete_laplace

#: A record is one of 2·UNIT + 1 places from -UNIT to UNIT; products stay below 2^30 and sums within 64 bits.
UNIT = 2**15


@dataclass(frozen=True)
class Moments:
    """Of columns scaled to [-1, 1]: how many records, their means and the matrix of mean products."""

    count: float
    means: NDArray[np.float64]
    products: NDArray[np.float64]

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Mean products less products of means: the nearest matrix that can be a covariance."""
        raw = self.products - np.outer(self.means, self.means)
        values, vectors = np.linalg.eigh((raw + raw.T) / 2)
        return np.asarray((vectors * np.clip(values, 0.0, len(values))) @ vectors.T)


def change(columns: int, neighbours: Neighbours) -> int:
    """The L1 sensitivity of count, sums and products.

    One record added or removed: 1 + d + d(d+1)/2. One replaced, the count being public: 2 for each sum, 1 for each square,
    2 for each other product.
    """
    if neighbours == "add_remove":
        return 1 + columns + columns * (columns + 1) // 2
    return 2 * columns + columns + columns * (columns - 1)


def scale(columns: int, neighbours: Neighbours, epsilon: Fraction) -> Fraction:
    """The scale of the noise of one scaled sum."""
    return change(columns, neighbours) / epsilon


def measure(
    columns: list[NDArray[np.float64]],
    bounds: list[tuple[Fraction, Fraction]],
    neighbours: Neighbours,
    epsilon: Fraction,
    source: Randomness,
) -> Moments:
    """Draw the noisy moments; means and products are divided by the noisy count, of at least one."""
    records, exact_sums, exact_products = exact_moments(columns, bounds)
    size, spread = len(columns), scale(len(columns), neighbours, epsilon)
    sums = (exact_sums + discrete_laplace(plain_scale(spread * UNIT), size, source)).astype(np.float64)
    noise = discrete_laplace(plain_scale(spread * UNIT**2), len(exact_products), source)
    squares = (exact_products + noise).astype(np.float64)
    count = float(records)
    if neighbours == "add_remove":
        count += float(discrete_laplace(plain_scale(spread), 1, source)[0])
    divisor = max(count, 1.0)
    first, second = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[first, second] = matrix[second, first] = np.clip(squares / (divisor * UNIT**2), -1, 1)
    return Moments(count, np.clip(sums / (divisor * UNIT), -1, 1), matrix)


def exact_moments(
    columns: list[NDArray[np.float64]], bounds: list[tuple[Fraction, Fraction]]
) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """The count, the sums in 1/UNIT and the sums of products in 1/UNIT² (upper triangle): not to be released."""
    units = np.stack([places(c, *b, 2 * UNIT) - UNIT for c, b in zip(columns, bounds, strict=True)])
    first, second = np.triu_indices(len(columns))
    return units.shape[1], units.sum(axis=1, dtype=np.int64), (units @ units.T)[first, second]


def deviation(columns: int, neighbours: Neighbours, epsilon: Fraction, size: int) -> float:
    """A bound on the root mean square error of a scaled mean or mean product of that many records.

    As long as the noisy count is at least n/2 it is at most 2/n times the noise of the sum and of the count together;
    otherwise at most 2, the width of the scaled domain. Rounding adds two places at most.
    """
    one = float(scale(columns, neighbours, epsilon))
    noises = 2 if neighbours == "add_remove" else 1
    rare = math.exp(-size / 2 / one) / 2 if neighbours == "add_remove" else 0.0
    factor = 2 if neighbours == "add_remove" else 1
    return min(2.0, math.sqrt(noises * 2 * (factor * one / size) ** 2 + 4 * rare) + 2 / UNIT)
