"""Exact confidence bounds on a probability from a count.

Clopper, Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika 26, 1934.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def lower_bound(hits: object, trials: int, alarm: float) -> NDArray[np.float64]:
    """A value that the probability of a hit falls below with chance at most `alarm`."""
    from scipy.special import betaincinv

    counts = np.asarray(hits, dtype=np.float64)
    with np.errstate(all="ignore"):
        bounds = betaincinv(np.maximum(counts, 1), trials - np.maximum(counts, 1) + 1, alarm)
    return np.where(counts == 0, 0.0, bounds)


def upper_bound(hits: object, trials: int, alarm: float) -> NDArray[np.float64]:
    """A value that the probability of a hit exceeds with chance at most `alarm`."""
    from scipy.special import betainccinv

    counts = np.asarray(hits, dtype=np.float64)
    with np.errstate(all="ignore"):
        bounds = betainccinv(np.minimum(counts, trials - 1) + 1, trials - np.minimum(counts, trials - 1), alarm)
    return np.where(counts == trials, 1.0, bounds)


def epsilon_bound(
    hits: object, trials: int, other_hits: object, other_trials: int, alarm: float, delta: float
) -> NDArray[np.float64]:
    """A value that the smallest ε exceeds, except with chance `alarm`, from the counts of one event on two neighbours."""
    low = lower_bound(hits, trials, alarm / 2) - delta
    high = upper_bound(other_hits, other_trials, alarm / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > 0, np.log(np.maximum(low, 1e-300)) - np.log(np.maximum(high, 1e-300)), -np.inf)
