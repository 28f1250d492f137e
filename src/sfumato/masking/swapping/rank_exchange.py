"""What the kinds of rank swapping share: a column is sorted, pairs of ranks are drawn, and their values change places.

Missing values have no rank and stay where they are; equal values are ranked as they stand, and a column that comes out nearly
as it was because of them is refused. Only the drawing of the pairs differs from method to method.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import ParameterError, all_at_once
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import Number
from sfumato.data.microdata import Microdata
from sfumato.data.records import Kind, NumberColumn, Records
from sfumato.kernels.changes.rank_swapping import stable_order
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.transparency import Test, VisibleTable
from sfumato.masking.unchanged import refuse_unchanged

Int = NDArray[np.int64]

_WHAT_TO_DO = "use a larger p or coarser strata, or mask such a column of few values by PRAM"


@dataclass(frozen=True)
class RankExchange(Mask):
    """Swap values between ranks that `partners` pairs; `p` says how far, in the `unit` "percent" of a column's values or
    "ranks"."""

    p: Annotated[float, Number(), "how far a value may move"]
    unit: Annotated[Literal["percent", "ranks"], "what p counts: percent of a column's values, or ranks"] = "percent"

    handles: ClassVar[frozenset[Kind]] = frozenset({"number", "ordered"})
    shows_missing: ClassVar[bool] = True

    def coherent(self) -> Iterable[str]:
        if self.unit == "percent" and not 0 < self.p <= 100:
            yield "p is a percentage of the values and must lie above 0 and at most at 100"
        if self.unit == "ranks" and (not 1 <= self.p <= 2**53 or self.p != int(self.p)):
            yield "p counted in ranks must be a whole number of at least 1 and at most 2^53"

    @abstractmethod
    def partners(self, count: int, ranks: int, draws: Draws) -> Int:
        """For each of `count` ranks the one it swaps with (itself: none), when `p` stands for so many ranks."""

    @abstractmethod
    def published_ranks(self, ranks: Mapping[str, int]) -> Mapping[str, Mapping[str, float]]:
        """What is published about the method, from the ranks that `p` stands for in each column."""

    def ranks(self, count: int) -> int:
        """How many ranks `p` stands for in a column of so many values; a percentage is rounded down."""
        # 0.1 percent is a thousandth, not the nearest binary fraction
        return int(self.p) if self.unit == "ranks" else math.floor(Fraction(repr(self.p)) * count / 100)

    def check(self, records: Records, people: Microdata) -> None:
        """Refuse where nothing could be swapped."""
        name = type(self).__name__
        where = f"{name}, one stratum" if self.strata else name
        self.refuse_no_rank(where, {column.name: int(column.known.sum()) for column in records.columns})

    def refuse_no_rank(self, where: str, counts: Mapping[str, int]) -> None:
        """Refuse columns with so many known values that `p` is less than one rank of them."""
        faults = [
            f"p = {self.p:g} percent of the {count} values of column '{name}' is less than one rank, so nothing would be "
            f"swapped; give at least p = {math.ceil(10000 / count) / 100:g}, or unit='ranks'"
            for name, count in counts.items()
            if count and self.ranks(count) < 1
        ]
        all_at_once(ParameterError, where, faults)

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Swap each column by itself."""
        values, reach, unpaired = {}, {}, {}
        for position, column in enumerate(records.columns):
            context.progress("swapping ranks", position, len(records.columns))
            original = column.values if isinstance(column, NumberColumn) else column.codes
            rows = np.flatnonzero(column.known)
            order = stable_order(np.ascontiguousarray(original[rows], dtype=np.float64))
            order = order if rows.size == records.size else rows[order]
            reach[column.name] = self.ranks(rows.size)
            partner = self.partners(rows.size, reach[column.name], draws)
            swapped = original.copy()
            swapped[order] = original[order][partner]
            values[column.name] = swapped
            unpaired[column.name] = int(np.count_nonzero(partner == np.arange(rows.size)))
        context.progress("swapping ranks", len(records.columns), len(records.columns))
        unchanged = refuse_unchanged(type(self).__name__, records.columns, values, _WHAT_TO_DO)
        return Change(values, published=self.published_ranks(reach), details={"unpaired": unpaired, "unchanged": unchanged})

    def tells(self, names: tuple[str, ...]) -> Plain:
        """Ranks, column by column; a percentage stands for as many as there are values."""
        if self.unit == "ranks":
            return self.published_ranks({name: self.ranks(0) for name in names})
        return {what: Test(partial(self._fit, what, names)) for what in self.published_ranks({})}

    def _fit(self, what: str, names: tuple[str, ...], published: Any, visible: VisibleTable) -> bool:
        """Whether a percentage can stand for these ranks: for no more than in a column without missing values."""
        if not isinstance(published, dict) or set(published) != set(names):
            return False
        most = None if visible.rows is None else self.published_ranks(dict.fromkeys(names, self.ranks(visible.rows)))[what]
        return all(
            type(value) in (int, float) and 0 <= value < math.inf and (most is None or value <= most[name])
            for name, value in published.items()
        )

    def keeps(self) -> tuple[Kept, ...]:
        """Every column has the values it had, so everything about one column alone is the same."""
        return tuple(Kept(what, exactly=True) for what in ("multiset", "mean", "variance", "frequencies"))
