"""Squared error: how far a number is from the middle of what is shown in its place.

A shown text is read as the middle of the values below it, (smallest + largest)/2; the error of a column is the mean of
(value − middle)² over its known values, divided by their variance. A suppressed record is read as the middle of the whole column.
The sum of squared errors of microaggregation, for generalised values: Domingo-Ferrer, Mateo-Sanz, "Practical data-oriented
microaggregation for statistical disclosure control", IEEE TKDE 14(1), 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pyarrow as pa

from sfumato.core.errors import Unsupported
from sfumato.core.view import Measure, Score
from sfumato.data.microdata import ReleasedTable
from sfumato.data.texts.values import as_numbers
from sfumato.measures.utility.shown import (
    Floats,
    OriginalColumn,
    Rows,
    ShownColumn,
    joint_counts,
    rows_of,
    shown_columns,
    suppressed_counts,
)


@dataclass(frozen=True)
class SquaredError(Measure[Rows, ReleasedTable]):
    """Mean over numeric quasi-identifiers, weighed by `importance`, of mean (value − middle of what is shown)² / variance.

    0 where every number is shown as it was; about 1 where nothing is known of it. Columns that are no numbers are left out.
    """

    key: ClassVar[str] = "squared_error"
    supposes_truth: ClassVar[bool] = True

    def score(self, original: Rows, released: ReleasedTable) -> Score:
        """The error in units of the variance; parts per numeric attribute."""
        rows = rows_of(original)
        columns = shown_columns(original, released)
        parts = {}
        for column, joint in zip(columns, joint_counts(columns, rows), strict=True):
            if not _is_numeric(rows, released, column.name):
                continue
            source = OriginalColumn.of(rows, column.name)
            error = _error(column, source, joint, suppressed_counts(joint, source, released.suppressed))
            if error is not None:
                parts[column.name] = error
        if not parts:
            raise Unsupported("squared_error is about numbers, and no quasi-identifier of this release is a number that varies")
        importance = {name: released.schema.columns[name].importance for name in parts}
        return Score(
            measure=self.key,
            value=sum(importance[name] * part for name, part in parts.items()) / sum(importance.values()),
            better="lower",
            meaning="squared distance of numbers from the middle of what is shown, in units of their variance",
            parts=MappingProxyType(parts),
        )


def _is_numeric(rows: pa.Table, released: ReleasedTable, name: str) -> bool:
    """Whether a column holds numbers; a text of digits is a code."""
    kind = rows.schema.field(name).type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    numeric = pa.types.is_integer(value) or pa.types.is_floating(value) or pa.types.is_decimal(value)
    return numeric or released.schema.columns[name].type in ("integer", "number")


def _error(column: ShownColumn, source: OriginalColumn, joint: Floats, gone: Floats) -> float | None:
    """The squared error of a column by its variance; None where it has no numbers, or only one."""
    numbers = as_numbers(source.coded.values)
    if numbers is None:
        return None
    values = np.array(numbers, dtype=np.float64)
    present = ~np.isnan(values)
    counts = source.counts[present].astype(np.float64)
    values, joint = values[present], joint[:, present]
    if not counts.sum():
        return None
    mean = float(values @ counts / counts.sum())
    variance = float((values - mean) ** 2 @ counts / counts.sum())
    if variance <= 0:
        return None
    whole = _middle(frozenset(column.tree.leaves), mean)
    middles = np.array([_middle(meaning.leaves, whole) for meaning in column.meanings], dtype=np.float64)
    shown = float((joint * (values[None, :] - middles[:, None]) ** 2).sum()) if middles.size else 0.0
    suppressed = float(gone[present] @ (values - whole) ** 2)
    return (shown + suppressed) / float(counts.sum()) / variance


def _middle(leaves: frozenset[str | None], whole: float) -> float:
    numbers = as_numbers([leaf for leaf in leaves if leaf is not None])
    return (min(numbers) + max(numbers)) / 2 if numbers else whole
