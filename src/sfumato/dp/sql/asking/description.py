"""What the columns of an answer will be: names, kinds, bounds, and which have noise; from the query and the schema alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from sfumato.core.plain_data import PlainDict
from sfumato.dp.sql.margins.images import image
from sfumato.dp.sql.margins.propagation import noisy_parts, number_of
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER
from sfumato.dp.sql.operators.box import Box
from sfumato.dp.sql.operators.language import evaluate
from sfumato.dp.sql.question import Question, column_kind
from sfumato.dp.sql.reading.grouping import KEY


@dataclass(frozen=True)
class DescribedColumn:
    """One column of an answer: what it holds, and between which numbers it lies whatever the noise; None where nothing says.

    `values` is how many values a key can have, None where they are discovered, and for what is no key.
    """

    name: str
    kind: str
    noisy: bool
    low: float | None = None
    high: float | None = None
    values: int | None = None

    def __str__(self) -> str:
        parts = [self.kind, "with noise" if self.noisy else "without noise"]
        if self.low is not None or self.high is not None:
            low, high = ("?" if end is None else f"{end:,.6g}" for end in (self.low, self.high))
            parts.append(f"from {low} to {high}")
        if self.values is not None:
            parts.append(f"{self.values:,} value{'' if self.values == 1 else 's'}")
        return f"{self.name}: {', '.join(parts)}"


@dataclass(frozen=True)
class QueryDescription:
    """The columns of an answer, and of how many groups it is; None where those are discovered."""

    columns: tuple[DescribedColumn, ...]
    groups: int | None

    def __iter__(self) -> Iterator[DescribedColumn]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> DescribedColumn:
        return {column.name: column for column in self.columns}[name]

    def to_mapping(self) -> PlainDict:
        """Plain data, ready for JSON."""
        return {"groups": self.groups, "columns": [dict(column.__dict__) for column in self.columns]}

    def __str__(self) -> str:
        groups = "discovered in the data" if self.groups is None else f"{self.groups:,}"
        return "\n".join([*map(str, self.columns), f"groups: {groups}"])


def describe(question: Question) -> QueryDescription:
    """What the answer to a question will look like; no row is read."""
    columns = tuple(_column(question, column.name, column.expression) for column in question.shown)
    return QueryDescription(columns, question.groups if question.keys else 1)


def _column(question: Question, name: str, node: exp.Expression) -> DescribedColumn:
    kind = column_kind(question, node)
    if isinstance(node, exp.Column) and node.name.startswith(KEY):
        values = question.keys[int(node.name.removeprefix(KEY))].values
        numbers = [value for value in values or () if isinstance(value, int) and not isinstance(value, bool)]
        low, high = (float(min(numbers)), float(max(numbers))) if numbers else (None, None)
        return DescribedColumn(name, kind, False, low, high, None if values is None else len(values))
    low, high = _ends(question, node) if kind in ("number", "integer") else (None, None)
    return DescribedColumn(name, kind, bool(noisy_parts(node)), low, high)


def _ends(question: Question, node: exp.Expression) -> tuple[float | None, float | None]:
    """Between which numbers an expression is shown, whatever the noise: means, spreads and quantiles are held in bounds."""
    boxes: dict[exp.Expression, Box] = {
        part: _held(question, part.name) for part in node.find_all(exp.Column) if part.name.startswith(PLACEHOLDER)
    }
    with np.errstate(all="ignore"):
        ends = image(node, boxes, _exact, lambda _, __, box: box)
    if ends is None:
        return None, None
    low, high = float(ends.low.min()), float(ends.high.max())
    return (low if math.isfinite(low) else None), (high if math.isfinite(high) else None)


def _held(question: Question, name: str) -> Box:
    statistic = question.statistics.get(name.removeprefix(PLACEHOLDER))
    low, high = -math.inf, math.inf
    if statistic is not None and (statistic.tree is not None or statistic.ends is not None):
        low, high = statistic.certain
    return Box.of(np.array([[low]]), np.array([[high]]))


def _exact(node: exp.Expression) -> Box:
    value = None if node.find(exp.Column) is not None else number_of(evaluate(node, {}))
    return Box.exactly(np.array([[math.nan if value is None else value]]))
