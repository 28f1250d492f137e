"""Whose data a row is: what a schema may say, and what `inspect` proposes from the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import SchemaError
from sfumato.data.profiling.suggested_schema import starting_schema
from sfumato.data.schema import Column, Schema
from sfumato.workflow.inspect import inspect


def test_record_is_the_only_word_and_survives_being_written(tmp_path: Path) -> None:
    schema = Schema(dataset="staff", unit="record", columns={"name": Column(role="identifier")})
    (tmp_path / "staff.toml").write_text(schema.to_toml())
    read_back = Schema.load(tmp_path / "staff.toml")
    assert read_back.each_record_is_a_unit and read_back.unit is None and 'unit = "record"' in schema.to_toml()
    assert (
        read_back.model_dump(exclude={"folder"}) == schema.model_dump(exclude={"folder"})
        and schema.model_dump()["unit"] == "record"
    )
    assert Schema.parse(schema.model_dump(mode="json", exclude_defaults=True)) == schema
    assert "unit" not in Schema(dataset="staff").to_toml() and not Schema().each_record_is_a_unit
    assert (
        schema.replace(unit=None).declared_unit is None and Schema.of("d", identifier=["a"], unit="record").each_record_is_a_unit
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"unit": "patient"}, 'unit: only "record" stands here; the column that names the unit is declared by role = "unit"'),
        ({"unit": 7}, 'only "record" stands here'),
        ({"unit": "record", "columns": {"patient": {"role": "unit"}}}, "column 'patient' has the role unit"),
        ({"declared_unit": "record"}, "declared_unit: unknown key"),
        ({"units": "record"}, "did you mean 'unit'?"),
        ({"columns": {"a": {"ledger": "x"}}}, "columns.a.ledger: unknown key here; it belongs at the top of the file"),
        ({"columns": {"a": {"dataset": "x"}}}, "belongs at the top of the file, above the first line in [brackets]"),
        ({"columns": {"a": {"intervals": [5]}}}, "columns.a.intervals: unknown key here; remove it"),
        ({"ledger": "x"}, "ledger: must be the id of a ledger, 32 hexadecimal digits"),
    ],
)
def test_anything_else_is_a_fault_of_the_schema(content: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError) as fault:
        Schema.parse(content)
    assert said in str(fault.value)


NAMES = [f"Ann {row // 2}" for row in range(60)]


NUMBERS = "pid pat_nr case_no insurance_number versicherten_nr VersichertenNr patnr kundennummer hhid member_no".split()


def visits(rows: int = 4000, patients: int = 500, **more: list[Any]) -> pa.Table:
    return pa.table(
        {
            "patient_id": [f"P{row % patients:05d}" for row in range(rows)],
            "age": [20 + row % 70 for row in range(rows)],
            **more,
        }
    )


def test_an_identifier_that_repeats_becomes_the_unit_with_its_numbers(tmp_path: Path) -> None:
    profile = inspect(visits(), schema_out=tmp_path / "visits.toml")
    column = profile.column("patient_id")
    assert (profile.unit, column.role, column.most_rows) == ("patient_id", "unit", 8)
    assert "500 different values in 4,000 rows, 8 rows each on average, at most 8" in column.reason
    assert "check" in column.reason and profile.to_mapping()["unit"] == "patient_id"
    written = (tmp_path / "visits.toml").read_text().replace("\n# ", " ")
    assert Schema.load(tmp_path / "visits.toml").unit == "patient_id" and "500 different values" in written
    assert "P00001" not in written
    session = sf.Session(sf.read(visits(), schema=tmp_path / "visits.toml"), budget=sf.PureDP(1), max_rows=8)
    assert session.explain("SELECT COUNT(*) AS n FROM visits", epsilon=1).unit == "patient_id"


def test_where_every_identifier_occurs_once_it_proposes_record_and_asks_to_check(tmp_path: Path) -> None:
    table = pa.table({"ssn": [f"{row:09d}" for row in range(300)], "age": [row % 70 for row in range(300)]})
    profile = inspect(table, schema_out=tmp_path / "people.toml")
    assert profile.unit == "record" and profile.column("ssn").role == "identifier"
    written = (tmp_path / "people.toml").read_text()
    assert '\nunit = "record"\n' in written and "please check it" in written


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (pa.table({"name": NAMES, "age": [30, 40, 50] * 20}), "two people may share a name"),
        (pa.table({"id": list(range(60)), "name": NAMES}), "a number of rows beside names that repeat"),
        (pa.table({"ssn": [None, *(f"{row:09d}" for row in range(59))]}), "who the row without a number is, nobody knows"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_rows_do_not_tell_is_left_to_the_owner(table: pa.Table, why: str, tmp_path: Path) -> None:
    profile = inspect(table, schema_out=tmp_path / "people.toml")
    schema = Schema.load(tmp_path / "people.toml")
    assert profile.unit is None and schema.unit is None and not schema.each_record_is_a_unit, why
    assert "Until then private questions are refused" in profile.unit_reason
    assert "Ann" not in (tmp_path / "people.toml").read_text().partition("dataset")[0]
    with pytest.raises(SchemaError, match="whom an answer would protect"):
        sf.Session(sf.read(table, schema=schema), budget=sf.PureDP(1))


@pytest.mark.parametrize(
    ("columns", "unit"),
    [
        ({"patient": [f"x{row % 50}" for row in range(4000)]}, "patient"),
        ({"person_id": [row % 9 for row in range(4000)]}, "person_id"),
        ({"e": [f"ann{row % 99}@example.org" for row in range(4000)]}, "e"),
        ({"account": [row % 600 for row in range(4000)], "customer_id": [row % 500 for row in range(4000)]}, "customer_id"),
        ({"visit_id": list(range(4000)), "user": [f"u{row % 700}" for row in range(4000)]}, "user"),
        *(({name: [f"P{row % 500:05d}" for row in range(4000)]}, name) for name in NUMBERS),
        ({"region_nr": [row % 5 for row in range(4000)]}, None),
        ({"children_number": [row % 5 for row in range(4000)]}, None),
        ({"telefonnummer": [row % 500 for row in range(4000)]}, None),
        ({"region_id": [row % 5 for row in range(4000)]}, None),
        ({"member": [row % 2 == 0 for row in range(4000)]}, None),
        ({"customer_age": [row % 70 for row in range(4000)]}, None),
    ],
)
def test_which_column_names_the_unit(columns: dict[str, list[Any]], unit: str | None) -> None:
    profile = sf.inspect(pa.table(columns))
    schema = starting_schema(profile, "d")
    assert (profile.unit, schema.unit) == (unit, unit)
    assert [column.name for column in profile.columns if column.role == "unit"] == ([unit] if unit else [])


@pytest.mark.parametrize(
    "name",
    "uid id patient_no subject_id nhs_number Versichertennummer USUBJID username email participant identifiant".split(),
)
def test_an_identifier_stays_one_however_often_it_repeats(name: str, tmp_path: Path) -> None:
    rows = {name: [f"P{1000 + row % 40}" for row in range(4800)], "pulse": [60 + row % 7 for row in range(4800)]}
    profile = inspect(pa.table(rows), schema_out=tmp_path / "p.toml")
    assert profile.unit == name and Schema.load(tmp_path / "p.toml").unit == name
    few = {name: [f"P{row % 5}" for row in range(4800)], "pulse": rows["pulse"]}
    undecided = inspect(pa.table(few), schema_out=tmp_path / "few.toml")
    assert undecided.column(name).role == "identifier" and undecided.unit is None
    assert "no column was recognised" not in undecided.unit_reason and "are refused" in undecided.unit_reason
    with pytest.raises(SchemaError, match="whom an answer would protect"):
        sf.Session(sf.read(pa.table(few), schema=tmp_path / "few.toml"), budget=sf.PureDP(1))


def test_a_flag_is_no_identifier_and_the_reason_names_it() -> None:
    profile = sf.inspect(pa.table({"member": ["yes", "no"] * 50, "age": [row % 70 for row in range(100)]}))
    assert profile.column("member").role == "quasi" and "('member') none has more than two values" in profile.unit_reason


@pytest.mark.parametrize(
    "columns",
    [
        {"expend": [17 * row for row in range(600)]},
        {"ssn": [f"{row:09d}" for row in range(600)], "q7": [f"h{row // 3}" for row in range(600)]},
    ],
    ids=["an amount that happens to differ everywhere", "a code that repeats evenly beside a number of rows"],
)
def test_record_is_not_proposed_where_it_is_doubted(columns: dict[str, list[Any]], tmp_path: Path) -> None:
    profile = inspect(pa.table(columns), schema_out=tmp_path / "s.toml")
    assert profile.unit is None and not Schema.load(tmp_path / "s.toml").each_record_is_a_unit
    assert "private questions are refused" in profile.unit_reason
    assert ("check 'q7'" in profile.unit_reason) == ("q7" in columns)


def test_the_reason_counts_in_plain_numbers() -> None:
    rows = {"user_id": [row % 3 for row in range(9000)], "trajectory_id": [row // 3 for row in range(9000)]}
    reason = sf.inspect(pa.table(rows)).unit_reason
    assert "3 different values in 9,000 rows, 3,000 rows each" in reason and "'trajectory_id' repeats too" in reason


@pytest.mark.parametrize("name", ["household", "code", "q7", "Kürzel"])
def test_codes_that_repeat_evenly_are_pointed_at_whatever_their_name(name: str, tmp_path: Path) -> None:
    rows = {name: [f"P{row % 500:05d}" for row in range(4000)], "age": [20 + row % 70 for row in range(4000)]}
    profile = inspect(pa.table(rows), schema_out=tmp_path / "s.toml")
    assert profile.unit is None and "no column was recognised as naming people" in profile.unit_reason
    assert f"check '{name}' (500 different values in 4,000 rows, 8 rows each" in profile.unit_reason
    assert "'age'" not in profile.unit_reason and "names people" not in profile.unit_reason
    written = " ".join((tmp_path / "s.toml").read_text().replace("\n# ", " ").split())
    assert "none named" in written and "so answers protect one record unless the schema names a unit" in written
    # as the page says: nothing is refused for want of a unit where no column looks like an identifier
    (tmp_path / "s.toml").write_text((tmp_path / "s.toml").read_text().replace('source = "data"', 'source = "declared"'))
    session = sf.Session(sf.read(pa.table(rows), schema=tmp_path / "s.toml"), budget=sf.PureDP(1))
    assert session.explain("SELECT COUNT(*) FROM data", epsilon=1).unit == "record"


def test_columns_whose_values_repeat_unevenly_or_seldom_are_not_pointed_at() -> None:
    skewed = [f"c{int(row**0.5)}" for row in range(4000)] + ["c0"] * 2000
    assert "check" not in sf.inspect(pa.table({"a": skewed, "b": [row % 7 for row in range(6000)]})).unit_reason


def test_a_name_that_says_person_and_never_repeats_is_an_identifier() -> None:
    profile = sf.inspect(pa.table({"patient": [f"x{row}" for row in range(100)]}))
    assert (profile.column("patient").role, profile.unit) == ("identifier", "record")


def test_what_the_schema_says_is_kept() -> None:
    from sfumato.data.profiling.profile import profile_table

    given = sf.read(visits(), schema={"dataset": "d", "columns": {"patient_id": {"role": "quasi"}}})
    assert profile_table(given).column("patient_id").role == "quasi"
    assert profile_table(sf.read(visits(), schema={"dataset": "d", "unit": "record"})).unit == "record"
    named = sf.read(visits(user=list(range(4000))), schema={"dataset": "d", "columns": {"user": {"role": "unit"}}})
    assert (profile_table(named).unit, profile_table(named).column("patient_id").role) == ("user", "identifier")


def test_an_odd_column_name_does_not_break_the_written_schema(tmp_path: Path) -> None:
    odd = "id\n[columns.x]\x00"
    inspect(pa.table({odd: [row % 30 for row in range(60)]}), schema_out=tmp_path / "odd.toml")
    assert list(Schema.load(tmp_path / "odd.toml").columns) == [odd]


def test_the_sample_has_one_row_per_person() -> None:
    assert sf.data.sample_schema().each_record_is_a_unit


def line_list(**more: list[Any]) -> pa.Table:
    contacts = [f"C{row % 90:05d}" if row % 5 == 0 else None for row in range(600)]
    return pa.table({"person id": [f"C{row:05d}" for row in range(600)], "contact_id": contacts, **more})


def test_a_column_with_empty_cells_is_pointed_at_and_never_proposed(tmp_path: Path) -> None:
    profile = inspect(line_list(), schema_out=tmp_path / "cases.toml")
    assert profile.unit == "record" and Schema.load(tmp_path / "cases.toml").each_record_is_a_unit
    assert profile.column("contact_id").role == "identifier" and "every value of 'person id' occurs once" in profile.unit_reason
    assert "'contact_id' (480 rows without a value) looks like an identifier that repeats" in profile.unit_reason
    # somebody's own number, or one that most rows have, may still mean that a person has several rows
    mostly = [None if row % 5 == 0 else f"K{row % 90}" for row in range(600)]
    for name, values in (("patient_id", line_list()["contact_id"]), ("konto", mostly)):
        undecided = sf.inspect(pa.table({"case id": line_list()["person id"], name: values}))
        assert undecided.unit is None and f"'{name}' (" in undecided.unit_reason
    other = sf.inspect(line_list(person_id=[row % 70 for row in range(600)]))
    assert other.unit == "person_id" and "'contact_id' (480 rows without a value)" in other.unit_reason


@pytest.mark.parametrize("name", ["UTILITYID", "utilityid", "UtilityID", "utilityId", "utility_id"])
def test_a_name_that_ends_in_id_names_a_unit_however_it_is_written(name: str) -> None:
    rows = {name: [row % 60 for row in range(1200)], "SALES": [row * row + 7 for row in range(1200)]}
    assert sf.inspect(pa.table(rows)).unit == name


@pytest.mark.parametrize("name", ["AMOUNTPAID", "covid", "Grid", "steroid", "fluid", "idea"])
def test_an_ordinary_word_that_ends_in_id_does_not(name: str) -> None:
    assert sf.inspect(pa.table({name: [row % 60 for row in range(1200)]})).column(name).role == "quasi"


@pytest.mark.parametrize(
    ("numbers", "role"),
    [
        ([row * row + 7 for row in range(1200)], "quasi"),  # amounts of a wide range
        ([-row * row for row in range(600)] + [10 * row**2 for row in range(600)], "quasi"),
        ([row * row % 3000 - 7 * (row % 11) for row in range(40)] + [10**18, -(10**18)], "quasi"),
        ([1000 + 7 * row for row in range(1200)], "identifier"),  # a series in equal steps
        ([row for row in range(1500) if row % 5], "identifier"),  # with gaps
        ([100_000 + row * row % 899_981 for row in range(900)], "identifier"),  # codes of six digits
    ],
)
def test_whole_numbers_that_differ_are_identifiers_only_where_they_look_given_out(numbers: list[int], role: str) -> None:
    column = sf.inspect(pa.table({"z": [*numbers, None]})).column("z")
    assert column.role == role and ("as amounts do" in column.reason) == (role == "quasi")


def test_amounts_of_which_some_repeat_are_pointed_at_before_each_record_is_taken_for_a_person() -> None:
    amounts = [row * row if row % 20 else 0 for row in range(600)]
    profile = sf.inspect(pa.table({"ssn": [f"{row:09d}" for row in range(600)], "z": amounts}))
    assert profile.unit is None and "check 'z': numbers that differ nearly everywhere" in profile.unit_reason


@pytest.mark.parametrize("name", ["visit_id", "admission_id", "order_id", "id", "uuid", "fallnummer", "key"])
def test_a_number_of_visits_or_rows_says_nothing_about_people(name: str) -> None:
    """Eight visits of each patient, each with a number of its own: that a row is a person is for the owner to say."""
    visits = pa.table({name: [f"V{row:06d}" for row in range(800)], "birth_year": [1940 + row // 8 % 61 for row in range(800)]})
    profile = sf.inspect(visits)
    assert profile.unit is None and 'write unit = "record"' in profile.unit_reason
