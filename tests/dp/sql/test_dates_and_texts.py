"""Days between dates, constant intervals, and texts one after the other: in conditions, sums and keys."""

from __future__ import annotations

import datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators import language
from sfumato.dp.sql.operators.dates import interval_of, shifted
from sfumato.dp.sql.operators.term import Term
from sfumato.engines import expressions as e
from tests.dp.sql.database import CITIES, session

DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=number) for number in range(5)]


def plain_session(**columns: Any) -> sf.Session:
    """A session about days and texts, one record each, whose days and cities are declared."""
    table = pa.table({"day": [*DAYS, None, datetime.date(2030, 1, 1)], "city": ["Bern", "Basel", None, "Bern", "", "x", "Bern"]})
    schema = {
        "unit": "record",
        "columns": {
            "day": {"type": "date", "domain": [str(day) for day in DAYS]},
            "city": {"type": "string", "domain": ["Bern", "Basel"]},
        },
    }
    return sf.Session(sf.read(table, schema=schema), budget=sf.PureDP(10**12), **columns)


@pytest.mark.parametrize(
    "written", ["30 days", "1 month", "3 months", "13 months", "1 year", "2 weeks", "1 quarter", "-1 months"]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_constant_intervals_move_dates_as_duckdb_moves_them(written: str, sign: int) -> None:
    number, unit = written.split()
    node = sqlglot.parse_one(f"INTERVAL '{number} {unit}'", dialect="duckdb")
    months, days = interval_of(node)
    for text in ("2024-01-31", "2024-02-29", "2023-12-31", "2024-03-30", "2025-08-31"):
        operator = "+" if sign > 0 else "-"
        (expected,) = duckdb.sql(f"SELECT CAST(DATE '{text}' {operator} INTERVAL '{written}' AS DATE)").fetchone() or (None,)
        assert shifted(datetime.date.fromisoformat(text), sign * months, sign * days) == expected


def test_declared_days_bound_the_days_between() -> None:
    asked = plain_session()
    explained = asked.explain("SELECT SUM(day - DATE '2024-01-01') AS s, MAX(DATE '2024-01-10' - day) AS m FROM t", epsilon=1)
    assert explained.measurements[0].sensitivity_l1 == 4
    query = "SELECT SUM(day - DATE '2024-01-01') AS s FROM t"
    assert asked.sql(query, epsilon=10**9).table["s"][0].as_py() == 0 + 1 + 2 + 3 + 4 + 4  # 2030 counts as the last declared day


def test_undeclared_days_need_a_clamp_which_works_as_typed() -> None:
    asked = session(budget=sf.PureDP(10**12), max_rows=1)
    with pytest.raises(Unsupported, match=r"any days of the calendar.*AVG\(CLAMP\(x, 0, 100\)\)"):
        asked.explain("SELECT AVG(DATE '2025-01-01' - joined) AS d FROM customers", epsilon=1)
    explained = asked.explain("SELECT AVG(CLAMP(DATE '2025-01-01' - joined, 0, 100)) AS d FROM customers", epsilon=1)
    assert explained.measurements[0].sensitivity_l1 == 50


REWRITES = {
    "day + INTERVAL 1 MONTH > DATE '2024-12-31'": ("move the constant", "day >= DATE '2024-12-31' - INTERVAL 3 MONTH"),
    "DATEDIFF('month', day, DATE '2024-12-31') > 2": (
        "12 times that plus",
        "12 * (EXTRACT(YEAR FROM DATE '2024-12-31') - EXTRACT(YEAR FROM day)) + EXTRACT(MONTH FROM DATE '2024-12-31') "
        "- EXTRACT(MONTH FROM day) > 2",
    ),
    "day + quantity > DATE '2024-12-31'": ("day \\+ 7, or day", "day + 7 > DATE '2024-12-31'"),
    "day + INTERVAL '1 hour' > DATE '2024-12-31'": ("INTERVAL '30 days'", "day + INTERVAL '30 days' > DATE '2024-12-31'"),
    "day - city > 3": ("needs two numbers", "day - DATE '2024-01-01' > 3"),
    "city || amount = 'x'": ("not a number", "city || quantity = 'Bern3'"),
    "DATE '9999-12-31' + INTERVAL 1 DAY > day": ("outside the years 1 to 9999", "DATE '9999-12-30' + INTERVAL 1 DAY > day"),
}


@pytest.mark.parametrize("written", REWRITES)
def test_what_is_refused_names_what_works(written: str) -> None:
    asked = session(max_rows=1)
    reason, rewrite = REWRITES[written]
    with pytest.raises(Unsupported, match=reason):
        asked.explain(f"SELECT COUNT(*) AS n FROM orders WHERE {written}", epsilon=1)
    assert asked.explain(f"SELECT COUNT(*) AS n FROM orders WHERE {rewrite}", epsilon=1).measurements


def test_joined_texts_of_declared_keys_are_declared() -> None:
    asked = session(max_rows=5, max_groups=3)
    counts = {
        "'city of ' || city": 4,
        "CONCAT(city, ', ', category)": 16,
        "city || (quantity > 3)": None,
        "CONCAT(coupon, city)": None,
        "city || '/' || CAST(LEAST(GREATEST(quantity, 0), 2) AS TEXT)": None,
    }
    for key, count in counts.items():
        term = language.lower(sqlglot.parse_one(key, dialect="duckdb"), lambda node: _column(node.name))
        assert (None if term.values is None else len(term.values)) == count, key
    answer = asked.sql("SELECT 'in ' || city AS place, COUNT(*) AS n FROM orders GROUP BY place", epsilon=1)
    assert answer.table["place"].to_pylist() == [f"in {city}" for city in CITIES]


def _column(name: str) -> Term:
    values = {"city": CITIES, "category": ("books", "food", "games", "tools")}.get(name)
    return Term(e.Reference(name), "integer" if name == "quantity" else "string", values=values)


def test_a_missing_text_makes_the_whole_missing_or_counts_as_none() -> None:
    asked = plain_session()
    for key, expected in {"city || '!'": {"Bern!": 3, "Basel!": 1}, "CONCAT(city, '!')": {"Bern!": 3, "Basel!": 1}}.items():
        rows = asked.sql(f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY k", epsilon=10**9).table.to_pylist()
        assert {row["k"]: row["n"] for row in rows} == expected
    for condition, count in {"CONCAT(city, '!') = '!'": 2, "city || '!' = '!'": 1, "(city || '!') IS NULL": 1}.items():
        query = f"SELECT COUNT(*) AS n FROM t WHERE {condition}"
        assert asked.sql(query, epsilon=10**9).table["n"][0].as_py() == count
