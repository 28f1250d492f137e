"""Distances with parameters, against plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.kernels.linkage import likely_records
from sfumato.kernels.linkage.learned_distance import Links, Terms, links, terms_of
from sfumato.kernels.linkage.likely_records import intersections, log_mass, nearest_own
from sfumato.kernels.linkage.points import Metric, PointTree
from sfumato.kernels.linkage.rank_windows import candidates, ranked, windows
from tests.kernels.attack_inputs import searched


def distance(x: list[float], y: list[float], category: list[bool], terms: Terms, theta: list[float]) -> float:
    gaps = [float(a != b) if kind else (a - b) ** 2 for a, b, kind in zip(x, y, category, strict=True)]
    values = sorted(gaps, reverse=True) if terms.ordered else gaps
    for left, right, largest in zip(terms.left.tolist(), terms.right.tolist(), terms.largest.tolist(), strict=True):
        values.append((max if largest else min)(values[left], values[right]))
    return sum(weight * value for weight, value in zip(theta, values, strict=True))


@given(searched())
def test_links_equal_comparing_all_pairs_by_hand(case: tuple[Any, ...]) -> None:
    seeking, sought, category, partner, ordered, left, right, largest, theta, keep = case
    terms = Terms(seeking.shape[1], bool(ordered), left, right, largest)
    found = links(seeking, sought, category.astype(bool), partner, terms, theta, keep)
    kinds = category.astype(bool).tolist()
    for i, x in enumerate(seeking.tolist()):
        far = [distance(x, y, kinds, terms, theta.tolist()) for y in sought.tolist()]
        own, others = far[partner[i]], [value for j, value in enumerate(far) if j != partner[i]]
        assert found.own[i] == pytest.approx(own)
        assert found.share[i] == pytest.approx(0.0 if min(others, default=9e9) < own else 1 / far.count(own))
        assert found.distances[i].tolist() == pytest.approx(sorted(others)[:keep])


def test_terms_that_no_weight_needs_are_left_out() -> None:
    terms = Terms.of(3, [(0, 1, 0), (1, 2, 1), (3, 2, 1)])
    theta = np.array([0.0, 0.5, 0.0, 0.0, 0.0, 0.5])
    fewer, weights = terms.needed(theta)
    gaps = np.random.default_rng(1).random((20, 3))
    assert fewer.size == 5
    assert np.allclose(terms_of(gaps, terms) @ theta, terms_of(gaps, fewer) @ weights)


def test_a_single_record_is_always_found() -> None:
    one = np.zeros((1, 2))
    nothing = np.zeros(2, dtype=bool)
    alone = links(one, one, nothing, np.zeros(1, dtype=np.int64), Terms.of(2), np.ones(2), 4)
    assert (alone.rate, alone.linked(1.0).tolist()) == (1.0, [True])
    assert Links(np.zeros(0), np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0)), np.zeros(0)).rate == 0.0


CELLS = st.one_of(st.integers(0, 5).map(float), st.just(float("nan")))


@given(st.data(), st.integers(1, 3), st.integers(1, 10), st.integers(1, 6), st.integers(0, 4))
def test_candidates_are_the_records_within_reach_under_some_order_of_equal_values(
    data: st.DataObject, width: int, count: int, people: int, reach: int
) -> None:
    shown = [data.draw(st.lists(CELLS, min_size=count, max_size=count)) for _ in range(width)]
    held = [data.draw(st.lists(st.sampled_from([*column, float("nan")]), min_size=people, max_size=people)) for column in shown]
    mine = np.array(data.draw(st.lists(st.integers(-1, 4), min_size=people, max_size=people)), dtype=np.int64)
    owner = np.array(data.draw(st.lists(st.integers(0, 4), min_size=count, max_size=count)), dtype=np.int64)
    parts = [ranked(np.array(column)) for column in shown]
    sides = [windows(np.array(person), np.array(column), reach) for person, column in zip(held, shown, strict=True)]
    counted, found = candidates(
        np.array([part[0] for part in parts]),
        np.array([part[1] for part in parts]),
        np.array([part[2] for part in parts], dtype=np.int64),
        np.ascontiguousarray(np.array([side[0] for side in sides]).T),
        np.ascontiguousarray(np.array([side[1] for side in sides]).T),
        owner,
        mine,
    )

    def may_become(value: float, masked: float, column: list[float]) -> bool:
        if value != value or masked != masked:  # missing: nothing is excluded
            return True
        order = sorted(entry for entry in column if entry == entry)
        places = [rank for rank, entry in enumerate(order) if entry == value]
        return any(entry == masked and abs(rank - place) <= reach for rank, entry in enumerate(order) for place in places)

    for person in range(people):
        fits = [all(may_become(held[a][person], shown[a][row], shown[a]) for a in range(width)) for row in range(count)]
        assert counted[person] == sum(fits)
        assert found[person] == sum(fit and owner[row] == mine[person] for row, fit in enumerate(fits))


@given(st.data(), st.integers(1, 3), st.integers(1, 12), st.integers(1, 6))
def test_intersections_count_records_that_are_near_in_every_group(
    data: st.DataObject, groups: int, count: int, people: int
) -> None:
    clusters = np.array(
        data.draw(st.lists(st.lists(st.integers(0, 3), min_size=groups, max_size=groups), min_size=count, max_size=count))
    )
    lists = st.lists(st.lists(st.integers(0, 3), max_size=2, unique=True), min_size=people, max_size=people)
    near = [np.array([[*chosen, -1, -1][:2] for chosen in data.draw(lists)]) for _ in range(groups)]
    mine = np.array(data.draw(st.lists(st.integers(-1, 4), min_size=people, max_size=people)), dtype=np.int64)
    owner = np.array(data.draw(st.lists(st.integers(0, 4), min_size=count, max_size=count)), dtype=np.int64)
    counted, found = intersections(clusters, near, owner, mine)
    for person in range(people):
        speaking = [g for g in range(groups) if (near[g][person] >= 0).any()]
        members = [row for row in range(count) if all(clusters[row, g] in near[g][person] for g in speaking)]
        assert counted[person] == len(members)
        assert found[person] == sum(owner[row] == mine[person] for row in members)


def test_people_who_know_little_of_many_groups_are_followed_in_linear_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    clusters = random.integers(0, 3, (300, 12))
    near = [np.where(random.random((50, 3)) < 0.2, -1, np.tile(np.arange(3), (50, 1))) for _ in range(12)]
    owner, mine = np.arange(300), np.arange(50)
    whole = intersections(clusters, near, owner, mine)
    monkeypatch.setattr(likely_records, "_FOLLOWED", 40)  # people are followed in parts
    assert [part.tolist() for part in intersections(clusters, near, owner, mine)] == [part.tolist() for part in whole]
    for person in range(50):
        speaking = [g for g in range(12) if (near[g][person] >= 0).any()]
        members = [row for row in range(300) if all(clusters[row, g] in near[g][person] for g in speaking)]
        assert (whole[0][person], whole[1][person]) == (len(members), person in members)


@given(st.integers(0, 10**6))
def test_the_nearest_is_an_own_record_as_often_as_by_hand(seed: int) -> None:
    random = np.random.default_rng(seed)
    points, asked = random.integers(0, 3, (9, 2)).astype(float), random.integers(0, 3, (6, 2)).astype(float)
    owner, mine = random.integers(0, 4, 9), random.integers(-1, 5, 6)
    credit, tied = nearest_own(PointTree(points, Metric.euclidean(2)), points, asked, owner, mine)
    for person in range(6):
        far = [sum((a - b) ** 2 for a, b in zip(asked[person].tolist(), point, strict=True)) for point in points.tolist()]
        nearest = [row for row, value in enumerate(far) if value == min(far)]
        own = [row for row in nearest if owner[row] == mine[person]]
        assert credit[person] == pytest.approx(len(own) / len(nearest))
        assert tied[person] == (len(nearest) if own else 0)


@pytest.mark.parametrize("spread", [0.05, 1.0, 20.0])
def test_a_mass_is_summed_over_all_points_or_estimated_well(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    points, asked, metric = random.normal(size=(4_000, 3)) / spread, random.normal(size=(20, 3)) / spread, Metric.euclidean(3)
    exact = [np.log(sum(np.exp(-((point - one) ** 2).sum() / 2) for point in points)) for one in asked]
    assert log_mass(asked, points, metric) == pytest.approx(exact)
    monkeypatch.setattr(likely_records, "_ALL_PAIRS", 0)
    # evenly spread samples of a thousand: within a tenth, where the nearest 24 alone miss up to 160-fold
    assert log_mass(asked, points, metric) == pytest.approx(exact, abs=0.1)
