"""Checks for the three readings of l-diversity, with protected values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.predicates.base import NO_BOUND, Int
from sfumato.kernels.classes import checks as class_checks


@dataclass(frozen=True, eq=False)
class Diversity:
    """One reading of l-diversity on the histogram columns from `start` on.

    With protected values a class without any of them is exempt. For distinct values a failing class must still lose
    its protected records; for the other readings nothing is known about its parts.
    """

    reading: Literal["distinct", "entropy", "recursive"]
    start: int
    width: int
    least: float
    c: float = 0.0
    protected: NDArray[np.bool_] | None = None

    def __call__(self, totals: Int) -> Int:
        if self.reading == "distinct":
            need = class_checks.distinct(totals, self.start, self.width, int(self.least))
        elif self.reading == "entropy":
            need = class_checks.entropy(totals, self.start, self.width, float(self.least))
        else:
            need = class_checks.recursive(totals, self.start, self.width, float(self.c), int(self.least))
        if self.protected is None:
            return need
        affected = totals[:, self.start : self.start + self.width][:, self.protected].sum(axis=1)
        bound = affected if self.reading == "distinct" else np.full_like(affected, NO_BOUND)
        return np.where((need != 0) & (affected > 0), bound, 0)
