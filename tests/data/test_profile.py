"""The profile of a table: counts that can be checked by hand, suspicious columns found, roles with reasons, a
schema to start from."""

from __future__ import annotations

import datetime
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import MissingColumn
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.profiling.identifier_names import role_by_name, words_of
from sfumato.data.profiling.identifier_patterns import PATTERNS, luhn
from sfumato.data.profiling.profile import profile_table
from sfumato.data.profiling.suggested_schema import nested_widths, starting_schema
from sfumato.data.readers.files import read_file
from sfumato.data.schema import Schema
from sfumato.data.texts.values import text_of
from tests.examples import examples

CANARY = "canary-7f3a"

TABLE = pa.table(
    {
        "sex": ["m", "m", "f", "f", "f", None],
        "age": [30, 30, 30, 41, 41, 41],
        "zip": ["01", "01", "02", "02", "02", "02"],
        "disease": ["flu", "flu", "cold", "flu", "cold", "cold"],
    }
)


def test_counts_of_a_column() -> None:
    sex = profile_table(TABLE).column("sex")
    assert (sex.distinct, sex.missing, sex.type) == (2, 1, "string")
    assert sex.unique_share == 0.0  # the missing value is no value


def test_entropy_counts_missing_as_a_value() -> None:
    shares = [2 / 6, 3 / 6, 1 / 6]
    expected = -sum(share * math.log(share) for share in shares)
    assert profile_table(TABLE).column("sex").entropy == pytest.approx(expected)


def test_uniqueness_of_combinations_and_k_of_the_raw_table() -> None:
    profile = profile_table(TABLE)
    assert profile.quasi == ("sex", "age", "zip")
    assert profile.k == 1
    assert profile.uniques == 2  # (f, 30, 02) and (missing, 41, 02)
    found = {frozenset(c.columns): c for c in profile.combinations}
    assert found[frozenset({"sex", "age"})].uniques == 2
    assert found[frozenset({"age", "zip"})].uniques == 1
    assert found[frozenset({"zip"})].smallest_class == 2
    assert profile.combinations[0].uniques == max(c.uniques for c in profile.combinations)
    assert profile.contributions == {"sex": 1, "age": 1, "zip": 0}


def brute_force(rows: list[tuple[int, ...]], columns: tuple[int, ...]) -> tuple[int, int]:
    sizes = Counter(tuple(row[c] for c in columns) for row in rows)
    return sum(size == 1 for size in sizes.values()), min(sizes.values())


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=40))
@settings(max_examples=examples(20))
def test_uniqueness_equals_counting_by_hand(rows: list[tuple[int, ...]]) -> None:
    names = ["age", "sex", "zip", "city"]
    table = pa.table({name: [f"v{row[i]}" for row in rows] for i, name in enumerate(names)})
    profile = profile_table(table)
    for found in profile.combinations:
        columns = tuple(names.index(name) for name in found.columns)
        assert (found.uniques, found.smallest_class) == brute_force(rows, columns)
    everything = tuple(names.index(name) for name in profile.quasi)
    if everything:
        assert (profile.uniques, profile.k) == brute_force(rows, everything)
        assert len(profile.combinations) == sum(math.comb(len(everything), size) for size in (1, 2, 3))


def test_a_profile_never_prints_values() -> None:
    table = pa.table({"city": [CANARY, "b", "b"], "age": [1234567, 2, 2]})
    profile = profile_table(table)
    assert CANARY not in repr(profile)
    assert "1234567" not in repr(profile)
    assert CANARY not in str(profile.to_mapping())
    assert profile.to_mapping()["columns"][1]["largest"] == 1234567


def test_a_mapping_is_plain_enough_for_json() -> None:
    import json

    table = pa.table({"a": [1, None], "d": [datetime.date(2024, 1, 2), None], "t": [datetime.datetime(2024, 1, 2), None]})
    content = json.loads(json.dumps(profile_table(table).to_mapping()))
    assert content["rows"] == 2
    assert content["columns"][1]["smallest"] == "2024-01-02"


