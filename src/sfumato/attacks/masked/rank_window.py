"""Rank windows: against rank swapping with known p, only records whose masked values lie within p ranks can be a person's.

The window of one attribute holds many records, the intersection over several attributes few: often one, which is then certain.
Nin, Herranz, Torra, "Rethinking rank swapping to decrease disclosure risk", Data and Knowledge Engineering 64, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from sfumato.attacks.masked.register_records import (
    MaskPart,
    RegisterColumns,
    TransparencyAttack,
    agreeing,
    only_masked,
    result_of,
    transparency_of,
)
from sfumato.core.errors import InputError, Unsupported
from sfumato.core.ranges import Positive
from sfumato.core.view import AttackResult, Detail
from sfumato.data.masked import TableView
from sfumato.measures.risk.linkage.sides import Sides, by_stratum
from sfumato.measures.risk.linkage.transparency import published_steps, published_windows
from sfumato.measures.risk.linkage.transparent_picks import pick_by_windows


@dataclass(frozen=True)
class RankWindow(TransparencyAttack):
    """The adversary knows how far rank swapping moved values and intersects the windows of all attributes.

    The window is read from the release (`transparency`); without it, or to suppose another one, give `p` in percent of the
    records or, with `unit="ranks"`, in ranks. Unless `columns` are named, a record has to agree in the quasi-identifiers that
    were not masked. `knowledge`: `Register(table, truth=…)`. Success: the expected share of people
    whose record is picked at random among the candidates. A published window holds for certain, so that a single candidate is an
    identification (`details["certain"]`); where the method has no window (p-distribution and p-bucket rank swapping) `p` is a
    supposition, the own record may lie outside, and nobody is certain.

    >>> import numpy as np, sfumato as sf
    >>> people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    >>> masked = sf.RankSwapping(p=5, columns=("age", "income")).apply(people, seed=1).result
    >>> register = sf.attacks.Register(people.table(), truth=np.arange(500))
    >>> RankWindow().run(sf.core.view.View(masked, people.schema), register).details["own_record_outside"]
    0
    """

    p: Annotated[Positive | None, "how far values moved, at the most; as published where left out"] = None
    unit: Annotated[Literal["percent", "ranks"], "what `p` is counted in"] = "percent"
    columns: RegisterColumns = None
    reads: ClassVar[tuple[str, ...]] = ("window", "mean_distance", "bucket_size")  # of rank swapping, of whatever kind

    def coherent(self) -> Iterable[str]:
        if self.p is not None and self.unit == "percent" and self.p > 100:
            yield f"p must be at most 100 percent, not {self.p}"

    def exploits(self, part: MaskPart) -> bool:
        """Values cannot leave their window; where the method has none, one is supposed."""
        return self.p is not None or bool(_windows((part,)))

    def refusal(self, view: TableView) -> InputError | None:
        """A window is published, or supposed."""
        if self.p is not None:
            return None
        steps = published_steps(transparency_of(view))
        if any("window" not in step and any(key in step for key in self.reads) for step in steps):
            return Unsupported(
                "this method of rank swapping has no window that a value cannot leave; suppose one with RankWindow(p=…)"
            )
        missing = InputError("the release does not publish a window of ranks; give it with RankWindow(p=…)")
        return self.shared(view) or missing

    def attacked(self, sides: Sides, view: TableView, parts: Sequence[MaskPart]) -> AttackResult:
        """Intersect the windows of everybody."""
        reach, certain = self._reach(sides, view, parts)
        strata = parts[0].strata if parts else ()
        if self.columns is None:
            sides = agreeing(sides, view, (*strata, *reach))
        picked = by_stratum(sides, strata, lambda part: pick_by_windows(part, reach))
        alone = int(np.count_nonzero(picked.own_found & (picked.candidates == 1)))
        outside = int(np.count_nonzero((sides.truth >= 0) & ~picked.own_found))
        how = f"choosing among the records within the rank windows of {len(reach)} attribute{'s' * (len(reach) != 1)}"
        counted = picked.candidates[picked.candidates > 0]
        details: dict[str, Detail] = {
            "certain": alone if certain else 0,
            "single_candidate": int(np.count_nonzero(picked.candidates == 1)),
            "own_record_outside": outside,
            "without_candidate": int(np.count_nonzero(picked.candidates == 0)),
            "mean_candidates": float(counted.mean()) if counted.size else 0.0,
            "window_ranks": dict(reach),
        }
        return result_of("RankWindow", sides, picked, how, details)

    def _reach(self, sides: Sides, view: TableView, parts: Sequence[MaskPart]) -> tuple[dict[str, int], bool]:
        published = _windows(parts)
        if self.p is None:
            chosen = [name for name in published if name in sides.names and (self.columns is None or name in self.columns)]
            return {name: published[name] for name in sides.shared(chosen, "RankWindow")}, True
        columns = only_masked(sides, view, self.columns, "RankWindow")
        records = sides.released.num_rows
        ranks = int(self.p) if self.unit == "ranks" else max(math.floor(self.p * records / 100), 1)
        certain = bool(published) and all(name in published and ranks >= published[name] for name in columns)
        return dict.fromkeys(columns, ranks), certain


def _windows(parts: Sequence[MaskPart]) -> dict[str, int]:
    """The published windows of columns that nothing but rank swapping has changed."""
    windows: dict[str, int] = {}
    for part in parts:
        published = published_windows(part.facts) if "window" in part.facts else {}
        windows |= {name: published[name] for name in part.own(published)}
    return windows
