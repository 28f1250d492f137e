"""IN (SELECT …), EXISTS, LEFT JOIN and anti-joins between private tables: what SQL says, by the rows of one unit alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from tests.dp.sql.database import CUSTOMERS, ORDERS
from tests.dp.sql.random_queries import CUSTOMER_TYPES, ORDER_TYPES, opened
from tests.dp.sql.test_neighbours import check_neighbours

#: Customer 4 and the one without a number have no orders; an order has no customer, and one has a customer who is not listed.
PEOPLE = [
    {"customer_id": unit, "city": "Bern" if unit % 2 else "Basel", "age": 20 + unit, "income": 1.0, "member": unit < 2}
    for unit in range(5)
]
PEOPLE.append({"customer_id": None, "city": "Bern", "age": 50, "income": 1.0, "member": True})
BOUGHT = [
    {"customer_id": unit, "category": category, "amount": float(10 * place), "quantity": place, "city": "Bern"}
    for place, (unit, category) in enumerate(
        [(0, "books"), (0, "food"), (0, "books"), (1, "food"), (2, None), (3, "books"), (None, "books"), (9, "food")]
    )
]


def counted(query: str, **options: Any) -> Any:
    session = opened(PEOPLE, BOUGHT, **{"budget": sf.PureDP(10**7), "max_rows": 50, "max_groups": 9, **options})
    table = session.sql(query, epsilon=10**6).table
    return table["n"][0].as_py() if table.num_rows == 1 else dict(zip(*(c.to_pylist() for c in table.columns), strict=True))


# Values by hand; rows without a unit never count, and never match.
ANSWERS = {
    "customer_id IN (SELECT customer_id FROM orders WHERE category = 'books')": 2,
    "customer_id NOT IN (SELECT customer_id FROM orders WHERE category = 'books')": 3,
    "customer_id NOT IN (SELECT customer_id FROM orders)": 1,
    "NOT customer_id IN (SELECT customer_id FROM orders WHERE FALSE)": 5,
    "customer_id IN (SELECT DISTINCT customer_id FROM orders)": 4,
    "customer_id IN (SELECT customer_id FROM orders GROUP BY customer_id HAVING COUNT(*) > 1)": 1,
    "customer_id IN (SELECT o.customer_id FROM orders o JOIN regions r ON o.city = r.city WHERE r.region = 'centre')": 4,
    "customer_id IN (SELECT customer_id FROM orders WHERE customer_id IN (SELECT customer_id FROM customers WHERE age > 22))": 1,
    "EXISTS (SELECT 1 FROM orders AS o WHERE o.customer_id = c.customer_id AND o.amount >= 20)": 4,
    "NOT EXISTS (SELECT 1 FROM orders AS o WHERE c.customer_id = o.customer_id)": 1,
    "c.member OR EXISTS (SELECT 1 FROM orders AS o WHERE o.customer_id = c.customer_id AND o.category IS NULL)": 3,
    "EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND o.city = c.city)": 2,
    "c.city IN (SELECT o.city FROM orders o WHERE o.customer_id = c.customer_id)": 2,
    "EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND category = 'food') AND "
    "customer_id IN (SELECT customer_id FROM orders WHERE category = 'books')": 1,
}


@pytest.mark.parametrize("condition", ANSWERS, ids=lambda text: text[:60])
def test_a_condition_about_another_private_table_keeps_the_rows_that_sql_keeps(condition: str) -> None:
    assert counted(f"SELECT COUNT(*) AS n FROM customers AS c WHERE {condition}") == ANSWERS[condition]


def test_a_name_given_with_with_may_stand_in_the_condition() -> None:
    named = "WITH readers AS (SELECT customer_id AS who FROM orders WHERE category = 'books') "
    assert counted(f"{named} SELECT COUNT(*) AS n FROM customers WHERE customer_id IN (SELECT who FROM readers)") == 2


LEFT = {
    "COUNT(*) AS n FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id": 7,
    "COUNT(o.quantity) AS n FROM customers c LEFT JOIN orders o USING (customer_id)": 6,
    "COUNT(*) AS n FROM customers c LEFT JOIN orders o USING (customer_id) WHERE customer_id = 4": 1,
    "COUNT(*) AS n FROM customers c LEFT JOIN orders o USING (customer_id) WHERE o.customer_id IS NULL": 1,
    "COUNT(*) AS n FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.category = 'books' "
    "WHERE o.customer_id IS NULL": 3,
    "COUNT(DISTINCT o.customer_id) AS n FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id": 4,
    "COUNT(DISTINCT c.customer_id) AS n FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id": 5,
    "SUM(CLAMP(COALESCE(per.k, 0), 0, 9)) AS n FROM customers c LEFT JOIN (SELECT customer_id, COUNT(*) AS k FROM orders "
    "GROUP BY customer_id) AS per ON per.customer_id = c.customer_id": 6,
    "COUNT(*) AS n FROM customers c JOIN orders o ON o.customer_id = c.customer_id AND o.quantity > c.age - 20": 5,
}


@pytest.mark.parametrize("query", LEFT, ids=lambda text: text[:80])
def test_a_left_join_of_private_tables_keeps_the_rows_without_a_match(query: str) -> None:
    assert counted(f"SELECT {query}") == LEFT[query]


def test_one_row_per_unit_on_both_sides_needs_no_bounds() -> None:
    per = "(SELECT customer_id, COUNT(*) AS k FROM {} GROUP BY customer_id)"
    query = (
        f"SELECT COUNT(*) AS n FROM {per.format('customers')} AS a LEFT JOIN {per.format('orders')} AS b "
        "ON a.customer_id = b.customer_id WHERE b.k IS NULL"
    )
    assert counted(query, max_rows=None, max_groups=None) == 1


# Refusals, and the rewrite that each names ---------------------------------------------------------------------------

REFUSED = {
    "SELECT COUNT(*) AS n FROM customers c WHERE city IN (SELECT city FROM orders)": (
        "must equate the unit",
        "SELECT COUNT(*) AS n FROM customers c WHERE EXISTS (SELECT 1 FROM orders b WHERE b.customer_id = c.customer_id "
        "AND b.city = c.city)",
    ),
    "SELECT COUNT(*) AS n FROM customers WHERE EXISTS (SELECT 1 FROM orders WHERE amount > 10)": (
        "must equate the unit",
        "SELECT COUNT(*) AS n FROM customers WHERE customer_id IN (SELECT customer_id FROM orders WHERE amount > 10)",
    ),
    "SELECT COUNT(*) AS n FROM customers a WHERE EXISTS (SELECT 1 FROM orders b WHERE b.customer_id = a.customer_id "
    "AND b.amount > a.age)": (
        "count units",
        "SELECT COUNT(DISTINCT a.customer_id) AS n FROM customers a JOIN orders b ON a.customer_id = b.customer_id "
        "WHERE b.amount > a.age",
    ),
    "SELECT COUNT(*) AS n FROM customers a WHERE EXISTS (SELECT customer_id FROM orders b WHERE b.customer_id = a.customer_id "
    "GROUP BY customer_id HAVING COUNT(*) > 2)": (
        "with IN instead",
        "SELECT COUNT(*) AS n FROM customers WHERE customer_id IN (SELECT customer_id FROM orders GROUP BY customer_id "
        "HAVING COUNT(*) > 2)",
    ),
    "SELECT COUNT_IF(customer_id IN (SELECT customer_id FROM orders)) AS n FROM customers": (
        "stands in WHERE",
        "SELECT COUNT(*) AS n FROM customers WHERE customer_id IN (SELECT customer_id FROM orders)",
    ),
    "SELECT COUNT(*) AS n FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id AND c.member": (
        "sub-query of the left table",
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, CASE WHEN member THEN 'Bern' ELSE 'none' END AS x FROM customers) AS c "
        "LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.city = c.x",
    ),
    "SELECT COUNT(*) AS n FROM regions WHERE city IN (SELECT city FROM orders)": (
        "put the private table first",
        "SELECT COUNT(*) AS n FROM orders JOIN regions ON orders.city = regions.city",
    ),
    "SELECT COUNT(*) AS n FROM customers c LEFT JOIN orders o ON o.city = c.city": (
        "on their unit",
        "SELECT COUNT(*) AS n FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.city = c.city",
    ),
}


@pytest.mark.parametrize("query", REFUSED, ids=lambda text: text[:80])
def test_a_refusal_names_a_rewrite_that_is_answered(query: str) -> None:
    reason, rewrite = REFUSED[query]
    with pytest.raises(Unsupported, match=reason):
        counted(query)
    assert isinstance(counted(rewrite), (int, float))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) AS n FROM customers WHERE customer_id IN (SELECT customer_id FROM orders)",
        "SELECT COUNT(*) AS n FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id)",
        "SELECT COUNT(*) AS n FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id",
    ],
)
def test_where_every_record_is_a_unit_no_other_private_row_belongs_to_it(query: str) -> None:
    tables = {}
    for name, rows, schema, types in (
        ("customers", PEOPLE, CUSTOMERS, CUSTOMER_TYPES),
        ("orders", BOUGHT, ORDERS, ORDER_TYPES),
    ):
        described = {column: {k: v for k, v in schema["columns"][column].items() if k != "role"} for column in types.names}
        tables[name] = sf.read(
            pa.Table.from_pylist(rows, schema=types), schema={"dataset": "shop", "unit": "record", "columns": described}
        )
    with pytest.raises(Unsupported, match="unit column"):
        sf.Session(tables, budget=sf.PureDP(1)).explain(query, epsilon=1)
    # The rewrite: say which column names people, in both tables.
    both = {
        name: sf.read(data.table(), schema=schema) for (name, data), schema in zip(tables.items(), _with_units(), strict=True)
    }
    sf.Session(both, budget=sf.PureDP(1), max_rows=1, max_groups=1).explain(query, epsilon=1)


def _with_units() -> list[dict[str, Any]]:
    return [
        {**schema, "columns": {name: schema["columns"][name] for name in types.names}}
        for schema, types in ((CUSTOMERS, CUSTOMER_TYPES), (ORDERS, ORDER_TYPES))
    ]


# One unit -------------------------------------------------------------------------------------------------------------


@pytest.mark.covering
@pytest.mark.parametrize("query", [
    "SELECT city, COUNT(*), SUM(age) FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders) GROUP BY city",
    "SELECT COUNT(*), SUM(c.age) FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id)",
    "SELECT COUNT(*), COUNT(DISTINCT o.customer_id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id",
    "SELECT c.city, COUNT(*) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id WHERE o.customer_id IS NULL "
    "GROUP BY c.city",
])  # fmt: skip
@pytest.mark.parametrize("rows", [1, 3])
def test_a_unit_without_its_orders_changes_its_own_rows_alone(query: str, rows: int) -> None:
    """The unit with most rows leaves one table or both: others are kept or left out as before."""
    heavy = [{**PEOPLE[0], "city": city} for city in ("Bern", "Basel", "Zürich") for _ in range(4)]
    for bought in (BOUGHT, [row for row in BOUGHT if row["customer_id"] != 0], BOUGHT * 3):
        check_neighbours([*heavy, *PEOPLE], bought, query, {"max_rows": rows, "max_groups": 2})
