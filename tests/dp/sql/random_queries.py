"""Random supported queries over random small shops, for laws that must hold for all of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import sfumato as sf
from tests.dp.sql.database import CITIES, CUSTOMERS, ORDERS, regions

CUSTOMER_TYPES = pa.schema(
    [("customer_id", pa.int64()), ("city", pa.string()), ("age", pa.int64()), ("income", pa.float64()), ("member", pa.bool_())]
)
ORDER_TYPES = pa.schema(
    [
        ("customer_id", pa.int64()),
        ("category", pa.string()),
        ("amount", pa.float64()),
        ("quantity", pa.int64()),
        ("city", pa.string()),
    ]
)
_UNITS = st.one_of(st.none(), st.integers(0, 5))
_NUMBERS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True, width=32), st.floats(-10, 700))


def customer_rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries(
        {
            "customer_id": _UNITS,
            "city": st.sampled_from([*CITIES, "elsewhere", None]),
            "age": st.one_of(st.none(), st.integers(-5, 130), st.sampled_from([2**62, -(2**62)])),
            "income": _NUMBERS,
            "member": st.sampled_from([True, False, None]),
        }
    )
    return st.lists(row, max_size=14)


def order_rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries(
        {
            "customer_id": _UNITS,
            "category": st.sampled_from(["books", "food", "weapons", None]),
            "amount": _NUMBERS,
            "quantity": st.one_of(st.none(), st.integers(-3, 30)),
            "city": st.sampled_from(CITIES),
        }
    )
    return st.lists(row, max_size=20)


def _described(schema: dict[str, Any], types: pa.Schema) -> dict[str, Any]:
    return {**schema, "columns": {name: schema["columns"][name] for name in types.names}}


def opened(customers: list[dict[str, Any]], orders: list[dict[str, Any]], **options: Any) -> sf.Session:
    """A session over these rows."""
    tables = {
        "customers": sf.read(
            pa.Table.from_pylist(customers, schema=CUSTOMER_TYPES), schema=_described(CUSTOMERS, CUSTOMER_TYPES)
        ),
        "orders": sf.read(pa.Table.from_pylist(orders, schema=ORDER_TYPES), schema=_described(ORDERS, ORDER_TYPES)),
    }
    chosen = {"budget": sf.ApproxDP(1, "0.5"), "max_rows": 1, "max_groups": 1, **options}
    return sf.Session(tables, public={"regions": regions()}, **chosen)


_CUSTOMER_NUMBERS = [
    "age",
    "income",
    "age + 1",
    "income * 2",
    "CASE WHEN member THEN age ELSE 0 END",
    "LEAST(income, 50)",
    "age - income",
    "SIGN(income - 50)",
    "income / age",
    "LN(1 + income)",
    "SQRT(age)",
    "EXP(CLAMP(income, -9, 5) / 2)",
]
_ORDER_NUMBERS = [
    "amount",
    "quantity",
    "amount * quantity",
    "CLAMP(amount, 5, 50)",
    "COALESCE(quantity, 3)",
    "FLOOR(amount / 10)",
    "amount / quantity",
    "CLAMP(quantity / amount, -1, 50)",
    "CLAMP(LOG2(amount), 0, 9)",
]
_CUSTOMER_CONDITIONS = [
    "age > 30",
    "member",
    "city = 'Bern'",
    "income BETWEEN 5 AND 500",
    "age IS NULL",
    "NOT member OR age < 20",
    "city LIKE 'B%'",
    "CONCAT(city, age) <> 'Bern30'",
]
_ORDER_CONDITIONS = [
    "amount > 10",
    "quantity IN (1, 2, 3)",
    "category = 'books'",
    "city <> 'Bern'",
    "category IS NOT NULL",
    "quantity % 2 = 0",
    "amount / quantity > 2",
    "LOG10(amount) < 1",
    "city || '/' || category = 'Bern/books'",
]
_CUSTOMER_KEYS = [
    "city",
    "member",
    "FLOOR(age / 30)",
    "CASE WHEN income > 100 THEN 'rich' ELSE 'poor' END",
    "WIDTH_BUCKET(age, 0, 100, 4)",
    "SIGN(age - 40)",
    "city || '!'",
]
_ORDER_KEYS = ["CONCAT(category, '-', city)", "category", "city", "quantity > 5", "LEAST(GREATEST(quantity, 0), 4)"]


@st.composite
def queries(draw: st.DrawFn) -> str:
    """One supported query."""
    shapes = ["customers", "orders", "public", "private", "per unit", "distinct", "left", "left per unit", "member"]
    shape = draw(st.sampled_from(shapes))
    if shape == "per unit":
        inner = draw(
            st.sampled_from(["COUNT(*)", "SUM(amount)", "MAX(quantity)", "SUM(quantity)", "MIN(amount)", "COUNT(category)"])
        )
        where = draw(st.sampled_from(["", *(f" WHERE {condition}" for condition in _ORDER_CONDITIONS)]))
        having = draw(st.sampled_from(["", " HAVING COUNT(*) > 1"]))
        source = f"(SELECT customer_id, {inner} AS v FROM orders{where} GROUP BY customer_id{having}) AS per"
        numbers, conditions, keys = ["CLAMP(v, 0, 20)"], ["v > 2", "v IS NOT NULL"], ["CLAMP(FLOOR(v), 0, 5)"]
    elif shape == "distinct":
        source = "(SELECT DISTINCT customer_id, city FROM orders) AS places"
        numbers, conditions, keys = ["CASE WHEN city = 'Bern' THEN 1 ELSE 0 END"], ["city <> 'Basel'"], ["city"]
    elif shape == "public":
        source = "customers JOIN regions ON customers.city = regions.city"
        numbers, conditions, keys = _CUSTOMER_NUMBERS[:2], ["region = 'north'", "population > 150000"], ["region"]
    elif shape == "private":
        source = "customers AS c JOIN orders AS o ON c.customer_id = o.customer_id"
        numbers, conditions, keys = (
            ["o.amount", "c.age", "c.age * o.quantity"],
            ["c.member", "o.amount > 10", "c.city = o.city"],
            ["o.category", "c.member"],
        )
    elif shape == "left":
        further = draw(st.sampled_from(["", " AND o.amount > 10", " AND o.category = 'books' AND o.city <> 'Bern'"]))
        source = f"customers AS c LEFT JOIN orders AS o ON o.customer_id = c.customer_id{further}"
        numbers, conditions, keys = (
            ["o.amount", "c.age", "COALESCE(o.quantity, 3)"],
            ["o.customer_id IS NULL", "c.member", "o.amount > 10", "NOT (o.city = 'Bern')"],
            ["c.member", "c.city", "o.customer_id IS NULL"],
        )
    elif shape == "left per unit":
        inner = draw(st.sampled_from(["COUNT(*)", "SUM(quantity)", "MAX(quantity)"]))
        source = (
            f"customers AS c LEFT JOIN (SELECT customer_id, {inner} AS v FROM orders GROUP BY customer_id) AS o "
            "ON o.customer_id = c.customer_id"
        )
        numbers, conditions, keys = ["CLAMP(COALESCE(o.v, 0), 0, 9)", "c.age"], ["o.v IS NULL", "o.v > 1"], ["c.city"]
    elif shape == "member":
        source, numbers, keys = "customers AS c", ["c.age", "c.income"], ["c.member", "c.city"]
        conditions = [
            "c.customer_id IN (SELECT customer_id FROM orders WHERE amount > 10)",
            "c.customer_id NOT IN (SELECT o.customer_id FROM orders AS o)",
            "c.customer_id IN (SELECT customer_id FROM orders GROUP BY customer_id HAVING COUNT(*) > 1)",
            "EXISTS (SELECT 1 FROM orders AS o WHERE o.customer_id = c.customer_id AND o.quantity IN (1, 2, 3))",
            "(c.member OR NOT EXISTS (SELECT * FROM orders AS o WHERE c.customer_id = o.customer_id AND o.city = c.city))",
            "c.city IN (SELECT o.city FROM orders AS o WHERE o.customer_id = c.customer_id AND o.category = 'books')",
        ]
    elif shape == "customers":
        source, numbers, conditions, keys = "customers", _CUSTOMER_NUMBERS, _CUSTOMER_CONDITIONS, _CUSTOMER_KEYS
    else:
        source, numbers, conditions, keys = "orders", _ORDER_NUMBERS, _ORDER_CONDITIONS, _ORDER_KEYS
    unit = "c.customer_id" if shape in ("private", "left", "left per unit", "member") else "customer_id"
    filters = conditions if shape != "member" else ["c.age > 30"]  # EXISTS stands in WHERE alone
    functions = [
        "SUM({0})",
        "AVG({0})",
        "COUNT({0})",
        "VAR_SAMP({0})",
        "SUM({0}) FILTER (WHERE {1})",
        "COUNT(*) FILTER (WHERE {1})",
        "MEDIAN({0})",
    ]
    aggregates = ["COUNT(*)", f"COUNT(DISTINCT {unit})"]
    for _ in range(draw(st.integers(0, 2))):
        form = draw(st.sampled_from(functions))
        aggregates.append(form.format(draw(st.sampled_from(numbers)), draw(st.sampled_from(filters))))
    chosen = draw(st.lists(st.sampled_from(aggregates), min_size=1, max_size=3, unique=True))
    grouped = draw(st.lists(st.sampled_from(keys), max_size=2, unique=True))
    where = " AND ".join(draw(st.lists(st.sampled_from(conditions), max_size=2, unique=True)))
    text = f"SELECT {', '.join([*grouped, *chosen])} FROM {source}"
    if where:
        text += f" WHERE {where}"
    return text + (f" GROUP BY {', '.join(grouped)}" if grouped else "")


def options() -> st.SearchStrategy[dict[str, Any]]:
    """Bounds on contributions."""
    return st.fixed_dictionaries(
        {"max_rows": st.integers(1, 3), "max_groups": st.integers(1, 3), "bounding": st.sampled_from(["sample", "truncate"])}
    )
