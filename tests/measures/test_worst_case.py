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
from sfumato.measures.risk import DistanceLinkage, LearnedLinkage, WorstCase


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
    with pytest.raises(ParameterError, match="aggregation"):
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
