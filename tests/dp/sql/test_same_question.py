"""The same question is charged once: what is measured counts, not how it is written, named, ordered or cut."""

from __future__ import annotations

import json
import random
import threading
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

import sfumato as sf
from sfumato.core.errors import BudgetRefused, Unsupported
from sfumato.dp.sql.asking.identity import Identity, identify
from sfumato.dp.sql.asking.once import packed, unpacked
from sfumato.dp.sql.measuring.noise import Request, price
from sfumato.dp.sql.measuring.one_query import flat_plan, run, split
from sfumato.ledger import Charge, Ledger, LossAmount, Protected
from tests.dp.sql.database import session
from tests.dp.sql.random_queries import customer_rows, opened, order_rows, queries
from tests.examples import examples

ASKED = (
    "SELECT city, COUNT(*) AS n, AVG(income) AS mean, MEDIAN(age) AS middle FROM customers WHERE age > 30 AND income < 90000 "
    "GROUP BY city"
)
AGAIN = [
    ASKED.replace("AS n", "AS m"),
    ASKED + " LIMIT 200",
    ASKED + " LIMIT 2 OFFSET 1",
    ASKED + " ORDER BY n DESC",
    ASKED + " HAVING COUNT(*) > 5",
    ASKED.replace("age > 30 AND income < 90000", "income < 90000 AND age > 30"),
    ASKED.replace("age > 30 AND income < 90000", "90000 > income AND NOT NOT 30 < age AND age > 30"),
    ASKED.replace("age > 30 AND income < 90000", "NOT age <= 30 AND (income) < 9e4"),
    ASKED.replace("age > 30", "((age > 30.0))"),
    "SELECT AVG(c.income), c.city, COUNT(1) * 2 AS twice, QUANTILE(c.age, 0.5) FROM customers AS c "
    "WHERE c.age > 30 AND c.income < 90000 GROUP BY c.city",
    ASKED.replace("MEDIAN(age)", "QUANTILE(age, 0.9)"),
]


def identity(asked: sf.Session, query: str, *, version: str = "", seed: Any = None, **given: Any) -> Identity:
    bounds = asked._bounded(given.pop("max_rows", None), given.pop("max_groups", None))
    question = asked._question(asked._parsed(query), given.pop("keys", None))
    request = Request(**(given or {"epsilon": "0.5", "delta": "1e-6"}))
    return identify(question, price(question, request, bounds), version, seed)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[sf.Session, Any]:
    asked = session(ledger=tmp_path_factory.mktemp("once") / "ledger.db", budget=sf.PureDP(10), max_groups=4)
    return asked, asked.sql(ASKED, epsilon=1)


@pytest.mark.parametrize("query", AGAIN)
def test_another_spelling_costs_nothing_and_shows_the_same_numbers(once: tuple[sf.Session, Any], query: str) -> None:
    asked, first = once
    before = asked.remaining()
    again = asked.sql(query, epsilon=1)
    assert again.repeated and again.entry == first.entry and asked.remaining() == before
    counts = dict(zip(first.table["city"].to_pylist(), first.table["n"].to_pylist(), strict=True))
    means = dict(zip(first.table["city"].to_pylist(), first.table.column("mean").to_pylist(), strict=True))
    named = {name.lower(): name for name in again.table.column_names}
    for row in again.table.to_pylist():
        shown = row.get("n", row.get("m", row.get("twice", 0) / 2))
        assert shown == counts[row["city"]] and row[named.get("mean", named.get("avg(c.income)"))] == means[row["city"]]
    if "LIMIT 2 " in query:
        assert again.table.num_rows == 2
    if "HAVING" in query:
        assert again.table.num_rows == sum(count > 5 for count in counts.values())
    margins = again.margins().to_pylist()
    known = {row["city"]: margin for row, margin in zip(first.table.to_pylist(), first.margins().to_pylist(), strict=True)}
    for row, margin in zip(again.table.to_pylist(), margins, strict=True):
        if "n" in margin:
            assert margin["n"] == known[row["city"]]["n"] and margin["mean"] == known[row["city"]]["mean"]


