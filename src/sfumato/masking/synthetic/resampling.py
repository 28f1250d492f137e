"""Resampling: cells or records drawn again, with replacement, from those that are there.

Each column on its own (nothing links a row to its record any more), whole records (the bootstrap), or numbers averaged over
several sorted samples and handed out in the original order of ranks. Heer, "A bootstrap procedure to preserve statistical
confidentiality in contingency tables", Eurostat seminar on statistical confidentiality, 1993; Domingo-Ferrer, Mateo-Sanz, "On
resampling for statistical confidentiality in contingency tables", Computers and Mathematics with Applications 38, 1999.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import Count
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, Kind, NumberColumn, Records, magnitude
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask

Real = NDArray[np.float64]


@dataclass(frozen=True)
class Resampling(Mask):
    """Draw the masked cells again from the column they stand in.

    `how`: "independent" (the default) resamples each masked column on its own, missing cells included: a row then says
    nothing about its record, and all dependence between columns is gone; the yardstick of what a mask can protect.
    "ranks" draws `samples` samples of each column, sorts them, averages them place by place and gives every record the
    average at its own rank: marginals and the order of records stay, values change little; for numbers and ordered
    categories. Missing cells stay missing. "joint" draws whole records with replacement: everything stays on average, and
    **real records are published as they are**, some twice and some not at all; it protects by nothing but the doubt whether
    somebody was drawn.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(1_000), schema=sf.data.sample_schema())
    >>> sf.Resampling(columns=("age", "sex")).apply(people, seed=1).result.table.num_rows
    1000
    """

    how: Annotated[Literal["independent", "ranks", "joint"], "what is drawn together"] = "independent"
    samples: Annotated[Count, "the samples that are averaged by rank"] = 3
    handles: ClassVar[frozenset[Kind]] = frozenset({"number", "ordered", "category"})

    def check(self, records: Records, people: Microdata) -> None:
        """Ranks need an order; a stratum of one record would be published as it is."""
        loose = [column.name for column in records.categories if not column.ordered]
        if self.how == "ranks" and loose:
            raise Unsupported(
                f"Resampling: column '{loose[0]}' holds categories without an order, and how='ranks' needs one; use "
                "how='independent', or leave it out of columns=(…)"
            )
        if records.size < 2:
            raise Unsupported("Resampling: a single record (in one stratum) resampled is that record; use larger strata")

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Draw again, as `how` says."""
        published = self.tells(records.names)
        if self.how == "joint":
            rows = draws.below(np.full(records.size, records.size))
            drawn = records.take(rows)
            return Change({column.name: _cells(column) for column in drawn.columns}, rows=rows, published=published)
        values: dict[str, NDArray[Any]] = {}
        for position, column in enumerate(records.columns):
            context.progress("resampling", position, len(records.columns))
            if self.how == "independent":
                values[column.name] = _cells(column.take(draws.below(np.full(records.size, records.size))))
            else:
                values[column.name] = self._averaged(column, draws)
        return Change(values, published=published)

    @property
    def keeps_rows(self) -> bool:
        """Records that are drawn whole may be drawn twice or not at all."""
        return self.how != "joint"

    def tells(self, names: tuple[str, ...]) -> Plain:
        """What was resampled."""
        return {"model": {"independent": "columns", "ranks": "ranks", "joint": "records"}[self.how] + " resampled"}

    def keeps(self) -> tuple[Kept, ...]:
        """Marginals on average; dependence only where records stay whole; the order of records with ranks and
        without strata."""
        if self.how == "ranks":
            return (Kept("mean"),) if self.strata else (Kept("mean"), Kept("order", exactly=True))
        marginal = (Kept("mean"), Kept("variance"), Kept("frequencies"))
        return marginal if self.how == "independent" else (*marginal, Kept("covariance"), Kept("correlation"))

    def _averaged(self, column: NumberColumn | CategoryColumn, draws: Draws) -> NDArray[Any]:
        cells = _cells(column).copy()
        present = np.flatnonzero(column.known)
        if not present.size:
            return cells
        pool = cells[present].astype(np.float64)
        unit = magnitude(pool)
        pool = pool / unit
        total: Real = np.zeros(present.size)
        for _ in range(self.samples):
            total += np.sort(pool[draws.below(np.full(present.size, present.size))])
        averages = total / self.samples * unit
        cells[present[np.argsort(pool, kind="stable")]] = (
            averages if isinstance(column, NumberColumn) else np.rint(averages).astype(cells.dtype)
        )
        return cells


def _cells(column: NumberColumn | CategoryColumn) -> NDArray[Any]:
    return column.values if isinstance(column, NumberColumn) else column.codes
