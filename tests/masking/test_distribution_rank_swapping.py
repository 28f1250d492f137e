"""Swapping over normally distributed distances: the distances that come out have the stated law."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import sfumato as sf


def moved(p: float, size: int, seed: int) -> np.ndarray:
    values = np.arange(float(size))
    masked = sf.DistributionRankSwapping(p=p, unit="ranks", columns=("x",)).apply(pa.table({"x": values}), seed=seed)
    return masked.result.table["x"].to_numpy() - values


def test_the_first_rank_moves_by_the_law_of_the_distance() -> None:
    """Rank 0 finds every rank unswapped, so it moves by max(1, round(r)), r ~ N(p/2, (p/2)²): its mean over 1,000 seeds lies
    within 5.5 standard errors (false alarm below 10⁻⁷)."""
    p, seeds = 40, 1000
    first = np.array([moved(p, 200, seed)[0] for seed in range(seeds)])
    distances = np.arange(1, 200)
    from scipy.stats import norm

    above = norm.cdf(distances + 0.5, p / 2, p / 2) - norm.cdf(distances - 0.5, p / 2, p / 2)
    above[0] = norm.cdf(1.5, p / 2, p / 2)  # what is at most 1 goes to the next rank
    mean = float(distances @ above)
    deviation = float(np.sqrt((distances - mean) ** 2 @ above))
    assert abs(first.mean() - mean) < 5.5 * deviation / np.sqrt(seeds)


def test_distances_grow_with_p() -> None:
    spreads = [np.abs(moved(p, 2000, 3)).mean() for p in (10, 100, 600)]
    assert spreads[0] * 3 < spreads[1] < spreads[2] / 2
