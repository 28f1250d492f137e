"""The same questions on memory, DuckDB, PostgreSQL and Spark: identical before noise where no chance is involved."""

from __future__ import annotations

import functools
import itertools
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.dp.sql.measuring.noise import Request, price
from sfumato.dp.sql.measuring.one_query import distinct_values, flat_plan, run, split, tree_plan, values_plan
from tests.dp.sql.database import CUSTOMERS, ORDERS, customers, orders, regions

_NUMBERS = itertools.count()
Opened = Callable[[pa.Table, dict[str, Any]], sf.Microdata]
QUERIES = [
    query
    for query in tomllib.loads(Path(__file__).with_name("queries.toml").read_text(encoding="utf-8"))["query"]
    if "refused" not in query
]
#: Roundings, other private tables in conditions, outer joins with them, pairs of columns, real numbers, texts and dates.
QUERIES += [
    {"ask": f"SELECT {query}"}
    for query in (
        "SIGN(age - 50) AS side, COUNT(*) AS n, SUM(SIGN(score)) AS s FROM customers GROUP BY side",
        "ROUND(age / 10) AS k, COUNT(*) AS n FROM customers WHERE ROUND(score, 1) > 0.2 GROUP BY k",
        "COUNT(*) AS n FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders WHERE amount > 60)",
        "c.city, SUM(c.income) AS s FROM customers c WHERE c.member OR NOT EXISTS (SELECT 1 FROM orders o WHERE "
        "o.customer_id = c.customer_id AND o.city = c.city AND o.category = 'books') GROUP BY c.city",
        "COUNT(*) AS n FROM customers WHERE customer_id IN "
        "(SELECT customer_id FROM orders GROUP BY customer_id HAVING COUNT(*) > 5)",
        "c.city, COUNT(o.order_id) AS n, COUNT(DISTINCT o.customer_id) AS u FROM customers c "
        "LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.category = 'books' GROUP BY c.city",
        "SUM(LEAST(COALESCE(per.k, 0), 9)) AS s FROM customers c LEFT JOIN (SELECT customer_id, COUNT(*) AS k FROM orders "
        "GROUP BY customer_id) AS per ON per.customer_id = c.customer_id",
        "city, CORR(amount, quantity) AS c, REGR_INTERCEPT(quantity, amount) AS b FROM orders GROUP BY city",
        "CONCAT(city, '/', category) AS place, COUNT(*) AS n, SUM(CLAMP(DATE '2024-12-31' - day, 0, 400)) AS d, "
        "COUNT_IF(day + INTERVAL '3 days' >= DATE '2024-03-01' + INTERVAL 1 MONTH) AS late, "
        "COUNT_IF(city || coupon LIKE '%s_m%') AS c FROM orders WHERE DATEDIFF('day', DATE '2024-01-10', day) > 0 GROUP BY place",
    )
]
#: Each function of real numbers is many operations, which Spark compiles for twenty seconds: it is asked fewer at once, below,
#: and all of them in tests/engines/test_real_functions.py.
QUERIES.append(
    {
        "ask": "SELECT AVG(CLAMP(amount / quantity, 0, 90)) AS q, SUM(LN(1 + amount)) AS l, SUM(CLAMP(LOG2(amount), 0, 9)) AS t, "
        "AVG(EXP(amount / 100)) AS e, SUM(SQRT(amount)) AS r FROM orders WHERE LOG10(amount) < 2",
        "joint": True,
    }
)
#: Counts of distinct values of every kind.
QUERIES += [
    {"ask": f"SELECT {query}", "wide": True}
    for query in (
        "city, COUNT(DISTINCT day) AS d, COUNT(DISTINCT category) FILTER (WHERE amount > 9) FROM orders GROUP BY city",
        "COUNT(DISTINCT amount) AS a, COUNT(DISTINCT quantity > 5) AS b, COUNT(DISTINCT UPPER(coupon)) AS c FROM orders",
    )
]
#: What queries that are `joint` aggregate, over the same rows: one job of Spark for each of these.
QUERIES += [
    {"ask": f"SELECT {query}"}
    for query in (
        "COUNT(*) AS n, COUNT(*) FILTER (WHERE member) AS m, AVG(GREATEST(LEAST(score, 3), -3)) AS s, "
        "COUNT(*) FILTER (WHERE name LIKE 'person 1%' AND LENGTH(name) > 8) AS l, SUM(ROUND(CLAMP(score, 0, 9), 1)) AS r, "
        "SUM(CEIL(age / 4)) AS c, SUM(ABS(ROUND(age / 3, 1))) AS a FROM customers",
        "city, COUNT(*) AS n, AVG(income) AS i, AVG(income) FILTER (WHERE age IS NOT NULL) AS known FROM customers GROUP BY city",
        "COUNT(*) FILTER (WHERE amount > 100) AS n, COUNT(DISTINCT customer_id) AS buyers, SUM(amount / quantity) AS q, "
        "SUM(CASE WHEN category IN ('books', 'games') THEN amount ELSE 0 END) / SUM(amount) AS share FROM orders",
        "category, SUM(amount) AS revenue, SUM(amount * (1 - 0.05)) FILTER (WHERE quantity BETWEEN 5 AND 10) AS discounted, "
        "SUM(amount * quantity) FILTER (WHERE day >= DATE '2024-03-01' AND day < DATE '2024-06-01') AS spring FROM orders "
        "GROUP BY category",
        "SUM(LN(1 + amount)) AS l, SUM(SQRT(amount)) AS r FROM orders WHERE amount < 100",
    )
]
WIDE = [query for query in QUERIES if query.get("wide")]
#: A file of Parquet is read by DuckDB: a few shapes show that it is read alike.
TRUNCATED = {
    "duckdb": QUERIES,
    "parquet": WIDE,
    "postgres": QUERIES,
    "spark": [query for query in QUERIES if not query.get("joint")],
}
SAMPLED = {
    "duckdb": WIDE,
    "parquet": WIDE[-1:],
    "postgres": WIDE,
    "spark": [query for query in WIDE if not query.get("joint")],
}
MARKS = {"postgres": [pytest.mark.postgres], "spark": [pytest.mark.spark]}
ENGINES = [pytest.param(engine, marks=MARKS.get(engine, ())) for engine in TRUNCATED]


