"""What synthetic masks have in common: they keep what they say, tell no record, and are not safe by themselves."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import sfumato as sf
from sfumato.data.masked import sides
from sfumato.masking.base import Mask
from tests.conformance.masks import CATEGORIES, NUMBERS, people

MIXED = (*NUMBERS, "age", *CATEGORIES)
MASKS: tuple[Mask, ...] = (
    sf.Ipso("A", ("age", "town"), columns=NUMBERS),
    sf.Ipso("B", columns=NUMBERS),
    sf.Ipso("B", ("town",), 2, columns=NUMBERS),
    sf.Ipso("C", ("age",), 3, columns=NUMBERS),
    sf.GaussianCopula("empirical", columns=MIXED),
    sf.GaussianCopula("smoothed", columns=MIXED),
    sf.SequentialTrees(columns=MIXED),
    sf.SequentialTrees(columns=MIXED, smooth=True),
    sf.PartiallySynthetic(("region", "ill"), columns=MIXED),
    sf.PartiallySynthetic(("age", "school"), "linear", columns=NUMBERS),
    sf.Resampling(columns=MIXED),
    sf.Resampling("joint", columns=MIXED),
    sf.Resampling("ranks", columns=(*NUMBERS, "age", "school")),
)
DATA = people(250, seed=4)


def named(mask: Mask) -> str:
    return type(mask).__name__


def statistic(what: str, records: Any) -> NDArray[np.float64]:
    matrix = records.matrix()
    if what == "frequencies":
        shares = [np.bincount(c.codes, minlength=len(c.labels)) / records.size for c in records.categories]
        return np.concatenate(shares) if shares else np.zeros(1)
    if what == "mean":
        return np.asarray(matrix.mean(axis=0))
    crossed = np.corrcoef(matrix.T) if what == "correlation" else np.cov(matrix.T)
    return np.asarray(np.diag(crossed) if what == "variance" else crossed.ravel())


@pytest.mark.parametrize("mask", MASKS, ids=named)
def test_what_is_kept_is_kept_with_any_parameters_on_mixed_columns(mask: Mask) -> None:
    """Exactly to 1e-9; on average over 40 draws within 6 standard errors (below 1e-8 each, were it normal) or 3 %."""
    mask = dataclasses.replace(mask, whole=False)
    drawn = [sides(DATA, mask.apply(DATA, seed=f"keeps {s}").result, mask.columns) for s in range(40)]
    for kept in mask.keeps():
        if kept.what in ("order", "regression"):  # held to in the tests of Resampling and Ipso
            continue
        target = statistic(kept.what, original(mask))
        values = np.array([statistic(kept.what, after) for _, after in drawn])
        if kept.exactly:
            assert np.allclose(values, target, rtol=1e-9, atol=1e-9)
        else:
            error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
            assert np.all(np.abs(values.mean(axis=0) - target) <= np.maximum(6 * error, 0.03 * np.abs(target)) + 1e-12), kept


def original(mask: Mask) -> Any:
    return sides(DATA, mask.apply(DATA, seed=0).result, mask.columns)[0]


@pytest.mark.parametrize("mask", MASKS, ids=named)
def test_models_are_named_and_not_published(mask: Mask) -> None:
    told = mask.apply(DATA, seed=1).result.transparency
    assert isinstance(told["model"], str)
    allowed = {"method", "masked_columns", "model", "predictors", "groups", "marginals", "rows", "order", "min_leaf", "where"}
    assert set(told) <= allowed


def nearest(records: NDArray[np.float64], made: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distance from each record to the nearest synthetic one, in standardised numbers: brute force."""
    spread = records.std(axis=0)
    return np.array([np.sqrt((((made - record) / spread) ** 2).sum(axis=1).min()) for record in records])


