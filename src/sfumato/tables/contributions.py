"""What is known of the contributions behind each cell: how many there are, the largest ones, and for whom each stands.

In a sample survey a contribution stands for `weight` contributors of the population, each with the same value, so that the
largest contributor of the population is no more than the largest one seen. Companies of one holding count as one contributor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError


@dataclass(frozen=True, eq=False)
class Contributions:
    """totals: the value of each cell. count: how many contributors it has. largest: the largest contributions, in falling order,
    one row per cell, 0 where there are fewer. weights: for how many contributors of the population each of them stands.

    >>> Contributions.of([[50, 30, 10, 10]]).leading(2).tolist()
    [80.0]
    """

    totals: NDArray[np.float64]
    count: NDArray[np.int64]
    largest: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, cells: Sequence[Sequence[float]], keep: int = 4) -> Contributions:
        """From all contributions to each cell."""
        largest = np.zeros((len(cells), keep))
        for row, values in enumerate(cells):
            top = sorted(values, reverse=True)[:keep]
            largest[row, : len(top)] = top
        totals = np.array([sum(values) for values in cells], dtype=np.float64)
        return cls(totals, np.array([len(values) for values in cells], dtype=np.int64), largest, np.ones_like(largest))

    @property
    def kept(self) -> int:
        """How many of the largest contributions are kept."""
        return int(self.largest.shape[1])

    def leading(self, contributors: int) -> NDArray[np.float64]:
        """What the largest so many contributors of the population give together."""
        if contributors > self.kept:
            raise InputError(
                f"the rule needs the {contributors} largest contributions to each cell, and {self.kept} are kept. "
                f"Make the cube with largest={contributors}."
            )
        left = np.full(self.totals.shape, float(contributors))
        total = np.zeros_like(self.totals)
        for place in range(self.kept):
            taken = np.minimum(left, np.maximum(self.weights[:, place], 1.0))
            total += taken * self.largest[:, place]
            left -= taken
        return np.minimum(total, np.maximum(self.totals, self.largest[:, 0]))
