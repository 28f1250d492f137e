"""What an exact regression tells: whether one person was in the data.

The same line is fitted with and without one outlier; somebody who knows the others computes both lines and compares them
with the published one. Torra, "Data privacy", Springer 2017; Dwork, Roth, "The algorithmic foundations of differential
privacy", 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.randomness import default, words


@dataclass(frozen=True)
class Leak:
    """Two exact lines, (intercept, slope), without and with one person; and a third one that was published."""

    without: tuple[float, float]
    including: tuple[float, float]

    def betrays(self, published: tuple[float, float], tolerance: float = 1e-6) -> bool | None:
        """Whether the person was in the data, as a published line tells: None when it fits neither line."""
        fits = [np.allclose(published, line, rtol=tolerance) for line in (self.without, self.including)]
        return bool(fits[1]) if fits[0] != fits[1] else None


def least_squares(points: Sequence[tuple[float, float]] | NDArray[np.float64]) -> tuple[float, float]:
    """Intercept and slope of the exact line through points (x, y)."""
    table = np.asarray(points, dtype=np.float64)
    x, y = table[:, 0] - table[:, 0].mean(), table[:, 1] - table[:, 1].mean()
    slope = float(x @ y / (x @ x))
    return float(table[:, 1].mean() - slope * table[:, 0].mean()), slope


def regression_leak(points: Sequence[tuple[float, float]], person: tuple[float, float]) -> Leak:
    """The exact lines without and with one person's point."""
    return Leak(least_squares(points), least_squares([*points, person]))


def generated_incomes(count: int = 40, seed: int = 1) -> list[tuple[float, float]]:
    """Made-up people (age, income) around income = -4500 + 207 · age."""
    drawn = words(default(seed), 2 * count) / 2.0**64
    ages = 25 + 40 * drawn[:count]
    return [(float(age), float(-4500 + 207 * age + 1500 * (share - 0.5))) for age, share in zip(ages, drawn[count:], strict=True)]


#: An outlier that turns the line: old, and very rich.
MILLIONAIRE = (64.0, 1_000_000.0)
