"""Membership in published means, beside a coin."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from sfumato import attacks
from sfumato.attacks.outputs.detection import Detection
from sfumato.attacks.outputs.membership_aggregates import MembershipInAggregates, ReferencePeople, p_values
from sfumato.core.errors import InputError, ParameterError
from sfumato.core.view import View

Statistic = Literal["distance", "inner product", "likelihood"]
ALL: tuple[Statistic, ...] = ("distance", "inner product", "likelihood")


def people(seed: int, attributes: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rates = rng.uniform(0.1, 0.9, attributes)
    inside, around, outside = ((rng.random((n, attributes)) < rates).astype(float) for n in (30, 300, 30))
    return inside, around, outside


@pytest.mark.parametrize("statistic", ALL)
def test_many_exact_means_betray_their_members(statistic: Statistic) -> None:
    inside, around, outside = people(1)
    found = attacks.MembershipInAggregates(statistic).run(
        View(inside.mean(axis=0), None), ReferencePeople(around, inside, outside)
    )
    assert found.success > 0.9
    assert found.interval[0] > 0.75
    assert found.baseline == 0.5
    assert found.details["area_under_the_curve"] > 0.95
    assert found.details["false_positive_rate"] <= 0.2


@pytest.mark.parametrize("statistic", ALL)
def test_means_of_other_people_betray_nobody(statistic: Statistic) -> None:
    inside, around, outside = people(2)
    elsewhere = people(3)[0].mean(axis=0)
    rng = np.random.default_rng(4)
    noisy = inside.mean(axis=0) + rng.laplace(0, 20, inside.shape[1])
    for published in (elsewhere, noisy):
        found = MembershipInAggregates(statistic).run(View(published, None), ReferencePeople(around, inside, outside))
        assert found.interval[0] <= 0.5 <= found.interval[1]
        assert found.success < 0.65


def test_the_threshold_keeps_the_stated_false_positive_rate() -> None:
    """1 000 strangers, rate 0.1: more than 0.16 would be a deviation of six standard errors."""
    rng = np.random.default_rng(7)
    rates = rng.uniform(0.1, 0.9, 200)
    inside, around, outside = ((rng.random((n, 200)) < rates).astype(float) for n in (30, 2_000, 1_000))
    known = ReferencePeople(around, inside, outside)
    found = MembershipInAggregates(false_positives=0.1).run(View(inside.mean(axis=0), None), known)
    assert 0.05 < found.details["false_positive_rate"] < 0.16


def test_a_reference_person_is_measured_against_the_others_only() -> None:
    inside, around, outside = people(5, attributes=40)
    around = around[:6]
    attack = MembershipInAggregates("distance")
    means = inside.mean(axis=0)
    expected = [attack.scores(means, np.delete(around, i, axis=0), around[i : i + 1])[0] for i in range(6)]
    assert attack.reference_scores(means, ReferencePeople(around, inside, outside)) == pytest.approx(expected)


def test_the_distance_is_that_of_homer() -> None:
    target, around, published = [1.0, 0.0], [[0.0, 0.0], [1.0, 1.0]], [0.9, 0.2]
    by_hand = abs(1 - 0.5) - abs(1 - 0.9) + abs(0 - 0.5) - abs(0 - 0.2)
    assert MembershipInAggregates("distance").scores(published, around, [target])[0] == pytest.approx(by_hand)


def test_a_missing_cell_says_nothing() -> None:
    inside, around, outside = people(6)
    holes = np.where(np.random.default_rng(0).random(inside.shape) < 0.2, np.nan, inside)
    for statistic in ALL:
        attack = MembershipInAggregates(statistic)
        found = attack.run(View(inside.mean(axis=0), None), ReferencePeople(around, holes, outside))
        assert 0.8 < found.success <= 1
        nothing = np.full((1, inside.shape[1]), np.nan)
        assert attack.scores(inside.mean(axis=0), around, nothing)[0] == 0


def test_p_values_are_ranks_among_the_reference() -> None:
    assert p_values(np.array([5.0, 0.0, 2.0]), np.array([1.0, 2, 3])).tolist() == [0.25, 1.0, 0.75]


def test_detection_counts_pairs_and_thresholds() -> None:
    seen = Detection(np.array([3.0, 2, 1]), np.array([2.0, 0]), threshold=1.5)
    assert (seen.found, seen.false_alarms) == (2, 1)
    assert seen.balanced_accuracy == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert seen.area == pytest.approx((2 + 1.5 + 1) / 6)
    assert seen.advantage_in_hindsight == pytest.approx(0.5)
    assert Detection(np.ones(4), np.ones(4), 0.5).area == 0.5
    assert Detection(np.ones(4), np.ones(4), 0.5).advantage_in_hindsight == 0


def test_what_cannot_be_attacked_is_said() -> None:
    rows = np.eye(3)
    with pytest.raises(InputError, match="ReferencePeople"):
        MembershipInAggregates().run(View([1, 2, 3], None))
    with pytest.raises(InputError, match="3 columns are needed"):
        MembershipInAggregates().run(View([1, 2, 3], None), ReferencePeople(rows[:, :2], rows, rows))
    with pytest.raises(InputError, match="at least two"):
        MembershipInAggregates().run(View([1, 2, 3], None), ReferencePeople(rows[:1], rows, rows))
    with pytest.raises(InputError, match="missing for everybody"):
        MembershipInAggregates().run(View([1, 2, 3], None), ReferencePeople(rows * [1, 1, np.nan], rows, rows))
    with pytest.raises(InputError, match="0 and 1"):
        MembershipInAggregates("likelihood").run(View([1, 2, 3], None), ReferencePeople(rows * 2, rows, rows))
    with pytest.raises(InputError, match="not numbers"):
        MembershipInAggregates().run(View(["a"], None), ReferencePeople(rows, rows, rows))
    with pytest.raises(InputError, match="nothing is given"):
        MembershipInAggregates().run(View(None, None), ReferencePeople(rows, rows, rows))
    with pytest.raises(ParameterError):
        MembershipInAggregates("mean")  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        MembershipInAggregates(false_positives=0)
