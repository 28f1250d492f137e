"""Histogram: noisy counts in buckets that are declared, not taken from the data.

A record lies in one bucket, so adding or removing one record changes one count by one, and replacing one changes two counts.
Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.exact import Number
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import Count, Each, Instance
from sfumato.dp.mechanisms.calibrated import source_of
from sfumato.dp.mechanisms.statistics.noisy_counts import NoisyCounts
from sfumato.dp.mechanisms.statistics.records import Records, numbers
from sfumato.dp.ranges import EXACT, Epsilon, Rising
from sfumato.kernels.sampling.noise import discrete_laplace

#: The edges of buckets.
EDGES = Rising(EXACT, at_least=2, what="numbers that rise, at least two")


@dataclass(frozen=True)
class Histogram(NoisyCounts[Records]):
    """Noisy counts of records in half-open buckets [edge, next edge) between the `edges`, or of declared `categories`.

    Laplace noise of scale S/ε on each count is ε-private (`epsilon`); the L1 sensitivity S is `contributions` if one unit
    is added or removed and twice that if one is replaced, where `contributions` is how many records one unit may own (the caller
    bounds them). What lies in no bucket is not counted. Counts may become negative: clipping them is post-processing and
    biases totals.

    >>> Histogram(edges=(1000, 2000, 3000, 4000), epsilon=1).counts([1500, 2500, 2600]).tolist()
    [1, 2, 0]
    """

    edges: Annotated[tuple[Number, ...] | None, EDGES, "where buckets begin and end, declared by the owner"] = None
    categories: Annotated[
        tuple[str | int | float | bool, ...] | None,
        Each(Instance(object), at_least=1, different=True, what="a list of different categories"),
        "what is counted, declared by the owner",
    ] = None
    epsilon: Epsilon = 1
    contributions: Annotated[Count, "how many records one unit may own"] = 1

    def coherent(self) -> Iterable[str]:
        if (self.edges is None) == (self.categories is None):
            yield "declare the edges of buckets, or categories"

    @property
    def _edges(self) -> tuple[Fraction, ...]:
        return tuple(Fraction(edge) for edge in self.edges or ())

    @property
    def _categories(self) -> tuple[Any, ...]:
        return self.categories or ()

    @property
    def buckets(self) -> int:
        """How many counts an answer has."""
        return len(self._edges) - 1 if self.edges is not None else len(self._categories)

    def counts(self, records: Records) -> NDArray[np.int64]:
        """The counts without noise: not to be released."""
        if self.edges is not None:
            values = numbers(records).ravel()
            edges = np.array([float(edge) for edge in self._edges])
            places = np.searchsorted(edges, values[~np.isnan(values)], side="right") - 1
            inside = places[(places >= 0) & (places < self.buckets)]
            return np.bincount(inside, minlength=self.buckets).astype(np.int64)
        counts = np.zeros(self.buckets, dtype=np.int64)
        order = {category: place for place, category in enumerate(self._categories)}
        for record in records.tolist() if isinstance(records, np.ndarray) else records:
            place = order.get(record) if isinstance(record, Hashable) else None
            if place is not None:
                counts[place] += 1
        return counts

    def answer(self, value: Records, randomness: Randomness | None = None) -> NDArray[np.int64]:
        return self.counts(value) + discrete_laplace(self.scale, self.buckets, source_of(randomness))
