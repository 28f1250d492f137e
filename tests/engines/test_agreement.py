"""Every engine gives the same answers on tables that are hard on engines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.errors import MissingColumn, SourceError
from sfumato.data.recoding import SUPPRESSED, RecodingTable
from sfumato.data.relation import COUNT, SHARES, UNITS, WEIGHT, WHOLE
from sfumato.engines.class_queries import ROWS
from sfumato.engines.expressions import Compare, Literal, Reference
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.plan import AggregateColumn, Filter, Group, Scan
from tests.engines.conftest import OpenTable
from tests.engines.tables import ODD, by_value, nasty_table, recoding_of, rows

KEYS = ["marital-status", "Country", ODD, "age"]


def test_schema_and_count_agree(on_engine: OpenTable) -> None:
    relation = on_engine(nasty_table())
    assert relation.schema() == MemoryRelation(nasty_table()).schema()
    assert relation.count() == 8


def test_batches_bring_every_row_and_value(on_engine: OpenTable) -> None:
    relation = on_engine(nasty_table())
    table = pa.Table.from_batches(relation.batches(), schema=relation.schema())
    expected = MemoryRelation(nasty_table())
    assert rows(table) == rows(pa.Table.from_batches(expected.batches(), schema=expected.schema()))
    # leading zeros, the country Norway, control characters and combining letters survive
    assert {"01234", "x\ny", 'quo"te', "back\\slash", "tab\t,'"} <= set(table.column(ODD).to_pylist())
    assert "a\u0301" in table.column("country").to_pylist()
    some = pa.Table.from_batches(relation.batches(["age", "marital-status"]))
    assert some.column_names == ["age", "marital-status"]
    assert some.num_rows == 8


@pytest.mark.parametrize("name", nasty_table().column_names)
def test_each_column_groups_alike(on_engine: OpenTable, name: str) -> None:
    grouped = on_engine(nasty_table()).group([name])
    expected = MemoryRelation(nasty_table()).group([name])
    assert grouped.schema == expected.schema
    assert rows(grouped) == rows(expected)


def test_missing_and_nan_are_one_value(on_engine: OpenTable) -> None:
    grouped = on_engine(nasty_table()).group(["größe in cm"])
    counts = dict(zip(grouped.column(0).to_pylist(), grouped.column(COUNT).to_pylist(), strict=True))
    assert counts == {1.5: 3, None: 2, 0.0: 2, float("inf"): 1}


def test_names_that_differ_in_case_are_different_columns(on_engine: OpenTable) -> None:
    grouped = on_engine(nasty_table()).group(["Country", "country"])
    assert ("NO", "Å", 3) in rows(grouped)
    assert grouped.column_names == ["Country", "country", COUNT]


def test_groups_with_units_and_weights_agree(on_engine: OpenTable) -> None:
    relation, expected = on_engine(nasty_table()), MemoryRelation(nasty_table())
    for columns in (KEYS, ["country"], ["größe in cm", "member"], ["born", "seen"], []):
        grouped = relation.group(columns, unit="unit", weight="weight")
        assert rows(grouped) == rows(expected.group(columns, unit="unit", weight="weight"))
        # u1, u2, u3 and two rows without a unit
        assert -(-sum(grouped.column(SHARES).to_pylist()) // WHOLE) == 5
        assert sum(grouped.column(WEIGHT).to_pylist()) == 31.0
        assert sum(grouped.column(COUNT).to_pylist()) == 8


def test_a_unit_counts_in_each_of_its_tuples_and_gives_each_the_same_share(on_engine: OpenTable) -> None:
    table = pa.table({"a": ["é", "z", "z", None, "Z", "a", "a"], "u": [1, 1, 1, 2, 2, 3, None], "n": [3, 1, 2, 2, 0, 5, 7]})
    grouped = on_engine(table).group(["a"], unit="u")
    found = {row["a"]: (row[COUNT], row[UNITS], row[SHARES]) for row in grouped.to_pylist()}
    half = WHOLE // 2
    assert found == {"é": (1, 1, half), "z": (2, 1, half), None: (1, 1, half), "Z": (1, 1, half), "a": (2, 2, 2 * WHOLE)}
    empty = on_engine(table.slice(0, 0))
    assert empty.group(["a"], unit="u", weight="n").num_rows == empty.group([], unit="u", weight="n").num_rows == 0


@pytest.mark.parametrize("suppress", [False, True])
def test_recoding_agrees(on_engine: OpenTable, suppress: bool) -> None:
    keep = ["plain", "age", "marital-status", ODD, "Country", "born", "member", "größe in cm"]
    results = []
    for relation in (on_engine(nasty_table()), MemoryRelation(nasty_table())):
        grouped = by_value(relation.group(KEYS), KEYS)
        klass = np.arange(grouped.num_rows) % 3
        if suppress:
            klass[::2] = SUPPRESSED
        # `age` is a key that is not replaced, like a sensitive attribute
        results.append(relation.recode(recoding_of(grouped, KEYS, KEYS[:3], klass), keep))
    assert results[0].schema == results[1].schema
    assert results[0].column_names == keep
    assert rows(results[0]) == rows(results[1])
    assert (results[0].num_rows < 8) == suppress


def test_a_divided_cell_is_divided_alike(on_engine: OpenTable) -> None:
    """Records of one cell go to different classes by the order of their other kept values, missing first."""
    table = pa.table(
        {
            "zip": ["1", "1", "1", "1", None, None],
            "note": ["é", "z", None, "Z", "b", "a"],
            "n": [1, 2, 3, 4, 5, 6],
        }
    )
    relation = on_engine(table)
    keys = by_value(relation.group(["zip"]), ["zip"]).select(["zip"])
    assert keys.column("zip").to_pylist() == ["1", None]
    recoding = RecodingTable(
        keys=keys,
        quasi=("zip",),
        key=np.array([0, 0, 0, 1, 1]),
        first=np.array([0, 3, 1, 1, 0]),
        count=np.array([1, 1, 2, 1, 1]),
        klass=np.array([0, SUPPRESSED, 1, 0, 1]),
        classes=pa.table({"zip": ["first", "second"]}),
        split=True,
    )
    released = relation.recode(recoding, ["zip", "note", "n"])
    assert rows(released) == rows(
        pa.table(
            {
                "zip": ["first", "second", "second", "second", "first"],
                "note": [None, "Z", "z", "a", "b"],
                "n": [3, 4, 2, 6, 5],
            }
        )
    )


def test_numbers_stay_numbers_where_only_original_values_are_shown(on_engine: OpenTable) -> None:
    table = pa.table({"age": [30, 30, 40], "d": ["a", "b", "c"]})
    relation = on_engine(table)
    grouped = by_value(relation.group(["age"]), ["age"])
    recoding = recoding_of(grouped, ["age"], ["age"], [0, 1])
    recoding = replace(recoding, classes=pa.table({"age": pa.array([30, 40]).dictionary_encode()}))
    released = relation.recode(recoding, ["age", "d"])
    assert released.schema.field("age").type == pa.int64()
    assert rows(released) == [(30, "a"), (30, "b"), (40, "c")]


def test_the_empty_table_and_one_row(on_engine: OpenTable) -> None:
    for size in (0, 1):
        relation = on_engine(nasty_table().slice(0, size))
        assert relation.count() == size
        grouped = relation.group(KEYS, unit="unit", weight="weight")
        assert grouped.num_rows == size
        assert relation.group([]).num_rows == size
        assert sum(batch.num_rows for batch in relation.batches()) == size
        released = relation.recode(recoding_of(grouped, KEYS, KEYS[:3], [0] * size), ["plain", *KEYS])
        assert released.num_rows == size
        assert released.column_names == ["plain", *KEYS]
        assert released.schema.field("Country").type == pa.dictionary(pa.int32(), pa.string())


def test_everything_suppressed_leaves_no_row(on_engine: OpenTable) -> None:
    relation = on_engine(nasty_table())
    grouped = relation.group(["Country"])
    released = relation.recode(
        recoding_of(grouped, ["Country"], ["Country"], [SUPPRESSED] * grouped.num_rows), ["Country", "age"]
    )
    assert released.num_rows == 0
    assert released.column_names == ["Country", "age"]


def test_a_table_that_changed_is_refused(on_engine: OpenTable) -> None:
    relation = on_engine(nasty_table())
    other = MemoryRelation(nasty_table().slice(0, 3)).group(["Country"])
    with pytest.raises(SourceError, match="changed"):
        relation.recode(recoding_of(other, ["Country"], ["Country"], [0] * other.num_rows), ["Country"])


def test_all_missing_columns_are_named_at_once(on_engine: OpenTable) -> None:
    relation = on_engine(nasty_table())
    with pytest.raises(MissingColumn) as caught:
        relation.group(["age", "nope", "neither"])
    assert "nope" in str(caught.value) and "neither" in str(caught.value)
    grouped = relation.group(["age"])
    with pytest.raises(MissingColumn, match="nowhere"):
        relation.recode(recoding_of(grouped, ["age"], ["age"], [0] * grouped.num_rows), ["age", "nowhere"])


def test_sums_of_whole_numbers_are_exact_on_every_engine(on_engine: OpenTable) -> None:
    ends = [2**63 - 1, -(2**63), -1, 0, 1, 2**42, -(2**42), 2**21 - 1, -(2**21), None]
    values = [*ends, *[2**63 - 1] * 9, *[-(2**63)] * 7]
    table = pa.table({"n": pa.array(values, pa.int64()), "k": [place % 3 for place in range(len(values))]})
    relation: Any = on_engine(table)
    rows = Scan(ROWS, tuple(relation.fields.values()))
    small = Compare("<", Reference("k"), Literal(2))
    sums = (AggregateColumn("all", "sum", Reference("n")), AggregateColumn("some", "sum", Reference("n"), where=small))
    answer = relation.run(Group(rows, ("k",), sums)).to_pylist()
    present = [(value, place % 3) for place, value in enumerate(values) if value is not None]
    whole = {key: sum(value for value, group in present if group == key) for key in range(3)}
    assert {row["k"]: row["all"] for row in answer} == whole
    assert {row["k"]: row["some"] for row in answer} == {**whole, 2: None}
    (none,) = relation.run(Group(Filter(rows, Compare("<", Reference("k"), Literal(0))), (), sums)).to_pylist()
    assert none == {"all": None, "some": None}
