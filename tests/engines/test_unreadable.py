"""A cell that cannot be read as its declared type is missing on every engine, and never a failure."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError, SourceError
from sfumato.data.writers import write_file
from sfumato.engines.duckdb.relation import DuckDBRelation
from sfumato.engines.plan import Field, Scan
from sfumato.engines.sql.compile import PhysicalTable, compile_plan
from sfumato.engines.sql.relation import lenient

_NUMBERS = itertools.count()

#: For each type a text that is readable everywhere, its value, and texts that nobody can read as that type.
TEXTS: dict[str, tuple[str, Any, list[str]]] = {
    "number": ("1", 1.0, ["x", "", " ", "--1", "1,5", "e5", "0x1g", "NaN", "nan", "12 m", "é", "\u0661"]),
    "integer": ("1", 1, ["x", "", "--1", "1e400", "9" * 24, "-" + "9" * 24, "infinity", "NaN", "1,5", "9223372036854775808"]),
    "date": ("2024-01-01", datetime.date(2024, 1, 1), ["x", "", "2024-02-30", "2024-13-01", "2023-02-29", "01.02.2024"]),
    "datetime": ("2024-01-01 10:00:00", datetime.datetime(2024, 1, 1, 10), ["x", "", "2024-02-30", "2024-01-01 25:00:00"]),
    "boolean": ("true", True, ["x", "", "2", "maybe", "wahr", "1e400", "NaN"]),
}
#: Texts that some engines read and others do not: whatever they mean, they are no failure.
ODD = ["1e400", "-1e400", "1e-400", "inf", "infinity", "-Infinity", "now", "today", "epoch", "0000-01-01", "10000-01-01", " 1 "]
ODD += ["1.5", "1d", "1f", "0x10", "t", "yes", "2024", "2024-1-1", "+2024-01-01", "2024-01-01T10:00:00Z", "10:00", "1_000"]

Opened = Callable[[pa.Table, dict[str, Any]], Any]


def _file(table: pa.Table, schema: dict[str, Any], folder: Path) -> Any:
    path = folder / f"texts{next(_NUMBERS)}.parquet"
    pq.write_table(table, path)
    return sf.read(path, schema=schema, engine="duckdb").relation


def _postgres(table: pa.Table, schema: dict[str, Any], url: str) -> Any:
    from sfumato.engines.write import write_table

    name = f"unreadable{next(_NUMBERS)}"
    write_table(table, url, table_name=name)
    return sf.read(url, schema=schema, table=name).relation


def _spark(table: pa.Table, schema: dict[str, Any], session: Any) -> Any:
    from sfumato.engines.spark.relation import for_spark, spark_schema

    frame = session.createDataFrame(for_spark(table), schema=spark_schema(table)).toDF(*table.column_names)
    return sf.read(frame, schema=schema).relation


def _read_here(table: pa.Table, schema: dict[str, Any], folder: Path, kind: str) -> Any:
    source: Any = table
    if kind != "frame":
        source = folder / f"texts{next(_NUMBERS)}.{kind}"
        write_file(table, source)
    return sf.read(source, schema=schema, unreadable="missing").relation


@pytest.fixture(
    params=[
        "csv",
        "parquet",
        "frame",
        "duckdb",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("spark", marks=pytest.mark.spark),
    ]
)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Puts texts on an engine and returns them as they are declared, read leniently."""
    if request.param in ("csv", "parquet", "frame"):
        return lambda table, schema: _read_here(table, schema, tmp_path, request.param)
    if request.param == "duckdb":
        return lambda table, schema: lenient(_file(table, schema, tmp_path))
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return lambda table, schema: lenient(_postgres(table, schema, url))
    session = request.getfixturevalue("spark")
    return lambda table, schema: lenient(_spark(table, schema, session))


def _values(opened: Opened, cells: Sequence[str] | pa.Array, declared: str) -> list[Any]:
    schema = {"dataset": "d", "columns": {"n": {"type": "integer"}, "x": {"type": declared}}}
    relation = opened(pa.table({"n": list(range(len(cells))), "x": cells}), schema)
    rows = [row for batch in relation.batches() for row in batch.to_pylist()]
    return [row["x"] for row in sorted(rows, key=lambda row: int(row["n"]))]


@pytest.mark.parametrize("declared", TEXTS)
def test_what_cannot_be_read_is_missing(opened: Opened, declared: str) -> None:
    readable, value, unreadable = TEXTS[declared]
    values = _values(opened, [readable, *unreadable, *ODD, readable], declared)
    assert values[0] == values[-1] == value
    assert values[1 : 1 + len(unreadable)] == [None] * len(unreadable)


#: Both ends of the calendar, to the last moment of the last day.
ENDS: dict[str, list[Any]] = {
    "date": [datetime.date.min, datetime.date.max],
    "datetime": [
        datetime.datetime.min,
        datetime.datetime(1, 1, 1, 0, 0, 1),
        datetime.datetime(9999, 12, 31),
        datetime.datetime(9999, 12, 31, 0, 0, 1),
        datetime.datetime(9999, 12, 31, 23, 59, 59),
        datetime.datetime.max,
    ],
}


@pytest.mark.parametrize("declared", ENDS)
def test_the_first_and_the_last_day_of_the_calendar_are_read_whole(opened: Opened, declared: str) -> None:
    assert _values(opened, [str(value) for value in ENDS[declared]], declared) == ENDS[declared]


