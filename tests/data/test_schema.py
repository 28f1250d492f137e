"""Schemas: all faults at once, unknown keys refused, no value echoed, and the same schema after a way through
TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import MissingColumn, SchemaError
from sfumato.data.schema import Column, HierarchySpec, Schema

CANARY = "canary-7f3a"

ADULT = """
dataset = "adult"

[columns.age]
role = "quasi"
type = "integer"
bounds = [17, 90]
hierarchy = "adult_hierarchy_age.csv"

[columns.zip]
role = "quasi"
hierarchy = { mask = "right" }

[columns.salary]
role = "quasi"
hierarchy = { intervals = [1000, 5000, 25000] }

[columns.occupation]
role = "sensitive"

[columns."marital-status"]
role = "plain"

[columns.name]
role = "identifier"
"""


def test_the_schema_of_the_architecture_page(tmp_path: Path) -> None:
    (tmp_path / "adult.toml").write_text(ADULT)
    schema = Schema.load(tmp_path / "adult.toml")
    assert schema.dataset == "adult"
    assert schema.quasi == ("age", "zip", "salary")
    assert schema.sensitive == ("occupation",)
    assert schema.columns["age"].bounds == (17, 90)
    assert schema.columns["age"].hierarchy == HierarchySpec(file="adult_hierarchy_age.csv")
    assert schema.columns["salary"].hierarchy == HierarchySpec(intervals=(1000, 5000, 25000))
    assert schema.folder == str(tmp_path.resolve())


def test_all_faults_are_reported_at_once_with_their_place() -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.parse(
            {
                "datset": "x",
                "columns": {
                    "age": {"role": "quasy"},
                    "zip": {"role": "quasi", "hierarchy": {"mask": "right", "flat": True}},
                    "pay": {"bounds": [5, 1]},
                    "job": {"importance": 0},
                    "id": {"pseudonym": True},
                },
            }
        )
    message = str(caught.value)
    assert "6 faults" in message
    for place in (
        "datset",
        "columns.age.role",
        "columns.zip.hierarchy",
        "columns.pay",
        "columns.job.importance",
        "columns.id",
    ):
        assert place in message


def test_no_value_of_the_schema_is_echoed() -> None:
    bad = {"columns": {"a": {"type": CANARY}, "b": {"bounds": [CANARY, 2]}, "c": {"domain": {CANARY: 1}}}}
    with pytest.raises(SchemaError) as caught:
        Schema.parse(bad)
    assert CANARY not in str(caught.value)
    assert CANARY not in repr(caught.value)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({}, "exactly one of"),
        ({"file": "a.csv", "flat": True}, "exactly one of"),
        ({"intervals": [5, 3]}, "growing"),
        ({"intervals": [-5]}, "growing"),
        ({"intervals": [4, 10]}, "multiple"),
        ({"frequency": [2, 3]}, "multiple"),
        ({"dates": ["fortnight"]}, "month"),
        ({"mask": "up"}, "right"),
    ],
)
def test_hierarchies_that_contradict_themselves(spec: dict[str, object], complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        Schema.parse({"columns": {"a": {"hierarchy": spec}}})


@pytest.mark.parametrize("role", ["unit", "weight"])
def test_at_most_one_unit_and_one_weight(role: str) -> None:
    with pytest.raises(SchemaError, match=f"at most one column may have the role '{role}'"):
        Schema.parse({"columns": {"a": {"role": role}, "b": {"role": role}}})


@pytest.mark.parametrize("kind", ["integer", "number", "string"])
def test_a_whole_number_is_a_missing_code(kind: str) -> None:
    schema = Schema.parse({"dataset": "d", "columns": {"x": {"type": kind, "missing": [999, "NA"]}}})
    assert schema.columns["x"].missing == ("999", "NA")
    assert sf.read(pa.table({"x": [1, 999]}), schema).table().column("x").null_count == 1
    assert Schema.parse(tomllib.loads(schema.to_toml())) == schema
    for wrong in ([True], [9.5], 999):
        with pytest.raises(SchemaError, match=r"columns\.x\.missing"):
            Schema.parse({"dataset": "d", "columns": {"x": {"missing": wrong}}})


def test_missing_columns_are_named_with_the_nearest_name() -> None:
    schema = Schema.of("d", quasi=["age", "marital-status"], sensitive=["disease"])
    with pytest.raises(MissingColumn) as caught:
        schema.require_columns(["Age", "marital_status", "disease"])
    assert "column 'age'" in str(caught.value)
    assert "column 'marital-status' is in the schema but not in the data (nearest: 'marital_status')" in str(caught.value)
    assert "disease" not in str(caught.value)


@pytest.mark.parametrize("content", [b"dataset = ", b"\xff\xfe\x00", None])
def test_files_that_are_no_schema(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "s.toml").write_bytes(content)
    with pytest.raises(SchemaError):
        Schema.load(tmp_path / "s.toml")


def test_a_schema_cannot_be_changed_in_place() -> None:
    schema = Schema.of("d", quasi=["age"])
    with pytest.raises(ValueError, match="frozen"):
        schema.dataset = "other"  # type: ignore[misc]


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
values = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
numbers = st.floats(-1e6, 1e6)
specs = st.one_of(
    st.none(),
    st.just(HierarchySpec(flat=True)),
    st.builds(lambda w, o: HierarchySpec(intervals=(w, 2 * w, 6 * w), origin=o), st.integers(1, 50), numbers),
    st.builds(lambda f: HierarchySpec(file=f, separator=";", missing="root"), names),
    st.just(HierarchySpec(tree={"Europe": {"North": ["NO", "SE"]}, "a b": ["x"], "é": []})),
    st.just(HierarchySpec(mask="right", width=5, alphabet=10)),
    st.just(HierarchySpec(dates=("month", "year"))),
)
columns = st.builds(
    Column,
    role=st.sampled_from(["identifier", "quasi", "sensitive", "plain"]),
    type=st.sampled_from([None, "integer", "number", "date"]),
    bounds=st.none() | st.tuples(numbers, numbers).map(lambda b: (min(b), max(b))),
    domain=st.none() | st.lists(values, max_size=3).map(tuple),
    source=st.sampled_from(["declared", "data"]),
    hierarchy=specs,
    missing=st.lists(values, max_size=2).map(tuple),
    label=st.none() | values,
    labels=st.none() | st.dictionaries(names, values, max_size=3),
)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
def test_a_list_of_texts_is_written_as_tomlkit_writes_it(listed: list[str]) -> None:
    import tomlkit

    from sfumato.core.texts import text_list

    assert text_list(listed).as_string() == tomlkit.item(listed).as_string()


def test_a_long_list_is_written_in_time_that_grows_with_its_length() -> None:
    """By tomlkit's own arrays this takes half an hour."""
    column = Column(role="quasi", type="string", domain=tuple(f"value {number}" for number in range(100_000)))
    assert '"value 99999"]' in Schema(columns={"a": column}).to_toml()


@given(st.builds(Schema, dataset=names, columns=st.dictionaries(names, columns, max_size=4)))
def test_a_schema_survives_toml(schema: Schema) -> None:
    import tomllib

    assert Schema.parse(tomllib.loads(schema.to_toml())) == schema
