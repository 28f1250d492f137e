"""Batches: one charge for several questions, and the largest cost instead of the sum only where no unit is in two of them."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import BudgetRefused, ParameterError, SourceError, Unsupported
from sfumato.core.guarantees.loss import ConcentratedDP, PureDP
from sfumato.dp.sql.asking.batch import Parts, parts_of
from sfumato.dp.sql.measuring.noise import Request, price
from sfumato.ledger import Ledger
from tests.dp.sql.database import CUSTOMERS, ORDERS, customers, orders, regions
from tests.dp.sql.random_queries import CUSTOMER_TYPES, ORDER_TYPES, _described, customer_rows, order_rows
from tests.dp.sql.test_neighbours import measured
from tests.examples import examples

FIXED = {"customers": ("city", "age", "member", "income"), "orders": ("city", "category", "quantity")}


def declared(schema: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The schema with these columns declared to have one value per unit."""
    changed = copy.deepcopy(schema)
    for name in names:
        changed["columns"][name]["one_per_unit"] = True
    return changed


def shop(**options: Any) -> sf.Session:
    tables = {
        "customers": sf.read(customers(), schema=declared(CUSTOMERS, FIXED["customers"])),
        "orders": sf.read(orders(), schema=declared(ORDERS, FIXED["orders"])),
    }
    settled = {"budget": sf.ApproxDP(10**6, "0.5"), "max_rows": 5, "max_groups": 4, **options}
    return sf.Session(tables, public={"regions": regions()}, **settled)


def apart(session: sf.Session, *queries: str) -> bool:
    """Whether no unit is in two of the questions, as far as is proved."""
    parts = parts_of([session._question(session._parsed(query), None) for query in queries])
    return len(parts.apart) == len(queries) * (len(queries) - 1) // 2


# What excludes what, missing values included

CONDITIONS = [
    "city = 'Bern'",
    "city <> 'Bern'",
    "NOT city = 'Bern'",
    "city IN ('Basel', 'Zürich')",
    "city NOT IN ('Basel', 'Zürich')",
    "city IS NULL",
    "city IS NOT NULL",
    "city IS DISTINCT FROM 'Bern'",
    "COALESCE(city, 'Bern') = 'Bern'",
    "city = 'Bern' OR city IS NULL",
    "NOT (city = 'Bern' AND city IS NOT NULL)",
    "UPPER(city) = 'BERN'",
    "CASE WHEN city = 'Bern' THEN TRUE ELSE FALSE END",
    "city > 'C'",
    "city <= 'C'",
    "city = NULL",
]
CERTAIN = [
    ("city = 'Bern'", "city <> 'Bern'"),
    ("city = 'Bern'", "NOT city = 'Bern'"),
    ("city = 'Bern'", "city IN ('Basel', 'Zürich')"),
    ("city IN ('Basel', 'Zürich')", "city NOT IN ('Basel', 'Zürich')"),
    ("city = 'Bern'", "city IS NULL"),
    ("city <> 'Bern'", "city IS NULL"),
    ("city IS NULL", "city IS NOT NULL"),
    ("city = 'Bern'", "city IS DISTINCT FROM 'Bern'"),
    ("city IN ('Basel')", "city = 'Bern' OR city IS NULL"),
]


