"""What repeated masks give away together: the stated numbers against data that were really masked several times."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.attacks.repeated_masks import repeated_masks
from sfumato.data.masked import Masked
from sfumato.data.schema import Column, Schema

ROWS = 20_000
DRAW = np.random.default_rng(7)
VALUES = DRAW.gamma(9.0, 5.0, ROWS)
DATA = sf.read(
    pa.table({"x": VALUES, "c": DRAW.choice(list("abc"), ROWS)}),
    Schema(dataset="d", columns={"x": Column(role="quasi", type="number"), "c": Column(role="quasi", type="string")}),
)


def masked(method: sf.Mask, seed: int) -> Masked:
    made: Masked = method.apply(DATA, seed=seed).result
    return made


@pytest.mark.parametrize("ratios", [(0.2, 0.2), (0.1, 0.4), (0.3, 0.3, 0.3)])
def test_noise_averages_down_to_what_is_stated(ratios: tuple[float, ...]) -> None:
    """20,000 records: the variance of a weighted mean is met within 5 %, seven standard deviations and more."""
    releases = [masked(sf.AdditiveNoise(ratio, columns=("x",)), seed) for seed, ratio in enumerate(ratios, 1)]
    [found] = repeated_masks([each.transparency for each in releases])
    weights = [1 / ratio for ratio in ratios]
    mean = sum(w * each.table.column("x").to_numpy() for w, each in zip(weights, releases, strict=True)) / sum(weights)
    left = np.var(mean - VALUES) / np.var(VALUES)
    assert left == pytest.approx(found.together, rel=0.05)
    assert found.alone == min(ratios) and found.together < found.alone and found.releases == len(ratios)


def test_factors_average_down_to_what_is_stated() -> None:
    releases = [masked(sf.MultiplicativeNoise(0.3, columns=("x",)), seed) for seed in (1, 2, 3)]
    [found] = repeated_masks([each.transparency for each in releases])
    logs = np.mean([np.log(each.table.column("x").to_numpy() / VALUES) for each in releases], axis=0)
    assert math.expm1(np.var(logs)) == pytest.approx(found.together, rel=0.1)


def test_the_losses_of_pram_add_up_to_what_the_likelihoods_allow() -> None:
    releases = [masked(sf.Pram(stay, columns=("c",)), 1) for stay in (0.6, 0.8)]
    [found] = repeated_masks([each.transparency for each in releases])
    one, two = (np.array(each.transparency["transitions"]["c"]["matrix"]) for each in releases)
    ratios = [one[x, y] * two[x, z] / (one[other, y] * two[other, z]) for x, other, y, z in itertools.product(range(3), repeat=4)]
    assert math.log(max(ratios)) == pytest.approx(found.together)


def test_the_true_rank_is_within_the_window_of_every_release() -> None:
    releases = [masked(sf.RankSwapping(p, columns=("x",)), 1) for p in (2, 5)]
    [found] = repeated_masks([each.transparency for each in releases])
    rank = np.argsort(np.argsort(VALUES))
    apart = [np.abs(np.argsort(np.argsort(each.table.column("x").to_numpy())) - rank).max() for each in releases]
    assert apart[0] <= found.together == found.alone
    assert apart[1] > found.together  # the wider window says less


def test_other_masks_combinations_and_strata_are_left_out() -> None:
    noise, swapped = masked(sf.AdditiveNoise(0.2, columns=("x",)), 1), masked(sf.RankSwapping(5, columns=("x",)), 1)
    assert repeated_masks([noise.transparency, swapped.transparency]) == []
    combined = masked(sf.Combined(masks=(sf.AdditiveNoise(0.2, columns=("x",)), sf.RankSwapping(5, columns=("x",)))), 1)
    strata = masked(sf.AdditiveNoise(0.2, columns=("x",), strata=("c",)), 1)
    assert repeated_masks([noise.transparency, combined.transparency, strata.transparency]) == []
