"""Writers: all or nothing, the same values back from every format, and nothing published that no row
shows."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import SourceError, Unsupported
from sfumato.data import writers
from sfumato.data.readers.files import from_frame, read_file
from sfumato.data.schema import Column, Schema
from sfumato.data.texts.values import texts
from tests.examples import examples
from tests.faults.test_disk_and_kill import files_no_longer_than

FORMATS = ["csv", "tsv", "parquet", "arrow", "feather"]
CANARY = "canary-7f3a"

ODD = {
    "leading zeros": ["01234", "00001", None],
    "marital-status": ["never married", "", None],
    'a "quoted", name; with | and\ttab': ["x", "y", "z"],
    "größe ☃": ["é", "e\u0301", "\U0001f600"],
    "country": ["NO", "SE", None],
    "yes or no": ["true", "yes", "no"],
    "markers": ["NA", "null", "None"],
    "line breaks": ["a\nb", "c\r\nd", "\r"],
    "quotes": ['"', '""', "'"],
    "spaces": [" x", "x ", "\t"],
    "integers": [0, -(2**63), 2**63 - 1],
    "numbers": [0.1, 1e300, None],
    "whole numbers": [1.0, 2.0, 1e16],
    "flags": [True, False, None],
    "days": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None],
    "moments": [datetime.datetime(2024, 1, 2), datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), None],
    "instants": [datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.UTC), None, None],
    "nothing": [None, None, None],
}


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("name", ODD)
def test_every_kind_of_value_survives_every_format(tmp_path: Path, ending: str, name: str) -> None:
    table = from_frame(pa.table({name: ODD[name], "n": [1, 2, 3]})).table
    writers.write_file(table, tmp_path / f"t.{ending}")
    again = read_file(tmp_path / f"t.{ending}").table
    assert again.column_names == [name, "n"]
    assert texts(again[name]) == texts(table[name])
    if (ending, name) not in {(e, "whole numbers") for e in ("csv", "tsv")}:
        assert again[name].type == table[name].type


@pytest.mark.parametrize("ending", FORMATS)
def test_all_columns_at_once_with_their_schema(tmp_path: Path, ending: str) -> None:
    read = from_frame(pa.table(ODD))
    schema = Schema(columns={name: Column(type=column.type) for name, column in read.columns.items()})
    writers.write_file(read.table, tmp_path / f"t.{ending}")
    again = read_file(tmp_path / f"t.{ending}", schema).table
    assert [texts(column) for column in again.columns] == [texts(column) for column in read.table.columns]


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("table", [pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.int64())})])
def test_a_table_without_rows_survives(tmp_path: Path, ending: str, table: pa.Table) -> None:
    writers.write_file(table, tmp_path / f"t.{ending}")
    again = read_file(tmp_path / f"t.{ending}").table
    assert again.column_names == ["a", "b"]
    assert again.num_rows == 0


def test_a_single_column_with_missing_values_survives_csv(tmp_path: Path) -> None:
    writers.write_csv(pa.table({"a": ["x", None, "", "y", None]}), tmp_path / "t.csv")
    assert read_file(tmp_path / "t.csv").table["a"].to_pylist() == ["x", None, "", "y", None]


def test_nan_is_a_missing_value(tmp_path: Path) -> None:
    writers.write_csv(pa.table({"a": [1.5, float("nan")], "b": [1, 2]}), tmp_path / "t.csv")
    assert read_file(tmp_path / "t.csv").table["a"].to_pylist() == [1.5, None]


text_cells = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
typed = st.one_of(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=8).map(lambda v: pa.array(v, pa.int64())),
    st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=8).map(lambda v: pa.array(v, pa.float64())),
    st.lists(st.none() | st.dates(), max_size=8).map(lambda v: pa.array(v, pa.date32())),
    st.lists(st.none() | st.datetimes(), max_size=8).map(lambda v: pa.array(v, pa.timestamp("us"))),
    st.lists(st.none() | st.booleans(), max_size=8).map(lambda v: pa.array(v, pa.bool_())),
)


@given(st.lists(st.tuples(text_cells, text_cells), max_size=8), st.sampled_from(["csv", "parquet", "arrow"]))
@settings(max_examples=examples(50))
def test_any_text_comes_back_unchanged(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str | None, str | None]], ending: str
) -> None:
    file = tmp_path_factory.getbasetemp() / f"text.{ending}"
    table = pa.table({"a": pa.array([r[0] for r in rows], pa.string()), "b": pa.array([r[1] for r in rows], pa.string())})
    writers.write_file(table, file)
    options = {"separator": ","} if ending == "csv" else {}
    assert read_file(file, as_text=True, **options).table.to_pydict() == table.to_pydict()  # type: ignore[arg-type]


@given(typed, st.sampled_from(["csv", "parquet", "arrow"]))
@settings(max_examples=examples(50))
def test_any_number_date_or_flag_comes_back_with_the_same_text(
    tmp_path_factory: pytest.TempPathFactory, array: pa.Array, ending: str
) -> None:
    file = tmp_path_factory.getbasetemp() / f"typed.{ending}"
    table = pa.table({"a": array, "b": pa.array(range(len(array)), pa.int64())})
    writers.write_file(table, file)
    assert texts(read_file(file).table["a"]) == texts(table["a"])


# --- nothing but the rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_values_that_no_row_shows_are_not_published(tmp_path: Path, ending: str) -> None:
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 0, None], pa.int32()), pa.array(["shown", CANARY]))
    sliced = pa.array([CANARY, "a", "b", "c", CANARY]).slice(1, 3)
    below = pa.Array.from_buffers(
        pa.int64(), 3, [pa.py_buffer(bytes([0b101])), pa.py_buffer(np.array([1, 0x6B6E6172, 3]).tobytes())]
    )
    hidden = pc.if_else(pa.array([True, False, True]), pa.array(["x", CANARY, "z"]), pa.scalar(None, pa.string()))
    table = pa.table({"d": unused, "s": sliced, "i": below, "h": hidden}).replace_schema_metadata({"owner": CANARY})
    writers.write_file(table, tmp_path / f"t.{ending}")
    content = (tmp_path / f"t.{ending}").read_bytes()
    assert CANARY.encode() not in content
    assert b"rank" not in content  # the bytes of the number below the missing cell
    assert read_file(tmp_path / f"t.{ending}").table["i"].to_pylist() == [1, None, 3]


def test_the_order_of_a_dictionary_does_not_tell_the_order_of_the_original() -> None:
    first = writers.clean(pa.table({"a": pa.array(["b", "a", "c"]).dictionary_encode()}))
    assert first["a"].chunk(0).dictionary.to_pylist() == ["a", "b", "c"]
    assert first["a"].to_pylist() == ["b", "a", "c"]


def test_spreadsheet_formulas_are_noticed_by_column_without_values() -> None:
    table = pa.table(
        {
            "formula": ["=1+1", "x", f"@{CANARY}"],
            "link": pa.array(["+cmd|' /C calc'!A0", "a", "a"]).dictionary_encode(),
            "control": ["\tx", "\rx", "a"],
            "number": ["-5", "+3.5", "-1e3"],
            "dash": ["-", "a", None],
            "plain": ["a=b", "x@y.no", "1-2"],
            "amount": [-1, -2, -3],
            "=name": ["a", "b", "c"],
        }
    )
    notices = writers.spreadsheet_notices(table)
    assert [name for name in table.column_names if any(f"'{name}'" in notice for notice in notices)] == [
        "formula", "link", "control", "=name"
    ]  # fmt: skip
    assert "column 'formula': 2 cells" in notices[0]
    assert CANARY not in " ".join(notices)
    assert writers.spreadsheet_notices(pa.table({"a": ["x"]})) == []


# --- all or nothing -----------------------------------------------------------------------------------------


class Boom(BaseException):
    """Stands for Ctrl-C and a killed thread."""


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), Boom()])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, error: BaseException
) -> None:
    target = tmp_path / f"t.{ending}"
    target.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(Boom if isinstance(error, Boom) else SourceError):
        writers.write_file(pa.table({"a": [CANARY]}), target)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert target.read_bytes() == b"old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_clear_error(tmp_path: Path) -> None:
    with files_no_longer_than(1_000), pytest.raises(SourceError, match="File too large"):
        writers.write_csv(pa.table({"a": ["x" * 100] * 10_000}), tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot write"):
        writers.write_parquet(pa.table({"a": [1]}), tmp_path / "absent" / "t.parquet")


def test_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(SourceError, match="not a plain file"):
        writers.write_file(pa.table({"a": [1]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").is_fifo() and len(list(tmp_path.iterdir())) == 1


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="should end with one of"):
        writers.write_file(pa.table({"a": [1]}), tmp_path / "t.docx")


def test_zero_bytes_are_refused_in_csv_without_showing_them(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="zero bytes") as caught:
        writers.write_csv(pa.table({"a": [f"{CANARY}\0"]}), tmp_path / "t.csv")
    assert CANARY not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
