"""Which released record is likeliest to be a person's: by clusters that intersect, by relative noise, by transition laws.

What the adversary who knows the method computes from a person's true values. Memory is linear in the records. Torra, "Data
privacy: foundations, new developments and the big data challenge", Springer 2017.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Real = NDArray[np.float64]
Int = NDArray[np.int64]

_BLOCK = 1_000_000


def intersections(clusters: Int, nearest: list[Int], truth: Int) -> tuple[Int, Int]:
    """Per person, the records that belong to a near cluster in every group of attributes, and whether the own one does.

    `clusters` has one row per record and one column per group; `nearest[g]` lists each person's near clusters of group g, filled
    up with -1.
    """
    people = truth.size
    count, found = np.zeros(people, dtype=np.int64), (truth >= 0).astype(np.int64)
    keys = np.zeros(clusters.shape[0], dtype=np.int64)
    paths = np.zeros((people, 1), dtype=np.int64)
    for group, near in enumerate(nearest):
        own = clusters[np.maximum(truth, 0), group]
        found &= (near == own[:, None]).any(axis=1)
        # number the combinations that occur; a path that no record takes is -1 from here on
        wide = int(clusters[:, group].max(initial=0)) + 1
        seen, keys = np.unique(keys * wide + clusters[:, group], return_inverse=True)
        keys = keys.reshape(-1).astype(np.int64)
        asked = np.where((paths[:, :, None] >= 0) & (near[:, None, :] >= 0), paths[:, :, None] * wide + near[:, None, :], -1)
        flat = asked.reshape(people, -1)
        place = np.minimum(np.searchsorted(seen, flat), max(seen.size - 1, 0))
        paths = np.where((flat >= 0) & (seen[place] == flat), place, -1) if seen.size else np.full_like(flat, -1)
    sizes = np.bincount(keys, minlength=1)
    count = np.where(paths >= 0, sizes[np.maximum(paths, 0)], 0).sum(axis=1)
    return count.astype(np.int64), found


def _closer_relative_numpy(people: Real, points: Real, scales: Real, truth: Int) -> tuple[Int, Int]:
    closer, tied = np.zeros(truth.size, dtype=np.int64), np.zeros(truth.size, dtype=np.int64)
    for i in range(truth.size):
        if truth[i] < 0:
            continue
        gaps = (points - people[i]) * scales[i]
        far = np.zeros(points.shape[0])
        for a in range(points.shape[1]):
            far += gaps[:, a] * gaps[:, a]
        own = far[truth[i]]
        slack = 1e-12 * own + 1e-15
        closer[i] = int((far < own - slack).any())
        tied[i] = int(np.count_nonzero(far <= own + slack)) if not closer[i] else 0
    return closer, tied


@kernel(
    "Tuple((int64[::1], int64[::1]))(float64[:,::1], float64[:,::1], float64[:,::1], int64[::1])", twin=_closer_relative_numpy
)
def closer_relative(people: Real, points: Real, scales: Real, truth: Int) -> tuple[Int, Int]:
    """Whether some point is closer to a person than the own one, each coordinate in the person's own scale; if none, how many
    are as close (the own one included). For persons without an own point both are 0."""
    closer = np.zeros(truth.size, dtype=np.int64)
    tied = np.zeros(truth.size, dtype=np.int64)
    width = points.shape[1]
    for i in range(truth.size):
        if truth[i] < 0:
            continue
        own = 0.0
        for a in range(width):
            gap = (points[truth[i], a] - people[i, a]) * scales[i, a]
            own += gap * gap
        slack = 1e-12 * own + 1e-15
        for j in range(points.shape[0]):
            far = 0.0
            for a in range(width):
                gap = (points[j, a] - people[i, a]) * scales[i, a]
                far += gap * gap
                if far > own + slack:
                    break
            if far < own - slack:
                closer[i] = 1
                tied[i] = 0
                break
            if far <= own + slack:
                tied[i] += 1
    return closer, tied


def likeliest(laws: list[Real], people: Int, records: Int, truth: Int) -> tuple[Real, Real, Int]:
    """Under independent transition laws P_a[true, shown]: per person the chance that the likeliest record, chosen at random
    among equally likely ones, is the own one; the posterior of the own record; and how many records are likeliest.

    `people` and `records` hold one row of codes each; a code of -1 says nothing.
    """
    shown, of_record, sizes = np.unique(records, axis=0, return_inverse=True, return_counts=True)
    asked, of_person = np.unique(people, axis=0, return_inverse=True)
    of_record, of_person = of_record.reshape(-1), of_person.reshape(-1)
    logs = [np.log(law, where=law > 0, out=np.full(law.shape, -np.inf)) for law in laws]
    # a code of -1 picks the row or column of zeros that is added here
    logs = [np.pad(law, ((0, 1), (0, 1))) for law in logs]
    credit, posterior, ties = np.zeros(truth.size), np.zeros(truth.size), np.zeros(truth.size, dtype=np.int64)
    step = max(_BLOCK // max(shown.shape[0], 1), 1)
    order = np.argsort(of_person, kind="stable")
    edges = np.searchsorted(of_person[order], np.arange(asked.shape[0] + 1))
    for start in range(0, asked.shape[0], step):
        stop = min(start + step, asked.shape[0])
        total = np.zeros((stop - start, shown.shape[0]))
        for a, law in enumerate(logs):
            total += law[asked[start:stop, a][:, None], shown[:, a][None, :]]
        top = total.max(axis=1)
        reachable = np.isfinite(top)
        at_top = (total >= top[:, None] - 1e-9) & reachable[:, None]
        many = (at_top * sizes).sum(axis=1)
        likely = np.exp(total - np.where(reachable, top, 0.0)[:, None])
        mass = likely @ sizes
        rows = order[edges[start] : edges[stop]]
        local = of_person[rows] - start
        ties[rows] = many[local]
        there = truth[rows] >= 0
        rows, local = rows[there], local[there]
        combination = of_record[truth[rows]]
        credit[rows] = np.where(at_top[local, combination], 1.0 / np.maximum(many[local], 1), 0.0)
        posterior[rows] = likely[local, combination] / np.maximum(mass[local], 1e-300)
    return credit, posterior, ties
