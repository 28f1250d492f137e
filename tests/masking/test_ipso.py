"""IPSO: the regression survives exactly, the records do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sfumato as sf
from sfumato.core.errors import InputError, MissingColumn, ParameterError, Unsupported
from tests.conformance.masks import NUMBERS, people
from tests.examples import examples

Real = NDArray[np.float64]


def table_of(records: int, given_columns: int, masked_columns: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    x = random.normal(size=(records, given_columns)) * 10.0 ** np.arange(given_columns)
    mix = random.normal(size=(given_columns, masked_columns))
    y = x @ mix + random.normal(size=(records, masked_columns)) * 3 + 100
    columns = {f"x{i}": x[:, i] for i in range(given_columns)} | {f"y{i}": y[:, i] for i in range(masked_columns)}
    return pa.table(columns)


def matrix(table: pa.Table, prefix: str) -> Real:
    names = [name for name in table.column_names if name.startswith(prefix)]
    return np.column_stack([np.empty((table.num_rows, 0)), *(table.column(name).to_numpy() for name in names)])


def regression(table: pa.Table) -> tuple[Any, Any]:
    """Coefficients with intercept, and the cross-products of residuals: NumPy's own least squares as oracle."""
    x, y = matrix(table, "x"), matrix(table, "y")
    terms = np.column_stack([np.ones(len(x)), x])
    coefficients = np.linalg.lstsq(terms, y, rcond=None)[0]
    residuals = y - terms @ coefficients
    return coefficients, residuals.T @ residuals


def same(a: Any, b: Any, tolerance: float = 1e-10) -> bool:
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(a).max()))


@pytest.mark.golden("G-MSK-06")
@pytest.mark.parametrize("seed", range(5))
def test_golden_the_methods_keep_what_burridge_says(seed: int) -> None:
    table = table_of(60, 3, 2, seed)
    coefficients, crossed = regression(table)
    y = matrix(table, "y")
    masked = {}
    for method in ("A", "B", "C"):
        mask = sf.Ipso(method, ("x0", "x1", "x2"), columns=("y0", "y1"))
        masked[method] = mask.apply(table, seed=seed).result.table
        assert same(regression(masked[method])[0], coefficients)
        assert same(matrix(masked[method], "x"), matrix(table, "x"), 0.0)
        assert same(matrix(masked[method], "y").mean(axis=0), y.mean(axis=0))
    assert same(regression(masked["C"])[1], crossed)
    assert same(np.cov(matrix(masked["C"], "y").T), np.cov(y.T))
    assert not same(regression(masked["B"])[1], crossed, 1e-3)
    terms = np.column_stack([np.ones(60), matrix(table, "x")])
    assert same(matrix(masked["A"], "y"), terms @ coefficients)
    assert np.abs(regression(masked["A"])[1]).max() < 1e-10 * np.abs(crossed).max()
    assert np.abs(matrix(masked["C"], "y") - y).min(axis=0).max() > 0


@given(
    extra=st.integers(11, 40),  # ten free directions are left to chance
    given_columns=st.integers(0, 4),
    masked_columns=st.integers(1, 5),
    groups=st.integers(1, 5),
    seed=st.integers(0, 2**20),
)
@settings(max_examples=examples(15))
def test_method_c_keeps_all_first_and_second_moments_whatever_the_groups(
    extra: int, given_columns: int, masked_columns: int, groups: int, seed: int
) -> None:
    table = table_of(given_columns + masked_columns + 1 + extra, given_columns, masked_columns, seed)
    names = tuple(name for name in table.column_names if name.startswith("x")) or None
    mask = sf.Ipso("C", names, min(groups, masked_columns), columns=tuple(f"y{i}" for i in range(masked_columns)))
    masked = mask.apply(table, seed=seed).result.table
    before = np.column_stack([matrix(table, "x"), matrix(table, "y")])
    after = np.column_stack([matrix(masked, "x"), matrix(masked, "y")])
    spread = before.std(axis=0)
    assert np.allclose((after.mean(axis=0) - before.mean(axis=0)) / spread, 0, atol=1e-9)
    assert np.allclose((np.cov(after.T) - np.cov(before.T)) / np.outer(spread, spread), 0, atol=1e-9)


