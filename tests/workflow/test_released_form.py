"""The form and order of a released table: the same for every engine and every order of the source."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.workflow.publishing.released_form import released_form

texts = st.none() | st.sampled_from(["", "a", "b", "é", "zz"])
numbers = st.none() | st.floats(allow_nan=True, allow_infinity=False, width=32) | st.just(-0.0)
rows = st.lists(st.tuples(texts, st.none() | st.integers(-(2**40), 2**40), numbers, st.none() | st.booleans()), max_size=40)


def build(records: list[tuple[object, ...]], *, dictionary: bool = False) -> pa.Table:
    kinds = (pa.string(), pa.int64(), pa.float64(), pa.bool_())
    arrays = [pa.array([record[i] for record in records], type=kind) for i, kind in enumerate(kinds)]
    return pa.table({f"c{i}": array.dictionary_encode() if dictionary and i < 2 else array for i, array in enumerate(arrays)})


def content(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def key(record: tuple[object, ...]) -> tuple[object, ...]:
    return tuple((value is None, value if value is not None else 0) for value in record)


def without_nan(record: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(None if isinstance(value, float) and value != value else value for value in record)


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_the_source_does_not_matter(records: list[tuple[object, ...]], shuffled: object) -> None:
    mixed = list(records)
    shuffled.shuffle(mixed)  # type: ignore[attr-defined]
    assert released_form(build(records)).equals(released_form(build(mixed)))


@given(rows)
def test_rows_are_kept_and_sorted_by_content(records: list[tuple[object, ...]]) -> None:
    found = content(released_form(build(records)))
    assert sorted(map(key, found)) == sorted(key(without_nan(record)) for record in records)
    assert [key(record) for record in found] == sorted(map(key, found))


@given(rows)
def test_dictionaries_and_chunks_do_not_matter(records: list[tuple[object, ...]]) -> None:
    half = len(records) // 2
    chunked = pa.concat_tables([build(records[:half], dictionary=True), build(records[half:], dictionary=True)])
    assert released_form(chunked).equals(released_form(build(records)))


def test_numbers_and_text_have_one_type() -> None:
    given_types = pa.table(
        {"small": pa.array([2, 1], pa.int16()), "large": pa.array(["b", "a"], pa.large_string()), "day": [date(2024, 1, 2)] * 2}
    )
    found = released_form(given_types).schema
    assert found.field("small").type == pa.int64()
    assert found.field("large").type == pa.dictionary(pa.int32(), pa.string())
    assert found.field("day").type == pa.date32()


def test_a_dictionary_lists_only_what_is_shown_and_in_order() -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(["m", "unused", "b"]))
    found = released_form(pa.table({"c": codes})).column("c").chunk(0)
    assert found.dictionary.to_pylist() == ["b", "m"]


@pytest.mark.parametrize("columns", [1, 12, 40])
def test_many_columns_do_not_overflow_the_key(columns: int) -> None:
    draw = np.random.default_rng(3)
    given_table = pa.table({f"c{i}": draw.integers(0, 1000, 500) for i in range(columns)})
    found = content(released_form(given_table))
    assert found == sorted(content(given_table))
