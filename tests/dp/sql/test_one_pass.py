"""A batch reads its rows together and answers as its questions one by one; on Spark a question shuffles rows twice at most."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.dp.sql.measuring.noise import Request, price
from sfumato.dp.sql.measuring.one_query import plans_of
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.write import write_table
from tests.dp.sql.database import CUSTOMERS, ORDERS, customers, orders

ENGINES = [
    "memory",
    "duckdb",
    pytest.param("postgres", marks=pytest.mark.postgres),
    pytest.param("spark", marks=pytest.mark.spark),
]
_NUMBERS = itertools.count()

RECORDS = {**ORDERS, "unit": "record", "columns": {**ORDERS["columns"], "customer_id": {"type": "integer"}}}
#: Over records: no bound binds, and those with the same keys share a scan.
UNBOUNDED = [
    "SELECT COUNT(*) AS n FROM orders",
    "SELECT COUNT(*) AS n, SUM(quantity) AS q FROM orders WHERE amount > 100",
    "SELECT city, COUNT(*) AS n FROM orders GROUP BY city",
    "SELECT city, SUM(amount) AS a FROM orders WHERE category = 'books' AND quantity > 3 GROUP BY city",
    "SELECT city, AVG(amount) AS a, COUNT(*) FILTER (WHERE quantity > 5) AS k FROM orders WHERE day < DATE '2024-06-01' "
    "GROUP BY city",
]
#: Over customers: bounded, sampled by the salt of each question.
BOUNDED = [
    "SELECT COUNT(*) AS n FROM orders",
    "SELECT city, COUNT(*) AS n, SUM(amount) AS a FROM orders WHERE quantity > 3 GROUP BY city",
    "SELECT COUNT(DISTINCT customer_id) AS u, MEDIAN(amount) AS m FROM orders",
    "SELECT city, MEDIAN(amount) AS m, COUNT(DISTINCT category) AS c FROM orders GROUP BY city",
    "SELECT c.city, SUM(o.amount) AS a FROM customers c JOIN orders o ON c.customer_id = o.customer_id GROUP BY c.city",
]


def on_engine(kind: str, request: pytest.FixtureRequest, folder: Path, table: pa.Table, schema: dict[str, Any]) -> sf.Microdata:
    name = f"pass{next(_NUMBERS)}"
    if kind == "memory":
        return sf.read(table, schema=schema)
    if kind == "duckdb":
        write_table(table, folder / "shop.duckdb", table_name=name)
        return sf.read(folder / "shop.duckdb", schema=schema, table=name)
    if kind == "postgres":
        url = request.getfixturevalue("postgres_url")
        write_table(table, url, table_name=name)
        return sf.read(url, schema=schema, table=name)
    pq.write_table(table, folder / f"{name}.parquet")
    return sf.read(request.getfixturevalue("spark").read.parquet(str(folder / f"{name}.parquet")), schema=schema)


def session(tables: dict[str, sf.Microdata], **options: Any) -> sf.Session:
    settled = {"budget": sf.PureDP(10**6), "max_rows": 2, "max_groups": 2, "seed": 7, **options}
    return sf.Session(tables, **settled)


@pytest.mark.parametrize("kind", ENGINES)
def test_a_batch_answers_as_its_questions_one_by_one(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    records = {"orders": on_engine(kind, request, tmp_path, orders(), RECORDS)}
    people = {
        "orders": on_engine(kind, request, tmp_path, orders(), ORDERS),
        "customers": on_engine(kind, request, tmp_path, customers(), CUSTOMERS),
    }
    for tables, queries in ((records, UNBOUNDED), (people, BOUNDED)):
        alone = session(tables)
        one_by_one = [alone.sql(query, epsilon=5).table for query in queries]
        batch = session(tables).sql_batch(queries, epsilon=5)
        # Equal noise on equal integers: the same seed, salts drawn in the same order.
        assert [answer.table.to_pylist() for answer in batch] == [table.to_pylist() for table in one_by_one]


def test_questions_that_bound_nobody_and_have_the_same_keys_are_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    run = MemoryRelation.run

    def counted(self: MemoryRelation, plan: Any, *rest: Any) -> pa.Table:
        asked.append(plan)
        return run(self, plan, *rest)

    monkeypatch.setattr(MemoryRelation, "run", counted)
    session({"orders": sf.read(orders(), schema=RECORDS)}).sql_batch(UNBOUNDED, epsilon=5)
    assert len(asked) == 2  # without keys, and by city


def test_discovered_groups_of_one_question_do_not_appear_in_another() -> None:
    table = pa.table({"ward": ["a"] * 500 + ["b"] * 500, "age": [20] * 500 + [70] * 500})
    schema = {"dataset": "wards", "unit": "record", "columns": {"ward": {"type": "string"}, "age": {"type": "integer"}}}
    asked = session({"wards": sf.read(table, schema=schema)}, budget=sf.ApproxDP(100, "0.1"))
    queries = [f"SELECT ward, COUNT(*) AS n FROM wards WHERE age {sign} 50 GROUP BY ward" for sign in "<>"]
    young, old = asked.sql_batch(queries, epsilon=5, delta="1e-6")
    assert (young.table["ward"].to_pylist(), old.table["ward"].to_pylist()) == (["a"], ["b"])


def plans_asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plans of the questions that Spark is asked from now on."""
    from sfumato.engines.spark.relation import SparkRelation

    plans: list[str] = []
    asked = SparkRelation._asked

    @contextmanager
    def noted(self: SparkRelation, *rest: Any) -> Iterator[Any]:
        with asked(self, *rest) as (frame, query):
            plans.append(described(frame))
            yield frame, query

    monkeypatch.setattr(SparkRelation, "_asked", noted)
    return plans


