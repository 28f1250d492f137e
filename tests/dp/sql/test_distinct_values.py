"""COUNT(DISTINCT x) of any column: each unit's values are chosen from its own rows, and at most so many of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import parse_one

import sfumato as sf
from sfumato.dp.sql.measuring.noise import Request, price
from sfumato.dp.sql.measuring.one_query import _value_counts, distinct_values
from tests.dp.sql import brute_force as plain
from tests.dp.sql.database import CITIES
from tests.dp.sql.random_queries import opened, options
from tests.dp.sql.test_compiler import _TABLES, WIDE, both
from tests.dp.sql.test_neighbours import FixedSalt, check_neighbours
from tests.examples import examples

_COLUMNS = ["category", "quantity", "city", "amount", "quantity > 5", "FLOOR(amount / 10)"]
_KEYS = ["", "city", "category", "quantity > 5"]


@st.composite
def questions(draw: st.DrawFn) -> str:
    column, key = draw(st.sampled_from(_COLUMNS)), draw(st.sampled_from(_KEYS))
    condition = draw(st.sampled_from(["", " FILTER (WHERE amount > 10)"]))
    shown = f"{key}, " if key else ""
    return f"SELECT {shown}COUNT(DISTINCT {column}){condition} FROM orders" + (f" GROUP BY {key}" if key else "")


def counts(session: sf.Session, query: str) -> dict[tuple[Any, ...], int]:
    question = session._question(session._parsed(query), None)
    priced = price(question, Request(epsilon=1, delta="1e-6"), session._bounds)
    (measurement,) = distinct_values(question)
    return {group: n for group, n in _value_counts(question, priced, measurement, FixedSalt()).items() if n}


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(_TABLES, questions(), st.sampled_from(["sample", "truncate"]))
def test_with_bounds_that_do_not_bite_it_is_what_sql_counts(tables: Any, query: str, bounding: str) -> None:
    session, copies = both(*tables, **WIDE, bounding=bounding)
    expected = plain.asked(copies, query)
    item = parse_one(query, dialect="duckdb").expressions[-1]
    where = item.expression.this if item.key == "filter" else None
    argument = (item.this if where is not None else item).this.expressions[0]
    exact = {group: len({value for _, value in expected.pieces(group, argument, where)}) for group in expected.groups}
    assert counts(session, query) == {group: n for group, n in exact.items() if n}


@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(_TABLES, questions(), options())
def test_one_unit_less_changes_it_by_at_most_its_values_in_its_groups(tables: Any, query: str, bounds: dict[str, Any]) -> None:
    check_neighbours(*tables, query, bounds)


def rows(unit: int, quantities: list[int], city: str = "Bern") -> list[dict[str, Any]]:
    return [
        {"customer_id": unit, "category": "books", "amount": 1.0, "quantity": quantity, "city": city} for quantity in quantities
    ]


@pytest.mark.parametrize("bounding", ["sample", "truncate"])
@pytest.mark.parametrize("most", [1, 3])
def test_a_unit_with_many_values_shows_as_many_as_the_bound(bounding: str, most: int) -> None:
    heavy = [row for city in CITIES for row in rows(1, list(range(20)), city)]
    query = "SELECT city, COUNT(DISTINCT quantity) AS n FROM orders GROUP BY city"
    found = counts(opened([], heavy, max_rows=most, max_groups=2, bounding=bounding), query)
    assert sorted(found.values()) == [most, most]
    check_neighbours([], [*heavy, *rows(2, [7])], query, {"max_rows": most, "max_groups": 2, "bounding": bounding})


def test_what_a_unit_shows_does_not_depend_on_the_others() -> None:
    """A greedy choice across units would let one unit's values free or block those of all others: a chain of swaps."""
    chain = [row for unit in range(12) for row in rows(unit, [unit, unit + 1])]
    query = "SELECT COUNT(DISTINCT quantity) AS n FROM orders"
    alone = [counts(opened([], rows(unit, [unit, unit + 1]), max_rows=1), query)[()] for unit in range(12)]
    assert alone == [1] * 12
    # the first value of each unit: which one a salt draws may depend on the order of rows, though the law of the draw does not
    check_neighbours([], chain, query, {"max_rows": 1, "max_groups": 1, "bounding": "truncate"})


def test_many_rows_of_one_value_do_not_crowd_out_the_others() -> None:
    crowded = rows(1, [1] * 500 + [2, 3])
    assert counts(opened([], crowded, max_rows=3), "SELECT COUNT(DISTINCT quantity) AS n FROM orders") == {(): 3}


def test_what_is_counted_is_said_and_the_price_is_that_of_the_values() -> None:
    session = opened([], rows(1, [1, 2]), max_rows=4, max_groups=3, budget=sf.PureDP(10**7))
    explanation = session.explain("SELECT city, COUNT(DISTINCT quantity) AS n FROM orders GROUP BY city", epsilon=1)
    (note,) = explanation.measurements
    assert (
        note.what == "number of distinct values" and note.sensitivity_l1 == 12 and note.sensitivity_l2 == pytest.approx(48**0.5)
    )
    assert (
        "COUNT(DISTINCT …) counts the values that at most 4 values of each customer_id in a group show"
        in explanation.contribution
    )
    answer = session.sql("SELECT COUNT(DISTINCT quantity) AS n, COUNT(*) AS rows FROM orders", epsilon=10**6)
    assert answer.table.to_pylist() == [{"n": 2, "rows": 2}]
    assert answer.margins().to_pylist()[0]["n"] is not None
    assert session.sql("SELECT COUNT(DISTINCT o.quantity) AS k FROM orders AS o", epsilon=10**5).repeated


def test_of_records_each_adds_one_value() -> None:
    session, copies = both([], [{**row, "customer_id": 5} for row in rows(1, [1, 1, 2, 3])], records=True)
    query = "SELECT COUNT(DISTINCT quantity) AS n FROM orders"
    assert session.explain(query, epsilon=1).measurements[0].sensitivity_l1 == 1
    assert counts(session, query) == {(): 3} and len(copies["orders"].rows) == 4


def test_it_is_published_and_verified(tmp_path: Any) -> None:
    session = opened([], rows(1, [1, 2]), ledger=tmp_path / "ledger.db", budget=sf.PureDP(1))
    answer = session.sql("SELECT COUNT(DISTINCT quantity) AS n FROM orders", epsilon=1)
    sf.publish(answer.outcome, session.ledger).save(tmp_path / "out", "csv")
    assert sf.verify(tmp_path / "out", ledger=session.ledger).accepted
