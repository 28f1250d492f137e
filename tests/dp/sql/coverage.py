"""How often margins cover and how wide they are, over many draws of the noise around the exact numbers of one table.

The engine is asked once; groups of one question are independent draws, so that a question over many equal groups is as good as
many questions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.core.randomness import default
from sfumato.dp.algorithms.count_tree import noisy_tree
from sfumato.dp.sql.asking.answer import AnswerTable, put_together
from sfumato.dp.sql.measuring import one_query
from sfumato.dp.sql.measuring.measurement import BRANCHING
from sfumato.dp.sql.measuring.noise import Noise, Price, Request, price
from sfumato.dp.sql.measuring.one_query import Measured
from sfumato.dp.sql.question import Question

#: Noise of no consequence: what is put together from it is the exact answer.
_SILENT = 10**15


@dataclass(frozen=True)
class Coverage:
    """The share of margins that cover the exact answer, and their median width over the 95 % quantile of the error.

    `held` and `half` are the same of intervals, whose width is half of the distance between their ends.
    """

    share: float
    width: float
    held: float
    half: float
    truth: float


def table(values: Any, *, whole: bool = True) -> sf.Session:
    """Records with a number x between 0 and 100 and a truth value."""
    kind = "integer" if whole else "number"
    described = {"x": {"type": kind, "bounds": [0, 100]}, "yes": {"type": "boolean"}}
    held = pa.table({"x": values, "yes": [bool(place % 3) for place in range(len(values))]})
    data = sf.read(held, schema={"dataset": "records", "columns": described})
    return sf.Session(data, budget=sf.ApproxDP(10**6, "0.5"), seed=1)


def asked(session: sf.Session, query: str, request: Request) -> tuple[Question, Price]:
    """A question and its price."""
    question = session._question(session._parsed(query), None)
    return question, price(question, request, session._bounded(None, None))


def exact_numbers(question: Question, cost: Price) -> Measured:
    """The measurements of the one group of a question without noise."""
    silent = replace(cost, noises={name: _without(noise) for name, noise in cost.noises.items()})
    return one_query.measure(question, silent, default("silent"))


def _without(noise: Noise) -> Noise:
    return replace(noise, law="laplace", amount=type(noise.amount)(1, _SILENT))


def drawn(question: Question, cost: Price, exact: Measured, count: int, seed: str) -> AnswerTable:
    """The answer with so many rows, each the same group with noise of its own."""
    source = default(seed)
    numbers = {name: one_query._noisy(values * count, cost.noises[name], source) for name, values in exact.numbers.items()}
    trees = {}
    for name, (tree,) in exact.trees.items():
        noise, leaves = cost.noises[name], np.rint(tree.leaves).astype(np.int64)
        trees[name] = [noisy_tree(leaves, BRANCHING, noise.amount, noise.law, source) for _ in range(count)]
    return put_together(question, cost, Measured(((),) * count, numbers, trees))


def coverage(
    session: sf.Session, query: str, request: Request, *, draws: int = 1000, errors: int = 10_000, confidence: float = 0.95
) -> dict[str, Coverage]:
    """For each column of the answer of one group."""
    question, cost = asked(session, query, request)
    exact = exact_numbers(question, cost)
    silent = replace(cost, noises={name: _without(noise) for name, noise in cost.noises.items()})
    truth = put_together(question, silent, exact).rows[0]
    answer = drawn(question, cost, exact, draws, f"coverage {query} {request}")
    more = drawn(question, cost, exact, errors, f"errors {query} {request}") if errors else answer
    margins = answer.margin_table(confidence).to_pydict()
    intervals = answer.interval_table(confidence).to_pydict()
    found = {}
    for place, name in enumerate(answer.names):
        shown = np.array([np.nan if row[place] is None else float(row[place]) for row in answer.rows])
        reach = np.array([np.inf if margin is None else margin for margin in margins[name]])
        low, high = (_ends(intervals[name], end, far) for end, far in (("low", -np.inf), ("high", np.inf)))
        off = np.array([np.nan if row[place] is None else abs(float(row[place]) - truth[place]) for row in more.rows])
        typical = float(np.nanquantile(off, confidence))
        covered = np.isnan(shown) | (np.abs(shown - truth[place]) <= reach + 1e-9)
        held = np.isnan(shown) | (low - 1e-9 <= truth[place]) & (truth[place] <= high + 1e-9)
        width, half = (
            float(np.median(size) / typical) if typical > 0 else float(np.median(size) > 0) for size in (reach, (high - low) / 2)
        )
        found[name] = Coverage(float(covered.mean()), width, float(held.mean()), half, float(truth[place]))
    return found


def _ends(intervals: list[dict[str, float | None] | None], end: str, far: float) -> np.ndarray:
    known = [None if interval is None else interval[end] for interval in intervals]
    return np.array([far if each is None else each for each in known])
