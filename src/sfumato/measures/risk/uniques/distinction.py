"""Separation and distinction: how well a column, or a combination of columns, tells people apart.

Separation is the share of pairs of records that differ: the number of the measure. Distinction is the number of different
values per record. A quasi-identifier close to 1 in either singles people out. Motwani, Xu, "Efficient algorithms for masking
and finding quasi-identifiers", VLDB workshop on secure data management 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np
import pyarrow as pa

from sfumato.core.ranges import Count
from sfumato.core.texts import percent
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared
from sfumato.data.microdata import Microdata
from sfumato.measures.guarantees.classes import CodedColumn, combined, require_columns
from sfumato.measures.published import as_released
from sfumato.measures.utility.shown import quasi_of


@dataclass(frozen=True)
class Separating:
    """How a combination of columns tells records apart."""

    columns: tuple[str, ...]
    distinction: float
    separation: float
    uniques: int

    def in_words(self) -> str:
        """What the numbers mean."""
        return (
            f"{', '.join(self.columns)}: {percent(self.separation)} of all pairs of records differ in it, "
            "there are "
            f"{percent(self.distinction)} as many different values as records, and {self.uniques:,} records "
            "are alone with theirs"
        )


@dataclass(frozen=True)
class AttributeDistinction(Measure[Microdata | None, Compared]):
    """Separation of all quasi-identifiers together; parts give each column and each combination of up to
    `columns` of them.
    """

    columns: Annotated[Count, "quasi-identifiers in a combination, at the most"] = 2
    key: ClassVar[str] = "distinction"

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """Share of pairs of released records that can still be distinguished."""
        table = as_released(released, original)
        names = quasi_of(table)
        listed = separations(table.table, names, self.columns)
        together = separation(table.table, names)
        parts = {" + ".join(entry.columns): entry.separation for entry in listed}
        meaning = "share of pairs of records that differ in their quasi-identifiers"
        return Score(
            self.key,
            together.separation,
            "lower",
            meaning,
            MappingProxyType(parts),
            uses_original=False,
            floor=0.0,  # without quasi-identifiers no two records differ
            interval=(together.separation, together.separation),
        )


def separations(table: pa.Table, names: tuple[str, ...], columns: int = 2) -> list[Separating]:
    """Every combination of up to that many columns, the most separating first."""
    require_columns(table, names)
    coded = {name: CodedColumn.of(table.column(name)) for name in names}
    separated = []
    for width in range(1, min(columns, len(names)) + 1):
        for chosen in combinations(names, width):
            separated.append(_separating(chosen, [coded[name] for name in chosen], table.num_rows))
    return sorted(separated, key=lambda entry: (-entry.separation, entry.columns))


def separation(table: pa.Table, names: tuple[str, ...]) -> Separating:
    """One combination of columns."""
    require_columns(table, names)
    return _separating(tuple(names), [CodedColumn.of(table.column(name)) for name in names], table.num_rows)


def _separating(names: tuple[str, ...], coded: list[CodedColumn], rows: int) -> Separating:
    keys, count = combined(coded, rows)
    sizes = np.bincount(keys, minlength=count).astype(np.int64)
    pairs = rows * (rows - 1) // 2
    same = int(sum(size * (size - 1) // 2 for size in sizes.tolist()))
    return Separating(
        columns=names,
        distinction=count / rows if rows else 0.0,
        separation=(pairs - same) / pairs if pairs else 0.0,
        uniques=int((sizes == 1).sum()),
    )