def each(asked: dict[str, list[dict[str, Any]]]) -> list[Any]:
    """The queries of each engine as parameters: engine, query, whether its keys are discovered."""
    return [
        pytest.param(engine, query["ask"], "loss" in query, marks=_marks(engine, query), id=f"{engine}-{query['ask'][:50]}")
        for engine, queries in asked.items()
        for query in queries
    ]


def _marks(engine: str, query: dict[str, Any]) -> list[pytest.MarkDecorator]:
    """A file of DuckDB is asked in the words of memory: every third question shows that it answers alike. Spark compiles
    logarithms for seconds, and computes each of them in tests/engines/test_real_functions.py."""
    alike = engine == "duckdb" and QUERIES.index(query) % 3 != 0 and not query.get("wide")
    long = engine == "spark" and "LN(" in query["ask"]
    return [*MARKS.get(engine, ()), *([pytest.mark.stress] if alike or long else [])]


@pytest.fixture(scope="module", params=ENGINES)
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, sf.Microdata]:
    """Both tables on one engine."""
    folder = tmp_path_factory.mktemp("shop")
    return {
        "customers": _opened(request, folder, customers(), CUSTOMERS),
        "orders": _opened(request, folder, orders(), ORDERS),
    }


def _opened(request: pytest.FixtureRequest, folder: Path, table: pa.Table, schema: dict[str, Any]) -> sf.Microdata:
    from sfumato.engines.write import write_table

    name = f"shop{next(_NUMBERS)}"
    if request.param == "duckdb":
        # One file holds both tables, so that they can be joined in place.
        write_table(table, folder / "shop.duckdb", table_name=name)
        return sf.read(folder / "shop.duckdb", schema=schema, table=name)
    if request.param == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, folder / f"{name}.parquet")
        return sf.read(folder / f"{name}.parquet", schema=schema, engine="duckdb")
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        write_table(table, url, table_name=name)
        return sf.read(url, schema=schema, table=name)
    from sfumato.engines.canonical import canonical_columns
    from sfumato.engines.spark.relation import for_spark, spark_schema

    spark = request.getfixturevalue("spark")
    clean = canonical_columns(table)
    frame = spark.createDataFrame(for_spark(clean), schema=spark_schema(clean)).toDF(*table.column_names)
    return sf.read(frame, schema=schema)


