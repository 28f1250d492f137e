"""What published rows show of a mask, so that the mask itself can say whether they disprove its parameters.

A column that a later step changed shows nothing of an earlier one; where a later step left out or repeated records, nothing can
be counted any more. What cannot be seen disproves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.core.plain_data import Plain
from sfumato.data.records import NumberColumn, Records, kind_of
from sfumato.data.schema import Schema
from sfumato.data.texts.values import CodedText
from sfumato.masking.columns import strata_of

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.masking.base import Mask

Int = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ShownRows:
    """The columns that are as the mask left them, and what it tells of itself; `complete` says whether the rows are those that it
    left, each once."""

    table: pa.Table = field(repr=False)
    schema: Schema = field(repr=False)
    facts: Plain = field(default_factory=lambda: MappingProxyType({}), repr=False)
    complete: bool = True

    def before(self, later: Sequence[Mask], facts: Plain) -> ShownRows:
        """What the rows still show of a step that told these facts, and came before others."""
        changed = {name for step in later if not step.selects for name in self.columns_of(step)}
        kept = [name for name in self.table.column_names if name not in changed]
        complete = self.complete and all(step.keeps_rows for step in later)
        return replace(self, table=self.table.select(kept), facts=facts, complete=complete)

    def columns_of(self, mask: Mask) -> tuple[str, ...]:
        """The columns that a mask changes, as far as they are published."""
        return mask.columns_of(self.schema, tuple(self.schema.columns))

    def shown(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the columns that show what the mask left."""
        return tuple(name for name in names if name in self.table.column_names)

    def groups(self, names: Iterable[str]) -> list[Int]:
        """The rows that share each combination of values of these columns, as far as they are shown."""
        return strata_of(self.table, self.shown(names), ()) if self.table.num_rows else []

    def are_shared_by(self, k: int, names: Iterable[str]) -> bool:
        """Whether every combination of values of these columns can be one that at least k rows had."""
        return not self.complete or all(rows.size >= k for rows in self.groups(names))

    def are_numbers(self, names: Iterable[str]) -> bool:
        """Whether those of the columns that are shown can be columns of numbers."""
        described, types = self.schema.columns, self.table.schema
        return all(kind_of(types.field(name).type, described[name]) == "number" for name in self.shown(names))

    def numbers(self, names: Iterable[str]) -> list[NumberColumn]:
        """Those of the columns that show numbers."""
        numbers = [name for name in self.shown(names) if self.are_numbers((name,))]
        return list(Records.of(self.table, self.schema, numbers).numbers)

    def texts(self, name: str) -> dict[str, int]:
        """How many rows show each text of a column."""
        coded = CodedText.of(self.table.column(name))
        return dict(zip(coded.values.to_pylist(), coded.counts().tolist(), strict=True))