def test_conditions_are_apart_only_where_no_value_fulfils_both() -> None:
    session, duck = shop(), duckdb.connect()
    duck.execute("CREATE TABLE towns AS SELECT unnest(['Basel', 'Bern', 'Zürich', 'bern', 'D', '', NULL]) AS city")
    counts = {}
    for one, other in itertools.combinations_with_replacement(CONDITIONS, 2):
        both = duck.execute(f"SELECT COUNT(*) FROM towns WHERE ({one}) AND ({other})").fetchone()
        counts[one, other] = 0 if both is None else both[0]
        queries = [f"SELECT COUNT(*) FROM orders WHERE {where}" for where in (one, other)]
        if apart(session, *queries):
            assert counts[one, other] == 0, (one, other)
    for pair in CERTAIN:
        assert apart(session, *(f"SELECT COUNT(*) FROM orders WHERE {where}" for where in pair)), pair


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("FROM customers WHERE member", "FROM customers WHERE NOT member"),
        ("FROM customers WHERE member", "FROM customers WHERE member IS NULL"),
        ("FROM customers WHERE age < 30", "FROM customers WHERE age >= 30"),
        ("FROM customers WHERE age < 30", "FROM customers WHERE age > 29"),  # whole numbers
        ("FROM customers WHERE income < 3e4 AND score > 0", "FROM customers WHERE income >= 3e4"),
        ("FROM orders WHERE customer_id < 9 AND amount > 3", "FROM customers WHERE customer_id >= 9"),
        (
            "FROM orders AS o JOIN customers AS c ON o.customer_id = c.customer_id WHERE c.city = 'Bern' AND o.city = 'Basel'",
            "FROM customers WHERE city <> 'Bern'",
        ),
        (
            "FROM (SELECT customer_id, COUNT(*) AS n FROM orders WHERE amount > 9 GROUP BY customer_id) AS per WHERE n > 2",
            "FROM (SELECT o.customer_id, COUNT(*) AS k FROM orders o WHERE 9 < amount GROUP BY o.customer_id) WHERE k <= 2",
        ),
        ("FROM orders WHERE city = 'Bern' AND EXISTS (SELECT 1 FROM customers c WHERE c.customer_id = orders.customer_id)",
         "FROM orders JOIN regions ON orders.city = regions.city WHERE orders.city = 'Basel'"),
    ],
)  # fmt: skip
def test_these_have_no_unit_in_common(one: str, other: str) -> None:
    assert apart(shop(), f"SELECT COUNT(*) {one}", f"SELECT COUNT(*) {other}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("FROM orders WHERE amount > 3", "FROM orders WHERE amount <= 3"),  # a unit has many amounts
        ("FROM customers WHERE city = 'Bern'", "FROM orders WHERE city = 'Basel'"),  # two columns
        ("FROM customers WHERE city = 'Bern' OR score > 0", "FROM customers WHERE city = 'Basel'"),
        ("FROM customers WHERE income < 3e4", "FROM customers WHERE income > 2e4"),
        (
            "FROM orders LEFT JOIN customers ON orders.customer_id = customers.customer_id AND customers.score > 0 "
            "WHERE customers.city IS NULL",
            "FROM customers WHERE city = 'Bern'",
        ),
        (
            "FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) AS per WHERE n > 2",
            "FROM (SELECT customer_id, COUNT(*) AS n FROM orders WHERE amount > 9 GROUP BY customer_id) AS per WHERE n <= 2",
        ),
        (
            "FROM (SELECT customer_id, day, COUNT(*) AS n FROM orders GROUP BY customer_id, day) AS per WHERE n > 2",
            "FROM (SELECT customer_id, day, COUNT(*) AS n FROM orders GROUP BY customer_id, day) AS per WHERE n <= 2",
        ),
        ("FROM customers JOIN regions ON customers.city = regions.city WHERE region = 'north'",
         "FROM customers JOIN regions ON customers.city = regions.city WHERE region = 'west'"),
    ],
)  # fmt: skip
def test_these_may_have_units_in_common(one: str, other: str) -> None:
    session = shop()
    queries = [f"SELECT COUNT(*) {one}", f"SELECT COUNT(*) {other}"]
    assert not apart(session, *queries)
    cost = session.batch(queries, epsilon=1)
    assert cost.total == cost.sum == PureDP(2, unit="customer_id") and "add up" in cost.composition


def test_a_column_that_nobody_declared_separates_nobody() -> None:
    tables = {"customers": sf.read(customers(), schema=CUSTOMERS)}
    session = sf.Session(tables, budget=sf.PureDP(9), max_rows=5)
    queries = ["SELECT COUNT(*) FROM customers WHERE member", "SELECT COUNT(*) FROM customers WHERE NOT member"]
    assert session.batch(queries, epsilon=1).total == PureDP(2, unit="customer_id")