def test_fewer_of_the_measurements_with_the_same_noise_are_served(once: tuple[sf.Session, Any]) -> None:
    asked, first = once
    rest = " FROM customers WHERE income < 90000 AND age > 30 GROUP BY city"
    before = asked.remaining()
    part = asked.sql("SELECT COUNT(*) AS n, city" + rest, epsilon=Fraction(1, 4))
    assert part.repeated and part.table["n"].to_pylist() == first.table["n"].to_pylist() and asked.remaining() == before
    assert part.loss == sf.PureDP(1, unit="customer_id"), "the answer rests on the charge that paid for it"
    coarser = asked.sql("SELECT COUNT(*) AS n, city" + rest, epsilon=Fraction(1, 10))
    assert coarser.repeated and coarser.margins().equals(part.margins()), "what is finer is served with its own margin"
    finer = asked.sql("SELECT COUNT(*) AS n, city" + rest, epsilon=Fraction(1, 2))
    assert not finer.repeated and asked.remaining() == before.minus(LossAmount.pure("0.5")), "a smaller scale is a new charge"
    assert asked.sql("SELECT COUNT(*) AS n, city" + rest, epsilon=Fraction(1, 4)).table.equals(part.table), (
        "and changes no answer"
    )


def test_noise_of_another_law_is_another_measurement() -> None:
    asked = session(budget=sf.ConcentratedDP(10))
    assert not asked.sql("SELECT COUNT(*) FROM customers", rho=1).repeated
    assert not asked.sql("SELECT COUNT(*) FROM customers", epsilon="0.01").repeated


def test_keys_and_their_values_have_no_order() -> None:
    asked = session(budget=sf.PureDP(10), max_groups=4)
    first = asked.sql("SELECT city, member, COUNT(*) AS n FROM customers GROUP BY city, member", epsilon=1)
    again = asked.sql("SELECT member, city, COUNT(*) AS n FROM customers GROUP BY member, city", epsilon=1)
    assert again.repeated
    cells = {(row["city"], row["member"]): row["n"] for row in first.table.to_pylist()}
    assert {(row["city"], row["member"]): row["n"] for row in again.table.to_pylist()} == cells
    bern = asked.sql("SELECT city, SUM(age) AS s FROM customers GROUP BY city", epsilon=1, keys={"city": ["Bern", "Basel"]})
    basel = asked.sql("SELECT city, SUM(age) AS s FROM customers GROUP BY city", epsilon=1, keys={"city": ["Basel", "Bern"]})
    assert basel.repeated and basel.table["city"].to_pylist() == ["Basel", "Bern"]
    assert basel.table["s"].to_pylist() == bern.table["s"].to_pylist()[::-1]
    assert not asked.sql("SELECT city, SUM(age) AS s FROM customers GROUP BY city", epsilon=1, keys={"city": ["Bern"]}).repeated


