"""How a table seems to be written: proposed where one reading is possible, asked where several are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import SfumatoError
from sfumato.data.profiling.suggested_reading import SuggestedReading, suggest_reading
from sfumato.data.schema import Schema
from tests.examples import examples

CANARY = "canary-7f3a"


def suggested(**columns: Sequence[str | None]) -> SuggestedReading:
    return suggest_reading(pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()}), {}, 2)


def test_marks_of_numbers_are_proposed_with_the_lines_that_speak_for_them() -> None:
    found = suggested(pay=["1.234,56", "980,00", "7"], rate=["0,5", "0,25", "1"], note=["a, b", "c", "d"])
    assert (found.reading.decimal, found.reading.thousands, found.questions) == (",", ".", ())
    assert "lines 2, 3 of 'pay'" in found.reasons["decimal"] and "line 2 of 'pay'" in found.reasons["thousands"]
    assert "against it: none" in found.reasons["decimal"] and "1.234" not in str(found.reasons)
    assert suggested(pay=["1,234.56", "980.00"]).reading.thousands == ","
    assert suggested(pay=["1.5", "2"]).reading.to_mapping() == {}


def test_what_speaks_against_is_named() -> None:
    found = suggested(pay=["1,5", "2,25"], tax=["1,75", "9,5"], other=["1.55", "2.5"])
    assert found.reading.decimal == "," and "against it: column 'other'" in found.reasons["decimal"]


def test_numbers_that_can_be_read_in_two_ways_are_asked_about() -> None:
    found = suggested(pay=["1,234", "2,500"])
    assert found.reading.to_mapping() == {}
    assert "--decimal ','" in found.questions[0] and "--thousands ','" in found.questions[0]
    assert "--decimal ',' --thousands '.'" in suggested(pay=["1.234", "2.500"]).questions[0]
    assert suggested(rate=["0.123", "0.250"]).questions == ()  # nobody groups the digits of 0123


@pytest.mark.parametrize(
    ("cells", "pattern"),
    [
        (["25.02.1956", "01.03.1957"], "%d.%m.%Y"),
        (["02/25/1956", "01/03/1957"], "%m/%d/%Y"),
        (["1956/02/25", "1957/03/01"], "%Y/%m/%d"),
        (["25-Feb-1956", "01-Mar-1957"], "%d-%b-%Y"),
        (["25FEB1956", "01MAR1957"], "%d%b%Y"),
        (["25.02.56", "01.03.99"], "%d.%m.%y"),
        (["25.02.1956 10:30", "01.03.1957 11:00", "NA"], "%d.%m.%Y"),
        (["1956-02-25", "1957-03-01"], None),
        (["1.2.3", "4.5.6"], None),
        (["12.5", "13.5"], None),
    ],
)
def test_a_pattern_of_dates_is_proposed_where_one_is_possible(cells: list[str], pattern: str | None) -> None:
    assert suggested(day=cells).reading.date_format == pattern


def test_an_order_that_nothing_settles_is_asked_for_and_one_other_column_may_settle_it() -> None:
    found = suggested(day=["03/04/2020", "05/06/2021"])
    assert found.reading.date_format is None and found.choices["date_format"] == ("%d/%m/%Y", "%m/%d/%Y")
    assert "--date-format '%d/%m/%Y' or --date-format '%m/%d/%Y'" in found.questions[0] and "2020" not in found.questions[0]
    settled = suggested(day=["03/04/2020", "05/06/2021"], other=["25/01/2020", "01/02/2020"])
    assert (
        settled.reading.date_format == "%d/%m/%Y" and "no %m/%d/%Y: 1 cell, line 2 of 'other'" in settled.reasons["date_format"]
    )
    torn = suggested(day=["25/01/2020", "01/02/2020"], other=["01/25/2020", "01/02/2020"])
    assert torn.reading.date_format is None and "different orders" in torn.questions[0]
    assert "00 to 29 are 2000 to 2029" in suggested(day=["25.02.56", "01.03.99"]).reasons["date_format"]


def test_texts_for_no_value_are_proposed_unless_they_may_be_a_category() -> None:
    found = suggested(
        bmi=["N/A", "22.5", "30.1"],
        smokes=["Unknown", "yes", "no"],
        land=["NA", "DE", "FR"],
        answer=["NA", "yes", "no"],
        result=["-", "+", "+"],
        pets=["none", "a dog", "two cats"],
        children=["none", "1", "2"],
        quoted=["", "x", "y"],
    )
    assert found.reading.missing == ("", "N/A", "Unknown")
    assert found.codes == {"answer": ("NA",), "children": ("none",)}
    why = found.reasons["missing"]
    assert "'N/A': 1 cell in 1 column (line 2)" in why and "'NA' may be a value of column 'land', and is kept there" in why
    assert "'-' may be a value of column 'result'" in why


def test_frames_are_looked_at_too(tmp_path: Path) -> None:
    frame = pd.DataFrame({"pay": ["1.234,5", "2,5", "k.A."], "n": [1, 2, 3], "day": ["25.02.1956", "01.03.1957", None]})
    profile = sf.inspect(frame, schema_out=tmp_path / "s.toml")
    assert {column.name: column.type for column in profile.columns} == {"pay": "number", "n": "integer", "day": "date"}
    schema = Schema.load(tmp_path / "s.toml")
    assert schema.read.to_mapping() == {"decimal": ",", "thousands": ".", "date_format": "%d.%m.%Y", "missing": ["k.A."]}
    assert sf.read(frame, schema).table().column("pay").to_pylist() == [1234.5, 2.5, None]


def test_what_is_asked_stands_in_the_schema_and_an_option_answers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("id,day\n" + "".join(f"{i},0{1 + i % 9}/0{1 + i % 7}/2020\n" for i in range(40)))
    assert run(["inspect", "t.csv"]) == 0
    assert "decide: dates: the values do not say" in capsys.readouterr().out
    text = Path("t.toml").read_text()
    assert "# TO DECIDE. dates:" in text and Schema.load("t.toml").columns["day"].type == "string"
    assert run(["inspect", "t.csv", "--overwrite", "--date-format", "%m/%d/%Y"]) == 0
    assert Schema.load("t.toml").columns["day"].type == "date"
    assert Schema.load("t.toml").read.date_format == "%m/%d/%Y"


def test_odd_names_and_separators_at_the_end_are_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i};{i};{i % 4};x{i % 3};\n" for i in range(40))
    Path("t.csv").write_bytes(b"\xef\xbb\xbf" + ('a;a;b"c;ü\u2028;\n' + rows).encode())
    assert run(["inspect", "t.csv"]) == 0
    columns = Schema.load("t.toml").columns
    assert columns["a.2"].role == columns["column 5"].role == "identifier"
    people = sf.read("t.csv", "t.toml")
    assert people.column_names == ("a", "a.2", 'b"c', "ü\u2028", "column 5")


TEXTS = st.text(alphabet=" .,/-0123456789NAna", max_size=12)


@given(first=st.lists(TEXTS, min_size=1, max_size=8), second=st.lists(TEXTS, min_size=1, max_size=8))
@settings(max_examples=examples(150))
def test_what_is_proposed_can_be_used_and_shows_no_value(first: list[str], second: list[str]) -> None:
    size = max(len(first), len(second))
    table = pa.table({"a": [*first, *[CANARY] * (size - len(first))], "b": [*second, *[CANARY] * (size - len(second))]})
    found = suggest_reading(table, {})
    told = " ".join([*found.reasons.values(), *found.questions])
    assert CANARY not in told
    with_it = sf.read(table, {"read": found.reading.to_mapping(), "columns": {"a": {}, "b": {}}})
    assert len(with_it) == size
    for option in (found.choices.get("date_format") or ())[:2]:
        try:
            suggest_reading(table, {"date_format": option})
        except SfumatoError as error:
            assert CANARY not in str(error)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("pay;when\n1,5;a\n2,5;b\n3,5;c\n", "lines 2, 3, 4 of 'pay'"),
        ("\n\npay;when\n1,5;a\n2,5;b\n3,5;c\n", "records 1, 2, 3 of 'pay'"),
        ('pay;when\n1,5;"a\nb"\n2,5;b\n3,5;c\n', "records 1, 2, 3 of 'pay'"),
        ("pay;when\n\n\n1,5;a\n2,5;b\n3,5;c", "records 1, 2, 3 of 'pay'"),
    ],
    ids=["one record a line", "empty lines above", "a line break in a cell", "empty lines below"],
)
def test_lines_are_named_where_each_record_is_one(tmp_path: Path, text: str, places: str) -> None:
    path = tmp_path / "pay.csv"
    path.write_text(text, "utf-8")
    assert places in sf.inspect(path).reading.reasons["decimal"]
