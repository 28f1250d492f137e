"""The unit column keeps every digit on every engine: two people never become one, and one person never two."""

from __future__ import annotations

import itertools
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import SchemaError
from sfumato.data.texts.decimals import exact_text, plain_text
from sfumato.engines.distinct_units import distinct_units
from sfumato.engines.memory import MemoryRelation

_NUMBERS = itertools.count()
ENGINES = [
    "memory",
    "parquet",
    "duckdb",
    pytest.param("postgres", marks=pytest.mark.postgres),
    pytest.param("spark", marks=pytest.mark.spark),
]
SCHEMA = {
    "dataset": "visits",
    "columns": {
        "id": {"role": "unit", "type": "number"},
        "x": {"type": "string", "domain": ["a", "b"], "source": "declared"},
    },
}
#: Neighbouring identifiers that are one floating-point number, and as many digits behind the point.
LONG = {
    (20, 0): ("1234567890123456701", "1234567890123456702"),
    (38, 0): ("12345678901234567890123456789012345671", "12345678901234567890123456789012345672"),
    (22, 2): ("12345678901234567890.01", "12345678901234567890.02"),
    (25, 12): ("0.000000000001", "1234567890123.000000000001"),
    (18, 0): ("123456789012345671", "123456789012345672"),
}


def people(digits: tuple[int, int]) -> pa.Table:
    """The first has one row, the second two, nobody one."""
    first, second = (Decimal(text) for text in LONG[digits])
    ids = pa.array([first, second, second, None], pa.decimal128(*digits))
    return pa.table({"id": ids, "x": ["a", "b", "b", "a"]})


def _stored(given: pa.DataType, decimal: str, text: str) -> str:
    return f"{decimal}({given.precision}, {given.scale})" if pa.types.is_decimal(given) else text


def opened(table: pa.Table, engine: str, request: pytest.FixtureRequest, folder: Path, schema: Any = SCHEMA) -> sf.Microdata:
    """The table on an engine, its decimals stored as decimals there."""
    name, ids = f"visits{next(_NUMBERS)}", table.schema.field("id").type
    if engine == "memory":
        return sf.read(table, schema)
    if engine in ("parquet", "duckdb"):
        pq.write_table(table, folder / f"{name}.parquet")
    if engine == "parquet":
        return sf.read(folder / f"{name}.parquet", schema, engine="duckdb")
    if engine == "duckdb":
        import duckdb

        with duckdb.connect(folder / f"{name}.duckdb") as connection:
            connection.execute(f"CREATE TABLE visits AS FROM '{folder / name}.parquet'")
        return sf.read(folder / f"{name}.duckdb", schema)
    if engine == "postgres":
        import psycopg

        url = request.getfixturevalue("postgres_url")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLE {name} (id {_stored(ids, 'numeric', 'text')}, x text)")
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {name} VALUES (%s, %s)", [tuple(row.values()) for row in table.to_pylist()])
        return sf.read(url, schema, table=name)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    frame = request.getfixturevalue("spark").createDataFrame(rows, f"id {_stored(ids, 'decimal', 'string')}, x string")
    return sf.read(frame, schema)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("digits", LONG)
