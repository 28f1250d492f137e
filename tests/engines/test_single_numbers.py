"""Numbers of 32 bits are read as their shortest text says, in this process and on every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines.digests.row_digest import row_sums
from sfumato.engines.write import write_table

SCHEMA: dict[str, Any] = {"dataset": "doses", "columns": {"dose": {"role": "plain", "type": "number"}}}


def doses() -> pa.Table:
    """Of all sizes: random bits, large ones, cents, powers of two, the smallest."""
    draw = np.random.default_rng(5)
    parts = [
        draw.integers(0, 2**32, 4_000, dtype=np.uint64).astype(np.uint32).view(np.float32),
        np.float32(10) ** draw.uniform(4, 12, 4_000).astype(np.float32),
        np.round(draw.random(2_000) * 1_000, 2).astype(np.float32),
        (2.0 ** np.arange(-149, 128)).astype(np.float32),
        -(2.0 ** np.arange(-149, 128)).astype(np.float32),
        np.array([79043056, 39377752, 2231063.75, 0.1, 0.0, -0.0], dtype=np.float32),
    ]
    values = np.concatenate(parts)
    return pa.table({"dose": pa.array(values[np.isfinite(values)], pa.float32())})


def expected() -> list[float]:
    """By another way of writing the shortest text."""
    return [float(np.format_float_scientific(value, unique=True)) + 0.0 for value in doses().column("dose").to_numpy()]


def test_in_memory() -> None:
    assert sf.read(doses(), SCHEMA).table().column("dose").to_pylist() == expected()


@pytest.mark.parametrize("kind", ["parquet", "table"])
def test_on_duckdb(kind: str, tmp_path: Path) -> None:
    """DuckDB writes 79043056 where the shortest text is 79043060: the two used to release different numbers."""
    import duckdb

    pq.write_table(doses(), tmp_path / "doses.parquet")
    with duckdb.connect(str(tmp_path / "doses.duckdb")) as connection:
        connection.execute(f"CREATE TABLE doses AS SELECT * FROM '{tmp_path / 'doses.parquet'}'")
    away = (
        sf.read(tmp_path / "doses.parquet", SCHEMA, engine="duckdb")
        if kind == "parquet"
        else sf.read(tmp_path / "doses.duckdb", SCHEMA, table="doses")
    )
    assert row_sums(away.relation) == row_sums(sf.read(doses(), SCHEMA).relation)
    assert sorted(away.table().column("dose").to_pylist()) == sorted(expected())


@pytest.mark.postgres
def test_on_postgres(postgres_url: str) -> None:
    import psycopg

    write_table(pa.table({"dose": doses().column("dose").cast(pa.float64())}), postgres_url, table_name="doses", overwrite=True)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE doses ALTER dose TYPE real")
    away = sf.read(postgres_url, SCHEMA, table="doses")
    assert row_sums(away.relation) == row_sums(sf.read(doses(), SCHEMA).relation)


@pytest.mark.spark
def test_on_spark(spark: Any, tmp_path: Path) -> None:
    pq.write_table(doses(), tmp_path / "doses.parquet")
    away = sf.read(spark.read.parquet(str(tmp_path / "doses.parquet")), SCHEMA)
    assert row_sums(away.relation) == row_sums(sf.read(doses(), SCHEMA).relation)