def test_method_b_keeps_the_covariance_on_average() -> None:
    """Over 300 draws the mean lies within 6 standard errors: false alarms below 1e-8."""
    table = table_of(40, 1, 2, 3)
    wanted = np.cov(matrix(table, "y").T).ravel()
    drawn = [
        np.cov(matrix(sf.Ipso("B", ("x0",), groups, columns=("y0", "y1")).apply(table, seed=s).result.table, "y").T).ravel()
        for groups in (1, 2)
        for s in range(150)
    ]
    error = np.std(drawn, axis=0, ddof=1) / np.sqrt(len(drawn))
    assert np.all(np.abs(np.mean(drawn, axis=0) - wanted) <= 6 * error)
    assert np.std(drawn, axis=0).min() > 0


def test_groups_are_cut_in_the_order_of_columns_and_told() -> None:
    table = table_of(50, 0, 5, 1)
    told = sf.Ipso(groups=2, columns=("y0", "y1", "y2", "y3", "y4")).apply(table, seed=1).result.transparency
    assert told["groups"] == [["y0", "y1", "y2"], ["y3", "y4"]] and told["predictors"] == []


def test_more_groups_follow_the_records_more_closely() -> None:
    random = np.random.default_rng(5)
    base = random.normal(size=(500, 1))
    table = pa.table({f"y{i}": (base + 0.3 * random.normal(size=(500, 1))).ravel() for i in range(6)})
    distance = []
    for groups in (1, 2, 6):
        masked = sf.Ipso(groups=groups, columns=tuple(table.column_names)).apply(table, seed=2).result.table
        distance.append(float(np.square(matrix(masked, "y") - matrix(table, "y")).sum()))
    assert distance[0] > 2 * distance[1] > 2 * distance[2]


def test_categories_predict_through_indicators() -> None:
    data = people()
    masked = sf.Ipso(predictors=("town", "school"), columns=NUMBERS).apply(data, seed=1).result.table
    for name in ("town", "school"):
        for value in set(masked.column(name).to_pylist()):
            inside = np.array(data.table().column(name).to_pylist()) == value
            before = np.array([data.table().column(c).to_numpy()[inside].mean() for c in NUMBERS])
            after = np.array([masked.column(c).to_numpy()[inside].mean() for c in NUMBERS])
            assert same(before, after, 1e-9)


def test_complete_records_keep_their_moments_and_incomplete_ones_are_drawn() -> None:
    data = people(seed=2, missing=0.15)
    outcome = sf.Ipso(predictors=("age", "school"), groups=3, columns=NUMBERS).apply(data, seed=1)
    before = np.column_stack([data.table().column(c).to_numpy() for c in NUMBERS])
    after = np.column_stack([outcome.result.table.column(c).to_numpy() for c in NUMBERS])
    age_known = np.array(data.table().column("age").is_valid())
    complete = ~np.isnan(before).any(axis=1) & age_known
    assert outcome.details["complete_records"] == complete.sum() > 150
    assert np.array_equal(np.isnan(before), np.isnan(after))
    assert same(before[complete].mean(axis=0), after[complete].mean(axis=0), 1e-9)
    assert same(np.cov(before[complete].T), np.cov(after[complete].T), 1e-9)
    lacking = ~complete
    assert not np.any(before[lacking] == after[lacking])
    deviation = np.nanmean(after[lacking], axis=0) - np.nanmean(before[lacking], axis=0)
    assert np.all(np.abs(deviation) < 6 * np.nanstd(before, axis=0) * np.sqrt(2 / lacking.sum()))
    fitted = sf.Ipso("A", ("age", "school"), columns=NUMBERS).apply(data, seed=1).result.table
    assert [fitted.column(c).null_count for c in NUMBERS] == [data.table().column(c).null_count for c in NUMBERS]


def test_a_category_that_only_incomplete_records_have_is_no_obstacle() -> None:
    table = table_of(40, 1, 2, 7)
    lacking = np.arange(40) < 5
    table = table.set_column(1, "y0", pa.array(table.column("y0").to_numpy(), mask=lacking))
    table = table.append_column("x1", pa.array(np.where(lacking, "rare", np.where(np.arange(40) % 2, "odd", "even"))))
    masked = sf.Ipso(predictors=("x0", "x1"), columns=("y0", "y1")).apply(table, seed=1).result.table
    assert masked.column("y0").null_count == 5 and masked.column("y1").null_count == 0
    assert not np.any(masked.column("y1").to_numpy() == table.column("y1").to_numpy())


