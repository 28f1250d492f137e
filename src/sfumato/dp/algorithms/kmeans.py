"""Private k-means by noisy Lloyd iterations: the sizes and the sums of the clusters carry noise.

Start from centres chosen without the data; in each of T iterations assign the points, add noise to every cluster's size
and coordinate sums, and move the centre to noisy sum / noisy size.
Blum, Dwork, McSherry, Nissim, "Practical privacy: the SuLQ framework", PODS 2005.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import numpy as np

from sfumato.core import ranges
from sfumato.core.declared import formerly
from sfumato.core.exact import Number, exact
from sfumato.core.guarantees.loss import LossGuarantee, PureDP
from sfumato.core.outcome import Outcome
from sfumato.core.progress import Progress, silent
from sfumato.core.randomness import Randomness, default
from sfumato.core.ranges import Because, Each, Whole
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
from sfumato.dp.algorithms.lloyd import centre_table, nearest_centres
from sfumato.dp.algorithms.spending import LEAST
from sfumato.dp.outcomes import private_outcome
from sfumato.dp.ranges import Floating

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class KMeansScales:
    """The scales of the Laplace noise in one iteration, in the units of the data."""

    size: Fraction
    sums: tuple[Fraction, ...]


def kmeans_scales(epsilon: Number, iterations: int, widths: Sequence[Number], rows: int = 1) -> KMeansScales:
    """2T/ε for sizes and 2T·Dom/ε for sums, times the rows that a unit may have.

    An iteration has ε/T, half for sizes, half for sums. A point counts from the lower bounds, so that a coordinate is at
    most its width; with d coordinates the budget of the sums covers d of them (for equal widths, the L1 bound d·Dom).

    >>> scales = kmeans_scales(1, 10, [100])
    >>> scales.size, scales.sums
    (Fraction(20, 1), (Fraction(2000, 1),))
    """
    half = exact(epsilon, "epsilon") / (2 * iterations)
    return KMeansScales(rows / half, tuple(rows * len(widths) * exact(width, "width") / half for width in widths))


@formerly(max_rows="rows")
@dataclass(frozen=True)
class KMeans(RowBounded):
    """`k` centres and noisy sizes by Lloyd's iteration with noise; `GridKMeans` is nearly always closer.

    An adversary who sees the centres, and knows everything but the noise, learns almost nothing about whether one unit is in
    the data. A unit (a value of the schema's unit column, else a record) keeps at most `max_rows` rows, by `bounding` and
    `order`. No point is released.

    `columns` hold numbers with declared bounds; distances count each column in units of its declared width. `epsilon` is
    the loss, `iterations` is T, fixed beforehand: every iteration spends ε/T, half on sizes and half on sums. `start` gives
    the first centres, chosen without the data; by default they are drawn at random, far from each other. A cluster whose
    noisy size is lost in noise keeps its centre.
    """

    columns: ClusteredColumns
    k: Centres
    epsilon: Annotated[
        Number,
        Because(ranges.Number(at_least=float(LEAST), exact=True), "below a millionth nothing but noise would be released"),
        "the loss ε that the release costs",
    ]
    iterations: Annotated[int, Whole(at_least=1, at_most=1000), "how many times centres are moved"] = 5
    start: Annotated[
        Sequence[Sequence[float]] | None,
        Each(Each(Floating()), what="k centres, a number per column"),
        "the first centres, chosen without the data",
    ] = None
    max_rows: KeptRows = None
    bounding: BoundedBy = "sample"
    order: OrderedBy = None

    def coherent(self) -> Iterable[str]:
        yield from misnamed(self.columns)
        if self.start is not None and (len(self.start) != self.k or any(len(c) != len(self.columns) for c in self.start)):
            yield "start gives k centres, a number per column"

    def loss(self) -> LossGuarantee:
        return PureDP(self.epsilon)

    def budget_per_iteration(self) -> Fraction:
        """ε/T, of which sizes and sums get a half each."""
        return exact(self.epsilon, "epsilon") / self.iterations

    def left_out(self) -> str:
        return LEFT_OUT

    def run(self, data: Microdata, *, randomness: Randomness | None = None, progress: Progress = silent) -> Outcome[pa.Table]:
        """An Arrow table with a row per centre: the clustered columns and the noisy `size`."""
        from sfumato.kernels.sampling.noise import discrete_laplace

        source = randomness or default()
        axes = declared_axes(data, self)
        points = bounded_points(data, axes, self, source)
        if self.start is None:
            centres = spread_centres(self.k, len(axes), source)
        else:
            low, high, width = (np.array(ends) for ends in zip(*((a.low, a.high, a.width) for a in axes), strict=True))
            centres = np.rint((np.clip(self.start, low, high) - low) / width * STEPS).astype(np.int64)
        scales = kmeans_scales(self.epsilon, self.iterations, [STEPS] * len(axes), self.kept_rows)
        noisy_sizes = np.zeros(self.k, dtype=np.int64)
        for iteration in range(self.iterations):
            progress("iterations", iteration, self.iterations)
            sizes, sums = sizes_and_sums(points, nearest_centres(points, centres)[0], self.k)
            noisy_sizes = sizes + discrete_laplace(scales.size, self.k, source)
            noisy_sums = sums + discrete_laplace(scales.sums[0], sums.size, source).reshape(sums.shape)
            # Below the noise's own deviation a size says nothing, and dividing by it would throw the centre anywhere.
            moved = noisy_sizes > max(1.0, 1.5 * float(scales.size))
            means = np.clip(np.rint(noisy_sums[moved].astype(np.float64) / noisy_sizes[moved, None].astype(np.float64)), 0, STEPS)
            centres[moved] = means.astype(np.int64)
        return private_outcome(
            centre_table(axes, centres, noisy_sizes),
            PureDP(self.epsilon, unit=data.schema.unit or "record"),
            {"name": self.name, **self.parameters()},
            argument=f"{self.iterations} iterations of ε/{self.iterations} each, half for sums; clusters are disjoint, "
            f"a unit has at most {self.kept_rows} rows, each of which adds 1 to a size and at most its width to each sum",
            randomness=source,
            dataset=data.schema.dataset,
        )


def sizes_and_sums(points: Codes, nearest: Codes, k: int) -> tuple[Codes, Codes]:
    """The exact sizes and coordinate sums of the clusters, in whole numbers."""
    sums = np.zeros((k, points.shape[1]), dtype=np.int64)
    order = np.argsort(nearest, kind="stable")
    sizes = np.bincount(nearest, minlength=k).astype(np.int64)
    filled = np.flatnonzero(sizes)
    if len(points):
        starts = (np.cumsum(sizes) - sizes)[filled]
        sums[filled] = np.add.reduceat(points[order], starts, axis=0)
    return sizes, sums
