"""A text file that stays on disk is read as it is in memory: no row and no value depends on what DuckDB makes of its form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import SfumatoError, SourceError
from sfumato.engines.duckdb.relation import DuckDBRelation
from sfumato.engines.sql.relation import lenient
from tests.examples import examples


def _rows(path: Path, **options: Any) -> tuple[list[str], list[list[Any]]]:
    data = sf.read(path, **options)
    batches = [batch for batch in data.relation.batches() if batch.num_rows]
    columns = [
        [value for batch in batches for value in batch.column(place).to_pylist()] for place in range(len(data.column_names))
    ]
    return list(data.column_names), columns


def _read(path: Path, **options: Any) -> tuple[list[str], list[list[Any]]] | None:
    """Names and columns; None where the file is refused."""
    try:
        return _rows(path, **options)
    except SfumatoError:
        return None


def _written(folder: Path, content: str | bytes, name: str = "u.csv") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _alike(path: Path, **options: Any) -> tuple[list[str], list[list[Any]]]:
    here, there = _rows(path, **options), _rows(path, engine="duckdb", **options)
    assert there == here
    return here


ODD = {
    "comments": "room,n\n" + "".join(f"{'#' * (i % 2)}{i},{'x' * (i % 2)}{i}\n" for i in range(40)),
    "apostrophes": "room,n\n" + "".join(f"'r{i}','n{i}'\n" for i in range(40)),
    "backslashes": "room,n\n" + "".join(f'"a\\","{i}"\n"b","c\\""d"\n' for i in range(40)),
    "preamble": "a title\n" + "".join(f"r{i}\n" for i in range(40)),
    "other separators": "a;b,c\n" + "".join("x;y;z,1\n" for i in range(40)),
    "one line is long": "room,n\nr0,1\n" + "x" * 3_000_000 + ",2\nr3,3\n",
    "line breaks in cells": 'a,b\r\n"1\nx",2\r\n"",\r\n3,"4\r\n"\r\n',
    "empty lines": "\n  \na,b\n1,2\n\n\n3,4\n\n",
    "empty lines of one column": "\n\na\n1\n\n3\n\n",
    "quotes": 'a,b\n5" pipe,"say ""no"" , now"\nx"y"z,""""\n',
    "a name in quotes": '"a\nx",", "\n1,2\n',
    "no row": "a,b\n",
    "no end of line": "a,b\r1,2\r3,4",
    "repeated names": "a,a,A,,b , c,\n1,2,3,4,5,6,7\n",
    "a byte-order mark": "\ufeff\"a\",b\n1,2\n",
    "words for nothing": "a,b\nNULL,NA\n\\N,None\n",
}  # fmt: skip


@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
def test_what_an_engine_would_guess_is_stated(tmp_path: Path, content: str) -> None:
    path = _written(tmp_path, content)
    names, columns = _alike(path)
    assert _read(path, engine="duckdb", encoding="utf-8") == (names, columns)
    relation = lenient(sf.read(path, engine="duckdb").relation)
    assert relation.count() == len(columns[0])


def test_names_are_those_of_the_reader_of_this_process(tmp_path: Path) -> None:
    names, columns = _alike(_written(tmp_path, ODD["repeated names"]))
    assert names == ["a", "a.2", "A", "column 4", "b ", " c", "column 7"]
    assert columns == [[1], [2], [3], [4], [5], [6], [7]]
    assert _alike(_written(tmp_path, "\ufeffa,b\n1,2\n"), encoding="utf-8")[0] == ["a", "b"]


@pytest.mark.parametrize("folder", ["v=9", "ward=ONKOLOGIE-Meier"])
def test_names_of_folders_are_no_columns(tmp_path: Path, folder: str) -> None:
    assert _alike(_written(tmp_path, "v,w\n1,2\n", f"{folder}/u.csv")) == (["v", "w"], [[1], [2]])


def test_the_name_of_a_folder_is_no_pattern(tmp_path: Path) -> None:
    _written(tmp_path, "a\n9\n", "x1/u.csv")
    with pytest.raises(SourceError, match="rename the file or folder"):
        DuckDBRelation(_written(tmp_path, "a\n1\n", "x[1]/u.csv")).count()