def betrayed(mask: Mask, seed: int = 1) -> float:
    """How often somebody in the data is nearer to the synthetic records than somebody who is not: 1/2 betrays nothing."""
    data = people(600)
    inside = sf.read(data.table().slice(0, 300), data.schema)
    made = mask.apply(inside, seed=seed).result.table
    arrays = [np.column_stack([table.column(name).to_numpy() for name in NUMBERS]) for table in (data.table(), made)]
    distance = nearest(*arrays)
    members, others = distance[:300, None], distance[None, 300:]
    return float((members < others).mean() + (members == others).mean() / 2)


#: 6 standard errors of the Mann–Whitney statistic of 300 and 300 exchangeable people (a false alarm below 1e-8).
ERROR = 6 * float(np.sqrt(601 / (12 * 300 * 300)))


def test_synthetic_records_of_small_leaves_betray_who_was_in_the_data() -> None:
    assert betrayed(sf.SequentialTrees(columns=NUMBERS, min_leaf=2)) > 0.5 + ERROR
    assert betrayed(sf.SequentialTrees(columns=NUMBERS, min_leaf=5)) > 0.5 + ERROR
    assert betrayed(sf.Resampling("joint", columns=NUMBERS)) > 0.5 + ERROR


def test_models_of_few_numbers_and_the_perfect_mask_betray_nobody() -> None:
    for mask in (sf.Ipso(columns=NUMBERS), sf.GaussianCopula(columns=NUMBERS), sf.Resampling(columns=NUMBERS)):
        assert abs(betrayed(mask) - 0.5) < ERROR


def test_unique_people_are_found_in_synthetic_records_by_their_quasi_identifiers() -> None:
    """Re-identification through quasi-identifiers has to be measured: people in the data against people who are not."""
    whole = sf.data.sample_table(3_000)
    keys = ("sex", "age", "education", "occupation")
    people_in = sf.read(whole.slice(0, 1_500), schema=sf.data.sample_schema())
    known = list(zip(*(whole.column(name).to_pylist() for name in keys), strict=True))
    counts = Counter(known)
    unique = np.array([counts[key] == 1 for key in known])

    def found(mask: Mask) -> tuple[float, float]:
        made = mask.apply(people_in, seed=1).result.table
        shown = set(zip(*(made.column(name).to_pylist() for name in keys), strict=True))
        hit = np.array([key in shown for key in known])
        return float(hit[:1_500][unique[:1_500]].mean()), float(hit[1_500:][unique[1_500:]].mean())

    trees, alone = found(sf.SequentialTrees(columns=keys)), found(sf.Resampling(columns=keys))
    assert unique[:1_500].sum() > 300
    assert trees[0] > 0.3 and trees[0] > 3 * trees[1]
    assert abs(alone[0] - alone[1]) < 5 * np.sqrt(2 * 0.1 / 300)


@pytest.mark.data
@pytest.mark.parametrize("groups", [2, 3, 4])
def test_abalone_keeps_its_moments_in_any_number_of_groups(groups: int, data_dir: Any) -> None:
    from pyarrow import csv

    table = csv.read_csv(data_dir / "abalone" / "abalone.csv")
    names = tuple(name for name in table.column_names if name != "Sex")
    masked = sf.Ipso(groups=groups, columns=names, whole=False).apply(table, seed=1).result.table
    before, after = (np.column_stack([t.column(name).to_numpy() for name in names]) for t in (table, masked))
    assert np.allclose(before.mean(axis=0), after.mean(axis=0), rtol=1e-10)
    assert np.allclose(np.cov(before.T), np.cov(after.T), rtol=1e-9)
    assert np.abs(before - after).min(axis=0).max() > 0 and not np.any(np.all(before == after, axis=1))


def test_what_stands_in_other_columns_of_fully_synthetic_data_is_gone() -> None:
    for mask in (sf.GaussianCopula(columns=NUMBERS), sf.SequentialTrees(columns=NUMBERS)):
        result = mask.apply(DATA, seed=1).result
        assert result.rows is None and result.table.column_names == list(NUMBERS) and isinstance(result.table, pa.Table)
