"""Clusters by the fast searches are those of the definitions, ties and all."""

from __future__ import annotations

import tracemalloc
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import Cancelled
from sfumato.kernels.microaggregation import live
from sfumato.kernels.microaggregation.live import Space, UnassignedMixed, UnassignedNumbers, category_distances, central_category
from sfumato.kernels.microaggregation.partitions import cbfs, mdav, v_mdav
from sfumato.kernels.microaggregation.univariate import optimal_groups
from tests.examples import examples
from tests.masking import microaggregation_oracles as oracle

#: Blocks so small that a few records need several groups of them and are laid out anew on the way.
SMALL = {"_BLOCK": 4, "_FAN": 2, "_SMALL": 6, "_MANY": 9}


@st.composite
def grids(draw: st.DrawFn) -> np.ndarray:
    """Records on a small grid: many ties, many equal records; sums are exact."""
    count, attributes = draw(st.integers(1, 40)), draw(st.integers(1, 3))
    reach = draw(st.sampled_from([0, 1, 4, 50]))
    cells = draw(st.lists(st.integers(-reach, reach), min_size=count * attributes, max_size=count * attributes))
    return np.array(cells, dtype=np.float64).reshape(count, attributes)


def small_blocks() -> Any:
    return mock.patch.multiple(live, **SMALL)


@given(grids(), st.integers(2, 6))
def test_mdav_makes_the_clusters_of_the_definition(points: np.ndarray, k: int) -> None:
    with small_blocks():
        labels = mdav(Space.of_numbers(points), k)
    assert oracle.as_sets(labels.tolist()) == oracle.sets(oracle.mdav(points.tolist(), k))


@given(grids(), st.integers(2, 6))
def test_cbfs_makes_the_clusters_of_the_definition(points: np.ndarray, k: int) -> None:
    k = min(k, len(points))
    with small_blocks():
        labels = cbfs(Space.of_numbers(points), k)
    assert oracle.as_sets(labels.tolist()) == oracle.sets(oracle.cbfs(points.tolist(), k))


@given(grids(), st.integers(2, 5), st.sampled_from([0.0, 0.2, 1.1, 3.0]))
def test_v_mdav_makes_the_clusters_of_the_definition(points: np.ndarray, k: int, gamma: float) -> None:
    k = min(k, len(points))
    with small_blocks():
        labels = v_mdav(Space.of_numbers(points), k, gamma)
    assert oracle.as_sets(labels.tolist()) == oracle.sets(oracle.v_mdav(points.tolist(), k, gamma))


def plain_mdav(points: np.ndarray, k: int) -> np.ndarray:
    """MDAV with every distance computed every time."""
    left, labels, made = np.arange(len(points)), np.empty(len(points), dtype=np.int64), 0

    def take(row: int) -> None:
        nonlocal left, made
        distances = ((points[left] - points[row]) ** 2).sum(axis=1)
        distances[left == row] = -1
        chosen = np.lexsort((left, distances))[:k]
        labels[left[chosen]] = made
        made += 1
        left = np.delete(left, chosen)

    def farthest(centre: np.ndarray) -> int:
        return int(left[np.argmax(((points[left] - centre) ** 2).sum(axis=1))])

    while len(left) >= 3 * k:
        one = farthest(points[left].mean(axis=0))
        take(one)
        take(farthest(points[one]))
    if len(left) >= 2 * k:
        take(farthest(points[left].mean(axis=0)))
    labels[left] = made
    return labels


@pytest.mark.parametrize(
    ("count", "attributes", "k", "scale"), [(5000, 1, 10, 1.0), (5000, 2, 7, 1.0), (3000, 4, 3, 1e-6), (3000, 9, 20, 1e6)]
)
def test_thousands_of_records_fall_into_the_same_clusters_with_and_without_boxes(
    count: int, attributes: int, k: int, scale: float
) -> None:
    random = np.random.default_rng(count + attributes)
    points = random.standard_t(3, size=(count, attributes)) * scale
    assert np.array_equal(mdav(Space.of_numbers(points), k), plain_mdav(points, k))


@settings(max_examples=examples(20))
@given(grids(), st.data())
def test_searches_find_what_a_look_at_every_record_finds(points: np.ndarray, data: st.DataObject) -> None:
    with small_blocks():
        numbers = UnassignedNumbers(points)
        mixed = UnassignedMixed(points, np.zeros((0, len(points)), dtype=np.int32), ())
        left = list(range(len(points)))
        while left:
            row = data.draw(st.sampled_from(range(len(points))))
            count = data.draw(st.integers(1, len(points)))
            ranked = sorted(left, key=lambda other: (other != row, oracle.squared(points[row], points[other]), other))
            centre = oracle.mean([points[other] for other in left])
            for search in (numbers, mixed):
                assert search.nearest(row, count).tolist() == ranked[:count]
                assert search.farthest_from(row) == oracle.farthest(points, left, points[row])
                assert search.farthest_from_centroid() == oracle.farthest(points, left, centre)
                assert search.rows().tolist() == left
            gone = data.draw(st.lists(st.sampled_from(left), min_size=1, unique=True))
            numbers.remove(np.array(gone))
            mixed.remove(np.array(gone))
            left = [other for other in left if other not in gone]


