"""A session: the budget, the stored answers, the bounds, what is explained and what is refused."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import BudgetRefused, ParameterError, SfumatoError, Unsupported
from sfumato.dp.sql.measuring.noise import Request, price
from sfumato.dp.sql.measuring.one_query import flat_plan, run
from sfumato.ledger.amounts import LossAmount
from tests.dp.sql.database import CITIES, session

PEOPLE = {
    "dataset": "people",
    "columns": {
        "user_id": {"role": "unit", "type": "string"},
        "city": {"type": "string", "domain": ["Basel", "Bern"]},
        "income": {"type": "number", "bounds": [0, 100]},
        "visits": {"type": "integer", "bounds": [0, 10]},
    },
}


def people(rows: list[tuple[str | None, str | None, float | None, int | None]]) -> sf.Microdata:
    names = ("user_id", "city", "income", "visits")
    types = [("user_id", pa.string()), ("city", pa.string()), ("income", pa.float64()), ("visits", pa.int64())]
    return sf.read(
        pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=pa.schema(types)), schema=PEOPLE
    )


def exact(asked: sf.Session, query: str, **bounds: Any) -> list[tuple[Any, ...]]:
    """The answer before noise, for tests alone."""
    question = asked._question(asked._parsed(query), None)
    priced = price(question, Request(epsilon=1, delta="1e-6"), asked._bounded(bounds.get("max_rows"), bounds.get("max_groups")))
    plan = flat_plan(question, priced, [m for m in question.measurements if m.kind != "tree"], "00" * 16)
    return sorted(zip(*(column.to_pylist() for column in run(question, plan).columns), strict=True), key=repr)


ROWS = [("a", "Basel", 10.0, 1), ("a", "Basel", 20.0, 2), ("a", "Bern", 30.0, 3), ("b", "Bern", 400.0, 4), (None, "Bern", 5.0, 5)]


class TestTheBudget:
    def test_a_question_is_charged_and_the_same_question_is_not(self, tmp_path: Path) -> None:
        asked = sf.Session(people(ROWS), max_rows=1, max_groups=1, ledger=tmp_path / "ledger.db", budget=sf.PureDP(1))
        first = asked.sql("SELECT COUNT(*) AS n FROM people", epsilon="0.3")
        again = asked.sql("select count(*) as n from people", epsilon="0.3")
        assert asked.remaining() == LossAmount.pure("0.7")
        assert (first.repeated, again.repeated) == (False, True)
        assert first.table.equals(again.table) and first.entry == again.entry

    def test_another_session_shows_the_stored_answer(self, tmp_path: Path) -> None:
        where = tmp_path / "ledger.db"
        first = sf.Session(people(ROWS), max_rows=1, max_groups=1, ledger=where, budget=sf.PureDP(1)).sql(
            "SELECT SUM(visits) AS n FROM people", epsilon=1
        )
        second = sf.Session(people(ROWS), max_rows=1, max_groups=1, ledger=where, budget=sf.PureDP(1)).sql(
            "SELECT SUM(visits) AS n FROM people", epsilon=1
        )
        assert second.repeated and second.table.equals(first.table)

    def test_another_version_of_the_data_is_another_question(self, tmp_path: Path) -> None:
        where = tmp_path / "ledger.db"
        sf.Session(people(ROWS), max_rows=1, max_groups=1, ledger=where, budget=sf.PureDP(1)).sql(
            "SELECT COUNT(*) FROM people", epsilon="0.5"
        )
        later = sf.Session(people(ROWS), max_rows=1, max_groups=1, ledger=where, budget=sf.PureDP(1), version="2").sql(
            "SELECT COUNT(*) FROM people", epsilon="0.5"
        )
        assert not later.repeated

    def test_what_is_not_left_is_refused_with_the_numbers(self) -> None:
        asked = sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1))
        asked.sql("SELECT COUNT(*) FROM people", epsilon="0.8")
        with pytest.raises(BudgetRefused, match=r"costs ε = 0.3, and ε = 0.2 is left") as refusal:
            asked.sql("SELECT SUM(visits) FROM people", epsilon="0.3")
        assert refusal.value.exit_code == 3

    def test_a_session_lowers_a_grant_and_never_raises_it(self, tmp_path: Path) -> None:
        with sf.Ledger.open(tmp_path / "ledger.db") as ledger:
            ledger.grant("people", "analyst", LossAmount.pure("0.5"))
            generous = sf.Session(people(ROWS), max_rows=1, max_groups=1, ledger=ledger, budget=sf.PureDP(10))
            with pytest.raises(BudgetRefused):
                generous.sql("SELECT COUNT(*) FROM people", epsilon="0.6")
            modest = sf.Session(people(ROWS), max_rows=1, max_groups=1, ledger=ledger, budget=sf.PureDP("0.1"))
            with pytest.raises(BudgetRefused):
                modest.sql("SELECT COUNT(*) FROM people", epsilon="0.2")
            with pytest.raises(BudgetRefused, match="cannot grant itself"):
                sf.Session(people(ROWS), max_rows=1, max_groups=1, ledger=ledger, budget=sf.PureDP(1), analyst="somebody")

    def test_kinds_of_loss_convert_upwards_or_are_refused(self, tmp_path: Path) -> None:
        concentrated = sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.ConcentratedDP("0.5"))
        concentrated.sql("SELECT COUNT(*) FROM people", epsilon="0.1")
        assert concentrated.remaining() == LossAmount.zcdp(Fraction("0.5") - Fraction("0.005"))
        concentrated.sql("SELECT COUNT(*) FROM people", rho="0.1")
        with pytest.raises(BudgetRefused, match="no exact counterpart"):
            sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1)).sql("SELECT COUNT(*) FROM people", rho="0.1")

    def test_every_question_says_its_price(self) -> None:
        asked = sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1))
        for wrong in ({}, {"delta": 1e-6}, {"epsilon": 1, "rho": 1}, {"epsilon": 0}, {"epsilon": -1}, {"epsilon": 1, "delta": 1}):
            with pytest.raises(ParameterError):
                asked.sql("SELECT COUNT(*) FROM people", **wrong)
        assert asked.remaining() == LossAmount.pure(1)


class TestBounds:
    def test_each_unit_gives_its_rows_to_its_groups(self) -> None:
        asked = sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1))
        query = "SELECT city, COUNT(*), SUM(visits) FROM people GROUP BY city"
        assert exact(asked, query, max_rows=2, max_groups=2)[0][1:] == (2, 3)
        kept = exact(asked, query, max_rows=1, max_groups=1)
        assert sum(row[1] for row in kept) == 2  # one row of a, one of b; the row without a unit is left out

    def test_values_are_clamped_to_their_declared_bounds(self) -> None:
        asked = sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1))
        question = asked._question(asked._parsed("SELECT SUM(income) FROM people"), None)
        total = float(exact(asked, "SELECT SUM(income) FROM people", max_rows=5)[0][0]) * float(question.measurements[0].step)
        assert total == pytest.approx(10 + 20 + 30 + 100)

    def test_the_truncated_rows_are_the_first_in_order(self) -> None:
        asked = sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1), bounding="truncate", order="visits")
        assert exact(asked, "SELECT SUM(visits) FROM people", max_rows=2) == [(1 + 2 + 4,)]

    def test_noise_follows_the_bounds(self) -> None:
        asked = sf.Session(people(ROWS), budget=sf.PureDP(1), max_rows=2, max_groups=2)
        note = asked.explain("SELECT city, SUM(income) FROM people GROUP BY city", epsilon=1).measurements[0]
        assert note.sensitivity_l1 == pytest.approx(2 * 2 * 100, rel=1e-5)
        assert note.sensitivity_l2 == pytest.approx(2**0.5 * 2 * 100, rel=1e-5)
        assert note.scale == pytest.approx(400, rel=1e-5)

    @pytest.mark.parametrize("high", [1e-3, 1.0, 37.0, 2e5, 1e9])
    def test_the_noise_of_a_grouped_sum_is_within_one_percent_of_the_ideal_whatever_the_table(self, high: float) -> None:
        schema = {
            "dataset": "t",
            "columns": {"x": {"type": "number", "bounds": [0, high]}, "g": {"type": "string", "domain": ["a"]}},
        }
        table = pa.table({"x": [high / 2] * 7, "g": ["a"] * 7})
        note = sf.Session(sf.read(table, schema=schema), budget=sf.PureDP(1)).explain(
            "SELECT g, SUM(x) FROM t GROUP BY g", epsilon=1
        )
        assert high <= note.measurements[0].scale <= 1.01 * high


class TestExplaining:
    def test_nothing_is_spent_and_the_margin_is_kept(self) -> None:
        asked = sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1))
        told = asked.explain("SELECT COUNT(*) AS n FROM people", epsilon="0.1")
        assert asked.remaining() == LossAmount.pure(1)
        assert told.columns[0].margin == 30  # P(|noise| > 30) is below 5 % at scale 10, P(|noise| > 29) is not
        json.dumps(told.to_mapping())
        assert "ε = 0.1" in str(told) and "user_id" in str(told)

    def test_the_loss_for_a_wanted_accuracy_is_the_least(self) -> None:
        asked = sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1))
        told = asked.cost("SELECT COUNT(*) AS n FROM people", within=100, confidence=0.95)
        assert told.columns[0].margin is not None and told.columns[0].margin <= 100
        assert isinstance(told.loss, sf.PureDP)
        less = Fraction(told.loss.epsilon) - Fraction("0.0001")
        worse = asked.explain("SELECT COUNT(*) AS n FROM people", epsilon=less).columns[0].margin
        assert worse is not None and worse > 100

    def test_a_mean_needs_the_size_of_its_group(self) -> None:
        asked = sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1))
        with pytest.raises(Unsupported, match="rows=1000"):
            asked.cost("SELECT AVG(income) FROM people", within=1)
        assert asked.cost("SELECT AVG(income) FROM people", within=1, rows=1000).loss

    def test_the_price_of_a_batch_is_the_sum(self) -> None:
        asked = sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1))
        told = asked.batch(["SELECT COUNT(*) FROM people", "SELECT SUM(income) FROM people"], epsilon="0.1")
        assert len(told) == 2 and isinstance(told.total, sf.PureDP) and told.total.epsilon == Fraction(1, 5)


class TestKeys:
    def test_declared_groups_without_rows_are_shown(self) -> None:
        answer = sf.Session(people(ROWS[3:4]), max_rows=1, max_groups=1, budget=sf.PureDP(9)).sql(
            "SELECT city, COUNT(*) AS n FROM people GROUP BY city", epsilon=1
        )
        assert answer.table.column("city").to_pylist() == ["Basel", "Bern"]

    def test_undeclared_keys_need_a_delta(self) -> None:
        shop = session()
        with pytest.raises(Unsupported, match="coupon.*not declared"):
            shop.sql("SELECT coupon, COUNT(*) FROM orders GROUP BY coupon", epsilon=1)
        given = shop.sql("SELECT coupon, COUNT(*) FROM orders GROUP BY coupon", epsilon=1, keys={"coupon": ["spring", "autumn"]})
        assert given.table.column("coupon").to_pylist() == ["spring", "autumn"]
        with pytest.raises(Unsupported, match="not a grouping key"):
            shop.sql("SELECT COUNT(*) FROM orders", epsilon=1, keys={"coupon": ["spring"]})

    def test_a_group_of_one_unit_is_shown_with_probability_at_most_delta(self) -> None:
        shop = session()
        question = shop._question(shop._parsed("SELECT coupon, COUNT(*) FROM orders GROUP BY coupon"), None)
        for epsilon, delta, groups in ((1, "1e-4", 3), ("0.1", "1e-6", 1), (5, "0.01", 10)):
            priced = price(question, Request(epsilon=epsilon, delta=delta), shop._bounded(1, groups))
            noise = priced.noises[priced.units or ""]
            assert priced.threshold is not None
            reach, least = priced.threshold - 1, float(Fraction(str(delta)))
            if noise.law == "gaussian":  # half of δ is what the noise itself needs
                assert (
                    groups * _gaussian_tail(noise.amount, reach) <= least / 2 < groups * _gaussian_tail(noise.amount, reach - 2)
                )
                continue
            ratio = _exp(-1 / noise.amount)
            tail = ratio**reach / (1 + ratio)
            assert groups * tail <= least < groups * tail / ratio

    def test_numbers_are_grouped_by_their_declared_range(self) -> None:
        answer = session().sql(
            "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM customers GROUP BY FLOOR(age / 10) * 10", epsilon=1
        )
        assert answer.table.column("decade").to_pylist() == list(range(0, 130, 10))

    def test_public_tables_declare_the_keys_they_carry(self) -> None:
        query = "SELECT region, COUNT(*) AS n FROM customers JOIN regions USING (city) GROUP BY region"
        assert session().sql(query, epsilon=1).table.column("region").to_pylist() == ["centre", "north", "west"]


class TestPaidBounds:
    def test_bounds_that_nobody_declared_are_found_privately(self) -> None:
        schema = {"dataset": "t", "columns": {"x": {"type": "number"}}}
        table = sf.read(pa.table({"x": [float(n) for n in range(-3, 997)]}), schema=schema)
        asked = sf.Session(table, max_rows=1, max_groups=1, budget=sf.PureDP(1), seed=5)
        with pytest.raises(Unsupported, match="Declare bounds"):
            asked.sql("SELECT SUM(x) FROM t", epsilon="0.1")
        found = asked.bounds("x", epsilon="0.5")
        assert found.high == 1024 and found.low is not None and found.low <= 32
        assert asked.remaining() == LossAmount.pure("0.5")

    def test_too_few_rows_stand_out_from_nothing(self) -> None:
        table = sf.read(pa.table({"x": [1.0]}), schema={"dataset": "t", "columns": {"x": {"type": "number"}}})
        assert sf.Session(table, max_rows=1, max_groups=1, budget=sf.PureDP(1), seed=5).bounds("x", epsilon="0.1").high is None


class TestPostProcessing:
    def test_order_limit_and_having_work_on_noisy_numbers(self) -> None:
        shop = session()
        whole = shop.sql("SELECT city, COUNT(*) AS n FROM customers GROUP BY city", epsilon=5).table.to_pylist()
        query = "SELECT city, COUNT(*) AS n FROM customers GROUP BY city HAVING COUNT(*) > 0 ORDER BY n DESC LIMIT 2"
        top = shop.sql(query, epsilon=5).table.to_pylist()
        assert len(top) == 2 and top[0]["n"] >= top[1]["n"] and len(whole) == len(CITIES)

    def test_ratios_carry_an_error(self) -> None:
        answer = session().sql("SELECT 100.0 * COUNT(*) FILTER (WHERE member) / COUNT(*) AS p FROM customers", epsilon=5)
        error = answer.errors.column("p")[0].as_py()
        assert error is not None and 0 < error < 100

    def test_seeded_noise_is_a_demonstration(self) -> None:
        answers = [
            sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1), seed=3).sql(
                "SELECT COUNT(*) AS n FROM people", epsilon=1
            )
            for _ in "ab"
        ]
        assert answers[0].table.equals(answers[1].table)
        assert answers[0].outcome.details["private"] is False and "demonstration" in answers[0].outcome.details["randomness"]
        fresh = sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1)).sql(
            "SELECT COUNT(*) AS n FROM people", epsilon=1
        )
        assert fresh.outcome.details["private"] is True


class TestIdentity:
    SCHEMA = {"dataset": "t", "columns": {name: {"type": "integer", "bounds": [0, 9]} for name in "ab"}}

    def digests(self, *queries: str, **options: Any) -> list[bool]:
        asked = sf.Session(sf.read(pa.table({"a": [1], "b": [2]}), schema=self.SCHEMA), budget=sf.PureDP(100), **options)
        return [asked.sql(query, epsilon=1).repeated for query in queries]

    def test_columns_that_change_their_names_are_told_apart(self) -> None:
        first = "SELECT SUM(x) AS s FROM (SELECT a AS x, b AS y FROM t)"
        second = "SELECT SUM(x) AS s FROM (SELECT a AS y, b AS x FROM t)"
        assert self.digests(first, second) == [False, False]

    def test_constants_and_conditions_are_told_apart(self) -> None:
        texts = [f"SELECT COUNT(*) AS n FROM t WHERE a > {bound}" for bound in (1, 2, 3)]
        assert self.digests(*texts, "SELECT COUNT(*) AS n FROM t WHERE b > 1") == [False] * 4

    def test_spelling_is_not(self) -> None:
        assert self.digests("SELECT SUM(a) AS s FROM t", "select  sum( A ) as s from T -- again") == [False, True]


class TestReleasing:
    def test_a_refused_algorithm_costs_nothing(self) -> None:
        asked = sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1))
        with pytest.raises(SfumatoError):
            asked.release(sf.dp.PrivateHistogram(columns=("user_id",), epsilon=1, max_rows=1))
        assert asked.remaining() == LossAmount.pure(1)

    def test_an_artefact_is_charged_for_the_unit_of_the_session(self, tmp_path: Path) -> None:
        columns = {name: {**entry, "role": "plain"} for name, entry in PEOPLE["columns"].items()}
        plain = people(ROWS).with_schema(sf.Schema.parse({**PEOPLE, "columns": columns}))
        asked = sf.Session(plain, ledger=tmp_path / "ledger.db", unit="user_id", max_rows=1, max_groups=1, budget=sf.PureDP(1))
        outcome = asked.release(sf.dp.PrivateHistogram(columns=("city",), epsilon="0.5", max_rows=1))
        assert outcome.claimed[0].unit == "user_id" and outcome.details["ledger_entry"]
        assert asked.remaining() == LossAmount.pure("0.5")

    def test_only_the_first_session_grants_itself_a_budget(self, tmp_path: Path) -> None:
        with sf.Ledger.open(tmp_path / "ledger.db") as ledger:
            assert ledger.first_grant("people", "a", LossAmount.pure(1))
            assert not ledger.first_grant("people", "b", LossAmount.pure(1))
            assert ledger.verify().ok and len(ledger.accounts("people")) == 1


class TestBuilder:
    def test_a_built_question_is_the_same_question(self) -> None:
        asked = sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1))
        built = asked.table().where("income > 5").group_by("city").agg(n="COUNT(*)", mean="AVG(income)").ask(epsilon="0.5")
        written = asked.sql(
            'SELECT city, COUNT(*) AS "n", AVG(income) AS "mean" FROM people WHERE income > 5 GROUP BY city', epsilon="0.5"
        )
        assert written.repeated and built.table.equals(written.table)

    def test_keys_are_declared_as_in_sql(self) -> None:
        question = (
            sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1)).table().group_by("visits").agg(n="COUNT(*)")
        )
        assert question.explain(epsilon=1, keys={"visits": [1, 2]}).groups == 2
        assert question.ask(epsilon=1, keys={"visits": [2, 1]}).table.column("visits").to_pylist() == [2, 1]

    def test_a_histogram_has_declared_bins(self) -> None:
        answer = (
            sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1))
            .table()
            .histogram("income", 0, 100, 4)
            .ask(epsilon=1)
        )
        assert answer.table.column("bin").to_pylist() == [0, 1, 2, 3, 4, 5]

    def test_a_builder_without_aggregates_says_what_is_missing(self) -> None:
        with pytest.raises(ParameterError, match="say what to compute"):
            sf.Session(people(ROWS), max_rows=1, max_groups=1, budget=sf.PureDP(1)).table().group_by("city").ask(epsilon=1)


def _exp(value: Fraction) -> float:
    import math

    return math.exp(float(value))


def _gaussian_tail(variance: Fraction, reach: int) -> float:
    """P(X ≥ reach) of the discrete Gaussian, summed."""
    weights = {x: math.exp(-(x**2) / (2 * float(variance))) for x in range(-2000, 2001)}
    return sum(weight for x, weight in weights.items() if x >= reach) / sum(weights.values())