@pytest.mark.parametrize(("content", "kept"), [("a,b\n" + "1,2\n" * 40 + "3\n", 40), ("a\n1,2\n3\n", 1)])
def test_a_line_of_another_length_is_refused_or_left_out_and_decides_nothing_else(
    tmp_path: Path, content: str, kept: int
) -> None:
    path = _written(tmp_path, content)
    assert _read(path, engine="duckdb") is None is _read(path)
    names, columns = _rows(
        path, engine="duckdb", unreadable="missing", schema={"dataset": "d", "columns": {"a": {"type": "string"}}}
    )
    assert names == content.partition("\n")[0].split(",") and len(columns[0]) == kept


LONGER = {
    "one": ("a,b\n1,2\n3,4,\n5,6\n", "line \\(cells\\): 3 \\(3\\)"),
    "the last, without an end": ("a,b\r\n1,\r\n3,4,", "3 \\(3\\)"),
    "one column": ("a\n1,\n", "2 \\(2\\)"),
    "in quotes": ('a,b\n"1,5",2\n"x\ny","b,",\n', "3 \\(3\\)"),
    "far down": ("a,b\n" + "1,\n" * 1_500_000 + "1,2,,\n", "1,500,002 \\(4\\)"),
}


@pytest.mark.parametrize("name", LONGER)
def test_a_separator_too_many_at_the_end_of_a_line_is_refused_everywhere_by_its_number(tmp_path: Path, name: str) -> None:
    content, told = LONGER[name]
    path = _written(tmp_path, content)
    for engine in ({}, {"engine": "duckdb"}):
        with pytest.raises(SourceError, match=f"1 line does not have . cells? like the line of column names; .*{told}"):
            _rows(path, **engine)


def test_cells_in_quotes_may_end_with_the_separator(tmp_path: Path) -> None:
    assert _alike(_written(tmp_path, 'a,b\n"1,2",3\n",\n,",\n'))[1][0] == ["1,2", ",\n,"]


REFUSED = {
    "zero bytes": ("a,b\n1\0,2\n", "zero bytes"),
    "a zero byte far down": ("a,b\n" + "1,2\n" * 80_000 + "\0,2\n", "zero bytes"),
    "lines of several kinds": ("a,b\r\n1,2\n3,4\r5,6\n", "ends its lines in several ways"),
    "a blank before a quote": ('a,b\nx, "y"\n', "blanks before the opening quote"),
    "a blank before an empty cell": ('a,b\nx, ""\n', "blanks before the opening quote"),
    "a blank behind a quote": ('a,b\n"x" ,y\n', "behind the closing quote"),
    "a letter behind a quote": ('a,b\n""x,y\n', "behind the closing quote"),
    "a quote that stays open": ('a,b\n1,2\n"x,y\n3,4\n', "never closed"),
    "a very long line": ("a,b\n" + "x" * 17_000_000 + ",1\n", "a line of more than 16 MiB"),
    "Latin-1 that is none": (b"a,b\n\x80,2\n", "no text"),
}


