"""Margins cover the exact answer on the bounded rows; those of means and of not too small groups are hardly wider than needed.

Coverage is compared with 94 % less 4.9 deviations of a binomial share: a margin that covers 94 % fails in less than one of 10^6
comparisons. Noise is seeded.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import LedgerError
from sfumato.dp.sql.asking.answer import AnswerTable
from sfumato.dp.sql.margins.reach import distance_at, stored_law
from sfumato.dp.sql.measuring.noise import Request
from tests.dp.sql.coverage import coverage, table

DRAWS = 300
REQUESTS = {
    "laplace": lambda epsilon: Request(epsilon=str(epsilon)),
    "rho": lambda epsilon: Request(rho=str(epsilon**2 / 8)),
    "delta": lambda epsilon: Request(epsilon=str(epsilon), delta="1e-6"),
}
QUERIES = {
    "counts": "SELECT COUNT(*) AS n, SUM(x) AS s, SUM(x) - 40 * COUNT(*) AS linear FROM records",
    "mean": "SELECT AVG(x) AS mean, ROUND(AVG(x), 1) AS rounded FROM records",
    "variance": "SELECT VAR_SAMP(x) AS v, STDDEV_POP(x) AS d FROM records",
    "ratio": "SELECT SUM(x) / COUNT(*) AS ratio, 100.0 * COUNT(*) FILTER (WHERE yes) / COUNT(*) AS percent FROM records",
    "quantiles": "SELECT MEDIAN(x) AS median, QUANTILE(x, 0.9) AS ninth, MIN(x) AS least, MAX(x) AS most FROM records",
}
LEAST = 0.94 - 4.9 * math.sqrt(0.94 * 0.06 / DRAWS)


def ages(rows: int) -> np.ndarray:
    return np.clip(np.rint(np.random.default_rng(rows).normal(45, 18, rows)), 0, 100).astype(np.int64)


SHAPES = {
    "ages": ages,
    "ties": lambda rows: np.repeat([20, 70], [rows // 3, rows - rows // 3]),
    "low end": lambda rows: np.arange(rows) % 4,
    "constant": lambda rows: np.full(rows, 37),
    "both ends": lambda rows: np.repeat([0, 100], [rows // 2, rows - rows // 2]),
    "skewed": lambda rows: np.clip(np.rint(np.random.default_rng(rows).lognormal(1.5, 1.0, rows)), 0, 100).astype(np.int64),
}


@pytest.mark.covering
@pytest.mark.parametrize("rows", [15, 60])
@pytest.mark.parametrize("kind", QUERIES)
def test_small_groups_are_covered(kind: str, rows: int) -> None:
    for name, found in coverage(table(ages(rows)), QUERIES[kind], REQUESTS["laplace"](1), draws=DRAWS, errors=0).items():
        assert found.share >= LEAST, (name, found)


@pytest.mark.parametrize("law", REQUESTS)
def test_a_spread_of_nothing_is_covered(law: str) -> None:
    """Of equal values the interval ends exactly at 0, which no rounding may cut off."""
    query = "SELECT STDDEV_POP(x) AS d, VAR_POP(x) AS v, STDDEV_SAMP(x) AS s FROM records"
    for name, found in coverage(table(SHAPES["constant"](60)), query, REQUESTS[law](1), draws=DRAWS, errors=0).items():
        assert found.share >= LEAST, (name, found)


@pytest.mark.covering
@pytest.mark.slow
@pytest.mark.parametrize("law", REQUESTS)
@pytest.mark.parametrize("rows", [30, 200])
def test_every_law_covers(law: str, rows: int) -> None:
    for kind in ("mean", "variance", "ratio"):
        for name, found in coverage(table(ages(rows)), QUERIES[kind], REQUESTS[law](1), draws=DRAWS, errors=0).items():
            assert found.share >= LEAST, (kind, name, found)


@pytest.mark.parametrize(("kind", "rows", "epsilon"), [("mean", 15, 1), ("mean", 60, 1), ("variance", 60, 2), ("ratio", 60, 1)])
def test_margins_are_no_wider_than_a_quarter_more_than_the_errors(kind: str, rows: int, epsilon: int) -> None:
    for name, found in coverage(table(ages(rows)), QUERIES[kind], REQUESTS["laplace"](epsilon), draws=DRAWS, errors=2000).items():
        assert found.width <= 1.25, (name, found)


@pytest.mark.stress
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("law", REQUESTS)
@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
@pytest.mark.parametrize("rows", [15, 30, 60, 200, 1000])
def test_the_whole_grid_is_covered(rows: int, epsilon: float, law: str, shape: str) -> None:
    for kind, query in QUERIES.items():
        for name, found in coverage(table(SHAPES[shape](rows)), query, REQUESTS[law](epsilon), draws=2000, errors=0).items():
            assert found.share >= 0.94 - 4.9 * math.sqrt(0.94 * 0.06 / 2000), (kind, name, found)


def test_an_empty_group_shows_that_it_is() -> None:
    """What is in no group may be anything: the margin reaches to the farther bound, and a ratio without bounds has none."""
    columns = {"city": {"type": "string", "domain": ["Bern", "Nowhere"]}, "x": {"type": "number", "bounds": [0, 10]}}
    data = sf.read(pa.table({"city": ["Bern"] * 5000, "x": [5.0] * 5000}), schema={"dataset": "d", "columns": columns})
    query = "SELECT city, AVG(x) AS mean, STDDEV_POP(x) AS spread, SUM(x) / COUNT(*) AS ratio FROM d GROUP BY city"
    for seed in range(20):
        answer = sf.Session(data, budget=sf.PureDP(100), seed=seed).sql(query, epsilon=1)
        (full, empty), (sure, unsure) = answer.table.to_pylist(), answer.margins().to_pylist()
        assert sure["mean"] < 0.2 and abs(full["mean"] - 5) < 1 and sure["ratio"] < 0.2
        assert empty["mean"] - unsure["mean"] <= 0.5 or empty["mean"] + unsure["mean"] >= 9.5
        assert unsure["mean"] >= 4.5 and unsure["spread"] >= 2
        assert unsure["ratio"] is None or unsure["ratio"] > 5


def test_margins_are_computed_when_asked_for_and_travel_with_the_answer() -> None:
    given = table(ages(60)).sql("SELECT AVG(x) AS mean, SUM(x) / COUNT(*) AS ratio FROM records", epsilon=1)
    answer = given.answer
    assert given.table.num_rows == 1 and "cell_errors" not in vars(answer) and "explanation" not in vars(given)
    assert given.outcome.details["errors"].equals(answer.error_table())
    copy = pickle.loads(pickle.dumps(answer))
    assert copy == answer and copy.to_mapping() == answer.to_mapping()
    assert copy.margin_table(0.9).equals(answer.margin_table(0.9))


def test_margins_are_the_same_after_they_were_stored() -> None:
    session = table(ages(60))
    answer = session.sql("SELECT AVG(x) AS mean, COUNT(*) AS n, MEDIAN(x) AS middle FROM records", epsilon=1).answer
    again = AnswerTable.from_mapping(answer.to_mapping())
    for confidence in (0.3, 0.9, 0.95, 0.97, 0.9999):
        assert again.margin_table(confidence).equals(answer.margin_table(confidence))
    margins = [answer.margin_table(confidence)["mean"][0].as_py() for confidence in (0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.9999)]
    assert margins == sorted(margins) and margins[0] > 0


@pytest.mark.parametrize("seed", range(8))
def test_what_is_surer_is_no_nearer(seed: int) -> None:
    """A margin that is missing may be anything: from there on none is told."""
    columns = {"city": {"type": "string", "domain": ["Bern", "Chur", "Nowhere"]}, "x": {"type": "integer", "bounds": [0, 100]}}
    values = np.concatenate([ages(12), ages(200)])
    data = sf.read(pa.table({"city": ["Bern"] * 12 + ["Chur"] * 200, "x": values}), schema={"dataset": "d", "columns": columns})
    shown = "COUNT(*) AS n, AVG(x) AS mean, SUM(x) / COUNT(*) AS ratio, ROUND(AVG(x) / COUNT(*), 1) AS rounded"
    shown += ", STDDEV_SAMP(x) AS d, 10 - ABS(AVG(x) - MEDIAN(x)) AS far, MEDIAN(x) AS middle"
    shown += ", POWER(VAR_POP(x) - MEDIAN(x) * 9, 2) AS odd"
    answer = sf.Session(data, budget=sf.PureDP(100), seed=seed).sql(f"SELECT city, {shown} FROM d GROUP BY city", epsilon=2)
    confidences = (0.05, 0.5, 0.7, 0.8, 0.9, 0.94, 0.95, 0.97, 0.98, 0.99, 0.993, 0.995, 0.998, 0.999, 0.9995, 0.9999, 1 - 1e-9)
    told = [answer.margins(confidence).to_pylist() for confidence in confidences]
    for place in range(3):
        for name in answer.table.column_names[1:]:
            margins = [math.inf if row[place][name] is None else row[place][name] for row in told]
            assert margins == sorted(margins), (place, name, margins)


def test_beyond_the_last_level_a_margin_is_what_the_bounds_allow_or_missing() -> None:
    query = "SELECT AVG(x) AS mean, VAR_SAMP(x) AS v, MEDIAN(x) AS middle, SUM(x) / COUNT(*) AS ratio, COUNT(*) AS n FROM records"
    answer = table(ages(60)).sql(query, epsilon=5)
    (shown,), (margins,) = answer.table.to_pylist(), answer.margins(0.9991).to_pylist()
    assert margins["mean"] == max(shown["mean"], 100 - shown["mean"])
    assert margins["v"] == max(shown["v"], 5000 - shown["v"])
    assert margins["middle"] == max(shown["middle"], 100 - shown["middle"])
    assert margins["ratio"] is None and answer.margins(0.999).to_pylist()[0]["ratio"] is not None
    assert 0 < margins["n"] < 30


def test_an_answer_that_was_stored_without_margins_is_read_by_its_errors() -> None:
    stored = {
        "format": "sfumato-answer-1",
        "columns": [{"name": "a", "kind": "number", "law": "laplace"}],
        "rows": [[5.0]],
        "errors": [[2.0]],
    }
    assert AnswerTable.from_mapping(stored).margin_table(0.95)["a"][0].as_py() == pytest.approx(2 * math.log(20) / math.sqrt(2))


def test_a_curve_is_read_at_any_confidence() -> None:
    curve = (0.7, 1.6, 2.3, 3.0, 3.9, 4.6, 5.3, None)
    assert distance_at(curve, 0.95) == 3.0 and distance_at(None, 0.5) is None
    assert distance_at(curve, 0.995) == 5.3 and distance_at(curve, 0.999) is None
    assert 3.0 < (distance_at(curve, 0.96) or 0) < 3.9
    assert distance_at(curve, 0.9999) is None and distance_at((*curve, 8.0), 0.9999) == 8.0
    assert distance_at((0.7, 1.6, 2.3, 3.0, 3.9, 4.6, 5.3, 6.9), 0.9999) is None


# The smallest and the largest value -----------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [True, False])
def test_the_ends_are_found_when_there_is_little_noise(whole: bool) -> None:
    values = np.array([17, 18, 18, 40, 77]) if whole else np.array([17.3, 18.0, 18.1, 40.0, 77.7])
    shown = "MIN(x) AS least, MAX(x) AS most, QUANTILE(x, 0) AS first, QUANTILE(x, 1) AS last, MEDIAN(x) AS middle"
    answer = table(values, whole=whole).sql(f"SELECT {shown} FROM records", epsilon=10**6)
    found, margins = answer.table.to_pylist()[0], answer.margins().to_pylist()[0]
    leaf = 0 if whole else 100 / 4096
    for name, truth in {
        "least": values[0],
        "first": values[0],
        "most": values[-1],
        "last": values[-1],
        "middle": values[2],
    }.items():
        assert abs(found[name] - truth) <= leaf, name
        assert abs(found[name] - truth) <= margins[name] + 1e-9 <= leaf + 1e-9, name


@pytest.mark.parametrize("shape", SHAPES)
def test_quantiles_are_covered_also_with_ties_and_thin_values(shape: str) -> None:
    found = coverage(table(SHAPES[shape](60)), QUERIES["quantiles"], REQUESTS["laplace"](2), draws=DRAWS, errors=0)
    for name, each in found.items():
        assert each.share >= LEAST, (name, each)


@pytest.mark.parametrize(
    "text", ["laplace", "gaussian", "laplace 21/2 1", "gaussian 9 1/4", "laplace plus=0.5", "gaussian plus=1.5 grid=0.01"]
)
def test_the_law_of_a_column_is_kept_as_it_was_always_written(text: str) -> None:
    assert str(stored_law(text)) == text


@pytest.mark.parametrize(
    "text", ["laplace 1", "laplace 1/0 1", "laplace one 1", "gaussian grid=", "gaussian width=3", "cauchy 1 1", "", None]
)
def test_a_stored_law_that_is_none_is_said_to_be_damaged(text: Any) -> None:
    with pytest.raises(LedgerError, match="Run verify"):
        stored_law(text)
