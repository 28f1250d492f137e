"""Ambiguity: how many different original records a released record could have been.

The number of values below each shown text, multiplied over the quasi-identifiers, on average over records; a suppressed record
could have been any. Goldberger, Tassa, "Efficient anonymizations with enhanced utility", Transactions on Data Privacy 3(2), 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from sfumato.core.view import Measure, Score
from sfumato.data.microdata import ReleasedTable
from sfumato.measures.utility.shown import Rows, records_of, shown_columns

#: The part that gives the scale.
ALL = "all combinations"


@dataclass(frozen=True)
class Ambiguity(Measure[Rows | None, ReleasedTable]):
    """Mean over records of Π values of the domain below what is shown; 1 where nothing was generalised.

    The product depends on all columns of a record together, so it does not divide into parts per column; the parts are
    the number of all combinations of the domain, and the mean as a share of them.
    """

    key: ClassVar[str] = "ambiguity"
    supposes_truth: ClassVar[bool] = True

    def score(self, original: Rows | None, released: ReleasedTable) -> Score:
        """Combinations that a record could have been, on average over the records of the original."""
        columns = shown_columns(original, released)
        records = records_of(released)
        rows = np.ones(released.table.num_rows)
        everything = 1.0
        for column in columns:
            sizes = np.array([meaning.size for meaning in column.meanings], dtype=np.float64)
            rows *= sizes[column.coded.codes] if sizes.size else 1.0
            everything *= column.tree.total
        mean = (float(rows.sum()) + released.suppressed * everything) / records if records else 1.0
        return Score(
            measure=self.key,
            value=mean,
            better="lower",
            meaning="combinations of original values that a record could have been, on average; a suppressed one any",
            parts=MappingProxyType({"share of all combinations": mean / everything, ALL: everything}),
        )
