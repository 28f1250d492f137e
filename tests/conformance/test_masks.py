"""Laws of every mask: what it says it keeps is kept, a seed repeats it, nothing is touched before it is checked."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomlkit

import sfumato as sf
from sfumato.core.certificate import plain
from sfumato.core.errors import InputError, SfumatoError, VerificationFailed
from sfumato.data.masked import Masked, sides
from sfumato.data.records import Records
from sfumato.masking.base import Mask
from sfumato.masking.transparency import VisibleTable
from sfumato.workflow import named
from sfumato.workflow.verifying.stated.methods import refuse_other_words
from tests.conformance.masks import (
    CATEGORIES,
    CERTAIN,
    NUMBERS,
    SCHEMA,
    columns_for,
    every_mask,
    example,
    mixed_columns_for,
    people,
)

MASKS = every_mask()
PEOPLE = people()


def exact(mask: Mask) -> Mask:
    return dataclasses.replace(mask, whole=False)


def apply(mask: Mask, data: sf.Microdata = PEOPLE, seed: int | str = 1) -> Masked:
    return mask.apply(data, seed=seed).result


def seen(masked: Masked) -> VisibleTable:
    return VisibleTable(SCHEMA, frozenset(SCHEMA.columns), len(masked))


#: Facts that some mask tells, or none.
ANY_FACT: dict[str, Any] = {
    **dict.fromkeys(("k", "epsilon", "shown_by_at_least", "share", "min_leaf", "rows", "noise_variance_ratio", "audit"), 7),
    "window": {"age": 7},
    "notice": "column 'town' is published as it is: its matrix changes nothing",
    "transitions": {"certified": {"labels": ["safe"], "outputs": ["safe"], "matrix": [[1]], "epsilon": 0.0, "source": "data"}},
    "steps": [],
}


def falsified(value: Any) -> list[Any]:
    """The value with one of its numbers, words or names changed."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [value + 1000, "certified"]
    if isinstance(value, str):
        return ["certified"]
    if isinstance(value, list):
        return [[*value, "certified"], *([*value[:-1], each] for each in (falsified(value[-1]) if value else ()))]
    assert isinstance(value, dict)
    named = [{**value, name: each} for name in value if name not in ("labels", "outputs") for each in falsified(value[name])]
    return [{**value, "certified": 1}, *([{}] if value else []), *named]


def test_every_mask_can_be_made_and_stands_at_the_top_level() -> None:
    assert all(type(example(name)).__name__ == name for name in MASKS)
    assert all(getattr(sf, name) is getattr(sf.masking, name) for name in MASKS)


