"""Grid histogram: noisy counts of positions in the cells of a declared grid on a map.

A histogram whose buckets are rectangles. Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data
analysis", TCC 2006; Qardaji, Yang, Li, "Differentially private grids for geospatial data", ICDE 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from sfumato.core.exact import Number
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import Count
from sfumato.dp.mechanisms.calibrated import source_of
from sfumato.dp.mechanisms.statistics.noisy_counts import NoisyCounts
from sfumato.dp.mechanisms.statistics.records import numbers
from sfumato.dp.ranges import INTERVAL, Epsilon
from sfumato.kernels.sampling.noise import discrete_laplace


@dataclass(frozen=True)
class GridHistogram(NoisyCounts[Sequence[tuple[float, float]] | NDArray[np.floating]]):
    """Noisy counts of positions (x, y) in `columns` × `rows` cells of a declared rectangle, as an array [row, column].

    The rectangle reaches over `x_bounds` and `y_bounds`. ε-private (`epsilon`); sensitivity and noise are those of `Histogram`,
    with the same `contributions`. Positions outside the rectangle are not counted; its upper and right borders belong to it.
    """

    x_bounds: Annotated[tuple[Number, Number], INTERVAL, "the ends of the rectangle from left to right"]
    y_bounds: Annotated[tuple[Number, Number], INTERVAL, "the ends of the rectangle from bottom to top"]
    columns: Annotated[Count, "how many cells lie beside each other"]
    rows: Annotated[Count, "how many cells lie above each other"]
    epsilon: Epsilon
    contributions: Annotated[Count, "how many records one unit may own"] = 1

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
