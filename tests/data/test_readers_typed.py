"""Files and frames that carry types: Parquet, Arrow, Excel, statistical packages, pandas, polars."""

from __future__ import annotations

import datetime
import decimal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import MissingExtra, ParameterError, SfumatoError, SourceError
from sfumato.data.readers.files import read_file
from sfumato.data.readers.frames import from_frame, is_frame
from sfumato.data.schema import Column, Schema
from tests.examples import examples

CANARY = "canary-7f3a"
TEXT = pa.dictionary(pa.int32(), pa.string())


# --- Arrow types --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "kind", "texts"),
    [
        (pa.array(["01", None], pa.large_string()), "string", ["01", None]),
        (pa.array(["01", None], pa.string_view()), "string", ["01", None]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), "string", ["b", "a", "b"]),
        (pa.array([None, None], pa.null()), "string", [None, None]),
        (pa.array([1, None], pa.int8()), "integer", ["1", None]),
        (pa.array([1, 2**63 - 1], pa.uint64()), "integer", ["1", str(2**63 - 1)]),
        (pa.array([2**64 - 1], pa.uint64()), "string", [str(2**64 - 1)]),
        (pa.array([0.1, 2.0], pa.float32()), "number", ["0.1", "2"]),
        (pa.array([decimal.Decimal("1.50"), None]), "number", ["1.5", None]),
        (pa.array([decimal.Decimal("12")]), "integer", ["12"]),
        (pa.array([datetime.date(2024, 1, 2)], pa.date64()), "date", ["2024-01-02"]),
        (
            pa.array([datetime.datetime(2024, 1, 2, 3)], pa.timestamp("s")),
            "datetime",
            ["2024-01-02T03:00:00"],
        ),
        (pa.array([1_700_000_000_000_000_001], pa.timestamp("ns")), "datetime", ["2023-11-14T22:13:20"]),
        (pa.array([datetime.time(4, 5)]), "string", ["04:05:00"]),
        (pa.array([b"\x01\xff"]), "string", ["01ff"]),
        (pa.array([7, 7, 8]).dictionary_encode(), "integer", ["7", "7", "8"]),
    ],
)
def test_every_arrow_type_has_one_of_six_kinds(array: pa.Array, kind: str, texts: list[str | None]) -> None:
    from sfumato.data.texts.values import text_of

    result = from_frame(pa.table({"x": array}))
    assert result.columns["x"].type == kind
    assert [text_of(value) for value in result.table["x"].to_pylist()] == texts


def test_zones_become_utc() -> None:
    noon = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.UTC)
    result = from_frame(pa.table({"x": pa.array([noon], pa.timestamp("ms", "Europe/Oslo"))}))
    assert result.table["x"].to_pylist() == [noon]
    assert any("Europe/Oslo to UTC" in note for note in result.notes)


@pytest.mark.parametrize("declared", [None, "date", "string"])
@pytest.mark.parametrize("far", [pa.date64(), pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("s", "UTC")])
def test_days_far_away_are_one_plain_error_without_the_value(far: pa.DataType, declared: Any) -> None:
    day = 86_400_000 * 10**10
    column = pa.array([0, day], pa.int64()).cast(far)
    with pytest.raises(SourceError, match="outside the years 1 to 9999") as caught:
        from_frame(pa.table({"x": column}), Schema(columns={"x": Column(type=declared)}))
    assert str(day) not in str(caught.value)


@pytest.mark.parametrize("wanted", ["string", "integer"])
def test_decimals_are_converted_with_every_digit(wanted: Any) -> None:
    texts = ["1234567890123456701", "1234567890123456702"]
    for wide in (pa.decimal128(20, 0), pa.decimal128(25, 2), pa.decimal256(60, 8)):
        table = pa.table({"x": pa.array([decimal.Decimal(text) for text in texts], wide)})
        result = from_frame(table, Schema(columns={"x": Column(type=wanted)})).table
        assert [str(value) for value in result["x"].to_pylist()] == texts


def test_integers_declared_as_numbers_are_rounded_and_never_quoted() -> None:
    schema = Schema(columns={"x": Column(type="number")})
    assert from_frame(pa.table({"x": [2**53, 2**53 + 1]}), schema).table["x"].to_pylist() == [2.0**53, 2.0**53]