def test_where_each_record_is_a_unit_every_column_separates() -> None:
    schema = {"dataset": "d", "unit": "record", "columns": {"x": {"type": "integer"}, "t": {"type": "string"}}}
    session = sf.Session(sf.read(pa.table({"x": [1, 2, 3], "t": ["a", "b", None]}), schema=schema), budget=sf.PureDP(9))
    cost = session.batch([f"SELECT COUNT(*) FROM d WHERE {where}" for where in ("t = 'a'", "t <> 'a'", "t IS NULL")], epsilon=1)
    assert cost.total == PureDP(1) and "No record" in cost.composition
    some = session.batch([f"SELECT COUNT(*) FROM d WHERE {where}" for where in ("x < 2", "x > 5", "x > 1")], epsilon=1)
    assert some.total == PureDP(2) and "1 and 2, 1 and 3" in some.composition


def test_a_replaced_unit_counts_in_the_part_it_leaves_and_in_the_part_it_joins() -> None:
    parts = Parts(3, frozenset({(0, 1), (0, 2), (1, 2)}), "user")
    kept = [PureDP(each, unit="user") for each in (1, 2, 3)]
    assert parts.loss(kept) == PureDP(3, unit="user")
    assert parts.loss([each.about(neighbours="replace") for each in kept]) == PureDP(5, neighbours="replace", unit="user")
    same = [ConcentratedDP("0.5", neighbours="replace")] * 3
    assert parts.loss(same) == ConcentratedDP(1, neighbours="replace")


# Neighbouring databases

WHERES = {
    "orders": ["city = 'Bern'", "city <> 'Bern'", "category IS NULL", "category = 'books'", "quantity > 5", "quantity <= 5"],
    "customers": ["member", "NOT member", "age < 40", "NOT age < 40", "income > 50", "city = 'Basel' AND age > 3", "city > 'C'"],
}
statements = st.sampled_from(sorted(WHERES)).flatmap(
    lambda table: st.builds(
        lambda shown, where: f"SELECT {shown} FROM {table} WHERE {where}",
        st.sampled_from(["COUNT(*)", "city, COUNT(*) AS n", "COUNT(DISTINCT customer_id)"]),
        st.sampled_from(WHERES[table]),
    ).map(lambda query: query + (" GROUP BY city" if query.startswith("SELECT city") else ""))
)


def random_shop(customers: list[dict[str, Any]], orders: list[dict[str, Any]]) -> sf.Session:
    fixed = {name: tuple(each for each in FIXED[name]) for name in FIXED}
    tables = {
        name: sf.read(pa.Table.from_pylist(rows, schema=types), schema=declared(_described(schema, types), fixed[name]))
        for name, rows, types, schema in (
            ("customers", customers, CUSTOMER_TYPES, CUSTOMERS),
            ("orders", orders, ORDER_TYPES, ORDERS),
        )
    }
    return sf.Session(tables, budget=sf.PureDP(9), max_rows=2, max_groups=2, bounding="truncate")


def check_apart(customers: list[dict[str, Any]], orders: list[dict[str, Any]], queries: list[str]) -> int:
    """Whoever is left out changes no two measurements that count as being about different units; how many pairs there were."""

    def all_of(leave_out: int | None) -> tuple[Parts, list[Any]]:
        kept = [[row for row in table if row["customer_id"] != leave_out or leave_out is None] for table in (customers, orders)]
        session = random_shop(*kept)
        questions = [session._question(session._parsed(query), None) for query in queries]
        numbers = [measured(each, price(each, Request(epsilon=1), session._bounds)) for each in questions]
        return parts_of(questions), numbers

    parts, whole = all_of(None)
    for unit in sorted({row["customer_id"] for row in [*customers, *orders] if row["customer_id"] is not None}):
        _, less = all_of(unit)
        changed = [place for place in range(len(queries)) if _present(whole[place]) != _present(less[place])]
        assert not any(pair in parts.apart for pair in itertools.combinations(changed, 2))
    return len(parts.apart)


