"""The order of groups: by expressions over placeholders, missing values first or last."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sfumato.dp.sql.operators.base import Cell
from sfumato.dp.sql.operators.language import evaluate


@dataclass(frozen=True)
class Ordering:
    """One term of ORDER BY, over placeholders."""

    expression: exp.Expression
    descending: bool
    nulls_first: bool


def in_this_order(
    rows: Sequence[tuple[int, Mapping[str, Cell]]], order: Sequence[Ordering]
) -> list[tuple[int, Mapping[str, Cell]]]:
    """Groups with their places, sorted; those that are equal stay as they are."""
    ordered = list(rows)
    for ordering in reversed(order):
        values = {place: evaluate(ordering.expression, row) for place, row in ordered}
        missing = [entry for entry in ordered if values[entry[0]] is None]
        present = [entry for entry in ordered if values[entry[0]] is not None]
        present.sort(key=lambda entry: sort_key(values[entry[0]]), reverse=ordering.descending)
        ordered = missing + present if ordering.nulls_first else present + missing
    return ordered


def sort_key(value: Cell) -> tuple[bool, Cell]:
    """What a value is sorted by."""
    if isinstance(value, (str, datetime.date)):
        return (True, str(value))
    return (value is not None, 0 if value is None else value)