def test_rows_that_are_cut_off_do_not_depend_on_the_order_of_many_declared_keys() -> None:
    """Many texts travel as numbers, by which ties are broken: each person is counted in the first of three wards that tie."""
    names = [f"ward {number:02}" for number in range(90)]
    rows = [{"u": number // 3, "w": names[(number % 3) * 30 + number // 3 % 30]} for number in range(270)]
    columns = {"u": {"role": "unit", "type": "integer"}, "w": {"type": "string"}, "day": {"type": "integer"}}
    data = sf.read(pa.Table.from_pylist([{**row, "day": 1} for row in rows]), schema={"dataset": "t", "columns": columns})
    shown = []
    for keys in (names, names[::-1]):
        asked = sf.Session(data, budget=sf.PureDP(10**6), bounding="truncate", order="day", max_groups=1, max_rows=1)
        answer = asked.sql("SELECT w, COUNT(*) AS n FROM t GROUP BY w", epsilon=10**5, keys={"w": keys})
        shown.append({row["w"]: row["n"] for row in answer.table.to_pylist()})
    assert shown[0] == shown[1] == {name: 3 if name < "ward 30" else 0 for name in names}


def test_constants_are_alike_only_where_no_other_whole_number_is_rounded_to_them() -> None:
    asked = session(budget=sf.PureDP(10), max_rows=1)
    for number, alike in ((2**53 - 1, True), (2**53, False), (-(2**53), False)):
        whole, rounded = (
            identity(asked, f"SELECT COUNT(*) FROM orders WHERE quantity < {text}") for text in (number, f"{number}.0")
        )
        assert (whole.question == rounded.question) == alike


def test_rows_that_are_cut_off_in_order_are_the_same_only_in_the_same_company() -> None:
    """Ties are broken by what is read of a row: another company keeps other rows."""
    asked = session(budget=sf.PureDP(10), bounding="truncate", order="day", max_rows=1)
    first = asked.sql("SELECT SUM(amount) AS a, SUM(quantity) AS q FROM orders", epsilon=1)
    assert asked.sql("SELECT SUM(amount) AS b, SUM(quantity) AS r FROM orders LIMIT 1", epsilon=1).repeated and not first.repeated
    assert not asked.sql("SELECT SUM(quantity) AS q, SUM(amount) AS a FROM orders", epsilon=1).repeated
    assert not asked.sql("SELECT SUM(amount) AS a FROM orders", epsilon="0.5").repeated


def test_of_discovered_groups_only_what_passed_the_threshold_is_kept(tmp_path: Path) -> None:
    rows = [{"u": number, "k": "common" if number < 400 else f"rare {number}"} for number in range(420)]
    schema = {"dataset": "t", "columns": {"u": {"role": "unit", "type": "integer"}, "k": {"type": "string"}}}
    asked = sf.Session(
        sf.read(pa.Table.from_pylist(rows), schema=schema),
        ledger=tmp_path / "l.db",
        budget=sf.ApproxDP(10, "0.1"),
        max_rows=1,
        max_groups=1,
    )
    first = asked.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1, delta="1e-6")
    assert first.table["k"].to_pylist() == ["common"]
    assert asked.ledger is not None
    kept = asked.ledger.entries("t", "commit")[0].payload["answer"]
    assert kept["groups"] == [["common"]] and all(len(each["numbers"]) == 1 for each in kept["measurements"].values())
    assert "rare" not in json.dumps(kept)
    again = asked.sql("SELECT k AS key, COUNT(*) / 2 AS half FROM t GROUP BY k ORDER BY half LIMIT 9", epsilon=1, delta="1e-6")
    assert again.repeated and again.table["half"].to_pylist() == [first.table["n"][0].as_py() / 2]
    assert not asked.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1, delta="1e-7").repeated, "another threshold"


def test_one_measurement_in_two_spellings_is_taken_once() -> None:
    asked = session(budget=sf.PureDP(10))
    told = asked.explain("SELECT SUM(c.age), AVG(age), SUM(age * quantity), SUM(quantity * age) "
                         "FROM customers AS c JOIN orders USING (customer_id)", epsilon=1)  # fmt: skip
    assert len(told.measurements) == 3


def test_many_trees_are_kept_as_shown() -> None:
    asked = session(budget=sf.PureDP(100), max_groups=9)
    query = "SELECT FLOOR(age / 1) AS a, MEDIAN(income) AS m FROM customers GROUP BY FLOOR(age / 1)"
    assert identity(asked, query, epsilon=1).as_shown
    first = asked.sql(query, epsilon=1)
    again = asked.sql(query.replace("SELECT", "select"), epsilon=1)
    assert again.repeated and again.table.equals(first.table) and again.margins().equals(first.margins())
    assert not asked.sql(query + " LIMIT 3", epsilon=1).repeated


def test_what_is_kept_is_small(tmp_path: Path) -> None:
    """10,000 groups with a count and a mean: less than 12 bytes for each number, and far less than the rows of the answer."""
    schema = {"dataset": "t", "columns": {name: {"type": "integer", "bounds": [0, 99]} for name in "abx"}}
    table = pa.table({name: [number % 100 for number in range(1000)] for name in "abx"})
    asked = sf.Session(sf.read(table, schema=schema), ledger=tmp_path / "l.db", budget=sf.PureDP(10))
    answer = asked.sql("SELECT a, b, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY a, b", epsilon="0.5")
    assert answer.table.num_rows == 10_000 and asked.ledger is not None
    entry = asked.ledger.entries("t", "commit")[0]
    assert len(entry.payload_text) < 3 * 10_000 * 4 < len(json.dumps(answer.answer.to_mapping())) / 4


