"""The plain verifier on rows that were grouped elsewhere measures what it measures on the rows themselves."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InputError, MissingColumn, Unsupported
from sfumato.core.guarantees.base import ClassGuarantee, Knowledge
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.measures.guarantees.examined import Measurement
from sfumato.measures.guarantees.grouped import GroupedTable, UnitsOfClasses
from sfumato.measures.guarantees.measure import MEASURES, measure_each, measure_grouped
from tests.examples import examples

DISEASES = ["flu", "cold", "asthma", "angina", None]
LUNG = HierarchySpec(tree={"lung": ["flu", "cold", "asthma"], "heart": ["angina"]}, missing="root")
COLUMNS = {
    "age": Column(role="quasi", hierarchy=HierarchySpec(intervals=(10, 50))),
    "sex": Column(role="quasi"),
    "disease": Column(role="sensitive", hierarchy=LUNG),
    "income": Column(role="sensitive"),
    "visits": Column(role="sensitive", type="string", items="|"),
}
SCHEMA = Schema(dataset="grouped", columns=COLUMNS)
WITH_SETS = SCHEMA.replace(columns={**COLUMNS, "visits": Column(role="quasi", type="string", items="|")})
WITH_UNITS = SCHEMA.replace(columns={**COLUMNS, "person": Column(role="unit")})
NAMES = ["age", "sex", "disease", "income", "visits"]

ABOUT_CLASSES: list[ClassGuarantee] = [
    sf.KAnonymity(2),
    sf.KAnonymity(3, Knowledge(attributes=("sex",))),
    sf.AverageRisk(0.5),
    sf.UniquenessByModel(0.1, 0.3),
    sf.KMapByModel(2, 0.9),
    sf.AlphaKAnonymity(0.6, 2, "disease"),
    sf.AlphaKAnonymity(0.6, 2, "disease", ("flu",)),
    sf.DistinctLDiversity(2, "disease"),
    sf.DistinctLDiversity(2, "visits"),
    sf.DistinctLDiversity(2, "disease", ("flu", "cold")),
    sf.EntropyLDiversity(1.7, "disease"),
    sf.RecursiveLDiversity(2.0, 2, "disease"),
]
COMPARING: list[ClassGuarantee] = [
    *(
        sf.TCloseness(0.3, attribute, distance=distance, reference=reference)  # type: ignore[arg-type]
        for attribute, distance in [
            ("disease", "equal"),
            ("disease", "variational"),
            ("income", "ordered"),
            ("disease", "hierarchical"),
            ("disease", "kl"),
            ("visits", "equal"),
        ]
        for reference in ("input", "released")
    ),
    sf.TCloseness(0.3, "disease", reference="released", protected_values=("flu",)),
    sf.BetaLikeness(1.0, "disease"),
    sf.BetaLikeness(1.0, "disease", enhanced=False, reference="released"),
    sf.DeltaDisclosure(1.0, "disease"),
]
AGAINST_PEOPLE: list[ClassGuarantee] = [sf.KMap(3), sf.DeltaPresence(0.0, 0.5), sf.DeltaPresence(0.2, 0.9)]
EVERYTHING = [*ABOUT_CLASSES, *COMPARING, *AGAINST_PEOPLE]

SETS = st.sampled_from(["x", "x|y", "y|x", "y|x|x", "z", "", None])
RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["[20, 30)", "[30, 40)", "*", None]),
        st.sampled_from(["f", "m", None]),
        st.sampled_from(DISEASES),
        st.sampled_from([10, 20, 30, None]),
        SETS,
        st.sampled_from(["p1", "p2", "p3", None]),
    ),
    max_size=40,
)
PEOPLE = st.lists(st.tuples(st.integers(18, 45), st.sampled_from(["f", "m", None])), min_size=1, max_size=40)


def _table(records: Sequence[Sequence[object]]) -> pa.Table:
    types = [pa.string(), pa.string(), pa.string(), pa.int64(), pa.string(), pa.string()]
    names = [*NAMES, "person"]
    return pa.table(
        {name: pa.array([row[i] for row in records], kind) for i, (name, kind) in enumerate(zip(names, types, strict=True))}
    )


def _population(people: Sequence[tuple[int, str | None]]) -> pa.Table:
    return pa.table({"age": [age for age, _ in people], "sex": pa.array([sex for _, sex in people], pa.string())})


def _shuffled(groups: GroupedTable, seed: int) -> GroupedTable:
    """The same records: groups in another order, and some of them in two parts."""
    draw = np.random.default_rng(seed)
    first = np.array([draw.integers(1, count + 1) for count in groups.counts.tolist()], dtype=np.int64)
    rows, counts = np.tile(np.arange(first.size), 2), np.concatenate([first, groups.counts - first])
    order = draw.permutation(np.flatnonzero(counts))
    return GroupedTable(groups.table.take(pa.array(rows[order])), counts[order], groups.units)


def _close(left: float, right: float) -> bool:
    return left == right or math.isclose(left, right, rel_tol=1e-12)


def _assert_same(grouped: Sequence[Measurement], rows: Sequence[Measurement]) -> None:
    """Equal but for the last digit of sums of floating-point numbers, which depends on the order of the values."""
    for mine, theirs in zip(grouped, rows, strict=True):
        assert dataclasses.replace(mine, value=0, also={}) == dataclasses.replace(theirs, value=0, also={})
        assert _close(mine.value, theirs.value)
        assert mine.also.keys() == theirs.also.keys()
        assert all(_close(mine.also[key], theirs.also[key]) for key in mine.also)


def test_every_guarantee_is_compared_here() -> None:
    assert {type(guarantee) for guarantee in EVERYTHING} == set(MEASURES)


@pytest.mark.slow
@given(RECORDS, RECORDS, PEOPLE, st.integers(0, 1000))
def test_grouped_rows_measure_as_the_rows_do(
    records: list[tuple[object, ...]], suppressed: list[tuple[object, ...]], people: list[tuple[int, str | None]], seed: int
) -> None:
    rows, population = _table(records).select(NAMES), _population(people)
    original = _table([*records, *suppressed, ("*", "f", "flu", 10, "x", "p1")])
    one_by_one = measure_each(rows, SCHEMA, EVERYTHING, original=original, population=population)
    groups = GroupedTable.of(rows, NAMES)
    assert groups.records == rows.num_rows
    assert measure_grouped(groups, SCHEMA, EVERYTHING, original=original, population=population) == one_by_one
    other = _shuffled(groups, seed)
    compared = {
        "original": _shuffled(GroupedTable.of(original, ["disease", "income", "visits"]), seed),
        "population": _shuffled(GroupedTable.of(population, ["age", "sex"]), seed),
    }
    _assert_same(measure_grouped(other, SCHEMA, EVERYTHING, **compared), one_by_one)
    merged = GroupedTable.merged([other, GroupedTable.of(rows.slice(0, 0), NAMES)])
    assert merged.table.num_rows == len(set(zip(*(rows[name].to_pylist() for name in NAMES), strict=True)))
    _assert_same(measure_grouped(merged, SCHEMA, EVERYTHING, **compared), one_by_one)


@settings(max_examples=examples(30))
@given(RECORDS, st.integers(0, 1000))
def test_known_items_are_counted_in_groups_as_in_rows(records: list[tuple[object, ...]], seed: int) -> None:
    rows = _table(records)
    guarantees = [sf.KAnonymity(2, Knowledge(items=items)) for items in (1, 2)]
    one_by_one = measure_each(rows.select(NAMES), WITH_SETS, guarantees)
    groups = GroupedTable.of(rows, ["age", "sex", "visits"])
    _assert_same(measure_grouped(_shuffled(groups, seed), WITH_SETS, guarantees), one_by_one)
    with_units = WITH_SETS.replace(columns={**WITH_SETS.columns, "person": Column(role="unit")})
    in_units = measure_each(rows, with_units, guarantees)
    groups = GroupedTable.of(rows, ["age", "sex", "visits", "person"])
    _assert_same(measure_grouped(_shuffled(groups, seed), with_units, guarantees), in_units)


def _units(rows: pa.Table, columns: list[str]) -> UnitsOfClasses:
    """Different people per class, by hand."""
    units: dict[tuple[object, ...], set[object]] = {}
    for key, person in zip(
        zip(*(rows[name].to_pylist() for name in columns), strict=True), rows["person"].to_pylist(), strict=True
    ):
        units.setdefault(key, set()).update({person} - {None})  # a record without a name is nobody's
    listed = sorted(units, key=repr)
    classes = {name: pa.array([key[i] for key in listed], pa.string()) for i, name in enumerate(columns)}
    return UnitsOfClasses(pa.table(classes), np.array([len(units[key]) for key in listed], dtype=np.int64))


@settings(max_examples=examples(30))
@given(RECORDS.filter(bool), st.integers(0, 1000))
def test_different_units_counted_beside_the_groups_measure_as_a_unit_column_does(
    records: list[tuple[object, ...]], seed: int
) -> None:
    rows, guarantees = _table(records), ABOUT_CLASSES
    one_by_one = measure_each(rows, WITH_UNITS, guarantees)
    _assert_same(measure_grouped(_shuffled(GroupedTable.of(rows, [*NAMES, "person"]), seed), WITH_UNITS, guarantees), one_by_one)
    groups = _shuffled(GroupedTable.of(rows, NAMES), seed)
    beside = dataclasses.replace(groups, units=(_units(rows, ["sex"]), _units(rows, ["sex", "age"])))
    _assert_same(measure_grouped(beside, WITH_UNITS, guarantees), one_by_one)


def test_units_of_other_classes_are_refused() -> None:
    groups = GroupedTable(pa.table({"age": ["a", "b"]}), np.array([2, 3]))
    schema = Schema.of(quasi=["age"])

    def measured(classes: list[str], units: list[int]) -> Measurement:
        counted = UnitsOfClasses(pa.table({"age": classes}), np.array(units))
        return measure_grouped(dataclasses.replace(groups, units=(counted,)), schema, [sf.KAnonymity(2)])[0]

    assert measured(["b", "a"], [3, 1]).value == 1
    assert "different units" in measured(["b", "a"], [3, 2]).explanation
    for classes, units in [(["a"], [2]), (["a", "c"], [2, 3]), (["a", "b", "c"], [2, 3, 1]), (["a", "b", "b"], [2, 1, 2])]:
        with pytest.raises(InputError, match="other classes"):
            measured(classes, units)
    with pytest.raises(InputError, match="more different units than records"):
        measured(["a", "b"], [3, 3])


def test_units_that_nobody_counted_are_not_made_up() -> None:
    counted = UnitsOfClasses(pa.table({"age": ["a"]}), np.array([2]))
    groups = GroupedTable(pa.table({"age": ["a"], "sex": ["f"], "visits": ["x|y"]}), np.array([2]), (counted,))
    with pytest.raises(Unsupported, match="'age', 'sex'"):
        measure_grouped(groups, Schema.of(quasi=["age", "sex"]), [sf.KAnonymity(2)])
    sets = Schema(columns={"age": Column(role="quasi"), "visits": Column(role="quasi", type="string", items="|")})
    with pytest.raises(Unsupported, match="items of a set"):
        measure_grouped(groups, sets, [sf.KAnonymity(2, Knowledge(items=1))])


def test_a_group_stands_for_at_least_one_record() -> None:
    one = pa.table({"age": ["a", "b"]})
    for counts in ([1, 0], [1, -1], [1], [0.5, 2.0], [2**61, 2**61]):
        with pytest.raises(InputError):
            GroupedTable(one, np.array(counts))


def test_a_column_that_was_not_grouped_is_missing() -> None:
    groups = GroupedTable(pa.table({"age": ["a"]}), np.array([2]))
    with pytest.raises(MissingColumn, match="'disease'"):
        measure_grouped(groups, Schema.of(quasi=["age"], sensitive=["disease"]), [sf.DistinctLDiversity(2, "disease")])


@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical", "kl"])
def test_a_distance_of_one_half_is_refused_at_any_number_of_records(distance: str) -> None:
    rows = pa.table({"sex": ["f", "m"], "disease": ["flu", "angina"]})
    schema = Schema(columns={"sex": Column(role="quasi"), "disease": Column(role="sensitive", hierarchy=LUNG)})
    for records in (20, 10**7, 10**12, 10**18):
        groups = GroupedTable(rows, np.array([records // 2, records // 2]))
        guarantee = sf.TCloseness(0.2, "disease", distance=distance, reference="released")  # type: ignore[arg-type]
        (measured,) = measure_grouped(groups, schema, [guarantee])
        assert measured.value == pytest.approx(math.log(2) if distance == "kl" else 0.5)
        assert (measured.holds, measured.failing_records) == (False, records)
