"""Rank swapping by buckets ("RS p-buckets"): values move within their bucket of ranks or to a higher one.

The sorted column is cut into buckets of p ranks. Each still unswapped rank of bucket r draws a bucket s ≥ r with
probability proportional to 2^-(s-r), and swaps with a uniformly drawn unswapped rank of it.
Nin, Herranz, Torra, "Rethinking rank swapping to decrease disclosure risk", Data and Knowledge Engineering 64, 2008.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.changes.rank_swapping import bucket_partners
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.swapping.rank_exchange import RankExchange


@dataclass(frozen=True)
class BucketRankSwapping(RankExchange):
    """Swap values between buckets of `p` ranks, near buckets more often than far ones.

    `p`: the size of a bucket in percent of the column's known values (rounded down to ranks), or with `unit="ranks"` in
    ranks. Buckets without an unswapped rank are passed over; a rank for which none is left at all keeps its value, and
    `details["unpaired"]` counts it (at most one in a column). A column that comes out nearly as it was, because equal values
    changed places, is refused; `details["unchanged"]` has the share.

    Every column keeps its values exactly. A value may move any number of ranks, although rarely far, so that an intruder
    who knows p cannot exclude a record for certain.

    >>> import sfumato as sf
    >>> masked = sf.BucketRankSwapping(p=5, columns=("age",)).apply(sf.data.sample_table(200), seed=1).result
    >>> masked.transparency["bucket_size"]
    {'age': 10}
    """

    def partners(self, count: int, ranks: int, draws: Draws) -> NDArray[np.int64]:
        """Pairs of the same bucket or of two buckets."""
        return bucket_partners(draws.uniform(count), draws.uniform(count), ranks)

    def published_ranks(self, ranks: Mapping[str, int]) -> Mapping[str, Mapping[str, float]]:
        """The ranks in a bucket of each column."""
        return {"bucket_size": ranks}