@pytest.mark.parametrize("name", MASKS)
class TestEveryMask:
    def test_parameters_survive_toml(self, name: str) -> None:
        mask = example(name)
        written = tomlkit.dumps({"method": json.loads(json.dumps(plain(mask.described())))})
        assert named.method(tomllib.loads(written)["method"]) == mask

    def test_a_seed_repeats_the_table_and_another_one_does_not(self, name: str) -> None:
        mask = example(name)
        first, again, other = apply(mask), apply(mask), apply(mask, seed=2)
        assert first.table.equals(again.table)
        assert first.table.equals(other.table) == (name in CERTAIN)

    def test_other_columns_and_the_source_stay_as_they_are(self, name: str) -> None:
        before = PEOPLE.table()
        masked = apply(example(name))
        assert PEOPLE.table().equals(before)
        if masked.rows is None:
            return
        taken = before.take(pa.array(masked.rows))
        for column in set(before.column_names) - set(masked.columns):
            assert masked.table.column(column).to_pylist() == taken.column(column).to_pylist()

    def test_something_changes(self, name: str) -> None:
        masked = apply(example(name))
        changed = [c for c in masked.columns if masked.table.column(c).to_pylist() != PEOPLE.table().column(c).to_pylist()]
        assert changed

    def test_what_it_keeps_is_kept(self, name: str) -> None:
        columns = mixed_columns_for(name)
        mask = exact(example(name, columns))
        draws: list[tuple[Records, Records]] = []
        for kept in mask.keeps():
            if kept.exactly:
                _check(kept.what, *sides(PEOPLE, apply(mask), columns), tolerance=1e-7)
            else:
                draws = draws or [sides(PEOPLE, apply(mask, seed=f"average {seed}"), columns) for seed in range(40)]
                _check_on_average(kept.what, draws)

    def test_missing_values_are_neither_lost_nor_made_from_nothing(self, name: str) -> None:
        data = people(seed=3, missing=0.1)
        masked = apply(example(name), data)
        for column in masked.columns:
            values = masked.table.column(column)
            assert values.null_count < masked.table.num_rows
            if pa.types.is_floating(values.type):
                assert not np.isnan(values.drop_null().to_numpy()).any()

    def test_missing_values_stay_missing_where_it_says_so(self, name: str) -> None:
        mask, data = example(name, mixed_columns_for(name)), people(seed=3, missing=0.1)
        masked = apply(mask, data)
        if not mask.shows_missing:
            return
        assert masked.rows is not None
        behind = data.table().take(masked.rows)
        assert name == "TermGeneralisation" or all(behind.column(column).null_count for column in masked.columns)
        for column in masked.columns:
            assert masked.table.column(column).is_null().equals(behind.column(column).is_null())

    def test_it_says_whether_it_draws(self, name: str) -> None:
        assert example(name).draws == (name not in CERTAIN)

    def test_strata_are_masked_apart_and_stay(self, name: str) -> None:
        mask = dataclasses.replace(example(name), strata=("region",))
        if name in ("PartiallySynthetic",):
            mask = dataclasses.replace(mask, predictors=("ill",))
        masked = apply(mask)
        if masked.rows is not None and len(masked) == len(PEOPLE):
            assert masked.table.column("region").to_pylist() == PEOPLE.table().column("region").to_pylist()
        assert set(masked.table.column("region").to_pylist()) == {"north", "south"}

    def test_whole_numbers_stay_whole_unless_asked_otherwise(self, name: str) -> None:
        if "number" not in getattr(sf.masking, name).handles or name == "Generalisation":
            return
        columns = ("age",) if name not in ("CorrelatedNoise", "Ipso") else ("age", "height")
        masked = apply(example(name, columns))
        kind = masked.table.schema.field("age").type
        assert pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_dictionary(kind)

    def test_what_is_published_is_plain_and_holds_no_record(self, name: str) -> None:
        masked = apply(example(name))
        told = json.dumps(plain(dict(masked.transparency)), allow_nan=False)
        assert told and json.loads(told)["method"]["name"] == name
        refuse_other_words(json.loads(told), seen(masked))
        for column in NUMBERS:
            for value in PEOPLE.table().column(column).to_pylist()[:50]:
                assert repr(value) not in told

    def test_nothing_else_is_believed_of_it(self, name: str) -> None:
        masked = apply(example(name))
        told = json.loads(json.dumps(plain(dict(masked.transparency))))
        other = [{fact: value} for fact, value in ANY_FACT.items() if fact not in told]
        other += [{fact: more} for fact, value in told.items() for more in falsified(value) if fact != "method"]
        for facts in other:
            with pytest.raises(VerificationFailed, match="what no mask says"):
                refuse_other_words({**told, **facts}, seen(masked))

    @pytest.mark.parametrize("count", [0, 1])
    def test_too_few_records_are_refused_or_masked_without_a_crash(self, name: str, count: int) -> None:
        data = sf.read(PEOPLE.table().slice(0, count), SCHEMA)
        try:
            masked = apply(example(name), data)
        except InputError as refusal:
            assert len(str(refusal)) > 20
        else:
            assert count == 1 and len(masked) <= 1

    def test_a_column_without_values_is_refused(self, name: str) -> None:
        if name == "TermGeneralisation":
            return
        first = columns_for(name)[0]
        table = PEOPLE.table()
        empty = pa.nulls(table.num_rows, table.schema.field(first).type)
        data = sf.read(table.set_column(table.column_names.index(first), first, empty), SCHEMA)
        with pytest.raises(SfumatoError, match=f"'{first}'"):
            apply(example(name), data)

    def test_no_value_of_a_record_is_in_an_error(self, name: str) -> None:
        canary = "canary-7261"
        table = PEOPLE.table()
        column = pa.array([canary] * table.num_rows)
        data = sf.read(table.set_column(table.column_names.index("town"), "town", column), SCHEMA)
        try:
            apply(example(name, ("town",)), data)
        except SfumatoError as refusal:
            assert canary not in str(refusal)

    def test_kinds_that_it_cannot_mask_are_refused_before_anything_happens(self, name: str) -> None:
        kind = getattr(sf.masking, name)
        wrong = [c for c, k in (("height", "number"), ("town", "category"), ("school", "ordered")) if k not in kind.handles]
        for column in wrong:
            if name == "TermGeneralisation":
                continue
            with pytest.raises(SfumatoError, match=f"'{column}'"):
                apply(example(name, (column,)))

    def test_an_unknown_column_is_named(self, name: str) -> None:
        if name == "TermGeneralisation":
            return
        with pytest.raises(SfumatoError, match="nowhere"):
            apply(example(name, ("nowhere",)))


