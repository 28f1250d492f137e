"""One table on every engine."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.data.relation import Relation
from sfumato.engines.memory import MemoryRelation

OpenTable = Callable[[pa.Table], Relation]
_NUMBERS = itertools.count()

MARKS = {"postgres": [pytest.mark.postgres], "spark": [pytest.mark.spark]}
NAMES = {"memory": "memory", "duckdb": "duckdb", "parquet": "duckdb-parquet", "postgres": "postgres", "spark": "spark"}
ENGINES = [pytest.param(engine, marks=MARKS.get(engine, ()), id=name) for engine, name in NAMES.items()]


@pytest.fixture(params=ENGINES)
def on_engine(request: pytest.FixtureRequest, tmp_path: Path) -> OpenTable:
    """Puts a table on an engine and returns the relation."""
    kind: str = request.param
    if kind == "memory":
        return MemoryRelation
    if kind == "parquet":
        return lambda table: _parquet(table, tmp_path)
    if kind == "duckdb":
        return lambda table: _duckdb(table, tmp_path)
    if kind == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return lambda table: _postgres(table, url)
    session = request.getfixturevalue("spark")
    return lambda table: _spark(table, session)


def _parquet(table: pa.Table, folder: Path) -> Relation:
    from sfumato.engines.duckdb.relation import DuckDBRelation

    path = folder / f"rows{next(_NUMBERS)}.parquet"
    pq.write_table(table, path)
    return DuckDBRelation(path)


def _duckdb(table: pa.Table, folder: Path) -> Relation:
    """A DuckDB table cannot have names that differ in case alone: those stay in a Parquet file."""
    from sfumato.engines.duckdb.relation import DuckDBRelation
    from sfumato.engines.write import write_table

    if len({name.lower() for name in table.column_names}) < table.num_columns:
        return _parquet(table, folder)
    path = folder / f"rows{next(_NUMBERS)}.duckdb"
    write_table(table, path, table_name="people")
    return DuckDBRelation(path, "people")


def _postgres(table: pa.Table, url: str) -> Relation:
    from sfumato.engines.postgres.relation import PostgresRelation
    from sfumato.engines.write import write_table

    name = f'peo"ple {next(_NUMBERS)}'
    write_table(table, url, table_name=name)
    return PostgresRelation(url, name)


def _spark(table: pa.Table, session: Any) -> Relation:
    from sfumato.engines.canonical import canonical_table, kind_of_type
    from sfumato.engines.spark.relation import SparkRelation, for_spark, spark_schema

    kinds = [kind_of_type(given) for given in table.schema.types]
    clean = canonical_table(table, table.column_names, kinds)
    frame = session.createDataFrame(for_spark(clean), schema=spark_schema(clean)).toDF(*table.column_names)
    return SparkRelation(frame)