def test_nested_columns_are_refused_all_at_once() -> None:
    with pytest.raises(SourceError) as caught:
        from_frame(pa.table({"a": [[1]], "b": [{"x": CANARY}], "c": [1]}))
    assert "2 faults" in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_schema_applies_to_typed_columns_too() -> None:
    schema = Schema(
        columns={
            "zip": Column(type="string"),
            "age": Column(type="integer", missing=("99",)),
            "sex": Column(missing=("?",)),
            "born": Column(type="date"),
        }
    )
    table = pa.table(
        {
            "zip": [1234, 5],
            "age": ["31", "99"],
            "sex": ["m", "?"],
            "born": [datetime.datetime(2000, 1, 1), datetime.datetime(2000, 2, 1)],
        }
    )
    result = from_frame(table, schema).table
    assert result["zip"].to_pylist() == ["1234", "5"]
    assert result["age"].to_pylist() == [31, None]
    assert result["sex"].to_pylist() == ["m", None]
    assert result["born"].to_pylist() == [datetime.date(2000, 1, 1), datetime.date(2000, 2, 1)]
    with pytest.raises(SourceError, match="1 of 2 values cannot be read as an integer"):
        from_frame(pa.table({"age": ["31", CANARY]}), schema)


# --- files --------------------------------------------------------------------------------------------------

PEOPLE = pa.table(
    {
        "zip code": ["01234", "10115", None],
        "country": ["NO", "SE", "NO"],
        "age": [31, None, 44],
        "born": [datetime.date(1990, 1, 2), None, datetime.date(1980, 3, 4)],
    }
)


@pytest.mark.parametrize("kind", ["parquet", "feather", "arrow", "arrows", "unknown"])
def test_columnar_files(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"people.{kind}"
    if kind == "feather":
        feather.write_feather(PEOPLE, str(file))
    elif kind in ("arrow", "arrows"):
        opened = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with opened(str(file), PEOPLE.schema) as writer:
            writer.write_table(PEOPLE)
    else:
        pq.write_table(PEOPLE, file)
    result = read_file(file)
    assert result.table.to_pydict() == PEOPLE.to_pydict()
    assert result.table["zip code"].type == TEXT


def test_the_index_that_pandas_stores_is_left_out(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1, 2]}, index=[7, 9]).to_parquet(tmp_path / "p.parquet")
    result = read_file(tmp_path / "p.parquet")
    assert result.table.column_names == ["a"]
    assert any("index" in note for note in result.notes)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "xlsx", "sav", "dta", "sas7bdat", "xpt"])
@pytest.mark.parametrize("damage", ["garbage", "cut"])
def test_damaged_files_give_one_clear_error(tmp_path: Path, ending: str, damage: str) -> None:
    file = tmp_path / f"people.{ending}"
    if damage == "garbage":
        file.write_bytes(bytes(range(256)) * 20)
    elif ending in ("parquet", "arrow"):
        whole = tmp_path / "whole"
        pq.write_table(PEOPLE, whole) if ending == "parquet" else feather.write_feather(PEOPLE, str(whole))
        file.write_bytes(whole.read_bytes()[:-40])
    else:
        make(file)
        file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(SourceError, match="not a complete"):
        read_file(file)


def make(file: Path) -> None:
    """A small file of an office or statistics format."""
    import pyreadstat

    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    writers = {".sav": pyreadstat.write_sav, ".dta": pyreadstat.write_dta, ".xpt": pyreadstat.write_xport}
    if file.suffix == ".xlsx":
        frame.to_excel(file, index=False)
    elif file.suffix in writers:
        writers[file.suffix](frame, str(file))
    else:
        file.write_bytes(b"\x00" * 300)


def workbook(file: Path, rows: list[list[Any]], **more: list[list[Any]]) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    for row in rows:
        sheet.append(row)
    for title, lines in more.items():
        extra = book.create_sheet(title)
        for row in lines:
            extra.append(row)
    book.save(file)


