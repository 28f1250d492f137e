"""Whether an interval is stated follows from the question, not from the noise: among those that are stated enough hold.

Coverage among the stated ones is compared with 94 % less 4.9 deviations of a binomial share: what covers 94 % fails in less than
one of 10^6 comparisons. Noise is seeded.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from tests.dp.sql.coverage import asked, drawn, exact_numbers, table
from tests.dp.sql.test_margins import REQUESTS

DRAWS = 300
FEW, SOME = "COUNT_IF(x = 9)", "COUNT_IF(x = 9 AND yes)"

#: Expressions over 30 rows of the value 0 and n of the value 9, what they are for n rows, and for none.
STATED = {
    f"COUNT(*) / {FEW}": (lambda n: (30 + n) / n, None),
    f"COALESCE(SUM(x) / NULLIF({FEW}, 0), -1)": (lambda n: 9, -1),
    f"COALESCE(COUNT(*) / NULLIF({FEW}, 0), 0)": (lambda n: (30 + n) / n, 0),
    f"CASE WHEN {FEW} > 0 THEN COUNT(*) / {FEW} ELSE 0 END": (lambda n: (30 + n) / n, 0),
    f"CASE WHEN {FEW} = 0 THEN -5 ELSE COUNT(*) / {FEW} END": (lambda n: (30 + n) / n, -5),
    f"COUNT(*) / GREATEST({FEW}, 1)": (lambda n: (30 + n) / n, 30),
    f"ROUND(100 * COALESCE(COUNT(*) / NULLIF({FEW}, 0), 0) + COUNT(*))": (lambda n: round(100 * (30 + n) / n) + 30 + n, 30),
    f"COUNT(*) / ({FEW} * {FEW})": (lambda n: (30 + n) / n**2, None),
    f"COUNT(*) / (2 * {FEW} + 1)": (lambda n: (30 + n) / (2 * n + 1), 30),
    "COUNT(*) / (COUNT(*) - COUNT_IF(x < 9))": (lambda n: (30 + n) / n, None),
    f"LN({FEW})": (math.log, None),
    f"POWER({FEW}, -1)": (lambda n: 1 / n, None),
}


def least(count: int) -> float:
    return 0.94 - 4.9 * math.sqrt(0.94 * 0.06 / count)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_stated_intervals_of_what_may_be_divided_by_zero_hold(rows: int) -> None:
    given = table(np.r_[np.zeros(30, np.int64), np.full(rows, 9)])
    for expression, (computed, otherwise) in STATED.items():
        truth = computed(rows) if rows else otherwise
        question, cost = asked(given, f"SELECT {expression} AS z FROM records", REQUESTS["laplace"](1))
        answer = drawn(question, cost, exact_numbers(question, cost), DRAWS, expression)
        shown = [place for place, (value,) in enumerate(answer.rows) if value is not None]
        intervals, margins = (each["z"].to_pylist() for each in (answer.interval_table(0.95), answer.margin_table(0.95)))
        assert all(intervals[place] is not None and margins[place] is not None for place in shown), expression
        if truth is not None:
            held = [intervals[place]["low"] - 1e-9 <= truth <= intervals[place]["high"] + 1e-9 for place in shown]
            assert np.mean(held) >= least(len(held)), (expression, rows, np.mean(held))


@pytest.mark.parametrize(
    ("expression", "large"),
    [
        (f"COUNT(*) / ({FEW} - {SOME})", None),
        (f"COALESCE(COUNT(*) / (COUNT(*) - 2 * {FEW}), 0)", 1.0),
        ("SUM(x) / SUM(x - 50)", 90 / 40),
        ("LN(SUM(x - 50))", math.log(40 * 3000)),
        ("AVG(x) / AVG(x - 50)", 90 / 40),
        ("SUM(x) / AVG(x - 50)", 90 * 3000 / 40),
    ],
)
def test_a_divisor_of_either_sign_has_an_interval_where_it_is_clear_of_zero(expression: str, large: float | None) -> None:
    query = f"SELECT {expression} AS z FROM records"
    for rows in (2, 3000):  # of 90 and 10 in turn, whose distances from 50 add up to zero; then all 90
        given = table(np.full(rows, 90) if rows == 3000 else np.array([90, 10]))
        question, cost = asked(given, query, REQUESTS["laplace"](1))
        answer = drawn(question, cost, exact_numbers(question, cost), DRAWS, f"{query} {rows}")
        intervals = [each for each in answer.interval_table(0.95)["z"].to_pylist() if each is not None]
        if rows == 3000 and large is not None:
            held = [each["low"] - 1e-9 <= large <= each["high"] + 1e-9 for each in intervals]
            assert len(held) == DRAWS and np.mean(held) >= least(len(held))
        else:
            assert len(intervals) <= 4  # each with a probability of 0.001 at most


def test_a_positive_divisor_has_a_low_end_whatever_is_measured() -> None:
    """A sum of numbers that are not whole may be as near to zero as one likes: the high end may be anything."""
    given = table(np.r_[np.zeros(30), np.full(2, 0.5)], whole=False)
    query = "SELECT COUNT(*) / SUM(x) AS z FROM records"
    question, cost = asked(given, query, REQUESTS["laplace"](1))
    answer = drawn(question, cost, exact_numbers(question, cost), DRAWS, query)
    intervals = answer.interval_table(0.95)["z"].to_pylist()
    stated = [each for (value,), each in zip(answer.rows, intervals, strict=True) if value is not None]
    assert all(each is not None and each["low"] is not None for each in stated)
    held = [each["low"] <= 32 and (each["high"] is None or each["high"] >= 32) for each in stated]
    assert np.mean(held) >= least(len(held))


def test_a_default_of_another_kind_leaves_a_column_inside_its_bounds() -> None:
    """A whole 0 beside a column of real numbers: each is held inside its own bounds."""
    columns = {"x": {"type": "number", "bounds": [10, 100]}, "n": {"type": "integer", "bounds": [10, 100]}}
    data = sf.read(pa.table({"x": [1.5] * 40, "n": [1] * 40}), schema={"dataset": "records", "columns": columns})
    session = sf.Session(data, budget=sf.PureDP(10**9), seed=1)
    for column in columns:
        answer = session.sql(f"SELECT SUM(CASE WHEN n < 50 THEN {column} ELSE 0 END) AS z FROM records", epsilon=10**6)
        assert answer.table["z"].to_pylist() == [pytest.approx(400, abs=0.1)]
