"""Domains come from the schema alone, and every row can be coded whatever it holds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import SchemaError
from sfumato.core.randomness import StreamRandomness
from sfumato.data.schema import Schema
from sfumato.dp.synthesis.declared_domain import declared_domain
from tests.dp.synthesis.people import people


def domain_of(columns, present=None, bins=10, missing=()):
    schema = Schema.parse({"dataset": "d", "columns": columns})
    return declared_domain(schema, present or list(columns), bins=bins, missing=missing, who="Test")


def test_codes_of_the_sample_are_what_the_schema_declares():
    data = people(50)
    domain = declared_domain(data.schema, data.column_names, bins=10, who="Test")
    assert domain.names == ("city", "grade", "age", "income", "member", "floor")
    assert domain.sizes == (4, 3, 10, 11, 2, 3)
    assert domain.encode(data.table()).min() >= 0


def test_every_fault_is_told_at_once_and_no_row_is_read():
    columns = {
        "a": {},
        "b": {"domain": ["x"], "source": "data"},
        "c": {"bounds": [0, 1]},
        "d": {"type": "date", "bounds": [0, 1]},
        "e": {"type": "integer", "domain": ["1", "two"]},
        "f": {"domain": ["x", "x"]},
        "g": {"type": "integer", "bounds": [0.2, 0.8]},
        "h": {"type": "number", "bounds": [0, float("inf")]},
        "i": {"type": "string", "items": "|"},
        "j": {"bounds": [0, 5], "type": "number", "source": "data"},
    }
    with pytest.raises(SchemaError) as caught:
        domain_of(columns, present=[*columns, "extra"], missing=["nowhere"])
    text = str(caught.value)
    assert text.count("\n") == 12
    assert all(f"'{name}'" in text for name in [*columns, "extra", "nowhere"])
    assert 'source = "declared"' in text


def test_unlisted_columns_can_be_dropped():
    schema = Schema.parse({"dataset": "d", "unlisted": "drop", "columns": {"a": {"domain": ["x", "y"]}}})
    assert declared_domain(schema, ["a", "b"], bins=4, who="Test").names == ("a",)


def test_only_identifiers_is_nothing_to_synthesise():
    with pytest.raises(SchemaError, match="no column to synthesise"):
        domain_of({"a": {"role": "identifier"}, "u": {"role": "unit"}})


def test_numbers_outside_the_bounds_are_clamped_and_others_are_missing_or_not_counted():
    table = pa.table({"a": [-5.0, 0.0, 9.99, 10.0, 1e300, float("inf"), float("nan"), None]})
    plain = domain_of({"a": {"type": "number", "bounds": [0, 10]}}).encode(table)[:, 0]
    assert plain.tolist() == [0, 0, 9, 9, 9, 9, -1, -1]
    allowed = domain_of({"a": {"type": "number", "bounds": [0, 10]}}, missing=["a"]).encode(table)[:, 0]
    assert allowed.tolist() == [0, 0, 9, 9, 9, 9, 10, 10]


def test_texts_outside_the_domain_are_missing_or_not_counted():
    table = pa.table({"a": ["x", "y", "Z", "", None]})
    assert domain_of({"a": {"domain": ["x", "y"]}}).encode(table)[:, 0].tolist() == [0, 1, -1, -1, -1]
    assert domain_of({"a": {"domain": ["x", "y"], "missing": ["?"]}}).encode(table)[:, 0].tolist() == [0, 1, 2, 2, 2]


def test_the_type_is_that_of_the_declared_values():
    assert domain_of({"a": {"domain": ["1", "2"]}}).columns[0].kind == "integer"
    assert domain_of({"a": {"domain": ["1", "x"]}}).columns[0].kind == "string"
    dates = domain_of({"a": {"domain": ["2026-01-01", "2026-02-01"]}})
    made = dates.decode(np.array([[1], [0]]), StreamRandomness(1))
    assert made.schema.field("a").type == pa.date32()
    assert dates.encode(made)[:, 0].tolist() == [1, 0]


@given(
    low=st.integers(-1000, 1000),
    span=st.integers(0, 400),
    bins=st.integers(1, 60),
    kind=st.sampled_from(["integer", "number"]),
    seed=st.integers(0, 1000),
)
def test_decoded_values_lie_in_bounds_and_code_back(low, span, bins, kind, seed):
    domain = domain_of({"a": {"type": kind, "bounds": [low, low + span], "missing": ["?"]}}, bins=bins)
    size = domain.sizes[0]
    codes = np.arange(size).repeat(3)[:, None]
    table = domain.decode(codes, StreamRandomness(seed))
    values = [value for value in table.column("a").to_pylist() if value is not None]
    assert all(low <= value <= low + span for value in values)
    assert table.column("a").null_count == 3
    if kind == "integer":
        assert domain.encode(table)[:, 0].tolist() == codes[:, 0].tolist()
        assert size - 1 == min(bins, span + 1)


def test_every_whole_number_of_a_range_is_drawn():
    domain = domain_of({"a": {"type": "integer", "bounds": [0, 9]}}, bins=3)
    values = domain.decode(np.arange(3).repeat(200)[:, None], StreamRandomness(2)).column("a").to_pylist()
    assert sorted(set(values)) == list(range(10))


@pytest.mark.parametrize(
    "cells",
    [
        pa.array(["", "abc", "1e999", "nan", None]),
        pa.array([b"\xff\x00", None, b"", b"x", b"y"]),
        pa.array([2**63 - 1, -(2**63), 0, None, 5]),
        pa.array([None] * 5, pa.null()),
        pa.array([True, False, None, True, False]),
    ],
)
def test_no_cell_is_an_error(cells):
    domain = domain_of(
        {"a": {"type": "number", "bounds": [0, 10]}, "b": {"domain": ["x", "5"]}, "c": {"type": "boolean", "missing": ["?"]}}
    )
    codes = domain.encode(pa.table(dict.fromkeys("abc", cells)))
    assert codes.shape == (5, 3)
    assert codes[:, 2].min() >= 0


def test_decoded_tables_have_the_types_of_the_schema():
    data = people(30)
    domain = declared_domain(data.schema, data.column_names, bins=10, who="Test")
    made = domain.decode(domain.encode(data.table()), StreamRandomness(3))
    assert made.schema.field("age").type == pa.int64()
    assert made.schema.field("income").type == pa.float64()
    assert made.schema.field("member").type == pa.bool_()
    assert made.schema.field("floor").type == pa.int64()
    assert pa.types.is_dictionary(made.schema.field("city").type)


def test_labels_name_every_code():
    data = people(5)
    for column in declared_domain(data.schema, data.column_names, bins=7, who="Test").columns:
        assert len(column.labels()) == column.size == len(set(column.labels()))


@pytest.mark.parametrize("odd", ["x", "?", "2026-01-01", "true", "01", "99"])
@pytest.mark.parametrize("listed", [["1", "2", "x"], ["1", "2"], ["1.0", "2.5", "x"]])
def test_how_a_record_is_coded_does_not_depend_on_the_others(listed, odd, tmp_path):
    """The reader guesses types from all cells: one odd record turns a column of numbers into texts."""
    codes = []
    for more in ([], [odd]):
        file = tmp_path / "cells.csv"
        file.write_text("\n".join(["a", "1.0", "2", "1e0", "2.50", *more]) + "\n", "utf-8")
        schema = {"dataset": "d", "columns": {"a": {"domain": listed}}}
        codes.append(domain_of({"a": {"domain": listed}}).encode(sf.read(file, schema).table())[:4, 0].tolist())
    assert codes[0] == codes[1]
    assert codes[0][0] == codes[0][2] == 0