@functools.cache
def in_memory() -> dict[str, sf.Microdata]:
    return {"customers": sf.read(customers(), schema=CUSTOMERS), "orders": sf.read(orders(), schema=ORDERS)}


def before_noise(tables: dict[str, sf.Microdata], query: str, discover: bool, **bounds: Any) -> list[list[tuple[Any, ...]]]:
    asked = sf.Session(
        tables, public={"regions": regions()}, budget=sf.ApproxDP(1, "0.1"), **{"max_rows": 1, "max_groups": 1, **bounds}
    )
    question = asked._question(asked._parsed(query), None)
    priced = price(question, Request(epsilon=1, delta="1e-6" if discover else None), asked._bounds)
    flat, trees = split(question, priced)
    plans: list[Any] = [flat_plan(question, priced, flat, "5" * 32)] if flat else []
    plans += [tree_plan(question, priced, measurement, "5" * 32) for measurement in trees]
    plans += [values_plan(question, priced, measurement, "5" * 32) for measurement in distinct_values(question)]
    answers = [run(question, plan) for plan in plans]
    return [sorted(zip(*(column.to_pylist() for column in answer.columns), strict=True), key=repr) for answer in answers]


@functools.cache
def expected(query: str, discover: bool, **bounds: Any) -> list[list[tuple[Any, ...]]]:
    return before_noise(in_memory(), query, discover, **bounds)


@pytest.mark.parametrize(("shop", "query", "discover"), each(TRUNCATED), indirect=["shop"])
def test_truncation_gives_the_same_integers_on_every_engine(shop: dict[str, sf.Microdata], query: str, discover: bool) -> None:
    bounds = {"max_rows": 2, "max_groups": 2, "bounding": "truncate"}
    assert before_noise(shop, query, discover, **bounds) == expected(query, discover, **bounds)


@pytest.mark.parametrize(("shop", "query", "discover"), each(SAMPLED), indirect=["shop"])
def test_sampling_gives_the_same_integers_where_the_bounds_do_not_bite(
    shop: dict[str, sf.Microdata], query: str, discover: bool
) -> None:
    bounds = {"max_rows": 1000, "max_groups": 1000, "bounding": "sample"}
    assert before_noise(shop, query, discover, **bounds) == expected(query, discover, **bounds)


def test_sampling_keeps_the_same_number_of_rows_and_pairs(shop: dict[str, sf.Microdata]) -> None:
    query = "SELECT city, COUNT(*) AS n, COUNT(DISTINCT customer_id) AS units FROM orders GROUP BY city"
    bounds = {"max_rows": 2, "max_groups": 2, "bounding": "sample"}
    totals = [
        [sum(row[place] for row in before_noise(tables, query, False, **bounds)[0]) for place in (1, 2)]
        for tables in (shop, in_memory())
    ]
    # Which groups a unit keeps is chance, and its rows in them may be one or two: the pairs agree, the rows nearly.
    assert totals[0][1] == totals[1][1]
    assert abs(totals[0][0] - totals[1][0]) <= 0.2 * totals[1][0]


