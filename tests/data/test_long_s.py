"""A pattern of dates reads the letters that it names and no other, whatever a cell holds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError
from sfumato.data.texts.date_format import DateFormat
from sfumato.data.texts.reading import Reading


@pytest.mark.parametrize("text", ["1 \u017fep 2020", "1 ju\u0274 2020", "1 \uff53ep 2020"])
def test_a_letter_that_only_looks_like_one_of_a_month_makes_no_date(text: str) -> None:
    assert DateFormat.of("%d %b %Y").iso(text) is None
    assert DateFormat.of("%d %b %Y").iso("1 SEP 2020") == "2020-09-01"


def test_one_unreadable_month_does_not_stop_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "dates.csv"
    path.write_text("when,x\n" + "".join(f"{day} sep 2020,1\n" for day in range(1, 10)) + "9 \u017fep 2020,2\n", "utf-8")
    schema = {
        "dataset": "dates",
        "unit": "record",
        "read": {"date_format": "%d %b %Y"},
        "columns": {"when": {"type": "date"}, "x": {"type": "integer"}},
    }
    assert sf.read(path, schema, unreadable="missing").table()["when"].null_count == 1
    assert sf.inspect(path).reading.reading.date_format is None


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_small_t_begins_no_time_on_any_engine(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("nr,d\n1,25.02.1956t10:30\n2,25.02.1956T00:00\n3,25.02.1956\n", "utf-8")
    columns = {"nr": {"type": "integer"}, "d": {"type": "date"}}
    schema = {"dataset": "t", "unit": "record", "read": {"date_format": "%d.%m.%Y"}, "columns": columns}
    assert sf.read(path, schema, engine=engine, unreadable="missing").table()["d"].null_count == 1


def test_blanks_of_a_pattern_are_one_gap() -> None:
    pattern = DateFormat.of("%d      %m      %Y")
    began = time.process_time()
    assert pattern.iso("1" + " " * 400 + "2" + " " * 400) is None
    assert time.process_time() - began < 5  # six gaps in a row would be tried in billions of ways
    assert pattern.iso("1 2  2020") == "2020-02-01"


@pytest.mark.parametrize("mark", ["\u00a7", "\u00e9", "\0"])
def test_a_separator_is_ascii(mark: str) -> None:
    with pytest.raises(ParameterError, match="one ASCII character"):
        Reading(separator=mark)


def test_a_code_is_a_whole_text() -> None:
    with pytest.raises(ParameterError, match="missing must be a list, each a text"):
        Reading(missing=("\ud800",))
