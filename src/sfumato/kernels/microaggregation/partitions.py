"""Partitions into clusters of at least k similar records: MDAV, V-MDAV and CBFS.

Domingo-Ferrer, Torra, "Ordinal, continuous and heterogeneous k-anonymity through microaggregation", Data Mining and Knowledge
Discovery 11(2), 2005. Solanas, Martínez-Ballesté, "V-MDAV: a multivariate microaggregation with variable group size", COMPSTAT
2006. Laszlo, Mukherjee, "Minimum spanning tree partitioning algorithm for microaggregation", IEEE TKDE 17(7), 2005.

Each returns the cluster of every record, numbered in the order in which clusters were made. Ties go to the lowest row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.progress import Progress, silent
from sfumato.kernels.microaggregation.live import Space, Unassigned

Int = NDArray[np.int64]
Real = NDArray[np.float64]

_PHASE = "microaggregation"
_TELL_EVERY = 256
_EQUAL = 1e-12  # relative difference below which two distances count as equal


class Clusters:
    """The clusters made so far."""

    def __init__(self, size: int, progress: Progress) -> None:
        self.labels = np.full(size, -1, dtype=np.int64)
        self.count = 0
        self._assigned = 0
        self._progress = progress

    def add(self, rows: Int) -> None:
        """A cluster of these rows."""
        self.labels[rows] = self.count
        self.count += 1
        self._assigned += rows.size
        if self.count % _TELL_EVERY == 0:
            self._progress(_PHASE, self._assigned, self.labels.size)


def mdav(space: Space, k: int, progress: Progress = silent) -> Int:
    """Maximum distance to the average vector: as long as there are 3k records, one cluster around the record r farthest from
    the centroid and one around the record farthest from r; then one around the farthest if 2k are left, and the rest."""
    left, clusters = space.unassigned(), Clusters(space.size, progress)
    while left.size >= 3 * k:
        one = left.farthest_from_centroid()
        _take(left, clusters, one, k)
        _take(left, clusters, left.farthest_from(one), k)
    if left.size >= 2 * k:
        _take(left, clusters, left.farthest_from_centroid(), k)
    if left.size:
        clusters.add(left.rows())
    return clusters.labels


def v_mdav(space: Space, k: int, gamma: float, progress: Progress = silent) -> Int:
    """MDAV with clusters of k to 2k - 1 records: a cluster around the record farthest from the centroid of all grows by its
    nearest neighbour as long as that lies nearer than gamma times the neighbour's own distance to the others.

    The fewer than k records that are left join the clusters with the nearest centroid; a cluster that comes to 2k records is
    cut in two.
    """
    left, clusters = space.unassigned(), Clusters(space.size, progress)
    whole = space.centres(np.zeros(space.size, dtype=np.int64), 1)
    distances = _from_centroid(space, whole.numbers[0], whole.codes[:, 0].tolist())
    for row in np.lexsort((np.arange(space.size), -distances)).tolist():
        if left.size < k:
            break
        if clusters.labels[row] < 0:
            members = left.nearest(row, k)
            left.remove(members)
            clusters.add(np.array([*members.tolist(), *_grown(space, left, members, k, gamma)], dtype=np.int64))
    join_nearest(space, clusters, left.rows())
    return split_large(space, clusters.labels, clusters.count, k)


def cbfs(space: Space, k: int, progress: Progress = silent) -> Int:
    """Centroid-based fixed size: clusters around the record farthest from the centroid of those that are left; the fewer than
    k that remain join the clusters with the nearest centroid."""
    left, clusters = space.unassigned(), Clusters(space.size, progress)
    while left.size >= k:
        _take(left, clusters, left.farthest_from_centroid(), k)
    join_nearest(space, clusters, left.rows())
    return clusters.labels


def join_nearest(space: Space, clusters: Clusters, rows: Int) -> None:
    """Each of these records joins the cluster with the nearest centroid, centroids as they were before."""
    if not rows.size:
        return
    assigned = np.flatnonzero(clusters.labels >= 0)
    centres = part(space, assigned).centres(clusters.labels[assigned], clusters.count)
    joined = [first_nearest(space.to_centres(int(row), centres)) for row in rows]
    clusters.labels[rows] = joined


def first_nearest(distances: Real) -> int:
    """The lowest number among those that are nearest; centroids are rounded, so that equal distances may differ a little."""
    return int(np.flatnonzero(distances <= distances.min() * (1.0 + _EQUAL) + _EQUAL * _EQUAL)[0])


def split_large(space: Space, labels: Int, count: int, k: int) -> Int:
    """Cut clusters of 2k records and more by MDAV, which never raises the squared error."""
    for large in np.flatnonzero(np.bincount(labels, minlength=count) >= 2 * k).tolist():
        rows = np.flatnonzero(labels == large)
        inner = mdav(part(space, rows), k)
        labels[rows[inner > 0]] = count + inner[inner > 0] - 1
        count += int(inner.max())
    return labels


def _take(left: Unassigned, clusters: Clusters, row: int, k: int) -> None:
    members = left.nearest(row, k)
    left.remove(members)
    clusters.add(members)


def part(space: Space, rows: Int) -> Space:
    """Some records of a space."""
    return Space(np.ascontiguousarray(space.numbers[rows]), np.ascontiguousarray(space.codes[:, rows]), space.levels)


def _from_centroid(space: Space, numbers: NDArray[np.float64], codes: list[int]) -> NDArray[np.float64]:
    total = np.zeros(space.size)
    for a in range(space.numbers.shape[1]):
        total += (space.numbers[:, a] - numbers[a]) ** 2
    for tree, column, code in zip(space.levels, space.codes, codes, strict=True):
        total += (tree[:, column] != tree[:, code, None]).mean(axis=0) ** 2
    return total


def _grown(space: Space, left: Unassigned, members: Int, k: int, gamma: float) -> list[int]:
    """The records that join a cluster of k, already removed from those left."""
    closest = {int(row): _closest(space, left, int(row)) for row in members}
    joined: list[int] = []
    while len(joined) < k - 1 and left.size > 1:
        inward, candidate = min(closest.values())
        around = left.nearest(candidate, 2)
        if not inward < gamma * space.distance(candidate, int(around[1])):
            break
        left.remove(np.array([candidate], dtype=np.int64))
        joined.append(candidate)
        closest[candidate] = (0.0, candidate)
        for row, (_, nearest) in list(closest.items()):
            if nearest == candidate:
                closest[row] = _closest(space, left, row)
    return joined


def _closest(space: Space, left: Unassigned, row: int) -> tuple[float, int]:
    """The record nearest to one that is gone already, with its distance."""
    if not left.size:
        return np.inf, -1
    nearest = int(left.nearest(row, 1)[0])
    return space.distance(row, nearest), nearest
