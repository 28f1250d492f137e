"""Text files: what is detected, what stays text, and what comes out of files that are damaged."""

from __future__ import annotations

import datetime
import gzip
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError, SfumatoError, SourceError
from sfumato.data.readers.files import read_file
from sfumato.data.readers.read_result import ReadResult
from sfumato.data.schema import Column, Schema
from tests.examples import examples

CANARY = "canary-7f3a"


def read(tmp_path: Path, content: str | bytes, schema: Schema | None = None, **options: object) -> ReadResult:
    file = tmp_path / "table.csv"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_file(file, schema, **options)  # type: ignore[arg-type]


def column(tmp_path: Path, *cells: str) -> ReadResult:
    return read(tmp_path, "x,y\n" + "".join(f"{cell},1\n" for cell in cells))


def schema_for(**types: str) -> Schema:
    return Schema.parse({"columns": {name: {"type": kind} for name, kind in types.items()}})


# --- types --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["1", "-20", "0"], "integer", [1, -20, 0]),
        (["1", "", "3"], "integer", [1, None, 3]),
        (["1", "2.5", ".5", "1e3"], "number", [1.0, 2.5, 0.5, 1000.0]),
        (["true", "false", "true"], "boolean", [True, False, True]),
        (["2024-02-29", "0001-01-01"], "date", [datetime.date(2024, 2, 29), datetime.date(1, 1, 1)]),
        (
            ["2024-01-01T10:30:00", "2024-01-01 10:30"],
            "datetime",
            [datetime.datetime(2024, 1, 1, 10, 30)] * 2,
        ),
        (["2024-01-01T10:30:00.25"], "datetime", [datetime.datetime(2024, 1, 1, 10, 30, 0, 250_000)]),
        (["2024-01-01T10:30:00Z"], "datetime", [datetime.datetime(2024, 1, 1, 10, 30, tzinfo=datetime.UTC)]),
    ],
)
def test_canonical_values_get_their_type(tmp_path: Path, cells: list[str], kind: str, values: list[object]) -> None:
    result = column(tmp_path, *cells)
    assert result.columns["x"].type == kind
    assert result.table["x"].to_pylist() == values


@pytest.mark.parametrize(
    "cells",
    [
        ["01234", "10115"],
        ["NO", "SE", "DE"],
        ["yes", "no"],
        ["True", "False"],
        ["+5", "6"],
        ["1", "two"],
        [" 1", "2"],
        ["2024-02-30", "2024-02-28"],
        ["31.12.2024"],
        ["0000-01-01"],
        ["12345678901234567890", "1"],
        ["12345678901234567", "0.5"],
        ["1e999", "1"],
        ["NaN", "1.5"],
        ["inf", "1.5"],
        ["2024-01-01T10:30:00+02:00", "2024-01-01T10:30:00Z"],
        ["1_000"],
        ["٣", "٤"],
    ],
)
def test_everything_else_stays_the_text_it_is(tmp_path: Path, cells: list[str]) -> None:
    result = column(tmp_path, *cells)
    assert result.columns["x"].type == "string"
    assert result.table["x"].to_pylist() == cells
    assert result.table["x"].type == pa.dictionary(pa.int32(), pa.string())


def test_a_column_that_turns_into_text_late_is_text_throughout(tmp_path: Path) -> None:
    cells = [str(i) for i in range(5000)] + ["oops"]
    assert column(tmp_path, *cells).table["x"].to_pylist() == cells


def test_a_long_column_of_different_numbers_keeps_its_missing_cells(tmp_path: Path) -> None:
    cells = ["" if i % 7 == 0 else str(i) for i in range(5000)]
    assert column(tmp_path, *cells).table["x"].to_pylist() == [int(c) if c else None for c in cells]


def test_mixed_columns_are_said(tmp_path: Path) -> None:
    notes = column(tmp_path, "1", "2", "3", "many").notes
    assert any("'x' mixes numbers and text (1 of 4 values are no numbers)" in note for note in notes)
    assert any("'x' has digits with leading zeros" in note for note in column(tmp_path, "01234", "10115").notes)


