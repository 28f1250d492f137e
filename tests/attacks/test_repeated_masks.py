"""What repeated masks give away together: the stated numbers against data that were really masked several times."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.attacks.several.repeated_masks import Repeated, over_other_tables, repeated_masks
from sfumato.core.certificate import plain
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


def told(*laws: dict[str, object], **more: object) -> list[dict[str, object]]:
    return [
        plain({"masked_columns": list(law), "transitions": {n: {"epsilon": e} for n, e in law.items()}, **more}) for law in laws
    ]


def test_a_loss_without_bound_makes_the_sum_unbounded() -> None:
    [found] = repeated_masks(told({"c": 1.0}, {"c": math.inf}))
    assert found.together == math.inf and found.releases == 2
    assert found.sentence() == "no finite ε bounds the losses in 'c' (2 releases) together"
    assert repeated_masks(told({"c": math.inf})) == []


def test_a_release_that_tells_nothing_hides_no_other() -> None:
    [found] = repeated_masks(told({"c": 0.5}, {"c": 0.0}, {"c": 0.25}))
    assert (found.releases, found.together) == (2, 0.75)
    assert repeated_masks(told({"c": 0.5}, {"c": 0.0})) == []
    [shown] = repeated_masks([{"masked_columns": ["x"], "noise_variance_ratio": ratio} for ratio in (0.5, 0.0)])
    assert shown.together == 0.0


def test_the_loss_of_a_combination_counts_for_each_of_its_columns() -> None:
    together = {"masked_columns": ["c", "d"], "method": {"joint": True}, "transitions": {"c × d": {"epsilon": 2.0}}}
    found = {each.column: each.together for each in repeated_masks([*told({"c": 1.0}), together])}
    assert found == {"c": 3.0}
    # by the likelihoods: c alone and (c, d) together, of two values each
    rng = np.random.default_rng(3)
    for _ in range(20):
        alone, joint = rng.dirichlet([1, 1], 2), rng.dirichlet([1] * 4, 4)
        bounds = [
            math.log(max(m[i, y] / m[j, y] for i in range(len(m)) for j in range(len(m)) for y in range(len(m))))
            for m in (alone, joint)
        ]
        exact = max(
            alone[c, y] * joint[2 * c + d, z] / (alone[other, y] * joint[2 * other + d, z])
            for c, other, d, y, z in itertools.product(range(2), range(2), range(2), range(2), range(4))
        )
        law = {**together, "transitions": {"c × d": {"epsilon": bounds[1]}}}
        [sum_of_both] = repeated_masks([*told({"c": bounds[0]}), law])
        assert math.log(exact) <= sum_of_both.together + 1e-9


def test_ranks_and_noise_of_different_tables_are_not_put_together() -> None:
    releases = [
        masked(sf.RankSwapping(5, columns=("x",)), 1).transparency,
        masked(sf.AdditiveNoise(0.2, columns=("x",)), 1).transparency,
    ]
    tables = ["a", "a", "b", "b"]
    assert repeated_masks([*releases, *releases], tables) == []
    assert over_other_tables([*releases, *releases], tables) == ["x"]
    assert {(each.kind, each.releases) for each in repeated_masks([*releases] * 2, ["a"] * 4)} == {("ranks", 2), ("noise", 2)}
    assert over_other_tables([*releases] * 2, ["a"] * 4) == []
    losses = told({"c": 1.0}, {"c": 1.0})
    assert len(repeated_masks(losses, ["a", "b"])) == 1 and over_other_tables(losses, ["a", "b"]) == []


@pytest.mark.parametrize("number", [0.16666, 2.005, 1.9459, 3.8999, 12344.0, 0.1, 1e-7])
def test_what_is_said_is_never_better_than_what_is(number: float) -> None:
    def said(kind: str, before: str, after: str) -> float:
        return float(Repeated("x", kind, 2, number, number).sentence().split(before)[1].split(after)[0])

    assert number <= said("categories", "ε = ", " at most") <= 1.01 * number
    assert number >= said("noise", "down to ", " of the") >= 0.99 * number
    assert number >= said("factors", "variance of ", ",") >= 0.99 * number
