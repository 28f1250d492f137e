"""Range shown: how much of its range an ordered column gives away, the same for ranges and for hierarchy nodes.

A cell of an ordered column costs (largest - smallest value below the shown text) / (largest - smallest value of the column):
0 for one value, 1 for the whole range, whatever method made it. Columns with a declared order of words count ranks, columns
without an order the loss of their tree. A suppressed record counts 1. For numbers this is the loss of Iyengar,
"Transforming data to satisfy privacy constraints", KDD 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from sfumato.core.view import Measure, Score
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import ReleasedTable, ShownValue
from sfumato.data.texts.values import as_numbers
from sfumato.measures.utility.shown import Floats, Rows, ShownColumn, records_of, shown_columns

MEANING = "share of the range of ordered columns that a value shows, and of the tree of others; a suppressed record counts 1"
_TO = " … "


@dataclass(frozen=True)
class RangeShown(Measure[Rows | None, ReleasedTable]):
    """Mean share of its range that a cell shows, weighted by the `importance` of columns; between 0 and 1.

    The default search keeps the recoding for which this is smallest.
    """

    key: ClassVar[str] = "range_shown"
    supposes_truth: ClassVar[bool] = True

    def score(self, original: Rows | None, released: ReleasedTable) -> Score:
        """Mean over all records of the original, the suppressed ones with 1; parts per attribute."""
        columns = shown_columns(original, released)
        records = records_of(released)
        importance = {column.name: released.schema.columns[column.name].importance for column in columns}
        whole = sum(importance.values())
        parts = {}
        for column in columns:
            sets = released.schema.columns[column.name].items is not None
            shares = _shares(column) if column.tree.ordered and not sets else column.losses
            lost = float((column.counts * shares).sum()) + released.suppressed
            parts[column.name] = lost / records if records else 0.0
        return Score(
            measure=self.key,
            value=float(sum(importance[name] / whole * part for name, part in parts.items())),
            better="lower",
            meaning=MEANING,
            parts=MappingProxyType(parts),
        )


def _shares(column: ShownColumn) -> Floats:
    """The share of the range that each shown text of an ordered column stands for."""
    places = _places(column.tree)
    reach = max(places.values(), default=0.0) - min(places.values(), default=0.0)
    return np.array(
        [
            _share(text, meaning, column.tree, places, reach)
            for text, meaning in zip(column.coded.values, column.meanings, strict=True)
        ]
    )


def _share(text: str | None, meaning: ShownValue, tree: Hierarchy, places: dict[str, float], reach: float) -> float:
    leaves = meaning.leaves or _between(text, tree)
    if not leaves or (None in leaves and len(leaves) > 1):
        return 1.0
    inside = [places[leaf] for leaf in leaves if leaf is not None]
    return (max(inside) - min(inside)) / reach if inside and reach > 0 else 0.0


def _between(text: str | None, tree: Hierarchy) -> frozenset[str | None]:
    """The leaves of a range of a declared order, written `low … high`."""
    pieces = (text or "").split(_TO)
    for i in range(1, len(pieces)):
        low, high = tree.index.get(_TO.join(pieces[:i])), tree.index.get(_TO.join(pieces[i:]))
        if low is not None and high is not None:
            return frozenset(tree.leaves[low : high + 1])
    return frozenset()


def _places(tree: Hierarchy) -> dict[str, float]:
    """Where each value lies: at its number, or at its rank where the order is one of words."""
    present = [leaf for leaf in tree.leaves if leaf is not None]
    numbers = as_numbers(present)
    if numbers is None or numbers != sorted(numbers):
        numbers = [float(rank) for rank in range(len(present))]
    return dict(zip(present, numbers, strict=True))