def test_a_missing_cell_is_empty_and_an_empty_text_is_quoted(tmp_path: Path) -> None:
    assert read(tmp_path, 'x,y\n,1\n"",2\na,3\n').table["x"].to_pylist() == [None, "", "a"]
    quoted = read(tmp_path, '"x","y"\n"1",""\n"2","3"\n')
    assert quoted.table["y"].to_pylist() == [None, 3]
    assert any("empty quoted cells" in note for note in quoted.notes)


def test_na_is_a_value_unless_declared(tmp_path: Path) -> None:
    plain = read(tmp_path, "x,y\n1,1\nNA,2\n3,?\n")
    assert plain.table["x"].to_pylist() == ["1", "NA", "3"]
    assert any("'x': 1 cells read 'NA'" in note and "would be integer" in note for note in plain.notes)
    schema = Schema(columns={"x": Column(missing=("NA",)), "y": Column(missing=("?", "2"))})
    declared = read(tmp_path, "x,y\n1,1\nNA,2\n3,?\n", schema)
    assert declared.table.to_pydict() == {"x": [1, None, 3], "y": [1, None, None]}
    assert declared.columns["x"].missing == ("NA",)


def test_declared_types_win(tmp_path: Path) -> None:
    schema = schema_for(zip="string", age="number", born="datetime", left="date", ok="boolean", n="integer")
    content = "zip,age,born,left,ok,n\n1,1,2024-01-01,2024-01-01 00:00,yes,007\n2,+2.5,2024-01-01T05:00,2024-01-02,NO,8.0\n"
    table = read(tmp_path, content, schema).table
    assert table["zip"].to_pylist() == ["1", "2"]
    assert table["age"].to_pylist() == [1.0, 2.5]
    assert table["born"].to_pylist() == [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, 5)]
    assert table["left"].to_pylist() == [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]
    assert table["ok"].to_pylist() == [True, False]
    assert table["n"].to_pylist() == [7, 8]


def test_all_conversion_faults_are_counted_in_one_error_without_values(tmp_path: Path) -> None:
    content = f"a,b,c\n1,2024-01-01,1\n{CANARY},{CANARY},2\n{CANARY}2,x,3\n"
    with pytest.raises(SourceError) as caught:
        read(tmp_path, content, schema_for(a="integer", b="date", c="integer"))
    message = str(caught.value)
    assert "column 'a': 2 of 3 values cannot be read as an integer (first in record 2)" in message
    assert "column 'b': 2 of 3 values cannot be read as a date" in message
    assert "column 'c'" not in message
    assert CANARY not in message
    assert caught.value.__cause__ is None


def test_as_text_changes_nothing(tmp_path: Path) -> None:
    result = read(tmp_path, "x,y\n1.50,true\n,2024-01-01\n", schema_for(x="number"), as_text=True)
    assert result.table.to_pydict() == {"x": ["1.50", None], "y": ["true", "2024-01-01"]}


def test_decimal_commas_and_spaces_on_request(tmp_path: Path) -> None:
    content = "x;y\n1,5; a\n-2,25;b \n"
    plain = read(tmp_path, content)
    assert plain.table["x"].to_pylist() == ["1,5", "-2,25"]
    assert any("decimal comma" in note for note in plain.notes)
    asked = read(tmp_path, content, decimal=",", strip=True)
    assert asked.table.to_pydict() == {"x": [1.5, -2.25], "y": ["a", "b"]}


# --- separators, encodings, names ---------------------------------------------------------------------------


@pytest.mark.parametrize(("separator", "name"), [(",", "comma"), (";", "semicolon"), ("\t", "tab"), ("|", "bar")])
def test_the_separator_is_found_and_said(tmp_path: Path, separator: str, name: str) -> None:
    rows = [["marital-status", "a b"], ["never, ever; or|not", "1"], ["x", "2"]]
    content = "".join(separator.join(f'"{cell}"' for cell in row) + "\n" for row in rows)
    result = read(tmp_path, content)
    assert result.table["marital-status"].to_pylist() == ["never, ever; or|not", "x"]
    assert f"separator {name}" in result.notes[0]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_the_encoding_is_found_and_said(tmp_path: Path, encoding: str) -> None:
    result = read(
        tmp_path,
        "größe,name\n1,Zoë\n2,Łukasz\n".replace("Ł", "L" if encoding == "cp1252" else "Ł").encode(encoding),
    )
    assert result.table["größe"].to_pylist() == [1, 2]
    assert result.table["name"].to_pylist()[0] == "Zoë"
    assert f"encoding {encoding}" in result.notes[0]


