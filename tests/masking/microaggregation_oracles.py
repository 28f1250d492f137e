"""Microaggregation in plain Python, as the definitions read: lists of rows, every distance computed every time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

Point = Sequence[float]


def squared(one: Point, other: Point) -> float:
    total = 0.0
    for a, b in zip(one, other, strict=True):
        total += (a - b) ** 2
    return total


def mean(points: Sequence[Point]) -> list[float]:
    return [sum(column) / len(points) for column in zip(*points, strict=True)]


def farthest(points: Sequence[Point], left: list[int], centre: Point) -> int:
    return max(left, key=lambda row: (squared(points[row], centre), -row))


def around(points: Sequence[Point], left: list[int], row: int, count: int) -> list[int]:
    others = sorted((other for other in left if other != row), key=lambda other: (squared(points[other], points[row]), other))
    return [row, *others[: count - 1]]


def mdav(points: Sequence[Point], k: int) -> list[list[int]]:
    left, clusters = list(range(len(points))), []

    def take(row: int) -> None:
        members = around(points, left, row, k)
        clusters.append(members)
        for member in members:
            left.remove(member)

    while len(left) >= 3 * k:
        one = farthest(points, left, mean([points[row] for row in left]))
        take(one)
        take(farthest(points, left, points[one]))
    if len(left) >= 2 * k:
        take(farthest(points, left, mean([points[row] for row in left])))
    if left:
        clusters.append(left)
    return clusters


def join(points: Sequence[Point], clusters: list[list[int]], left: list[int]) -> None:
    centres = [mean([points[row] for row in members]) for members in clusters]
    for row in left:
        # equal distances to rounded centroids differ in their last digits
        nearest = min(range(len(clusters)), key=lambda c: (round(squared(points[row], centres[c]), 9), c))
        clusters[nearest].append(row)


def cbfs(points: Sequence[Point], k: int, values: Sequence[object] | None = None, p: int = 1) -> list[list[int]]:
    """With values every cluster takes the nearest records with new values until it shows p of them."""
    values = list(range(len(points))) if values is None else values
    left, clusters = list(range(len(points))), []
    while len(left) >= k and len({values[row] for row in left}) >= p:
        members = around(points, left, farthest(points, left, mean([points[row] for row in left])), k)
        ranked = around(points, left, members[0], len(left))
        while len({values[row] for row in members}) < p:
            members.append(next(row for row in ranked if values[row] not in {values[member] for member in members}))
        clusters.append(members)
        left = [row for row in left if row not in members]
    join(points, clusters, left)
    return clusters


def v_mdav(points: Sequence[Point], k: int, gamma: float) -> list[list[int]]:
    centre = mean(points)
    left, clusters = list(range(len(points))), []
    while len(left) >= k:
        members = around(points, left, farthest(points, left, centre), k)
        left = [row for row in left if row not in members]
        while len(members) < 2 * k - 1 and len(left) > 1:
            inward, candidate = min((squared(points[a], points[b]) ** 0.5, b) for a in members for b in left)
            outward = min(squared(points[candidate], points[other]) ** 0.5 for other in left if other != candidate)
            if not inward < gamma * outward:
                break
            members.append(candidate)
            left.remove(candidate)
        clusters.append(members)
    join(points, clusters, left)
    for cluster in list(clusters):
        if len(cluster) >= 2 * k:
            rows = sorted(cluster)
            clusters.remove(cluster)
            clusters += [[rows[i] for i in part] for part in mdav([points[row] for row in rows], k)]
    return clusters


def error(points: Sequence[Point], clusters: Sequence[Sequence[int]]) -> float:
    total = 0.0
    for members in clusters:
        centre = mean([points[row] for row in members])
        total += sum(squared(points[row], centre) for row in members)
    return total


def every_partition(rows: list[int], k: int) -> Iterator[list[list[int]]]:
    """All partitions into sets of at least k rows."""
    if not rows:
        yield []
        return
    first, others = rows[0], rows[1:]
    for size in range(k - 1, len(rows)):
        for chosen in itertools.combinations(others, size):
            rest = [row for row in others if row not in chosen]
            if not rest or len(rest) >= k:
                for partition in every_partition(rest, k):
                    yield [[first, *chosen], *partition]


def as_sets(labels: Sequence[int]) -> set[frozenset[int]]:
    """Labels as a set of clusters."""
    return {frozenset(i for i, label in enumerate(labels) if label == chosen) for chosen in set(labels)}


def sets(clusters: Sequence[Sequence[int]]) -> set[frozenset[int]]:
    """Clusters as a set of sets."""
    return {frozenset(members) for members in clusters}
