"""From noisy measurements to what was asked: counts, sums, means, variances, quantiles, with their standard errors.

All of this is post-processing. Errors of ratios are carried over to first order: each measurement is moved by its
own standard deviation, and the changes add up in squares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.dp.sql.aggregates import Function

Floats = NDArray[np.float64]

#: Below this many rows (after noise) a mean says nothing; the division is held here.
FEWEST = 1.0


@dataclass(frozen=True)
class Statistic:
    """One aggregate of the query, computed from measurements by name.

    `centre` is what values were measured around, `square_centre` the same for their squares; results of means stay
    inside [low, high].
    """

    function: Function
    count: str | None = None
    total: str | None = None
    squares: str | None = None
    tree: str | None = None
    step: Fraction = Fraction(1)
    square_step: Fraction = Fraction(1)
    centre: Fraction = Fraction(0)
    square_centre: Fraction = Fraction(0)
    low: Fraction | None = None
    high: Fraction | None = None
    rank: Fraction | None = None
    whole: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The measurements it is computed from."""
        return tuple(part for part in (self.count, self.total, self.squares, self.tree) if part is not None)

    @property
    def linear(self) -> bool:
        """True for one measurement as it is: counts, and sums that are measured by themselves."""
        return self.function in ("count", "count_distinct") or (self.function == "sum" and self.count is None)

    @property
    def steady(self) -> bool:
        """True when the error is the same whatever the data."""
        return self.linear or self.function == "sum"

    def value(self, noisy: Mapping[str, Floats]) -> Floats:
        """The statistic per group."""
        if self.function in ("count", "count_distinct"):
            return noisy[self.count or ""]
        if self.function == "sum":
            total = noisy[self.total or ""] * float(self.step)
            return total if self.count is None else total + noisy[self.count] * float(self.centre)
        rows = np.maximum(noisy[self.count or ""], FEWEST)
        around = noisy[self.total or ""] * float(self.step) / rows
        if self.function == "avg":
            return self._inside(around + float(self.centre))
        squares = noisy[self.squares or ""] * float(self.square_step) / rows + float(self.square_centre)
        spread = np.maximum(squares - around**2, 0.0)
        if self.function.endswith("_samp"):
            spread = spread * rows / np.maximum(rows - 1.0, FEWEST)
        return np.sqrt(spread) if self.function.startswith("stddev") else spread

    def error(self, noisy: Mapping[str, Floats], deviations: Mapping[str, float]) -> Floats:
        """The standard error per group."""
        if self.linear:
            name = self.parts[0]
            worth = float(self.step) if self.function == "sum" else 1.0
            return np.full(noisy[name].shape, deviations[name] * worth)
        present = self.value(noisy)
        variance = np.zeros_like(present)
        for name in self.parts:
            moved = dict(noisy)
            moved[name] = noisy[name] + deviations[name]
            up = self.value(moved) - present
            moved[name] = noisy[name] - deviations[name]
            down = self.value(moved) - present
            variance = variance + np.maximum(up**2, down**2)
        return np.sqrt(variance)

    def _inside(self, value: Floats) -> Floats:
        if self.low is None or self.high is None:
            return value
        return np.clip(value, float(self.low), float(self.high))
