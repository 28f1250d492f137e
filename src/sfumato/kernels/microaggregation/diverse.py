"""CBFS whose clusters keep a confidential attribute uncertain: p different values, entropy, or recursive (c, l).

After k similar records a cluster takes the nearest record that makes it more diverse, until it is diverse enough. Records
that can make no such cluster join the nearest one that stays diverse. Truta, Vinay, "Privacy protection: p-sensitive
k-anonymity property", ICDE Workshops 2006; Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", TKDD 1(1),
2007.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.progress import Progress, silent
from sfumato.kernels.microaggregation.live import Centres, Space, Unassigned
from sfumato.kernels.microaggregation.partitions import Clusters, first_nearest, part

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]
Kind = Literal["distinct", "entropy", "recursive"]

#: A class that is uniform over exactly l values may miss ln l by the last bit.
_LAST_BIT = 1e-12


@dataclass(frozen=True, eq=False)
class Diversity:
    """What every cluster must show of one attribute, whose values are `codes` below `width`.

    distinct: at least l values; entropy: at least ln l; recursive: of the counts r1 ≥ r2 ≥ …, r1 < c · (r_l + r_(l+1) + …).
    """

    codes: Int = field(repr=False)
    width: int
    kind: Kind
    l: float  # noqa: E741
    c: float = 1.0

    def counts(self, rows: Int) -> Int:
        """How often each value occurs in these rows."""
        return np.bincount(self.codes[rows], minlength=self.width)

    def holds(self, counts: Int) -> bool:
        """Whether a cluster with these counts is diverse enough."""
        present = counts[counts > 0]
        if self.kind == "distinct":
            return bool(present.size >= self.l)
        if self.kind == "entropy":
            return bool(_entropy(present) >= np.log(self.l) - _LAST_BIT)
        largest_first = np.sort(present)[::-1]
        tail = largest_first[int(self.l) - 1 :].sum()
        return bool(tail > 0 and float(largest_first[0]) < self.c * float(tail) * (1.0 - _LAST_BIT))

    def improving(self, counts: Int) -> Bool:
        """For each value whether one more record of it makes the cluster more diverse; depends on its count alone."""
        if self.kind == "distinct":
            absent: Bool = counts == 0
            return absent
        levels, inverse = np.unique(counts, return_inverse=True)
        now = self._score(counts)
        better = []
        for level in levels.tolist():
            more = counts.copy()
            more[np.argmax(counts == level)] += 1
            better.append(self._score(more) > now)
        return np.array(better)[inverse.reshape(-1)]

    def _score(self, counts: Int) -> float:
        present = np.sort(counts[counts > 0])[::-1]
        if self.kind == "entropy":
            return _entropy(present) + _LAST_BIT * present.size
        if present.size < self.l:
            return float(present.size) - 1e18
        return -float(present[0]) / float(present[int(self.l) - 1 :].sum())


def _entropy(present: Int) -> float:
    shares = present / present.sum()
    return float(-(shares * np.log(shares)).sum())


def diverse_cbfs(space: Space, k: int, diversities: list[Diversity], progress: Progress = silent) -> Int:
    """CBFS with diverse clusters. All records together must be diverse enough; then every cluster is."""
    left, clusters = space.unassigned(), Clusters(space.size, progress)
    available = [diversity.counts(left.rows()) for diversity in diversities]
    while left.size >= k:
        members = _diverse_cluster(left, left.farthest_from_centroid(), k, diversities, available)
        if members is None:
            break
        left.remove(members)
        clusters.add(members)
        for diversity, counts in zip(diversities, available, strict=True):
            counts -= diversity.counts(members)
    rest = left.rows()
    if not clusters.count:
        clusters.add(rest)
        return clusters.labels
    if rest.size:
        assigned = np.flatnonzero(clusters.labels >= 0)
        centres = part(space, assigned).centres(clusters.labels[assigned], clusters.count)
        _join_diverse(space, clusters, rest, centres, diversities)
        return _merge_until_diverse(clusters.labels, clusters.count, centres, diversities)
    return clusters.labels


def _diverse_cluster(left: Unassigned, row: int, k: int, diversities: list[Diversity], available: list[Int]) -> Int | None:
    near = left.nearest(row, k)
    members = near.tolist()
    used = np.ones(k, dtype=np.bool_)
    counts = [diversity.counts(near) for diversity in diversities]
    while True:
        short = next((i for i, diversity in enumerate(diversities) if not diversity.holds(counts[i])), None)
        if short is None:
            return np.array(members, dtype=np.int64)
        helps = diversities[short].improving(counts[short])
        if not np.any(helps & (available[short] > counts[short])):
            return None
        improving = np.flatnonzero(helps[diversities[short].codes[near]] & ~used)
        while not improving.size:
            near = left.nearest(row, 4 * near.size)
            used = np.isin(near, members)
            improving = np.flatnonzero(helps[diversities[short].codes[near]] & ~used)
        used[improving[0]] = True
        chosen = int(near[improving[0]])
        members.append(chosen)
        for diversity, count in zip(diversities, counts, strict=True):
            count[diversity.codes[chosen]] += 1


def _join_diverse(space: Space, clusters: Clusters, rest: Int, centres: Centres, diversities: list[Diversity]) -> None:
    """Each record joins the cluster with the nearest centroid that stays diverse with it; where none does, the nearest."""
    if all(diversity.kind == "distinct" for diversity in diversities):  # joining takes no value away
        clusters.labels[rest] = [first_nearest(space.to_centres(int(row), centres)) for row in rest]
        return
    order = np.argsort(clusters.labels, kind="stable")
    bounds = np.searchsorted(clusters.labels[order], np.arange(clusters.count + 1))
    members = [order[bounds[c] : bounds[c + 1]] for c in range(clusters.count)]
    for row in rest.tolist():
        distances = space.to_centres(row, centres)
        chosen = first_nearest(distances)
        for cluster in np.argsort(distances, kind="stable").tolist():
            if all(diversity.holds(diversity.counts(np.append(members[cluster], row))) for diversity in diversities):
                chosen = cluster
                break
        members[chosen] = np.append(members[chosen], row)
        clusters.labels[row] = chosen


def _merge_until_diverse(labels: Int, count: int, centres: Centres, diversities: list[Diversity]) -> Int:
    """Merge a cluster that is not diverse with the one whose centroid is nearest, until none is left."""
    standing = set(range(count))
    queue = list(range(count))
    while queue and len(standing) > 1:
        cluster = queue.pop()
        rows = np.flatnonzero(labels == cluster) if cluster in standing else np.zeros(0, dtype=np.int64)
        if not rows.size or all(diversity.holds(diversity.counts(rows)) for diversity in diversities):
            continue
        others = np.array(sorted(standing - {cluster}))
        gaps = ((centres.numbers[others] - centres.numbers[cluster]) ** 2).sum(axis=1)
        gaps += (centres.codes[:, others] != centres.codes[:, [cluster]]).sum(axis=0)
        target = int(others[np.argmin(gaps)])
        labels[rows] = target
        standing.discard(cluster)
        queue.append(target)
    merged: Int = np.unique(labels, return_inverse=True)[1].reshape(-1)
    return merged
