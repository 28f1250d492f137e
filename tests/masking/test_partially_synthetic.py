"""Partially synthetic data: predictors stay real, the rest is drawn given them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, MissingColumn, ParameterError, Unsupported
from sfumato.data.schema import Column, Schema
from tests.conformance.masks import CATEGORIES, NUMBERS, people

MODELS = ("tree", "linear")


def line(records: int = 3_000, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    x = random.normal(size=records)
    group = random.integers(0, 3, records)
    y = 2 * x + 3.0 * (group == 1) + random.normal(0, 0.5, records)
    z = y - x + random.normal(0, 0.5, records)
    return pa.table({"x": x, "group": np.array(["p", "q", "r"])[group], "y": y, "z": z})


def fitted(table: pa.Table, target: str, *given: str) -> Any:
    terms = [np.ones(table.num_rows)]
    for name in given:
        values = table.column(name).to_pylist()
        terms += [np.array([v == "q" for v in values], dtype=float)] if name == "group" else [np.array(values)]
    return np.linalg.lstsq(np.column_stack(terms), table.column(target).to_numpy(), rcond=None)[0]


@pytest.mark.parametrize("model", MODELS)
def test_models_of_the_masked_columns_come_back(model: Any) -> None:
    """Coefficients have standard errors below 0.02; 6 of them, and 0.1 for leaves, which are steps (false alarm below 1e-6)."""
    table = line()
    result = sf.PartiallySynthetic(("x", "group"), model, columns=("y", "z")).apply(table, seed=1).result
    assert result.rows is not None and np.array_equal(result.rows, np.arange(3_000))
    slack = 0.12 + 0.1 * (model == "tree")
    for target, given in (("y", ("x", "group")), ("z", ("x", "group", "y"))):
        assert np.all(np.abs(fitted(result.table, target, *given) - fitted(table, target, *given)) < slack)
    assert all(result.table.column(name).to_pylist() == table.column(name).to_pylist() for name in ("x", "group"))
    assert np.mean(result.table.column("y").to_numpy() == table.column("y").to_numpy()) < 0.35


@pytest.mark.parametrize("model", MODELS)
def test_means_and_variances_come_back_on_average(model: Any) -> None:
    """60 draws: within 6 standard errors or 2 %."""
    table = line(300)
    drawn = [
        sf.PartiallySynthetic(("x", "group"), model, columns=("y", "z")).apply(table, seed=s).result.table for s in range(60)
    ]
    for name in ("y", "z"):
        for statistic in (np.mean, np.var):
            values = np.array([statistic(made.column(name).to_numpy()) for made in drawn])
            target = statistic(table.column(name).to_numpy())
            error = values.std(ddof=1) / np.sqrt(60)
            assert abs(values.mean() - target) <= max(6 * error, 0.02 * abs(target))


def test_only_unique_people_are_replaced_where_asked() -> None:
    schema = Schema(
        dataset="risk",
        columns={
            "sex": Column(role="quasi", type="string"),
            "age": Column(role="quasi", type="integer"),
            "wage": Column(role="sensitive", type="number"),
        },
    )
    random = np.random.default_rng(1)
    table = pa.table(
        {"sex": random.choice(["f", "m"], 300), "age": random.integers(20, 90, 300), "wage": random.normal(size=300)}
    )
    keys = list(zip(table.column("sex").to_pylist(), table.column("age").to_pylist(), strict=True))
    unique = np.array([keys.count(key) == 1 for key in keys])
    outcome = sf.PartiallySynthetic(where="unique").apply(sf.read(table, schema), seed=1)
    assert outcome.result.columns == ("sex", "age") and outcome.result.transparency["predictors"] == ["wage"]
    assert outcome.details["replaced_records"] == unique.sum() > 10
    changed = np.array(outcome.result.table.column("age").to_pylist()) != np.array(table.column("age").to_pylist())
    assert not changed[~unique].any() and changed[unique].mean() > 0.5
    assert sf.PartiallySynthetic(where="unique").keeps() == ()


@pytest.mark.parametrize("smooth", [False, True])
def test_mixed_columns_with_missing_cells(smooth: bool) -> None:
    data = people(missing=0.1)
    mask = sf.PartiallySynthetic(("age", "region", "ill"), smooth=smooth, columns=(*NUMBERS, *CATEGORIES), strata=None)
    masked = mask.apply(data, seed=1).result.table
    for name in (*NUMBERS, *CATEGORIES):
        assert masked.column(name).is_null().to_pylist() == data.table().column(name).is_null().to_pylist()
        assert masked.column(name).to_pylist() != data.table().column(name).to_pylist()
    assert set(masked.column("town").to_pylist()) <= set(data.table().column("town").to_pylist())


def test_linear_models_take_predictors_with_missing_cells() -> None:
    data = people(missing=0.1)
    mask = sf.PartiallySynthetic(("age", "school"), "linear", columns=("height", "weight"), strata=("region",))
    masked = mask.apply(data, seed=1).result.table
    assert masked.column("height").is_null().to_pylist() == data.table().column("height").is_null().to_pylist()
    spreads = [np.nanstd(table.column("height").to_numpy()) for table in (data.table(), masked)]
    assert 0.75 < spreads[1] / spreads[0] < 1.25


class TestRefusals:
    @pytest.mark.parametrize(
        "parameters", [{"model": "forest"}, {"where": "some"}, {"min_leaf": 1}, {"predictors": ()}, {"predictors": ("a", "a")}]
    )
    def test_parameters_out_of_range(self, parameters: dict[str, Any]) -> None:
        with pytest.raises(ParameterError, match="PartiallySynthetic"):
            sf.PartiallySynthetic(**parameters)

    def test_no_predictors_left(self) -> None:
        with pytest.raises(InputError, match="no column is left"):
            sf.PartiallySynthetic(columns=("x", "group", "y", "z")).apply(line(50))

    def test_predictors_that_are_masked_or_missing(self) -> None:
        with pytest.raises(ParameterError, match="'y'"):
            sf.PartiallySynthetic(("y",), columns=("y",)).apply(line(50))
        with pytest.raises(MissingColumn, match="'nowhere'"):
            sf.PartiallySynthetic(("nowhere",), columns=("y",)).apply(line(50))

    def test_categories_from_a_linear_model(self) -> None:
        with pytest.raises(Unsupported, match="'group'"):
            sf.PartiallySynthetic(("x",), "linear", columns=("group",)).apply(line(50))

    def test_predictors_that_depend_on_each_other(self) -> None:
        table = line(50).append_column("w", pa.array(-line(50).column("x").to_numpy()))
        with pytest.raises(Unsupported, match="depend linearly"):
            sf.PartiallySynthetic(("x", "w"), "linear", columns=("y",)).apply(table)

    def test_a_masked_column_that_follows_from_the_predictors(self) -> None:
        table = line(50).append_column("w", pa.array(-line(50).column("x").to_numpy()))
        with pytest.raises(Unsupported, match="follows exactly"):
            sf.PartiallySynthetic(("x",), "linear", columns=("w",)).apply(table)

    def test_too_few_records_for_the_regression(self) -> None:
        with pytest.raises(Unsupported, match="do not suffice"):
            sf.PartiallySynthetic(("x", "group"), "linear", columns=("y",)).apply(line(5))

    def test_fewer_values_than_a_leaf_needs(self) -> None:
        with pytest.raises(Unsupported, match="'y' has 4 values"):
            sf.PartiallySynthetic(("x",), columns=("y",)).apply(line(4))

    def test_unique_without_quasi_identifiers(self) -> None:
        with pytest.raises(InputError, match="quasi"):
            sf.PartiallySynthetic(("x",), where="unique", columns=("y",)).apply(line(50))


@pytest.mark.parametrize(
    "mask",
    [
        sf.PartiallySynthetic(predictors=("x",), columns=("word",), min_leaf=2),
        sf.SequentialTrees(columns=("x", "word"), min_leaf=2),
    ],
)
def test_categories_that_are_nearly_all_different_are_made_without_a_warning(mask: sf.masking.Mask) -> None:
    """Classes of which hardly any comes twice are split by their order; the learner would warn about them."""
    table = pa.table({"word": [f"w{i % 40}" for i in range(60)], "x": np.arange(60.0)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = mask.apply(table, seed=1).result.table
    assert set(made.column("word").to_pylist()) <= set(table.column("word").to_pylist())