@pytest.mark.parametrize("name", ["AdditiveNoise", "Mdav", "Pram", "RankSwapping", "SequentialTrees"])
def test_engines_and_frames_give_the_same_masked_table(name: str, tmp_path: Path) -> None:
    pq.write_table(PEOPLE.table(), tmp_path / "people.parquet")
    expected = apply(example(name)).table
    for source in (
        sf.read(tmp_path / "people.parquet", SCHEMA, engine="duckdb"),
        sf.read(tmp_path / "people.parquet", SCHEMA),
        sf.read(PEOPLE.to_pandas(), SCHEMA),
        sf.read(PEOPLE.to_polars(), SCHEMA),
    ):
        masked = apply(example(name), source).table
        for column in columns_for(name):
            assert masked.column(column).to_pylist() == expected.column(column).to_pylist()


@pytest.mark.parametrize("name", [name for name in MASKS if {"number", "category"} <= getattr(sf.masking, name).handles])
def test_masks_for_mixed_data_take_numbers_and_categories_together(name: str) -> None:
    if name in ("TermGeneralisation", "Generalisation"):
        return
    masked = apply(example(name, (*NUMBERS, *CATEGORIES)))
    assert set(masked.table.column("town").to_pylist()) <= set(PEOPLE.table().column("town").to_pylist()) or name == "Sampling"


@pytest.mark.parametrize(
    "mask",
    [
        sf.Condensation(1, columns=NUMBERS),
        sf.Pram(stay=0.8, invariant=True, columns=("town", "school")),
        sf.Pram(stay=0.8, invariant=True, joint=True, columns=("town", "school")),
        sf.Pram(stay=0.8, invariant=True, columns=("town",), strata=("region",)),
        sf.RankSwapping(10, columns=NUMBERS, strata=("region",)),
        sf.PartiallySynthetic(("region",), model="linear", columns=NUMBERS),
        sf.Combined(
            masks=(
                sf.AdditiveNoise(0.2, columns=NUMBERS),
                sf.Pram(stay=0.8, invariant=True, columns=("town",), strata=("region",)),
            )
        ),
    ],
)
def test_notices_strata_and_parts_are_told_in_words_that_verifying_knows(mask: Mask) -> None:
    masked = apply(mask)
    told = json.loads(json.dumps(plain(dict(masked.transparency)), sort_keys=True))
    refuse_other_words(told, seen(masked))
    for place in (told, *told.get("steps", ())):
        place["notice"] = "approved by an authority"
        with pytest.raises(VerificationFailed, match="what no mask says"):
            refuse_other_words(told, seen(masked))
        del place["notice"]