@given(st.lists(st.integers(-(2**70), 2**70) | st.integers(-300, 300), max_size=300), st.integers(0, 64))
@settings(max_examples=examples(20), deadline=None)
def test_packed_numbers_are_the_same_numbers(numbers: list[int], shift: int) -> None:
    moved = [number >> shift for number in numbers]
    stored = json.loads(json.dumps(packed(moved)))
    assert unpacked(stored, len(moved)) == moved
    with pytest.raises(ValueError, match="numbers"):
        unpacked(stored, len(moved) + 1)


# Laws over random questions ------------------------------------------------------------------------------------------

_FLIPPED = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ}
_NEGATED = {exp.GT: exp.LTE, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.LTE: exp.GT, exp.EQ: exp.NEQ, exp.NEQ: exp.EQ}


def respelled(node: exp.Expression, draw: random.Random) -> exp.Expression:
    """The same condition or number, spelled in another way."""

    def change(part: exp.Expression) -> exp.Expression:
        parent = part.parent
        if draw.random() < 0.4 or not isinstance(part, exp.Expression):
            return part
        if isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column):
            return part  # rows of a sub-query are tied to the outer ones by equalities as they stand
        if isinstance(part, (exp.And, exp.Or)):
            sides = [exp.paren(part.this.copy()), exp.paren(part.expression.copy())]
            joined = type(part)(this=sides[1], expression=sides[0])
            return type(part)(this=exp.paren(joined), expression=sides[1].copy()) if draw.random() < 0.3 else exp.paren(joined)
        if type(part) in _FLIPPED:
            if draw.random() < 0.5:
                made = _FLIPPED[type(part)](this=part.expression.copy(), expression=part.this.copy())
            else:
                made = exp.Not(this=exp.paren(_NEGATED[type(part)](this=part.this.copy(), expression=part.expression.copy())))
            return exp.paren(exp.Not(this=exp.Not(this=exp.paren(made)))) if draw.random() < 0.3 else exp.paren(made)
        if isinstance(part, (exp.Add, exp.Mul)) and not isinstance(parent, exp.Div):
            return exp.paren(type(part)(this=exp.paren(part.expression.copy()), expression=exp.paren(part.this.copy())))
        if isinstance(part, exp.In) and part.expressions:  # a sub-query lists nothing
            listed = [*part.expressions, *draw.sample(part.expressions, 1)]
            draw.shuffle(listed)
            return exp.In(this=part.this.copy(), expressions=[each.copy() for each in listed])
        if isinstance(part, exp.Between):
            ends = [exp.GTE(this=part.this.copy(), expression=part.args["low"].copy())]
            ends.append(exp.LTE(this=part.this.copy(), expression=part.args["high"].copy()))
            return exp.paren(exp.And(this=ends[1], expression=ends[0]))
        if isinstance(part, exp.Literal) and type(parent) in _FLIPPED and not part.is_string and str(part.this).isdigit():
            return exp.Literal.number(f"{part.this}.0")
        return part

    return node.transform(change)


def rewritten(select: exp.Select, draw: random.Random) -> exp.Select:
    """The same measurements asked for in another way."""
    made = select.copy()
    if made.args.get("where"):
        made.args["where"].set("this", respelled(made.args["where"].this, draw))
    items = []
    for number, item in enumerate(made.expressions):
        if isinstance(item, exp.Filter):
            item = exp.Filter(this=item.this, expression=exp.Where(this=respelled(item.expression.this, draw)))
        if isinstance(item, (exp.Sum, exp.Avg, exp.Variance)):
            item = type(item)(this=respelled(item.this, draw))
        items.append(exp.alias_(item, f"renamed {number}", quoted=True) if draw.random() < 0.5 else item)
    if made.args.get("group") is None or not any(isinstance(each, exp.Literal) for each in made.args["group"].expressions):
        draw.shuffle(items)
        if made.args.get("group"):
            draw.shuffle(made.args["group"].expressions)
    made.set("expressions", items)
    if draw.random() < 0.5:
        made = made.limit(draw.randrange(1, 9))
    if draw.random() < 0.5:
        made = made.order_by("1 DESC")
    counted = next((each for each in select.expressions if isinstance(each, exp.Count)), None)
    if counted is not None and draw.random() < 0.5:
        made = made.having(exp.GT(this=counted.copy(), expression=exp.Literal.number(draw.randrange(50))))
    return made


