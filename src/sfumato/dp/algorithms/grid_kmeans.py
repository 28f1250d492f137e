"""Private k-means on a grid: cluster noisy cell counts, then move the centres once by a noisy step.

Count the points in a uniform grid whose fineness follows the (noisy) number of points, cluster the cells that stand out
from the noise with their noisy counts as weights, and correct each centre once by the noisy mean of its points'
offsets, clipped to the cluster's extent as the noisy cells show it.
Su, Cao, Li, Bertino, Jin, "Differentially private k-means clustering", CODASPY 2016.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from sfumato.core import ranges
from sfumato.core.declared import formerly
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.progress import Progress, silent
from sfumato.core.randomness import Randomness, below, default
from sfumato.data.microdata import Microdata
from sfumato.dp.algorithms.base import RowBounded
from sfumato.dp.algorithms.cluster_points import (
    LEFT_OUT,
    Centres,
    ClusteredColumns,
    bounded_points,
    declared_axes,
    misnamed,
    spread_centres,
)
from sfumato.dp.algorithms.contributions import BoundedBy, KeptRows, OrderedBy
from sfumato.dp.algorithms.declared_values import STEPS, Codes
from sfumato.dp.algorithms.kmeans import sizes_and_sums
from sfumato.dp.algorithms.lloyd import centre_table, nearest_centres, weighted_kmeans
from sfumato.dp.algorithms.spending import Epsilon, LossShare, Rho, one_of_them
from sfumato.dp.outcomes import private_outcome

if TYPE_CHECKING:
    import pyarrow as pa

#: Finer grids cost time and, above all, drown in noise.
MAX_CELLS = 100_000

#: With two cells per column this is what fits.
MAX_COLUMNS = 16

#: Points times ε per cell at which noise and coarseness balance (Su et al., section 4).
_BALANCE = 10

_COUNT, _GRID, _SIZES, _OFFSETS = Fraction(2, 100), Fraction(68, 100), Fraction(6, 100), Fraction(24, 100)
_NARROWEST = STEPS // 20
_WIDEST = STEPS // 2
_RESTARTS = 10


@formerly(max_rows="rows")
@dataclass(frozen=True)
class GridKMeans(RowBounded):
    """`k` centres and noisy sizes from a noisy grid and one noisy step.

    It promises what `KMeans` does, against the same adversary, with `max_rows`, `bounding` and `order` as there. `epsilon` or
    `rho` is the loss of it all. `columns` (at most 16) hold numbers with declared bounds; distances count each column in units of
    its declared width. `expected_rows`, about how many points there are, fixes the grid; without it 2 % of the budget
    measures it.
    """

    columns: ClusteredColumns
    k: Centres
    epsilon: Epsilon = None
    rho: Rho = None
    expected_rows: Annotated[int | None, ranges.Number(at_least=1), "about how many points there are"] = None
    max_rows: KeptRows = None
    bounding: BoundedBy = "sample"
    order: OrderedBy = None

    def coherent(self) -> Iterable[str]:
        yield from misnamed(self.columns)
        if len(self.columns) > MAX_COLUMNS:
            yield f"a grid has at most {MAX_COLUMNS} columns; use KMeans for more"
        yield from one_of_them(self.epsilon, self.rho)

    def loss(self) -> LossGuarantee:
        return self._spending.guarantee()

    def left_out(self) -> str:
        return LEFT_OUT

    def run(self, data: Microdata, *, randomness: Randomness | None = None, progress: Progress = silent) -> Outcome[pa.Table]:
        """An Arrow table with a row per centre: the clustered columns and the noisy `size`."""
        source = randomness or default()
        axes = declared_axes(data, self)
        points = bounded_points(data, axes, self, source)
        progress("grid", 0, 3)
        per_axis = self._cells_per_axis(len(points), source)
        cells, weights = self._standing_out(points, per_axis, source)
        progress("clustering cells", 1, 3)
        centres = self._clustered(cells, weights, len(axes), source)
        progress("moving centres", 2, 3)
        centres, sizes = self._moved(points, centres, cells, weights, per_axis, source)
        return private_outcome(
            centre_table(axes, centres, sizes),
            self._spending.guarantee(unit=data.schema.unit or "record"),
            {"name": self.name, **self.parameters()},
            argument=f"a unit has at most {self.kept_rows} rows; the number of rows, the grid counts, the sizes and the clipped "
            f"offsets have {_COUNT}, {_GRID}, {_SIZES} and {_OFFSETS} of the budget and noise for their sensitivity; the rest is "
            "computed from them",
            randomness=source,
            dataset=data.schema.dataset,
            cells_per_column=per_axis,
        )

    def _cells_per_axis(self, points: int, source: Randomness) -> int:
        """The fineness that balances noise and coarseness, from a noisy or a stated number of points."""
        count = self.expected_rows
        if count is None:
            count = max(1, points + int(self._spending.part(_COUNT).noise(1, self.kept_rows, self.kept_rows**2, source)[0]))
        # What ε would give the same deviation per cell, so that one rule serves both laws.
        effective = math.sqrt(2) / self._spending.part(_GRID).error(self.kept_rows, self.kept_rows**2).deviation
        columns = len(self.columns)
        ideal_cells = (count * effective / _BALANCE) ** (2 / (2 + columns)) if count * effective > _BALANCE else 0.0
        most = int(math.floor(MAX_CELLS ** (1 / columns) + 1e-9))
        return max(2, min(round(ideal_cells), most))

    def _standing_out(self, points: Codes, per_axis: int, source: Randomness) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The middles, in steps, of the cells whose noisy counts stand out from the noise, and those counts."""
        columns = len(self.columns)
        place = points * per_axis // (STEPS + 1)
        code = np.ravel_multi_index(tuple(place.T), (per_axis,) * columns)
        spending = self._spending.part(_GRID)
        total = per_axis**columns
        noisy = np.bincount(code, minlength=total) + spending.noise(total, self.kept_rows, self.kept_rows**2, source)
        parameter = float(spending.noise_parameter(self.kept_rows, self.kept_rows**2))
        # The largest of that many noises is about here.
        least = parameter * math.log(total) if spending.law == "laplace" else math.sqrt(2 * parameter * math.log(total))
        kept = np.flatnonzero(noisy > least)
        middles = (np.column_stack(np.unravel_index(kept, (per_axis,) * columns)) + 0.5) * ((STEPS + 1) / per_axis)
        return np.asarray(middles, dtype=np.float64), noisy[kept].astype(np.float64)

    def _clustered(self, cells: NDArray[np.float64], weights: NDArray[np.float64], columns: int, source: Randomness) -> Codes:
        spread = spread_centres(self.k, columns, source)
        if len(cells) <= self.k:
            return np.vstack([np.rint(cells).astype(np.int64).reshape(-1, columns), spread])[: self.k]
        centres = weighted_kmeans(cells, weights, self.k, restarts=_RESTARTS, seed=below(source, 1 << 31))
        return np.clip(np.rint(centres), 0, STEPS).astype(np.int64)

    def _moved(
        self,
        points: Codes,
        centres: Codes,
        cells: NDArray[np.float64],
        weights: NDArray[np.float64],
        per_axis: int,
        source: Randomness,
    ) -> tuple[Codes, Codes]:
        """The centres after one noisy step, and the noisy sizes."""
        columns = centres.shape[1]
        radius = self._extents(centres, cells, weights, per_axis)
        nearest, _ = nearest_centres(points, centres)
        offsets = np.clip(points - centres[nearest], -radius[nearest, None], radius[nearest, None])
        sizes, sums = sizes_and_sums(offsets, nearest, self.k)
        for_sizes, for_offsets = self._spending.part(_SIZES), self._spending.part(_OFFSETS)
        noisy_sizes = sizes + for_sizes.noise(self.k, self.kept_rows, self.kept_rows**2, source)
        # In units of its cluster's radius a row adds at most 1 to each coordinate: L1 at most d, squared L2 at most d.
        noisy_sums = sums + np.vstack(
            [
                for_offsets.noise(columns, self.kept_rows * columns * int(r), self.kept_rows**2 * columns * int(r) ** 2, source)
                for r in radius
            ]
        )
        deviation = for_sizes.error(self.kept_rows, self.kept_rows**2).deviation
        moved = noisy_sizes > max(1.0, 2 * deviation)
        steps = np.rint(noisy_sums[moved].astype(np.float64) / noisy_sizes[moved, None]).astype(np.int64)
        limit = radius[moved, None]
        result = centres.copy()
        result[moved] = np.clip(centres[moved] + np.clip(steps, -limit, limit), 0, STEPS)
        return result, noisy_sizes

    def _extents(self, centres: Codes, cells: NDArray[np.float64], weights: NDArray[np.float64], per_axis: int) -> Codes:
        """Three deviations per column of each cluster, as the noisy cells show it."""
        squared = np.zeros(self.k)
        mass = np.full(self.k, 1e-9)
        if len(cells):
            nearest, distance = nearest_centres(np.rint(cells).astype(np.int64), centres)
            squared += np.bincount(nearest, weights=weights * distance.astype(np.float64), minlength=self.k)
            mass += np.bincount(nearest, weights=weights, minlength=self.k)
        within = (STEPS / per_axis) ** 2 / 12
        radius = 3 * np.sqrt(squared / mass / len(self.columns) + within)
        extents: Codes = np.clip(np.rint(radius), _NARROWEST, _WIDEST).astype(np.int64)
        return extents

    @property
    def _spending(self) -> LossShare:
        return LossShare.of(self.epsilon, self.rho)
