"""Quotients, roots, logarithms and exponentials in rows: bounds that hold for every row, and what to do where there are none."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
import sqlglot

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators import language
from sfumato.dp.sql.operators.term import Term
from sfumato.engines import expressions as e
from tests.dp.sql.database import session

NO_NOISE = 10**9
ENDS = [(-3, 5), (0, 5), (1, 5), (-5, -1), (-5, 0), (2, 2), (None, 5), (0, None), (None, None)]


def lowered(text: str, **columns: Term) -> Term:
    return language.lower(sqlglot.parse_one(text, dialect="duckdb"), lambda node: columns[node.name])


def column(name: str, kind: Any, ends: tuple[int | None, int | None]) -> Term:
    low, high = (None if end is None else Fraction(end) for end in ends)
    return Term(e.Reference(name), kind, low, high, sure=False)


def points(ends: tuple[int | None, int | None], whole: bool) -> list[float]:
    low, high = (-400 if ends[0] is None else ends[0]), (400 if ends[1] is None else ends[1])
    return [low + (high - low) * place / 40 for place in range(41)] if not whole else list(range(low, high + 1))


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("divided", ENDS)
def test_no_quotient_of_values_within_bounds_leaves_its_own(kind: Any, divided: tuple[int | None, int | None]) -> None:
    for divisor in ENDS:
        term = lowered("a / b", a=column("a", "number", divided), b=column("b", kind, divisor))
        pairs = itertools.product(points(divided, False), points(divisor, kind == "integer"))
        quotients = [a / b for a, b in pairs if b != 0]
        if not quotients:
            continue
        assert term.low is None or term.low <= Fraction(min(quotients)) + Fraction(1, 10**9)
        assert term.high is None or term.high >= Fraction(max(quotients)) - Fraction(1, 10**9)
        both_known = None not in (*divided, *divisor)
        clear = kind == "integer" or (divisor[0] is not None and divisor[0] > 0) or (divisor[1] is not None and divisor[1] < 0)
        if both_known and clear:  # and the bounds are reached, not merely kept
            assert [float(term.low or 0), float(term.high or 0)] == pytest.approx([min(quotients), max(quotients)])


def test_a_divisor_that_may_be_near_zero_needs_a_clamp_which_works_as_typed() -> None:
    asked = session(budget=sf.PureDP(10**12), max_rows=1000, max_groups=1000)
    with pytest.raises(Unsupported, match=r"as near to 0 as one likes.*SUM\(CLAMP\(x, 0, 100\)\)"):
        asked.explain("SELECT SUM(quantity / amount) AS s FROM orders", epsilon=1)
    with pytest.raises(Unsupported, match="a logarithm has no lower end.*CLAMP"):
        asked.explain("SELECT AVG(LN(amount)) AS s FROM orders", epsilon=1)
    with pytest.raises(Unsupported, match="an exponential has no upper end.*CLAMP"):
        asked.explain("SELECT AVG(EXP(score)) AS s FROM customers", epsilon=1)
    for clamped in ("SUM(CLAMP(quantity / amount, 0, 100))", "AVG(CLAMP(LN(amount), 0, 100))"):
        assert asked.explain(f"SELECT {clamped} AS s FROM orders", epsilon=1).measurements
    assert asked.explain("SELECT AVG(CLAMP(EXP(score), 0, 100)) AS s FROM customers", epsilon=1).measurements


def test_bounds_of_a_quotient_give_the_sensitivity() -> None:
    explained = session(max_rows=1).explain("SELECT SUM(amount / quantity) AS s FROM orders", epsilon=1)
    assert explained.measurements[0].sensitivity_l1 == 500  # a quantity that is not 0 is at least 1


def test_texts_and_dates_are_refused() -> None:
    for written in ("name / 2", "age / name", "LN(name)", "SQRT(joined)", "EXP(city)", "LOG(1.05, age)", "LOG(age, income)"):
        with pytest.raises(Unsupported, match="needs|base|takes"):
            session().explain(f"SELECT COUNT(*) AS n FROM customers WHERE {written} > 1", epsilon=1)


def test_logarithms_of_answers_have_the_base_that_is_written() -> None:
    asked = session(budget=sf.PureDP(10**12))
    written = {"a": "LOG(n)", "b": "LOG10(n)", "c": "LOG2(n)", "d": "LOG(0.5, n)", "e": "LOG(-n)"}
    shown = ", ".join(f"{text.replace('n', 'COUNT(*)')} AS {name}" for name, text in written.items())
    query = f"SELECT {shown} FROM customers"
    (row,) = asked.sql(query, epsilon=NO_NOISE, max_rows=1).table.to_pylist()
    tens, twos = math.log10(200), math.log2(200)
    assert row == pytest.approx({"a": tens, "b": tens, "c": twos, "d": -twos, "e": None})
    noisy = asked.sql("SELECT COUNT(*) AS n, LOG2(COUNT(*)) AS l, LOG(0.5, COUNT(*)) AS h FROM customers", epsilon=1, max_rows=1)
    (ends,) = noisy.intervals().to_pylist()
    for name, sign in (("l", 1), ("h", -1)):
        sides = sorted(sign * math.log2(ends["n"][side]) for side in ("low", "high"))
        assert [ends[name]["low"], ends[name]["high"]] == pytest.approx(sides)
