"""The distortion metric MD: how many hierarchy levels all cells together climbed.

One unit per level and cell, whatever the branching. On unbalanced trees a level that only repeats a node
is not climbed. Sweeney, "Achieving k-anonymity privacy protection using generalization and suppression",
IJUFKS 10(5), 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.view import Measure, Score
from sfumato.data.microdata import ReleasedTable
from sfumato.measures.utility.shown import (
    OriginalColumn,
    Rows,
    ShownColumn,
    joint_counts,
    rows_of,
    shown_columns,
    suppressed_counts,
)


@dataclass(frozen=True)
class Distortion(Measure[Rows, ReleasedTable]):
    """Sum over all records and quasi-identifiers of the levels climbed; a suppressed record climbs to
    the root everywhere.
    """

    key: ClassVar[str] = "distortion"
    supposes_truth: ClassVar[bool] = True

    def score(self, original: Rows, released: ReleasedTable) -> Score:
        """The number of levels; parts per attribute."""
        rows = rows_of(original)
        columns = shown_columns(original, released)
        parts = {}
        for column, joint in zip(columns, joint_counts(columns, rows), strict=True):
            source = OriginalColumn.of(rows, column.name)
            climbed = float((joint * steps_climbed(column, source)).sum())
            parts[column.name] = climbed + float(suppressed_counts(joint, source, released.suppressed) @ _heights(column, source))
        return Score(
            measure=self.key,
            value=float(sum(parts.values())),
            better="lower",
            meaning="hierarchy levels climbed by all cells together",
            parts=MappingProxyType(parts),
        )


def steps_climbed(column: ShownColumn, source: OriginalColumn) -> NDArray[np.float64]:
    """For each shown text and original value the tree edges between them (0 where the text does not
    cover the value).
    """
    tree = column.tree
    climbed = np.zeros((len(column.meanings), len(source.coded.values)))
    leaf_of = [tree.index.get(value, -1) for value in source.coded.values]
    for text, shown in enumerate(column.coded.values):
        level = next(
            (
                level
                for level in range(tree.height, -1, -1)
                if any(tree.labels[node] == shown for node in tree.node_of[level].tolist())
            ),
            None,
        )
        for value, leaf in enumerate(leaf_of):
            if source.coded.values[value] not in column.meanings[text].leaves:
                continue
            placed = level is not None and leaf >= 0
            climbed[text, value] = float(tree.steps[level, leaf]) if placed else column.meanings[text].steps
    return climbed


def _heights(column: ShownColumn, source: OriginalColumn) -> NDArray[np.float64]:
    """Edges from each original value to the root."""
    tree = column.tree
    return np.array(
        [
            float(tree.steps[-1, tree.index[value]]) if value in tree.index else float(tree.height)
            for value in source.coded.values
        ],
        dtype=np.float64,
    )