def _present(numbers: dict[str, dict[tuple[Any, ...], int]]) -> dict[str, dict[tuple[Any, ...], int]]:
    return {name: {group: count for group, count in counts.items() if count} for name, counts in numbers.items()}


@pytest.mark.slow
@settings(max_examples=examples(9), deadline=None, suppress_health_check=list(HealthCheck))
@given(customer_rows(), order_rows(), st.lists(statements, min_size=3, max_size=4))
def test_one_unit_less_changes_no_two_questions_that_are_apart(
    customers: list[dict[str, Any]], orders: list[dict[str, Any]], queries: list[str]
) -> None:
    check_apart(customers, orders, queries)


def test_a_unit_whose_rows_contradict_the_declaration_still_counts_in_one_part() -> None:
    rows = [
        {"customer_id": unit, "category": "books", "amount": 1.0, "quantity": 1, "city": city}
        for unit, city in [(1, "Zürich"), (1, "Bern"), (1, "Basel"), (2, "Bern"), (2, "Bern"), (3, "Zürich"), (None, "Basel")]
    ]
    queries = [f"SELECT COUNT(*) AS n FROM orders WHERE city = '{city}'" for city in ("Basel", "Bern", "Zürich")]
    assert check_apart([], rows, queries) == 3
    session = random_shop([], rows)
    exact = [next(iter(measured(q, price(q, Request(epsilon=1), session._bounds)).values())) for q in
             (session._question(session._parsed(query), None) for query in queries)]  # fmt: skip
    assert exact == [{(): 2}, {(): 2}, {(): 1}]  # unit 1 has two rows in Basel, the least of its cities, and none elsewhere


# One charge


BY_CITY = [f"SELECT SUM(amount) AS spent FROM orders WHERE city = '{city}'" for city in ("Basel", "Bern", "Zürich")]


