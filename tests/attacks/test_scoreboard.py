"""Sparse records and a few known items."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import attacks
from sfumato.attacks.outputs.scoreboard import Scoreboard, distribution, lead_of_best
from sfumato.attacks.outputs.sparse_ratings import KnownItems, Ratings
from sfumato.core.errors import InputError, ParameterError
from sfumato.core.view import View
from tests.examples import examples

#: r0 is the target, r1 has the first item otherwise, r2 has neither.
THREE = Ratings([0, 0, 1], [0, 1, 0], rating=[4, 2, 3], date=[0, 10, 14], records=3, support=[100, 10])
KNOWN = KnownItems([0, 0], [0, 1], rating=[4, 2], date=[0, 10], truth=[0])


@pytest.mark.golden("G-ATK-07")
def test_two_known_ratings_pick_the_first_of_three_records() -> None:
    scores = Scoreboard().scores(THREE, KNOWN)
    assert np.round(scores, 6).tolist() == [1.302883, 0.247658, 0]
    assert round(float(scores.std()), 6) == 0.564933
    assert round(lead_of_best(scores), 6) == 1.867878
    assert Scoreboard().candidates(THREE, KNOWN).tolist() == [0]
    found = attacks.Scoreboard().run(View(THREE, None), KNOWN)
    assert (found.success, found.baseline, found.details["wrong"]) == (1.0, pytest.approx(1 / 3), 0)
    assert Scoreboard(eccentricity=1.9).candidates(THREE, KNOWN).size == 0


entries = st.tuples(st.integers(0, 5), st.integers(0, 6), st.integers(1, 5), st.integers(0, 60))
releases = st.lists(entries, min_size=1, max_size=25, unique_by=lambda e: e[:2])
auxiliary = st.lists(
    st.tuples(st.integers(0, 7), st.one_of(st.none(), st.integers(1, 5)), st.one_of(st.none(), st.integers(0, 60))),
    min_size=1,
    max_size=4,
    unique_by=lambda e: e[0],
)


def by_hand(release: list[Any], known: list[Any], record: int, form: str) -> float:
    held = {item: (rating, date) for r, item, rating, date in release if r == record}
    parts = []
    for item, rating, date in known:
        support = sum(other[1] == item for other in release)
        if item not in held:
            parts.append(0.0)
            continue
        terms = [math.exp(-abs(rating - held[item][0]) / 1.5)] if rating is not None else []
        terms += [math.exp(-abs(date - held[item][1]) / 30)] if date is not None else []
        if form == "plain":
            parts.append(sum(terms) / len(terms) if terms else 1.0)
        else:
            parts.append((sum(terms) if terms else 1.0) / math.log(max(support, 2)))
    return min(parts) if form == "plain" else sum(parts)


@settings(max_examples=examples(20))
@given(releases, auxiliary)
def test_scores_are_those_of_the_formula_record_by_record(release: list[Any], known: list[Any]) -> None:
    columns = list(zip(*release, strict=True))
    ratings = Ratings(columns[0], columns[1], columns[2], columns[3], records=6)
    told = KnownItems(
        [0] * len(known),
        [item for item, _, _ in known],
        [math.nan if rating is None else rating for _, rating, _ in known],
        [math.nan if date is None else date for _, _, date in known],
    )
    for form in ("rh", "plain"):
        expected = [by_hand(release, known, record, form) for record in range(6)]
        assert Scoreboard(form).scores(ratings, told) == pytest.approx(expected)  # type: ignore[arg-type]


def test_plain_matches_are_all_records_above_the_threshold() -> None:
    ratings = Ratings([0, 1, 2, 2], [0, 0, 0, 1], rating=[5, 5, 1, 3])
    known = KnownItems([0], [0], rating=[5], truth=[0])
    assert Scoreboard("plain").candidates(ratings, known).tolist() == [0, 1]
    assert Scoreboard("plain").run(View(ratings, None), known).success == 0.5


def test_the_distribution_is_a_softmax_of_scores_in_deviations() -> None:
    scores = Scoreboard().scores(THREE, KNOWN)
    risen = np.exp(scores / scores.std())
    assert distribution(scores) == pytest.approx(risen / risen.sum())
    found = Scoreboard(answer="distribution").run(View(THREE, None), KNOWN)
    assert found.success == pytest.approx(float((risen / risen.sum())[0]))
    assert 0 < found.details["mean_entropy_bits"] < found.details["entropy_before_bits"] == pytest.approx(math.log2(3))
    assert distribution(np.zeros(4)).tolist() == [0.25] * 4


def test_whoever_is_not_in_the_release_is_right_to_be_left_alone() -> None:
    ratings = Ratings([0, 1], [0, 1])
    absent = KnownItems([0], [9], truth=[-1])
    assert Scoreboard().run(View(ratings, None), absent).success == 1.0
    mistaken = KnownItems([0, 0], [0, 1], rating=[4, 2], date=[0, 10], truth=[-1])
    found = Scoreboard().run(View(THREE, None), mistaken)
    assert (found.success, found.details["wrong"]) == (0.0, 1)


def test_equal_records_are_told_apart_by_nobody() -> None:
    ratings = Ratings([0, 1], [0, 0])
    found = Scoreboard().run(View(ratings, None), KnownItems([0], [0], truth=[0]))
    assert (found.success, found.details["no_match"]) == (0.0, 1)


def test_the_only_record_is_picked_when_it_agrees_at_all() -> None:
    single = Ratings([0], [0])
    found = Scoreboard().run(View(single, None), KnownItems([0], [0], truth=[0]))
    assert (found.success, found.baseline) == (1.0, 1.0)
    other = Scoreboard().run(View(single, None), KnownItems([0], [7], truth=[0]))
    assert (other.success, other.details["no_match"]) == (0.0, 1)


@pytest.mark.parametrize("answer", ["match", "distribution"])
def test_a_blind_pick_is_wrong_for_whoever_is_not_there(answer: Any) -> None:
    known = KnownItems([0, 0, 1, 2], [0, 1, 0, 9], truth=[0, -1, -1])
    found = Scoreboard(answer=answer).run(View(THREE, None), known)
    assert found.baseline == pytest.approx(1 / 3 / 3)
    assert found.details["targets_in_the_release"] == 1


def test_an_item_counts_once_per_record_and_the_last_entry_holds() -> None:
    ratings = Ratings([0, 0, 1], [0, 0, 0], rating=[1, 5, 5])
    assert ratings.support_of(0) == 2
    assert ratings.holding(0)[1].tolist() == [5, 5]  # type: ignore[union-attr]
    twice = KnownItems([0, 0], [0, 0], rating=[1, 5])
    assert list(twice.of(0)) == [(0, 5.0, pytest.approx(math.nan, nan_ok=True))]


@pytest.mark.data
def test_four_artists_re_identify_most_listeners(data_dir: Path) -> None:
    table = np.loadtxt(data_dir / "graphs" / "lastfm_user_artists.dat", skiprows=1, dtype=np.int64)
    users, artists = (np.unique(table[:, place], return_inverse=True)[1] for place in (0, 1))
    released = Ratings(users, artists)
    rng = np.random.default_rng(1)
    heard = [rng.permutation(artists[users == user])[:4] for user in range(300)]
    known = KnownItems(np.repeat(np.arange(300), [len(h) for h in heard]), np.concatenate(heard), truth=np.arange(300))
    found = Scoreboard().run(View(released, None), known)
    assert found.interval[0] > 0.75
    assert found.baseline < 0.001
    assert found.details["wrong"] <= 3
    noise = KnownItems(known.target, rng.permutation(known.item), truth=np.arange(300))
    assert Scoreboard().run(View(released, None), noise).success < 0.05


def test_what_cannot_be_attacked_is_said() -> None:
    with pytest.raises(InputError, match="needs KnownItems"):
        Scoreboard().run(View(THREE, None))
    with pytest.raises(InputError, match="truth"):
        Scoreboard().run(View(THREE, None), KnownItems([0], [0]))
    for answer in ("match", "distribution"):
        with pytest.raises(InputError, match="does not have"):
            Scoreboard(answer=answer).run(View(THREE, None), KnownItems([0], [0], truth=[3]))
    with pytest.raises(InputError, match="no target"):
        Scoreboard().scores(THREE, KNOWN, 5)
    faults = (
        lambda: Ratings([0], [0, 1]),
        lambda: Ratings([-1], [0]),
        lambda: Ratings([0.5], [0]),
        lambda: Ratings([], []),
        lambda: Ratings([0], [0], rating=[math.inf]),
        lambda: Ratings([0], [0], rating=["good"]),
        lambda: Ratings([0], [3], support=[1]),
        lambda: KnownItems([], []),
        lambda: KnownItems([0], [0], truth=["a"]),
        lambda: KnownItems([0], [0], truth=[None]),
        lambda: KnownItems([0], [0], truth=[-2]),
        lambda: Ratings([[0], [0, 1]], [0, 1]),
        lambda: KnownItems([0, 1], [0, 0], truth=[0]),
    )
    for fault in faults:
        with pytest.raises(InputError):
            fault()
    wrong_parameters: tuple[dict[str, Any], ...] = (
        {"form": "x"},
        {"answer": "x"},
        {"rating_scale": 0},
        {"date_scale": math.inf},
        {"eccentricity": -1},
        {"threshold": 1},
    )
    for wrong in wrong_parameters:
        with pytest.raises(ParameterError):
            Scoreboard(**wrong)
