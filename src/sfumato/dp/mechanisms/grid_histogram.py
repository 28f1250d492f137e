"""Grid histogram: noisy counts of positions in the cells of a declared grid on a map.

A histogram whose buckets are rectangles. Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data
analysis", TCC 2006; Qardaji, Yang, Li, "Differentially private grids for geospatial data", ICDE 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.exact import Number, exact
from sfumato.core.params import require
from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.calibrated import source_of
from sfumato.dp.mechanisms.noisy_counts import NoisyCounts
from sfumato.dp.mechanisms.records import numbers
from sfumato.kernels.sampling import discrete_laplace


@dataclass(frozen=True)
class GridHistogram(NoisyCounts[Sequence[tuple[float, float]] | NDArray[np.floating]]):
    """Noisy counts of positions (x, y) in `columns` × `rows` cells of a declared rectangle, as an array [row, column].

    ε-private; the sensitivity is that of `Histogram`. Positions outside the rectangle are not counted; its upper and
    right borders belong to it.
    """

    x_bounds: tuple[Number, Number]
    y_bounds: tuple[Number, Number]
    columns: int
    rows: int
    epsilon: Number
    contributions: int = 1

    def __post_init__(self) -> None:
        self._check_epsilon()
        for name in ("x_bounds", "y_bounds"):
            given = getattr(self, name)
            require(len(given) == 2, f"{name} are two numbers")
            object.__setattr__(self, name, tuple(exact(bound, name) for bound in given))
            require(getattr(self, name)[0] < getattr(self, name)[1], f"the first of {name} must be below the second")
        for name in ("columns", "rows", "contributions"):
            require(isinstance(getattr(self, name), int) and getattr(self, name) >= 1, f"{name} is a whole number of at least 1")

    def counts(self, positions: Sequence[tuple[float, float]] | NDArray[np.floating]) -> NDArray[np.int64]:
        """The counts without noise: not to be released."""
        points = numbers(positions).reshape(-1, 2)
        column, inside_x = _cells(points[:, 0], self.x_bounds, self.columns)
        row, inside_y = _cells(points[:, 1], self.y_bounds, self.rows)
        inside = inside_x & inside_y
        cells = row[inside] * self.columns + column[inside]
        return np.bincount(cells, minlength=self.rows * self.columns).astype(np.int64).reshape(self.rows, self.columns)

    def answer(
        self, value: Sequence[tuple[float, float]] | NDArray[np.floating], randomness: Randomness | None = None
    ) -> NDArray[np.int64]:
        noise = discrete_laplace(self.scale, self.rows * self.columns, source_of(randomness))
        return self.counts(value) + noise.reshape(self.rows, self.columns)


def _cells(values: NDArray[np.float64], bounds: tuple[Number, Number], count: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    low, high = float(bounds[0]), float(bounds[1])
    inside = (values >= low) & (values <= high)  # a missing coordinate compares false
    share = np.where(inside, values - low, 0.0) / (high - low) * count
    return np.minimum(share.astype(np.int64), count - 1), inside
