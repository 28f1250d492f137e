"""The tree of counts: levels, noise, consistency, ranks and quantiles."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError
from sfumato.core.randomness import default
from sfumato.dp.algorithms.count_tree import (
    consistent_tree,
    level_sizes,
    node_deviation,
    noisy_tree,
    quantile,
    quantile_rank_deviation,
    range_count,
    rank_deviation,
    tree_counts,
    tree_sensitivity,
)

SHAPES = [(1, 2), (2, 2), (5, 2), (7, 3), (16, 4), (20, 4), (37, 3), (100, 16)]


def design(leaves: int, branching: int) -> np.ndarray:
    """One row per node: which leaves it counts."""
    sizes = level_sizes(leaves, branching)
    rows = []
    for depth, size in enumerate(sizes):
        span = branching ** (len(sizes) - 1 - depth)
        for node in range(size):
            row = np.zeros(leaves)
            row[node * span : (node + 1) * span] = 1
            rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize(("leaves", "branching"), SHAPES)
def test_every_node_counts_its_leaves(leaves: int, branching: int) -> None:
    counts = np.arange(leaves) ** 2
    assert np.array_equal(np.concatenate(tree_counts(counts, branching)), design(leaves, branching) @ counts)


@pytest.mark.parametrize(("leaves", "branching"), SHAPES)
def test_the_consistent_tree_is_the_least_squares_solution(leaves: int, branching: int) -> None:
    nodes = design(leaves, branching)
    random = np.random.default_rng(leaves)
    noisy = nodes @ random.integers(0, 50, leaves) + random.normal(0, 5, len(nodes))
    expected = np.linalg.lstsq(nodes, noisy, rcond=None)[0]
    split = np.split(noisy, np.cumsum(level_sizes(leaves, branching))[:-1])
    tree = consistent_tree(split, branching, 5.0)
    assert np.allclose(tree.leaves, expected)
    for upper, lower in zip(tree.levels, tree.levels[1:], strict=False):
        assert np.allclose(upper, np.add.reduceat(lower, np.arange(0, len(lower), branching)))


@pytest.mark.parametrize(("leaves", "branching"), SHAPES)
def test_the_stated_rank_deviation_is_that_of_the_least_squares_estimate(leaves: int, branching: int) -> None:
    nodes = design(leaves, branching)
    below = np.tril(np.ones((leaves, leaves)))
    variances = np.diag(below @ np.linalg.inv(nodes.T @ nodes) @ below.T)
    assert rank_deviation(leaves, branching, Fraction(9), "gaussian") == pytest.approx(3 * np.sqrt(variances.max()))


@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize(("leaves", "branching"), SHAPES)
def test_the_deviation_of_a_quantile_is_that_of_its_rank_less_its_share_of_the_total(
    leaves: int, branching: int, q: float
) -> None:
    nodes = design(leaves, branching)
    below = np.vstack([np.zeros(leaves), np.tril(np.ones((leaves, leaves)))])
    less = below - q * below[-1]
    variances = np.diag(less @ np.linalg.inv(nodes.T @ nodes) @ less.T)
    stated = quantile_rank_deviation(leaves, branching, q, Fraction(9), "gaussian")
    assert stated == pytest.approx(3 * np.sqrt(variances.max()), abs=1e-9)


@given(
    rows=st.integers(1, 4),
    branching=st.integers(2, 5),
    leaves=st.integers(1, 40),
    data=st.data(),
)
def test_a_unit_changes_the_tree_by_at_most_its_sensitivity(rows: int, branching: int, leaves: int, data: st.DataObject) -> None:
    owned = data.draw(st.lists(st.integers(0, leaves - 1), max_size=rows))
    change = np.concatenate(tree_counts(np.bincount(owned, minlength=leaves), branching))
    l1, l2_squared = tree_sensitivity(leaves, branching, rows)
    assert change.sum() <= l1
    assert (change**2).sum() <= l2_squared


def test_the_sensitivity_is_reached() -> None:
    change = np.concatenate(tree_counts(np.array([0, 3, 0, 0, 0, 0, 0, 0, 0]), 3))
    assert (int(change.sum()), int((change**2).sum())) == tree_sensitivity(9, 3, rows=3)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.floats(0, 1))
def test_without_noise_a_quantile_has_its_rank(counts: list[int], q: float) -> None:
    leaves = np.array(counts)
    tree = consistent_tree(tree_counts(leaves, 4), 4, 0.0)
    position = quantile(tree, q)
    total = leaves.sum()
    assert 0 <= position <= len(counts)
    if total:
        rank = np.interp(position, np.arange(len(counts) + 1), np.concatenate([[0], np.cumsum(leaves)]))
        assert rank == pytest.approx(q * total, abs=1e-6)
    assert tree.total == pytest.approx(total)


@pytest.mark.parametrize(("law", "amount"), [("laplace", Fraction(3)), ("gaussian", Fraction(25, 2))])
def test_ranks_are_within_the_stated_error(law: str, amount: Fraction) -> None:
    """400 trees; the mean square of the worst boundary exceeds its expectation by half with probability below 10⁻⁶."""
    counts = np.arange(64)
    truth = np.concatenate([[0], np.cumsum(counts)])
    stated = rank_deviation(64, 4, amount, law)  # type: ignore[arg-type]
    squares = np.zeros(65)
    for seed in range(400):
        tree = noisy_tree(counts, 4, amount, law, default(seed))  # type: ignore[arg-type]
        squares += (np.concatenate([[0], np.cumsum(tree.leaves)]) - truth) ** 2
    worst = np.sqrt(squares.max() / 400)
    assert 0.75 * stated < worst < 1.25 * stated


def test_noise_is_reproducible_with_a_seed_and_fresh_without() -> None:
    counts = np.zeros(32, dtype=np.int64)
    first, again = (noisy_tree(counts, 16, Fraction(50), "laplace", default(7)).leaves for _ in range(2))
    fresh = noisy_tree(counts, 16, Fraction(50), "laplace", default()).leaves
    assert np.array_equal(first, again)
    assert not np.array_equal(first, fresh)


def test_ranks_ascend_whatever_the_noise() -> None:
    tree = noisy_tree(np.zeros(100, dtype=np.int64), 16, Fraction(100), "laplace", default(1))
    assert (np.diff(tree.ranks) >= 0).all()
    assert all(0 <= quantile(tree, q) <= 100 for q in (0, 0.3, 1))


def test_ranges_add_up() -> None:
    tree = noisy_tree(np.arange(50), 16, Fraction(2), "laplace", default(3))
    assert range_count(tree, 0, 50) == pytest.approx(tree.total)
    assert range_count(tree, 0, 20) + range_count(tree, 20, 50) == pytest.approx(tree.total)
    assert range_count(tree, 4, 4) == 0


def test_the_deviation_of_a_node_is_that_of_its_law() -> None:
    support = np.arange(-4000, 4001)
    mass = np.exp(-np.abs(support) / 2.5)
    exact = np.sqrt((mass * support**2).sum() / mass.sum())
    assert node_deviation(Fraction(5, 2), "laplace") == pytest.approx(exact)


@pytest.mark.parametrize(
    "call",
    [
        lambda: level_sizes(0, 16),
        lambda: level_sizes(5, 1),
        lambda: tree_sensitivity(5, 2, 0),
        lambda: quantile(consistent_tree([np.ones(3)], 16, 1.0), 1.5),
        lambda: range_count(consistent_tree([np.ones(3)], 16, 1.0), 2, 4),
        lambda: noisy_tree(np.ones(3, dtype=np.int64), 16, Fraction(1), "uniform", default(1)),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_is_refused(call: object) -> None:
    with pytest.raises(ParameterError):
        call()  # type: ignore[operator]
