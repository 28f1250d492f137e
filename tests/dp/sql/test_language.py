"""One row makes a function of the language: over rows with bounds, over answers with errors, in the explanation, in the docs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators import aggregates, language
from sfumato.dp.sql.operators.base import Operator, OverAnswers, array_of_one, of_one, takes
from sfumato.dp.sql.operators.term import Term
from sfumato.engines import expressions as e
from sfumato.engines.expressions import Kind, expect
from sfumato.engines.plan import Field, Named, Project, Scan
from sfumato.engines.sql.compile import Dialect, PhysicalTable, compile_plan
from sfumato.engines.sql.values import as_kind
from sfumato.engines.write import write_table
from tests.dp.sql.database import CUSTOMERS, customers, session

#: So little noise that an answer is the number itself.
NO_NOISE = 10**9


@dataclass(frozen=True)
class Backwards(e.Function):
    """A text read from its end: what an engine has to be told, because plans cannot say it yet."""

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"string"}, "Backwards")
        return "string"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        return as_kind(exp.Anonymous(this="REVERSE", expressions=[term]), "string", dialect)


def _halved(node: exp.Anonymous, terms: Any) -> Term:
    return terms(exp.Div(this=node.expressions[0], expression=exp.Literal.number(2)))


HALVED = Operator(
    "HALVED(a)",
    words="half of a number",
    rows=_halved,
    answers=OverAnswers(takes("number"), of_one(lambda a: a / 2), array_of_one(lambda values: values / 2), linear="sum"),
)
BACKWARDS = Operator(
    "BACKWARDS(text)",
    words="the text from its end",
    rows=lambda node, terms: Term(Backwards(terms(node.expressions[0]).expression), "string"),
)


@pytest.fixture
def longer_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """The language with two rows more."""
    monkeypatch.setattr(language, "LANGUAGE", language.Language((*language.LANGUAGE.operators, HALVED, BACKWARDS)))


@pytest.fixture
def shop(tmp_path: Path) -> sf.Session:
    write_table(customers(), tmp_path / "shop.duckdb", table_name="customers")
    people = sf.read(tmp_path / "shop.duckdb", schema=CUSTOMERS, table="customers")
    return sf.Session({"customers": people}, budget=sf.PureDP(10**12), max_rows=1, max_groups=1, seed=1)


@pytest.mark.usefixtures("longer_language")
class TestOneRowMore:
    def test_it_is_asked_over_rows_with_its_bounds(self, shop: sf.Session) -> None:
        ages = [min(max(age, 0), 120) for age in customers()["age"].to_pylist() if age is not None]
        (row,) = shop.sql(
            "SELECT SUM(HALVED(age)) AS s, MAX(HALVED(age)) AS m FROM customers", epsilon=NO_NOISE
        ).table.to_pylist()
        assert row["s"] == pytest.approx(sum(ages) / 2) and row["m"] == pytest.approx(max(ages) / 2, abs=0.1)
        explanation = shop.explain("SELECT SUM(HALVED(age)) AS s FROM customers", epsilon=1)
        assert explanation.measurements[0].sensitivity_l1 == 60  # half of what is declared

    def test_it_is_a_condition_and_a_key_that_the_engine_computes(self, shop: sf.Session) -> None:
        query = "SELECT BACKWARDS(city) AS c, COUNT(*) AS n FROM customers WHERE BACKWARDS(name) LIKE '1%' GROUP BY c"
        answer = shop.sql(query, epsilon=NO_NOISE, keys={"c": ["nreB", "lesaB"]}).table.to_pylist()
        ending = [row["city"] for row in customers().to_pylist() if row["name"].endswith("1")]
        assert answer == [{"c": "nreB", "n": ending.count("Bern")}, {"c": "lesaB", "n": ending.count("Basel")}]

    def test_it_is_computed_from_an_answer_with_its_margin(self, shop: sf.Session) -> None:
        answer = shop.sql(
            "SELECT COUNT(*) AS n, HALVED(COUNT(*)) AS h, AVG(age) AS m, HALVED(AVG(age)) AS a FROM customers", epsilon=3
        )
        (row,), (margin,) = answer.table.to_pylist(), answer.margins().to_pylist()
        assert row["h"] == row["n"] / 2 and margin["h"] == margin["n"] / 2
        assert row["a"] == row["m"] / 2 and margin["a"] == pytest.approx(margin["m"] / 2, rel=1e-5)
        by_n = shop.sql("SELECT COUNT(*) AS n FROM customers HAVING HALVED(COUNT(*)) > 1000000", epsilon=1)
        assert by_n.table.num_rows == 0

    def test_it_is_explained(self, shop: sf.Session) -> None:
        explanation = shop.explain("SELECT COUNT(*) AS n, HALVED(COUNT(*)) AS h, HALVED(AVG(age)) AS a FROM customers", epsilon=3)
        n, h, a = explanation.columns
        assert n.margin is not None and h.margin == n.margin / 2 and a.per_rows[1000] > 0

    def test_it_is_refused_where_it_has_no_meaning(self, shop: sf.Session) -> None:
        for query, reason in {
            "SELECT BACKWARDS(COUNT(*)) FROM customers": "the function BACKWARDS over aggregates is not supported",
            "SELECT city, HALVED(city), COUNT(*) FROM customers GROUP BY city": "needs a number",
            "SELECT COUNT(*) FROM customers WHERE BACKWARDS(age) = 'x'": "does not apply to an integer",
        }.items():
            with pytest.raises((Unsupported, sf.core.errors.SchemaError), match=reason):
                shop.sql(query, epsilon=1)


def test_without_its_row_a_function_is_unknown(shop: sf.Session) -> None:
    with pytest.raises(Unsupported, match="the function HALVED is not supported"):
        shop.sql("SELECT SUM(HALVED(age)) FROM customers", epsilon=1)


class TestSigns:
    def test_they_are_bounded_by_those_of_their_argument(self) -> None:
        asked = session(max_rows=1)
        for argument in ("age - 50", "score", "age", "0 * age"):
            explanation = asked.explain(f"SELECT SUM(SIGN({argument})) AS s FROM customers", epsilon=1)
            assert explanation.measurements[0].sensitivity_l1 == 1
        groups = {"age - 50": 3, "age": 2, "-1 - age": 1}
        for argument, count in groups.items():
            assert asked.explain(f"SELECT COUNT(*) AS n FROM customers GROUP BY SIGN({argument})", epsilon=1).groups == count

    def test_they_are_taken_of_answers_and_jump(self) -> None:
        asked = session(budget=sf.PureDP(10**12))
        query = (
            "SELECT SIGN(COUNT(*)) AS a, SIGN(-COUNT(*)) AS b, SIGN(COUNT(*) - COUNT(*)) AS c, SIGN(LN(-1)) AS d FROM customers"
        )
        answer = asked.sql(query, epsilon=NO_NOISE)
        assert answer.table.to_pylist() == [{"a": 1, "b": -1, "c": 0, "d": None}]
        assert "jump" in asked.explain("SELECT SIGN(AVG(age) - 50) AS s FROM customers", epsilon=1).columns[0].note

    def test_of_a_text_there_is_none(self) -> None:
        with pytest.raises(Unsupported, match="a string has no sign"):
            session().sql("SELECT SUM(SIGN(name)) FROM customers", epsilon=1)

    def test_every_dialect_writes_the_same(self) -> None:
        term = language.lower(sqlglot.parse_one("SIGN(x)", dialect="duckdb"), lambda node: Term(e.Reference("x"), "integer"))
        plan = Project(Scan("t", (Field("x", "integer"),)), (Named("y", term.expression),))
        one, less, zero, none = (f"CAST((CAST({value} AS BIGINT)) AS BIGINT)" for value in ("'1'", "'-1'", "'0'", "NULL"))
        compared = "(t2.c0) {} (CAST('0' AS BIGINT))"
        text = (
            f"CASE WHEN ((t2.c0) IS NULL) THEN {none} WHEN ({compared.format('>')}) THEN {one} "
            f"WHEN ({compared.format('<')}) THEN {less} ELSE {zero} END"
        )
        dialects: tuple[Dialect, ...] = ("duckdb", "postgres", "spark")
        for dialect in dialects:
            assert text in compile_plan(plan, dialect, {"t": PhysicalTable(("t",), clean=True)}).sql


class TestTheDocs:
    """The tables of docs/dp/sql.md are the rows."""

    def test_functions(self) -> None:
        listed = [operator for operator in language.LANGUAGE.operators if operator.words]
        assert table_under("### Operators and functions") == [
            f"| `{each.spelled}` | {places(each)} | {each.words} |" for each in listed
        ]

    def test_aggregates(self) -> None:
        assert table_under("### Aggregates") == [
            f"| `{each.spelled}` | {'yes' if each.per_unit else 'no'} | {each.words} |" for each in aggregates.ROWS
        ]

    def test_whatever_is_not_listed_is_syntax_or_refused(self) -> None:
        syntax = {"constants", "TRUE, FALSE", "NULL", "(a)"}
        unlisted = [operator for operator in language.LANGUAGE.operators if not operator.words]
        assert all(isinstance(each.rows, str) for each in unlisted if each.spelled not in syntax)

    def test_no_two_rows_are_about_the_same(self) -> None:
        nodes = [node for row in (*language.LANGUAGE.operators, *aggregates.ROWS) for node in row.nodes]
        assert len(nodes) == len(set(nodes))


def places(operator: Operator) -> str:
    return ", ".join(
        place for place, there in (("rows", callable(operator.rows)), ("answers", operator.answers is not None)) if there
    )


def table_under(heading: str) -> list[str]:
    """The lines of the first table under a heading, without its head."""
    text = (Path(__file__).parents[3] / "docs" / "dp" / "sql.md").read_text("utf-8")
    below = text[text.index(heading) :].splitlines()
    first = next(place for place, line in enumerate(below) if line.startswith("|"))
    return list(itertools.takewhile(lambda line: line.startswith("|"), below[first + 2 :]))
