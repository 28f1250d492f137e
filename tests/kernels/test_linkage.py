"""Linkage by the tree equals linkage by comparing every pair, on random, tied, duplicated and incomplete records."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from sfumato.kernels.linkage.points import TOLERANCE, Metric, PointTree, nearest, own_is_nearest
from sfumato.kernels.linkage.tree import ABSOLUTE, CATEGORY, SQUARED
from tests.examples import examples
from tests.kernels.linkage_inputs import files

nan = float("nan")


def difference(a: list[float], b: list[float], metric: Metric) -> float:
    """The definition, in plain Python."""
    total = 0.0
    for x, y, kind, cost, neutral in zip(a, b, metric.kinds, metric.costs, metric.neutral, strict=True):
        if math.isnan(x) or math.isnan(y):
            total += float(neutral)
        elif kind == CATEGORY:
            total += 0.0 if x == y else float(cost)
        else:
            total += (x - y) * (x - y) if kind == SQUARED else abs(x - y)
    return total


def slack(a: list[float], b: list[float], metric: Metric) -> float:
    """What counts as tied with the difference: a share of what is known, and rounding."""
    gaps = [math.isnan(x) or math.isnan(y) for x, y in zip(a, b, strict=True)]
    known = difference(a, b, metric) - sum(float(n) for n, gap in zip(metric.neutral, gaps, strict=True) if gap)
    return TOLERANCE * max(known, 0.0) + 1e-14 * difference(a, b, metric)


def by_hand(originals: np.ndarray, masked: np.ndarray, metric: Metric, owner: list[int] | None = None) -> list[float]:
    credits = []
    people = owner if owner is not None else list(range(len(originals)))
    for i, record in enumerate(originals.tolist()):
        others = [difference(record, other, metric) for other in masked.tolist()]
        mine = [j for j, other in enumerate(people) if other == people[i]]
        nearest_own = min(mine, key=others.__getitem__)
        own, room = others[nearest_own], slack(record, masked[nearest_own].tolist(), metric)
        closer = any(d < own - room for d in others)
        tied = [j for j, d in enumerate(others) if d <= own + room]
        credits.append(0.0 if closer else sum(j in mine for j in tied) / len(tied))
    return credits


@settings(max_examples=examples(60))
@given(files(60))
def test_credit_equals_comparing_every_pair(drawn: tuple[np.ndarray, ...]) -> None:
    _, masked, kinds, costs, neutral = drawn
    originals = masked[np.random.default_rng(len(masked)).permutation(len(masked))] if len(masked) % 2 else masked.copy()
    metric = Metric(kinds, costs, neutral)
    assert own_is_nearest(originals, masked, metric).tolist() == by_hand(originals, masked, metric)


@settings(max_examples=examples(60))
@given(files(60))
def test_the_nearest_point_equals_comparing_every_pair(drawn: tuple[np.ndarray, ...]) -> None:
    queries, points, kinds, costs, neutral = drawn
    metric = Metric(kinds, costs, neutral)
    distance, index, ties = nearest(queries, points, metric)
    for row, query in enumerate(queries.tolist()):
        found = [difference(query, point, metric) for point in points.tolist()]
        if not found:
            assert (distance[row], index[row], ties[row]) == (math.inf, -1, 0)
            continue
        assert distance[row] == min(found)
        assert index[row] == found.index(min(found))
        room = slack(query, points[found.index(min(found))].tolist(), metric)
        assert ties[row] == sum(d <= min(found) + room for d in found)


@pytest.mark.covering
@pytest.mark.parametrize("width", [1, 3, 8, 20])
@pytest.mark.parametrize("noise", [0.01, 0.5, 3.0])
def test_continuous_and_microaggregated_files_equal_brute_force(width: int, noise: float) -> None:
    draw = np.random.default_rng(width)
    originals = draw.normal(size=(160, width))
    masked = originals + noise * draw.normal(size=originals.shape)
    metric = Metric.euclidean(width)
    assert own_is_nearest(originals, masked).tolist() == by_hand(originals, masked, metric)
    order = np.argsort(originals[:, 0])
    centroids = np.empty_like(originals)
    for start in range(0, 160, 5):
        group = order[start : start + 5]
        centroids[group] = originals[group].mean(axis=0)
    credits = own_is_nearest(originals, centroids)
    assert credits.tolist() == by_hand(originals, centroids, metric)
    assert set(np.round(1 / credits[credits > 0]).tolist()) == {5.0}


def test_identity_links_everybody_and_equal_records_share() -> None:
    distinct = np.arange(12.0).reshape(6, 2)
    assert own_is_nearest(distinct, distinct).tolist() == [1.0] * 6
    twice = np.vstack([distinct, distinct])
    assert own_is_nearest(twice, twice).tolist() == [0.5] * 12


@settings(max_examples=examples(60))
@given(files(40))
def test_any_row_of_a_person_is_a_right_answer(drawn: tuple[np.ndarray, ...]) -> None:
    _, masked, kinds, costs, neutral = drawn
    draw = np.random.default_rng(len(masked))
    owner = draw.integers(0, max(len(masked) // 2, 1), len(masked))
    originals = masked[owner] if len(masked) else masked.copy()
    metric = Metric(kinds, costs, neutral)
    found = own_is_nearest(originals, masked, metric, owner)
    assert found == pytest.approx(by_hand(originals, masked, metric, owner.tolist()))
    assert ((found >= 0) & (found <= 1)).all()


def test_what_is_missing_does_not_blur_what_is_known() -> None:
    """The second coordinate is missing everywhere; the first tells the points apart, by less than a billionth of the neutral
    term when squared."""
    points = np.column_stack([np.arange(5) * 1e-5, np.full(5, nan)])
    assert own_is_nearest(points, points).tolist() == [1.0] * 5
    assert nearest(points, points)[2].tolist() == [1] * 5


def test_ties_are_seen_through_rounding() -> None:
    """Whole numbers divided by a deviation: differences of +3 and -3 are one distance, whatever rounding does."""
    scale = 0.9
    assert 10 / scale - 7 / scale != 13 / scale - 10 / scale
    originals, masked = np.array([[10.0], [99.0]]) / scale, np.array([[7.0], [13.0]]) / scale
    assert own_is_nearest(originals, masked).tolist() == [0.5, 1.0]


def test_a_missing_coordinate_differs_by_the_neutral_term() -> None:
    points = np.array([[0.0, nan], [0.0, 1.0], [nan, nan]])
    distance, index, ties = nearest(np.array([[0.0, 1.0], [0.0, nan]]), points, Metric.euclidean(2, neutral=2.0))
    assert distance.tolist() == [0.0, math.sqrt(2.0)]
    assert index.tolist() == [1, 0]
    assert ties.tolist() == [1, 2]


def test_categories_and_scaled_numbers_add_up() -> None:
    metric = Metric(np.array([ABSOLUTE, CATEGORY]), np.array([1.0, 1.0]), np.array([0.5, 0.5]))
    distance, index, _ = nearest(np.array([[0.2, 3.0]]), np.array([[0.3, 4.0], [0.9, 3.0]]), metric)
    assert (distance[0], index[0]) == (pytest.approx(0.7), 1)


def test_more_neighbours_than_points_are_filled_up() -> None:
    sums, positions = PointTree(np.array([[1.0], [3.0]])).closest(np.array([[0.0]]), 3)
    assert sums.tolist() == [[1.0, 9.0, math.inf]]
    assert positions.tolist() == [[0, 1, -1]]


def test_files_of_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="same shape"):
        own_is_nearest(np.zeros((2, 1)), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="matrix"):
        nearest(np.zeros(3), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="coordinates"):
        nearest(np.zeros((3, 2)), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="coordinates"):
        PointTree(np.zeros((3, 2)), Metric.euclidean(1))