@pytest.mark.parametrize(("content", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_form_that_duckdb_reads_otherwise_is_refused(tmp_path: Path, content: str | bytes, reason: str) -> None:
    path = _written(tmp_path, content)
    latin = {"encoding": "latin-1"} if isinstance(content, bytes) else {}
    for unreadable in ("refuse", "missing"):
        with pytest.raises(SourceError, match="is not text in Latin-1" if latin else reason):
            _rows(path, engine="duckdb", unreadable=unreadable, **latin)


CODES = {
    "x": ({}, ["-9,99", "-9,990", "9.999", "9999", "9,999", "1,5", "", "k.A.", "7"], ["-9,99", "9.999", "k.A.", 7]),
    "half": ({"type": "number"}, ["-9,5", "-9,50", "-9,05", " -9,5 ", "1.000,5"], ["-9,5"]),
    "point": ({"type": "number"}, ["9,5", "1.500,0", "1500", "15"], ["9.5", "1.5"]),
    "whole": ({"type": "integer"}, ["9.999", "9999", "9", "10"], [9999, "1.0"]),
    "day": ({"type": "date"}, ["31.12.9999", "01.02.2020", "9999-12-31", "2020-02-01"], ["31.12.9999", "2020-02-01"]),
    "any day": ({}, ["31.12.9999", "01.02.2020", "k.A."], ["31.12.9999", "k.A."]),
    "text": ({"type": "string"}, ["9.999", "9999", "9,999"], ["9.999"]),
}
MISSING = {
    "x": {"-9,99", "-9,990", "9.999", "9999", "", "k.A.", "7"}, "half": {"-9,5", "-9,50", " -9,5 "}, "point": set(),
    "whole": {"9.999", "9999"}, "day": {"31.12.9999", "2020-02-01"}, "any day": {"31.12.9999", "k.A."}, "text": {"9.999"},
}  # fmt: skip


@pytest.mark.parametrize("case", CODES)
def test_codes_are_written_as_the_values_of_their_table(tmp_path: Path, case: str) -> None:
    described, cells, codes = CODES[case]
    ways = {"separator": ";", "decimal": ",", "thousands": ".", "date_format": "%d.%m.%Y"}
    path = _written(tmp_path, "n;v\n" + "".join(f"{n};{cell}\n" for n, cell in enumerate(cells)))
    for schema in (
        {"dataset": "d", "read": ways, "columns": {"v": {**described, "missing": codes}}},
        {"dataset": "d", "read": {**ways, "missing": codes}, "columns": {"v": described}},
    ):
        values = _alike(path, schema=schema)[1][1]
        assert {cell for cell, value in zip(cells, values, strict=True) if value is None} == MISSING[case]
    frame = pa.table({"n": range(len(cells)), "v": cells})
    read = sf.read(frame, {"dataset": "d", "read": {**ways, "missing": codes}, "columns": {"v": described}}).table().column("v")
    if described:
        assert read.to_pylist() == values


_CELL = st.text(alphabet="ab 1#'\"\\;|\t", max_size=4)
_QUOTED = st.text(alphabet="a ,#'\"\\\n\r;", max_size=4).map(lambda text: '"' + text.replace('"', '""') + '"')
_PLAIN = st.text(alphabet="ab 1#'\\-", max_size=4)


@st.composite
def _files(draw: st.DrawFn) -> tuple[str, str]:
    """A text file in some dialect and its separator; most are well-formed, and some lines end with a separator too many."""
    separator, end = draw(st.sampled_from(",;\t|")), draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    columns = draw(st.integers(1, 3))
    cell = st.one_of(_PLAIN, _PLAIN, _QUOTED, _CELL) if draw(st.booleans()) else st.one_of(_PLAIN, _QUOTED)
    plain = cell.map(lambda text: text if text.startswith('"') else text.replace(separator, ""))
    line = st.lists(plain, min_size=columns, max_size=columns).map(separator.join)
    lines = draw(st.lists(line, min_size=1, max_size=6))
    if draw(st.integers(0, 3)) == 0:
        place = draw(st.integers(0, len(lines) - 1))
        lines[place] += separator * draw(st.integers(1, 2))
    header = separator.join(draw(st.lists(st.sampled_from(["a", "A", "b", "", " x", '"q"']), min_size=columns, max_size=columns)))
    return end * draw(st.integers(0, 1)) + end.join([header, *lines]) + end * draw(st.integers(0, 2)), separator


@settings(
    max_examples=examples(40),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(file=_files())
@example(file=("a,b\n#1,'2'\n", ","))
@example(file=('a,b\n"\'x",', ","))
@example(file=('a\n1\n""\n', ","))
@example(file=('a,b\n1,"x\n",\n', ","))
@example(file=("a\r\n1,\r\n", ","))
def test_a_file_is_read_alike_or_refused(tmp_path: Path, file: tuple[str, str]) -> None:
    content, separator = file
    path = _written(tmp_path, content)
    here = _read(path, separator=separator)
    there = _read(path, separator=separator, engine="duckdb")
    assert there is None or there == here
