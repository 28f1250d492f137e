"""Non-uniform entropy: how many bits are needed to guess the original values back from the shown ones.

A cell that shows text b for the value a costs -log2 of the share of a among the original records below
b. Divided by the cost of suppressing every cell, so that 0 means nothing lost and 1 everything. De Waal,
Willenborg, "Information loss through global recoding and local suppression", Netherlands Official
Statistics 14, 1999.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.view import Measure, Score
from sfumato.data.microdata import ReleasedTable
from sfumato.measures.utility.shown import OriginalColumn, Rows, joint_counts, rows_of, shown_columns, suppressed_counts


@dataclass(frozen=True)
class NonUniformEntropy(Measure[Rows, ReleasedTable]):
    """Bits lost by all cells together as a share of what suppressing everything would lose; parts are
    bits per attribute. A cell that shows a set of values loses log₂(records with one of them/records with the value).
    """

    key: ClassVar[str] = "entropy"
    supposes_truth: ClassVar[bool] = True

    def score(self, original: Rows, released: ReleasedTable) -> Score:
        """The normalised loss in bits."""
        rows = rows_of(original)
        columns = shown_columns(original, released)
        parts: dict[str, float] = {}
        most = 0.0
        for column, joint in zip(columns, joint_counts(columns, rows), strict=True):
            source = OriginalColumn.of(rows, column.name)
            below = np.array([source.below(meaning) @ source.counts for meaning in column.meanings], dtype=np.float64)
            bits = float((joint * _bits(below[:, None], source.counts[None, :])).sum())
            all_bits = _bits(np.float64(source.counts.sum()), source.counts)
            parts[column.name] = bits + float(suppressed_counts(joint, source, released.suppressed) @ all_bits)
            most += float(source.counts @ all_bits)
        value = float(sum(parts.values())) / most if most else 0.0
        return Score(
            measure=self.key,
            value=value,
            better="lower",
            meaning="share of the quasi-identifiers' information, in bits, that cannot be guessed back",
            parts=MappingProxyType(parts),
        )


def _bits(whole: NDArray[np.float64] | np.float64, part: NDArray[np.int64]) -> NDArray[np.float64]:
    """log2(whole/part), 0 where the part is empty."""
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.log2(whole / part)
    return np.where(np.isfinite(bits) & (bits > 0), bits, 0.0)
