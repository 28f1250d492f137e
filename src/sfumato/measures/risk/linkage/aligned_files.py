"""Two files of the same people as arrays, for linkage with a distance that is learnt from both.

The weights are learnt from a sample with one record per person in each file; the links are counted on all records. Abril,
Navarro-Arribas, Torra, "Improving record linkage with supervised learning for disclosure risk assessment", Information Fusion
13(4), 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.core.randomness import StreamRandomness
from sfumato.kernels.sampling.draws import Draws

Real = NDArray[np.float64]
Int = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AlignedFiles:
    """Two files of the same people: seeking record i is about person `mine[i]`, sought record j about `owner[j]`; by default
    record i of one file belongs to record i of the other.

    Numbers are standardised; a category is a code that either agrees or does not.
    """

    seeking: Real
    sought: Real
    category: NDArray[np.bool_]
    names: tuple[str, ...]
    mine: Int | None = None
    owner: Int | None = None

    @property
    def size(self) -> int:
        """How many records seek."""
        return int(self.seeking.shape[0])

    @cached_property
    def partner(self) -> Int:
        """The record each seeking one should find, in files with one record per person."""
        return np.arange(self.size, dtype=np.int64)

    @cached_property
    def people(self) -> tuple[Int, Int]:
        """Whom the seeking and the sought records are about."""
        rows = np.arange(max(self.size, self.sought.shape[0]), dtype=np.int64)
        mine = rows[: self.size] if self.mine is None else self.mine
        return mine, rows[: self.sought.shape[0]] if self.owner is None else self.owner

    def one_each(self, most: int) -> AlignedFiles:
        """At most so many people, drawn by a fixed seed, with one record in each file."""
        if self.mine is None and self.owner is None and self.size <= most:
            return self
        (first, seeking), (second, sought) = (np.unique(side, return_index=True) for side in self.people)
        everybody = np.intersect1d(first, second, assume_unique=True)
        if everybody.size > most:
            everybody = everybody[
                np.sort(Draws(StreamRandomness("people to learn a distance from")).sample(everybody.size, most))
            ]
        ours, theirs = seeking[np.searchsorted(first, everybody)], sought[np.searchsorted(second, everybody)]
        return AlignedFiles(self.seeking[ours], self.sought[theirs], self.category, self.names)
