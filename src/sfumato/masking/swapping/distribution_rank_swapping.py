"""Rank swapping by a distribution ("RS p-dist"): values move by a normally distributed number of ranks.

For each still unswapped rank i in ascending order, r is drawn from N(p/2, (p/2)²) and i swaps with the unswapped rank
nearest to i + r: most values move little, and no rank is out of reach.
Nin, Herranz, Torra, "Rethinking rank swapping to decrease disclosure risk", Data and Knowledge Engineering 64, 2008.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.changes.rank_swapping import distance_partners
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.swapping.rank_exchange import RankExchange


@dataclass(frozen=True)
class DistributionRankSwapping(RankExchange):
    """Swap values over normally distributed distances, with mean and standard deviation p/2.

    `p`: in percent of the column's known values, or with `unit="ranks"` in ranks. A target that lies outside the column, is
    the rank itself or has been swapped already is replaced by the nearest unswapped rank, the higher one of two as near.
    Every rank is swapped, except the last one where their number is odd. A column that comes out nearly as it was, because
    equal values changed places, is refused; `details["unchanged"]` has the share.

    Every column keeps its values exactly. Because a value may move by more than p ranks, an intruder who knows p cannot
    exclude any record for certain, as with the window of `RankSwapping`.

    >>> import sfumato as sf
    >>> masked = sf.DistributionRankSwapping(p=10, columns=("age",)).apply(sf.data.sample_table(300), seed=1).result
    >>> masked.transparency["mean_distance"]
    {'age': 15.0}
    """

    def partners(self, count: int, ranks: int, draws: Draws) -> NDArray[np.int64]:
        """Pairs whose distance was drawn."""
        half = ranks / 2
        distances = np.rint(half + half * draws.normal(count))
        return distance_partners(np.clip(distances, -count, count).astype(np.int64))

    def published_ranks(self, ranks: Mapping[str, int]) -> Mapping[str, Mapping[str, float]]:
        """Mean and standard deviation of the distance drawn for each column."""
        half = {column: reach / 2 for column, reach in ranks.items()}
        return {"mean_distance": half, "distance_deviation": half}
