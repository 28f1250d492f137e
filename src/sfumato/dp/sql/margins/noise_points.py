"""Fixed points of the law of a question's noise: what the noise could have been, without drawing anything.

A good lattice of points fills the cube of probabilities evenly (Korobov 1959; the multiplier was chosen so that the 90, 95 and
99 % quantiles of 80 sums of up to five noises of either law come out within 4 % with 2,048 points and within 2.5 % with 4,096),
and the inverse of the law carries each coordinate over. The points know neither data nor secrets, so that computing with them
is post-processing, and the same answer has the same margins for ever.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sfumato.dp.sql.measuring.noise import Law, Noise

Floats = NDArray[np.float64]

#: The multiplier of the lattice, by how many points it has.
_MULTIPLIERS = {4096: 1129, 2048: 1109}
#: Beyond so many measured groups half as many points do.
_MANY = 1_000
#: From this deviation on, rounding a normal number is as good as the law of whole numbers.
_WIDE = 20.0


def points_for(groups: int) -> int:
    """How many points are computed with where so many groups were measured."""
    return 4096 if groups <= _MANY else 2048


def noise_points(noises: Sequence[Noise], count: int) -> Floats:
    """One row per noise: its value, in its own steps, at each of `count` equally likely points."""
    return np.stack([_quantiles(noise.law, noise.amount, count)[_order(place, count)] for place, noise in enumerate(noises)])


def _order(place: int, count: int) -> NDArray[np.int64]:
    """Which of the `count` probabilities each point has in one coordinate."""
    multiplier = pow(_MULTIPLIERS[count], place, count)
    return (np.arange(count, dtype=np.int64) * multiplier) % count


def _probabilities(count: int) -> Floats:
    return (np.arange(count) + 0.5) / count


@lru_cache(maxsize=64)
def _quantiles(law: Law, amount: Fraction, count: int) -> Floats:
    """The whole numbers that noise stays below with each probability."""
    if law == "gaussian":
        deviation = math.sqrt(amount)
        if deviation >= _WIDE:
            return np.rint(deviation * _standard(count))
        reach = np.arange(-math.ceil(9 * deviation) - 1, math.ceil(9 * deviation) + 2)
        chances = np.exp(-(reach.astype(np.float64) ** 2) / (2 * float(amount)))
        return reach[np.searchsorted(np.cumsum(chances) / chances.sum(), _probabilities(count))].astype(np.float64)
    scale = float(amount)
    if scale < 1e-3:
        return np.zeros(count)
    # P(x > t) = r^(t+1) / (1 + r) with r = e^(-1/scale), for t from 0 on
    beyond = np.minimum(_probabilities(count), _probabilities(count)[::-1])
    size = np.maximum(np.ceil(-scale * np.log(beyond * (1 + math.exp(-1 / scale))) - 1 - 1e-9), 0.0)
    return np.where(np.arange(count) < count // 2, -size, size)


def points_of_sums(noises: Sequence[Noise], terms: int, count: int, place: int) -> Floats:
    """As `noise_points`, of the sum of so many independent copies of each noise, in coordinates from `place` on."""
    return np.stack(
        [_sum_quantiles(noise.law, noise.amount, terms, count)[_order(place + row, count)] for row, noise in enumerate(noises)]
    )


@lru_cache(maxsize=256)
def _sum_quantiles(law: Law, amount: Fraction, terms: int, count: int) -> Floats:
    """The numbers that a sum of independent noises stays below with each probability."""
    if terms == 0 or float(amount) < 1e-3:
        return np.zeros(count)
    if law == "gaussian":
        return _quantiles(law, amount * terms, count)
    # Large noise on a coarser grid, on which its scale is 20 steps: the law of a sum is the power of its transform.
    grid = max(float(amount) / _WIDE, 1.0)
    scale = float(amount) / grid
    reach = scale * (12 * math.sqrt(2 * terms) + 40)
    size = 2 ** math.ceil(math.log2(2 * reach))
    ratio = math.exp(-1 / scale)
    angles = 2 * np.pi * np.fft.rfftfreq(size)
    transform = ((1 - ratio) ** 2 / (1 - 2 * ratio * np.cos(angles) + ratio**2)) ** terms
    chances = np.maximum(np.fft.fftshift(np.fft.irfft(transform, size)), 0.0)
    numbers = np.arange(size) - size // 2
    places = np.searchsorted(np.cumsum(chances) / chances.sum(), _probabilities(count))
    quantiles: Floats = grid * numbers[np.minimum(places, size - 1)].astype(np.float64)
    return quantiles


@lru_cache(maxsize=4)
def _standard(count: int) -> Floats:
    """Quantiles of the normal law with deviation 1."""
    half = np.array([NormalDist().inv_cdf(chance) for chance in _probabilities(count)[count // 2 :]])
    return np.concatenate([-half[::-1], half])