def test_excel(tmp_path: Path) -> None:
    noon = datetime.datetime(2024, 1, 2, 12)
    day = datetime.datetime(2024, 1, 2)
    rows: list[list[Any]] = [
        ["zip", "age", "pay", "ok", "born", "seen", "mixed", None],
        ["01234", 31, 1.5, True, day, noon, 1, "x"],
        ["NO", None, 2, False, None, day, "two", None],
        [None, 5, None, None, day, None, None, None],
        [None] * 8,
    ]
    workbook(tmp_path / "p.xlsx", rows, other=[["a"], [1]])
    result = read_file(tmp_path / "p.xlsx")
    kinds = {name: column.type for name, column in result.columns.items()}
    assert kinds == {
        "zip": "string",
        "age": "integer",
        "pay": "number",
        "ok": "boolean",
        "born": "date",
        "seen": "datetime",
        "mixed": "string",
        "column 8": "string",
    }
    assert result.table["zip"].to_pylist() == ["01234", "NO", None]
    assert result.table["mixed"].to_pylist() == ["1", "two", None]
    assert result.table["pay"].to_pylist() == [1.5, 2.0, None]
    assert any("mixes numbers, text" in note for note in result.notes)
    assert read_file(tmp_path / "p.xlsx", sheet="other").table.to_pydict() == {"a": [1]}
    assert read_file(tmp_path / "p.xlsx", sheet=2).table.to_pydict() == {"a": [1]}
    with pytest.raises(ParameterError, match="has no sheet 'third'"):
        read_file(tmp_path / "p.xlsx", sheet="third")


def test_excel_errors_are_missing_and_an_empty_sheet_is_refused(tmp_path: Path) -> None:
    workbook(tmp_path / "e.xlsx", [["a"], [1], ["#N/A"]])
    result = read_file(tmp_path / "e.xlsx")
    assert result.table["a"].to_pylist() == [1, None]
    assert any("Excel error" in note for note in result.notes)
    workbook(tmp_path / "empty.xlsx", [])
    with pytest.raises(SourceError, match="is empty"):
        read_file(tmp_path / "empty.xlsx")


def test_spss_labels_and_missing_codes(tmp_path: Path) -> None:
    import pyreadstat

    frame = pd.DataFrame(
        {
            "sex": [1.0, 2.0, 9.0, None],
            "zip": ["01234", "NO", "", "5"],
            "pay": [1.5, 2.5, -1.0, -2.0],
            "born": [datetime.date(1990, 1, 2)] * 4,
        }
    )
    pyreadstat.write_sav(
        frame,
        str(tmp_path / "p.sav"),
        column_labels={"sex": "Sex of person"},
        variable_value_labels={"sex": {1: "male", 2: "female", 9: "refused"}},
        missing_ranges={"sex": [9], "pay": [{"lo": -9, "hi": -1}]},
    )
    result = read_file(tmp_path / "p.sav")
    assert result.table["sex"].to_pylist() == [1, 2, None, None]
    assert result.table["zip"].to_pylist() == ["01234", "NO", None, "5"]
    assert result.table["pay"].to_pylist() == [1.5, 2.5, None, None]
    assert result.table["born"].to_pylist() == [datetime.date(1990, 1, 2)] * 4
    assert result.columns["sex"] == Column(
        type="integer",
        label="Sex of person",
        labels={"1": "male", "2": "female", "9": "refused"},
        missing=("9",),
    )
    assert result.columns["pay"].missing == ("-1", "-2")
    named = read_file(tmp_path / "p.sav", Schema(columns={"sex": Column(role="quasi", label="my own")}))
    assert named.columns["sex"].role == "quasi"
    assert named.columns["sex"].label == "my own"
    assert named.columns["sex"].missing == ("9",)


def test_stata_and_sas(tmp_path: Path) -> None:
    import pyreadstat

    pyreadstat.write_dta(
        pd.DataFrame({"x": [1, 2, "a", 4]}),
        str(tmp_path / "p.dta"),
        missing_user_values={"x": ["a"]},
        variable_value_labels={"x": {1: "one"}},
    )
    stata = read_file(tmp_path / "p.dta")
    assert stata.table["x"].to_pylist() == [1, 2, None, 4]
    assert stata.columns["x"].labels == {"1": "one"}
    assert stata.columns["x"].missing == ("a",)
    pyreadstat.write_xport(pd.DataFrame({"x": [1.5, None], "y": ["NO", ""]}), str(tmp_path / "p.xpt"))
    assert read_file(tmp_path / "p.xpt").table.to_pydict() == {"x": [1.5, None], "y": ["NO", None]}


