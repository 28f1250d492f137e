"""Which released record is likeliest to be a person's: the nearest one, by clusters that intersect, and by transition laws.

What the adversary who knows the method computes from a person's true values. A person may have several released rows: `owner[j]`
says whose row j is, `mine[i]` which owner person i is (-1: nobody in the release), and every row of the own is a right answer.
Memory is linear in the records. Torra, "Data privacy: foundations, new developments and the big data challenge", Springer 2017.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.linkage.points import TOLERANCE, Metric, PointTree
from sfumato.kernels.linkage.tree import ABSOLUTE, SQUARED

Real = NDArray[np.float64]
Int = NDArray[np.int64]

_BLOCK = 1_000_000
#: Pairs of a person and a point up to which a mass is summed over all points; beyond, the nearest are taken and a sample of the
#: others stands for the rest.
_ALL_PAIRS, _NEAREST, _SAMPLE = 25_000_000, 24, 1_000
#: People with their combinations of clusters that are followed at once.
_FOLLOWED = 4_000_000


def own_rows(owner: Int, mine: Int) -> Iterator[tuple[Int, Int]]:
    """People who have a further row of their own, with that row: everybody's first one, then the second ones, and so on."""
    order = np.argsort(owner, kind="stable").astype(np.int64)
    ranked = owner[order]
    start, stop = np.searchsorted(ranked, mine, side="left"), np.searchsorted(ranked, mine, side="right")
    for round_ in range(int((stop - start).max(initial=0))):
        who = np.flatnonzero(start + round_ < stop)
        yield who, order[start[who] + round_]


def nearest_own(tree: PointTree, points: Real, queries: Real, owner: Int, mine: Int) -> tuple[Real, Int]:
    """Per person the chance that the nearest point, at random among equally near ones, is an own one, and how many are nearest
    where it is that (0 where somebody else's is nearer)."""
    metric, people = tree.metric, mine.size
    limit, first = np.full(people, np.inf), np.full(people, -1, dtype=np.int64)
    for who, rows in own_rows(owner, mine):
        limit[who] = np.minimum(limit[who], metric.sums(queries[who], points[rows]))
        first[who] = np.where(first[who] < 0, rows, first[who])
    equal = np.zeros(people, dtype=np.int64)
    for who, rows in own_rows(owner, mine):
        equal[who] += metric.sums(queries[who], points[rows]) <= limit[who] * (1.0 + TOLERANCE)
    place = np.empty(tree.size, dtype=np.int64)
    place[tree.order] = np.arange(tree.size)
    there = np.flatnonzero(first >= 0)
    there = there[np.argsort(place[first[there]], kind="stable")]  # neighbours one after the other
    closer, tied = tree.ranked(queries[there], limit[there])
    credit, nearest = np.zeros(people), np.zeros(people, dtype=np.int64)
    nearest[there] = np.where(closer, 0, np.maximum(tied, equal[there]))
    credit[there] = np.where(closer, 0.0, equal[there] / np.maximum(nearest[there], 1))
    return credit, nearest


