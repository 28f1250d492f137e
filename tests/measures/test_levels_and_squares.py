"""Precision, ambiguity and squared error, each beside a second computation over plain rows."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import ReleasedTable
from sfumato.data.schema import HierarchySpec
from sfumato.report.summary import summary_lines
from tests.examples import examples

TREE = {"north": {"oslo": ["0150", "0151"], "bergen": ["5003"]}, "rome": []}
COLUMNS = {
    "zip": sf.Column(role="quasi", hierarchy=HierarchySpec(tree=TREE), importance=2.0),
    "age": sf.Column(role="quasi", type="integer", bounds=(0, 19), hierarchy=HierarchySpec(intervals=(5, 10))),
}
SCHEMA = sf.Schema(dataset="people", columns=COLUMNS)


def trees() -> dict[str, Hierarchy]:
    rows = [
        ["0150", "oslo", "north", "*"],
        ["0151", "oslo", "north", "*"],
        ["5003", "bergen", "north", "*"],
        ["rome", "rome", "rome", "*"],
    ]
    ages = [[str(i), f"[{i // 5 * 5}, {i // 5 * 5 + 5})", f"[{i // 10 * 10}, {i // 10 * 10 + 10})", "*"] for i in range(20)]
    return {"zip": Hierarchy.from_levels(rows), "age": Hierarchy.from_levels(ages)}


People = list[tuple[str, int]]


def released(people: People, levels: tuple[int, int], gone: int) -> tuple[pa.Table, ReleasedTable]:
    """The people generalised to these levels, the last `gone` of them suppressed."""
    original = pa.table({"zip": [zip_ for zip_, _ in people], "age": [age for _, age in people]})
    by_name = trees()
    shown = {
        name: [by_name[name].generalise(str(value), level) for value in original.column(name).to_pylist()]
        for name, level in zip(by_name, levels, strict=True)
    }
    table = pa.table({name: pa.array(texts[: len(people) - gone], pa.string()) for name, texts in shown.items()})
    return original, ReleasedTable(table, SCHEMA, by_name, len(people))


def score(name: str, original: pa.Table, table: ReleasedTable) -> Any:
    return sf.find("measure", name)().score(original, table)


drawn = st.lists(st.tuples(st.sampled_from(["0150", "0151", "5003", "rome"]), st.integers(0, 19)), min_size=2, max_size=12)


@settings(max_examples=examples(30))
@given(people=drawn, levels=st.tuples(st.integers(0, 3), st.integers(0, 3)), data=st.data())
def test_precision_equals_levels_counted_cell_by_cell(people: People, levels: tuple[int, int], data: st.DataObject) -> None:
    original, table = released(people, levels, 0)
    climbed = {"0150": [0, 1, 2, 3], "0151": [0, 1, 2, 3], "5003": [0, 1, 2, 3], "rome": [0, 0, 0, 1]}
    by_zip = sum(climbed[zip_][levels[0]] / 3 for zip_, _ in people) / len(people)
    by_age = sum(levels[1] / 3 for _ in people) / len(people)
    measured = score("precision", original, table)
    assert measured.parts["zip"] == pytest.approx(1 - by_zip)
    assert measured.value == pytest.approx(1 - (2 * by_zip + by_age) / 3)
    gone = data.draw(st.integers(0, len(people)))
    _, fewer = released([("0150", 3)] * len(people), levels, gone)
    alike = pa.table({"zip": ["0150"] * len(people), "age": [3] * len(people)})
    kept = (len(people) - gone) / len(people)
    assert score("precision", alike, fewer).value == pytest.approx(kept * (1 - (2 * levels[0] / 3 + levels[1] / 3) / 3))


@settings(max_examples=examples(30))
@given(people=drawn, levels=st.tuples(st.integers(0, 3), st.integers(0, 3)), data=st.data())
def test_ambiguity_equals_the_combinations_listed_record_by_record(
    people: People, levels: tuple[int, int], data: st.DataObject
) -> None:
    gone = data.draw(st.integers(0, len(people)))
    original, table = released(people, levels, gone)
    by_name = trees()
    total = 0
    for zip_, age in people[: len(people) - gone]:
        towns = [row for row in by_name["zip"].rows() if row[levels[0]] == by_name["zip"].generalise(zip_, levels[0])]
        ages = [row for row in by_name["age"].rows() if row[levels[1]] == by_name["age"].generalise(str(age), levels[1])]
        total += len([(town, year) for town in towns for year in ages])
    measured = score("ambiguity", original, table)
    assert measured.value == pytest.approx((total + gone * 4 * 20) / len(people))
    assert measured.parts["share of all combinations"] == pytest.approx(measured.value / 80)
    assert 1 <= measured.value <= 80 == measured.parts["all combinations"]


@settings(max_examples=examples(30))
@given(people=drawn, level=st.integers(0, 3))
def test_squared_error_equals_the_distances_from_the_middle_of_what_is_shown(people: People, level: int) -> None:
    original, table = released(people, (0, level), 0)
    ages = [age for _, age in people]
    mean = sum(ages) / len(ages)
    variance = sum((age - mean) ** 2 for age in ages) / len(ages)
    if variance == 0:
        with pytest.raises(Unsupported, match="no quasi-identifier of this release is a number that varies"):
            score("squared_error", original, table)
        return
    width = {0: 1, 1: 5, 2: 10, 3: 20}[level]
    middles = [age // width * width + (width - 1) / 2 for age in ages]
    expected = sum((age - middle) ** 2 for age, middle in zip(ages, middles, strict=True)) / len(ages) / variance
    measured = score("squared_error", original, table)
    assert measured.value == pytest.approx(expected) and set(measured.parts) == {"age"}


def test_suppressed_records_are_read_as_the_middle_of_the_column() -> None:
    people = [("0150", age) for age in (0, 0, 4, 19)]
    original, table = released(people, (0, 0), 4)
    mean = 23 / 4
    variance = sum((age - mean) ** 2 for _, age in people) / 4
    expected = sum((age - 9.5) ** 2 for _, age in people) / 4 / variance
    assert score("squared_error", original, table).value == pytest.approx(expected)


def test_the_suppressed_values_are_those_that_no_shown_text_accounts_for() -> None:
    """Outliers are suppressed, and they are not like the others: squares, bits and levels by hand."""
    people = [("0150", age) for age in (0, 0, 1, 2, 3, 4, 4)] + [("rome", age) for age in (17, 19, 19)]
    original, table = released(people, (0, 1), 3)
    ages = [age for _, age in people]
    mean = sum(ages) / 10
    variance = sum((age - mean) ** 2 for age in ages) / 10
    squares = sum((age - (2 if age < 5 else 9.5)) ** 2 for age in ages) / 10 / variance
    assert score("squared_error", original, table).value == pytest.approx(squares)
    bits = sum(math.log2((7 if age < 5 else 10) / ages.count(age)) for age in ages)
    assert score("entropy", original, table).parts["age"] == pytest.approx(bits)
    levels = score("distortion", original, table).parts
    assert levels["zip"] == pytest.approx(3 * 1) and levels["age"] == pytest.approx(7 * 1 + 3 * 3)


def test_a_summary_prints_the_scale_of_ambiguity_and_the_interval_of_an_estimate() -> None:
    people = sf.read(pa.table({"age": list(range(20)) * 2 + [7]}), sf.Schema(dataset="d", columns={"age": COLUMNS["age"]}))
    release = sf.protect(
        people,
        [sf.KAnonymity(1)],
        sf.Lattice(),
        utility=["ambiguity"],
        risk=["uniques", {"name": "log_linear_risk", "sampling_fraction": 0.5}],
    )
    lines = summary_lines(release)
    assert any("ambiguity 1 of 20 combinations" in line for line in lines)
    counted, printed = [line for line in lines if line.startswith("risk")]
    low, high = next(score.interval for score in release.owner.scores if score.measure == "log_linear_risk")
    assert (f"95 % interval {low:.4g} to {high:.4g})" in printed) == (low < high)
    assert "uniques 0" in counted and "interval" not in counted  # what is counted is exact


def test_missing_numbers_are_left_out_of_the_error_and_ranges_have_no_precision() -> None:
    table = pa.table({"age": pa.array([20, 30, None, 40], pa.int64()), "town": ["a", "a", "b", "b"]})
    people = sf.read(table, sf.Schema.of(quasi=["age", "town"], unit="record"))
    ranged = sf.protect(people, [sf.KAnonymity(2)], sf.Mondrian(), utility=["squared_error", "ambiguity"])
    assert math.isfinite(ranged.scores["squared_error"]) and ranged.scores["ambiguity"] >= 1
    numbers = sf.read(pa.table({"age": [20, 21, 30, 31]}), sf.Schema.of(quasi=["age"], unit="record"))
    with pytest.raises(Unsupported, match="age shows ranges"):
        sf.protect(numbers, [sf.KAnonymity(2)], sf.Mondrian(), utility=["precision"])


def test_the_objective_of_levels_is_one_minus_the_precision_of_a_balanced_tree() -> None:
    people = sf.read(
        pa.table({"age": list(range(20)) * 2}), sf.Schema(dataset="d", unit="record", columns={"age": COLUMNS["age"]})
    )
    release = sf.protect(people, [sf.KAnonymity(4)], sf.Lattice(measured="precision"), utility=["precision"])
    assert release.details["objective"] == pytest.approx(1 - release.scores["precision"])
