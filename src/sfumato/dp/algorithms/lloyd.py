"""k-means without privacy: the baseline that private clusterings are compared with, and a step of their post-processing.

Assign every point to its nearest centre, move every centre to the mean of its points, until nothing moves.
Lloyd, "Least squares quantization in PCM", IEEE Transactions on Information Theory 1982; Arthur, Vassilvitskii,
"k-means++: the advantages of careful seeding", SODA 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.data.microdata import Microdata
from sfumato.dp.algorithms.declared_values import STEPS, Axis, Codes, declared_axis, in_steps, read, refuse

if TYPE_CHECKING:
    import pyarrow as pa

Points = NDArray[np.float64]


@dataclass(frozen=True)
class Clustering:
    """Centres as an Arrow table (one column per clustered column, and `size`) and their `cost`: the sum of squared
    distances to the nearest centre, columns measured in units of their declared width. Not private."""

    centres: pa.Table
    cost: float


def kmeans_baseline(data: Microdata, columns: Sequence[str], k: int, *, restarts: int = 10, seed: int = 0) -> Clustering:
    """Ordinary k-means of the same points that the private algorithms see: for the owner, never for release."""
    axes = _axes(data, columns)
    points = _points(data, axes)
    require(len(points) >= k >= 1, "k-means needs at least k complete rows")
    centres = weighted_kmeans(points, np.ones(len(points)), k, restarts=restarts, seed=seed)
    nearest, squared = nearest_centres(_whole(points), _whole(centres))
    return Clustering(centre_table(axes, _whole(centres), np.bincount(nearest, minlength=k)), _cost(squared))


def clustering_cost(data: Microdata, centres: pa.Table) -> float:
    """The sum of squared distances of all complete rows to the nearest of these centres, columns in units of their
    declared width: how good a clustering is, for the owner, never for release."""
    axes = _axes(data, [name for name in centres.column_names if name != "size"])
    placed = np.column_stack([in_steps(centres.column(axis.name), axis)[0] for axis in axes])
    return _cost(nearest_centres(_whole(_points(data, axes)), placed)[1])


def weighted_kmeans(points: Points, weights: Points, k: int, *, restarts: int, seed: int) -> Points:
    """The best of several runs of k-means++ and Lloyd's iteration over weighted points."""
    from sklearn.cluster import KMeans

    model = KMeans(n_clusters=k, n_init=restarts, random_state=seed).fit(points, sample_weight=weights)
    return np.asarray(model.cluster_centers_, dtype=np.float64)


def nearest_centres(points: Codes, centres: Codes) -> tuple[Codes, Codes]:
    """For each point in whole steps the nearest centre, the first of equals, and the squared distance.

    Whole numbers, so that where one record belongs never depends on the rounding of others.
    """
    best = np.full(len(points), np.iinfo(np.int64).max, dtype=np.int64)
    nearest = np.zeros(len(points), dtype=np.int64)
    for number, centre in enumerate(centres):
        squared = np.zeros(len(points), dtype=np.int64)
        for axis, position in enumerate(centre):
            squared += (points[:, axis] - position) ** 2
        closer = squared < best
        best[closer], nearest[closer] = squared[closer], number
    return nearest, best


def centre_table(axes: Sequence[Axis], centres: Codes, sizes: NDArray[np.int64]) -> pa.Table:
    """Centres in the units of their columns, with sizes."""
    import pyarrow as pa

    columns = {axis.name: pa.array(axis.value(centres[:, place].astype(np.float64))) for place, axis in enumerate(axes)}
    return pa.table({**columns, "size": pa.array(sizes, pa.int64())})


def _axes(data: Microdata, columns: Sequence[str]) -> list[Axis]:
    faults: list[str] = []
    axes = [declared_axis(data, name, faults) for name in columns]
    refuse(data, "k-means", faults)
    return [axis for axis in axes if axis is not None]


def _points(data: Microdata, axes: Sequence[Axis]) -> Points:
    table = read(data, [axis.name for axis in axes], for_owner=True)
    parts = [in_steps(table.column(axis.name), axis) for axis in axes]
    complete = np.logical_and.reduce([present for _, present in parts])
    return np.column_stack([steps for steps, _ in parts])[complete].astype(np.float64)


def _whole(points: Points) -> Codes:
    return np.rint(points).astype(np.int64)


def _cost(squared: Codes) -> float:
    return float(squared.astype(np.float64).sum()) / STEPS**2