@lru_cache
def empty() -> sf.Session:
    """What a question is depends on no row."""
    return opened([], [], max_rows=2, max_groups=2)


def parsed_identity(asked: sf.Session, select: exp.Select, **given: Any) -> Identity:
    return identity(asked, select.sql(dialect="duckdb"), **given)


def test_conditions_about_another_table_may_stand_in_any_order() -> None:
    """Each brings a column to the rows, and which came first was part of the digest: the same question was charged twice."""
    some = "c.customer_id IN (SELECT customer_id FROM orders WHERE amount > 10)"
    none = "NOT c.customer_id IN (SELECT o.customer_id FROM orders AS o)"
    one, other, neither = (
        identity(empty(), f"SELECT COUNT(*) FROM customers AS c WHERE {condition}")
        for condition in (f"{some} AND {none}", f"{none} AND {some}", f"{some} AND NOT {some}")
    )
    assert (one.context, one.question) == (other.context, other.question)
    assert neither.context != one.context


@pytest.mark.slow
@given(queries(), st.randoms(use_true_random=False))
@settings(max_examples=examples(40), deadline=None)
def test_a_rewritten_question_is_the_same_question(query: str, draw: random.Random) -> None:
    asked = empty()
    select = asked._parsed(query)
    first = parsed_identity(asked, select)
    again = parsed_identity(asked, rewritten(select, draw))
    assert (again.context, again.question) == (first.context, first.question)
    assert sorted(again.forms.values()) == sorted(first.forms.values())


@pytest.mark.slow
@given(customer_rows(), order_rows(), queries(), st.randoms(use_true_random=False))
@settings(max_examples=examples(30), deadline=None)
def test_a_rewritten_question_measures_the_same_before_noise(
    customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str, draw: random.Random
) -> None:
    """Whatever the normal form takes for the same is the same on every database, missing values and all."""
    asked = opened(customers, orders, max_rows=20, max_groups=20)
    select = asked._parsed(query)
    counted = [_exact(asked, each.sql(dialect="duckdb")) for each in (select, rewritten(select, draw))]
    assert counted[0] == counted[1]


def _exact(asked: sf.Session, query: str) -> dict[str, dict[tuple[str, ...], Any]]:
    """Every flat measurement by its form and group, before noise."""
    question = asked._question(asked._parsed(query), None)
    priced = price(question, Request(epsilon=1, delta="1e-6"), asked._bounded(None, None))
    known = identify(question, priced, "", None)
    flat, _ = split(question, priced)
    if not flat:
        return {}
    columns = [column.to_pylist() for column in run(question, flat_plan(question, priced, flat, "00" * 16)).columns]
    rows = list(zip(*columns, strict=True))
    width = len(question.keys)
    groups = [tuple(repr(value) for value in known.arranged(row[:width])) for row in rows]
    return {
        known.forms[each.name]: {group: int(row[width + place] or 0) for group, row in zip(groups, rows, strict=True)}
        for place, each in enumerate(flat)
    }


@pytest.mark.slow
@given(queries(), st.randoms(use_true_random=False))
@settings(max_examples=examples(40), deadline=None)
def test_a_changed_question_is_another_question(query: str, draw: random.Random) -> None:
    asked = empty()
    select = asked._parsed(query)
    first = parsed_identity(asked, select)
    for name, changed in changes(asked, select, draw):
        try:
            other = changed()
        except Unsupported:
            continue
        assert other.question != first.question, name
        if name not in ("loss", "rows"):
            assert other.context != first.context or not set(first.forms.values()) <= set(other.forms.values()), name