#: Leaves 0, 1 below one node, 2, 3 below another; the root is left out.
LEVELS = np.array([[0, 1, 2, 3], [4, 4, 5, 5]], dtype=np.int32)
APART = [[0.0, 0.5, 1.0, 1.0], [0.5, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.5], [1.0, 1.0, 0.5, 0.0]]


def test_categories_differ_by_the_share_of_levels_at_which_they_differ() -> None:
    assert [category_distances(LEVELS, code).tolist() for code in range(4)] == APART


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_the_central_category_has_the_least_sum_of_distances(codes: list[int]) -> None:
    sums = [sum(APART[centre][code] for code in codes) for centre in range(4)]
    counts = np.bincount(codes, minlength=4).astype(np.float64)
    assert central_category(LEVELS, counts) == sums.index(min(sums))
    labels = np.zeros(len(codes), dtype=np.int64)
    assert live.central_codes(np.array(codes, dtype=np.int32), LEVELS, labels, 1).tolist() == [sums.index(min(sums))]


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 3)), min_size=2, max_size=24), st.integers(2, 4))
def test_mixed_records_fall_into_the_clusters_of_the_definition(records: list[tuple[int, int]], k: int) -> None:
    numbers = np.array([[number] for number, _ in records], dtype=np.float64)
    codes = np.array([[code for _, code in records]], dtype=np.int32)
    labels = mdav(Space(numbers, codes, (LEVELS,)), k)

    def squared(one: tuple[float, int], other: tuple[float, int]) -> float:
        return (one[0] - other[0]) ** 2 + APART[one[1]][other[1]] ** 2

    def mean(points: list[tuple[int, int]]) -> tuple[float, int]:
        sums = [sum(APART[centre][code] for _, code in points) for centre in range(4)]
        return sum(number for number, _ in points) / len(points), sums.index(min(sums))

    with mock.patch.multiple(oracle, squared=squared, mean=mean):
        assert oracle.as_sets(labels.tolist()) == oracle.sets(oracle.mdav(records, k))  # type: ignore[arg-type]


@settings(max_examples=examples(15))
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=9), st.integers(2, 3))
def test_no_partition_of_one_attribute_beats_the_shortest_path(values: list[int], k: int) -> None:
    if len(values) < k:
        return
    values = sorted(values)
    points = [[float(value)] for value in values]
    ends = np.cumsum(optimal_groups(np.array(values, dtype=np.float64), k)).tolist()
    groups = [list(range(start, end)) for start, end in zip([0, *ends], ends, strict=False)]
    best = min(oracle.error(points, partition) for partition in oracle.every_partition(list(range(len(values))), k))
    assert oracle.error(points, groups) == pytest.approx(best, abs=1e-9)
    assert all(k <= len(group) <= 2 * k - 1 for group in groups)


def test_groups_of_large_close_numbers_are_told_apart() -> None:
    """Differences of sums of squares would have lost these digits."""
    values = 1e9 + np.array([0.0, 1e-3, 2e-3, 1.0, 1.001, 1.002])
    assert optimal_groups(values, 3).tolist() == [3, 3]


@given(grids(), st.integers(2, 6))
def test_clusters_have_k_to_2k_minus_1_records(points: np.ndarray, k: int) -> None:
    if len(points) < k:
        return
    for labels in (
        mdav(Space.of_numbers(points), k),
        cbfs(Space.of_numbers(points), k),
        v_mdav(Space.of_numbers(points), k, 1.1),
    ):
        sizes = np.bincount(labels)
        assert sizes.min() >= k
        assert sizes.max() <= 2 * k - 1


def test_memory_grows_with_the_records_and_not_with_their_pairs() -> None:
    """A matrix of distances would take 3.2 GB here."""
    points = np.random.default_rng(2).normal(size=(20_000, 4))
    codes = (np.arange(20_000) % 4).astype(np.int32)[None]
    mdav(Space.of_numbers(points[:100]), 50)  # what is loaded once does not count
    mdav(Space(points[:100], codes[:, :100], (LEVELS,)), 50)
    for space in (Space.of_numbers(points), Space(points[:3000], codes[:, :3000], (LEVELS,))):
        tracemalloc.start()
        mdav(space, 50)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20 * space.numbers.nbytes + 2_000_000


def test_work_tells_how_far_it_is_and_can_be_stopped() -> None:
    told: list[tuple[int, int]] = []

    def stop(phase: str, done: int, total: int) -> None:
        told.append((done, total))
        if len(told) == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        mdav(Space.of_numbers(np.random.default_rng(1).normal(size=(2000, 2))), 2, stop)
    assert told == [(512, 2000), (1024, 2000)]
