"""How texts are read: marks of numbers, patterns of dates, codes for no value; exactly, or not at all."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError, RecipeError, SchemaError, SfumatoError, SourceError, Unsupported
from sfumato.data.schema import Schema
from sfumato.data.texts.date_format import DateFormat
from sfumato.data.texts.reading import PLAIN, Reading
from sfumato.workflow.recipe import Recipe
from tests.examples import examples

GERMAN = Reading(decimal=",", thousands=".", date_format="%d.%m.%Y")
CANARY = "canary-7f3a"


@pytest.mark.parametrize(
    ("reading", "text", "number"),
    [
        (GERMAN, "9117,97", "9117.97"),
        (GERMAN, "1.234,56", "1234.56"),
        (GERMAN, "1.234.567", "1234567"),
        (GERMAN, "1.5", None),
        (GERMAN, "12.34,5", None),
        (GERMAN, "1234,5e3", "1234.5e3"),
        (GERMAN, "-,5", "-.5"),
        (GERMAN, "k.A.", None),
        (Reading(decimal=","), "1.234", None),
        (Reading(thousands=","), "1,234.5", "1234.5"),
        (Reading(thousands=","), "1234.5", "1234.5"),
        (Reading(thousands=","), "1,23", None),
        (Reading(decimal=",", thousands=" "), "1 234,5", "1234.5"),
        (Reading(decimal=",", thousands=" "), "1\u202f234\u00a0567,5", "1234567.5"),
        (Reading(thousands="'"), "1\u2019234.5", "1234.5"),
        (PLAIN, "1.5", "1.5"),
        (PLAIN, "1,5", None),
    ],
)
def test_a_number_is_read_exactly_or_not_at_all(reading: Reading, text: str, number: str | None) -> None:
    assert reading.number(text) == number


@pytest.mark.parametrize(
    ("pattern", "text", "iso"),
    [
        ("%d.%m.%Y", "25.02.1956", "1956-02-25"),
        ("%d.%m.%Y", "5.2.1956", "1956-02-05"),
        ("%d.%m.%Y", "25.02.1956 10:30", "1956-02-25 10:30:00"),
        ("%d.%m.%Y", "31.02.1956", None),
        ("%d.%m.%Y", "1956-02-25", None),
        ("%m/%d/%Y", "02/25/1956", "1956-02-25"),
        ("%m/%d/%Y", "25/02/1956", None),
        ("%d/%m/%y", "25/02/29", "2029-02-25"),
        ("%d/%m/%y", "25/02/30", "1930-02-25"),
        ("%d/%m/%y", "25/02/1930", None),
        ("%d-%b-%Y", "25-Feb-1956", "1956-02-25"),
        ("%d%b%Y", "25FEB1956", "1956-02-25"),
        ("%b %d, %Y", "Feb 25, 1956", "1956-02-25"),
        ("%Y%m%d", "19560225", "1956-02-25"),
        ("%Y%m%d", "1956225", None),
        ("%d.%m.%Y %H:%M", "25.02.1956 7:05", "1956-02-25 07:05:00"),
        ("%d.%m.%Y %H:%M", "25.02.1956", None),
        ("%d.%m.%Y", "00.01.0000", None),
    ],
)
def test_a_date_is_read_by_its_pattern(pattern: str, text: str, iso: str | None) -> None:
    assert DateFormat.of(pattern).iso(text) == iso


@given(st.dates(datetime.date(1930, 1, 1), datetime.date(2029, 12, 31)), st.sampled_from(["%d.%m.%y", "%m/%d/%Y", "%d %b %Y"]))
@settings(max_examples=examples(60))
def test_what_a_pattern_writes_it_reads(day: datetime.date, pattern: str) -> None:
    assert DateFormat.of(pattern).iso(day.strftime(pattern)) == day.isoformat()


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"decimal": ";"}, "decimal must be '.' or ','"),
        ({"thousands": "."}, "both '.'"),
        ({"thousands": ",", "decimal": ","}, "both ','"),
        ({"separator": "ab"}, "is one ASCII character"),
        ({"encoding": "rot13"}, "no encoding called"),
        ({"date_format": "%d.%m"}, "day, month and year"),
        ({"date_format": "%d.%m.%Y %j"}, "only"),
        ({"date_format": "%d.%m.%Y %H"}, "hours with minutes"),
        ({"date_format": "%d.%d.%m.%Y"}, "twice"),
        ({"date_format": "day %d.%m.%Y"}, "no letters"),
        ({"date_format": "%d.%m.%Y" + " " * 60}, "at most 40"),
        ({"missing": [1.5]}, "must be a list"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_declared(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        Reading(**keys)
    with pytest.raises(SchemaError, match=why):
        Schema.parse({"read": keys})
    with pytest.raises(ParameterError, match=why):
        sf.read(pa.table({"a": ["1"]}), **({"separator": "ab"} if "separator" in keys else keys))


def test_all_faults_come_at_once_and_each_says_where_it_belongs() -> None:
    with pytest.raises(SchemaError) as refused:
        Schema.parse({"decimal": ",", "read": {"decimals": ",", "encoding": 3, "date_format": "%d"}})
    text = str(refused.value)
    assert "4 faults" in text and "decimal: unknown key here; it belongs below [read]" in text
    assert (
        "read.decimals: unknown key; did you mean 'decimal'?" in text and "read.encoding" in text and "read.date_format" in text
    )


def test_faults_of_recipe_and_schema_come_in_one_list(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('[columns.a]\nrole = "quas"\n[read]\ndecimal = ";"\n')
    (tmp_path / "r.toml").write_text('data = "d.csv"\nschema = "s.toml"\nrows = 3\n[[guarantee]]\nname = "KAnonymity"\nk = 5\n')
    with pytest.raises(RecipeError) as refused:
        Recipe.load(tmp_path / "r.toml")
    text = str(refused.value)
    assert "3 faults" in text and "rows" in text and "columns.a.role" in text and "read: decimal" in text


def test_a_schema_with_a_reading_is_written_and_read_again(tmp_path: Path) -> None:
    stated = GERMAN.overridden({"missing": ("NA", 'a"b'), "separator": "\t", "encoding": "cp1252"})
    schema = Schema(dataset="d", read=stated)
    (tmp_path / "s.toml").write_text(schema.to_toml(), encoding="utf-8")
    assert Schema.load(tmp_path / "s.toml").read == stated
    assert Schema.model_validate(schema.model_dump(mode="json")) == schema
    assert "read" not in Schema(dataset="d").to_toml()  # stored schemas stay as they are


ROWS = "a;b;d;t;n\n1.234,56;1,5;25.02.1956;25.02.1956 10:30;NA\n-0,5;x;01.03.2000;01.03.2000 11:00;2\n"
READ: dict[str, list[object]] = {
    "a": [1234.56, -0.5],
    "b": ["1,5", "x"],
    "d": [datetime.date(1956, 2, 25), datetime.date(2000, 3, 1)],
    "t": [datetime.datetime(1956, 2, 25, 10, 30), datetime.datetime(2000, 3, 1, 11, 0)],
    "n": [None, 2],
}
TYPES = {"a": "number", "b": "string", "d": "date", "t": "datetime", "n": "integer"}
DECLARED: dict[str, Any] = {
    "read": {**GERMAN.to_mapping(), "missing": ["NA"]},
    "columns": {name: {"type": kind} for name, kind in TYPES.items()},
}


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("unreadable", ["refuse", "missing"])
def test_the_schema_is_honoured_wherever_a_file_is_read(engine: Any, unreadable: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    people = sf.read(tmp_path / "t.csv", DECLARED, engine=engine, unreadable=unreadable)
    assert people.table().to_pydict() == READ
    assert people.schema.columns["n"].missing == ("NA",)  # whoever reads another table like this one knows the codes


def test_options_say_it_without_a_schema_and_override_it(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    options: dict[str, Any] = {**GERMAN.to_mapping(), "missing": "NA"}
    assert sf.read(tmp_path / "t.csv", **options).table().to_pydict() == READ
    english = {**DECLARED, "read": {"decimal": ".", "date_format": "%m/%d/%Y"}}
    with pytest.raises(SourceError, match="cannot be read as"):
        sf.read(tmp_path / "t.csv", english)
    assert sf.read(tmp_path / "t.csv", english, **options).table().to_pydict() == READ


def test_texts_of_a_frame_are_read_so_where_they_are_declared() -> None:
    frame = pa.table({"a": ["1.234,56", "NA"], "n": [1.5, 2.5], "d": ["25.02.1956", None]})
    columns = {"a": {"type": "number"}, "d": {"type": "date"}, "n": {"type": "string"}}
    people = sf.read(frame, {"read": DECLARED["read"], "columns": columns})
    assert people.table().to_pydict() == {"a": [1234.56, None], "n": ["1.5", "2.5"], "d": [datetime.date(1956, 2, 25), None]}
    assert sf.read(people.table(), people.schema).table().equals(people.table())  # what was read is not read again


def test_codes_of_the_table_count_in_columns_that_nobody_describes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,NA\nNA,x\n")
    for engine in ("memory", "duckdb"):
        people = sf.read(tmp_path / "t.csv", {"unlisted": "plain", "read": {"missing": ["NA"]}}, engine=engine)
        assert people.table().to_pydict() == {"a": [1, None], "b": [None, "x"]}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"encoding": "cp1252"}, "UTF-8 and Latin-1"),
        ({"date_format": "%d.%m.%y"}, "%d, %m and %Y alone"),
        ({"date_format": "%d %b %Y"}, "%d, %m and %Y alone"),
    ],
)
def test_what_duckdb_cannot_read_in_place_is_one_sentence(options: dict[str, Any], why: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(Unsupported, match=why):
        sf.read(tmp_path / "t.csv", engine="duckdb", **options)


def test_texts_of_a_database_are_refused_unless_they_are_brought_here(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT '1.234,5' AS a, 2 AS n")
    schema = {"read": {"decimal": ",", "thousands": "."}, "columns": {"a": {"type": "number"}, "n": {"type": "integer"}}}
    with pytest.raises(Unsupported, match="'a': stored as text"):
        sf.read(tmp_path / "d.duckdb", schema)
    assert sf.read(tmp_path / "d.duckdb", schema, engine="memory").table().to_pydict() == {"a": [1234.5], "n": [2]}
    typed = {**schema, "columns": {"a": {"type": "string"}, "n": {"type": "integer"}}}
    assert sf.read(tmp_path / "d.duckdb", typed).table().to_pydict() == {"a": ["1.234,5"], "n": [2]}


def test_a_release_says_nothing_of_how_its_original_was_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age;pay\n" + "".join(f"{20 + i % 3};1.{i:03d},5\n" for i in range(30)))
    schema = {"read": {"decimal": ",", "thousands": ".", "separator": ";"}, "columns": {"age": {"role": "quasi"}, "pay": {}}}
    release = sf.protect(sf.read(tmp_path / "t.csv", schema), [sf.KAnonymity(5)], ledger=None)
    release.save(tmp_path / "out", "csv")
    assert "[read]" not in (tmp_path / "out" / "public" / "schema.toml").read_text()
    assert Schema.load(tmp_path / "out" / "owner" / "schema.toml").read.decimal == ","
    assert release.data.column("pay").to_pylist()[0] >= 1000
    assert sf.verify(tmp_path / "out").accepted
    # both the release, in its plain form, and the original are measured under the owner's schema
    owners = tmp_path / "out" / "owner" / "schema.toml"
    assert sf.check(tmp_path / "out" / "public" / "data.csv", owners, [sf.KAnonymity(5)], original=tmp_path / "t.csv").holds
    assert sf.check(tmp_path / "t.csv", owners, [sf.KAnonymity(5)]).measured


def test_the_thousands_mark_of_a_schema_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n1.234\n5.5\n")
    schema = {"dataset": "d", "read": {"decimal": ",", "thousands": "."}, "columns": {"a": {"type": "number"}}}
    with pytest.raises(ParameterError, match="^thousands and decimal are both '.'. .*thousands '' is for none"):
        sf.read(path, schema, decimal=".")
    for options in ({}, {"engine": "duckdb"}):
        people = sf.read(path, schema, decimal=".", thousands="", **options)  # type: ignore[arg-type]
        assert people.table().column("a").to_pylist() == [1.234, 5.5] and people.schema.read.thousands is None


TEXTS = st.text(alphabet=" .,'0123456789-+eE/%:TZkA\u00a0\u2019", max_size=24)


@given(
    cells=st.lists(TEXTS, min_size=1, max_size=5),
    decimal=st.sampled_from([None, ".", ","]),
    thousands=st.sampled_from([None, ".", ",", " ", "'"]),
    pattern=st.sampled_from([None, "%d.%m.%Y", "%m/%d/%y", "%Y%m%d", "%d %b %Y %H:%M"]),
    kind=st.sampled_from([None, "number", "integer", "date", "datetime", "boolean"]),
)
@settings(max_examples=examples(300))
def test_odd_texts_are_read_or_refused_and_never_shown(
    cells: list[str], decimal: str | None, thousands: str | None, pattern: str | None, kind: Any
) -> None:
    schema = {"columns": {"a": {} if kind is None else {"type": kind}}}
    table = pa.table({"a": [*cells, CANARY]})
    try:
        people = sf.read(table, schema, decimal=decimal, thousands=thousands, date_format=pattern, missing=[])
        assert len(people) == len(cells) + 1
    except SfumatoError as error:
        assert CANARY not in str(error)
        assert error.__cause__ is None and error.__context__ is None


@given(value=st.floats(-1e9, 1e9), thousands=st.sampled_from([None, ".", " ", "'"]))
@settings(max_examples=examples(100))
def test_engines_and_this_process_read_the_same_number(value: float, thousands: str | None) -> None:
    text = f"{value:,.3f}".replace(",", "\0").replace(".", ",").replace("\0", thousands or "")
    assert float(Reading(decimal=",", thousands=thousands).number(text) or "nan") == pytest.approx(float(f"{value:.3f}"))
