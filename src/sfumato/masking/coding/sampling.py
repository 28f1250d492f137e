"""Sampling: publish a random part of the records, so that nobody knows who is in it.

A record that is unique in the sample need not be unique in the population. Skinner, Marsh, Openshaw, Wymer, "Disclosure
control for census microdata", Journal of Official Statistics 10(1), 1994; Hundepool et al., "Statistical disclosure
control", Wiley 2012, section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sfumato.core.errors import SfumatoError, Unsupported
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import Probability
from sfumato.data.microdata import Microdata
from sfumato.data.records import Kind, NumberColumn, Records
from sfumato.engines.digests.keyed_draws import exact_draw
from sfumato.engines.expressions import Compare, Literal
from sfumato.engines.plan import AggregateColumn
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.engine_rows import EngineChange, EngineRows
from sfumato.masking.engine_summaries import masked_columns, value_of_rank


@dataclass(frozen=True)
class Sampling(Mask):
    """Publish a simple random sample of the records, without replacement, in random order.

    `share` is the part that is published, rounded to whole records; with `strata` each stratum is sampled with the same
    share. Values are not changed: who is known to be in the sample is as exposed as before, so combine it with another
    mask for rare people. Means, variances and frequencies are right on average; an analyst multiplies weights by 1/share,
    which the release tells.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(1000), schema=sf.data.sample_schema())
    >>> len(sf.Sampling(0.1).apply(people, seed=1).result)
    100
    """

    share: Annotated[Probability, "the share of the records that is published"]
    handles: ClassVar[frozenset[Kind]] = frozenset({"number", "ordered", "category"})
    refuses_constant: ClassVar[bool] = False
    selects: ClassVar[bool] = True

    def check(self, records: Records, people: Microdata) -> None:
        """The sample must be neither empty nor everybody."""
        self._refuse_size(records.size)

    def _refuse_size(self, count: int) -> None:
        size = self._size(count)
        if not 0 < size < count:
            what = "nobody" if size == 0 else "everybody"
            raise Unsupported(
                f"Sampling: a share of {self.share:g} of {count:,} records (in a stratum, where there are strata) is "
                f"{what}; choose another share or coarser strata"
            )

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Draw the records; the order is random, because a place in the file is knowledge too."""
        rows = draws.sample(records.size, self._size(records.size))
        values = {
            column.name: column.values[rows] if isinstance(column, NumberColumn) else column.codes[rows]
            for column in records.columns
        }
        return Change(values, rows, published=self.tells(records.names), details={"records": int(rows.size)})

    def in_engine(self, rows: EngineRows) -> EngineChange:
        """The records with the smallest draws: as many as asked for, all sets of them equally likely."""
        self._refuse_size(rows.size)
        names, size = masked_columns(self, rows), self._size(rows.size)
        sample = sampled(rows, type(self).__name__, size)
        return EngineChange(sample, names, self.tells(names), {"records": size})

    def tells(self, names: tuple[str, ...]) -> Plain:
        """The share that is published."""
        return {"share": self.share}

    def keeps(self) -> tuple[Kept, ...]:
        """On average the distribution."""
        return (Kept("mean"), Kept("variance"), Kept("covariance"), Kept("frequencies"))

    def _size(self, count: int) -> int:
        return round(self.share * count)


def sampled(rows: EngineRows, purpose: str, size: int) -> EngineRows:
    """So many of the rows, those with the smallest keyed draws; every set of that size is equally likely."""
    drawn, held = rows.drawn([purpose])
    order = exact_draw(held[purpose])
    last = value_of_rank(drawn, order, size - 1)
    condition = Compare("<=", order, Literal(int(last)))
    kept = drawn.ask([AggregateColumn("rows", "count")], where=condition)
    if int(kept.column(0)[0].as_py()) != size:  # two draws are one: once in 2^52 pairs
        raise SfumatoError(f"{purpose}: two records drew the same number; try again")
    return drawn.filtered(condition, size)
