"""Groups that WHERE rules out are not shown, cost no noise, and are decided from the query and the declarations alone."""

from __future__ import annotations

import itertools
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.dp.sql.reading.excluded_keys import Exclusions
from tests.dp.sql.database import CATEGORIES, CITIES, session

ATOMS = [
    "city = 'Bern'", "city <> 'Bern'", "city IN ('Bern', 'Basel')", "city < 'Bern'", "city IS NULL", "city IS NOT NULL",
    "q < 2", "q >= 3", "q BETWEEN 1 AND 2", "q IN (0, 9)", "q = 4", "q <> 0", "free > 1", "flag", "NOT flag", "flag IS NULL",
    "city IS DISTINCT FROM 'Bern'", "city = free_text", "q > 9", "NULL",
]  # fmt: skip
DECLARED = {"city": ["Basel", "Bern", "Zug"], "q": [0, 1, 2, 3, 4], "flag": [False, True]}


def keys_shown(asked: sf.Session, where: str, key: str) -> list[Any]:
    question = asked._question(asked._parsed(f"SELECT {key}, COUNT(*) AS n FROM t WHERE {where} GROUP BY {key}"), None)
    return list(question.keys[0].values or ())


@pytest.fixture(scope="module")
def every_row() -> pa.Table:
    """All rows that a table with these columns can have, out of some values each, also undeclared ones and none."""
    values = [
        ["Basel", "Bern", "Zug", "elsewhere", None],
        [-7, 0, 1, 2, 3, 4, 9, 12, None],
        [False, True, None],
        [0, 2, None],
        ["Basel", "Bern", "Zug", "x", None],
    ]
    names = ["city", "q", "flag", "free", "free_text"]
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in itertools.product(*values)])


@pytest.fixture(scope="module")
def asked(every_row: pa.Table) -> sf.Session:
    schema = {
        "unit": "record",
        "columns": {
            "city": {"type": "string", "domain": DECLARED["city"]},
            "q": {"type": "integer", "bounds": [0, 4]},
            "flag": {"type": "boolean"},
            "free": {"type": "integer"},
            "free_text": {"type": "string"},
        },
    }
    return sf.Session(sf.read(every_row, schema=schema), budget=sf.PureDP(10**12))


@pytest.fixture(scope="module")
def duck(every_row: pa.Table) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT * FROM every_row")
    return connection


def reached(duck: duckdb.DuckDBPyConnection, where: str) -> dict[str, set[Any]]:
    """The declared values of each key that some row meeting the condition has, by DuckDB."""
    lists = "LIST(DISTINCT city), LIST(DISTINCT LEAST(GREATEST(q, 0), 4)), LIST(DISTINCT flag)"
    (row,) = duck.execute(f"SELECT {lists} FROM t WHERE {where}").fetchall()
    return {key: set(values or ()) & set(DECLARED[key]) for key, values in zip(DECLARED, row, strict=True)}


@pytest.mark.parametrize("form", ["{0}", "NOT ({0})", "({0}) AND ({1})", "({0}) OR ({1})", "NOT (({0}) OR ({1}))"])
def test_no_group_is_left_out_that_a_row_could_be_in(asked: sf.Session, duck: duckdb.DuckDBPyConnection, form: str) -> None:
    # Of all pairs every eleventh, each condition on either side.
    pairs = list(itertools.product(ATOMS, ATOMS))[::11] if "{1}" in form else [(atom, "") for atom in ATOMS]
    exact = 0
    for one, other in pairs:
        where = form.format(one, other)
        for (key, declared), possible in zip(DECLARED.items(), reached(duck, where).values(), strict=True):
            try:
                shown = keys_shown(asked, where, key)
            except Unsupported:
                shown = []
            assert possible <= set(shown) <= set(declared), (where, key)
            exact += possible == set(shown)
            if "{1}" not in form:  # a single condition is decided exactly
                assert possible == set(shown), (where, key)
    assert exact > 0


def test_the_groups_of_the_answer_follow_the_condition() -> None:
    shop = session()
    query = "SELECT {0}, COUNT(*) AS n FROM orders WHERE {1} GROUP BY {0}"
    for key, where, values in [
        ("city", "city <> 'Bern'", [city for city in CITIES if city != "Bern"]),
        ("category", "category IN ('books', 'games') AND city = 'Basel'", ["books", "games"]),
        ("CONCAT(city, '!')", "city = 'Basel' AND amount > 3", ["Basel!"]),
        ("EXTRACT(MONTH FROM day)", "EXTRACT(MONTH FROM day) <= 3", [1, 2, 3]),
        ("CASE WHEN quantity < 5 THEN 'few' ELSE 'many' END", "amount > 3", ["few", "many"]),
    ]:
        answer = shop.sql(query.format(key, where), epsilon=1)
        assert answer.table.column(0).to_pylist() == values
    explained = shop.explain("SELECT city, COUNT(*) AS n FROM orders WHERE city = 'Basel' GROUP BY city", epsilon=1)
    assert explained.groups == 1 and explained.measurements[0].sensitivity_l1 == 5  # five rows in one group, not in three


def test_values_that_the_question_declares_are_shown_as_declared() -> None:
    query = "SELECT city, COUNT(*) AS n FROM orders WHERE city <> 'Bern' GROUP BY city"
    assert session().sql(query, epsilon=1, keys={"city": ["Bern", "Basel"]}).table["city"].to_pylist() == ["Bern", "Basel"]


def test_a_condition_that_no_declared_key_meets_is_refused_before_it_costs() -> None:
    shop = session()
    left = shop.remaining()
    with pytest.raises(Unsupported, match="no declared value of the grouping key 'category' meets WHERE"):
        shop.sql("SELECT category, COUNT(*) AS n FROM orders WHERE category = 'weapons' GROUP BY category", epsilon=1)
    assert shop.remaining() == left and set(CATEGORIES)


def test_nothing_is_read_of_the_rows() -> None:
    shop = session()
    question = shop._question(shop._parsed("SELECT city, COUNT(*) AS n FROM orders WHERE city <> 'Bern' GROUP BY city"), None)
    assert len(Exclusions(question.rows).conditions) == 1
    empty = sf.Session({"orders": sf.read(_no_orders(), schema=_orders())}, budget=sf.PureDP(1), max_rows=1, max_groups=1)
    same = empty._question(empty._parsed("SELECT city, COUNT(*) AS n FROM orders WHERE city <> 'Bern' GROUP BY city"), None)
    assert same.keys[0].values == question.keys[0].values


def _no_orders() -> pa.Table:
    from tests.dp.sql.database import orders

    return orders().slice(0, 0)


def _orders() -> dict[str, Any]:
    from tests.dp.sql.database import ORDERS

    return ORDERS