@pytest.mark.parametrize(("ending", "package"), [("sav", "pyreadstat"), ("xlsx", "openpyxl")])
def test_an_absent_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, package: str) -> None:
    (tmp_path / f"p.{ending}").write_bytes(b"anything")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"needs the package '{package}'.*sfumato\[formats\]"):
        read_file(tmp_path / f"p.{ending}")


# --- frames -------------------------------------------------------------------------------------------------


def test_pandas() -> None:
    frame = pd.DataFrame(
        {
            "cat": pd.Categorical(["b", None, "b"], categories=["a", "b"]),
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "gap": [1.0, np.nan, 3.0],
            "when": pd.to_datetime(["2024-01-02", None, "2024-01-02 03:04:05.000006"], format="ISO8601"),
            "mixed": [1, "two", None],
            "bytes or text": [b"a", "b", None],
            "text": ["01234", None, "NO"],
            "flag": pd.array([True, None, False], dtype="boolean"),
            5: [1, 2, 3],
        },
        index=["x", "y", "z"],
    )
    result = from_frame(frame)
    assert result.table.to_pydict() == {
        "cat": ["b", None, "b"],
        "nullable": [1, None, 3],
        "gap": [1.0, None, 3.0],
        "when": [datetime.datetime(2024, 1, 2), None, datetime.datetime(2024, 1, 2, 3, 4, 5, 6)],
        "mixed": ["1", "two", None],
        "bytes or text": ["61", "b", None],
        "text": ["01234", None, "NO"],
        "flag": [True, None, False],
        "5": [1, 2, 3],
    }
    assert any("index" in note for note in result.notes)
    assert any("'mixed' mixes types" in note for note in result.notes)
    assert not any("index" in note for note in from_frame(frame.reset_index(drop=True)).notes)


def test_pandas_with_repeated_and_odd_columns() -> None:
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "a", ("b", "c")])
    assert from_frame(frame).table.to_pylist() == [{"a": 1, "a.2": 2, "b c": 3}]
    odd = pd.DataFrame({"p": pd.period_range("2024-01", periods=2, freq="M"), "i": pd.interval_range(0, 2)})
    assert from_frame(odd).table["p"].to_pylist() == ["2024-01", "2024-02"]


@pytest.mark.parametrize("lazy", [False, True])
def test_polars(lazy: bool) -> None:
    frame = pl.DataFrame(
        {
            "text": ["01234", None],
            "cat": pl.Series(["a", "b"], dtype=pl.Categorical),
            "n": [1, None],
            "day": [datetime.date(2024, 1, 2), None],
        }
    )
    result = from_frame(frame.lazy() if lazy else frame)
    assert result.table.to_pydict() == {
        "text": ["01234", None],
        "cat": ["a", "b"],
        "n": [1, None],
        "day": [datetime.date(2024, 1, 2), None],
    }
    assert result.table["cat"].type == TEXT


def test_arrow_batches_and_readers() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1, 2]})
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch, batch])
    assert from_frame(batch).table.to_pydict() == {"a": [1, 2]}
    assert from_frame(reader).table.to_pydict() == {"a": [1, 2, 1, 2]}


def test_what_is_no_frame() -> None:
    assert not is_frame("people.csv")
    with pytest.raises(SourceError, match="type list is not a table"):
        from_frame([{"a": CANARY}])


def test_dates_that_nobody_can_print_are_refused() -> None:
    table = pa.table({"d": pa.array([10_000_000], pa.int32()).cast(pa.date32()), "n": [1]})
    with pytest.raises(SourceError, match="column 'd' has dates outside the years 1 to 9999"):
        from_frame(table)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4), st.booleans())
@settings(max_examples=examples(50))
def test_a_damaged_file_gives_a_table_or_one_of_our_errors(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], arrow: bool
) -> None:
    file = tmp_path_factory.getbasetemp() / ("flip.arrow" if arrow else "flip.parquet")
    if arrow:
        feather.write_feather(PEOPLE, str(file), compression="uncompressed")
    else:
        pq.write_table(PEOPLE, file)
    content = bytearray(file.read_bytes())
    for place, byte in changes:
        content[place % len(content)] = byte
    file.write_bytes(content)
    try:
        table = read_file(file).table
    except SfumatoError as error:
        assert isinstance(error, SourceError)
    else:
        table.to_pylist()