@pytest.mark.parametrize(("declared", "given"), [("date", pa.date32()), ("datetime", pa.timestamp("us"))])
def test_stored_moments_at_both_ends_of_the_calendar_are_read_whole(opened: Opened, declared: str, given: pa.DataType) -> None:
    assert _values(opened, pa.array(ENDS[declared], given), declared) == ENDS[declared]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
def test_an_instant_of_the_last_day_is_inside_the_calendar(dialect: Any) -> None:
    scan = Scan("rows", (Field("x", "instant", lenient=True),))
    sql = compile_plan(scan, dialect, {"rows": PhysicalTable(("t",))}).sql
    assert "'9999-12-31 23:59:59.999999+00:00'" in sql and "'9999-12-31'" not in sql


def test_an_instant_of_the_last_day_is_read(tmp_path: Path) -> None:
    ends = [value.replace(tzinfo=datetime.UTC) for value in ENDS["datetime"]]
    pq.write_table(pa.table({"x": pa.array(ends, pa.timestamp("us", tz="UTC"))}), tmp_path / "ends.parquet")
    relation = lenient(DuckDBRelation(tmp_path / "ends.parquet"))
    assert [value.value for batch in relation.batches() for value in batch["x"]] == pa.array(ends).cast(pa.int64()).to_pylist()


@pytest.mark.parametrize("declared", TEXTS)
def test_spark_is_asked_without_a_cast_that_fails(declared: Any) -> None:
    kinds = ("integer", "string") if declared == "integer" else ("string",)
    for missing, strict in itertools.product(((), ("n/a",)), (True, False)):
        for stored in kinds:
            field = Field("x", declared, missing, stored=None if stored == declared else stored, lenient=True, strict=strict)
            sql = compile_plan(Scan("rows", (field,)), "spark", {"rows": PhysicalTable(("t",))}).sql
            assert ("TRY_CAST(" in sql) == (declared != "boolean")  # which is one of some words
            plain = re.findall(r"(?<!TRY_)CAST\((?!'|TRY_CAST)[^()]* AS (\w+)", sql)
            assert set(plain) <= {"STRING"}, sql  # any value has a text


@pytest.mark.parametrize("declared", TEXTS)
def test_no_cell_decides_how_others_are_read(tmp_path: Path, declared: str) -> None:
    """Texts of several forms, with and without one that is of another form: the others stay as they are, and so does the type."""
    forms = {"datetime": ["2024-01-01T10:00:00Z", "2024-01-01T10:00:00+00:00"], "boolean": ["true", "false"]}
    texts = forms.get(declared, [TEXTS[declared][0]] * 3)
    schema = {"dataset": "d", "columns": {"x": {"type": declared}}}
    types, values = set(), set()
    for extra in ([], *([text] for text in (*TEXTS[declared][2], *ODD))):
        relation = _read_here(pa.table({"x": [*texts, *extra]}), schema, tmp_path, "csv")
        column = pa.Table.from_batches(list(relation.batches()))["x"]
        types.add(str(relation.schema().field("x").type))
        values.add(repr(column.to_pylist()[: len(texts)]))
    assert len(types) == len(values) == 1


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_dates_that_no_calendar_has_are_missing(unit: str) -> None:
    far = pa.array([0, 2**40 if unit == "s" else 2**60, None, -(2**62)], pa.int64())
    table = pa.table(
        {"t": far.cast(pa.timestamp(unit)), "d": pa.array([0, 2**31 - 1, None, -(2**31)], pa.int32()).cast(pa.date32())}
    )
    table = table.append_column("m", pa.array([0, 2**60, None, -(2**62)], pa.int64()).cast(pa.date64()))
    schema = {"dataset": "d", "columns": {"t": {"type": "datetime"}, "d": {"type": "date"}, "m": {"type": "date"}}}
    with pytest.raises(SourceError):
        sf.read(table, schema=schema)
    read = sf.read(table, schema=schema, unreadable="missing").table()
    assert read["t"].to_pylist() == [datetime.datetime(1970, 1, 1), None, None, None]
    assert read["d"].to_pylist() == read["m"].to_pylist() == [datetime.date(1970, 1, 1), None, None, None]


def test_a_number_too_large_or_with_a_fraction_is_missing_as_an_integer() -> None:
    table = pa.table({"u": pa.array([1, 2**64 - 1], pa.uint64()), "f": [1.0, 1.5]})
    schema = {"dataset": "d", "columns": {"u": {"type": "integer"}, "f": {"type": "integer"}}}
    read = sf.read(table, schema=schema, unreadable="missing").table()
    assert read.to_pydict() == {"u": [1, None], "f": [1, None]}


def test_a_database_brought_here_reads_the_same_way(tmp_path: Path) -> None:
    from sfumato.engines.write import write_table

    write_table(pa.table({"x": ["1", "x"]}), tmp_path / "d.duckdb", table_name="t")
    schema = {"dataset": "d", "columns": {"x": {"type": "integer"}}}
    for engine in (None, "memory"):
        read = sf.read(tmp_path / "d.duckdb", schema=schema, table="t", engine=engine, unreadable="missing")  # type: ignore[arg-type]
        assert read.table()["x"].to_pylist() == [1, None]
    with pytest.raises(SourceError):
        sf.read(tmp_path / "d.duckdb", schema=schema, table="t", engine="memory")
    with pytest.raises(ParameterError):
        sf.read(tmp_path / "d.duckdb", schema=schema, table="t", unreadable="ignore")  # type: ignore[arg-type]
