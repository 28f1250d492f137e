"""The compiler against a second evaluator: what is measured before noise, and what is answered when there is next to none."""

from __future__ import annotations

import math
import random
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
from sfumato.core.errors import SfumatoError, Unsupported
from sfumato.dp.sql.measuring.noise import Request, price
from sfumato.dp.sql.measuring.one_query import flat_plan, run, split, tree_plan
from sfumato.dp.sql.parse import sql_text
from tests.dp.sql import brute_force as plain
from tests.dp.sql.database import CITIES, CUSTOMERS, ORDERS, regions
from tests.dp.sql.random_queries import CUSTOMER_TYPES, ORDER_TYPES, customer_rows, order_rows, queries
from tests.examples import examples

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
    return sf.Session(
        tables, public={"regions": regions()}, budget=budget, seed=1, **{"max_rows": 1, "max_groups": 1, **options}
    ), copies


def _filled(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Full tables with every oddity in them: missing units and values, NaN, infinities, values beyond their bounds."""
    draw = random.Random(seed)
    unit, odd = [None, *range(6)], [None, math.nan, math.inf, -math.inf, 1e30, -7.25, 0.0]

    def number(high: float) -> float | None:
        return draw.choice(odd) if draw.random() < 0.3 else draw.randrange(int(high * 64)) / 64

    customers = [
        {
            "customer_id": draw.choice(unit),
            "city": draw.choice([*CITIES, "elsewhere", None]),
            "age": draw.choice([None, -5, 130, 2**62, *(draw.randrange(120) for _ in range(9))]),
            "income": number(300),
            "member": draw.choice([True, False, None]),
        }
        for _ in range(14)
    ]
    orders = [
        {
            "customer_id": draw.choice(unit),
            "category": draw.choice(["books", "food", "weapons", None]),
            "amount": number(60),
            "quantity": draw.choice([None, -3, 30, *range(8)]),
            "city": draw.choice(CITIES),
        }
        for _ in range(24)
    ]
    return customers, orders


_TABLES = st.integers(0, 10**6).map(_filled)


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
    priced = price(question, Request(epsilon=1, delta="1e-6"), asked._bounds)
    rows, groups = asked._bounds.max_rows, asked._bounds.max_groups
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
    wanted = [names[text], None if argument is None else sql_text(argument), "" if where is None else sql_text(where)]
    for name in question.statistics:
        head = name.rpartition("|")[0]  # function, argument, condition; texts in them are joined by ||
        if argument is not None:
            same = head == "|".join(map(str, wanted))
        elif text == "units":
            same = head.startswith(f"{wanted[0]}|") and head.endswith(f"|{wanted[2]}")
        else:
            same = head == f"{wanted[0]}||{wanted[2]}"
        if same:
            return str(name)
    raise AssertionError("the compiler has no such statistic")


_BOUNDS = st.fixed_dictionaries(
    {
        "max_rows": st.sampled_from([1, 2, 400]),
        "max_groups": st.sampled_from([1, 2, 200]),
        "bounding": st.sampled_from(["sample", "truncate"]),
    }
)


@settings(_LAX, max_examples=examples(8))
@given(_TABLES, queries(), _BOUNDS)
def test_the_integers_before_noise_are_those_of_a_plain_evaluation(tables: Any, query: str, bounds: dict[str, Any]) -> None:
    check_integers(*tables, query, bounds)


@pytest.mark.slow
@settings(_LAX, max_examples=examples(150))
@given(_TABLES, queries(), _BOUNDS)
def test_the_integers_before_noise_of_full_tables_are_those_of_a_plain_evaluation(
    tables: Any, query: str, bounds: dict[str, Any]
) -> None:
    check_integers(*tables, query, bounds)


@pytest.mark.slow
@settings(_LAX, max_examples=examples(150))
@given(customer_rows(), order_rows(), queries(), _BOUNDS)
def test_the_integers_before_noise_are_those_of_a_plain_evaluation_for_many_queries(
    customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str, bounds: dict[str, Any]
) -> None:
    check_integers(customers, _dyadic(orders, "amount"), query, bounds)


_OF_RECORDS = queries().filter(lambda text: "DISTINCT" not in text and "customer_id" not in text)


@settings(_LAX, max_examples=examples(12))
@given(_TABLES, _OF_RECORDS)
def test_where_each_record_is_a_unit_every_row_counts_once(tables: Any, query: str) -> None:
    check_integers(*tables, query, {"max_rows": 1, "max_groups": 1}, records=True)


# With next to no noise -----------------------------------------------------------------------------------------------


def check_answers(customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str) -> None:
    asked, tables = both(customers, orders, **WIDE)
    expected = plain.asked(tables, query)
    answer = asked.sql(query, epsilon=NO_NOISE)
    keys = len(expected.keys)
    rows = {tuple(row[:keys]): row[keys:] for row in answer.answer.rows}
    hidden = set(expected.groups) - rows.keys()  # WHERE rules them out: no row is in them
    assert len(rows) == len(answer.answer.rows) == len(expected.groups) - len(hidden)
    assert not hidden or ("WHERE" in query and not any(group in hidden for _, group, _ in expected.kept))
    for group in rows:
        for shown, (text, argument, where) in zip(rows[group], _aggregates(query), strict=True):
            pieces = expected.pieces(group, argument, where)
            wide = argument is not None and "income" in argument.sql()
            check_answer(shown, text, [value for _, value in pieces], len({unit for unit, _ in pieces}), wide=wide)


def check_answer(shown: Any, text: str, values: Sequence[Any], units: int, *, wide: bool) -> None:
    if text in ("units", "count"):
        assert shown == (units if text == "units" else len(values))
    elif text == "sum":
        assert shown == pytest.approx(
            float(plain.total(values)), rel=1e-6, abs=0.001 + 0.07 * len(values)
        )  # steps of 1/8 at most
    elif text == "avg" and values:
        assert shown == pytest.approx(float(plain.mean(values)), rel=1e-6, abs=0.07)
    elif text in ("variance", "stddev") and len(values) > 1:
        exact = float(plain.variance(values, sample=True))
        near = 1e-5 * (1 + max(abs(float(v)) for v in values) ** 2)
        off = abs(shown - exact) if text == "variance" else abs(shown**2 - exact)
        assert off <= max(near, _LARGEST_ROUNDING)
    elif text == "median" and values:
        leaf = 1.001 * (400_000 if wide else 10_000) / 4096  # the widest ranges of these queries
        below, at_most = sum(v < shown - leaf for v in values), sum(v <= shown + leaf for v in values)
        assert below <= len(values) / 2 <= at_most


#: Squares of values in [0, 400000] lie on a grid of steps of 2^-20 of their range.
_LARGEST_ROUNDING = 400_000.0**2 * 2.0**-18


@settings(_LAX, max_examples=examples(8))
@given(_TABLES, queries())
def test_with_next_to_no_noise_answers_are_those_of_a_plain_evaluation(tables: Any, query: str) -> None:
    check_answers(*tables, query)


@pytest.mark.slow
@settings(_LAX, max_examples=examples(80))
@given(customer_rows(), order_rows(), queries())
def test_with_next_to_no_noise_the_answers_of_many_queries_are_those_of_a_plain_evaluation(
    customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str
) -> None:
    check_answers(customers, _dyadic(orders, "amount"), query)


# After the noise -----------------------------------------------------------------------------------------------------


def _noisy_shop(**options: Any) -> sf.Session:
    customers = [
        {"customer_id": n, "city": ["Bern", "Basel", "Zürich", None][n % 4], "age": n, "income": 100.0 * n, "member": n % 3 == 0}
        for n in range(60)
    ]
    return both(customers, [], **{**WIDE, "max_rows": 2, "max_groups": 2, **options})[0]


_WHOLE = "SELECT city, COUNT(*) AS n, SUM(age) AS s, AVG(income) AS m FROM customers GROUP BY city"
_HAVING = {
    "COUNT(*) > 10": lambda r: r["n"] > 10,
    "SUM(age) / COUNT(*) > 28": lambda r: r["n"] != 0 and r["s"] / r["n"] > 28,
    "NOT (AVG(income) < 2000) OR city = 'Bern'": lambda r: not r["m"] < 2000 or r["city"] == "Bern",
    "COUNT(*) BETWEEN 5 AND 14 AND city IN ('Bern', 'Basel')": lambda r: 5 <= r["n"] <= 14 and r["city"] in ("Bern", "Basel"),
    "city IS NOT NULL AND CASE WHEN COUNT(*) > 12 THEN TRUE ELSE SUM(age) > 300 END": lambda r: r["n"] > 12 or r["s"] > 300,
}
_ORDER = {
    "n DESC": lambda r: -r["n"],
    "SUM(age), city": lambda r: (r["s"], r["city"]),
    "3 DESC": lambda r: -r["s"],
    "ABS(COUNT(*) - 12), city DESC": lambda r: (abs(r["n"] - 12), [-ord(c) for c in r["city"]]),
}


@pytest.mark.parametrize("having", _HAVING)
@pytest.mark.parametrize("order", _ORDER)
def test_having_order_and_limit_read_the_noisy_table_and_nothing_else(having: str, order: str) -> None:
    # The same seed draws the same noise: the measurements are the same, in the same order.
    whole = _noisy_shop().sql(_WHOLE, epsilon=2).table.to_pylist()
    asked = _noisy_shop().sql(f"{_WHOLE} HAVING {having} ORDER BY {order} LIMIT 2 OFFSET 1", epsilon=2)
    kept = sorted((row for row in whole if _HAVING[having](row)), key=_ORDER[order])
    assert asked.table.to_pylist() == kept[1:3]


def test_arithmetic_over_aggregates_is_that_of_the_noisy_numbers() -> None:
    rows = _noisy_shop().sql(_WHOLE, epsilon=2).table.to_pylist()
    query = (
        "SELECT city, COUNT(*) AS n, SUM(age) AS s, AVG(income) AS m, 100.0 * COUNT(*) / SUM(age) AS p, COUNT(*) / 2 AS half, "
        "SQRT(ABS(SUM(age))) AS r, NULLIF(COUNT(*), COUNT(*)) AS nothing, COALESCE(1 / (COUNT(*) - COUNT(*)), -1) AS gone, "
        "GREATEST(COUNT(*), 10) AS g FROM customers GROUP BY city"
    )
    for row, got in zip(rows, _noisy_shop().sql(query, epsilon=2).table.to_pylist(), strict=True):
        n, s = row["n"], row["s"]
        assert [got[name] for name in ("city", "n", "s", "m")] == list(row.values())
        assert got["p"] == pytest.approx(100 * n / s) and got["half"] == n / 2 and got["r"] == pytest.approx(math.sqrt(abs(s)))
        assert got["nothing"] is None and got["gone"] == -1 and got["g"] == max(n, 10)


def test_an_aggregate_that_is_named_twice_is_measured_once() -> None:
    told = _noisy_shop().explain("SELECT COUNT(*) AS a, COUNT(*) AS b, AVG(age), SUM(age), AVG(AGE) FROM customers", epsilon=1)
    assert [note.what for note in told.measurements].count("number of rows") == 2  # all rows; rows with an age
    row = _noisy_shop().sql("SELECT COUNT(*) AS a, COUNT(*) AS b, 2 * COUNT(*) AS c FROM customers", epsilon=1).answer.rows[0]
    assert row[0] == row[1] and row[2] == 2 * row[0]


# Discovered keys -----------------------------------------------------------------------------------------------------


def _coupons(units_per_coupon: dict[str, int], **options: Any) -> sf.Session:
    users = iter(range(10**6))
    rows = [{"user": next(users), "coupon": coupon} for coupon, units in units_per_coupon.items() for _ in range(units)]
    schema = {"dataset": "t", "columns": {"user": {"role": "unit", "type": "integer"}, "coupon": {"type": "string"}}}
    return sf.Session(
        sf.read(pa.Table.from_pylist(rows), schema=schema),
        budget=sf.ApproxDP(10**9, "0.5"),
        **{"max_rows": 1, "max_groups": 1, **options},
    )


def test_discovered_groups_of_many_units_are_shown_and_those_of_one_are_not() -> None:
    # 300 groups of one unit at δ = 1e-9 in all: one is shown with probability below 1e-6. The noise of a count has
    # scale 2: 200 units fall below the threshold of about 42 with probability e^-79.
    few = {f"once {number}": 1 for number in range(300)}
    asked = _coupons({"spring": 200, "summer": 200, **few}, seed=11)
    answer = asked.sql("SELECT coupon, COUNT(*) AS n FROM t GROUP BY coupon", epsilon=1, delta="1e-9")
    assert answer.table.column("coupon").to_pylist() == ["spring", "summer"]
    assert answer.explanation.threshold is not None and answer.explanation.groups is None


def test_a_group_appears_about_where_the_threshold_says() -> None:
    query = "SELECT coupon, COUNT(DISTINCT user) AS n FROM t GROUP BY coupon"
    threshold = _coupons({"a": 1}).explain(query, epsilon=1, delta="1e-6").threshold
    assert threshold is not None
    # At the threshold the chance is (1 + P(noise = 0)) / 2 = 0.73; of 200 groups fewer than 100 or more than 190 are
    # shown with probability below 1e-9 (binomial).
    at = {f"g{number:03}": threshold for number in range(200)}
    shown = _coupons(at, seed=3).sql(query, epsilon=1, delta="1e-6").table.num_rows
    assert 100 <= shown <= 190
    assert _coupons(dict.fromkeys(at, threshold + 30), seed=3).sql(query, epsilon=1, delta="1e-6").table.num_rows == 200


# One question, one digest --------------------------------------------------------------------------------------------


def _digest(asked: sf.Session, query: str, keys: Any = None, version: str = "", **loss: Any) -> str:
    from sfumato.dp.sql.asking.identity import identify

    bounds = asked._bounded(loss.pop("max_rows", None), loss.pop("max_groups", None))
    question = asked._question(asked._parsed(query), keys)
    return identify(question, price(question, Request(**(loss or {"epsilon": 1})), bounds), version, None).question


def test_the_same_question_in_other_letters_has_the_same_digest() -> None:
    asked = both([], [])[0]
    same = [
        "SELECT city, COUNT(*) AS n FROM customers WHERE age > 30 GROUP BY city",
        "select  city , count( * ) as n from customers where (age > 30) group by city",
        "SELECT city, COUNT(1) AS n FROM customers WHERE age > 30 GROUP BY 1;",
        "SELECT customers.city, COUNT(*) AS n FROM customers WHERE customers.age > 30 GROUP BY customers.city",
        "SELECT c.city, COUNT(*) AS n FROM customers AS c WHERE c.age > 30 GROUP BY c.city -- a remark",
    ]
    assert len({_digest(asked, query) for query in same}) == 1
    inside = "SELECT SUM(x) AS n FROM (SELECT age AS y, CLAMP(income, 0, 120) AS x FROM customers)"
    assert _digest(asked, inside) == _digest(asked, "SELECT SUM(CLAMP(income, 0, 120)) AS n FROM customers")


_DIFFERENT = [
    ("SELECT COUNT(*) AS n FROM customers", {}),
    ("SELECT COUNT(*) AS n FROM orders", {}),
    ("SELECT COUNT(*) AS n FROM customers WHERE age > 30", {}),
    ("SELECT COUNT(*) AS n FROM customers WHERE age > 31", {}),
    ("SELECT COUNT(*) AS n FROM customers WHERE age >= 31", {}),
    ("SELECT COUNT(*) AS n FROM customers WHERE city = 'v70'", {}),
    ("SELECT COUNT(*) AS n FROM customers WHERE city = 'v71'", {}),
    ("SELECT COUNT(*) AS n FROM customers WHERE city = 'k71'", {}),
    ("SELECT COUNT(*) AS n FROM customers WHERE city IN ('a', 'b')", {}),
    ("SELECT COUNT(*) AS n FROM customers WHERE city IN ('a, b')", {}),
    ("SELECT COUNT(*) AS n FROM customers", {"epsilon": 2}),
    ("SELECT COUNT(*) AS n FROM customers", {"epsilon": 1, "max_rows": 2}),
    ("SELECT COUNT(*) AS n FROM customers", {"rho": 1}),
    ("SELECT COUNT(*) AS n FROM customers", {"version": "2"}),
    ("SELECT city, COUNT(*) AS n FROM customers GROUP BY city", {}),
    ("SELECT city, COUNT(*) AS n FROM orders GROUP BY city", {}),
    ("SELECT city, COUNT(*) AS n FROM customers GROUP BY city", {"keys": {"city": ["Bern"]}}),
    ("SELECT city, COUNT(*) AS n FROM customers GROUP BY city", {"keys": {"city": ["Basel"]}}),
    ("SELECT city, COUNT(*) AS n FROM customers GROUP BY city", {"epsilon": 1, "max_groups": 2}),
    ("SELECT SUM(x) AS n FROM (SELECT age AS x, CLAMP(income, 0, 120) AS y FROM customers)", {}),
    ("SELECT SUM(x) AS n FROM (SELECT CLAMP(CAST(age AS DOUBLE), 0, 120) AS x, CLAMP(income, 0, 120) AS y FROM customers)", {}),
    ("SELECT SUM(x) AS n FROM (SELECT CLAMP(CAST(age AS DOUBLE), 0, 120) AS y, CLAMP(income, 0, 120) AS x FROM customers)", {}),
    ("SELECT SUM(CLAMP(income, 0, 121)) AS n FROM customers", {}),
    ("SELECT VAR_POP(age) AS n FROM customers", {}),
    ("SELECT MEDIAN(age) AS n FROM customers", {}),
    ("SELECT COUNT(a.city) AS n FROM customers a JOIN orders b USING (customer_id)", {}),
    ("SELECT COUNT(a.city) AS n FROM customers b JOIN orders a USING (customer_id)", {}),
]


def test_different_questions_have_different_digests() -> None:
    asked = both([], [])[0]
    digests: dict[str, int] = {}
    for number, (query, options) in enumerate(_DIFFERENT):
        digest = _digest(asked, query, **dict(options))
        assert digest not in digests, (_DIFFERENT[digests[digest]], _DIFFERENT[number])
        digests[digest] = number


def test_orders_public_contents_and_column_names_are_part_of_the_question() -> None:
    def session(columns: tuple[str, str], public: list[int], order: str | None) -> sf.Session:
        schema = {"dataset": "t", "columns": {name: {"type": "integer", "bounds": [0, 9]} for name in (*columns, "o", "u")}}
        table = pa.table({name: [1, 2] for name in (*columns, "o", "u")})
        how = {"bounding": "truncate", "order": order} if order else {}
        tables = {"t": sf.read(table, schema=schema)}
        return sf.Session(
            tables,
            unit="u",
            public={"p": pa.table({"k": [1, 2], "w": public})},
            budget=sf.PureDP(1),
            **{"max_rows": 1, "max_groups": 1, **how},
        )

    query = "SELECT COUNT(*) AS n FROM t JOIN p ON t.{0} = p.k WHERE {0} > 1"
    asked = [
        (session(("v8", "v9"), [1, 2], None), "v8"),
        (session(("v8", "v9"), [1, 2], None), "v9"),
        (session(("v8", "v9"), [1, 3], None), "v9"),
        (session(("v8", "v9"), [1, 2], "o"), "v9"),
        (session(("v8", "v9"), [1, 2], "v8"), "v9"),
    ]
    assert len({_digest(one, query.format(column)) for one, column in asked}) == len(asked)


# Odd questions -------------------------------------------------------------------------------------------------------

_PEOPLE = [
    {"customer_id": n, "city": ["Bern", "Basel", "elsewhere", None][n % 4], "age": n, "income": 8.0, "member": n % 2 == 0}
    for n in range(40)
]
_BOUGHT = [
    {"customer_id": n, "category": "books", "amount": 1.0, "quantity": 3, "city": ["Zürich", "Bern"][n % 2]} for n in range(30)
]

#: What SQL says of these tables; None: to be refused. Never anything else, and never an error of another kind.
_ODD: dict[str, list[tuple[Any, ...]] | None] = {
    "SELECT COUNT(*) FROM customers c LEFT JOIN regions r ON c.city = r.city WHERE r.city IS NULL": [(20,)],
    "SELECT SUM(age) FROM (SELECT * REPLACE (0 AS age) FROM customers)": None,
    "SELECT SUM(age) FROM (SELECT * EXCLUDE (age) FROM customers)": None,
    "SELECT SUM(age) FROM (SELECT * RENAME (age AS old) FROM customers)": None,
    "SELECT SUM(age) FROM (SELECT age FROM customers) TABLESAMPLE (1 PERCENT)": None,
    "SELECT SUM(age) FROM ((SELECT age FROM customers) LIMIT 1)": None,
    "SELECT COUNT(*) FROM ((SELECT customer_id FROM customers) AS a JOIN orders AS b USING (customer_id)) AS q": None,
    "(SELECT city, COUNT(*) AS n FROM customers GROUP BY city) ORDER BY n DESC LIMIT 1": None,
    "SELECT SUM(age) FROM (SELECT customer_id, income, age FROM customers) AS q(customer_id, age, income)": None,
    "WITH q(customer_id, age, income) AS (SELECT customer_id, income, age FROM customers) SELECT SUM(age) FROM q": None,
    "WITH a AS (SELECT * FROM orders), orders AS (SELECT * FROM orders WHERE FALSE) SELECT COUNT(*) FROM a": [(30,)],
    "SELECT SUM(CASE WHEN a = b THEN 1 ELSE 0 END) FROM (SELECT c.customer_id, c.city AS a, o.city AS b FROM customers c "
    "JOIN orders o ON c.customer_id = o.customer_id GROUP BY c.customer_id, c.city, o.city) AS q": [(0,)],
    "SELECT category, COUNT(*) FROM (SELECT customer_id, city AS category FROM orders GROUP BY customer_id, category) AS q "
    "GROUP BY category": None,
    "SELECT member, COUNT(*) FROM customers GROUP BY member, member": [(False, 20), (True, 20)],
    "SELECT member, COUNT(*) FROM customers GROUP BY 1, member": [(False, 20), (True, 20)],
    "SELECT COUNT(*) FROM customers WHERE age IN income": None,
    "SELECT COUNT(*) FROM customers WHERE age BETWEEN SYMMETRIC 9 AND 0": None,
    "SELECT COUNT(*) FROM orders WHERE category ILIKE city": None,
    "SELECT city, COUNT(*) FROM customers GROUP BY city HAVING city BETWEEN 1 AND 2": None,
    "SELECT city, LEAST(city, COUNT(*)) AS x FROM customers GROUP BY city": None,
    "SELECT member, COUNT(*) FROM customers GROUP BY member ORDER BY POWER(COUNT(*) - 30, 0.5), member": [
        (False, 20),
        (True, 20),
    ],
    "SELECT member, COUNT(*) FROM customers GROUP BY member ORDER BY CASE WHEN member THEN 'a' ELSE 1 END": None,
    "SELECT CAST(COUNT(*) * 1e308 * 10 AS INTEGER) AS x FROM customers": [(None,)],
    "SELECT member, COUNT(*) FROM customers GROUP BY member HAVING member NOT IN (TRUE, NULL)": [],
    "SELECT 'ab' * COUNT(*) AS x FROM customers": None,
    'SELECT COUNT(*), "\x00aggregate nope" FROM customers': None,
    'SELECT COUNT(*), "\x00key 3" FROM customers': None,
    'SELECT SUM(CLAMP(n, 0, 3)) FROM (SELECT customer_id, COUNT(*) + "\x00aggregate z" AS n FROM orders GROUP BY 1)': None,
    "SELECT COUNT(*) FROM customers WHERE city = '\ud800'": None,
    "SELECT COUNT(SUBSTR(city)) FROM customers": None,
    "SELECT COUNT(WIDTH_BUCKET(age)) FROM customers": None,
    "SELECT ROUND(COUNT(*) / 16) AS x FROM customers": [(3,)],  # 2.5, as in rows
    "SELECT COUNT(*) FROM customers HAVING SUM(age) < 5": [],
    "SELECT city FROM customers WHERE member GROUP BY city ORDER BY COUNT(*) DESC, city LIMIT 1": [("Bern",)],
    "SELECT age // 20 AS d, COUNT(*) FROM customers GROUP BY d ORDER BY 1 LIMIT 2": [(0, 20), (1, 20)],
    'SELECT c.city AS "c", COUNT(*) FROM customers AS c GROUP BY c.city ORDER BY "c" LIMIT 1': [("Basel", 10)],
    "SELECT COUNT(*) FROM orders a JOIN orders b USING (customer_id)": [(30,)],
    "SELECT COUNT(*) FROM orders a JOIN orders b ON a.city = b.city": None,
}


@pytest.mark.parametrize("query", _ODD, ids=[f"{n} {ascii(text)[1:40]}" for n, text in enumerate(_ODD)])
def test_an_odd_question_is_answered_as_sql_says_or_refused(query: str) -> None:
    asked = both(_PEOPLE, _BOUGHT, **WIDE)[0]
    expected = _ODD[query]
    if expected is None:
        with pytest.raises(SfumatoError):
            asked.sql(query, epsilon=NO_NOISE)
        assert asked.remaining() == both([], [])[0].remaining(), "what is refused costs nothing"
    else:
        assert list(asked.sql(query, epsilon=NO_NOISE).answer.rows) == expected


@pytest.mark.parametrize(
    ("query", "epsilon"),
    [
        ("SELECT COUNT(*) FROM customers", "1e-20"),
        ("SELECT COUNT(*) FROM customers", "1e-15"),
        ("SELECT customer_id, COUNT(*) FROM orders GROUP BY 1", "1e-15"),
    ],
)
def test_a_tiny_loss_is_answered_or_refused(query: str, epsilon: str) -> None:
    asked = both([], [])[0]
    try:
        told = asked.explain(query, epsilon=epsilon, delta="1e-30")
    except SfumatoError:
        return
    assert all(note.margin > 1e10 for note in told.measurements)


@pytest.mark.parametrize("values", [[1, 2], [["a"]], ["\ud800"], ["a\x00b"], [b"x"], [float("nan")]], ids=range(6))
def test_keys_that_do_not_fit_are_refused_before_anything_is_spent(values: list[Any]) -> None:
    asked = both(_PEOPLE, _BOUGHT)[0]
    before = asked.remaining()
    with pytest.raises(SfumatoError):
        asked.sql("SELECT city, COUNT(*) FROM customers GROUP BY city", epsilon=1, keys={"city": values})
    assert asked.remaining() == before


def test_dates_in_having_are_compared_as_dates() -> None:
    import datetime

    schema = {"dataset": "t", "columns": {"d": {"type": "date"}}}
    days = [datetime.date(2024, 1, 1), datetime.date(2024, 7, 1)]
    asked = sf.Session(sf.read(pa.table({"d": days}), schema=schema), budget=sf.PureDP(10**15))
    query = "SELECT d, COUNT(*) AS n FROM t GROUP BY d HAVING d >= DATE '2024-06-01'"
    assert asked.sql(query, epsilon=NO_NOISE, keys={"d": days}).answer.rows == ((days[1], 1),)


def test_a_nested_expression_is_not_written_out_exponentially() -> None:
    asked = both([], [])[0]
    for query in (
        "SELECT SUM(" + "ABS(" * 6 + "age" + ")" * 6 + ") FROM customers",
        "SELECT SUM(LEAST(" + ", ".join(["age", "income"] * 3) + ")) FROM customers",
        "SELECT SUM(" + "COALESCE(" * 9 + "age" + ", income)" * 9 + ") FROM customers",
    ):
        try:
            question = asked._question(asked._parsed(query), None)
        except SfumatoError:
            continue
        assert _nodes(question.measurements[0].expression, 1000) < 1000


def test_an_expression_that_is_too_long_says_what_to_do() -> None:
    table = sf.read(pa.table({"x": [1.234, 2.5]}), schema={"dataset": "t", "columns": {"x": {"type": "number"}}})
    asked = sf.Session({"t": table}, budget=sf.PureDP(10**15))
    deep = "x"
    for _ in range(60):
        deep = f"CASE WHEN {deep} > 1 THEN {deep} ELSE 0.5 END" if len(deep) < 4_000 else f"ABS({deep})"
    with pytest.raises(Unsupported, match="too long|too deeply nested|in a sub-query"):
        asked.sql(f"SELECT SUM(CLAMP({deep}, 0, 10)) AS n FROM t", epsilon=NO_NOISE)
    for query in (
        "SUM(CLAMP(x, 0, 10)) AS n FROM t",
        "SUM(CLAMP(ROUND(x, 2), 0, 10)) AS n FROM t",
        "SUM(CLAMP(r, 0, 10)) AS n FROM (SELECT ROUND(x, 2) AS r FROM t)",
    ):
        assert asked.sql(f"SELECT {query}", epsilon=NO_NOISE).answer.rows[0][0] == pytest.approx(3.73, abs=0.01)


def _nodes(expression: Any, limit: int) -> int:
    from sfumato.engines.expressions import children

    pending, count = [expression], 0
    while pending and count < limit:
        pending.extend(children(pending.pop()))
        count += 1
    return count


@pytest.mark.parametrize("top", [2**52 + 1, 2**53 - 1, 1000])
def test_rounding_to_the_grid_stays_inside_the_sensitivity(top: int) -> None:
    schema = {"dataset": "t", "columns": {"x": {"type": "number", "bounds": [0, top]}}}
    asked = sf.Session(sf.read(pa.table({"x": [float(top)]}), schema=schema), budget=sf.PureDP(1))
    question = asked._question(asked._parsed("SELECT SUM(x) FROM t"), None)
    priced = price(question, Request(epsilon=1), asked._bounds)
    (row,) = run(question, flat_plan(question, priced, question.measurements, None)).to_pylist()
    assert int(row["m0"]) <= priced.noises["m0"].l1


def test_a_name_that_is_no_table_of_the_query_is_not_the_only_table() -> None:
    schema = {"dataset": "t", "columns": {"x": {"type": "integer", "bounds": [0, 9]}}}
    asked = sf.Session(sf.read(pa.table({"x": list(range(10))}), schema=schema), budget=sf.PureDP(10**15))
    query = "WITH Small AS (SELECT * FROM t WHERE x < 3) SELECT COUNT(*) FROM small"
    assert asked.sql(query, epsilon=NO_NOISE).answer.rows == ((3,),)