def test_strata_keep_their_own_moments() -> None:
    data = people()
    masked = sf.Ipso(columns=NUMBERS, strata=("region",)).apply(data, seed=1).result.table
    for region in ("north", "south"):
        inside = np.array(data.table().column("region").to_pylist()) == region
        for name in NUMBERS:
            assert same(data.table().column(name).to_numpy()[inside].std(), masked.column(name).to_numpy()[inside].std(), 1e-9)


def test_whole_numbers_are_rounded_unless_asked_otherwise() -> None:
    data = people()
    rounded = sf.Ipso(columns=("age", "height")).apply(data, seed=1).result.table
    exact = sf.Ipso(columns=("age", "height"), whole=False).apply(data, seed=1).result.table
    assert pa.types.is_integer(rounded.schema.field("age").type)
    assert same(exact.column("age").to_numpy().mean(), data.table().column("age").to_numpy().mean())


class TestRefusals:
    @pytest.mark.parametrize(
        "parameters", [{"method": "D"}, {"predictors": ()}, {"predictors": "age"}, {"groups": 0}, {"groups": True}]
    )
    def test_parameters_out_of_range(self, parameters: dict[str, Any]) -> None:
        with pytest.raises(ParameterError, match="Ipso"):
            sf.Ipso(**parameters)

    @pytest.mark.parametrize("parameters", [{}, {"predictors": ("age",), "groups": 2}])
    def test_fitted_values_need_predictors_and_no_groups(self, parameters: dict[str, Any]) -> None:
        with pytest.raises(ParameterError, match="method A"):
            sf.Ipso("A", **parameters)

    @pytest.mark.parametrize(("records", "works"), [(16, False), (17, True)])
    def test_as_many_records_as_numbers_to_keep_and_ten_for_chance(self, records: int, works: bool) -> None:
        mask = sf.Ipso(predictors=("x0", "x1", "x2"), columns=("y0", "y1"))
        if works:
            mask.apply(table_of(records, 3, 2, 1), seed=1)
        else:
            with pytest.raises(Unsupported, match="do not suffice"):
                mask.apply(table_of(records, 3, 2, 1), seed=1)

    def test_predictors_that_depend_on_each_other(self) -> None:
        table = table_of(60, 2, 2, 1)
        table = table.append_column("x2", pa.array(2 * table.column("x0").to_numpy() - table.column("x1").to_numpy()))
        with pytest.raises(Unsupported, match="depend linearly"):
            sf.Ipso(predictors=("x0", "x1", "x2"), columns=("y0", "y1")).apply(table, seed=1)

    def test_masked_columns_that_depend_on_each_other(self) -> None:
        table = table_of(60, 1, 2, 1)
        table = table.append_column("y2", pa.array(table.column("y0").to_numpy() + table.column("y1").to_numpy()))
        with pytest.raises(Unsupported, match="follow linearly"):
            sf.Ipso(columns=("y0", "y1", "y2")).apply(table, seed=1)

    def test_a_masked_column_that_follows_from_the_predictors(self) -> None:
        table = table_of(60, 1, 1, 1)
        table = table.append_column("y1", pa.array(3 * table.column("x0").to_numpy() + 1))
        for method in ("A", "B", "C"):
            with pytest.raises(Unsupported, match="follow linearly"):
                sf.Ipso(method, ("x0",), columns=("y0", "y1")).apply(table, seed=1)

    def test_more_groups_than_columns(self) -> None:
        with pytest.raises(ParameterError, match="groups"):
            sf.Ipso(groups=3, columns=("y0", "y1")).apply(table_of(60, 1, 2, 1))

    def test_predictors_that_are_masked_missing_or_strata(self) -> None:
        data = people()
        with pytest.raises(ParameterError, match="'wage'"):
            sf.Ipso(predictors=("wage",), columns=NUMBERS).apply(data)
        with pytest.raises(MissingColumn, match="'nowhere'"):
            sf.Ipso(predictors=("nowhere",), columns=NUMBERS).apply(data)
        with pytest.raises(ParameterError, match="'region'"):
            sf.Ipso(predictors=("region",), columns=NUMBERS, strata=("region",)).apply(data)

    def test_a_column_that_is_constant_in_one_stratum(self) -> None:
        values = [1.0] * 20 + [float(i) for i in range(20)]
        table = pa.table({"y": values, "z": [float(i * i % 7) for i in range(40)], "s": ["a"] * 20 + ["b"] * 20})
        with pytest.raises(InputError, match="'y' does not vary within 1 of 2 strata"):
            sf.Ipso(columns=("y", "z"), strata=("s",)).apply(table)
