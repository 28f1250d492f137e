"""A code for "no value" that is a number is compared by its value in a column of numbers, on every engine alike."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.data.relation import Relation
from sfumato.data.texts.number_codes import without_number_codes
from sfumato.engines.plan import Field, Scan
from sfumato.engines.sql.compile import PhysicalTable, compile_plan
from sfumato.engines.sql.relation import lenient

Values = Callable[..., list[Any]]
_NUMBERS = itertools.count()
_FILES = {
    "csv": ("csv", "memory"),
    "csv-duckdb": ("csv", "duckdb"),
    "parquet": ("parquet", "memory"),
    "duckdb": ("parquet", "duckdb"),
}


@pytest.fixture(
    params=[
        "frame",
        *_FILES,
        "database",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("spark", marks=pytest.mark.spark),
    ]
)
def values(request: pytest.FixtureRequest, tmp_path: Path) -> Values:
    """Puts a column on an engine and reads it as it is described."""

    def opened(
        column: pa.Array, described: dict[str, Any], reading: Callable[[Relation], Relation] = lambda rows: rows
    ) -> list[Any]:
        table = pa.table({"n": list(range(len(column))), "x": column})
        data = _read(request, tmp_path, table, {"dataset": "d", "columns": {"n": {"type": "integer"}, "x": described}})
        rows = [row for batch in reading(data.relation).batches() for row in batch.to_pylist()]
        return [row["x"] for row in sorted(rows, key=lambda row: int(row["n"]))]

    return opened


def _read(request: pytest.FixtureRequest, folder: Path, table: pa.Table, schema: dict[str, Any]) -> sf.Microdata:
    from sfumato.engines.write import write_table

    kind, name = request.param, f"codes{next(_NUMBERS)}"
    if kind == "frame":
        return sf.read(table, schema=schema)
    if kind in _FILES:
        suffix, engine = _FILES[kind]
        path = folder / f"{name}.{suffix}"
        write = pa.csv.write_csv if suffix == "csv" else pq.write_table
        write(table, path)
        return sf.read(path, schema=schema, engine=engine)
    if kind == "spark":
        from sfumato.engines.spark.relation import for_spark, spark_schema

        session = request.getfixturevalue("spark")
        frame = session.createDataFrame(for_spark(table), schema=spark_schema(table)).toDF(*table.column_names)
        return sf.read(frame, schema=schema)
    target = request.getfixturevalue("postgres_url") if kind == "postgres" else folder / f"{name}.duckdb"
    write_table(table, target, table_name=name)
    return sf.read(target, schema=schema, table=name)


@pytest.mark.parametrize("codes", [[-9], ["-9.0", "NA"], ["+2", "1.50", "x", "0", "1e30"]])
@pytest.mark.parametrize("declared", [{}, {"type": "number"}])
def test_floating_point_numbers_that_equal_a_code_are_missing(values: Values, codes: list[Any], declared: dict[str, str]) -> None:
    column = [-9.0, 1.5, 2.0, None, -0.0, 1e30, -9.5, 3.25]
    numbers = {float(code) for code in codes if code not in ("NA", "x")}
    expected = [None if number in numbers else number for number in column]
    assert values(pa.array(column), {**declared, "missing": codes}) == expected


@pytest.mark.parametrize("code", ["-9.0", "+9007199254740993", "-9.5"])
@pytest.mark.parametrize("declared", ["integer", "number"])
def test_whole_numbers_that_equal_a_code_are_missing(values: Values, code: str, declared: str) -> None:
    column = [-9, 9, None, 7] if declared == "number" else [-9, 9, None, 9007199254740993, 9007199254740992]
    number = None if code == "NA" else Decimal(code)
    expected = [None if number is not None and value == number else value for value in column]
    assert values(pa.array(column), {"type": declared, "missing": [code]}) == expected


@pytest.mark.parametrize("declared", ["number", "integer"])
def test_texts_of_numbers_are_compared_as_they_are_read(values: Values, declared: str) -> None:
    cells = ["-9.0", "-9.00", "-9", " -9 ", "-09", "+9", "9", None, "NA"]
    expected = [None, None, None, None, None, 9, 9, None, None]
    assert values(pa.array(cells), {"type": declared, "missing": ["-9", "NA"]}, lenient) == expected


def test_texts_are_compared_by_their_text(values: Values) -> None:
    cells = ["-9.0", "-9", "a"]
    assert values(pa.array(cells), {"type": "string", "missing": ["-9"]}) == ["-9.0", None, "a"]


@pytest.mark.parametrize("values", ["frame", "parquet", "duckdb"], indirect=True)
def test_a_decimal_declared_as_text_is_compared_by_its_value(values: Values) -> None:
    column = pa.array([Decimal("-9.00"), Decimal("1.50"), None], pa.decimal128(5, 2))
    for code in ("-9", "-9.0"):
        assert values(column, {"type": "string", "missing": [code]}) == [None, "1.5", None]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
def test_every_dialect_compares_numbers_with_numbers(dialect: Any) -> None:
    fields = (Field("x", "number", ("-9", "NA")), Field("y", "integer", ("7.0",), stored="string"))
    sql = compile_plan(Scan("rows", fields), dialect, {"rows": PhysicalTable(("t",))}).sql
    assert "IN (CAST('-9.0' AS DOUBLE" in sql and "IN (CAST('7' AS BIGINT" in sql


@pytest.mark.parametrize("arrow", [pa.int8(), pa.int64(), pa.float32(), pa.float64()])
def test_numbers_keep_their_type_without_their_codes(arrow: pa.DataType) -> None:
    array = without_number_codes(pa.array([-9, 0, 100], arrow), ["-9.0", "1e5", "9" * 40])
    assert array.type == arrow and array.to_pylist() == [None, 0, 100]


def test_a_code_that_pandas_wrote_with_a_point_is_not_released(tmp_path: Path) -> None:
    table = pa.table({"a": [-9.0, 1.5, 2.0, 3.0] * 50, "g": ["x", "y"] * 100})
    schema = {
        "dataset": "z",
        "unit": "record",
        "columns": {
            "a": {"type": "number", "role": "quasi", "missing": [-9], "hierarchy": {"intervals": [10, 50]}},
            "g": {"type": "string", "role": "sensitive"},
        },
    }
    cells = "".join(f"{a},{g}\n" for a, g in zip(table["a"].to_pylist(), table["g"].to_pylist(), strict=True))
    (tmp_path / "t.csv").write_text("a,g\n" + cells, encoding="utf-8")
    for source in (table, tmp_path / "t.csv"):
        released = sf.protect(sf.read(source, schema=schema), [sf.KAnonymity(5)]).data["a"].to_pylist()
        assert released.count(None) == 50 and not any(str(value).startswith("-9") for value in released)