def changes(asked: sf.Session, select: exp.Select, draw: random.Random) -> list[tuple[str, Any]]:
    """Ways in which a question can be another one."""
    found: list[tuple[str, Any]] = [
        ("version", lambda: parsed_identity(asked, select, version="2")),
        ("seed", lambda: parsed_identity(asked, select, seed=0)),
        ("loss", lambda: parsed_identity(asked, select, epsilon="0.4", delta="1e-6")),
        (
            "filter",
            lambda: parsed_identity(asked, select.copy().where("customer_id > 3" if "JOIN" not in select.sql() else "1 > 2")),
        ),
    ]
    numbers = [each for each in select.find_all(exp.Literal) if not each.is_string and each.find_ancestor(exp.Where, exp.Sum)]
    if numbers:
        place = draw.randrange(len(numbers))

        def moved() -> Identity:
            made = select.copy()
            literals = [
                each for each in made.find_all(exp.Literal) if not each.is_string and each.find_ancestor(exp.Where, exp.Sum)
            ]
            literals[place].replace(exp.Literal.number(f"{literals[place].this}7"))
            return parsed_identity(asked, made)

        found.append(("constant", moved))
    if not asked._question(select, None).rows.single:
        counted = {each.kind for each in asked._question(select, None).measurements}
        if counted - {"units"}:
            found.append(("rows", lambda: parsed_identity(asked, select, max_rows=3)))
    return found


# Certificates, ledgers, races ----------------------------------------------------------------------------------------


def test_a_certificate_of_a_renamed_answer_rests_on_the_same_charge(tmp_path: Path) -> None:
    from sfumato.workflow.publishing.publish import publish

    place = tmp_path / "ledger.db"
    asked = session(ledger=place, budget=sf.PureDP(10), max_groups=4, seed=None)
    first = asked.sql("SELECT city, COUNT(*) AS n FROM customers GROUP BY city", epsilon=1)
    again = asked.sql("SELECT COUNT(*) AS people, city FROM customers GROUP BY city ORDER BY people LIMIT 2", epsilon="0.5")
    assert again.repeated
    for number, answer in enumerate((first, again)):
        folder = publish(answer.outcome).save(tmp_path / f"out-{number}", "csv")
        report = sf.verify(folder, ledger=place)
        assert report.holds and answer.entry is not None and answer.entry[:16] in report.explain()
    forged = first.table.set_column(1, "n", pa.array([1, 2, 3, 4]))
    folder = publish(replace(first.outcome, result=forged)).save(tmp_path / "forged", "csv")
    assert "another result" in sf.verify(folder, ledger=place).explain()


def test_a_charge_whose_result_nobody_knows_confirms_no_result(tmp_path: Path) -> None:
    from sfumato.core.randomness import default
    from sfumato.dp.outcomes import private_outcome
    from sfumato.workflow.publishing.publish import publish

    place = tmp_path / "ledger.db"
    with Ledger.open(place) as ledger:
        ledger.grant("shop", "analyst", LossAmount.pure(10))
        reservation = ledger.reserve("shop", "analyst", Charge(LossAmount.pure(1), Protected("customer_id")), "ab" * 32)
        entry = ledger.commit(reservation, [1, 2, 3]).entry
    outcome = private_outcome(
        pa.table({"n": [207]}), sf.PureDP(1, unit="customer_id"), {"name": "Session.sql"}, argument="noise",
        randomness=default(), dataset="shop", ledger_entry=entry,
    )  # fmt: skip
    folder = publish(outcome).save(tmp_path / "out", "csv")
    report = sf.verify(folder, ledger=place)
    assert not report.holds and "another result" in report.explain()