def kept_rows(spark: Any) -> bool:
    return spark._jsc is not None and not spark._jsc.getPersistentRDDs().isEmpty() if hasattr(spark, "_jsc") else False


@pytest.mark.spark
def test_spark_computes_the_rows_of_a_batch_once_and_keeps_none_of_them(
    spark: Any, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = on_engine("spark", request, tmp_path, orders(), ORDERS)
    frame = data.relation._frame.where("order_id >= 0")  # type: ignore[attr-defined]
    plans = plans_asked(monkeypatch)
    session({"orders": sf.read(frame, ORDERS)}).sql_batch(BOUNDED[:3], epsilon=5)
    assert len(plans) == 4  # counts, counts by city, units, and the tree of the median
    assert all("InMemoryTableScan" in plan for plan in plans)
    assert not any("coupon" in plan for plan in plans)
    assert not kept_rows(spark)


@pytest.mark.spark
def test_spark_reads_columns_of_files_again_and_keeps_no_rows(
    spark: Any, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = on_engine("spark", request, tmp_path, orders(), ORDERS)
    if type(data.relation._frame).__module__.startswith("pyspark.sql.connect"):  # type: ignore[attr-defined]
        pytest.skip("the files behind a frame of Connect are out of reach")
    plans = plans_asked(monkeypatch)
    session({"orders": data}).sql_batch(BOUNDED[:3], epsilon=5)
    assert [plan.count("FileScan") for plan in plans] == [1] * 4
    assert not any("InMemoryTableScan" in plan or "coupon" in plan or "order_id" in plan for plan in plans)


@pytest.mark.spark
def test_rows_that_somebody_keeps_in_spark_are_kept_after_a_question(
    spark: Any, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = on_engine("spark", request, tmp_path, orders(), ORDERS).relation._frame.persist()  # type: ignore[attr-defined]
    try:
        plans = plans_asked(monkeypatch)
        asked = session({"orders": sf.read(frame, ORDERS)})
        for query in BOUNDED[:2]:
            asked.sql(query, epsilon=5)
        assert all("InMemoryTableScan" in plan for plan in plans)
    finally:
        frame.unpersist()


#: A question, its bounds, and how many shuffles its plans may need. Distinct values are brought together by unit, by value and by
#: group.
SHUFFLED = [
    ("SELECT COUNT(*) AS n FROM orders", 2),
    ("SELECT COUNT(*) AS n FROM orders WHERE amount > 100", 2),
    ("SELECT SUM(amount) AS a, AVG(quantity) AS q FROM orders", 2),
    ("SELECT COUNT(DISTINCT customer_id) AS u FROM orders", 2),
    ("SELECT city, COUNT(*) AS n FROM orders GROUP BY city", 2),
    ("SELECT city, COUNT(DISTINCT customer_id) AS u FROM orders GROUP BY city", 2),
    ("SELECT city, category, COUNT(*) AS n, SUM(amount) AS a FROM orders GROUP BY city, category", 2),
    ("SELECT FLOOR(quantity / 5) AS k, AVG(amount) AS a FROM orders WHERE quantity > 0 GROUP BY k", 2),
    ("SELECT coupon, COUNT(*) AS n FROM orders GROUP BY coupon", 2),
    ("SELECT MEDIAN(amount) AS m FROM orders", 2),
    ("SELECT city, MEDIAN(amount) AS m FROM orders GROUP BY city", 2),
    (
        "SELECT AVG(CLAMP(total, 0, 1000)) AS t FROM (SELECT customer_id, SUM(amount) AS total FROM orders GROUP BY customer_id)",
        2,
    ),
    ("SELECT COUNT(DISTINCT amount) AS a FROM orders", 3),
    ("SELECT city, COUNT(DISTINCT category) AS c FROM orders GROUP BY city", 3),
]


@pytest.mark.covering
@pytest.mark.spark
@pytest.mark.parametrize("bounding", ["sample", "truncate"])
@pytest.mark.parametrize("schema", ["units", "records"])
def test_no_question_shuffles_its_rows_more_often_than_stated(
    spark: Any, request: pytest.FixtureRequest, tmp_path: Path, bounding: str, schema: str
) -> None:
    data = on_engine("spark", request, tmp_path, orders(), ORDERS if schema == "units" else RECORDS)
    relation: Any = data.relation
    more = {}
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")  # no table here is small enough to be sent around
    try:
        for query, most in SHUFFLED:
            if schema == "records" and "FROM (SELECT" in query:
                continue
            asked = session({"orders": data}, budget=sf.ApproxDP(1, "0.1"), bounding=bounding, seed=None)
            question = asked._question(asked._parsed(query), None)
            priced = price(question, Request(epsilon=1, delta="1e-6" if "coupon" in query else None), asked._bounds)
            for plan in plans_of(question, priced, "5" * 32):
                with relation._asked(plan) as (frame, _):
                    frame.toArrow()
                    shuffles = len(re.findall(r"^[\s:+\-|*()\d]*Exchange (?!Broadcast)", described(frame), re.MULTILINE))
                if shuffles > most:
                    more[query] = (shuffles, most)
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)
    assert not more


def described(frame: Any) -> str:
    """The plan that Spark carries out, after it was adapted where Spark says so."""
    if hasattr(frame, "_explain_string"):
        text: str = frame._explain_string()
    else:
        text = frame._jdf.queryExecution().executedPlan().toString()
    return text.partition("== Initial Plan ==")[0]
