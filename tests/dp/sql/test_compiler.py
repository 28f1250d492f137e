"""The compiler against a second evaluator: what is measured before noise, and what is answered when there is next to none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

import sfumato as sf
from sfumato.dp.sql.aggregates import PLACEHOLDER
from sfumato.dp.sql.measuring import flat_plan, run, split, tree_plan
from sfumato.dp.sql.noise import Request, price
from tests.dp.sql import brute_force as plain
from tests.dp.sql.database import CUSTOMERS, ORDERS, regions
from tests.dp.sql.random_queries import CUSTOMER_TYPES, ORDER_TYPES, customer_rows, order_rows, queries

NO_NOISE = 10**13
WIDE = {"max_rows": 400, "max_groups": 200}  # no unit of these tables reaches it
_LAX = settings(deadline=None, suppress_health_check=list(HealthCheck))


def _columns(schema: dict[str, Any], types: pa.Schema) -> dict[str, plain.Described]:
    found = {}
    for name in types.names:
        declared = schema["columns"][name]
        low, high = declared.get("bounds", (None, None))
        values = tuple(declared["domain"]) if "domain" in declared else None
        found[name] = plain.Described(declared["type"], low, high, values)
    return found


def _public() -> plain.Table:
    rows = regions().to_pylist()
    spread = {name: tuple(sorted({row[name] for row in rows})) for name in rows[0]}
    kinds = {"city": "string", "region": "string", "population": "integer"}
    ends = {"population": (spread["population"][0], spread["population"][-1])}
    columns = {n: plain.Described(kinds[n], *ends.get(n, (None, None)), spread[n]) for n in rows[0]}
    return plain.Table(columns, rows, private=False)


def both(
    customers: list[dict[str, Any]], orders: list[dict[str, Any]], *, records: bool = False, **options: Any
) -> tuple[sf.Session, dict[str, plain.Table]]:
    """A session over these rows, and the same tables for the brute force."""
    unit = None if records else "customer_id"
    tables, copies = {}, {"regions": _public()}
    for name, rows, schema, types in (
        ("customers", customers, CUSTOMERS, CUSTOMER_TYPES),
        ("orders", orders, ORDERS, ORDER_TYPES),
    ):
        described = {column: dict(schema["columns"][column]) for column in types.names}
        if records:
            described["customer_id"].pop("role")
        tables[name] = sf.read(pa.Table.from_pylist(rows, schema=types), schema={**schema, "columns": described})
        copies[name] = plain.Table(_columns(schema, types), rows, unit)
    budget = sf.ApproxDP(10**15, "0.5")
    return sf.Session(tables, public={"regions": regions()}, budget=budget, seed=1, **options), copies


def _dyadic(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    """Amounts as multiples of 1/64, so that sums per unit are the same reals however they are rounded."""

    def moved(value: float | None) -> float | None:
        return value if value is None or not math.isfinite(value) or abs(value) > 1e6 else round(value * 64) / 64

    return [{**row, column: moved(row[column])} for row in rows]


def _aggregates(text: str) -> list[tuple[str, exp.Expression | None, exp.Expression | None]]:
    found = []
    for item in sqlglot.parse_one(text, dialect="duckdb").expressions:
        where, node = None, item
        if isinstance(node, exp.Filter):
            where, node = node.expression.this, node.this
        if not isinstance(node, exp.AggFunc):
            continue
        argument = None if isinstance(node.this, exp.Star) else node.this
        name = type(node).__name__.lower()
        found.append(("units", None, where) if isinstance(argument, exp.Distinct) else (name, argument, where))
    return found


# Before the noise ----------------------------------------------------------------------------------------------------


def check_integers(
    customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str, bounds: dict[str, Any], *, records: bool = False
) -> None:
    """Counts exactly, sums to half a step per row where no bound bites; numbers of kept rows and pairs where one does."""
    asked, tables = both(customers, orders, records=records, **bounds)
    expected = plain.asked(tables, query)
    question = asked._question(asked._parsed(query), None)
    priced = price(question, Request.of(epsilon=1, delta="1e-6"), asked._bounds)
    rows, groups = asked._bounds.rows, asked._bounds.groups
    owned = expected.contributions()
    bites_groups = not records and bool(question.keys) and any(len(own) > groups for own in owned.values())
    bites_rows = not records and any(count > rows for own in owned.values() for count in own.values())
    flat, trees = split(question, priced)
    found: dict[Any, list[int]] = {}
    if flat:
        for row in run(question, flat_plan(question, priced, flat, "ab" * 16)).to_pylist():
            cells = list(row.values())
            found[tuple(cells[: len(question.keys)])] = [int(cell or 0) for cell in cells[len(question.keys) :]]
    assert found.keys() <= set(expected.groups)
    place = {measurement.name: number for number, measurement in enumerate(flat)}
    for text, argument, where in _aggregates(query):
        if text == "median":
            continue
        statistic = question.statistics[_placeholder(question, text, argument, where)]
        for group in expected.groups:
            numbers = found.get(group, [0] * len(flat))
            pieces = expected.pieces(group, argument, where)
            if text == "units" and not bites_groups and (not bites_rows or where is None):
                assert numbers[place[statistic.count or ""]] == len({unit for unit, _ in pieces})
            if bites_groups or bites_rows:
                continue
            values = [value for _, value in pieces]
            if statistic.count is not None and text != "units":
                assert numbers[place[statistic.count]] == len(values)
            if statistic.total is not None:
                exact = plain.total(Fraction(v) - statistic.centre for v in values)
                off = abs(numbers[place[statistic.total]] * statistic.step - exact)
                assert off <= statistic.step / 2 * len(values)
    for number, measurement in enumerate(flat):
        if measurement.where is not None or measurement.expression is not None or bites_groups:
            continue
        for group in expected.groups:
            counts = [own[group] for own in owned.values() if group in own]
            bounded = len(counts) if measurement.kind == "units" else sum(counts if records else (min(c, rows) for c in counts))
            assert found.get(group, [0] * len(flat))[number] == bounded
    pairs = next((n for n, m in enumerate(flat) if m.kind == "units" and m.where is None), None)
    if pairs is not None and bites_groups:
        assert sum(numbers[pairs] for numbers in found.values()) == sum(min(len(own), groups) for own in owned.values())
    for tree in trees:
        check_tree(expected, question, priced, tree, query, rows if not records else None, groups if not records else None)


def check_tree(
    expected: plain.Answer, question: Any, priced: Any, tree: Any, query: str, rows: int | None, groups: int | None
) -> None:
    """Leaves hold as many rows as have a value, each in the leaf of its value."""
    found: dict[Any, dict[int, int]] = {}
    for row in run(question, tree_plan(question, priced, tree, "ab" * 16)).to_pylist():
        cells = list(row.values())
        found.setdefault(tuple(cells[: len(question.keys)]), {})[cells[-2]] = int(cells[-1])
    statistic = next(s for s in question.statistics.values() if s.tree == tree.name)
    matching = [
        (argument, where)
        for text, argument, where in _aggregates(query)
        if text == "median" and question.statistics[_placeholder(question, text, argument, where)].tree == tree.name
    ]
    argument, where = matching[0]
    owned: dict[Any, dict[Any, int]] = {}
    values: dict[Any, list[Any]] = {group: [] for group in expected.groups}
    for group in expected.groups:
        for unit, value in expected.pieces(group, argument, where):
            owned.setdefault(unit, {}).setdefault(group, 0)
            owned[unit][group] += 1
            values[group].append(value)
    width = (statistic.high - statistic.low) / tree.leaves
    bites = rows is not None and any(count > rows for own in owned.values() for count in own.values())
    spread = groups is not None and bool(question.keys) and any(len(own) > groups for own in owned.values())
    for group in [] if bites or spread else expected.groups:
        leaves = sorted(leaf for leaf, count in found.get(group, {}).items() for _ in range(count))
        assert len(leaves) == len(values[group])
        for leaf, value in zip(leaves, sorted(values[group]), strict=True):
            start = statistic.low + leaf * width
            assert start - width / 1000 <= Fraction(value) <= start + width * Fraction(1001, 1000)
    if rows is not None and not spread:
        kept = sum(min(count, rows) for own in owned.values() for count in own.values())
        assert sum(sum(leaves.values()) for leaves in found.values()) == kept


def _placeholder(question: Any, text: str, argument: exp.Expression | None, where: exp.Expression | None) -> str:
    """The statistic of an aggregate of the query, by the text that the compiler gives it."""
    names = {
        "units": "count_distinct",
        "count": "count",
        "sum": "sum",
        "avg": "avg",
        "variance": "var_samp",
        "variancepop": "var_pop",
        "stddev": "stddev_samp",
        "median": "quantile",
    }
    wanted = [names[text], None if argument is None else argument.sql(), "" if where is None else where.sql()]
    for name in question.statistics:
        function, of, condition, _ = name.split("|")
        same = wanted[1] is None and (text == "units" or not of) or of == wanted[1]
        if function == wanted[0] and same and condition == wanted[2]:
            return str(name)
    raise AssertionError("the compiler has no such statistic")


_BOUNDS = st.fixed_dictionaries(
    {
        "max_rows": st.sampled_from([1, 2, 400]),
        "max_groups": st.sampled_from([1, 2, 200]),
        "bounding": st.sampled_from(["sample", "truncate"]),
    }
)


@settings(_LAX, max_examples=40)
@given(customer_rows(), order_rows(), queries(), _BOUNDS)
def test_the_integers_before_noise_are_those_of_a_plain_evaluation(
    customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str, bounds: dict[str, Any]
) -> None:
    check_integers(customers, _dyadic(orders, "amount"), query, bounds)


@pytest.mark.slow
@settings(_LAX, max_examples=300)
@given(customer_rows(), order_rows(), queries(), _BOUNDS)
def test_the_integers_before_noise_are_those_of_a_plain_evaluation_for_many_queries(
    customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str, bounds: dict[str, Any]
) -> None:
    check_integers(customers, _dyadic(orders, "amount"), query, bounds)


_OF_RECORDS = queries().filter(lambda text: "DISTINCT" not in text and "customer_id" not in text)


@settings(_LAX, max_examples=10)
@given(customer_rows(), order_rows(), _OF_RECORDS)
def test_where_each_record_is_a_unit_every_row_counts_once(
    customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str
) -> None:
    check_integers(customers, _dyadic(orders, "amount"), query, {"max_rows": 1, "max_groups": 1}, records=True)


# With next to no noise -----------------------------------------------------------------------------------------------


def check_answers(customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str) -> None:
    asked, tables = both(customers, orders, **WIDE)
    expected = plain.asked(tables, query)
    answer = asked.sql(query, epsilon=NO_NOISE)
    keys = len(expected.keys)
    rows = {tuple(row[:keys]): row[keys:] for row in answer.answer.rows}
    assert len(rows) == len(answer.answer.rows) == len(expected.groups)
    for group in expected.groups:
        for shown, (text, argument, where) in zip(rows[group], _aggregates(query), strict=True):
            pieces = expected.pieces(group, argument, where)
            check_answer(shown, text, [value for _, value in pieces], len({unit for unit, _ in pieces}))


def check_answer(shown: Any, text: str, values: Sequence[Any], units: int) -> None:
    if text in ("units", "count"):
        assert shown == (units if text == "units" else len(values))
    elif text == "sum":
        assert shown == pytest.approx(float(plain.total(values)), rel=1e-6, abs=1e-3 * (1 + len(values)))
    elif text == "avg" and values:
        assert shown == pytest.approx(float(plain.mean(values)), rel=1e-6, abs=1e-3 * max(map(abs, values)) + 1e-3)
    elif text in ("variance", "stddev") and len(values) > 1:
        exact = float(plain.variance(values, sample=True))
        near = 1e-5 * (1 + max(abs(float(v)) for v in values) ** 2)
        off = abs(shown - exact) if text == "variance" else abs(shown**2 - exact)
        assert off <= max(near, _LARGEST_ROUNDING)
    elif text == "median" and values:
        assert _below(values, shown, strictly=True) <= len(values) / 2 <= _below(values, shown, strictly=False)


#: Squares of values in [0, 400000] lie on a grid of steps of 2^-20 of their range.
_LARGEST_ROUNDING = 400_000.0**2 * 2.0**-18


def _below(values: Sequence[Any], place: float, *, strictly: bool) -> int:
    """Rows below a place (or not above it), to the width of a leaf of the tree (1/4096 of the widest range)."""
    leaf = 1.001 * (200_120 if max(map(abs, values)) > 10_000 else 10_200) / 4096
    return sum(value < place - leaf if strictly else value <= place + leaf for value in values)


@settings(_LAX, max_examples=20)
@given(customer_rows(), order_rows(), queries())
def test_with_next_to_no_noise_answers_are_those_of_a_plain_evaluation(
    customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str
) -> None:
    check_answers(customers, _dyadic(orders, "amount"), query)


@pytest.mark.slow
@settings(_LAX, max_examples=150)
@given(customer_rows(), order_rows(), queries())
def test_with_next_to_no_noise_the_answers_of_many_queries_are_those_of_a_plain_evaluation(
    customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str
) -> None:
    check_answers(customers, _dyadic(orders, "amount"), query)
