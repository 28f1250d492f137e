"""Intervals hold the exact answer on the bounded rows, and those of means and spreads are hardly wider than the errors.

Coverage is compared with 94 % less 4.9 deviations of a binomial share: intervals that cover 94 % fail in less than one of 10^6
comparisons. Half the median distance between the ends is compared with the 95 % quantile of the error. Noise is seeded.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError
from sfumato.dp.sql.asking.answer import AnswerTable
from sfumato.dp.sql.margins.reach import LEVELS, Interval, Reach
from sfumato.report.answer_words import answer_lines
from tests.dp.sql.coverage import coverage, table
from tests.dp.sql.test_margins import REQUESTS, SHAPES, ages

MEAN = "SELECT AVG(x) AS mean FROM records"
SPREADS = "SELECT VAR_POP(x) AS v, VAR_SAMP(x) AS vs, STDDEV_POP(x) AS d, STDDEV_SAMP(x) AS ds FROM records"
DRAWS = 250
#: Half an interval over the 95 % quantile of the error, from 15 rows up at ε ≥ 1.
WIDEST = 1.25

MORE_SHAPES = {
    **SHAPES,
    "even": lambda rows: np.rint(np.linspace(0, 100, rows)).astype(np.int64),
    "one outlier": lambda rows: np.r_[np.full(rows - 1, 30), 95],
    "one at the top": lambda rows: np.r_[np.zeros(rows - 1, np.int64), 100],
}


def least(draws: int) -> float:
    return 0.94 - 4.9 * math.sqrt(0.94 * 0.06 / draws)


@pytest.mark.parametrize(
    ("query", "shape", "epsilon"),
    [(MEAN, "ages", 1), (MEAN, "skewed", 1), (SPREADS, "ages", 1), (SPREADS, "both ends", 1), (SPREADS, "constant", 2)],
)
def test_intervals_of_fifteen_rows_hold_the_truth_and_are_no_wider_than_they_have_to_be(
    query: str, shape: str, epsilon: int
) -> None:
    given = table(SHAPES[shape](15))
    for name, found in coverage(given, query, REQUESTS["laplace"](epsilon), draws=DRAWS, errors=2000).items():
        assert found.held >= least(DRAWS) and found.half <= WIDEST, (name, found)


@pytest.mark.covering
@pytest.mark.slow
@pytest.mark.parametrize("law", ["laplace", "rho"])
@pytest.mark.parametrize(("shape", "rows"), [("ties", 30), ("skewed", 60)])
def test_larger_groups_and_other_noise(law: str, shape: str, rows: int) -> None:
    for name, found in coverage(table(SHAPES[shape](rows)), SPREADS, REQUESTS[law](2), draws=DRAWS, errors=2000).items():
        assert found.held >= least(DRAWS) and found.half <= WIDEST, (name, found)


@pytest.mark.stress
@pytest.mark.parametrize("shape", MORE_SHAPES)
@pytest.mark.parametrize("law", ["laplace", "rho"])
@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4])
@pytest.mark.parametrize("rows", [15, 30, 60, 200])
def test_the_whole_grid_is_held(rows: int, epsilon: float, law: str, shape: str) -> None:
    given = table(MORE_SHAPES[shape](rows))
    for query in (MEAN, SPREADS):
        for name, found in coverage(given, query, REQUESTS[law](epsilon), draws=2000).items():
            assert found.held >= least(2000), (name, found)
            assert found.half <= WIDEST or epsilon < 1, (name, found)


# What an interval is ------------------------------------------------------------------------------------------------------

COLUMNS = {"city": {"type": "string", "domain": ["Bern", "Chur", "Nowhere"]}, "x": {"type": "integer", "bounds": [0, 100]}}


def cities(query: str, *, seed: int, epsilon: float = 2) -> sf.QueryAnswer:
    held = pa.table({"city": ["Bern"] * 15 + ["Chur"] * 200, "x": np.concatenate([ages(15), ages(200)])})
    data = sf.read(held, schema={"dataset": "d", "columns": COLUMNS})
    return sf.Session(data, budget=sf.PureDP(100), seed=seed).sql(f"SELECT city, {query} FROM d GROUP BY city", epsilon=epsilon)


EVERYTHING = (
    "COUNT(*) AS n, SUM(x) AS s, AVG(x) AS mean, VAR_POP(x) AS v, STDDEV_SAMP(x) AS d, SUM(x) / COUNT(*) AS ratio, "
    "MEDIAN(x) AS middle, ROUND(AVG(x), 1) AS rounded, VAR_POP(x) / AVG(x) AS both"
)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_shown_lies_between_the_ends_and_a_margin_reaches_to_the_farther_one(seed: int) -> None:
    answer = cities(EVERYTHING, seed=seed)
    for confidence in (0.5, 0.95, 0.9991):
        tables = (answer.table, answer.margins(confidence), answer.intervals(confidence))
        for shown, margins, intervals in zip(*(each.to_pylist() for each in tables), strict=True):
            assert intervals["city"] is None
            for name in answer.table.column_names[1:]:
                ends = intervals[name] or {"low": None, "high": None}
                far = [None if end is None else abs(end - shown[name]) for end in ends.values()]
                assert ends["low"] is None or ends["low"] <= shown[name] + 1e-9
                assert ends["high"] is None or ends["high"] >= shown[name] - 1e-9
                assert margins[name] == (None if None in far else pytest.approx(max(far)))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_surer_is_no_narrower(seed: int) -> None:
    answer = cities(EVERYTHING, seed=seed)
    told = [answer.intervals(confidence).to_pylist() for confidence in (0.3, 0.5, 0.9, 0.95, 0.97, 0.99, 0.999, 0.9999)]
    for place in range(3):
        for name in answer.table.column_names[1:]:
            ends = [row[place][name] or {"low": None, "high": None} for row in told]
            lows = [-math.inf if each["low"] is None else each["low"] for each in ends]
            highs = [math.inf if each["high"] is None else each["high"] for each in ends]
            assert lows == sorted(lows, reverse=True) and highs == sorted(highs), (place, name)


def test_an_interval_stays_inside_what_the_bounds_allow() -> None:
    allowed = {"mean": (0, 100), "v": (0, 2500), "d": (0, 50 * math.sqrt(2)), "middle": (0, 100)}
    for seed in range(5):
        for row in cities(EVERYTHING, seed=seed, epsilon=0.5).intervals().to_pylist():
            for name, (low, high) in allowed.items():
                assert low - 1e-9 <= row[name]["low"] <= row[name]["high"] <= high + 1e-9, (name, row)


def test_of_no_rows_a_mean_may_be_anything_between_its_bounds() -> None:
    columns = {"city": {"type": "string", "domain": ["Bern", "Nowhere"]}, "x": {"type": "number", "bounds": [0, 10]}}
    data = sf.read(pa.table({"city": ["Bern"] * 5000, "x": [5.0] * 5000}), schema={"dataset": "d", "columns": columns})
    query = "SELECT city, AVG(x) AS mean, STDDEV_POP(x) AS spread FROM d GROUP BY city"
    for seed in range(10):
        full, empty = sf.Session(data, budget=sf.PureDP(100), seed=seed).sql(query, epsilon=1).intervals().to_pylist()
        assert full["mean"]["high"] - full["mean"]["low"] < 0.4
        assert empty["mean"]["low"] <= 0.5 and empty["mean"]["high"] >= 9.5
        assert empty["spread"]["low"] == 0 and empty["spread"]["high"] >= 4.5


def test_a_sign_turns_an_interval_round_and_an_absolute_value_turns_it_back() -> None:
    query = "STDDEV_POP(x) AS d, -STDDEV_POP(x) AS minus, ABS(-STDDEV_POP(x)) AS size, LEAST(STDDEV_POP(x), 1000) AS least"
    answer = cities(query, seed=3, epsilon=1)
    for ends in answer.intervals().to_pylist():
        assert ends["minus"] == {"low": pytest.approx(-ends["d"]["high"]), "high": pytest.approx(-ends["d"]["low"])}
        assert ends["least"] == ends["d"]
        assert ends["size"] == {name: pytest.approx(end) for name, end in ends["d"].items()}


def test_intervals_are_the_same_after_they_were_stored() -> None:
    answer = cities(EVERYTHING, seed=4).answer
    again = AnswerTable.from_mapping(json.loads(json.dumps(answer.to_mapping())))
    for confidence in (0.3, 0.95, 0.9999):
        assert again.interval_table(confidence).equals(answer.interval_table(confidence))


def test_an_answer_that_was_stored_with_one_margin_has_both_ends_as_far() -> None:
    stored = {
        "format": "sfumato-answer-1",
        "columns": [{"name": "a", "kind": "number", "law": "laplace"}, {"name": "b", "kind": "number", "law": "laplace"}],
        "rows": [[5.0, 1.0]],
        "errors": [[2.0, None]],
        "margins": [[[0.7, 1.6, 2.3, 3.0, 3.9, 4.6, 5.3, 6.9], None]],
    }
    answer = AnswerTable.from_mapping(stored)
    assert answer.interval_table(0.95).to_pylist() == [{"a": {"low": 2.0, "high": 8.0}, "b": None}]
    assert answer.margin_table(0.95).to_pylist() == [{"a": 3.0, "b": None}]


def test_an_end_may_be_missing_by_itself() -> None:
    reach = Reach((1.0,) * len(LEVELS), None)
    assert reach.distances(0.95).margin is None and reach.standard_error("laplace") is None


# On the command line ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "interval", "shown"),
    [
        (12.5, {"low": 10.5, "high": 14.6}, "12.5 ± 2.1"),
        (12.5, {"low": 10.0, "high": 30.3}, "12 (10 to 31)"),
        (0.3, {"low": 0.0, "high": 0.9}, "0.3 (0 to 0.9)"),
        (1234.5, {"low": 0.0, "high": 2500.0}, "1,234 ± 1,300"),
        (40.0, {"low": 31.27, "high": None}, "40 (31.2 to ?)"),
        (7, {"low": 7.0, "high": 7.0}, "7 ± 0"),
        (7, None, "7 ± ?"),
        (None, None, "-"),
    ],
)
def test_a_number_is_shown_with_its_margin_or_with_both_ends(
    value: object, interval: dict[str, float | None] | None, shown: str
) -> None:
    around = None if interval is None else Interval(interval["low"], interval["high"], 0.95)
    assert answer_lines(pa.table({"a": [value]}), {"a": [around]}, {"a"}) == ["a", shown]


@pytest.mark.parametrize(
    "expression",
    [
        "COUNT(*) * 1e300",
        "COUNT(*) * 1e307",
        "AVG(x) * 1e304",
        "SUM(x) * 1e302",
        "1e-300 * COUNT(*)",
        "VAR_SAMP(x) + 1e200",
        "1 / COUNT(*)",
    ],
)
def test_numbers_beyond_all_bounds_are_answered(expression: str) -> None:
    """The question is charged before its margins are computed: they may be missing, and nothing may fail."""
    session = table(list(range(50)))
    answer = session.sql(f"SELECT {expression} AS a FROM records", epsilon=1)
    assert answer.table.num_rows == 1
    shown = answer_lines(answer.table, answer.answer.intervals(0.95), {"a"})
    assert len(shown) == 2 and answer.margins(0.95).num_rows == 1
    assert session.explain(f"SELECT {expression} AS a FROM records", epsilon=1).columns


@pytest.mark.parametrize("wrong", ["0.95", None, Decimal("0.95"), 1, math.nan])
def test_a_confidence_that_is_none_is_refused(wrong: Any) -> None:
    answer = cities(EVERYTHING, seed=1, epsilon=1)
    for told in (answer.intervals, answer.margins):
        with pytest.raises(ParameterError, match="confidence lies between 0 and 1"):
            told(wrong)
