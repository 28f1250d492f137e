"""Answers are as far off as they say, and no further: errors and margins against many draws; and they are as private as they say.

The exact numbers of a question are computed once by the engine and kept; every draw adds fresh noise. No bound on
contributions bites in these tables, so that sampling rows changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.randomness import default
from sfumato.dp.sql.asking.answer import AnswerTable, CellErrors, put_together
from sfumato.dp.sql.asking.explanation import explain
from sfumato.dp.sql.margins.reach import OneNoise
from sfumato.dp.sql.measuring import one_query
from sfumato.dp.sql.measuring.noise import Price, Request, price
from sfumato.dp.sql.question import Question

DRAWS = 800
ROWS = 3000


def _people() -> tuple[sf.Session, dict[str, np.ndarray[Any, Any]]]:
    draw = np.random.default_rng(5)
    income = np.clip(draw.normal(40, 15, ROWS), 0, 100)
    age = np.clip(draw.normal(45, 18, ROWS), 0, 120).astype(int)
    schema = {
        "dataset": "people",
        "columns": {
            "user": {"role": "unit", "type": "integer"},
            "income": {"type": "number", "bounds": [0, 100]},
            "age": {"type": "integer", "bounds": [0, 120]},
        },
    }
    table = pa.table({"user": range(ROWS), "income": income, "age": age})
    return sf.Session(sf.read(table, schema=schema), max_rows=1, max_groups=1, budget=sf.ApproxDP(1000, "0.5")), {
        "income": income,
        "age": age,
    }


QUERY = (
    "SELECT COUNT(*) AS n, SUM(income) AS s, AVG(income) AS m, VAR_POP(income) AS v, STDDEV(income) AS d, MEDIAN(age) AS q, "
    "100 * SUM(income) / COUNT(*) AS r FROM people"
)
REQUESTS = {"laplace": Request(epsilon="0.6"), "gaussian": Request(rho="0.02")}


def _priced(asked: sf.Session, query: str, request: Request) -> tuple[Question, Price]:
    question = asked._question(asked._parsed(query), None)
    return question, price(question, request, asked._bounds)


def _draws(question: Question, priced: Price, count: int, seed: str) -> list[AnswerTable]:
    source = default(seed)
    return [put_together(question, priced, one_query.measure(question, priced, source)) for _ in range(count)]


def _truth(data: dict[str, np.ndarray[Any, Any]]) -> dict[str, float]:
    income = data["income"]
    return {
        "n": ROWS,
        "s": float(income.sum()),
        "m": float(income.mean()),
        "v": float(income.var()),
        "d": float(income.std(ddof=1)),
        "q": float(np.median(data["age"])),
        "r": 100 * float(income.mean()),
    }


@pytest.mark.slow
@pytest.mark.parametrize("law", REQUESTS)
@pytest.mark.usefixtures("engine_asked_once")
def test_errors_are_as_large_as_stated_and_margins_hold(law: str) -> None:
    asked, data = _people()
    question, priced = _priced(asked, QUERY, REQUESTS[law])
    assert {noise.law for noise in priced.noises.values()} == {law}
    answers = _draws(question, priced, DRAWS, f"accuracy {law}")
    truth = _truth(data)
    for place, name in enumerate(answers[0].names):
        off = np.array([float(answer.rows[0][place]) - truth[name] for answer in answers])
        stated = np.array([answer.errors[0][place] for answer in answers])
        margin = answers[0].margin_table(0.95).column(name)[0].as_py()
        ratio = math.sqrt(float((off**2).mean()) / float((stated**2).mean()))
        # The variance of 800 squared Laplace errors is off by 8 % (one deviation); 40 % is beyond one in 10^6. The
        # median is told in whole years and states the largest error over all ranks.
        assert ratio < 1.2, (name, ratio)
        if name != "q":
            assert ratio > 0.8, (name, ratio)
        factor = float(margin / stated[0])
        reach = stated * factor + (0.5 if name == "q" else 0)
        covered = float((np.abs(off) <= reach).mean())
        assert covered >= 0.95 - 4.9 * math.sqrt(0.05 * 0.95 / DRAWS), (name, covered)
        if name != "q":
            assert covered <= 0.95 + 4.9 * math.sqrt(0.05 * 0.95 / DRAWS) + 0.005, (name, covered)


@pytest.mark.slow
@pytest.mark.parametrize("law", REQUESTS)
@pytest.mark.usefixtures("engine_asked_once")
def test_margins_that_are_told_beforehand_hold(law: str) -> None:
    asked, data = _people()
    question, priced = _priced(asked, QUERY, REQUESTS[law])
    told = {column.name: column for column in explain(question, priced, 0.95).columns}
    answers = _draws(question, priced, DRAWS, f"beforehand {law}")
    truth = _truth(data)
    least = 0.95 - 4.9 * math.sqrt(0.05 * 0.95 / DRAWS)
    for name in ("n", "s"):
        place = answers[0].names.index(name)
        off = np.array([abs(float(answer.rows[0][place]) - truth[name]) for answer in answers])
        margin = told[name].margin
        assert margin is not None and least <= float((off <= margin).mean()) <= 0.995
    # Means and spreads are told for groups of 1,000 rows whose values lie in the middle of their bounds; this one has
    # 3,000 and its mean lies ten from the middle: the margin of 1,000 rows holds.
    for name in ("m", "v"):
        place = answers[0].names.index(name)
        off = np.array([abs(float(answer.rows[0][place]) - truth[name]) for answer in answers])
        assert float((off <= told[name].per_rows[1000]).mean()) >= least


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "1.3", "2", "5"])
def test_the_margin_of_a_count_covers_by_the_exact_law(epsilon: str) -> None:
    asked, _ = _people()
    question, priced = _priced(asked, "SELECT COUNT(*) AS n FROM people", Request(epsilon=epsilon))
    noise = priced.noises["m0"]
    law = OneNoise(noise.law, noise.amount, noise.step)
    table = AnswerTable(("n",), ("integer",), ((5,),), CellErrors((law,), ((noise.deviation,),)))
    ratio = math.exp(-float(Fraction(epsilon)))
    told = explain(question, priced, 0.95).columns[0].margin
    for margin in (told, table.margin_table(0.95).column("n")[0].as_py()):
        beyond = 2 * ratio ** (math.floor(margin) + 1) / (1 + ratio)
        assert beyond <= 0.05 * (1 + 1e-9), (margin, beyond)


# As private as stated ------------------------------------------------------------------------------------------------

VISITS = {
    "dataset": "visits",
    "columns": {
        "user": {"role": "unit", "type": "integer"},
        "page": {"type": "string", "domain": ["home", "shop"]},
        "seconds": {"type": "number", "bounds": [0, 8]},
        "clicks": {"type": "integer", "bounds": [0, 15]},
        "word": {"type": "string"},
    },
}
_TYPES = pa.schema(
    [("user", pa.int64()), ("page", pa.string()), ("seconds", pa.float64()), ("clicks", pa.int64()), ("word", pa.string())]
)
Visits = tuple[tuple[int, str, float, int, str], ...]

OTHERS: Visits = tuple((user, ["home", "shop"][user % 2], 3.0, 5, "common") for user in range(2, 8))
HEAVY: Visits = tuple((1, page, 1e9, 99, "common") for page in ("home", "shop") for _ in range(9))
ALONE: Visits = ((1, "home", 8.0, 15, "rare"),)
SMALL: Visits = ((1, "shop", -5.0, 0, "common"),)


def _mechanism(query: str, request: Request, **bounds: Any) -> Callable[[Visits, int], list[Any]]:
    """`count` fresh answers to a question about a table."""
    prepared: dict[Visits, Any] = {}
    source = default(f"refute {query}")

    def answers(rows: Visits, count: int) -> list[Any]:
        if rows not in prepared:
            table = pa.Table.from_pylist([dict(zip(_TYPES.names, row, strict=True)) for row in rows], schema=_TYPES)
            asked = sf.Session(
                sf.read(table, schema=VISITS), budget=sf.ApproxDP(10**6, "0.9"), **{"max_rows": 1, "max_groups": 1, **bounds}
            )
            prepared[rows] = _priced(asked, query, request)
        question, priced = prepared[rows]
        return [put_together(question, priced, one_query.measure(question, priced, source)).rows for _ in range(count)]

    return answers


#: A question, what it costs, bounds on contributions, and the unit that makes the neighbours.
CLAIMS: dict[str, tuple[str, dict[str, Any], dict[str, int], Visits]] = {
    "count of a heavy unit": ("SELECT COUNT(*) FROM visits", {"epsilon": 1}, {"max_rows": 3}, HEAVY),
    "sum by group, values at the bound": (
        "SELECT page, SUM(clicks) AS s FROM visits GROUP BY page",
        {"epsilon": 1},
        {"max_rows": 2, "max_groups": 2},
        HEAVY,
    ),
    "sum of a real number": ("SELECT SUM(seconds) FROM visits", {"epsilon": 1}, {}, ALONE),
    "mean": ("SELECT AVG(seconds) FROM visits", {"epsilon": 1}, {}, ALONE),
    "mean, the smallest value": ("SELECT AVG(seconds), COUNT(*) FROM visits", {"epsilon": 1}, {}, SMALL),
    "median": ("SELECT MEDIAN(clicks) FROM visits", {"epsilon": 1}, {}, ALONE),
    "a group of one unit": (
        "SELECT page, COUNT(*) AS n FROM visits WHERE word = 'rare' GROUP BY page",
        {"epsilon": 1},
        {},
        ALONE,
    ),
    "discovered keys": ("SELECT word, COUNT(*) AS n FROM visits GROUP BY word", {"epsilon": 1, "delta": "0.05"}, {}, ALONE),
    "per unit first": (
        "SELECT SUM(CLAMP(n, 0, 4)) FROM (SELECT user, COUNT(*) AS n FROM visits GROUP BY user)",
        {"epsilon": 1},
        {},
        HEAVY,
    ),
}


def _refuted(name: str, epsilon: float, samples: int) -> bool:
    query, loss, bounds, unit = CLAIMS[name]
    mechanism = _mechanism(query, Request(**loss), **bounds)
    return sf.refute(
        mechanism,
        neighbours=((*OTHERS, *unit), OTHERS),
        epsilon=epsilon,
        delta=loss.get("delta", 0),
        samples=samples,
        seconds=3000,  # never the limit: the same draws on a busy machine
        vectorised=True,
    ).refuted


@pytest.mark.slow
@pytest.mark.usefixtures("engine_asked_once")
def test_a_claim_of_three_tenths_of_the_loss_of_a_count_is_refuted() -> None:
    assert _refuted("count of a heavy unit", 0.3, 10_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sum by group, values at the bound", "sum of a real number", "per unit first"])
@pytest.mark.usefixtures("engine_asked_once")
def test_a_claim_of_three_tenths_of_the_loss_of_a_sum_is_refuted(name: str) -> None:
    assert _refuted(name, 0.3, 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.usefixtures("engine_asked_once")
def test_answers_are_not_refuted_at_what_they_cost(name: str) -> None:
    assert not _refuted(name, 1, 5_000)


@pytest.mark.slow
def test_whole_sessions_are_not_refuted_at_what_they_cost_and_are_at_less() -> None:
    """Fresh sessions with the operating system's randomness, bounding by sampling in the engine, nothing kept between.

    At least 8 is answered with probability 0.88 on one table and 0.016 on the other: 150 fresh draws on each leave the second
    claim standing with a chance below 1e-8.
    """

    def ask(rows: Visits) -> Any:
        table = pa.Table.from_pylist([dict(zip(_TYPES.names, row, strict=True)) for row in rows], schema=_TYPES)
        asked = sf.Session(sf.read(table, schema=VISITS), budget=sf.PureDP(4), max_rows=2)
        return asked.sql("SELECT COUNT(*) FROM visits", epsilon=4).answer.rows[0][0]

    pair = ((*OTHERS, *HEAVY), OTHERS)
    assert not sf.refute(ask, neighbours=pair, epsilon=4, samples=300, seconds=3000).refuted
    assert sf.refute(ask, neighbours=pair, epsilon=1, samples=300, seconds=3000).refuted
