"""Swapping between buckets: about half of the values stay in their bucket, far buckets are rare."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import sfumato as sf


def test_the_first_rank_chooses_buckets_by_powers_of_two() -> None:
    """Rank 0 of 40 in buckets of 10 stays in its own with probability 8/15, then 4/15, 2/15, 1/15: a chi-square of 1,000
    seeds below 35.9 (three degrees of freedom, false alarm below 10⁻⁷)."""
    values, seeds = np.arange(40.0), 1000
    mask = sf.BucketRankSwapping(p=25, columns=("x",))
    table = pa.table({"x": values})
    reached = [int(mask.apply(table, seed=seed).result.table["x"][0].as_py()) // 10 for seed in range(seeds)]
    counts = np.bincount(reached, minlength=4)
    expected = seeds * np.array([8, 4, 2, 1]) / 15
    assert np.sum((counts - expected) ** 2 / expected) < 35.9


def test_one_bucket_of_everything_is_a_random_pairing() -> None:
    values = np.arange(500.0)
    masked = sf.BucketRankSwapping(p=100, columns=("x",)).apply(pa.table({"x": values}), seed=2).result.table["x"].to_numpy()
    assert abs(np.corrcoef(values, masked)[0, 1]) < 0.25  # deviation 0.045
