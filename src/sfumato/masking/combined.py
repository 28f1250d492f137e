"""Several masks, one after the other: noise on the numbers, PRAM on the categories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa

from sfumato.core import registry
from sfumato.core.outcome import Outcome
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import Each, Range
from sfumato.data.masked import Masked
from sfumato.data.microdata import Microdata
from sfumato.data.records import Kind, Records
from sfumato.data.schema import Schema
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.columns import in_memory
from sfumato.masking.engine_rows import EngineChange, EngineRows
from sfumato.masking.shown_rows import ShownRows
from sfumato.masking.transparency import Test, VisibleTable, can_be_published_by, transparency_of


class _AnyMask(Range):
    """A mask, or its name and parameters; what is wrong with these the mask itself says."""

    words = "a mask"

    def settled(self, value: Any) -> Mask:
        mask = registry.make("mask", value) if isinstance(value, Mapping) else value
        if not isinstance(mask, Mask):
            raise self.refuse(value)
        return mask


@dataclass(frozen=True, kw_only=True)
class Combined(Mask):
    """Apply `masks` in turn, each to its own columns.

    >>> import sfumato as sf
    >>> both = sf.Combined(masks=(sf.AdditiveNoise(0.1, columns=("age",)), sf.Pram(stay=0.8, columns=("sex",))))
    """

    masks: Annotated[tuple[Mask, ...], Each(_AnyMask(), at_least=1), "the masks, in the order in which they are applied"]
    handles: ClassVar[frozenset[Kind]] = frozenset({"number", "ordered", "category"})
    refuses_constant: ClassVar[bool] = False  # each part says itself what it refuses

    def coherent(self) -> Iterable[str]:
        if self.columns is not None or self.strata:
            yield "name columns and strata in the masks it combines"
        if len(self.masks) > 1 and any(mask.synthetic for mask in self.masks):
            yield "a mask that makes every published column anew cannot be combined with others"

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
            masked = outcome.result
            rows = rows if masked.rows is None else rows[masked.rows]
            people = in_memory(masked.table, people.schema)
        table = outcomes[-1].result.table
        return Change(
            {name: table.column(name) for name in records.names},
            rows=None if np.array_equal(rows, np.arange(records.size)) else rows,
            unrelated=any(outcome.result.rows is None for outcome in outcomes),
            published={"steps": [dict(outcome.result.transparency) for outcome in outcomes]},
            details={"steps": [dict(outcome.details) for outcome in outcomes]},
        )

    def in_engine(self, rows: EngineRows) -> EngineChange:
        """Each part masks what the parts before it made; draws of a part are its own."""
        changes: list[EngineChange] = []
        for place, mask in enumerate(self.masks):
            change = mask.in_engine((changes[-1].rows if changes else rows).at_step(place))
            changes.append(change)
        steps = [transparency_of(mask, each.columns, [each.published]) for mask, each in zip(self.masks, changes, strict=True)]
        names = tuple(dict.fromkeys(name for change in changes for name in change.columns))
        last = replace(changes[-1].rows, step=rows.step)
        return EngineChange(last, names, {"steps": steps}, {"steps": [dict(change.details) for change in changes]})

    def columns_of(self, schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
        """The columns of all parts, each once."""
        return tuple(dict.fromkeys(name for mask in self.masks for name in mask.columns_of(schema, names)))

    def changed_columns(self, names: Sequence[str], published: Plain) -> tuple[str, ...]:
        """The columns that some part changes, as the parts tell."""
        steps = published.get("steps")
        stated = [step.get("masked_columns") for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
        return tuple(dict.fromkeys(str(name) for columns in stated if isinstance(columns, list) for name in columns))

    def tells(self, names: tuple[str, ...]) -> Plain:
        """What each part tells, in order."""
        return {"steps": Test(self._are_steps)}

    def _are_steps(self, steps: Any, visible: VisibleTable) -> bool:
        """The rows that a part left are unknown where others came after it."""
        hidden = [replace(visible, rows=None)] * (len(self.masks) - 1)
        return (
            isinstance(steps, list)
            and len(steps) == len(self.masks)
            and all(
                can_be_published_by(mask, step, table)
                for mask, step, table in zip(self.masks, steps, [*hidden, visible], strict=True)
            )
        )

    @property
    def draws(self) -> bool:
        """Whether any part draws."""
        return any(mask.draws for mask in self.masks)

    @property
    def truthful(self) -> bool:
        """Whether all parts are."""
        return all(mask.truthful for mask in self.masks)

    @property
    def keeps_rows(self) -> bool:
        """Whether all parts do."""
        return all(mask.keeps_rows for mask in self.masks)

    def disproved_by(self, shown: ShownRows) -> bool:
        """Whether what later parts left as it was disproves a part."""
        steps = shown.facts.get("steps", [{}] * len(self.masks))
        return any(
            mask.disproved_by(shown.before(self.masks[place + 1 :], facts))
            for place, (mask, facts) in enumerate(zip(self.masks, steps, strict=True))
        )

    def keeps(self) -> tuple[Kept, ...]:
        """What all parts keep."""
        first, *others = (mask.keeps() for mask in self.masks)
        return tuple(kept for kept in first if all(kept in other for other in others))
