"""Histogram: noisy counts in buckets that are declared, not taken from the data.

A record lies in one bucket, so one record more or less changes one count by one, and one replaced record two counts.
Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.exact import Number, exact
from sfumato.core.params import require
from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.calibrated import source_of
from sfumato.dp.mechanisms.noisy_counts import NoisyCounts
from sfumato.dp.mechanisms.records import Records, numbers
from sfumato.kernels.sampling import discrete_laplace


@dataclass(frozen=True)
class Histogram(NoisyCounts[Records]):
    """Noisy counts of records in half-open buckets [edge, next edge), or of declared `categories`.

    ε-private; the L1 sensitivity is `contributions` for one unit more or less and twice that for one replaced, where
    `contributions` is how many records one unit may own (the caller bounds them). What lies in no bucket is not counted.
    Counts may become negative: clipping them is post-processing and biases totals.

    >>> Histogram(edges=(1000, 2000, 3000, 4000), epsilon=1).counts([1500, 2500, 2600]).tolist()
    [1, 2, 0]
    """

    edges: tuple[Number, ...] | None = None
    categories: tuple[str | int | float | bool, ...] | None = None
    epsilon: Number = 1
    contributions: int = 1

    def __post_init__(self) -> None:
        self._check_epsilon()
        require((self.edges is None) != (self.categories is None), "declare the edges of buckets, or categories")
        require(isinstance(self.contributions, int) and self.contributions >= 1, "contributions is a whole number of at least 1")
        if self.edges is not None:
            object.__setattr__(self, "edges", tuple(exact(edge, "edges") for edge in self.edges))
            rising = all(one < two for one, two in zip(self._edges, self._edges[1:], strict=False))
            require(len(self._edges) >= 2 and rising, "edges rise, and there are at least two")
        else:
            object.__setattr__(self, "categories", tuple(self.categories or ()))
            require(0 < len(self._categories) == len(set(self._categories)), "categories are all different, at least one")

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
        found = np.zeros(self.buckets, dtype=np.int64)
        order = {category: place for place, category in enumerate(self._categories)}
        for record in records.tolist() if isinstance(records, np.ndarray) else records:
            place = order.get(record) if isinstance(record, Hashable) else None
            if place is not None:
                found[place] += 1
        return found

    def answer(self, value: Records, randomness: Randomness | None = None) -> NDArray[np.int64]:
        return self.counts(value) + discrete_laplace(self.scale, self.buckets, source_of(randomness))
