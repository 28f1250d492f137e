"""The loss metric LM: how much of a value's precision a generalisation gives away.

A cell costs (leaves below the shown value - 1) / (leaves of the hierarchy - 1): 0 for an original value,
1 for the root. A record costs the weighted sum over its attributes, a suppressed record 1. Granularity
is 1 - loss. Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np

from sfumato.core.declared import require
from sfumato.core.errors import ParameterError
from sfumato.core.ranges import ByName, Number
from sfumato.core.view import Measure, Score
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import ReleasedTable
from sfumato.measures.utility.shown import Rows, records_of, shown_columns


def cell_loss(tree: Hierarchy, text: str | None) -> float:
    """Loss of one shown value; a text on several levels is read as the most general."""
    for level in range(tree.height, -1, -1):
        for node in tree.node_of[level].tolist():
            if tree.labels[node] == text:
                return float(tree.loss[node])
    raise ParameterError("this text is no node of the hierarchy")


def record_loss(cells: Sequence[float], weights: Sequence[float]) -> float:
    """Weighted sum of the losses of a record's cells."""
    require(len(cells) == len(weights), "a record has one loss and one weight per attribute")
    return float(sum(weight * cell for weight, cell in zip(weights, cells, strict=True)))


def table_loss(records: Sequence[Sequence[float]], weights: Sequence[float]) -> float:
    """Sum of the record losses."""
    return float(sum(record_loss(cells, weights) for cells in records))


_Weights = Annotated[
    Mapping[str, float] | None,
    ByName(Number(at_least=0)),
    "the weight of each quasi-identifier; its importance in the schema where left out",
]


@dataclass(frozen=True)
class Loss(Measure[Rows | None, ReleasedTable]):
    """Mean loss per record, Σ weight · loss of the cell, between 0 (nothing lost) and 1 (everything suppressed).

    `weights` gives each quasi-identifier's weight (the schema's `importance` by default); they are
    scaled to sum to 1.
    """

    weights: _Weights = None
    key: ClassVar[str] = "loss"
    supposes_truth: ClassVar[bool] = True

    def score(self, original: Rows | None, released: ReleasedTable) -> Score:
        """Mean over all records of the original, the suppressed ones with 1; parts per attribute."""
        columns = shown_columns(original, released)
        weights = self._weights(released, [column.name for column in columns])
        records = records_of(released)
        parts = {}
        for column in columns:
            lost = float((column.counts * column.losses).sum()) + released.suppressed
            parts[column.name] = lost / records if records else 0.0
        value = float(sum(weights[name] * part for name, part in parts.items()))
        return Score(
            measure=self.key,
            value=value,
            better="lower",
            meaning="share of the quasi-identifiers' precision given up; a suppressed record counts 1",
            parts=MappingProxyType(parts),
        )

    def _weights(self, released: ReleasedTable, names: list[str]) -> dict[str, float]:
        weights = self.weights
        if weights is None:
            weights = {name: released.schema.columns[name].importance for name in names}
        unknown = sorted(set(weights) - set(names))
        missing = [name for name in names if name not in weights]
        if unknown or missing:
            raise ParameterError(
                "Loss: weights name the quasi-identifiers, each once; unknown: "
                f"{', '.join(unknown) or 'none'}, "
                f"missing: {', '.join(missing) or 'none'}"
            )
        total = float(np.sum([weights[name] for name in names]))
        require(total > 0 and min(weights.values()) >= 0, "Loss: weights cannot be negative and not all 0")
        return {name: weights[name] / total for name in names}


@dataclass(frozen=True)
class Granularity(Measure[Rows | None, ReleasedTable]):
    """1 - loss: the share of precision that is left; `weights` as for `Loss`."""

    weights: _Weights = None
    key: ClassVar[str] = "granularity"
    supposes_truth: ClassVar[bool] = True

    def score(self, original: Rows | None, released: ReleasedTable) -> Score:
        """The complement of the loss; parts per attribute."""
        lost = Loss(self.weights).score(original, released)
        return Score(
            measure=self.key,
            value=1.0 - lost.value,
            better="higher",
            meaning="share of the quasi-identifiers' precision that is left, a suppressed record counting 0",
            parts=MappingProxyType({name: 1.0 - part for name, part in lost.parts.items()}),
        )
