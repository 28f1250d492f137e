"""Several masks, one after the other: noise on the numbers, PRAM on the categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from sfumato.core import registry
from sfumato.core.outcome import Outcome
from sfumato.core.params import require
from sfumato.data.masked import Masked
from sfumato.data.microdata import Microdata
from sfumato.data.records import Kind, Records
from sfumato.kernels.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.columns import in_memory


@dataclass(frozen=True, kw_only=True)
class Combined(Mask):
    """Apply `masks` in turn, each to its own columns.

    >>> import sfumato as sf
    >>> both = sf.Combined(masks=(sf.AdditiveNoise(0.1, columns=("age",)), sf.Pram(stay=0.8, columns=("sex",))))
    """

    masks: tuple[Mask, ...]
    handles: ClassVar[frozenset[Kind]] = frozenset({"number", "ordered", "category"})
    refuses_constant: ClassVar[bool] = False  # each part says itself what it refuses

    def __post_init__(self) -> None:
        made = tuple(registry.make("mask", mask) if isinstance(mask, Mapping) else mask for mask in self.masks)
        object.__setattr__(self, "masks", made)
        require(bool(made) and all(isinstance(mask, Mask) for mask in made), "Combined: masks must be a list of masks")
        require(self.columns is None and not self.strata, "Combined: name columns and strata in the masks it combines")
        require(
            not any(mask.synthetic for mask in made) or len(made) == 1,
            "Combined: a mask that makes every published column anew cannot be combined with others",
        )

    def records(self, people: Microdata, table: pa.Table) -> Records:
        """The columns of all parts, each once."""
        columns = {column.name: column for mask in self.masks for column in mask.records(people, table).columns}
        return Records(tuple(columns.values()), table.num_rows)

    def check(self, records: Records, people: Microdata) -> None:
        """Every part must be able to mask its columns, before the first one is touched."""
        for mask in self.masks:
            mask.checked(people, people.table())

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Each part masks what the parts before it made."""
        people, rows = context.people, np.arange(records.size, dtype=np.int64)
        outcomes: list[Outcome[Masked]] = []
        for mask in self.masks:
            outcome = mask.apply(people, seed=draws.key(), progress=context.progress)
            outcomes.append(outcome)
            made = outcome.result
            rows = rows if made.rows is None else rows[made.rows]
            people = in_memory(made.table, people.schema)
        table = outcomes[-1].result.table
        return Change(
            {name: table.column(name) for name in records.names},
            rows=None if np.array_equal(rows, np.arange(records.size)) else rows,
            unrelated=any(outcome.result.rows is None for outcome in outcomes),
            published={"steps": [dict(outcome.result.transparency) for outcome in outcomes]},
            details={"steps": [dict(outcome.details) for outcome in outcomes]},
        )

    def keeps(self) -> tuple[Kept, ...]:
        """What all parts keep."""
        first, *others = (mask.keeps() for mask in self.masks)
        return tuple(kept for kept in first if all(kept in other for other in others))
