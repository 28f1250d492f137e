"""One-to-one linkage equals the assignment of least total distance over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from sfumato.core.errors import InputError, ParameterError
from sfumato.data.masked import Masked
from sfumato.kernels.linkage.points import Metric
from sfumato.measures.risk.linkage.assignment_linkage import AssignmentLinkage, _least, assigned
from sfumato.measures.risk.linkage.distance_linkage import DistanceLinkage
from sfumato.measures.risk.linkage.spaces import LinkageSpace
from tests.examples import examples
from tests.measures.masks import NAMES, grouped, noisy, numbers, people, table

X = numbers(300)
PEOPLE = people(X)


def space(x: np.ndarray, y: np.ndarray) -> LinkageSpace:
    return LinkageSpace(x, y, Metric.euclidean(x.shape[1]), "euclidean")


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(1, 50), st.integers(1, 3), st.sampled_from([0.1, 1.0, 5.0]), st.booleans(), st.integers(0, 10_000))
def test_the_total_is_the_least_of_all_assignments(rows: int, width: int, noise: float, tied: bool, seed: int) -> None:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, width))
    y = x + noise * draw.normal(size=x.shape)
    if tied:
        x, y = np.round(x), np.round(y)
    costs = cdist(x, y)
    assert assigned(space(x, y)).total == pytest.approx(costs[linear_sum_assignment(costs)].sum(), abs=1e-7)


def test_with_different_distances_the_links_are_those_of_the_full_assignment() -> None:
    y = noisy(X, 0.6)
    z, w = (X - X.mean(0)) / X.std(0), (y - X.mean(0)) / X.std(0)
    _, columns = linear_sum_assignment(cdist(z, w))
    score = AssignmentLinkage("euclidean").score(PEOPLE, table(y))
    assert score.value == pytest.approx(np.mean(columns == np.arange(300)))


def test_one_to_one_links_more_than_nearest_neighbours_here() -> None:
    y = table(noisy(X, 0.5))
    assert AssignmentLinkage().score(PEOPLE, y).value > DistanceLinkage().score(PEOPLE, y).value


def test_the_identity_is_linked_wholly_and_groups_share() -> None:
    assert AssignmentLinkage().score(PEOPLE, table(X)).value == 1.0
    score = AssignmentLinkage().score(PEOPLE, table(grouped(X, 5)))
    assert 0 < score.value <= 1 / 5 + 1e-12


def test_people_with_equal_originals_share_what_they_get() -> None:
    """Two values, twenty people each: which of the twenty a record belongs to is a guess, in whatever order the files are."""
    x = np.repeat([0.0, 1.0], 20)[:, None]
    y = x + np.linspace(0, 1e-3, 40)[:, None]
    for order in (np.arange(40), np.random.default_rng(0).permutation(40)):
        found = assigned(space(x[order], y[order]))
        assert found.credits.tolist() == pytest.approx([1 / 20] * 40)


def test_ties_of_the_total_are_broken_without_the_truth() -> None:
    """Every assignment of a file beyond the other has one total. The links may not follow who is who: over 40 random pairings of
    60 the expected number of right links is 40, and more than 80 or fewer than 10 come less than once in 10⁶ (Poisson)."""
    x = np.arange(60.0)[:, None]
    right = 0.0
    for seed in range(40):
        y = 1000.0 + np.random.default_rng(seed).permutation(60)[:, None]
        right += float(assigned(space(x, y)).credits.sum())
    assert 10 <= right <= 80


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(2, 40), st.integers(0, 10_000))
def test_the_assignment_does_not_depend_on_who_is_who(rows: int, seed: int) -> None:
    """Pairing the same values with other people changes who is right, never what is assigned."""
    draw = np.random.default_rng(seed)
    x, y = np.round(draw.normal(size=(rows, 2)) * 2), np.round(draw.normal(size=(rows, 2)) * 2)
    held = _least(space(x, y))[1]
    assert _least(space(x, y[draw.permutation(rows)]))[1].tolist() == held.tolist()


def test_a_person_published_twice_is_found_by_either_row() -> None:
    rows = np.repeat(np.arange(50), 2)
    twice = Masked(table(X[rows]), PEOPLE.schema, NAMES, rows)
    score = AssignmentLinkage().score(PEOPLE, twice)
    assert score.value == pytest.approx(1.0)
    assert score.floor == pytest.approx(2 / 100)


def test_missing_values_are_assigned_too() -> None:
    holes = X[:60].copy()
    holes[::4, 1] = np.nan
    score = AssignmentLinkage().score(people(holes), table(holes))
    assert score.value > 0.9
    nothing = np.full((4, 1), np.nan)
    assert AssignmentLinkage().score(people(nothing), table(nothing)).value == pytest.approx(1 / 4)


def test_what_cannot_be_assigned_is_refused() -> None:
    with pytest.raises(ParameterError, match="distance"):
        AssignmentLinkage("taxi")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no record stands behind"):
        AssignmentLinkage().score(PEOPLE, table(X[:9]))
    with pytest.raises(InputError, match="no records"):
        AssignmentLinkage().score(people(X[:0]), table(X[:0]))