def test_latin_1_is_the_last_resort(tmp_path: Path) -> None:
    result = read(tmp_path, b"x,y\n\xe9\x81,1\n")
    assert result.table["x"].to_pylist() == ["é\x81"]


def test_a_named_encoding_that_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not text in the encoding ascii"):
        read(tmp_path, "é,b\n1,2\n", encoding="ascii")
    with pytest.raises(ParameterError, match="no encoding called"):
        read(tmp_path, "a,b\n1,2\n", encoding="klingon")


@pytest.mark.parametrize(
    "encoding",
    ["", " ", "unicode_escape", "raw_unicode_escape", "Unicode-Escape", "idna", "punycode", "rot13", "base64", "zlib", "\0"],
)
@pytest.mark.parametrize("unreadable", ["refuse", "missing"])
def test_what_rewrites_cells_or_leaves_the_choice_to_the_records_is_no_encoding(
    tmp_path: Path, encoding: str, unreadable: Any
) -> None:
    with pytest.raises(ParameterError, match="no encoding called"):
        read(tmp_path, "name\nZoë\n".encode("cp1252"), encoding=encoding, unreadable=unreadable)


@pytest.mark.parametrize("separator", ["", "ab", '"', "\n"])
def test_a_separator_is_one_character(tmp_path: Path, separator: str) -> None:
    with pytest.raises(ParameterError):
        read(tmp_path, "a,b\n", separator=separator)


def test_repeated_and_empty_names_are_numbered_and_said(tmp_path: Path) -> None:
    result = read(tmp_path, "a,a,,a.2,a\n1,2,3,4,5\n")
    assert result.table.column_names == ["a", "a.3", "column 3", "a.2", "a.4"]
    assert result.table.to_pylist() == [{"a": 1, "a.3": 2, "column 3": 3, "a.2": 4, "a.4": 5}]
    assert sum("repeats the name" in note or "has no name" in note for note in result.notes) == 3


def test_unicode_is_not_normalised(tmp_path: Path) -> None:
    composed, decomposed = "é", "e\u0301"
    result = read(tmp_path, f"{composed},{decomposed}\n{decomposed},{composed}\n")
    assert result.table.to_pylist() == [{composed: decomposed, decomposed: composed}]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_any_line_end_and_line_breaks_in_cells(tmp_path: Path, line_end: str) -> None:
    content = line_end.join(["x,y", '"a\nb",1', '"c ""d""",2', ""])
    assert read(tmp_path, content).table.to_pydict() == {"x": ["a\nb", 'c "d"'], "y": [1, 2]}


@pytest.mark.parametrize("content", ["x,y", "x,y\n", "\n\nx,y\n"])
def test_a_header_alone_is_a_table_without_rows(tmp_path: Path, content: str) -> None:
    table = read(tmp_path, content).table
    assert table.column_names == ["x", "y"]
    assert table.num_rows == 0


def test_in_a_single_column_an_empty_line_is_a_missing_value(tmp_path: Path) -> None:
    assert read(tmp_path, "x\na\n\nb\n").table["x"].to_pylist() == ["a", None, "b"]


def test_compressed_text(tmp_path: Path) -> None:
    file = tmp_path / "table.csv.gz"
    file.write_bytes(gzip.compress(b"x;y\n01;2\n"))
    assert read_file(file).table.to_pydict() == {"x": ["01"], "y": [2]}


def test_a_record_longer_than_a_block(tmp_path: Path) -> None:
    long = "z" * (17 << 20)
    assert read(tmp_path, f"x,y\na,1\n{long},2\n").table["x"].to_pylist()[1] == long


