"""Rank swapping: every value moves to another record whose rank is at most p away.

Walking up the sorted column, each still unswapped rank i swaps its value with a uniformly drawn unswapped rank l,
i < l ≤ i + p; every column by itself.
Moore, "Controlled data-swapping techniques for masking public use microdata sets", US Bureau of the Census 1996.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported, all_at_once
from sfumato.core.plain_data import Plain
from sfumato.kernels.changes.rank_swapping import window_partners
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.engine_rows import EngineChange, EngineRows
from sfumato.masking.engine_summaries import masked_columns, summaries
from sfumato.masking.swapping.keyed_blocks import swapped_in_blocks
from sfumato.masking.swapping.rank_exchange import RankExchange
from sfumato.masking.transparency import Test
from sfumato.masking.unchanged import MOST_UNCHANGED

#: What the release says of the law by which an engine swaps.
_WITHIN, _BLOCKS = "swapped_within", "blocks"


@dataclass(frozen=True)
class RankSwapping(RankExchange):
    """Swap values within a window of `p` ranks.

    `p`: how many ranks a value may move: in percent of the column's known values (above 0, at most 100, rounded down to
    ranks), or with `unit="ranks"` as that many ranks. Each rank is swapped at most once. A rank for which no unswapped
    partner is left keeps its value; that happens among the last p ranks only, and `details["unpaired"]` counts it. Equal values
    that change places change nothing: `details["unchanged"]` has the share of values that came out as they were, and a column
    with more than 95 % of them is refused (see `masking.unchanged` for columns of nearly one value).

    Every column keeps its values exactly; relations between columns fade as p grows. An intruder who knows p knows that the
    true value lies within p ranks of the published one, and few records may fit on every column at once;
    `DistributionRankSwapping` has no such hard border.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> table = pa.table({"income": [float(i) for i in range(1000)]})
    >>> masked = sf.RankSwapping(p=2, columns=("income",)).apply(table, seed=1).result
    >>> moved = [abs(new - old) for new, old in zip(masked.table["income"].to_pylist(), range(1000))]
    >>> max(moved) <= 20, masked.transparency["window"]
    (True, {'income': 20})
    """

    def partners(self, count: int, ranks: int, draws: Draws) -> NDArray[np.int64]:
        """Pairs at most `ranks` apart."""
        return window_partners(draws.uniform(count), ranks)

    def in_engine(self, rows: EngineRows) -> EngineChange:
        """Blocks of one rank more than the window, cut at a random place and each put into a random order: another law than
        that of `partners`, with the same window. The release says so (`swapped_within`)."""
        name, names = type(self).__name__, masked_columns(self, rows)
        ordered = [each for each in names if rows.column_kind(each) != "number"]
        all_at_once(
            Unsupported,
            name,
            (f"column '{each}' holds ordered categories, which are swapped in this process" for each in ordered),
        )
        columns = summaries(self, rows, names, moments=False)
        self.refuse_no_rank(name, {each.name: each.count for each in columns.values()})
        reach, unchanged, source = {}, {}, rows
        for column in columns.values():
            reach[column.name] = min(self.ranks(column.count), column.count)
            rows, unchanged[column.name] = swapped_in_blocks(rows, source, name, column, reach[column.name], whole=self.whole)
        faults = (
            f"column '{each}' would be published nearly as it is: {100 * share:.1f} % of its known values come out unchanged; "
            "use a larger p, or mask such a column of few values by PRAM"
            for each, share in unchanged.items()
            if share > MOST_UNCHANGED
        )
        all_at_once(Unsupported, name, faults)
        published = {**self.published_ranks({each: self.ranks(columns[each].count) for each in names}), _WITHIN: _BLOCKS}
        return EngineChange(rows, names, published, {"unchanged": unchanged})

    def tells(self, names: tuple[str, ...]) -> Plain:
        """The window of each column; an engine also says that it swapped within blocks."""
        return {**super().tells(names), _WITHIN: Test(lambda stated, _: stated == _BLOCKS)}

    def published_ranks(self, ranks: Mapping[str, int]) -> Mapping[str, Mapping[str, float]]:
        """The window of each column."""
        return {"window": ranks}
