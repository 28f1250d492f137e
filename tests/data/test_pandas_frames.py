"""Tables as pandas frames: numbers stay numbers, and texts of intervals become intervals where somebody asks."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.data.hierarchies.hierarchy_builders import from_cuts, from_intervals
from sfumato.data.pandas_frames import pandas_frame
from sfumato.data.schema import Column, HierarchySpec, Schema
from tests.workflow.people import people, table


def shown(*texts: str | None) -> list[object]:
    """What a column of these texts becomes."""
    column = pa.table({"x": pa.array(texts, pa.string()).dictionary_encode()})
    return pandas_frame(column, intervals=True)["x"].tolist()  # type: ignore[no-any-return]


def test_numbers_that_stayed_numbers_come_back_as_numbers() -> None:
    data = people(600)
    release = sf.protect(data.with_schema(data.schema.with_levels({}, {"age": 0})), k=2, method="Lattice(suppression=0.5)")
    frame = release.to_pandas()
    assert frame["age"].dtype == np.int64 and frame["visits"].dtype == np.int64
    assert sorted(frame["age"]) == sorted(release.data.column("age").to_pylist())


def test_numbers_that_were_taken_for_codes_are_numbers_again_and_declared_categories_are_not() -> None:
    rows = pa.table({"visits": [*range(4)] * 50, "zip": ["1000", "2000"] * 100, "age": [*range(20, 70)] * 4})
    release = sf.protect(rows, k=2, quasi=["visits", "zip", "age"], method="Lattice()")
    assert release.data.column("visits").to_pylist()[0] == "0"
    frame = release.to_pandas()
    assert frame["visits"].dtype == np.int64 and sorted(frame["visits"]) == sorted(rows.column("visits").to_pylist())
    assert set(frame["zip"]) == {"1000", "2000"}
    declared = Schema(dataset="visits", unit="record", columns={"visits": Column(role="quasi", type="category")})
    assert set(sf.protect(sf.read(rows.select(["visits"]), declared), k=2).to_pandas()["visits"]) == set("0123")


@pytest.mark.parametrize("text", ["007", "-0", "1.0", "*", "[1, 2)", "9" * 19])
def test_codes_beside_another_text_stay_texts(text: str) -> None:
    assert pandas_frame(pa.table({"x": ["1", text]}), codes=["x"])["x"].tolist() == ["1", text]
    assert str(pandas_frame(pa.table({"x": ["1", None]}), codes=["x"])["x"].dtype) == "Int64"


def test_whole_numbers_stay_whole_beside_missing_ones() -> None:
    large = 2**53 + 1
    frame = pandas_frame(pa.table({"x": [1, None, large], "y": [1, 2, 3], "z": [0.5, None, 1.0]}))
    assert str(frame["x"].dtype) == "Int64" and frame["x"].tolist()[2] == large and frame["x"].isna().tolist()[1]
    assert frame["y"].dtype == np.int64 and frame["z"].dtype == np.float64


def test_a_frame_that_left_comes_back_as_the_same_table() -> None:
    rows = pa.table({"x": pa.array([1, None, 3], pa.int64()), "y": ["a", "b", None]})
    assert sf.read(sf.read(rows).to_pandas()).table().equals(sf.read(rows).table())


@pytest.mark.parametrize(
    ("text", "low", "high", "closed"),
    [
        ("[30, 40)", 30, 40, "left"),
        ("[-2.5, 7]", -2.5, 7, "both"),
        ("[-inf, 10)", -math.inf, 10, "neither"),
        ("[500, inf)", 500, math.inf, "left"),
        ("[1e-07, 2e-07)", 1e-7, 2e-7, "left"),
        ("[0, 10) (level 2)", 0, 10, "left"),
        ("1950-05-31 … 1962-12-31", pd.Timestamp(1950, 5, 31), pd.Timestamp(1962, 12, 31), "both"),
    ],
)
def test_an_interval_has_the_ends_and_the_closed_sides_of_its_text(text: str, low: object, high: object, closed: str) -> None:
    assert shown(text) == [pd.Interval(low, high, closed=closed)]


def test_a_value_shown_as_it_is_stays_a_number_and_the_root_stays_itself() -> None:
    values = shown("[30, 40)", "34", "2.5", "*", None)
    assert values == [pd.Interval(30, 40, closed="left"), 34, 2.5, "*", None]
    assert [type(value) for value in values[1:3]] == [int, float]


@pytest.mark.parametrize("other", ["1950s", "12***", "[40, 30)", "Berlin … Bonn", "2024-01-01x … 2024-02-01"])
def test_a_column_with_another_text_stays_as_it_is(other: str) -> None:
    assert shown("[30, 40)", other) == ["[30, 40)", other]


@pytest.mark.parametrize("values", [["10", "*"], ["*"], [None], ["a"]])
def test_a_column_without_an_interval_stays_as_it_is(values: list[str | None]) -> None:
    assert shown(*values) == values or pd.isna(shown(*values)[0])


def test_every_text_of_a_hierarchy_of_intervals_holds_the_values_below_it() -> None:
    numbers = [str(number) for number in (-7, 0, 3, 9, 10, 11, 49, 50, 1234)]
    for tree in (from_intervals(numbers, (5, 10, 40)), from_cuts(numbers, ((0, 10, 50), (10,)))):
        for level in range(1, tree.height):
            for value, text in zip(tree.leaves, (tree.labels[node] for node in tree.node_of[level]), strict=True):
                assert value is not None and float(value) in shown(text)[0]  # type: ignore[operator]


def test_the_intervals_of_a_release_hold_the_values_behind_them() -> None:
    columns = {"age": Column(role="quasi", type="integer", hierarchy=HierarchySpec(intervals=(5, 10, 20, 40)))}
    data = sf.read(table(300).select(["age"]), Schema(dataset="ages", unit="record", columns=columns))
    release = sf.protect(data, k=40, method="Lattice()")
    frame = release.to_pandas(intervals=True)
    assert frame["age"].dtype == pd.IntervalDtype("int64", closed="left")
    assert not any(isinstance(value, pd.Interval) for value in release.to_pandas()["age"])
    counted = frame["age"].value_counts()
    ages = data.table().column("age").to_pylist()
    assert {interval: sum(age in interval for age in ages) for interval in counted.index} == counted.to_dict()


def test_an_artefact_that_is_no_table_is_refused() -> None:
    session = sf.Session(people(100), budget=sf.PureDP(1))
    artefact = sf.publish(session.release(sf.dp.TopK("disease", k=1, epsilon=1, candidates=("flu", "cold"))))
    assert not isinstance(artefact.data, pa.Table)
    for frame in (artefact.to_pandas, artefact.to_polars):
        with pytest.raises(Unsupported, match="is no table"):
            frame()