@pytest.mark.parametrize(
    ("called", "others"),
    [(("visits", "patients"), ("p",)), (("clinic", "clinic"), ("p", "ward")), (("t", "t"), ("p", "ward"))],
)
def test_two_tables_of_one_dataset_do_not_share_answers(tmp_path: Path, called: tuple[str, str], others: tuple[str, ...]) -> None:
    """Each alone in a session, where any name means it: told apart by what queries call them, and by their columns."""
    counted = []
    for name, columns, people in ((called[0], ("p",), 40), (called[1], others, 100)):
        table = pa.table({column: list(range(people)) for column in columns})
        described = {column: {"type": "integer", **({"role": "unit"} if column == "p" else {})} for column in columns}
        data = sf.read(table, schema={"dataset": "clinic", "columns": described})
        asked = sf.Session(data, ledger=tmp_path / "ledger.db", budget=sf.PureDP(10**6))
        answer = asked.sql(f"SELECT COUNT(DISTINCT p) AS n FROM {name}", epsilon=10**5)
        assert asked.sql(f"SELECT COUNT(DISTINCT x.p) AS m FROM {name.upper()} AS x", epsilon=10**5).repeated
        counted.append((answer.table["n"].to_pylist(), answer.repeated))
    assert counted == [([40], False), ([100], False)]


def test_showing_the_same_again_adds_no_entry(tmp_path: Path) -> None:
    asked = session(ledger=tmp_path / "ledger.db", budget=sf.PureDP(10))
    assert asked.ledger is not None
    asked.sql("SELECT COUNT(*) AS n FROM customers", epsilon=1)
    asked.sql("SELECT COUNT(*) AS m FROM customers", epsilon=1)
    entries = asked.ledger.count()
    for query in ("SELECT COUNT(*) AS n FROM customers", "SELECT COUNT(*) AS m FROM customers LIMIT 5"):
        assert asked.sql(query, epsilon=1).repeated and asked.ledger.count() == entries
    assert asked.ledger.verify().ok


def test_answers_that_earlier_versions_stored_keep_their_certificates(tmp_path: Path) -> None:
    """A ledger with the answer itself under a digest of the whole question: readable, verifiable, and not shown as measured."""
    from sfumato.core.randomness import default
    from sfumato.dp.outcomes import private_outcome
    from sfumato.dp.sql.asking.answer import AnswerTable, CellErrors
    from sfumato.dp.sql.margins.reach import stored_law
    from sfumato.workflow.publishing.publish import publish

    place = tmp_path / "ledger.db"
    old = AnswerTable(("n",), ("integer",), ((207,),), CellErrors((stored_law("laplace 1 1"),), ((1.4,),)))
    with Ledger.open(place) as ledger:
        ledger.grant("shop", "analyst", LossAmount.pure(10))
        reservation = ledger.reserve("shop", "analyst", Charge(LossAmount.pure(1), Protected("customer_id")), "ab" * 32)
        stored = ledger.commit(reservation, old.to_mapping())
    outcome = private_outcome(
        old.table(), sf.PureDP(1, unit="customer_id"), {"name": "Session.sql"}, argument="noise", randomness=default(),
        dataset="shop", ledger_entry=stored.entry,
    )  # fmt: skip
    folder = publish(outcome).save(tmp_path / "out", "csv")
    assert sf.verify(folder, ledger=place).holds
    asked = session(ledger=place)
    assert not asked.sql("SELECT COUNT(*) AS n FROM customers", epsilon=1).repeated
    assert asked.ledger is not None and asked.ledger.verify().ok


def test_sessions_that_ask_at_the_same_time_show_one_set_of_numbers(tmp_path: Path) -> None:
    place, count = tmp_path / "ledger.db", 6
    session(ledger=place, budget=sf.PureDP(100), seed=None)
    asked = [session(ledger=place, budget=sf.PureDP(100), seed=None) for _ in range(count)]
    start, found = threading.Barrier(count), {}

    def ask(number: int) -> None:
        start.wait()
        answer = asked[number].sql(f"SELECT COUNT(*) AS n{number}, SUM(age) AS s FROM customers LIMIT {number + 1}", epsilon=1)
        found[number] = (answer.entry, *(column[0].as_py() for column in answer.table.columns))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == count and len(set(found.values())) == 1
    with Ledger.open(place) as ledger:
        assert ledger.verify().ok and len(ledger.entries("shop", "commit")) == 1
        assert 1 <= len(ledger.entries("shop", "reserve")) <= count


