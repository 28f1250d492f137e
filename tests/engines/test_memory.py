"""The memory engine against a plain computation and against DuckDB, on random tables."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import SchemaError, SourceError, Unsupported
from sfumato.data.recoding import SUPPRESSED, RecodingTable
from sfumato.data.relation import COUNT, SHARES, UNITS, WHOLE
from sfumato.engines.canonical import encode
from sfumato.engines.class_queries import ROWS, group_plan, grouped_table, table_fields
from sfumato.engines.duckdb.relation import run_in_process
from sfumato.engines.memory import MemoryRelation
from tests.engines.tables import nasty_table, recoding_of, rows

TEXTS = (
    st.none()
    | st.sampled_from(["", "a", "A", "é", "\u0065\u0301", "z", "𝔸", "'", '"', "\\", "\x00", "NULL"])
    | st.text(max_size=3)
)
FLOATS = st.none() | st.floats(allow_nan=True, allow_infinity=True, width=64)
INTEGERS = st.none() | st.integers(-(2**63), 2**63 - 1)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    size = draw(st.integers(0, 12))
    exactly = {"min_size": size, "max_size": size}
    return pa.table(
        {
            "text": pa.array(draw(st.lists(TEXTS, **exactly)), pa.string()),
            "number": pa.array(draw(st.lists(FLOATS, **exactly)), pa.float64()),
            "whole": pa.array(draw(st.lists(INTEGERS, **exactly)), pa.int64()),
            "truth": pa.array(draw(st.lists(st.none() | st.booleans(), **exactly)), pa.bool_()),
            "unit": pa.array(draw(st.lists(st.none() | st.integers(0, 3), **exactly)), pa.int64()),
        }
    )


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else value + 0.0
    return value


@given(tables(), st.lists(st.sampled_from(["text", "number", "whole", "truth"]), unique=True))
def test_grouping_counts_every_row_once(table: pa.Table, columns: list[str]) -> None:
    grouped = MemoryRelation(table).group(columns)
    found = [tuple(row[name] for name in columns) for row in grouped.to_pylist()]
    assert len(found) == len(set(found))
    expected = Counter(tuple(plain(row[name]) for name in columns) for row in table.to_pylist())
    assert dict(zip(found, grouped.column(COUNT).to_pylist(), strict=True)) == expected


@given(tables(), st.lists(st.sampled_from(["text", "number", "whole", "truth"]), unique=True, min_size=1))
def test_memory_and_duckdb_group_alike(table: pa.Table, columns: list[str]) -> None:
    relation = MemoryRelation(table)
    fields = {field.name: field for field in table_fields(table)}
    answer = run_in_process(group_plan(fields, columns, "unit", None), {ROWS: table})
    assert rows(relation.group(columns, unit="unit")) == rows(grouped_table(answer))


@given(tables(), st.data())
def test_recoding_releases_exactly_the_assigned_records(table: pa.Table, data: st.DataObject) -> None:
    relation = MemoryRelation(table)
    keys = ["text", "whole"]
    grouped = relation.group(keys)
    cells = grouped.num_rows
    klass = data.draw(st.lists(st.integers(SUPPRESSED, 2), min_size=cells, max_size=cells))
    recoding = recoding_of(grouped, keys, ["text"], klass)
    released = relation.recode(recoding, ["text", "whole", "unit"])
    class_of = {(row["text"], row["whole"]): c for row, c in zip(grouped.to_pylist(), klass, strict=True)}
    labels = ("*", "a–m", None)
    expected = [
        (labels[class_of[row["text"], row["whole"]]], row["whole"], row["unit"])
        for row in table.to_pylist()
        if class_of[row["text"], row["whole"]] >= 0
    ]
    assert [tuple(row.values()) for row in released.to_pylist()] == expected
    # found by value too, when another grouping came in between
    relation.group(["truth"])
    assert relation.recode(recoding, ["text", "whole", "unit"]).equals(released)
    # and with keys from a relation over the same rows in another order
    backwards = MemoryRelation(table.take(pa.array(range(table.num_rows - 1, -1, -1), pa.int64())))
    assert rows(backwards.recode(recoding, ["text", "whole", "unit"])) == rows(released)


@given(tables(), st.data())
def test_dividing_cells_does_not_depend_on_row_order(table: pa.Table, data: st.DataObject) -> None:
    keys = MemoryRelation(table).group(["truth"])
    counts = keys.column(COUNT).to_numpy()
    key, first, count, klass = [], [], [], []
    for cell, size in enumerate(counts):
        cut = data.draw(st.integers(0, int(size)))
        key += [cell, cell]
        first += [cut, 0]
        count += [int(size) - cut, cut]
        klass += [data.draw(st.integers(SUPPRESSED, 1)), data.draw(st.integers(SUPPRESSED, 1))]
    recoding = RecodingTable(
        keys.select(["truth"]),
        ("truth",),
        *(np.array(part, dtype=np.int64) for part in (key, first, count, klass)),
        classes=pa.table({"truth": ["one", "two"]}),
        split=True,
    )
    keep = ["truth", "text", "whole"]
    released = rows(MemoryRelation(table).recode(recoding, keep))
    order = data.draw(st.permutations(range(table.num_rows)))
    shuffled = table.take(pa.array(order, pa.int64()))
    assert rows(MemoryRelation(shuffled).recode(recoding, keep)) == released


@given(tables(), st.lists(st.sampled_from(["text", "truth"]), unique=True), st.data())
def test_shares_and_units_of_merged_tuples_never_exceed_their_different_units(
    table: pa.Table, columns: list[str], data: st.DataObject
) -> None:
    grouped = MemoryRelation(table).group(columns, unit="unit")
    of_tuple: dict[tuple[object, ...], set[object]] = {}
    for number, row in enumerate(table.to_pylist()):
        own = ("alone", number) if row["unit"] is None else row["unit"]
        of_tuple.setdefault(tuple(plain(row[name]) for name in columns), set()).add(own)
    found = {tuple(row[name] for name in columns): (row[UNITS], row[SHARES]) for row in grouped.to_pylist()}
    assert {key: len(units) for key, units in of_tuple.items()} == {key: units for key, (units, _) in found.items()}
    merged = data.draw(st.sets(st.sampled_from(sorted(found, key=repr)))) if found else set()
    different = len(set().union(*(of_tuple[key] for key in merged)))
    assert sum(found[key][1] for key in merged) <= different * WHOLE
    everybody = len(set().union(*of_tuple.values()))
    assert -(-sum(shares for _, shares in found.values()) // WHOLE) == everybody  # nobody is lost where all are together


def test_dictionaries_with_unused_repeated_or_missing_entries_are_cleaned() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None], pa.int8()), pa.array(["a", "b", "a", None, "unused"]))
    grouped = MemoryRelation(pa.table({"x": column})).group(["x"])
    assert rows(grouped) == [("a", 2), ("b", 1), (None, 2)]
    assert sorted(grouped.column("x").combine_chunks().dictionary.to_pylist()) == ["a", "b"]


def test_a_grouped_dictionary_holds_only_values_that_occur() -> None:
    relation = MemoryRelation(pa.table({"x": pa.array(["a", "b", "c"]).dictionary_encode()}).slice(1, 1))
    assert relation.group(["x"]).column("x").combine_chunks().dictionary.to_pylist() == ["b"]


def test_chunks_with_different_dictionaries_are_merged() -> None:
    parts = [pa.array(["b", "a"]).dictionary_encode(), pa.array(["a", "c", None]).dictionary_encode()]
    table = pa.table({"x": pa.chunked_array(parts)})
    assert rows(MemoryRelation(table).group(["x"])) == sorted([("a", 2), ("b", 1), ("c", 1), (None, 1)], key=repr)


def test_codes_of_a_text_column_are_not_copied() -> None:
    column = pa.chunked_array([pa.array(["a", "b", "a"]).dictionary_encode()])
    codes = encode(column).codes
    assert codes.ctypes.data == column.chunk(0).indices.buffers()[1].address


def test_other_types_take_their_one_form() -> None:
    table = pa.table(
        {
            "large": pa.array(["a"], pa.large_string()),
            "small": pa.array([1], pa.uint8()),
            "half": pa.array([1.5], pa.float32()),
            "decimal": pa.array(["1.50"]).cast(pa.decimal128(10, 2)),
            "day": pa.array([0], pa.date64()),
            "moment": pa.array([1_000], pa.timestamp("ns")),
            "nothing": pa.nulls(1),
            "coded": pa.array([7]).dictionary_encode(),
        }
    )
    text = pa.dictionary(pa.int32(), pa.string())
    assert MemoryRelation(table).schema().types == [
        text, pa.int64(), pa.float64(), pa.float64(), pa.date32(), pa.timestamp("us"), text, pa.int64(),
    ]  # fmt: skip


def test_what_cannot_be_held_is_refused_without_values() -> None:
    with pytest.raises(SchemaError, match="more than once"):
        MemoryRelation(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(SourceError, match="'big'") as caught:
        MemoryRelation(pa.table({"big": pa.array([2**64 - 1], pa.uint64())})).group(["big"])
    assert str(2**64 - 1) not in str(caught.value)
    with pytest.raises(Unsupported, match="list"):
        MemoryRelation(pa.table({"list": [[1]]})).group(["list"])


def test_repr_shows_no_value() -> None:
    assert repr(MemoryRelation(nasty_table())) == "MemoryRelation(8 rows, 13 columns)"


def test_numbers_become_arrays_with_and_without_gaps() -> None:
    from sfumato.engines.canonical import from_numbers

    for kind in (np.int32, np.int64, np.float64):
        for size in (0, 1, 9):
            values = np.arange(2 * size, dtype=kind)[::2]
            gaps = np.arange(size) % 3 == 1
            assert from_numbers(values).to_pylist() == values.tolist()
            expected = [None if gap else value for value, gap in zip(values.tolist(), gaps.tolist(), strict=True)]
            assert from_numbers(values, gaps).to_pylist() == expected
