"""Clustering agreement: indices against counting all pairs, centres against their definition, the edges."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError, Unsupported
from sfumato.measures.utility.clustering import (
    Agreement,
    ClusteringAgreement,
    fuzzy_c_means,
    k_means,
    membership_difference,
    memberships,
    nearest_centre,
)
from tests.measures.masked_tables import microdata, noisy, people, synthetic, taken, with_gaps

partitions = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=25)


def three_groups(size: int = 90, seed: int = 0) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    points = centres[np.arange(size) % 3] + draw.normal(size=(size, 2))
    return {"x": points[:, 0], "y": points[:, 1]}


@given(partitions)
def test_indices_equal_counting_all_pairs(labels: list[tuple[int, int]]) -> None:
    first, second = np.array(labels).T
    pairs = list(combinations(labels, 2))
    both = sum(a[0] == b[0] and a[1] == b[1] for a, b in pairs)
    one, two = sum(a[0] == b[0] for a, b in pairs), sum(a[1] == b[1] for a, b in pairs)
    agree = sum((a[0] == b[0]) == (a[1] == b[1]) for a, b in pairs)
    found = Agreement.of(first, second)
    assert found.rand == pytest.approx(agree / len(pairs))
    assert found.jaccard == pytest.approx(both / (one + two - both) if one + two - both else 1)
    expected, largest = one * two / len(pairs), (one + two) / 2
    assert found.adjusted_rand == pytest.approx((both - expected) / (largest - expected) if largest > expected else 1)
    n = len(labels)
    alone = [Counter(side.tolist()) for side in (first, second)]
    information = sum(c / n * math.log2(c * n / (alone[0][a] * alone[1][b])) for (a, b), c in Counter(labels).items())
    entropies = [-sum(c / n * math.log2(c / n) for c in side.values()) for side in alone]
    assert found.variation_of_information == pytest.approx(sum(entropies) - 2 * information, abs=1e-9)


@given(partitions, st.permutations(range(4)))
def test_names_of_clusters_do_not_matter(labels: list[tuple[int, int]], names: list[int]) -> None:
    first, second = np.array(labels).T
    assert Agreement.of(first, np.array(names)[first]).adjusted_rand == 1
    assert Agreement.of(first, second).rand == Agreement.of(np.array(names)[first], second).rand


def test_groups_that_are_there_are_found() -> None:
    points = np.column_stack(list(three_groups().values()))
    found = nearest_centre(points, k_means(points, 3, seed=1))
    assert Agreement.of(found, np.arange(90) % 3).adjusted_rand == 1


def test_fuzzy_centres_are_the_weighted_means_of_their_records() -> None:
    points = np.column_stack(list(three_groups().values()))
    centres = fuzzy_c_means(points, k_means(points, 3, seed=1), 2.0)
    u = memberships(points, centres, 2.0)
    assert u.sum(axis=1) == pytest.approx(1)
    for c in range(3):
        weights = u[:, c] ** 2
        assert centres[c] == pytest.approx((weights[:, None] * points).sum(axis=0) / weights.sum(), abs=1e-5)
    distances = np.array([[math.dist(p, c) for c in centres] for p in points])
    expected = 1 / ((distances[:, :, None] / distances[:, None, :]) ** 2).sum(axis=2)
    assert u == pytest.approx(expected)


def test_a_record_on_a_centre_belongs_to_it_alone() -> None:
    assert memberships(np.array([[1.0, 1.0]]), np.array([[1.0, 1.0], [0.0, 0.0]]), 2.0)[0] == pytest.approx([1, 0], abs=1e-100)


def test_memberships_are_matched_so_that_they_differ_least() -> None:
    draw = np.random.default_rng(0)
    first, second = (draw.dirichlet(np.ones(4), 30) for _ in range(2))
    least = min(np.abs(first - second[:, list(order)]).sum() / 60 for order in permutations(range(4)))
    assert membership_difference(first, second) == pytest.approx(least)
    assert membership_difference(first, first[:, [2, 0, 3, 1]]) == 0
    assert membership_difference(first, np.ones((30, 1))) == pytest.approx(1 - first.sum(axis=0).max() / 30)


@pytest.mark.parametrize("method", ["k_means", "fuzzy"])
def test_nothing_is_lost_where_nothing_changed(method: str) -> None:
    data = with_gaps(people(), 0.1)
    measure = ClusteringAgreement(4, method)  # type: ignore[arg-type]
    assert measure.score(data, data).value == pytest.approx(0, abs=1e-9)
    turned = taken(data, np.random.default_rng(0).permutation(len(data)))
    assert measure.score(data, turned).value == pytest.approx(0, abs=0.05)
    assert measure.score(data, synthetic(data, data.table())).value == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("method", ["k_means", "fuzzy"])
def test_a_mask_within_groups_keeps_them_and_shuffling_loses_them(method: str) -> None:
    groups = three_groups()
    data = microdata(groups)
    measure = ClusteringAgreement(3, method)  # type: ignore[arg-type]
    near = pa.table({name: values + 0.5 for name, values in groups.items()})
    order = np.random.default_rng(1).permutation(90)
    far = pa.table({name: values[order] for name, values in groups.items()})
    kept, lost = measure.score(data, near), measure.score(data, far)
    assert kept.parts["adjusted Rand"] == 1 and kept.value < 0.05
    assert lost.parts["adjusted Rand"] < 0.2 and lost.value > 0.5


def test_synthetic_rows_are_compared_by_their_centres() -> None:
    data = microdata(three_groups())
    other = synthetic(data, pa.table(three_groups(60, seed=9)))
    found = ClusteringAgreement(3).score(data, other)
    assert found.value == 0
    assert found.parts["variation of information"] == 0


def test_the_same_seed_gives_the_same_score() -> None:
    data = people(300)
    shown = noisy(data, 0.5)
    measure = ClusteringAgreement(6, seed=3)
    assert measure.score(data, shown) == measure.score(data, shown)


def test_a_mask_with_fewer_records_than_clusters_leaves_fewer_clusters() -> None:
    data = microdata(three_groups())
    flat = pa.table({name: np.full(90, values.mean()) for name, values in three_groups().items()})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ClusteringAgreement(3).score(data, flat)
        fuzzy = ClusteringAgreement(3, "fuzzy").score(data, flat)
    assert found.value == 1
    assert 0.5 < fuzzy.value <= 1


def test_what_cannot_be_clustered_is_refused() -> None:
    data = microdata({"x": [1.0, 1.0, 2.0]})
    with pytest.raises(Unsupported, match="fewer than 3 different records"):
        ClusteringAgreement(3).score(data, data)
    for wrong in ({"clusters": 1}, {"method": "tree"}, {"fuzziness": 1.0}):
        with pytest.raises(ParameterError, match="ClusteringAgreement"):
            ClusteringAgreement(**wrong)
