"""The worst case is the maximum over ways to link, the one that uses the published method among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, ParameterError
from sfumato.data.masked import Masked
from sfumato.measures.risk import (
    AssignmentLinkage,
    DistanceLinkage,
    LearnedLinkage,
    ProbabilisticLinkage,
    WorstCase,
)


def numbers(count: int = 300, seed: int = 1) -> Any:
    random = np.random.default_rng(seed)
    table = pa.table({name: random.normal(size=count) * 10 + 50 for name in "abc"} | {"sex": random.choice(["f", "m"], count)})
    return sf.read(table, schema=sf.Schema.of(quasi=["a", "b", "c"]))


@pytest.mark.parametrize(
    ("mask", "way"),
    [
        (sf.RankSwapping(p=15), "rank window"),
        (sf.RankSwapping(p=15, strata=("sex",)), "rank window"),
        (sf.OptimalUnivariate(20), "cluster intersection"),
        (sf.AdditiveNoise(0.3), "noise likelihood"),
        (sf.CorrelatedNoise(0.3), "noise likelihood"),
        (sf.MultiplicativeNoise(10), "noise likelihood"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_the_worst_case_is_the_maximum_and_knows_the_method(mask: Any, way: str) -> None:
    people = numbers()
    masked = mask.apply(people, seed=1).result
    score = WorstCase(seconds=2).score(people, masked)
    assert score.value == max(score.parts.values())
    assert score.parts[way] > 10 / 300
    assert score.value >= DistanceLinkage().score(people, masked).value == score.parts["distance"]
    assert score.parts["learnt weighted mean, masked to original"] >= score.parts["plain, masked to original"]


def test_two_masks_are_attacked_each_on_its_columns() -> None:
    people = numbers()
    both = sf.Combined(masks=(sf.AdditiveNoise(0.1, columns=("a", "b", "c")), sf.Pram(stay=0.7, columns=("sex",))))
    score = WorstCase(seconds=1, learned=()).score(people, both.apply(people, seed=1).result)
    assert {"noise likelihood", "transition posterior"} <= set(score.parts)
    assert "learnt weighted mean, masked to original" not in score.parts


def test_a_table_that_tells_nothing_about_its_method_is_linked_by_distance_alone() -> None:
    people = numbers(60)
    score = WorstCase(seconds=1).score(people, people.table())
    assert score.value == 1.0
    assert not {"rank window", "noise likelihood", "cluster intersection"} & set(score.parts)


def test_refusals() -> None:
    people = numbers(20)
    with pytest.raises(ParameterError, match="seconds"):
        WorstCase(seconds=-1)
    with pytest.raises(ParameterError, match="learned must be"):
        WorstCase(learned=("median",))
    with pytest.raises(InputError, match="no record stands behind"):
        WorstCase().score(people, Masked(people.table(), people.schema, ("a",), None))


@pytest.mark.data
@pytest.mark.slow
def test_learnt_weights_find_more_of_the_census(data_dir: Path) -> None:
    table = pc.read_csv(data_dir / "casc" / "CASCrefmicrodata.csv")
    names = tuple(name for name in table.column_names if pa.types.is_integer(table.column(name).type))[:6]
    people = sf.read(table.select(names))
    masked = sf.AdditiveNoise(0.2, columns=names, whole=False).apply(people, seed=1).result
    score = LearnedLinkage(columns=names, seconds=20).score(people, masked)
    assert score.value > score.parts["plain"] > 1 / len(people)
    assert score.parts["bound"] < 1.0


def test_no_other_linkage_finds_more() -> None:
    random = np.random.default_rng(0)
    values = random.integers(0, 50, (200, 4)).astype(float)
    changed = np.where(random.random(values.shape) < 0.4, random.integers(0, 50, values.shape), values)
    people = sf.read(pa.table({name: values[:, place] for place, name in enumerate("abcd")}))
    masked = pa.table({name: changed[:, place] for place, name in enumerate("abcd")})
    worst = WorstCase(seconds=0.2).score(people, masked)
    probabilistic = ProbabilisticLinkage().score(people, masked).value
    assert worst.value >= probabilistic == worst.parts["probabilistic"] > 1.5 * worst.parts["distance"]
    assert worst.parts["one-to-one"] == AssignmentLinkage().score(people, masked).value


@pytest.mark.parametrize("columns", [("a", "b"), ("sex",), None])
def test_columns_that_were_not_masked_leave_the_method_out(columns: Any) -> None:
    people = numbers(60)
    masked = sf.Pram(stay=0.7, columns=("sex",)).apply(people, seed=1).result
    score = WorstCase(columns=columns, learned=()).score(people, masked)
    assert ("transition posterior" in score.parts) == (columns != ("a", "b"))


def test_the_method_is_used_together_with_what_was_not_masked() -> None:
    people = numbers(200)
    masked = sf.RankSwapping(p=20, columns=("a",)).apply(people, seed=1).result
    score = WorstCase(learned=()).score(people, masked)
    assert score.parts["rank window"] == 1.0  # b and c are published as they are


@pytest.mark.parametrize(
    "mask",
    [sf.RankSwapping(p=10), sf.AdditiveNoise(0.05), sf.MultiplicativeNoise(1), sf.OptimalUnivariate(2)],
    ids=lambda mask: type(mask).__name__,
)
def test_every_row_of_a_person_counts_for_the_method(mask: Any) -> None:
    people = numbers(80)
    once = mask.apply(people, seed=1).result
    rows = np.repeat(once.rows, 2)
    told = dict(once.transparency)
    if "window" in told:  # as if twice as many records had been swapped, twice as far
        told["window"] = {name: 2 * ranks + 1 for name, ranks in told["window"].items()}
    twice = Masked(once.table.take(pa.array(np.repeat(np.arange(80), 2))), people.schema, once.columns, rows, told)
    before = WorstCase(learned=(), columns=("a", "b", "c")).score(people, once).parts
    after = WorstCase(learned=(), columns=("a", "b", "c")).score(people, twice).parts
    way = next(part for part in ("rank window", "noise likelihood", "cluster intersection") if part in before)
    assert after[way] >= 0.8 * before[way] > 0.3
