"""One digest for one question, so that the same question is recognised and shows the same numbers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from sfumato.core.certificate import canonical, plain
from sfumato.core.params import parameters
from sfumato.dp.sql.aggregates import PLACEHOLDER
from sfumato.dp.sql.noise import Price
from sfumato.dp.sql.question import Question


def question_digest(question: Question, priced: Price, version: str, seed: int | str | None) -> str:
    """What is computed from what, at which cost and bounds, on which version of the data."""
    tables = {name: table_digest(table.rows) for name, table in question.tables.items() if table.rows is not None}
    spelled = _placeholders(question)
    asked = {
        "format": 1,
        "primary": question.primary,
        # Names of computed columns are numbered in the order of the query, so that equal questions read equal.
        "computed": repr((question.rows.plan, question.rows.unit, question.keys, question.measurements)),
        "statistics": [repr(statistic) for statistic in question.statistics.values()],
        "shown": [[column.name, spelled(column.expression)] for column in question.shown],
        "having": None if question.having is None else spelled(question.having),
        "order": [[spelled(o.expression), o.descending, o.nulls_first] for o in question.order],
        "limit": [question.limit, question.offset],
        "loss": plain({"name": priced.loss.name, **parameters(priced.loss)}),
        "noise": sorted(f"{name} {noise.law} {noise.amount}" for name, noise in priced.noises.items()),
        "bounds": plain(parameters(priced.bounds)),
        "public": tables,
        "version": version,
        "seed": None if seed is None else str(seed),
    }
    return digest(asked)


def _placeholders(question: Question) -> Callable[[exp.Expression], str]:
    """Expressions over groups with aggregates by number, so that it does not matter how the query spelled them."""
    numbers = {PLACEHOLDER + text: f"#{number}" for number, text in enumerate(question.statistics)}

    def renamed(node: exp.Expression) -> exp.Expression:
        return exp.column(numbers[node.name], quoted=True) if isinstance(node, exp.Column) and node.name in numbers else node

    return lambda expression: expression.transform(renamed).sql()


def digest(value: Any) -> str:
    """The digest of plain data."""
    return hashlib.sha256(canonical(plain(value))).hexdigest()


def table_digest(table: Any) -> str:
    """The digest of a table's values; what is no number counts as missing, as it is when written."""
    found = hashlib.sha256()
    for name in table.column_names:
        cells = (None if isinstance(cell, float) and math.isnan(cell) else cell for cell in table.column(name).to_pylist())
        found.update(repr((name, list(cells))).encode())
    return found.hexdigest()


def result_digest(result: Any) -> str:
    """The digest of an artefact."""
    if hasattr(result, "column_names"):
        return table_digest(result)
    return digest(result)
