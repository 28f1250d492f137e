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

from sfumato.kernels.changes.rank_swapping import window_partners
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.swapping.rank_exchange import RankExchange


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

    def published_ranks(self, ranks: Mapping[str, int]) -> Mapping[str, Mapping[str, float]]:
        """The window of each column."""
        return {"window": ranks}
