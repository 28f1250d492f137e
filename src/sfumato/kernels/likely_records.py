"""Which released record is likeliest to be a person's: by clusters that intersect, and by transition laws.

What the adversary who knows the method computes from a person's true values. Memory is linear in the records. Torra, "Data
privacy: foundations, new developments and the big data challenge", Springer 2017.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
        wide = int(max(clusters[:, group].max(initial=0), near.max(initial=0))) + 1
        seen, keys = np.unique(keys * wide + clusters[:, group], return_inverse=True)
        keys = keys.reshape(-1).astype(np.int64)
        asked = np.where((paths[:, :, None] >= 0) & (near[:, None, :] >= 0), paths[:, :, None] * wide + near[:, None, :], -1)
        flat = asked.reshape(people, -1)
        place = np.minimum(np.searchsorted(seen, flat), max(seen.size - 1, 0))
        paths = np.where((flat >= 0) & (seen[place] == flat), place, -1) if seen.size else np.full_like(flat, -1)
    sizes = np.bincount(keys, minlength=1)
    count = np.where(paths >= 0, sizes[np.maximum(paths, 0)], 0).sum(axis=1)
    return count.astype(np.int64), found


def likeliest(laws: list[Real], people: Int, records: Int, truth: Int) -> tuple[Real, Real, Int]:
    """Under independent transition laws P_a[true, shown]: per person the chance that the record of largest posterior, chosen at
    random among equal ones, is the own one; the posterior of the own record; and how many records have the largest.

    The posterior of a record is how likely it is from the person's codes, divided by how likely it is from anybody's: from the
    people given and, for as many records as there are more, from whoever makes the shown combination as frequent as it is.
    `people` and `records` hold one row of codes each; a code of -1 says nothing.
    """
    shown, of_record, sizes = np.unique(records, axis=0, return_inverse=True, return_counts=True)
    asked, of_person, many = np.unique(people, axis=0, return_inverse=True, return_counts=True)
    of_record, of_person = of_record.reshape(-1), of_person.reshape(-1)
    # a code of -1 picks the row or column of zeros that is added here
    logs = [np.pad(np.log(law, where=law > 0, out=np.full(law.shape, -np.inf)), ((0, 1), (0, 1))) for law in laws]
    step = max(_BLOCK // max(shown.shape[0], 1), 1)
    blocks = [slice(start, min(start + step, asked.shape[0])) for start in range(0, asked.shape[0], step)]
    anybody = max(records.shape[0] - people.shape[0], 0) * sizes / max(records.shape[0], 1)
    for block in blocks:
        anybody = anybody + many[block] @ np.exp(_log_likelihood(logs, asked[block], shown))
    rarity = -np.log(np.maximum(anybody, 1e-300))
    credit, posterior, ties = np.zeros(truth.size), np.zeros(truth.size), np.zeros(truth.size, dtype=np.int64)
    order = np.argsort(of_person, kind="stable")
    edges = np.searchsorted(of_person[order], np.arange(asked.shape[0] + 1))
    for block in blocks:
        total = _log_likelihood(logs, asked[block], shown) + rarity
        top = total.max(axis=1)
        possible = np.isfinite(top)
        at_top = (total >= top[:, None] - 1e-9) & possible[:, None]
        equal = (at_top * sizes).sum(axis=1)
        likely = np.exp(total - np.where(possible, top, 0.0)[:, None])
        mass = likely @ sizes
        rows = order[edges[block.start] : edges[block.stop]]
        local = of_person[rows] - block.start
        ties[rows] = equal[local]
        there = truth[rows] >= 0
        rows, local = rows[there], local[there]
        combination = of_record[truth[rows]]
        credit[rows] = np.where(at_top[local, combination], 1.0 / np.maximum(equal[local], 1), 0.0)
        posterior[rows] = likely[local, combination] / np.maximum(mass[local], 1e-300)
    return credit, posterior, ties


def _log_likelihood(logs: list[Real], asked: Int, shown: Int) -> Real:
    total = np.zeros((asked.shape[0], shown.shape[0]))
    for a, law in enumerate(logs):
        total += law[asked[:, a][:, None], shown[:, a][None, :]]
    return total