def log_mass(queries: Real, points: Real, metric: Metric) -> Real:
    """Per person the logarithm of Σ exp(-difference/2) over all points.

    For very many pairs the nearest points are summed and the others estimated from those that stand at even distances in the
    order of a k-d tree, which are spread as the points are.
    """
    people, count = queries.shape[0], points.shape[0]
    near, beyond, weight = np.full(people, -np.inf), np.full(people, -np.inf), 0.0
    others = points
    if people * count > _ALL_PAIRS and count > _NEAREST + _SAMPLE:
        tree = PointTree(points, metric)
        place = np.argsort(PointTree(queries, metric).order)
        order = np.argsort(place)
        sums = np.empty((people, _NEAREST))
        sums[order] = tree.closest(queries[order], _NEAREST)[0]
        near, beyond = _log_sum(-sums / 2), sums[:, -1]
        others = points[tree.order[:: count // _SAMPLE]]
        weight = float(np.log(count / others.shape[0]))
    rest = np.empty(people)
    step = max(_BLOCK // max(others.shape[0], 1), 1)
    for start in range(0, people, step):
        part = slice(start, min(start + step, people))
        sums = _differences(queries[part], others, metric)
        rest[part] = _log_sum(np.where(sums > beyond[part, None], -sums / 2, -np.inf)) + weight
    return np.asarray(np.logaddexp(near, rest))


def _differences(queries: Real, points: Real, metric: Metric) -> Real:
    total = np.zeros((queries.shape[0], points.shape[0]))
    for j in range(metric.width):
        term = queries[:, j, None] - points[None, :, j]
        unknown = np.isnan(term)
        if metric.kinds[j] == SQUARED:
            term *= term
        elif metric.kinds[j] == ABSOLUTE:
            np.abs(term, out=term)
        else:
            term = np.where(term == 0.0, 0.0, metric.costs[j])
        term[unknown] = metric.neutral[j]
        total += term
    return total


def _log_sum(logs: Real) -> Real:
    top = logs.max(axis=1, initial=-np.inf)
    there = np.isfinite(top)
    total = np.exp(logs - np.where(there, top, 0.0)[:, None]).sum(axis=1)
    return np.where(there, top + np.log(np.where(there, total, 1.0)), -np.inf)


def intersections(clusters: Int, nearest: list[Int], owner: Int, mine: Int) -> tuple[Int, Int]:
    """Per person, how many records belong to a near cluster in every group of attributes, and how many of them are the own.

    `clusters` has one row per record and one column per group; `nearest[g]` lists each person's near clusters of group g, filled
    up with -1; where it lists none, the group says nothing about the person.
    """
    people = mine.size
    count, own = np.zeros(people, dtype=np.int64), np.zeros(people, dtype=np.int64)

    def follow(group: int, keys: Int, who: Int, taken: Int) -> None:
        """`keys` numbers the combinations of clusters of the records; the pairs (who, taken) are the people's."""
        if who.size > _FOLLOWED and who[0] != who[-1]:  # pairs stand in the order of the people
            middle = int(np.searchsorted(who, who[who.size // 2]))
            middle = middle or int(np.searchsorted(who, who[0], side="right"))
            follow(group, keys, who[:middle], taken[:middle])
            follow(group, keys, who[middle:], taken[middle:])
            return
        if group == len(nearest):
            _count_members(keys, who, taken, owner, mine, count, own)
            return
        near = nearest[group]
        says = near[who].max(axis=1, initial=-1) >= 0
        if not says.all():
            follow(group + 1, keys, who[~says], taken[~says])
            who, taken = who[says], taken[says]
        if not who.size:
            return
        wide = int(max(clusters[:, group].max(initial=0), near.max(initial=0))) + 1
        seen, finer = np.unique(keys * wide + clusters[:, group], return_inverse=True)
        ahead: list[tuple[Int, Int]] = []
        for column in range(near.shape[1]):
            cluster = near[who, column]
            asked = taken * wide + cluster
            place = np.minimum(np.searchsorted(seen, asked), seen.size - 1)
            kept = (cluster >= 0) & (seen[place] == asked)
            ahead.append((who[kept], place[kept]))
        person, key = (np.concatenate(parts) for parts in zip(*ahead, strict=True))
        order = np.argsort(person, kind="stable")
        follow(group + 1, finer.reshape(-1).astype(np.int64), person[order], key[order])

    if people and clusters.shape[0]:
        follow(0, np.zeros(clusters.shape[0], dtype=np.int64), np.arange(people), np.zeros(people, dtype=np.int64))
    return count, own


def _count_members(keys: Int, who: Int, taken: Int, owner: Int, mine: Int, count: Int, own: Int) -> None:
    if not who.size:
        return
    sizes = np.bincount(keys, minlength=1)
    np.add.at(count, who, sizes[taken])
    owned, many = np.unique(owner * sizes.size + keys, return_counts=True)
    asked = np.where(mine[who] >= 0, mine[who] * sizes.size + taken, -1)
    place = np.minimum(np.searchsorted(owned, asked), owned.size - 1)
    np.add.at(own, who, np.where(owned[place] == asked, many[place], 0))


def likeliest(laws: list[Real], people: Int, records: Int, owner: Int, mine: Int) -> tuple[Real, Real, Int]:
    """Under independent transition laws P_a[true, shown]: per person the chance that the record of largest posterior, chosen at
    random among equal ones, is an own one; the posterior of the own records; and how many records have the largest.

    The posterior of a record is how likely it is from the person's codes, divided by how likely it is from anybody's: from the
    people given and, for as many records as there are more, from whoever makes the shown combination as frequent as it is.
    `people` and `records` hold one row of codes each; a code of -1 says nothing.
    """
    shown, of_record, sizes = np.unique(records, axis=0, return_inverse=True, return_counts=True)
    distinct, of_person, many = np.unique(people, axis=0, return_inverse=True, return_counts=True)
    of_record, of_person = of_record.reshape(-1), of_person.reshape(-1)
    # a code of -1 picks the row or column of zeros that is added here
    logs = [np.pad(np.log(law, where=law > 0, out=np.full(law.shape, -np.inf)), ((0, 1), (0, 1))) for law in laws]
    step = max(_BLOCK // max(shown.shape[0], 1), 1)
    blocks = [slice(start, min(start + step, distinct.shape[0])) for start in range(0, distinct.shape[0], step)]
    anybody = max(records.shape[0] - people.shape[0], 0) * sizes / max(records.shape[0], 1)
    for block in blocks:
        anybody = anybody + many[block] @ np.exp(_log_likelihood(logs, distinct[block], shown))
    rarity = -np.log(np.maximum(anybody, 1e-300))
    credit, posterior, ties = np.zeros(mine.size), np.zeros(mine.size), np.zeros(mine.size, dtype=np.int64)
    owned, owned_times = np.unique(np.column_stack([owner, of_record]), axis=0, return_counts=True)
    order = np.argsort(of_person, kind="stable")
    edges = np.searchsorted(of_person[order], np.arange(distinct.shape[0] + 1))
    for block in blocks:
        total = _log_likelihood(logs, distinct[block], shown) + rarity
        top = total.max(axis=1)
        possible = np.isfinite(top)
        at_top = (total >= top[:, None] - 1e-9) & possible[:, None]
        equal = (at_top * sizes).sum(axis=1)
        likely = np.exp(total - np.where(possible, top, 0.0)[:, None])
        mass = likely @ sizes
        rows = order[edges[block.start] : edges[block.stop]]
        local = of_person[rows] - block.start
        ties[rows] = equal[local]
        for who, place in own_rows(owned[:, 0], mine[rows]):
            combination, times, here = owned[place, 1], owned_times[place], local[who]
            credit[rows[who]] += at_top[here, combination] * times / np.maximum(equal[here], 1)
            posterior[rows[who]] += likely[here, combination] * times / np.maximum(mass[here], 1e-300)
    return credit, posterior, ties


def _log_likelihood(logs: list[Real], originals: Int, shown: Int) -> Real:
    total = np.zeros((originals.shape[0], shown.shape[0]))
    for a, law in enumerate(logs):
        total += law[originals[:, a][:, None], shown[:, a][None, :]]
    return total