def test_who_has_no_grant_is_shown_nothing(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    session(ledger=place, budget=sf.PureDP(10)).sql("SELECT COUNT(*) FROM customers", epsilon=1)
    with pytest.raises(BudgetRefused, match="no budget was granted"):
        session(ledger=place, analyst="somebody", budget=None).sql("SELECT COUNT(*) AS m FROM customers", epsilon=1)


def test_a_seeded_answer_is_never_shown_for_a_private_one(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    session(ledger=place, budget=sf.PureDP(10), seed=1).sql("SELECT COUNT(*) FROM customers", epsilon=1)
    assert not session(ledger=place, seed=None).sql("SELECT COUNT(*) FROM customers", epsilon=1).repeated
    assert not session(ledger=place, seed=2).sql("SELECT COUNT(*) FROM customers", epsilon=1).repeated
    assert session(ledger=place, seed=1).sql("SELECT COUNT(*) AS x FROM customers", epsilon=1).repeated


def test_trees_are_restored_to_the_last_digit(tmp_path: Path) -> None:
    asked = session(ledger=tmp_path / "ledger.db", budget=sf.PureDP(10))
    ranks = np.linspace(0, 1, 11)
    query = (
        "SELECT "
        + ", ".join(f"QUANTILE(income, {rank:.1f}) AS q{number}" for number, rank in enumerate(ranks))
        + " FROM customers"
    )
    first = asked.sql(query, epsilon=1)
    again = asked.sql(query + " LIMIT 7", epsilon=1)
    assert again.repeated and again.table.equals(first.table) and again.errors.equals(first.errors)


def read_with(codes: tuple[str, ...], engine: str, folder: Path) -> sf.Microdata:
    rows = pa.table({"c": ["a", "b", "-", "?"] * 50, "x": ["u", "v"] * 100})
    pq.write_table(rows, folder / "o.parquet")
    columns = {"c": {"type": "string", "missing": list(codes)}, "x": {"type": "string"}}
    schema = {"dataset": "o", "unit": "record", "columns": columns}
    return sf.read(rows if engine == "memory" else folder / "o.parquet", schema=schema, engine=engine)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_other_missing_codes_are_another_question_on_every_engine(engine: str, tmp_path: Path) -> None:
    found = []
    for codes in ((), ("-",), ("-", "?"), ("?", "-"), ()):
        asked = sf.Session(read_with(codes, engine, tmp_path), ledger=tmp_path / "ledger.db", budget=sf.PureDP(1000))
        answer = asked.sql("SELECT COUNT(c) AS n FROM o", epsilon=50)
        found.append((round(answer.table.column("n")[0].as_py(), -1), answer.repeated))
    assert found[:3] == [(200, False), (150, False), (100, False)]
    assert found[3:] == [(100, True), (200, True)] if engine == "memory" else found[4] == (200, True)


def test_without_missing_codes_a_question_is_what_it_was(tmp_path: Path) -> None:
    """The digest under which answers were stored before codes were part of it."""
    asked = sf.Session(read_with((), "memory", tmp_path), budget=sf.PureDP(1))
    assert identity(asked, "SELECT COUNT(c) AS n FROM o").question == (
        "f6ae0d369f306339b2f3ea41b0a96d7b609a8fe57cf99c6598b1a43e89355d29:"
        "95ea7cf16c3767a612fe9069bae34a3a5609dc71c4dce8a46c0b1815de9710fa"
    )


def test_limit_changes_no_margin(tmp_path: Path) -> None:
    """Eleven hundred groups are measured, five are shown: the same measurements have the same margins."""
    rows = pa.table({"g": np.arange(4400) % 1100, "x": np.linspace(0, 100, 4400)})
    columns = {"g": {"type": "integer", "bounds": [0, 1099]}, "x": {"type": "number", "bounds": [0, 100]}}
    data = sf.read(rows, schema={"dataset": "d", "unit": "record", "columns": columns})
    asked = sf.Session(data, budget=sf.PureDP(10))
    query, keys = "SELECT g, AVG(x) AS m FROM d GROUP BY g ORDER BY g", {"g": list(range(1100))}
    whole, few = (asked.sql(each, epsilon=2, keys=keys) for each in (query, query + " LIMIT 5"))
    assert few.repeated and few.margins(0.95).equals(whole.margins(0.95).slice(0, 5))
