"""The owner's report on a synthetic table."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.dp import quality
from sfumato.dp.synthesis.quality import _cramers_v, marginal_distances
from tests.dp.synthesis.people import people, small


def test_a_table_against_itself_is_at_distance_zero():
    data = people(400)
    report = quality(data, data.table())
    assert all(report["distance"][size]["largest"] == 0 for size in "123")
    assert report["association"]["mean_change"] == 0
    assert report["matches"]["equal_to_an_original"] == 400


def test_disjoint_tables_are_at_distance_one():
    report = quality(small(["red"] * 5, [True] * 5), small(["blue"] * 9, [False] * 9).table())
    assert report["distance"]["1"] == {"marginals": 2, "mean": 1.0, "largest": 1.0}
    assert report["distance"]["3"] == {"marginals": 0}
    assert report["matches"] == {"equal_to_an_original": 0, "equal_to_a_unique_original": 0}
    assert report["columns"]["colour"] == {
        "labels": ["red", "blue", "green"],
        "original": [1.0, 0.0, 0.0],
        "synthetic": [0.0, 1.0, 0.0],
    }


def test_distances_agree_with_counting_by_hand():
    random = np.random.default_rng(3)
    first, second = random.integers(0, 3, (40, 4)), random.integers(0, 3, (70, 4))
    found = marginal_distances(first, second, (3, 3, 3, 3))
    assert len(found) == 4 + 6 + 4
    for columns, distance in found.items():
        total = 0.0
        for cell in itertools.product(range(3), repeat=len(columns)):
            shares = [np.mean(np.all(codes[:, list(columns)] == cell, axis=1)) for codes in (first, second)]
            total += abs(shares[0] - shares[1]) / 2
        assert distance == pytest.approx(total)


def test_matches_count_synthetic_records_that_equal_an_original():
    original = small(["red", "red", "blue"], [True, True, False])
    report = quality(original, small(["red", "blue", "blue", "green"], [True, False, False, True]).table())
    assert report["matches"] == {"equal_to_an_original": 3, "equal_to_a_unique_original": 2}


def test_cramers_v_of_known_tables():
    assert _cramers_v(np.array([[10, 0], [0, 10]])) == pytest.approx(1)
    assert _cramers_v(np.array([[10, 20], [5, 10]])) == pytest.approx(0)
    assert _cramers_v(np.array([[10, 0], [5, 0]])) == 0
    # chi² = 60·(20·20 - 10·10)²/(30·30·30·30) = 6.667, V = sqrt(6.667/60)
    assert _cramers_v(np.array([[20, 10], [10, 20]])) == pytest.approx(1 / 3)


def test_the_worst_marginals_are_named():
    report = quality(small(["red"] * 6, [True, False] * 3), small(["blue"] * 6, [True, False] * 3).table())
    assert report["worst"][0] == {"columns": ["colour"], "distance": 1.0}


def test_an_empty_table_can_be_compared():
    empty = sf.read(small([], []).table(), small([], []).schema)
    assert quality(empty, empty.table())["distance"]["1"]["mean"] == 0
    assert isinstance(quality(empty, pa.table(empty.table()))["records"]["original"], int)
