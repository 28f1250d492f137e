"""Checks on class sizes: k-anonymity, k-map and δ-presence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.anonymity.predicates.base import Int
from sfumato.core.guarantees.base import TOLERANCE
from sfumato.kernels.classes.checks import too_few


@dataclass(frozen=True)
class AtLeast:
    """At least `k` in a column (units for k-anonymity, population for k-map)."""

    column: int
    k: int

    def __call__(self, totals: Int) -> Int:
        return too_few(totals, self.column, self.k)


@dataclass(frozen=True)
class Presence:
    """The released share of a class's population lies in [minimum, maximum].

    A class below the minimum cannot be mended by suppression: it needs more records than there are (`hopeless`).
    """

    population: int
    minimum: float
    maximum: float
    hopeless: int

    def __call__(self, totals: Int) -> Int:
        people = np.maximum(totals[:, self.population], 1)
        share = totals[:, 0] / people
        known = totals[:, self.population] > 0
        over = (share > self.maximum + TOLERANCE) | (~known & (totals[:, 0] > 0))
        under = known & (share < self.minimum - TOLERANCE)
        return np.where(under, self.hopeless, np.where(over, 1, 0)).astype(np.int64)
