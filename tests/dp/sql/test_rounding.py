"""Rounding over rows: halves upwards on every engine, inside its bounds, and in every composed form."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators import language
from sfumato.dp.sql.operators.term import LONGEST, Term
from sfumato.engines import expressions as e
from sfumato.engines.sql.values import written_size

VALUES = [1.25, 2.5, -2.5, -0.05, 0.15, 1.005, 99.95, -99.96, None, 0.0, 33.333]
WHOLE = [1, 2, -3, 7, 50, -50, None, 0, 99, -99, 5]
SCHEMA = {
    "dataset": "q",
    "columns": {
        "id": {"role": "unit", "type": "integer"},
        "x": {"type": "number", "bounds": [-100, 100]},
        "i": {"type": "integer", "bounds": [-100, 100]},
        "free": {"type": "number"},
    },
}


def rounded(value: float, digits: int = 0) -> float:
    return math.floor(value * 10.0**digits + 0.5) / 10.0**digits


KNOWN, KNOWN_WHOLE = [value for value in VALUES if value is not None], [value for value in WHOLE if value is not None]
SUMS = {
    "SUM(ROUND(x, 1))": sum(rounded(value, 1) for value in KNOWN),
    "SUM(ROUND(i, 1))": sum(KNOWN_WHOLE),
    "SUM(CEIL(i / 4))": sum(math.ceil(value / 4) for value in KNOWN_WHOLE),
    "SUM(ABS(ROUND(x)))": sum(abs(rounded(value)) for value in KNOWN),
    "SUM(CLAMP(CEIL(x), -10, 10))": sum(min(max(math.ceil(value), -10), 10) for value in KNOWN),
    "SUM(FLOOR(x * 10 + 0.5) / 10)": sum(rounded(value, 1) for value in KNOWN),
    "SUM(CAST(x AS INTEGER))": sum(rounded(value) for value in KNOWN),
    "SUM(ROUND(ROUND(x, 2) / 7, 1))": sum(rounded(rounded(value, 2) / 7, 1) for value in KNOWN),
    "COUNT_IF(ROUND(x, 1) = 1.3)": 1,
    "SUM(CASE WHEN ROUND(x, 1) > 2 THEN 1 ELSE 0 END)": sum(rounded(value, 1) > 2 for value in KNOWN),
}


@pytest.fixture(params=["memory", "duckdb"])
def asked(request: pytest.FixtureRequest, tmp_path: Path) -> sf.Session:
    held = pa.table({"id": list(range(len(VALUES))), "x": VALUES, "i": WHOLE, "free": VALUES})
    pq.write_table(held, tmp_path / "q.parquet")
    data = sf.read(tmp_path / "q.parquet", schema=SCHEMA, engine=request.param)
    return sf.Session(data, budget=sf.PureDP(10**12), seed=1, max_rows=1)


def test_composed_rounding_is_computed(asked: sf.Session) -> None:
    shown = ", ".join(f"{expression} AS c{place}" for place, expression in enumerate(SUMS))
    (row,) = asked.sql(f"SELECT {shown} FROM q", epsilon=10**9).table.to_pylist()
    assert list(row.values()) == pytest.approx(list(SUMS.values()), abs=1e-3)
    (row,) = asked.sql("SELECT COUNT(*) AS n FROM q WHERE ROUND(x, 1) > 2", epsilon=10**9).table.to_pylist()
    assert row["n"] == sum(rounded(value, 1) > 2 for value in KNOWN)
    per_unit = "SELECT SUM(v) AS v FROM (SELECT id, ROUND(MAX(x), 1) AS v FROM q GROUP BY id)"
    assert asked.sql(per_unit, epsilon=10**9).table["v"][0].as_py() == pytest.approx(SUMS["SUM(ROUND(x, 1))"], abs=1e-3)


def test_without_bounds_the_refusal_says_what_is_missing(asked: sf.Session) -> None:
    for expression in ("ROUND(free, 1)", "CEIL(free)", "FLOOR(free)", "ABS(ROUND(free))"):
        with pytest.raises(Unsupported, match=r"SUM needs a bounded number.*bounds = \[low, high\].*CLAMP"):
            asked.explain(f"SELECT SUM({expression}) AS s FROM q", epsilon=1)
    assert asked.sql("SELECT COUNT_IF(ROUND(free, 1) > 2) AS n FROM q", epsilon=10**9).table["n"][0].as_py() == 3


@pytest.mark.parametrize("digits", [0, 1, 3])
@pytest.mark.parametrize("ends", [(-0.15, 0.15), (-1.005, 2.675), (0, 99.95), (-3, 7)])
def test_bounds_are_those_of_the_rounded_ends(digits: int, ends: tuple[float, float]) -> None:
    """A bound in floating point may round to the next step: the bounds of the result are found in the same way."""
    column = Term(e.Reference("x"), "number", Fraction(ends[0]), Fraction(ends[1]), sure=False)
    term = language.lower(sqlglot.parse_one(f"ROUND(x, {digits})", dialect="duckdb"), lambda node: column)
    assert (term.low, term.high) == tuple(Fraction(rounded(end, digits)) for end in ends)
    inside = [ends[0] + (ends[1] - ends[0]) * place / 1000 for place in range(1001)]
    assert all(term.low <= Fraction(rounded(value, digits)) <= term.high for value in inside)


# Every operator beside every other -----------------------------------------------------------------------------------------

#: How each operator is written over columns, what its argument `{}` is, and what comes out.
WRITTEN: dict[str, tuple[str, str, str]] = {
    "a + b": ("({} + y)", "number", "number"),
    "a - b": ("(y - {})", "number", "number"),
    "a * b": ("({} * y)", "number", "number"),
    "a / b": ("({} / y)", "number", "number"),
    "a // b": ("({} // 7)", "number", "integer"),
    "MOD(n, k)": ("MOD({}, 7)", "integer", "integer"),
    "-a": ("-({})", "number", "number"),
    "POWER(a, b)": ("POWER({}, 2)", "number", "number"),
    "ABS(a)": ("ABS({})", "number", "number"),
    "SIGN(a)": ("SIGN({})", "number", "integer"),
    "FLOOR(a)": ("FLOOR({})", "number", "integer"),
    "CEIL(a)": ("CEIL({})", "number", "integer"),
    "ROUND(a, digits)": ("ROUND({}, 2)", "number", "number"),
    "LEAST(a, b, …)": ("LEAST({}, y)", "number", "number"),
    "GREATEST(a, b, …)": ("GREATEST({}, y)", "number", "number"),
    "CLAMP(a, low, high)": ("CLAMP({}, 0, 10)", "number", "number"),
    "WIDTH_BUCKET(a, low, high, n)": ("WIDTH_BUCKET({}, 0, 10, 5)", "number", "integer"),
    "SQRT(a)": ("SQRT({})", "number", "number"),
    "LN(a)": ("LN({})", "number", "number"),
    "LOG(a)": ("LOG2({})", "number", "number"),
    "EXP(a)": ("EXP({})", "number", "number"),
    "a = b": ("({} = y)", "number", "boolean"),
    "a <> b": ("({} <> y)", "number", "boolean"),
    "a < b": ("({} < y)", "number", "boolean"),
    "a <= b": ("({} <= y)", "number", "boolean"),
    "a > b": ("({} > y)", "number", "boolean"),
    "a >= b": ("({} >= y)", "number", "boolean"),
    "a IS NOT DISTINCT FROM b": ("({} IS NOT DISTINCT FROM y)", "number", "boolean"),
    "a IS DISTINCT FROM b": ("({} IS DISTINCT FROM y)", "number", "boolean"),
    "a BETWEEN low AND high": ("({} BETWEEN 1 AND y)", "number", "boolean"),
    "a IN (b, …)": ("({} IN (1, 2))", "number", "boolean"),
    "a IS NULL": ("({} IS NULL)", "number", "boolean"),
    "p AND q": ("({} AND y > 1)", "boolean", "boolean"),
    "p OR q": ("({} OR y > 1)", "boolean", "boolean"),
    "NOT p": ("(NOT {})", "boolean", "boolean"),
    "CASE WHEN p THEN a ELSE b END": ("CASE WHEN y > 1 THEN {} ELSE y END", "number", "number"),
    "IF(p, a, b)": ("IF({}, x, y)", "boolean", "number"),
    "COALESCE(a, b, …)": ("COALESCE({}, y)", "number", "number"),
    "NULLIF(a, b)": ("NULLIF({}, 3)", "number", "number"),
    "CAST(a AS type)": ("CAST({} AS INTEGER)", "number", "integer"),
    "TRY_CAST(a AS type)": ("TRY_CAST({} AS DOUBLE)", "number", "number"),
    "EXTRACT(part FROM day)": ("EXTRACT(year FROM {})", "date", "integer"),
    "DATE_TRUNC('part', day)": ("DATE_TRUNC('month', {})", "date", "date"),
    "DATEDIFF('day', a, b)": ("DATEDIFF('day', {}, DATE '2024-06-30')", "date", "integer"),
    "day + INTERVAL '7 days'": ("({} + INTERVAL '7 days')", "date", "date"),
    "text || text": ("({} || '/' || t)", "string", "string"),
    "CONCAT(text, …)": ("CONCAT({}, '/', t)", "string", "string"),
    "text LIKE 'pattern'": ("({} LIKE 'a%')", "string", "boolean"),
    "text ILIKE 'pattern'": ("({} ILIKE 'a%')", "string", "boolean"),
    "STARTS_WITH(text, 'start')": ("STARTS_WITH({}, 'a')", "string", "boolean"),
    "LOWER(text)": ("LOWER({})", "string", "string"),
    "UPPER(text)": ("UPPER({})", "string", "string"),
    "SUBSTRING(text, start, length)": ("SUBSTRING({}, 2, 3)", "string", "string"),
    "LEFT(text, length)": ("LEFT({}, 2)", "string", "string"),
    "LENGTH(text)": ("LENGTH({})", "string", "integer"),
}
COLUMNS = {
    "x": Term(e.Reference("x"), "number", Fraction(-100), Fraction(100), sure=False),
    "y": Term(e.Reference("y"), "number", Fraction(-100), Fraction(100), sure=False),
    "i": Term(e.Reference("i"), "integer", Fraction(-100), Fraction(100), sure=False),
    "t": Term(e.Reference("t"), "string"),
    "d": Term(e.Reference("d"), "date"),
    "p": Term(e.Reference("p"), "boolean"),
}
PLAIN = {"number": "x", "integer": "i", "string": "t", "date": "d", "boolean": "p"}


def test_every_documented_operator_is_written_here() -> None:
    listed = {each.spelled for each in language.LANGUAGE.operators if each.words and callable(each.rows)}
    assert set(WRITTEN) == listed


@pytest.mark.parametrize("outer", WRITTEN)
def test_every_operator_takes_every_other(outer: str) -> None:
    written, takes, _ = WRITTEN[outer]
    for inner, (inside, wants, gives) in WRITTEN.items():
        if gives != takes and not (takes == "number" and gives == "integer"):
            continue
        text = written.format(inside.format(PLAIN[wants]))
        term = language.lower(sqlglot.parse_one(text, dialect="duckdb"), lambda node: COLUMNS[node.name])
        assert written_size(term.expression) <= LONGEST, (outer, inner)