@pytest.mark.slow
def test_many_declared_keys_are_found_by_number(shop: dict[str, sf.Microdata]) -> None:
    coupons = [None, "spring", "summer", *(f"C{number}" for number in range(400))]
    queries = [
        "SELECT coupon, COUNT(*) AS n FROM orders GROUP BY coupon",
        "SELECT UPPER(coupon) AS code, city, SUM(amount) AS s, MEDIAN(amount) AS m FROM orders GROUP BY UPPER(coupon), city",
    ]
    for query, key in zip(queries, ("coupon", "code"), strict=True):
        values = coupons if key == "coupon" else [None, "SPRING", *coupons[3:]]
        told = []
        for tables in (shop, in_memory()):
            asked = sf.Session(tables, budget=sf.PureDP(10**12), max_rows=1000, max_groups=1000, seed=3)
            told.append(asked.sql(query, epsilon=10**9, keys={key: values}).table)
        assert told[0].num_rows == len(values) * (1 if key == "coupon" else 4)
        assert told[0].equals(told[1])  # the same seed: equal noise on equal integers


def test_an_answer_with_noise_comes_back(shop: dict[str, sf.Microdata], tmp_path: Path) -> None:
    asked = sf.Session(shop, max_rows=1, max_groups=1, ledger=tmp_path / "ledger.db", budget=sf.PureDP(10))
    answer = asked.sql("SELECT city, COUNT(*) AS n, MEDIAN(age) AS age FROM customers GROUP BY city", epsilon=5)
    assert answer.table.num_rows == 4 and answer.entry


#: Columns of every kind that has a least value, each made one value per unit, and whether the data have several.
ONE_EACH = {
    "SELECT city, COUNT(*) AS n, SUM(quantity) AS q FROM orders WHERE category = 'food' GROUP BY city": True,
    "SELECT COUNT(*) AS n, COUNT(DISTINCT customer_id) AS u FROM orders WHERE city = 'Genève' AND day < DATE '2024-02-01'": True,
    "SELECT SUM(amount) AS a FROM orders WHERE category IS NULL OR quantity <= 3": True,
    "SELECT COUNT(*) AS n FROM customers WHERE NOT member AND age > 30": False,
    "SELECT COUNT(*) AS n FROM orders o JOIN customers c ON o.customer_id = c.customer_id WHERE c.member AND o.city > 'C'": True,
}


def test_one_value_per_unit_is_the_same_on_every_engine(shop: dict[str, sf.Microdata]) -> None:
    fixed = {"customers": ("age", "member"), "orders": ("city", "category", "quantity", "day", "amount")}

    def declared(tables: dict[str, sf.Microdata]) -> dict[str, sf.Microdata]:
        def described(table: sf.Microdata, names: tuple[str, ...]) -> sf.Microdata:
            columns = dict(table.schema.columns)
            columns |= {name: columns[name].model_copy(update={"one_per_unit": True}) for name in names}
            return replace(table, schema=table.schema.replace(columns=columns))

        return {name: described(table, fixed[name]) for name, table in tables.items()}

    bounds = {"max_rows": 1000, "max_groups": 1000, "bounding": "sample"}
    for query, several in ONE_EACH.items():
        fixed_in_memory = before_noise(declared(in_memory()), query, False, **bounds)
        assert before_noise(declared(shop), query, False, **bounds) == fixed_in_memory
        assert (expected(query, False, **bounds) != fixed_in_memory) is several
    queries = ["SELECT COUNT(*) FROM orders WHERE city = 'Bern'", "SELECT COUNT(*) FROM orders WHERE city <> 'Bern'"]
    asked = sf.Session(declared(shop), budget=sf.PureDP(2), max_rows=2)
    answer = asked.sql_batch(queries, epsilon=1)
    assert len(answer) == 2 and answer.loss == sf.PureDP(1, unit="customer_id")
