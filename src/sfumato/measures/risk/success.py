"""Rates of success, and how sure they are: the 95 % interval that every attack and every measure of risk reports.

Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22(158), 1927.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

#: Quantile of the standard normal distribution that leaves 2.5 % on each side.
Z95 = 1.959963984540054


def wilson(successes: float, trials: float) -> tuple[float, float]:
    """The 95 % interval of a rate; `successes` may be an expected number. Without trials nothing is known:
    (0, 1)."""
    if trials <= 0:
        return (0.0, 1.0)
    rate = min(max(successes / trials, 0.0), 1.0)
    square = Z95 * Z95 / trials
    centre = (rate + square / 2) / (1 + square)
    half = Z95 * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials)) / (1 + square)
    low = 0.0 if rate == 0.0 else max(centre - half, 0.0)
    high = 1.0 if rate == 1.0 else min(centre + half, 1.0)
    return (low, high)


def mean_interval(shares: NDArray[np.float64], owner: NDArray[np.int64] | None = None) -> tuple[float, float]:
    """The 95 % interval of the mean of shares in [0, 1], one per record: Wilson's, for as many trials as a rate with this
    variance would have. `owner` says whose a record is where somebody has several: people vary, and not their records."""
    records = int(shares.size)
    if not records:
        return (0.0, 1.0)
    mean = min(max(float(shares.mean()), 0.0), 1.0)
    deviations = shares - mean
    people = records
    if owner is not None:
        of_row = np.unique(owner, return_inverse=True)[1].reshape(-1)
        deviations = np.bincount(of_row, deviations).astype(np.float64)
        people = int(deviations.size)
    variance = float(deviations @ deviations) / records**2  # of the mean
    trials = people if variance <= 0.0 or mean in (0.0, 1.0) else mean * (1.0 - mean) / variance
    return wilson(mean * trials, trials)


def share(part: float, whole: float) -> float:
    """`part / whole`, 0 when there is nothing."""
    return float(part) / float(whole) if whole else 0.0
