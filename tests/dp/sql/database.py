"""A small shop for the tests: customers, their orders and visits (private, one unit), cities and a calendar (public)."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa

import sfumato as sf

CITIES = ("Basel", "Bern", "Genève", "Zürich")
CATEGORIES = ("books", "food", "games", "tools")

CUSTOMERS: dict[str, Any] = {
    "dataset": "shop",
    "columns": {
        "customer_id": {"role": "unit", "type": "integer"},
        "name": {"role": "identifier", "type": "string"},
        "city": {"type": "string", "domain": list(CITIES)},
        "age": {"type": "integer", "bounds": [0, 120]},
        "income": {"type": "number", "bounds": [0, 200000]},
        "member": {"type": "boolean"},
        "joined": {"type": "date"},
        "score": {"type": "number"},
    },
}
ORDERS: dict[str, Any] = {
    "dataset": "shop",
    "columns": {
        "order_id": {"type": "integer"},
        "customer_id": {"role": "unit", "type": "integer"},
        "category": {"type": "string", "domain": list(CATEGORIES)},
        "amount": {"type": "number", "bounds": [0, 500]},
        "quantity": {"type": "integer", "bounds": [0, 20]},
        "city": {"type": "string", "domain": list(CITIES)},
        "day": {"type": "date"},
        "coupon": {"type": "string"},
    },
}


def customers(count: int = 200, seed: int = 1) -> pa.Table:
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        rows.append(
            {
                "customer_id": number,
                "name": f"person {number}",
                "city": draw.choice([*CITIES, "elsewhere", None]),
                "age": draw.choice([None, *range(18, 95)]),
                "income": draw.choice([None, round(draw.uniform(0, 250_000), 2)]),
                "member": draw.choice([True, False, None]),
                "joined": datetime.date(2020, 1, 1) + datetime.timedelta(days=draw.randrange(1500)),
                "score": draw.choice([None, draw.gauss(0, 1)]),
            }
        )
    types = [("customer_id", pa.int64()), ("name", pa.string()), ("city", pa.string()), ("age", pa.int64())]
    types += [("income", pa.float64()), ("member", pa.bool_()), ("joined", pa.date32()), ("score", pa.float64())]
    return pa.Table.from_pylist(rows, schema=pa.schema(types))


def orders(count: int = 1000, customers: int = 200, seed: int = 2) -> pa.Table:
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        rows.append(
            {
                "order_id": number,
                "customer_id": draw.choice([draw.randrange(customers), draw.randrange(5)]),
                "category": draw.choice([*CATEGORIES, None]),
                "amount": draw.choice([None, round(draw.expovariate(1 / 60), 2)]),
                "quantity": draw.choice([None, draw.randrange(0, 25)]),
                "city": draw.choice(CITIES),
                "day": datetime.date(2024, 1, 1) + datetime.timedelta(days=draw.randrange(366)),
                "coupon": draw.choice([None, "spring", "summer", f"C{draw.randrange(1000)}"]),
            }
        )
    types = [("order_id", pa.int64()), ("customer_id", pa.int64()), ("category", pa.string()), ("amount", pa.float64())]
    types += [("quantity", pa.int64()), ("city", pa.string()), ("day", pa.date32()), ("coupon", pa.string())]
    return pa.Table.from_pylist(rows, schema=pa.schema(types))


def regions() -> pa.Table:
    return pa.table(
        {
            "city": list(CITIES),
            "region": ["north", "centre", "west", "north"],
            "population": [180_000, 135_000, 205_000, 440_000],
        }
    )


def session(**options: Any) -> sf.Session:
    """A session over the shop with a large budget."""
    tables = {
        "customers": sf.read(customers(), schema=CUSTOMERS),
        "orders": sf.read(orders(), schema=ORDERS),
    }
    given = {"budget": sf.ApproxDP(1000, "0.5"), "max_rows": 5, "max_groups": 3, "seed": 7, **options}
    return sf.Session(tables, public={"regions": regions()}, **given)