def test_combined_masks_work_in_turn_and_refuse_before_the_first_one() -> None:
    both = sf.Combined(masks=(sf.AdditiveNoise(0.1, columns=NUMBERS), sf.Pram(stay=0.7, columns=CATEGORIES)))
    masked = apply(both)
    assert set(masked.columns) == {*NUMBERS, *CATEGORIES} and masked.rows is not None
    assert [step["method"]["name"] for step in masked.transparency["steps"]] == ["AdditiveNoise", "Pram"]
    with pytest.raises(SfumatoError, match="town"):
        apply(sf.Combined(masks=(sf.AdditiveNoise(0.1, columns=NUMBERS), sf.AdditiveNoise(0.1, columns=("town",)))))


@pytest.mark.parametrize(
    "masks",
    [
        (sf.AdditiveNoise(0.1, columns=("age",), whole=False), sf.Pram(stay=0.8, columns=("town",))),
        (sf.Sampling(0.5, columns=("age",)), sf.Mdav(3, columns=NUMBERS)),
        (sf.Resampling(how="joint", columns=NUMBERS), sf.Rounding(5, columns=("age",))),
        (sf.Generalisation(levels={"age": 1}, columns=("age",)), sf.Combined(masks=(sf.RankSwapping(10, columns=NUMBERS),))),
    ],
)
def test_combined_masks_know_the_record_behind_each_row(masks: tuple[Mask, ...]) -> None:
    both = sf.Combined(masks=masks)
    masked = apply(both)
    assert masked.table.equals(apply(both).table) and masked.rows is not None
    assert masked.table.column("ill").to_pylist() == PEOPLE.table().take(pa.array(masked.rows)).column("ill").to_pylist()
    assert len(masked.transparency["steps"]) == len(masks)


def _check(what: str, before: Records, after: Records, tolerance: float) -> None:
    left, right = before.matrix(), after.matrix()
    if what == "multiset":
        assert np.allclose(np.sort(left, axis=0), np.sort(right, axis=0), rtol=1e-12)
        for a, b in zip(before.categories, after.categories, strict=True):
            assert np.array_equal(np.bincount(a.codes + 1), np.bincount(b.codes + 1))
    elif what == "frequencies":
        for a, b in zip(before.categories, after.categories, strict=True):
            assert np.array_equal(np.bincount(a.codes + 1, minlength=9), np.bincount(b.codes + 1, minlength=9))
    elif what == "order":
        for column in range(left.shape[1]):
            assert np.all(np.diff(right[np.argsort(left[:, column], kind="stable"), column]) >= -1e-9)
    elif what != "regression":  # held by the test of the method, which knows its predictors
        assert np.allclose(_statistic(what, left), _statistic(what, right), rtol=tolerance, atol=tolerance)


def _check_on_average(what: str, draws: list[tuple[Records, Records]]) -> None:
    """The mean over 40 draws lies within 6 standard errors (false alarm below 1e-8 per number, were it normal) or within
    2 % of the original."""
    drawn = []
    target: Any = None
    for before, after in draws:
        if what == "frequencies":
            target = np.concatenate(
                [np.bincount(c.codes[c.codes >= 0], minlength=len(c.labels)) / before.size for c in before.categories]
            )
            drawn.append(
                np.concatenate(
                    [np.bincount(c.codes[c.codes >= 0], minlength=len(c.labels)) / after.size for c in after.categories]
                )
            )
        elif what != "regression":
            target = _statistic(what, before.matrix())
            drawn.append(_statistic(what, after.matrix()))
    if drawn:
        values = np.array(drawn)
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert np.all(np.abs(values.mean(axis=0) - target) <= np.maximum(6 * error, 0.02 * np.abs(target)) + 1e-12)


def _statistic(what: str, matrix: Any) -> Any:
    if what == "mean":
        return matrix.mean(axis=0)
    if what == "variance":
        return matrix.var(axis=0)
    if what == "covariance":
        return np.atleast_1d(np.cov(matrix.T)).ravel()
    if what == "correlation":
        return np.atleast_1d(np.corrcoef(matrix.T)).ravel()
    raise AssertionError(f"no test for '{what}'")
