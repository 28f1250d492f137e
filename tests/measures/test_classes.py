"""Grouping rows into classes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import MissingColumn, SchemaError
from sfumato.measures.guarantees import classes as grouping
from sfumato.measures.guarantees.classes import Classes, CodedColumn
from sfumato.measures.guarantees.measure import measure
from sfumato.measures.guarantees.overview import measure_all
from tests.measures.tables import table

cells = st.sampled_from(["a", "b", "01", "1", None, "*", "é", ""])
rows_of_three = st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=40)


@given(rows_of_three)
def test_classes_are_the_groups_of_equal_tuples(rows: list[tuple[str | None, ...]]) -> None:
    found = Classes.of(table(["x", "y", "z"], rows), ["x", "y", "z"])
    assert sorted(found.sizes.tolist()) == sorted(Counter(rows).values())
    for c, first in enumerate(found.first.tolist()):
        members = [rows[i] for i in np.flatnonzero(found.of_row == c)]
        assert set(members) == {rows[first]}


@given(rows_of_three, st.randoms(use_true_random=False))
def test_row_order_does_not_matter(rows: list[tuple[str | None, ...]], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    schema = sf.Schema.of(quasi=["x", "y"], sensitive=["z"])
    names = ["x", "y", "z"]
    assert measure_all(table(names, rows), schema).to_mapping() == measure_all(table(names, shuffled), schema).to_mapping()


def test_a_number_and_its_text_are_the_same_value() -> None:
    numbers = Classes.of(pa.table({"age": [39, 40, 39]}), ["age"])
    texts = Classes.of(pa.table({"age": ["39", "40", "39"]}), ["age"])
    floats = Classes.of(pa.table({"age": [39.0, 40.0, 39.0]}), ["age"])
    assert numbers.of_row.tolist() == texts.of_row.tolist() == floats.of_row.tolist()


def test_leading_zeros_are_kept_apart() -> None:
    assert len(Classes.of(pa.table({"zip": ["01234", "1234"]}), ["zip"])) == 2


def test_missing_is_a_value_of_its_own_and_nan_is_missing() -> None:
    assert len(Classes.of(pa.table({"x": ["a", None, None, ""]}), ["x"])) == 3
    coded = CodedColumn.of(pa.chunked_array([pa.array([1.0, float("nan"), None])]))
    assert coded.values == ("1", None)
    assert coded.codes.tolist() == [0, 1, 1]


def test_chunks_and_dictionaries_with_different_contents_agree() -> None:
    parts = [
        pa.array(["a", "b"]).dictionary_encode(),
        pa.array(["b", None, "c"]).dictionary_encode(),
        pa.array([], pa.string()).dictionary_encode(),
    ]
    coded = CodedColumn.of(pa.chunked_array(parts))
    assert [coded.values[c] for c in coded.codes] == ["a", "b", "b", None, "c"]


def test_values_of_a_dictionary_that_no_record_has_do_not_count() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([2, None, 2, 0]), pa.array(["a", "unused", "b", "a"]))
    coded = CodedColumn.of(column)
    assert coded.values == ("a", "b", None)
    assert [coded.values[code] for code in coded.codes] == ["b", None, "b", "a"]


def test_many_wide_columns_do_not_overflow() -> None:
    """Thirty columns of 1,000 values have 10^90 combinations; the rows must still be told apart exactly."""
    n = 1_000
    columns = {f"c{i}": np.roll(np.arange(n), i * 7) for i in range(30)}
    columns["last"] = np.arange(n) // 2
    twice = pa.concat_tables([pa.table(columns), pa.table(columns)])
    found = Classes.of(twice, list(columns))
    assert len(found) == n
    assert set(found.sizes.tolist()) == {2}


def test_the_sparse_histogram_equals_the_dense_one(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(5)
    rows = pa.table({"q": draw.integers(0, 50, 2_000), "s": draw.integers(0, 30, 2_000)})
    found, column = Classes.of(rows, ["q"]), CodedColumn.of(rows["s"])
    dense = found.histogram(column)
    monkeypatch.setattr(grouping, "_DENSE_CELLS", 0)
    sparse = found.histogram(column)
    for name in ("klass", "value", "count"):
        assert getattr(dense, name).tolist() == getattr(sparse, name).tolist()
    assert dense.count.sum() == 2_000


def test_class_size_counts_different_units() -> None:
    schema = sf.Schema(columns={"age": sf.Column(role="quasi"), "person": sf.Column(role="unit")})
    visits = pa.table({"age": ["3*", "3*", "3*", "4*", "4*"], "person": ["p", "p", "p", "q", "r"]})
    found = measure(visits, schema, sf.KAnonymity(2))
    assert (found.value, found.holds, found.failing_records) == (1, False, 3)
    assert "different units" in found.explanation


def test_a_release_without_its_unit_column_counts_records() -> None:
    schema = sf.Schema(columns={"age": sf.Column(role="quasi"), "person": sf.Column(role="unit")})
    assert measure(pa.table({"age": ["3*", "3*"]}), schema, sf.KAnonymity(2)).value == 2


def test_knowledge_narrows_the_classes() -> None:
    from sfumato.core.guarantees.base import Knowledge

    rows = pa.table({"age": ["1", "1", "2", "2"], "zip": ["a", "b", "a", "b"]})
    schema = sf.Schema.of(quasi=["age", "zip"])
    assert measure(rows, schema, sf.KAnonymity(2)).value == 1
    assert measure(rows, schema, sf.KAnonymity(2, Knowledge(("age",)))).value == 2


def test_missing_columns_are_all_named_at_once() -> None:
    with pytest.raises(MissingColumn) as error:
        Classes.of(pa.table({"a": [1]}), ["x", "y"])
    assert "'x'" in str(error.value) and "'y'" in str(error.value)


def test_a_table_without_quasi_identifiers_is_refused() -> None:
    with pytest.raises(SchemaError):
        measure(pa.table({"a": [1]}), sf.Schema.of(sensitive=["a"]), sf.KAnonymity(2))


def test_an_empty_table_breaks_no_promise() -> None:
    empty = pa.table({"q": pa.array([], pa.string()), "s": pa.array([], pa.string())})
    schema = sf.Schema.of(quasi=["q"], sensitive=["s"])
    for guarantee in (
        sf.KAnonymity(5),
        sf.DistinctLDiversity(3, "s"),
        sf.EntropyLDiversity(3, "s"),
        sf.RecursiveLDiversity(3, 2, "s"),
        sf.TCloseness(0.1, "s", reference="released"),
        sf.TCloseness(0.1, "s", distance="kl", reference="released"),
        sf.TCloseness(0.1, "s", distance="ordered", reference="released"),
        sf.BetaLikeness(1, "s", reference="released"),
        sf.DeltaDisclosure(1, "s", reference="released"),
        sf.AlphaKAnonymity(0.5, 2, "s"),
    ):
        found = measure(empty, schema, guarantee)
        assert found.holds and found.failing_classes == 0, guarantee
    assert measure_all(empty, schema).records == 0


@given(st.lists(st.tuples(st.integers(0, 39), st.sampled_from("xyz")), min_size=2, max_size=60))
def test_generalising_never_lowers_k(rows: list[tuple[int, str]]) -> None:
    schema = sf.Schema.of(quasi=["age", "sex"])
    levels = [
        pa.table({"age": [str(age // width * width) for age, _ in rows], "sex": [sex for _, sex in rows]})
        for width in (1, 5, 10, 40)
    ]
    sizes = [measure(level, schema, sf.KAnonymity(2)).value for level in levels]
    assert sizes == sorted(sizes)