@pytest.mark.parametrize(
    "table",
    [
        pa.table({}),
        pa.table({"a": pa.array([], pa.string())}),
        pa.table({"a": [None, None]}),
        pa.table({"a": ["x"]}),
        pa.table({"a": [float("nan"), 1.0]}),
        pa.table({"☃ é": ["ä", "ö"]}),
    ],
)
def test_small_and_empty_tables(table: pa.Table) -> None:
    profile = profile_table(table)
    assert profile.rows == table.num_rows
    starting_schema(profile, "d")
    with pytest.raises(MissingColumn):
        profile.column("absent")


# --- suspicion ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("name", "identifier"),
        ("Last_Name", "identifier"),
        ("e-mail", "identifier"),
        ("phoneNumber", "identifier"),
        ("SSN", "identifier"),
        ("patient_id", "identifier"),
        ("Vorname", "identifier"),
        ("prénom", "identifier"),
        ("dirección", "identifier"),
        ("Straße", "identifier"),
        ("IBAN", "identifier"),
        ("fødselsnummer", "identifier"),
        ("birthDate", "quasi"),
        ("date-of-birth", "quasi"),
        ("zip", "quasi"),
        ("code postal", "quasi"),
        ("Geschlecht", "quasi"),
        ("marital-status", "quasi"),
        ("native-country", "quasi"),
        ("yaş", "quasi"),
        ("diagnosis", "sensitive"),
        ("Einkommen", "sensitive"),
        ("salary-class", "sensitive"),
        ("religion", "sensitive"),
        ("fnlwgt", "weight"),
        ("survey_weight", "weight"),
    ],
)
def test_names_in_several_languages(name: str, role: str) -> None:
    found = role_by_name(name)
    assert found is not None
    assert found[0] == role


@pytest.mark.parametrize("name", ["idea", "x", "colour", "name_length", "q17", ""])
def test_names_that_say_nothing(name: str) -> None:
    assert role_by_name(name) is None


def test_words_of_a_name() -> None:
    assert words_of("dateOfBirth2") == ["date", "of", "birth2"]
    assert words_of("Größe (cm)") == ["grosse", "cm"]


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("e-mail address", ["a.b@example.org"], ["a@b", "@example.org", "a b@c.de"]),
        (
            "telephone number",
            ["+47 22 12 34 56", "(555) 234-5678", "030/1234567"],
            ["12345", "2024-01-02", "10115"],
        ),
        ("IBAN", ["GB82 WEST 1234 5698 7654 32", "NO9386011117947"], ["GB83 WEST 1234 5698 7654 32", "NO"]),
        ("payment card", ["4111 1111 1111 1111", "5500005555555559"], ["4111111111111112", "123"]),
        ("UUID", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567"]),
        ("IP address", ["192.0.2.1", "2001:db8::1"], ["1.2.3", "300.1.1.1", "12:30"]),
        ("web address", ["https://example.org/x"], ["example"]),
        ("date of the last 120 years", ["1980-02-29", "31.12.1999"], ["1780-01-01", "2999-01-01", "1980"]),
        ("postcode", ["01234", "SW1A 1AA", "K1A 0B1", "D-10115"], ["1", "abc", "123456"]),
        ("coordinates", ["59.9139, 10.7522"], ["59.9", "1,2"]),
        (
            "national number",
            ["123-45-6789", "12345678Z", "X1234567L", "131052-308T", "529.982.247-25", "10000000146"],
            ["000-12-3456", "12345678A", "131052-308U", "529.982.247-24", "10000000147", "12345678901"],
        ),
    ],
)
def test_patterns_of_values(pattern: str, good: list[str], bad: list[str]) -> None:
    matches = next(p.matches for p in PATTERNS if p.name == pattern)
    assert [value for value in good if not matches(value)] == []
    assert [value for value in bad if matches(value)] == []


