"""Several masks, one after the other: noise on the numbers, PRAM on the categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sfumato.core import randomness as sources
from sfumato.core.outcome import Outcome
from sfumato.core.params import require
from sfumato.core.progress import Progress, silent
from sfumato.core.randomness import Randomness
from sfumato.core.registry import from_mapping
from sfumato.data.masked import Masked
from sfumato.data.microdata import Microdata
from sfumato.data.records import Kind, Records
from sfumato.kernels.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.columns import microdata


@dataclass(frozen=True, kw_only=True)
class Combined(Mask):
    """Apply `masks` in turn, each to its own columns.

    >>> import sfumato as sf
    >>> both = sf.Combined(masks=(sf.AdditiveNoise(0.1, columns=("age",)), sf.Pram(stay=0.8, columns=("sex",))))
    """

    masks: tuple[Mask, ...]
    handles: ClassVar[frozenset[Kind]] = frozenset({"number", "ordered", "category"})

    def __post_init__(self) -> None:
        made = tuple(from_mapping(mask, Mask, "mask") if isinstance(mask, Mapping) else mask for mask in self.masks)
        object.__setattr__(self, "masks", made)
        require(bool(made) and all(isinstance(mask, Mask) for mask in made), "Combined: masks must be a list of masks")
        require(self.columns is None and not self.strata, "Combined: name columns and strata in the masks it combines")
        require(
            not any(mask.synthetic for mask in made) or len(made) == 1,
            "Combined: a mask that makes every published column anew cannot be combined with others",
        )

    def apply(
        self, data: Any, *, randomness: Randomness | None = None, seed: int | str | None = None, progress: Progress = silent
    ) -> Outcome[Masked]:
        """Mask the data by each mask in turn."""
        from sfumato.engines.sources import read

        require(randomness is None or seed is None, "pass randomness or a seed, not both")
        source = randomness if randomness is not None else sources.default(seed)
        people = microdata(data)
        for mask in self.masks:  # refuse what cannot be done before anything is touched
            self._check_part(mask, people)
        outcomes: list[Outcome[Masked]] = []
        rows = None
        for mask in self.masks:
            outcome = mask.apply(people, randomness=source, progress=progress)
            outcomes.append(outcome)
            behind = outcome.result.rows
            rows = behind if rows is None or behind is None else rows[behind]
            people = read(outcome.result.table, people.schema)
        last = outcomes[-1].result
        told = {"method": self.described(), "steps": [dict(outcome.result.transparency) for outcome in outcomes]}
        columns = tuple(dict.fromkeys(name for outcome in outcomes for name in outcome.result.columns))
        masked = Masked(last.table, last.schema, columns, rows, told)
        return Outcome(masked, (), self.described(), {"steps": [dict(outcome.details) for outcome in outcomes]})

    def _check_part(self, mask: Mask, people: Microdata) -> None:
        if isinstance(mask, Combined):
            for part in mask.masks:
                self._check_part(part, people)
            return
        mask.checked(people, people.table())

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Not used: each part changes its own columns."""
        raise NotImplementedError

    def keeps(self) -> tuple[Kept, ...]:
        """What all parts keep."""
        first, *others = (mask.keeps() for mask in self.masks)
        return tuple(kept for kept in first if all(kept in other for other in others))