def test_disjoint_questions_are_reserved_once_at_the_largest_cost(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        session = shop(ledger=ledger, budget=sf.PureDP(3))
        cost = session.batch(BY_CITY, epsilon="0.5")
        assert cost.total == PureDP("0.5", unit="customer_id") and cost.sum == PureDP("1.5", unit="customer_id")
        answer = session.sql_batch(BY_CITY, epsilon="0.5")
        assert answer.loss == cost.total and answer.composition == cost.composition and len(answer) == 3
        assert str(session.remaining()) == "ε = 2.5"
        assert [each.loss.epsilon for each in ledger.spends("shop")] == [Fraction(1, 2)]
        again = session.sql_batch(BY_CITY[::-1], epsilon="0.5")
        assert again.loss is None and all(each.repeated for each in again) and len(ledger.spends("shop")) == 1
        assert [each.table for each in again] == [each.table for each in answer][::-1]
        # A part alone, and part of another batch, were measured before too.
        alone = session.sql(BY_CITY[1].replace("spent", "s"), epsilon="0.2")
        assert alone.repeated and alone.table["s"].to_pylist() == answer[1].table["spent"].to_pylist()
        more = session.sql_batch([BY_CITY[0], "SELECT COUNT(*) FROM orders"], epsilon="0.5")
        assert more[0].repeated and not more[1].repeated and more.loss == PureDP("0.5", unit="customer_id")
        assert ledger.verify().ok


def test_an_answered_question_keeps_its_first_answer(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        session = shop(ledger=ledger, budget=sf.PureDP(30))
        first = session.sql_batch(BY_CITY, epsilon="0.5")
        finer = session.sql(BY_CITY[0], epsilon=2)
        assert not finer.repeated and session.sql(BY_CITY[0], epsilon="0.5").table == first[0].table


def test_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        session = shop(ledger=ledger, budget=sf.PureDP(1))
        with pytest.raises(Unsupported, match="question 2 of the batch.*no column 'age'"):
            session.sql_batch([BY_CITY[0], "SELECT COUNT(*) FROM orders WHERE age > 3"], epsilon="0.1")
        with pytest.raises(BudgetRefused, match="costs ε = 1.2"):
            session.sql_batch(["SELECT COUNT(*) FROM orders", "SELECT COUNT(*) FROM customers"], epsilon="0.6")
        assert not ledger.spends("shop")
        from sfumato.dp.sql.asking import once

        real, calls = once.measure, itertools.count()

        def failing(*parts: Any) -> Any:
            return real(*parts) if next(calls) == 0 else 1 / 0

        monkeypatch.setattr(once, "measure", failing)
        with pytest.raises(SourceError, match="stays charged"):
            session.sql_batch(BY_CITY, epsilon="0.5")
        assert [each.state for each in ledger.spends("shop")] == ["reserved"] and str(session.remaining()) == "ε = 0.5"


def test_the_same_question_twice_is_measured_and_charged_once() -> None:
    session = shop(budget=sf.PureDP(1))
    one = "SELECT COUNT(*) AS n FROM orders"
    twice = session.sql_batch([one, "SELECT COUNT(*) AS m FROM orders", "SELECT COUNT(*) FROM customers"], epsilon="0.3")
    assert twice[0].table["n"] == twice[1].table["m"] and str(session.remaining()) == "ε = 0.4"


def test_each_query_is_read_once_and_each_pair_proved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.dp.sql import question
    from sfumato.dp.sql.asking import batch

    calls: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        real = getattr(module, name)

        def called(*given: Any, **named: Any) -> Any:
            calls[name] += 1
            return real(*given, **named)

        monkeypatch.setattr(module, name, called)

    counted(question, "understand")
    counted(batch, "certainly_disjoint")
    coupons = "SELECT coupon, COUNT(*) AS n FROM orders WHERE city = 'Basel' GROUP BY coupon"
    keys = {"coupon": ["spring"]}
    for asked in (shop().sql_batch, shop().batch):
        calls.clear()
        asked([coupons, *BY_CITY[1:]], epsilon=1, keys=keys)
        count = len(BY_CITY)
        assert calls == {"understand": count, "certainly_disjoint": count * (count - 1) // 2}


def test_an_option_that_no_question_has_is_refused() -> None:
    session = shop()
    for asked in (session.sql, session.explain, session.table("orders").agg(n="COUNT(*)").ask):
        with pytest.raises(TypeError, match="no option 'epsilom'; there are epsilon, delta, rho"):
            asked(*([] if asked.__name__ == "ask" else [BY_CITY[0]]), epsilom=1)  # type: ignore[operator]
    assert session.remaining() == shop().remaining()


def test_kinds_of_loss_and_of_arguments() -> None:
    session = shop()
    zcdp = session.batch(BY_CITY[:2], rho="0.1")
    assert zcdp.total == ConcentratedDP("0.1", unit="customer_id")
    coupons = "SELECT coupon, COUNT(*) AS n FROM orders WHERE city = 'Basel' GROUP BY coupon"
    mixed = session.batch([coupons, BY_CITY[1]], epsilon=1, delta="1e-6")
    assert mixed.total == sf.ApproxDP(1, "1e-6", unit="customer_id")
    with pytest.raises(Unsupported, match="two batches"):
        session.batch([coupons, BY_CITY[1]], rho=1, delta="1e-6")
    known = session.sql_batch([coupons, BY_CITY[1]], epsilon=1, keys={"coupon": ["spring"]})
    assert known[0].table["coupon"].to_pylist() == ["spring"]
    with pytest.raises(Unsupported, match="not a grouping key of any question"):
        session.sql_batch(BY_CITY, epsilon=1, keys={"coupon": ["spring"]})
    for wrong in ([], "SELECT COUNT(*) FROM orders", None):
        with pytest.raises(ParameterError, match="as a list"):
            session.sql_batch(wrong, epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="sql_batch"):
        session.sql("; ".join(BY_CITY), epsilon=1)


def test_a_question_says_which_columns_have_one_value_per_unit() -> None:
    explained = shop().explain(BY_CITY[0], epsilon=1)
    assert any("one value of 'city'" in note for note in explained.notes)
    assert "one value per customer_id has the least of them where its rows differ" in explained.contribution
    assert "one value" not in shop().explain("SELECT COUNT(*) AS n FROM customers", epsilon=1).contribution
    described, composition = shop().describe_batch(BY_CITY)
    assert [each.columns[0].name for each in described] == ["spent"] * 3 and "largest cost" in composition


def test_the_certificate_of_one_answer_rests_on_the_charge_of_all(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        session = shop(ledger=ledger, budget=sf.PureDP(9))
        answer = session.sql_batch([*BY_CITY, "SELECT COUNT(*) AS n FROM customers"], epsilon="0.5")
        assert answer.loss == PureDP(1, unit="customer_id")
        renamed = session.sql(BY_CITY[2].replace("spent", "revenue"), epsilon="0.5")
        for number, each in enumerate((answer[1], renamed)):
            sf.publish(each.outcome, ledger).save(tmp_path / f"out{number}", "csv")
            verdict = sf.verify(tmp_path / f"out{number}", ledger=ledger)
            assert verdict.holds, verdict.explain()
        from sfumato.workflow.verifying.process_claims import _charged

        claim = sf.publish(answer[1].outcome, ledger).certificate.claims[0]
        table = answer[1].outcome.result
        assert _charged(claim, PureDP("0.5", unit="customer_id"), "shop", table, ledger)[0] is True
        assert _charged(claim, PureDP("0.4", unit="customer_id"), "shop", table, ledger)[0] is False
        assert _charged(claim, PureDP("0.5", unit="customer_id"), "shop", table.slice(1), ledger)[0] is False


def test_a_table_that_was_shown_later_costs_what_its_own_question_cost(tmp_path: Path) -> None:
    """Of a batch with a cheaper question, a renamed answer is not taken for that one: its δ cannot be left out."""
    from sfumato.workflow.verifying.process_claims import _charged

    queries = ["SELECT COUNT(*) AS n FROM customers", "SELECT coupon, COUNT(*) AS n FROM orders GROUP BY coupon"]
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        session = shop(ledger=ledger, budget=sf.ApproxDP(90, "1e-3"))
        losses = [each.loss for each in session.sql_batch(queries, epsilon=6, delta="1e-6")]
        assert losses == [PureDP(6, unit="customer_id"), sf.ApproxDP(6, "1e-6", unit="customer_id")]
        for query, loss in zip(queries, losses, strict=True):
            renamed = session.sql(query.replace("AS n", "AS m"), epsilon=6, delta="1e-6")
            assert renamed.repeated
            claim = sf.publish(renamed.outcome, ledger).certificate.claims[0]
            verdicts = [_charged(claim, each, "shop", renamed.outcome.result, ledger)[0] for each in losses]
            assert verdicts == [each == loss for each in losses]


@pytest.mark.parametrize("damaged", ["parts", "question", "answer", "sha256"])
def test_a_damaged_batch_is_said_to_be_one(damaged: str) -> None:
    from sfumato.core.errors import LedgerError
    from sfumato.dp.sql.asking.once import BATCH_FORMAT, in_batch
    from sfumato.ledger.accounts import StoredAnswer

    part = {"question": "c:q", "answer": {}, "sha256": "ab"}
    value = {"format": BATCH_FORMAT, "parts": [part]}
    [whole] = in_batch(StoredAnswer(value, "e", "t"), "c")
    assert whole.part == "ab"
    broken = {"format": BATCH_FORMAT} if damaged == "parts" else {**value, "parts": [{**part, damaged: None}]}
    if damaged != "answer" and damaged != "parts":
        del broken["parts"][0][damaged]
    with pytest.raises(LedgerError, match="edited or damaged"):
        in_batch(StoredAnswer(broken, "e", "t"), "c")
