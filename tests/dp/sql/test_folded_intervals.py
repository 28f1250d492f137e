"""Intervals and margins of expressions that fold, cut or multiply several noises hold the exact answer at their confidence.

Coverage is compared with 95 % less 4.9 deviations of a binomial share: what covers 95 % fails in less than one of 10^6
comparisons. Noise is seeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.dp.sql.operators import box
from sfumato.dp.sql.operators.box import Box
from tests.dp.sql.coverage import asked, coverage, drawn, exact_numbers, table
from tests.dp.sql.test_margins import REQUESTS

DRAWS = 250
COUNTS = [f"COUNT_IF(x = {value})" for value in range(6)]
A, B = COUNTS[:2]
APART = [f"{count} - COUNT(*) / 6" for count in COUNTS]
SIDES = (("low", -math.inf), ("high", math.inf))
YES, NO = "FILTER (WHERE yes)", "FILTER (WHERE NOT yes)"

#: Over equally many rows of the values 0 to 5.
OF_EQUAL_COUNTS = {
    "largest": f"GREATEST({', '.join(COUNTS)})",
    "range": f"GREATEST({', '.join(COUNTS)}) - LEAST({', '.join(COUNTS)})",
    "distances": " + ".join(f"ABS({apart})" for apart in APART),
    "squares": " + ".join(f"POWER({apart}, 2)" for apart in APART),
    "length": f"SQRT({' + '.join(f'POWER({count}, 2)' for count in COUNTS)})",
    "shares": " + ".join(f"POWER({count} / COUNT(*), 2)" for count in COUNTS),
    "apart": f"ABS({A} - {B})",
    "apart in shares": f"ABS({A} - {B}) / COUNT(*)",
    "root": f"SQRT(ABS({A} - {B}))",
    "squared": f"({A} - {B}) * ({A} - {B})",
    "cut": f"GREATEST({A} - {B}, 0) * 1.5",
    "chosen": f"CASE WHEN {A} > {B} THEN {A} - {B} ELSE {B} - {A} END",
    "rounded": f"ROUND({A} / 7) * ROUND({B} / 7)",
    "off centre": "ABS(AVG(x) - 2.5) * 2",
    "whole part": "FLOOR(AVG(x)) + CEIL(AVG(x))",
}
#: Over rows that all have the largest value, two thirds of them with yes.
AT_THE_BOUND = {
    "difference of means": f"AVG(x) {YES} - AVG(x) {NO}",
    "ratio of means": f"AVG(x) {YES} / AVG(x) {NO}",
    "tie": f"GREATEST(SUM(x) {YES}, 2 * SUM(x) {NO})",
    "mean and spread": "AVG(x) + 2 * STDDEV_POP(x)",
}


def least(draws: int) -> float:
    return 0.95 - 4.9 * math.sqrt(0.95 * 0.05 / draws)


def records(values: Any, seed: int) -> sf.Session:
    columns = {"x": {"type": "integer", "bounds": [0, 100]}}
    data = sf.read(pa.table({"x": values}), schema={"dataset": "records", "columns": columns})
    return sf.Session(data, budget=sf.PureDP(10**6), seed=seed)


def check(values: Any, expressions: dict[str, str], law: str) -> None:
    given = table(values)
    for name, expression in expressions.items():
        (found,) = coverage(given, f"SELECT {expression} AS z FROM records", REQUESTS[law](1), draws=DRAWS, errors=0).values()
        assert found.held >= least(DRAWS) and found.share >= least(DRAWS), (name, found)


@pytest.mark.parametrize("rows", [3, 200])
def test_expressions_of_equal_counts_are_covered(rows: int) -> None:
    check(np.repeat(np.arange(6), rows), OF_EQUAL_COUNTS, "laplace")


@pytest.mark.parametrize("rows", [15, 600])
def test_expressions_at_the_bound_are_covered(rows: int) -> None:
    check(np.full(rows, 100), AT_THE_BOUND, "laplace")


@pytest.mark.slow
@pytest.mark.parametrize("law", ["rho", "delta"])
def test_other_noises_are_covered(law: str) -> None:
    check(np.repeat(np.arange(6), 20), OF_EQUAL_COUNTS, law)
    check(np.full(120, 100), AT_THE_BOUND, law)


#: Over 30 rows of the value 0: the condition holds for none of them, so that the exact answer is the default.
WITH_A_DEFAULT = {
    "COALESCE(NULLIF(COUNT_IF(x = 9), 0), 30)": 30,
    "COALESCE(NULLIF(SUM(x), 0), 9999)": 9999,
    "COALESCE(AVG(CASE WHEN x = 9 THEN x END), -1)": -1,
    "COALESCE(STDDEV(CASE WHEN x = 9 THEN x END), -1)": -1,
    "COALESCE(MEDIAN(CASE WHEN x = 9 THEN x END), -1)": -1,
    "COALESCE(COUNT(*) / NULLIF(COUNT_IF(x = 9), 0), -500)": -500,
    "ROUND(COALESCE(NULLIF(COUNT_IF(x = 9), 0), 30), -1)": 30,
}


@pytest.mark.parametrize("expression", WITH_A_DEFAULT)
def test_a_default_that_is_far_away_is_covered(expression: str) -> None:
    truth = WITH_A_DEFAULT[expression]  # not computed: a mean of no rows is always shown as some number
    question, cost = asked(table(np.zeros(30, np.int64)), f"SELECT {expression} AS z FROM records", REQUESTS["laplace"](1))
    intervals = drawn(question, cost, exact_numbers(question, cost), DRAWS, expression).interval_table(0.95)["z"].to_pylist()
    low, high = ([far if each is None or each[end] is None else each[end] for each in intervals] for end, far in SIDES)
    assert np.mean((np.array(low) <= truth) & (truth <= np.array(high))) >= least(DRAWS)
    assert "/" in expression or None not in intervals  # a ratio may be anything where its divisor may be zero


def test_a_default_that_is_not_needed_makes_nothing_wider() -> None:
    shown = {"n": "COUNT(*)", "total": "SUM(x)", "mean": "AVG(x)", "tens": "ROUND(SUM(x), -1)"}
    columns = ", ".join(f"{given} AS {name}, COALESCE({given}, -1) AS {name}_or" for name, given in shown.items())
    answer = records(np.full(300, 50), 1).sql(f"SELECT {columns} FROM records", epsilon=1)
    (row,) = answer.intervals().to_pylist()
    assert all(row[name] == row[f"{name}_or"] is not None for name in shown)


@pytest.mark.parametrize("expression", ["FLOOR(ABS({}) / 49)", "FLOOR({} / 49)", "{} // 49", "FLOOR(GREATEST({}, 0) / 49)"])
def test_a_quotient_is_not_rounded_past_a_whole_number(expression: str) -> None:
    given = table(np.r_[np.zeros(49, np.int64), np.ones(30, np.int64)])
    query = f"SELECT {expression.format(A)} AS z FROM records"
    (found,) = coverage(given, query, REQUESTS["laplace"](2), draws=1000, errors=0).values()
    assert found.truth == 1 and found.held >= least(1000), found


@pytest.mark.parametrize("number", [49.0, 98.0, 103.0, -49.0])
def test_a_number_divided_by_itself_is_one(number: float) -> None:
    exact = Box.exactly(np.array([[number]]))
    assert box.divided(exact, exact).low.item() == box.divided(exact, exact).high.item() == 1


def test_a_sum_rounded_on_the_outside_has_the_rounded_ends() -> None:
    rounded: dict[str, Callable[[float], float]] = {
        "ROUND({}, -2)": lambda end: math.floor(end / 100 + 0.5) * 100,
        "FLOOR({} / 300)": lambda end: math.floor(end / 300),
        "CEIL({} / 300)": lambda end: math.ceil(end / 300),
    }
    shown = ", ".join(f"{each.format('COUNT(*)')} AS r{place}" for place, each in enumerate(rounded))
    for rows in (1000, 1048, 1101):
        answer = records(np.zeros(rows, np.int64), rows).sql(f"SELECT COUNT(*) AS n, {shown} FROM records", epsilon=1)
        (ends,), (errors,) = answer.intervals().to_pylist(), answer.errors.to_pylist()
        for place, compute in enumerate(rounded.values()):
            assert ends[f"r{place}"] == {side: compute(ends["n"][side]) for side in ("low", "high")}, (rows, place)
            assert errors[f"r{place}"] > 0


def test_sums_and_ratios_are_no_wider_than_they_have_to_be() -> None:
    shown = f"{A} - {B} AS d, 3 * COUNT(*) - {A} AS s, {A} / COUNT(*) AS share, 100 * ({A} / NULLIF(COUNT(*), 0)) AS percent"
    query = f"SELECT {shown} FROM records"
    given = table(np.repeat(np.arange(6), 50))
    for name, found in coverage(given, query, REQUESTS["laplace"](1), draws=DRAWS, errors=2000).items():
        assert found.held >= least(DRAWS) and found.half <= 1.25, (name, found)


def test_an_interval_ends_where_the_expression_does() -> None:
    shown = f"ABS({A} - {B}) AS size, GREATEST(COUNT(*), 5) AS cut, POWER({A} - {B}, 2) AS square, SQRT(ABS({A} - {B})) AS root"
    for seed in range(20):
        session = records(np.repeat(np.arange(6), 3), seed)
        (row,) = session.sql(f"SELECT {shown} FROM records", epsilon=1).intervals().to_pylist()
        assert all(row[name]["low"] >= 0 for name in ("size", "square", "root")) and row["cut"]["low"] >= 5


def test_a_divisor_that_may_be_zero_leaves_nothing_known() -> None:
    answer = table(np.arange(6)).sql(f"SELECT ABS({A} - {B}) / ({A} - {B}) AS sign FROM records", epsilon=1)
    assert answer.intervals().to_pylist() == [{"sign": None}] and answer.margins().to_pylist() == [{"sign": None}]


def test_margins_told_before_are_kept() -> None:
    """Of 100 rows that all meet every condition, as the explanation assumes."""
    first, second = "COUNT_IF(x < 1)", "COUNT_IF(x >= 0)"
    expressions = [f"ABS({first} - {second})", f"POWER({first} - {second}, 2)", f"GREATEST({first}, {second}, COUNT(*))"]
    given = records(np.zeros(100, dtype=np.int64), 0)
    for expression in expressions:
        query = f"SELECT {expression} AS z FROM records"
        (note,) = given.explain(query, epsilon=1).columns
        margin = note.margin if note.margin is not None else note.per_rows[100]
        question, cost = asked(given, query, REQUESTS["laplace"](1))
        exact = exact_numbers(question, cost)
        truth = 100 if "GREATEST" in expression else 0
        off = [abs(row[0] - truth) for row in drawn(question, cost, exact, 1000, query).rows]
        assert np.mean([each <= margin for each in off]) >= least(1000), (expression, margin)


# Discovered groups --------------------------------------------------------------------------------------------------------


def test_units_of_discovered_groups_are_covered_among_those_that_are_shown() -> None:
    """A group is shown where its noisy number of units passes a threshold: among those shown it is too high more often."""
    sizes = {"small": (9, 1500), "below": (13, 200), "at": (15, 100), "above": (18, 100), "large": (60, 100)}
    keys = [f"{name} {place}" for name, (size, count) in sizes.items() for place in range(count) for _ in range(size)]
    columns = {"g": {"type": "string"}, "u": {"role": "unit", "type": "integer"}}
    data = sf.read(pa.table({"g": keys, "u": np.arange(len(keys))}), schema={"dataset": "d", "columns": columns})
    session = sf.Session(data, budget=sf.ApproxDP(10, "0.5"), max_groups=1, max_rows=1, seed=7)
    shown = "COUNT(DISTINCT u) AS n, 2 * COUNT(DISTINCT u) + 1 AS twice, COUNT(DISTINCT u) / 2 AS half"
    answer = session.sql(f"SELECT g, {shown} FROM d GROUP BY g", epsilon=1, delta=1e-6)
    held: dict[str, list[bool]] = {name: [] for name in sizes}
    for row, ends in zip(answer.table.to_pylist(), answer.intervals().to_pylist(), strict=True):
        name = row["g"].split(" ")[0]
        for column, truth in (("n", sizes[name][0]), ("twice", 2 * sizes[name][0] + 1), ("half", sizes[name][0] / 2)):
            held[name].append(ends[column]["low"] <= truth <= ends[column]["high"])
    for name, all_held in held.items():
        assert len(all_held) >= 9 and np.mean(all_held) >= least(len(all_held) // 3), (name, len(all_held), np.mean(all_held))
    before = session.explain(f"SELECT g, {shown} FROM d GROUP BY g", epsilon=1, delta=1e-6).columns
    assert all("near the threshold" in note.sentence(0.95) for note in before)
    wide = answer.intervals().to_pylist()[answer.table["g"].to_pylist().index("large 0")]["n"]
    assert wide["low"] > 50 and wide["high"] < 70  # far from the threshold hardly wider than without it