def test_luhn() -> None:
    assert luhn("79927398713")
    assert not any(luhn(f"7992739871{d}") for d in "012456789")


def test_roles_come_with_their_reasons() -> None:
    rows = 200
    table = pa.table(
        {
            "contact": [f"person{i}@example.org" for i in range(rows)],
            "key": [f"K{i * 7919 % 100003:06d}" for i in range(rows)],
            "notes": [f"the visit number {i} went well and nothing else is to be said" for i in range(rows)],
            "constant": ["x"] * rows,
            "age": [20 + i % 50 for i in range(rows)],
            "diagnosis": ["flu", "cold"] * (rows // 2),
            "survey_weight": [1.5 + i % 3 for i in range(rows)],
            "hobby": [f"h{i % 9}" for i in range(rows)],
            "name": ["first", "second"] * (rows // 2),
            "amount": [10_000 + i % 60 for i in range(rows)],
        }
    )
    profile = profile_table(table)
    roles = {column.name: column.role for column in profile.columns}
    assert roles == {
        "contact": "identifier",
        "key": "identifier",
        "notes": "identifier",
        "constant": "plain",
        "age": "quasi",
        "diagnosis": "sensitive",
        "survey_weight": "weight",
        "hobby": "quasi",
        "name": "quasi",
        "amount": "quasi",
    }
    assert profile.column("contact").reason == "100 % of the values look like: e-mail address"
    assert profile.column("contact").patterns == {"e-mail address": 1.0}
    assert profile.column("amount").patterns == {}  # digits of a number are no postcode
    assert all(column.reason for column in profile.columns)


# --- the schema to start from -------------------------------------------------------------------------------


def test_a_starting_schema_says_what_was_learnt_from_the_data(tmp_path: Path) -> None:
    rows = 120
    table = pa.table(
        {
            "name": [f"Person {i}" for i in range(rows)],
            "age": [17 + i % 74 for i in range(rows)],
            "zip": [f"{i % 30:05d}" for i in range(rows)],
            "sex": ["f", "m"] * (rows // 2),
            "admission": [datetime.date(2024, 1 + i % 12, 1) for i in range(rows)],
            "height": [1.5 + (i % 40) / 100 for i in range(rows)],
            "diagnosis": ["flu", "cold", "none"] * (rows // 3),
        }
    )
    schema = starting_schema(profile_table(table), "clinic")
    columns = schema.columns
    assert columns["age"].bounds == (17, 90)
    assert columns["age"].source == columns["sex"].source == "data"
    assert columns["age"].hierarchy is not None and columns["age"].hierarchy.intervals == (5, 10, 20, 40)
    assert columns["zip"].hierarchy is not None and columns["zip"].hierarchy.mask == "right"
    assert columns["sex"].hierarchy is not None and columns["sex"].hierarchy.flat
    assert columns["admission"].hierarchy is not None and columns["admission"].hierarchy.dates is not None
    assert columns["name"].domain is None
    assert columns["diagnosis"].domain == ("cold", "flu", "none")
    (tmp_path / "s.toml").write_text(schema.to_toml(), encoding="utf-8")
    loaded = Schema.load(tmp_path / "s.toml")
    assert loaded.columns == columns
    for name in loaded.quasi:
        values = list(dict.fromkeys(text_of(v) for v in table[name].to_pylist()))
        assert hierarchy_builders.build(name, loaded.columns[name], values).has_root


@given(st.floats(1e-6, 1e12), st.booleans())
def test_suggested_widths_nest_and_stay_below_the_extent(extent: float, whole: bool) -> None:
    widths = nested_widths(extent, whole)
    assert all(b == pytest.approx(2 * a) for a, b in itertools.pairwise(widths))
    assert all(width < extent for width in widths)
    assert len(widths) <= 5
    if widths:
        Schema.parse({"columns": {"a": {"hierarchy": {"intervals": list(widths)}}}})


def test_the_roles_of_a_given_schema_are_kept() -> None:
    from sfumato.data.microdata import Microdata

    class Rows:
        engine = "memory"

        def schema(self) -> Any:
            return TABLE.schema

        def count(self) -> int:
            return TABLE.num_rows

        def batches(self, columns: Any = None) -> Any:
            return iter(TABLE.to_batches())

    data = Microdata(Rows(), Schema.of("d", sensitive=["zip"], quasi=["disease"]), "my table", ("a note",))  # type: ignore[arg-type]
    profile = profile_table(data)
    assert profile.column("zip").role == "sensitive"
    assert profile.column("disease").role == "quasi"
    assert profile.notes == ("a note",)
    assert profile.description == "my table"


@pytest.mark.data
def test_adult(data_dir: Path) -> None:
    profile = profile_table(read_file(data_dir / "adult" / "adult.csv").table)
    assert profile.rows == 30_162
    assert profile.k == 1
    assert profile.column("salary-class").role == "sensitive"
    assert set(profile.quasi) == {
        "sex",
        "age",
        "race",
        "marital-status",
        "education",
        "native-country",
        "workclass",
        "occupation",
    }
    assert next(iter(profile.contributions)) == "age"


def units_alone(rows: list[dict[str, Any]], columns: Sequence[str], unit: str) -> tuple[int, int]:
    """Records of classes with one unit, and the fewest units of a class, by looking at every record."""
    classes: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        classes.setdefault(tuple(row[name] for name in columns), []).append(row[unit])
    return sum(len(units) for units in classes.values() if len(set(units)) == 1), min(len(set(u)) for u in classes.values())


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("fm"), st.integers(0, 3)), min_size=24, max_size=60))
@settings(max_examples=examples(15))
def test_with_a_unit_classes_are_counted_in_units(drawn: list[tuple[int, str, int]]) -> None:
    rows = [{"person_id": person, "sex": sex, "age": age} for person, sex, age in drawn]
    schema = {"dataset": "d", "columns": {"person_id": {"role": "unit"}, "sex": {"role": "quasi"}, "age": {"role": "quasi"}}}
    table = pa.Table.from_pylist(rows)
    profile = profile_table(sf.read(table, schema))
    assert (profile.uniques, profile.k) == units_alone(rows, ("sex", "age"), "person_id")
    for found in profile.combinations:
        assert (found.uniques, found.smallest_class) == units_alone(rows, found.columns, "person_id")
    measured = sf.check(table, sf.Schema.parse(schema)).measures
    assert (measured.uniques, measured.k) == (profile.uniques, profile.k)


def ones_of(drawn: list[tuple[int, str | None]]) -> float:
    people = [person for person, _ in drawn]
    return sum(people.count(person) == 1 for person in people) / len(people)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["f", "m", "n", None])), min_size=24, max_size=60), st.booleans())
@settings(max_examples=examples(40))
def test_one_column_is_counted_as_a_combination_of_one(drawn: list[tuple[int, str | None]], units: bool) -> None:
    """In units where there is one, given or suggested: both figures stand in one output."""
    rows = [{"person_id": person, "sex": sex} for person, sex in drawn]
    role = {"role": "unit"} if units else {"role": "plain"}
    schema = {"dataset": "d", "columns": {"person_id": role, "sex": {"role": "quasi"}}}
    profile = profile_table(sf.read(pa.Table.from_pylist(rows), schema))
    own = rows if profile.unit == "person_id" else [{**row, "person_id": place} for place, row in enumerate(rows)]
    alone, _ = units_alone(own, ("sex",), "person_id")
    missing = [row["person_id"] for row in own if row["sex"] is None]
    with_value = alone - (len(missing) if len(set(missing)) == 1 else 0)
    assert profile.column("sex").unique_share == pytest.approx(with_value / len(rows))
    assert [found.uniques for found in profile.combinations if found.columns == ("sex",)] == [alone]
    assert profile.column("person_id").unique_share == (1.0 if profile.unit == "person_id" else pytest.approx(ones_of(drawn)))