@pytest.mark.data
def test_adult(data_dir: Path) -> None:
    result = read_file(data_dir / "adult" / "adult.csv")
    assert result.table.num_rows == 30_162
    assert result.columns["age"].type == "integer"
    assert result.notes[0] == "separator semicolon, encoding utf-8"


# --- damage -------------------------------------------------------------------------------------------------


def test_ragged_lines_are_named_without_their_contents(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read(tmp_path, f"a,b\n1,2\n{CANARY}\n3,4\n5,{CANARY},7\n")
    message = str(caught.value)
    assert "2 lines do not have 2 cells" in message
    assert "3 (1), 5 (3)" in message
    assert CANARY not in message


def test_threads_of_the_parser_hold_no_python_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that lets go of it while the interpreter ends would abort the process."""
    calls = []
    parse = pa_csv.read_csv

    def watched(*args: Any, **options: Any) -> Any:
        calls.append((options["read_options"].use_threads, options["parse_options"].invalid_row_handler))
        return parse(*args, **options)

    monkeypatch.setattr("sfumato.data.readers.csv_files.pa_csv.read_csv", watched)
    with pytest.raises(SourceError, match="1 line does not have 2 cells"):
        read(tmp_path, "a,b\n1,2\n1,2,3\n")
    assert [threads for threads, _ in calls] == [True, False]
    assert [handler is None for _, handler in calls] == [True, False]


def test_a_file_that_others_ask_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """Neither which line nor how many: whoever asks learns nothing about a line."""
    told = set()
    for content in (b"a,b\n1,2\n1,2,3\n", b"a,b\n1,2\n1\n1\n", b'a,b\n1,"2\n', b"a,b\n1,\xff\n", b"a,b\n1,\0\n"):
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(SourceError) as caught:
            read_file(tmp_path / "t.csv", unreadable="missing")
        told.add(str(caught.value).replace("UTF-8", ""))
        assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert len(told) == 1 and not re.search(r"[0-9]", told.pop().replace(str(tmp_path), ""))


def test_where_others_ask_the_names_of_columns_decide_on_the_separator(tmp_path: Path) -> None:
    for cells in ("1;2", "1;2,3,4,5,6"):
        (tmp_path / "t.csv").write_text("a;b\n" + f"{cells}\n" * 5)
        assert read_file(tmp_path / "t.csv", unreadable="missing").table.column_names == ["a", "b"]


def test_a_quote_that_is_never_closed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="starts in line 3 is never closed"):
        read(tmp_path, 'a,b\n1,2\n"3,4\n5,6\n')


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"\x00\x01\x02\x03abc", "not a text file"),
        (b"PAR1\x00\x00\x00", "not a text file"),
        (b"\xff\xfea", "not text in the encoding"),
    ],
)
def test_files_that_are_no_table(tmp_path: Path, content: bytes, complaint: str) -> None:
    with pytest.raises(SourceError, match=complaint):
        read(tmp_path, content)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is a folder"):
        read_file(tmp_path)
    with pytest.raises(SourceError, match="there is no file"):
        read_file(tmp_path / "absent.csv")
    with pytest.raises(SourceError, match="a character that no file name can have"):
        read_file("zero\0byte.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    file = tmp_path / "closed.csv"
    file.write_text("a,b\n1,2\n")
    file.chmod(0)
    with pytest.raises(SourceError, match="permission denied"):
        read_file(file)


@given(st.binary(max_size=200))
@settings(max_examples=examples(100))
def test_any_bytes_give_a_table_or_one_of_our_errors(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    check_total(tmp_path_factory, content)


@given(st.text('abc0123,;\t|"\r\n.-é \ufeff', max_size=120))
@settings(max_examples=examples(130))
def test_any_text_gives_a_table_or_one_of_our_errors(tmp_path_factory: pytest.TempPathFactory, content: str) -> None:
    check_total(tmp_path_factory, content.encode())


def check_total(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzz.csv"
    file.write_bytes(content)
    try:
        table = read_file(file).table
    except SfumatoError as error:
        assert isinstance(error, SourceError)
        return
    table.validate(full=True)
    assert len(set(table.column_names)) == table.num_columns > 0
