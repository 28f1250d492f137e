"""Masks computed by an engine: the laws of those in this process, the same facts, and nothing drawn twice.

Statistical tests have a fixed key and a false-alarm rate of 10⁻⁶ or less.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom, chi2, kstwo

import sfumato as sf
from sfumato.core.certificate import plain
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.data.records import NumberColumn
from sfumato.data.schema import Column
from sfumato.engines.memory import MemoryRelation
from sfumato.masking.base import Mask
from sfumato.masking.columns import in_memory
from sfumato.masking.engine_rows import EngineRows
from sfumato.masking.engine_summaries import summaries
from sfumato.masking.noise.moments import grid_step

KEY = bytes(range(32))
COUNT = 10_000
_SOURCE = np.random.default_rng(11)
PEOPLE = pa.table(
    {
        "id": np.arange(COUNT),
        "age": pa.array(_SOURCE.integers(18, 90, COUNT), mask=_SOURCE.random(COUNT) < 0.02),
        "income": np.round(_SOURCE.lognormal(8, 1, COUNT), 2),
        "sex": pa.array(_SOURCE.choice(["f", "m", "x"], COUNT, p=[0.6, 0.3, 0.1]), mask=_SOURCE.random(COUNT) < 0.01),
        "size": _SOURCE.choice(["s", "m", "l", "xl"], COUNT),
    }
)
SCHEMA = sf.Schema(columns={"size": Column(order=("s", "m", "l", "xl"))})


def masked(mask: Mask, table: pa.Table = PEOPLE, key: bytes = KEY, schema: sf.Schema = SCHEMA) -> tuple[pa.Table, Any]:
    relation = MemoryRelation(table)
    change = mask.in_engine(EngineRows.of(relation, schema, table.column_names, table.num_rows, key))
    answer = relation.run(change.rows.finished(table.column_names), change.rows.uploads)
    return answer.sort_by("id"), change


def column(table: pa.Table, name: str) -> Any:
    return table.column(name).cast(pa.string() if pa.types.is_dictionary(table.column(name).type) else table.column(name).type)


def numbers(table: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray(table.column(name).cast(pa.float64()).fill_null(np.nan))


def facts_here(mask: Mask) -> dict[str, Any]:
    """What the mask in this process publishes about the same table."""
    return dict(mask.apply(in_memory(PEOPLE, SCHEMA), seed=1).result.transparency)


def transitions(before: Any, after: Any, labels: list[str], outputs: list[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    pairs = list(zip(before.to_pylist(), after.to_pylist(), strict=True))
    return np.array([[pairs.count((one, other)) for other in outputs] for one in labels])


@pytest.mark.parametrize(
    "mask",
    [
        sf.Pram(stay=0.7, columns=("sex",)),
        sf.Pram(epsilon=1.0, columns=("sex",)),
        sf.Pram(stay=0.6, invariant=True, columns=("sex",)),
        sf.Pram(stay=0.8, suppress=0.1, columns=("sex",)),
        sf.Pram(matrix={"sex": {"f": {"f": 0.5, "u": 0.5}, "m": {"m": 0.9, "x": 0.1}, "x": {"x": 1.0}}}, columns=("sex",)),
    ],
    ids=["stay", "epsilon", "invariant", "suppress", "matrix"],
)
def test_pram_changes_categories_by_the_law_that_it_publishes(mask: sf.Pram) -> None:
    answer, change = masked(mask)
    law = change.published["transitions"]["sex"]
    here = facts_here(mask)
    stated = plain(change.published["epsilon"])
    assert stated == (here["epsilon"] if isinstance(stated, str) else pytest.approx(here["epsilon"]))
    assert np.allclose(law["matrix"], here["transitions"]["sex"]["matrix"])
    counts = transitions(column(PEOPLE, "sex"), column(answer, "sex"), law["labels"], law["outputs"])
    assert column(answer, "sex").null_count == PEOPLE.column("sex").null_count
    for row, probabilities in zip(counts, np.array(law["matrix"]), strict=True):
        certain = probabilities == 0
        assert not row[certain].any()
        expected = row.sum() * probabilities[~certain]
        statistic = ((row[~certain] - expected) ** 2 / expected).sum()
        assert statistic < chi2.isf(1e-6 / 20, max(int((~certain).sum()) - 1, 1))


def test_joint_pram_changes_both_columns_together() -> None:
    table = PEOPLE.filter(PEOPLE.column("sex").is_valid())
    answer, change = masked(sf.Pram(stay=0.5, joint=True, columns=("sex", "size")), table)
    same = [a == b for a, b in zip(_pairs(table), _pairs(answer), strict=True)]
    count = len(same)
    assert binom.ppf(1e-7, count, 0.5) <= sum(same) <= binom.ppf(1 - 1e-7, count, 0.5)
    assert len(change.published["transitions"]["sex × size"]["labels"]) == 12


def _pairs(table: pa.Table) -> list[tuple[Any, Any]]:
    return list(zip(column(table, "sex").to_pylist(), column(table, "size").to_pylist(), strict=True))


def test_additive_noise_is_normal_with_the_variance_asked_for() -> None:
    mask = sf.AdditiveNoise(0.1, columns=("age", "income"), whole=False)
    answer, change = masked(mask)
    assert dict(change.published) == {name: facts_here(mask)[name] for name in change.published}
    drawn = {}
    for name in ("age", "income"):
        before, after = numbers(PEOPLE, name), numbers(answer, name)
        assert np.array_equal(np.isnan(before), np.isnan(after))
        deviation = math.sqrt(0.1) * float(np.nanstd(before, ddof=1))
        drawn[name] = (after - before)[~np.isnan(before)] / deviation
        size = drawn[name].size
        assert abs(drawn[name].mean()) < 5.2 / math.sqrt(size)
        assert abs(drawn[name].var() - 1) < 5.2 * math.sqrt(2 / size)
        assert _distance(drawn[name]) < kstwo.isf(1e-7, size)
        assert abs(np.corrcoef(drawn[name], before[~np.isnan(before)])[0, 1]) < 5.2 / math.sqrt(size)
    known = ~np.isnan(numbers(PEOPLE, "age"))
    assert abs(np.corrcoef(drawn["age"], drawn["income"][known])[0, 1]) < 5.2 / math.sqrt(int(known.sum()))


def _distance(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    from scipy.special import ndtr

    shares, steps = ndtr(np.sort(values)), np.arange(values.size + 1) / values.size
    return float(max(np.abs(shares - steps[1:]).max(), np.abs(shares - steps[:-1]).max()))


def test_rescaled_noise_keeps_the_variance_and_whole_numbers_stay_whole() -> None:
    answer, _ = masked(sf.AdditiveNoise(0.5, rescale=True, columns=("income", "age")))
    assert answer.column("age").type == pa.int64()
    ratio = np.var(numbers(answer, "income")) / np.var(numbers(PEOPLE, "income"))
    assert abs(ratio - 1) < 0.2  # the fourth moment of the incomes is large
    assert np.mean(numbers(answer, "income") != numbers(PEOPLE, "income")) > 0.99


def test_small_values_of_a_skewed_column_are_not_taken_for_large_ones() -> None:
    """They were counted by parts of the range: 99 % came out as they were, and the owner was told 1 %."""
    skewed = np.concatenate([_SOURCE.integers(1, 3, COUNT - 10), [900] * 9, [1_000_000]])
    table = pa.table({"id": np.arange(COUNT), "children": skewed, "income": np.round(_SOURCE.lognormal(8, 1, COUNT), 2)})
    with pytest.raises(Unsupported, match="children"):
        masked(sf.MultiplicativeNoise(10, columns=("children",)), table)
    answer, change = masked(sf.MultiplicativeNoise(10, columns=("children",), may_round_back=True), table)
    unchanged = float(np.mean(numbers(answer, "children") == skewed))
    assert unchanged <= change.details["expected_unchanged"]["children"] <= unchanged + 0.02


def test_factors_have_the_mean_and_variance_that_are_published() -> None:
    for mask in (
        sf.MultiplicativeNoise(10, columns=("income",)),
        sf.MultiplicativeNoise(30, law="lognormal", columns=("income",)),
    ):
        answer, change = masked(mask)
        factors = numbers(answer, "income") / numbers(PEOPLE, "income")
        variance = change.published["factor_variance"]
        assert dict(change.published) == {name: facts_here(mask)[name] for name in change.published}
        assert factors.min() > 0 and abs(factors.mean() - 1) < 5.2 * math.sqrt(variance / COUNT)
        fourth = float(((factors - 1) ** 4).mean())
        assert abs(factors.var() - variance) < 5.2 * math.sqrt((fourth - variance**2) / COUNT)


def test_rounding_is_that_of_this_process_and_at_random_right_on_average() -> None:
    nearest = sf.Rounding({"age": 5, "income": 0.25}, columns=("age", "income"))
    answer, _ = masked(nearest)
    here = nearest.apply(in_memory(PEOPLE, SCHEMA)).result.table
    assert all(answer.column(name).equals(here.column(name).cast(answer.column(name).type)) for name in ("age", "income"))
    answer, _ = masked(sf.Rounding(1000, how="random", columns=("income",)))
    before, after = numbers(PEOPLE, "income"), numbers(answer, "income")
    assert (np.abs(after - before) < 1000).all() and not (after % 1000).any()
    below = np.floor(before / 1000) * 1000
    part = (before - below) / 1000
    deviation = math.sqrt(float((part * (1 - part)).sum()))
    assert abs(float((after > below).sum()) - float(part.sum())) < 5.2 * deviation


@pytest.mark.parametrize(
    "mask",
    [
        sf.TopBottomCoding(top={"age": 80}, columns=("age",)),
        sf.TopBottomCoding(top=0.7, bottom=0.3, by="quantile", columns=("age", "income", "size")),
        sf.TopBottomCoding(top=0.95, bottom=0.05, by="quantile", show="mean", columns=("income",)),
        sf.TopBottomCoding(top="l", bottom="m", columns=("size",)),
        sf.Generalisation({"age": 1, "sex": 1}),
        sf.Generalisation(suppress={"sex": ("x",)}),
        sf.Generalisation(fewer_than=150, columns=("age",)),
    ],
    ids=["value", "quantile", "mean", "ordered", "levels", "suppress", "rare"],
)
def test_what_is_not_drawn_is_that_of_this_process(mask: Mask) -> None:
    answer, change = masked(mask)
    outcome = mask.apply(in_memory(PEOPLE, SCHEMA))
    here = outcome.result.table
    for name in change.columns:
        if pa.types.is_floating(answer.column(name).type):
            assert np.allclose(numbers(answer, name), numbers(here, name), rtol=1e-12, equal_nan=True)
        else:
            assert column(answer, name).to_pylist() == column(here, name).to_pylist()
    told = dict(outcome.result.transparency)
    assert {name: told[name] for name in change.published} == dict(change.published)


def test_a_sample_has_as_many_records_as_asked_for_and_all_are_as_likely() -> None:
    """100 blocks of neighbours, by χ² (false alarm 10⁻⁶)."""
    answer, change = masked(sf.Sampling(0.25, columns=("age",)))
    assert answer.num_rows == 2_500 and dict(change.published) == {"share": 0.25}
    counts = np.bincount(np.asarray(answer.column("id")) // 100, minlength=100)
    assert ((counts - 25) ** 2 / (25 * 0.75)).sum() < chi2.isf(1e-6, 99)
    other, _ = masked(sf.Sampling(0.25, columns=("age",)), key=KEY[::-1])
    both = len(set(answer.column("id").to_pylist()) & set(other.column("id").to_pylist()))
    assert abs(both - 625) < 5.2 * math.sqrt(625)
    assert answer.select(["age", "income"]).equals(PEOPLE.take(answer.column("id")).select(["age", "income"]))


def test_swapped_values_move_within_their_window_and_are_the_same_values() -> None:
    answer, change = masked(sf.RankSwapping(2, columns=("income",)))
    before, after = numbers(PEOPLE, "income"), numbers(answer, "income")
    assert change.published["window"] == {"income": 200} and change.published["swapped_within"] == "blocks"
    assert np.array_equal(np.sort(before), np.sort(after))
    ordered = np.sort(before)
    lowest, highest = np.searchsorted(ordered, before, "left"), np.searchsorted(ordered, before, "right") - 1
    first, last = np.searchsorted(ordered, after, "left"), np.searchsorted(ordered, after, "right") - 1
    assert (first - highest <= 200).all() and (lowest - last <= 200).all()
    moved = np.abs(first - lowest)
    assert moved.max() > 150 and (before == after).mean() < 0.02


def test_swapping_leaves_missing_values_and_equal_values_in_a_random_order() -> None:
    answer, _ = masked(sf.RankSwapping(10, columns=("age", "income")))
    assert np.array_equal(np.isnan(numbers(answer, "age")), np.isnan(numbers(PEOPLE, "age")))
    assert sorted(answer.column("age").drop_null().to_pylist()) == sorted(PEOPLE.column("age").drop_null().to_pylist())
    moved = numbers(answer, "income") != numbers(PEOPLE, "income")
    assert np.mean(moved) > 0.5


def test_parts_of_a_combined_mask_draw_apart_from_each_other() -> None:
    twice = sf.Combined(masks=(sf.AdditiveNoise(0.1, columns=("income",)), sf.AdditiveNoise(0.1, columns=("income",))))
    answer, change = masked(twice)
    noise = (numbers(answer, "income") - numbers(PEOPLE, "income")) / numbers(PEOPLE, "income").std()
    # independent noise of 0.1 and 0.11 times the variance; the same draws twice would give nearly twice that
    assert abs(noise.var() - 0.21) < 5.2 * 0.21 * math.sqrt(2 / COUNT)
    assert [step["method"]["name"] for step in change.published["steps"]] == ["AdditiveNoise", "AdditiveNoise"]


def test_the_same_key_masks_alike_under_any_order_and_another_key_does_not() -> None:
    mask = sf.Combined(masks=(sf.Pram(stay=0.8, columns=("sex",)), sf.AdditiveNoise(0.1, columns=("age",))))
    shuffled = PEOPLE.take(np.random.default_rng(1).permutation(COUNT))
    one, other, apart = masked(mask)[0], masked(mask, shuffled)[0], masked(mask, key=KEY[::-1])[0]
    assert one.to_pylist() == other.to_pylist() != apart.to_pylist()


def test_equal_records_draw_by_their_number() -> None:
    """Five thousand equal records are masked independently of each other: no draw is shared."""
    equal = pa.table({"id": [0] * 5_000 + [1] * 5_000, "x": [1.0] * 5_000 + [9.0] * 5_000})
    relation = MemoryRelation(equal)
    change = sf.AdditiveNoise(1.0, columns=("x",)).in_engine(EngineRows.of(relation, sf.Schema(), ("id", "x"), 10_000, KEY))
    answer = relation.run(change.rows.finished(("id", "x")), change.rows.uploads)
    assert len(answer.column("x").unique()) == 10_000


@pytest.mark.parametrize(
    "mask",
    [
        sf.Mdav(5),
        sf.VMdav(5),
        sf.Cbfs(5),
        sf.Shuffling(columns=("income",)),
        sf.AdditiveNoise(0.1, moments="exact", columns=("age",)),
    ],
    ids=lambda mask: type(mask).__name__,
)
def test_masks_that_need_all_records_are_refused_with_the_reason(mask: Mask) -> None:
    with pytest.raises(Unsupported, match=r"not computed by an engine.*sample=100_000"):
        masked(mask)


def test_what_a_mask_refuses_here_an_engine_refuses_too() -> None:
    with pytest.raises(Unsupported, match="nearly as it is"):
        masked(sf.Pram(stay=0.99, columns=("sex",)))
    with pytest.raises(Unsupported, match="holds categories"):
        masked(sf.AdditiveNoise(0.1, columns=("sex",)))
    with pytest.raises(Unsupported, match="rounding to the grid"):
        masked(sf.AdditiveNoise(1e-5, columns=("age",)))
    with pytest.raises(Unsupported, match="multiple of its base already"):
        masked(sf.Rounding(1, columns=("age",)))
    with pytest.raises(ParameterError, match="less than one rank"):
        masked(sf.RankSwapping(0.001, columns=("income",)))
    with pytest.raises(Unsupported, match="strata are masked one by one"):
        masked(sf.Pram(stay=0.5, columns=("sex",), strata=("size",)))


def test_no_record_value_is_in_a_refusal() -> None:
    rows = pa.table({"id": [1, 2, 3], "x": [271828.25, 271828.25, 271828.25]})
    with pytest.raises(Unsupported) as refused:
        masked(sf.AdditiveNoise(0.1, columns=("x",)), rows, schema=sf.Schema())
    assert "271828" not in str(refused.value)


def test_nobody_refutes_the_epsilon_of_pram_in_an_engine() -> None:
    """One record with either value: what is shown for it. Each row of a table is another record with a draw of its own, which is
    what a fresh key gives one record; no draw is handed out twice."""
    schema = sf.Schema(columns={"x": Column(domain=("yes", "no"), source="declared")})

    def pool(value: str) -> Iterator[int]:
        while True:
            table = pa.table({"id": np.arange(30_000), "x": [value] * 30_000})
            answer, _ = masked(sf.Pram(epsilon=1.0, columns=("x",)), table, os.urandom(32), schema)
            yield from (int(text == "yes") for text in column(answer, "x").to_pylist())

    pools = {value: pool(value) for value in ("yes", "no")}

    def shown(value: str, count: int) -> np.ndarray[Any, Any]:
        return np.fromiter(itertools.islice(pools[value], count), dtype=np.int64, count=count)

    options: dict[str, Any] = {"samples": 10_000, "seconds": 120, "vectorised": True}
    assert not sf.refute(shown, ("yes", "no"), epsilon=1, **options).refuted
    assert sf.refute(shown, ("yes", "no"), epsilon="3/4", **options).refuted


def test_the_offset_of_blocks_stands_in_no_statement() -> None:
    from sfumato.engines.plan import parts

    plans = {
        repr(list(parts(masked(sf.RankSwapping(10, columns=("income",)), key=bytes([n]) * 32)[1].rows.plan))) for n in (1, 2, 3)
    }
    assert len(plans) == 1


def test_a_part_of_a_log_normal_law_begins_where_the_law_does() -> None:
    """The first one reached from 0 to 0.59: a tenth of noise would once in ten million times have made a value vanish."""
    cells = sf.MultiplicativeNoise(10, columns=("x",), law="lognormal")._cells()
    assert cells.left.min() > 0.55 and cells.width[np.argmin(cells.left)] < 0.05


@pytest.mark.covering
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    "mask",
    [
        sf.TopBottomCoding(top=60, show="mean", columns=("age",)),
        sf.TopBottomCoding(top=60.5, bottom=20.25, columns=("age",)),
        sf.TopBottomCoding(top=0.9, by="quantile", columns=("age",)),
        sf.Rounding(5, columns=("age",)),
        sf.RankSwapping(5, columns=("age",)),
        sf.AdditiveNoise(0.1, columns=("age",)),
    ],
    ids=lambda mask: mask.described()["name"] if isinstance(mask, Mask) else None,
)
def test_whole_numbers_become_real_ones_only_where_that_is_asked(mask: Mask, whole: bool) -> None:
    """An engine used to round coded and swapped values whatever `whole` said, beside a certificate that stated it."""
    mask = dataclasses.replace(mask, whole=whole)
    answer, _ = masked(mask)
    here = mask.apply(in_memory(PEOPLE, SCHEMA), seed=1).result.table
    assert answer.column("age").type == here.column("age").type == (pa.int64() if whole else pa.float64())
    if mask.certain:
        assert np.allclose(numbers(answer, "age"), numbers(here, "age"), rtol=1e-12, atol=0, equal_nan=True)


@pytest.mark.covering
@pytest.mark.parametrize("step", [11, 13, 365, 1_000_000_007, 0.25, 0.11, 30.5])
@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_noise_that_rounding_takes_back_is_refused_whatever_the_grid(step: float, offset: float) -> None:
    """Divisors of 2, 3, 5 and 7 alone used to be looked for: of doses of 11 rounding gave 99.7 % back."""
    steps = _SOURCE.integers(0, 6, 2_000) * 2
    steps[:20] += 1  # not all are multiples of twice the step
    doses = np.round(steps * step + offset, 2)
    table = pa.table({"id": np.arange(2_000), "dose": doses})
    rows = EngineRows.of(MemoryRelation(table), SCHEMA, ["dose"], 2_000, KEY)
    summary = summaries(sf.AdditiveNoise(0.01, columns=("dose",)), rows, ["dose"])
    here = in_memory(table, SCHEMA)
    assert summary["dose"].grid == pytest.approx(grid_step(NumberColumn("dose", doses, pa.float64())), rel=1e-9)
    for mask in (sf.AdditiveNoise(1e-4, columns=("dose",)), sf.AdditiveNoise(1e-4, columns=("dose",), whole=False)):
        with pytest.raises(Unsupported, match="rounding to the grid"):
            mask.apply(here)
        with pytest.raises(Unsupported, match="rounding to the grid"):
            masked(mask, table)
