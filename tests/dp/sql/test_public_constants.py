"""Sub-queries of public tables stand for constants: in rows, in lists and over answers, and never for anything private."""

from __future__ import annotations

import datetime

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from tests.dp.sql.database import ORDERS, customers, orders, regions, session

NO_NOISE = 10**9
ASKED = [
    "SELECT COUNT(*) / (SELECT SUM(population) FROM regions) AS x FROM customers",
    "SELECT COUNT(*) AS x FROM customers WHERE income > (SELECT AVG(population) / 10 FROM regions)",
    "SELECT COUNT(*) AS x FROM customers WHERE income > (SELECT MIN(population) FROM regions WHERE region = 'north') / 5",
    "SELECT COUNT(*) - (SELECT COUNT(*) FROM regions WHERE region = 'north') AS x FROM orders",
    "SELECT COUNT(*) AS x FROM orders WHERE city IN (SELECT city FROM regions WHERE region = 'north')",
    "SELECT COUNT(*) AS x FROM orders WHERE city NOT IN (SELECT DISTINCT r.city FROM regions AS r WHERE r.population > 150000)",
    "WITH big AS (SELECT city FROM regions WHERE population > 150000) SELECT COUNT(*) AS x FROM orders "
    "WHERE city IN (SELECT city FROM big)",
    "SELECT COUNT(*) AS x FROM orders WHERE city = (SELECT city FROM regions "
    "WHERE population = (SELECT MAX(population) FROM regions))",
    "SELECT COUNT(*) AS x FROM orders WHERE city = (SELECT city FROM regions WHERE population < 0)",
    "SELECT COUNT(*) AS x FROM (SELECT * FROM orders WHERE amount > (SELECT AVG(population) / 4000 FROM regions)) AS o",
    "SELECT COUNT(*) AS x FROM orders HAVING COUNT(*) > (SELECT COUNT(DISTINCT region) FROM regions)",
]  # fmt: skip


@pytest.fixture(scope="module")
def shop() -> sf.Session:
    return session(budget=sf.PureDP(10**12), max_rows=1000, max_groups=1000)


@pytest.mark.parametrize("query", ASKED)
def test_they_are_what_duckdb_says(shop: sf.Session, query: str) -> None:
    duck = duckdb.connect()
    for name, table in (("customers", customers()), ("orders", orders()), ("regions", regions())):
        duck.register("given", table)
        duck.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    (expected,) = duck.execute(query).fetchone() or (None,)
    assert shop.sql(query, epsilon=NO_NOISE).table["x"][0].as_py() == pytest.approx(expected, abs=1e-6)


REWRITES = {
    "city = (SELECT city FROM regions)": ("4 rows", "population_of < (SELECT MAX(population) FROM regions)"),
    "city IN (SELECT city FROM regions LIMIT 1)": ("no GROUP BY", "city IN (SELECT city FROM regions WHERE region = 'north')"),
    "city IN (SELECT city, region FROM regions)": ("one expression", "city IN (SELECT city FROM regions)"),
    "amount > (SELECT MEDIAN(population) FROM regions)": (
        "there are COUNT, SUM",
        "amount > (SELECT AVG(population) FROM regions)",
    ),
    "city IN (SELECT r.city FROM regions AS r WHERE r.region = orders.city)": (
        "cannot name columns of the query around it",
        "city IN (SELECT r.city FROM regions AS r WHERE r.region = 'north')",
    ),
    "amount > (SELECT SUM(city) FROM regions)": ("SUM needs a number", "amount > (SELECT SUM(population) FROM regions)"),
}


@pytest.mark.parametrize("written", REWRITES)
def test_what_is_refused_names_what_works(shop: sf.Session, written: str) -> None:
    reason, rewrite = REWRITES[written]
    with pytest.raises(Unsupported, match=reason):
        shop.explain(f"SELECT COUNT(*) AS n FROM orders WHERE {written}", epsilon=1)
    rewrite = rewrite.replace("population_of", "amount")
    assert shop.explain(f"SELECT COUNT(*) AS n FROM orders WHERE {rewrite}", epsilon=1).measurements


def test_a_private_table_is_never_read_for_a_constant(shop: sf.Session) -> None:
    for written in (
        "(SELECT AVG(income) FROM customers)",
        "(SELECT MAX(c.income) FROM regions AS r JOIN customers AS c USING (city))",
    ):
        with pytest.raises(Unsupported):
            shop.sql(f"SELECT COUNT(*) AS n FROM orders WHERE amount > {written}", epsilon=1)
    hidden = (
        "WITH regions AS (SELECT income AS population FROM customers) SELECT COUNT(*) AS n FROM orders "
        "WHERE amount > (SELECT MAX(population) FROM regions)"
    )
    with pytest.raises(Unsupported):
        shop.sql(hidden, epsilon=1)


def test_missing_values_dates_and_truths_are_constants_too() -> None:
    public = pa.table({"d": [datetime.date(2024, 3, 1), None], "t": ["x", None], "b": [True, None], "n": [-1.5, None]})
    data = pa.table({"day": [datetime.date(2024, 3, 1), datetime.date(2024, 4, 1)], "v": [1, 2], "t": ["x", "y"]})
    schema = {
        "unit": "record",
        "columns": {"day": {"type": "date"}, "v": {"type": "integer", "bounds": [0, 5]}, "t": {"type": "string"}},
    }
    asked = sf.Session({"rows": sf.read(data, schema=schema)}, public={"p": public}, budget=sf.PureDP(10**12))

    def count(where: str) -> int:
        return asked.sql(f"SELECT COUNT(*) AS n FROM rows WHERE {where}", epsilon=NO_NOISE).table["n"][0].as_py()

    assert count("day > (SELECT MAX(d) FROM p)") == 1 and count("day = (SELECT d FROM p WHERE d IS NOT NULL)") == 1
    assert count("(SELECT b FROM p WHERE b) AND v > (SELECT MIN(n) FROM p)") == 2
    assert count("t IN (SELECT t FROM p WHERE t IS NOT NULL)") == 1
    assert count("v > (SELECT SUM(n) FROM p WHERE n > 0)") == 0
    with pytest.raises(Unsupported, match="IS NOT NULL"):
        count("t NOT IN (SELECT t FROM p)")


def test_another_public_table_makes_another_question() -> None:
    tables = {"orders": sf.read(orders(), schema=ORDERS)}
    query = "SELECT COUNT(*) AS n FROM orders WHERE amount > (SELECT MAX(n) FROM p)"
    shown = []
    for largest in (10, 200):
        asked = sf.Session(tables, public={"p": pa.table({"n": [largest]})}, budget=sf.PureDP(10**12), max_rows=1000)
        shown.append(asked.sql(query, epsilon=NO_NOISE).table["n"][0].as_py())
    amounts = [amount for amount in orders()["amount"].to_pylist() if amount is not None]
    assert shown == [sum(amount > largest for amount in amounts) for largest in (10, 200)]
