"""Precision: the share of hierarchy levels that cells did not climb.

A cell that climbed h of the H levels of its column's hierarchy costs h/H; a suppressed record costs 1 in every column; the
precision is 1 minus the mean over all cells. On unbalanced trees a level that only repeats a node is not climbed. Sweeney,
"Achieving k-anonymity privacy protection using generalization and suppression", IJUFKS 10(5), 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from sfumato.core.errors import Unsupported
from sfumato.core.view import Measure, Score
from sfumato.data.hierarchies.hierarchy import ROOT
from sfumato.data.microdata import ReleasedTable
from sfumato.measures.utility.distortion import steps_climbed
from sfumato.measures.utility.shown import OriginalColumn, Rows, ShownColumn, joint_counts, records_of, rows_of, shown_columns


@dataclass(frozen=True)
class Precision(Measure[Rows, ReleasedTable]):
    """1 − mean over records and quasi-identifiers of levels climbed / levels of the hierarchy, weighed by `importance`.

    1 where nothing was generalised, 0 where everything was suppressed. Ranges that are no nodes of a hierarchy climb no levels:
    columns that show some are refused.
    """

    key: ClassVar[str] = "precision"
    supposes_truth: ClassVar[bool] = True

    def score(self, original: Rows, released: ReleasedTable) -> Score:
        """The precision; parts per attribute."""
        rows = rows_of(original)
        columns = shown_columns(original, released)
        _refuse_ranges(columns)
        records = records_of(released)
        parts = {}
        for column, joint in zip(columns, joint_counts(columns, rows), strict=True):
            climbed = float((joint * steps_climbed(column, OriginalColumn.of(rows, column.name))).sum()) / max(
                column.tree.height, 1
            )
            parts[column.name] = 1.0 - (climbed + released.suppressed) / records if records else 1.0
        importance = {name: released.schema.columns[name].importance for name in parts}
        return Score(
            measure=self.key,
            value=sum(importance[name] * part for name, part in parts.items()) / sum(importance.values()),
            better="higher",
            meaning="share of hierarchy levels that cells did not climb; a suppressed record counts 0",
            parts=MappingProxyType(parts),
        )


def _refuse_ranges(columns: tuple[ShownColumn, ...]) -> None:
    ranged = [column.name for column in columns if not set(column.coded.values) <= {*column.tree.labels, ROOT}]
    if ranged:
        raise Unsupported(
            f"precision counts hierarchy levels, and {', '.join(ranged)} shows ranges that are no nodes of a hierarchy. "
            "Use range_shown or loss for this release."
        )