def test_neighbouring_decimals_stay_two_units_in_questions_and_algorithms(
    engine: str, digits: tuple[int, int], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    data = opened(people(digits), engine, request, tmp_path)
    histogram = sf.dp.PrivateHistogram(("x",), epsilon=1, bounding="truncate", order="x", max_rows=1)
    assert histogram.counts(data).tolist() == [1, 1]
    session = sf.Session(data, budget=sf.PureDP(10**9), max_rows=1)
    for asked in ("SELECT COUNT(*) AS n FROM visits", "SELECT COUNT(DISTINCT id) AS n FROM visits"):
        assert session.sql(asked, epsilon=10_000).table.column("n").to_pylist() == [2]
    bounded = sf.dp.bound_contributions(data, 1).table()
    assert sorted(str(value) for value in bounded.column("id").to_pylist()) == sorted(
        plain_text(Decimal(text)) for text in LONG[digits]
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_decimal_may_be_declared_as_text_and_keeps_its_digits(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    schema = {"dataset": "visits", "columns": {"id": {"role": "unit", "type": "string"}, "x": {"type": "string"}}}
    data = opened(people((22, 2)), engine, request, tmp_path, schema)
    found = set(data.table().column("id").to_pylist())
    assert found == {*LONG[22, 2], None}


@pytest.mark.postgres
def test_equal_decimals_of_different_scale_are_one_unit(postgres_url: str) -> None:
    import psycopg

    name = f"visits{next(_NUMBERS)}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} (id numeric, x text)")
        rows = "(1.0, 'a'), (1.00, 'b'), (100, 'a'), (100.0, 'b'), ('NaN', 'a')"
        connection.execute(f"INSERT INTO {name} VALUES {rows}")
    data = sf.read(postgres_url, SCHEMA, table=name)
    assert distinct_units(data.relation, "id").group(["id"]).column("id").to_pylist().count(None) == 1
    session = sf.Session(data, budget=sf.PureDP(10**9), max_rows=1)
    assert session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=10_000).table.column("n").to_pylist() == [2]
    assert sf.dp.bound_contributions(data, 1, method="sample").table().num_rows == 2


@pytest.mark.postgres
def test_a_database_brought_into_memory_keeps_the_digits_of_the_unit_and_refuses_rounded_ones(
    postgres_url: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    import psycopg

    name = f"visits{next(_NUMBERS)}"
    first, second = LONG[38, 0]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} AS SELECT {first}::numeric AS id, 'a' AS x UNION ALL SELECT {second}, 'b'")
    schema = {"dataset": "visits", "columns": {"id": {"role": "unit", "type": "string"}, "x": {"type": "string"}}}
    assert set(sf.read(postgres_url, schema, table=name, engine="memory").table().column("id").to_pylist()) == {first, second}
    with pytest.raises(SchemaError, match="floating-point"):
        sf.Session(sf.read(postgres_url, table=name, engine="memory"), budget=sf.PureDP(1), unit="id")


@pytest.mark.parametrize("engine", ["parquet", "duckdb"])
@pytest.mark.parametrize("type_", [pa.uint64(), pa.int64()])
def test_integers_of_any_width_stay_apart(
    engine: str, type_: pa.DataType, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    top = 2**64 - 1 if type_ == pa.uint64() else 2**63 - 1
    table = pa.table({"id": pa.array([top, top - 1, top - 1], type_), "x": ["a", "b", "b"]})
    schema = {**SCHEMA, "columns": {**SCHEMA["columns"], "id": {"role": "unit"}}}  # type: ignore[dict-item]
    data = opened(table, engine, request, tmp_path, schema)
    session = sf.Session(data, budget=sf.PureDP(10**9), max_rows=1)
    assert session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=10_000).table.column("n").to_pylist() == [2]


def test_integers_declared_as_numbers_are_told_apart_as_integers(tmp_path: Path) -> None:
    table = pa.table({"id": [2**53, 2**53 + 1, 2**53 + 1], "x": ["a", "b", "b"]})
    pq.write_table(table, tmp_path / "visits.parquet")
    for data in (sf.read(table, SCHEMA), sf.read(tmp_path / "visits.parquet", SCHEMA, engine="duckdb")):
        session = sf.Session(data, budget=sf.PureDP(10**9), max_rows=1)
        assert session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=10_000).table.column("n").to_pylist() == [2]


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_text_declared_as_a_number_names_no_unit_whatever_the_rows_hold(engine: Any, tmp_path: Path) -> None:
    for rows in ("", "1,a\n", "1234567890123456701,a\n1234567890123456702,b\n"):
        (tmp_path / "visits.csv").write_text("id,x\n" + rows, encoding="utf-8")
        data = sf.read(tmp_path / "visits.csv", SCHEMA, engine=engine)
        with pytest.raises(SchemaError, match='type = "string"') as refused:
            sf.Session(data, budget=sf.PureDP(1))
        assert "1234567" not in str(refused.value)
        with pytest.raises(SchemaError, match="floating-point"):
            sf.dp.PrivateHistogram(("x",), epsilon=1, max_rows=1).run(data)


def test_missing_codes_of_a_decimal_unit_stay_missing() -> None:
    table = pa.table({"id": pa.array([Decimal("-9.00"), Decimal("1.50")], pa.decimal128(22, 2)), "x": ["a", "b"]})
    coded = {**SCHEMA, "columns": {**SCHEMA["columns"], "id": {"role": "unit", "type": "number", "missing": ["-9"]}}}  # type: ignore[dict-item]
    data = sf.read(table, coded)
    assert distinct_units(data.relation, "id").column("id").to_pylist() == [None, "1.5"]


