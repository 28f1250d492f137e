"""A decimal is read as the floating-point number nearest to it, in this process and on every engine."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines.digests.row_digest import row_sums

#: Digits and scale of a type, and how many digits its values have.
TYPES = [(10, 2, 9), (15, 5, 15), (16, 16, 16), (18, 6, 17), (38, 10, 30), (20, 20, 19), (38, 37, 37)]
COLUMN = {"role": "plain", "type": "number"}
SCHEMA: dict[str, Any] = {"dataset": "prices", "columns": {f"p{place}": COLUMN for place in range(len(TYPES))}}


def decimals(digits: int, scale: int, drawn: int) -> list[Decimal | None]:
    draw = np.random.default_rng(digits * 100 + scale)
    texts = ["".join(map(str, draw.integers(0, 10, drawn))) for _ in range(120)]
    return [None, *(Decimal(int(text) * (-1) ** place).scaleb(-scale) for place, text in enumerate(texts))]


def stored() -> pa.Table:
    return pa.table({f"p{place}": pa.array(decimals(*each), pa.decimal128(*each[:2])) for place, each in enumerate(TYPES)})


def nearest() -> dict[str, list[float | None]]:
    return {name: [None if value is None else float(value) for value in values] for name, values in stored().to_pydict().items()}


def _file(folder: Path, **named: Any) -> sf.Microdata:
    pq.write_table(stored(), folder / "prices.parquet")
    return sf.read(folder / "prices.parquet", SCHEMA, **named)


def _table_of_duckdb(folder: Path) -> sf.Microdata:
    import duckdb

    pq.write_table(stored(), folder / "prices.parquet")
    with duckdb.connect(str(folder / "prices.duckdb")) as connection:
        connection.execute(f"CREATE TABLE prices AS SELECT * FROM '{folder / 'prices.parquet'}'")
    return sf.read(folder / "prices.duckdb", SCHEMA, table="prices")


OPENED: dict[str, Callable[[Path], sf.Microdata]] = {
    "a frame": lambda _: sf.read(stored(), SCHEMA),
    "a file": _file,
    "a file that stays": lambda folder: _file(folder, engine="duckdb"),
    "a table of DuckDB": _table_of_duckdb,
}


@pytest.mark.parametrize("where", OPENED)
def test_here_and_on_duckdb(where: str, tmp_path: Path) -> None:
    """`0.35` used to become 0.35000000000000003 in this process, and long decimals their neighbours on DuckDB."""
    people = OPENED[where](tmp_path)
    assert people.table().to_pydict() == nearest()
    assert row_sums(people.relation) == row_sums(sf.read(stored(), SCHEMA).relation)


@pytest.mark.postgres
def test_on_postgres(postgres_url: str) -> None:
    import psycopg

    types = ", ".join(f"p{place} numeric({digits}, {scale})" for place, (digits, scale, _) in enumerate(TYPES))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS decimal_prices")
        connection.execute(f"CREATE TABLE decimal_prices ({types})")
        values = list(zip(*stored().to_pydict().values(), strict=True))
        connection.cursor().executemany(f"INSERT INTO decimal_prices VALUES ({', '.join(['%s'] * len(TYPES))})", values)
    people = sf.read(postgres_url, SCHEMA, table="decimal_prices")
    assert row_sums(people.relation) == row_sums(sf.read(stored(), SCHEMA).relation)


@pytest.mark.spark
def test_on_spark(spark: Any, tmp_path: Path) -> None:
    pq.write_table(stored(), tmp_path / "prices.parquet")
    people = sf.read(spark.read.parquet(str(tmp_path / "prices.parquet")), SCHEMA)
    assert row_sums(people.relation) == row_sums(sf.read(stored(), SCHEMA).relation)


def test_a_price_is_found_and_published_as_it_is(tmp_path: Path) -> None:
    several = [Decimal("0.35"), Decimal("0.41"), Decimal("0.47"), Decimal("0.50")] * 100
    column = {"role": "quasi", "type": "number", "bounds": [0, 1]}
    prices = pa.table({"price": pa.array(several, pa.decimal128(10, 2))})
    shop = sf.read(prices, {"dataset": "shop", "unit": "record", "columns": {"price": column}})
    session = sf.Session(shop, ledger=tmp_path / "ledger.db", budget=sf.PureDP(2_000_000))
    answer = session.sql("SELECT COUNT(*) AS n FROM shop WHERE price = 0.35", epsilon=1_000_000)
    assert answer.table.to_pylist() == [{"n": 100}]
    released = sf.protect(shop, (), sf.RankSwapping(p=20), seed=1).data
    assert set(released.column("price").to_pylist()) == {0.35, 0.41, 0.47, 0.5}
