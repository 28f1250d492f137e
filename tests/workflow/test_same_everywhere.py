"""Every search gives the same rows wherever the table is, in whatever order and partitions: content digests agree.

A small table in the suite; 100,000 and a million rows among the stress tests, where PostgreSQL, Spark and its Connect server
(`SFUMATO_SPARK=connect`) take part too.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines.digests.row_digest import table_sums
from sfumato.engines.write import write_table
from tests.workflow.people import schema, table

PROMISE = [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease")]
SEARCHES: dict[str, Any] = {
    "lattice": sf.Lattice(suppression=0.05),
    "mondrian": sf.Mondrian(ranges_everywhere=True),
    "top down": sf.TopDown(),
    "local recoding": sf.LocalRecoding(),
    "cell suppression": sf.CellSuppression(),
    "hybrid": sf.Hybrid(),
    "least loss": sf.LeastLoss(),
}
SLOW = {"k member": sf.KMember()}
SMALL = 1_200


@cache
def expected(search: str, rows: int) -> str:
    people = sf.read(table(rows), schema())
    return table_sums(sf.protect(people, PROMISE, (SEARCHES | SLOW)[search]).data).content_digest()


def content(folder: Path) -> str:
    parts = sorted((folder / "public" / "data").iterdir())
    return table_sums(pa.concat_tables([pq.read_table(part) for part in parts])).content_digest()


def shuffled(rows: int, seed: int) -> pa.Table:
    return table(rows).take(np.random.default_rng(seed).permutation(rows))


def published(people: Any, search: str, folder: Path) -> str:
    sf.protect(people, PROMISE, (SEARCHES | SLOW)[search], destination=folder / "out")
    return content(folder / "out")


def on_duckdb(rows: int, folder: Path, seed: int) -> Any:
    pq.write_table(shuffled(rows, seed), folder / "people.parquet", row_group_size=rows // 7)
    return sf.read(folder / "people.parquet", schema(), engine="duckdb")


def on_postgres(rows: int, url: str, seed: int) -> Any:
    write_table(shuffled(rows, seed), url, table_name="same_people", overwrite=True)
    return sf.read(url, schema(), table="same_people")


def on_spark(rows: int, folder: Path, spark: Any, seed: int) -> Any:
    several = shuffled(rows, seed)
    (folder / "people").mkdir()
    for part in range(5):
        pq.write_table(several.slice(part * rows // 5, rows // 5), folder / "people" / f"{part}.parquet")
    return sf.read(spark.read.parquet(str(folder / "people")).repartition(3, "visits"), schema())


@pytest.mark.parametrize("search", [*SEARCHES, *SLOW])
def test_searches_on_a_file_give_the_rows_of_memory(search: str, tmp_path: Path) -> None:
    assert published(on_duckdb(SMALL, tmp_path, 5), search, tmp_path) == expected(search, SMALL)


@pytest.mark.postgres
@pytest.mark.parametrize("search", ["top down", "local recoding", "cell suppression", "least loss"])
def test_searches_on_postgres_give_the_rows_of_memory(search: str, tmp_path: Path, postgres_url: str) -> None:
    assert published(on_postgres(SMALL, postgres_url, 6), search, tmp_path) == expected(search, SMALL)


@pytest.mark.spark
@pytest.mark.parametrize("search", ["local recoding", "cell suppression"])
def test_searches_on_spark_give_the_rows_of_memory(search: str, tmp_path: Path, spark: Any) -> None:
    assert published(on_spark(SMALL, tmp_path, spark, 7), search, tmp_path) == expected(search, SMALL)


LARGE = pytest.mark.parametrize("rows", [100_000, 1_000_000])


@pytest.mark.stress
@LARGE
@pytest.mark.parametrize("search", SEARCHES)
def test_large_tables_on_a_file(search: str, rows: int, tmp_path: Path) -> None:
    assert published(on_duckdb(rows, tmp_path, 8), search, tmp_path) == expected(search, rows)


@pytest.mark.stress
@pytest.mark.postgres
@LARGE
@pytest.mark.parametrize("search", SEARCHES)
def test_large_tables_on_postgres(search: str, rows: int, tmp_path: Path, postgres_url: str) -> None:
    assert published(on_postgres(rows, postgres_url, 9), search, tmp_path) == expected(search, rows)


@pytest.mark.stress
@pytest.mark.spark
@LARGE
@pytest.mark.parametrize("search", SEARCHES)
def test_large_tables_on_spark(search: str, rows: int, tmp_path: Path, spark: Any) -> None:
    assert published(on_spark(rows, tmp_path, spark, 10), search, tmp_path) == expected(search, rows)