@pytest.mark.parametrize("engine", ENGINES)
def test_zero_and_negative_zero_are_one_unit_and_nan_is_none(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    numbers = [0.0, -0.0, 2.0, float("nan")]
    table = pa.table({"id": pa.array(numbers, pa.float64()), "x": ["a", "b", "b", "a"]})
    if engine in ("memory", "parquet", "duckdb"):
        data = opened(table, engine, request, tmp_path)
    elif engine == "postgres":
        from sfumato.engines.write import write_table

        url, name = request.getfixturevalue("postgres_url"), f"visits{next(_NUMBERS)}"
        write_table(table, url, table_name=name)
        data = sf.read(url, SCHEMA, table=name)
    else:
        frame = request.getfixturevalue("spark").createDataFrame(list(zip(numbers, "abba", strict=True)), "id double, x string")
        data = sf.read(frame, SCHEMA)
    assert sum(sf.dp.PrivateHistogram(("x",), epsilon=1, bounding="truncate", order="x", max_rows=1).counts(data).tolist()) == 2
    session = sf.Session(data, budget=sf.PureDP(10**9), max_rows=1)
    assert session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=10_000).table.column("n").to_pylist() == [2]


@given(
    values=st.lists(st.decimals(-(10**9), 10**9, places=8), min_size=1, max_size=8),
    scale=st.integers(8, 12),
)
def test_texts_are_equal_exactly_where_decimals_are_whatever_their_scale(values: list[Decimal], scale: int) -> None:
    narrow = exact_text(pa.chunked_array([pa.array(values, pa.decimal128(30, 8))])).to_pylist()
    wider = exact_text(pa.chunked_array([pa.array(values, pa.decimal128(38, scale))])).to_pylist()
    assert narrow == wider
    assert [Decimal(text) for text in narrow] == values
    assert len(set(narrow)) == len(set(values))


def test_other_columns_and_relations_without_units_are_unchanged() -> None:
    relation = MemoryRelation(pa.table({"id": ["p"], "x": ["a"]}))
    assert distinct_units(relation, None) is relation
    assert distinct_units(relation, "id") is relation
    assert distinct_units(relation, "nowhere") is relation
    assert distinct_units("no relation", "id") == "no relation"


@pytest.mark.parametrize(
    "engine", ["duckdb", pytest.param("postgres", marks=pytest.mark.postgres), pytest.param("spark", marks=pytest.mark.spark)]
)
def test_a_text_that_is_no_whole_number_names_nobody(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """'7.4' and '7e0' would be read as 7 by some engines, and take the place of somebody's rows."""
    table = pa.table({"id": ["7", "7.4", "7e0", " 8", "+9", "", "abc"], "x": ["a"] * 7})
    schema = {**SCHEMA, "columns": {**SCHEMA["columns"], "id": {"role": "unit", "type": "integer"}}}  # type: ignore[dict-item]
    session = sf.Session(opened(table, engine, request, tmp_path, schema), budget=sf.PureDP(10**9), max_rows=9)
    query = "SELECT COUNT(*) AS n, COUNT(DISTINCT id) AS m FROM visits"
    assert session.sql(query, epsilon=10**8).table.to_pylist() == [{"n": 3, "m": 3}]


@pytest.mark.parametrize("declared", ["datetime", "date"])
def test_moments_that_were_text_name_nobody(declared: str, tmp_path: Path) -> None:
    table = pa.table({"id": ["2020-01-01 00:00:00.0000001", "2020-01-01 00:00:00.0000002"], "x": ["a", "b"]})
    pq.write_table(table, tmp_path / "t.parquet")
    schema = {**SCHEMA, "columns": {**SCHEMA["columns"], "id": {"role": "unit", "type": declared}}}  # type: ignore[dict-item]
    with pytest.raises(SchemaError, match="unit column 'id'"):
        sf.Session(sf.read(tmp_path / "t.parquet", schema, engine="duckdb"), budget=sf.PureDP(1))


def test_moments_a_nanosecond_apart_are_two_units(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.timestamp("ns")), "x": ["a", "b", "b"]}), tmp_path / "t.parquet")
    columns = {**SCHEMA["columns"], "id": {"role": "unit"}}  # type: ignore[dict-item]
    session = sf.Session(
        sf.read(tmp_path / "t.parquet", {**SCHEMA, "columns": columns}, engine="duckdb"), budget=sf.PureDP(10**9)
    )
    assert session.sql("SELECT COUNT(DISTINCT id) AS m FROM visits", epsilon=10**8).table.to_pylist() == [{"m": 3}]
