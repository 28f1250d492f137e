"""The junction tree, belief propagation, estimation and drawing against plain enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.randomness import StreamRandomness
from sfumato.dp.synthesis.drawing import draw
from sfumato.dp.synthesis.estimation import NoisyMarginal, _Dual, add, estimated_total, fit
from sfumato.dp.synthesis.graphical_model import GraphicalModel
from sfumato.dp.synthesis.junction_tree import cells, junction_tree, maximal_cliques
from sfumato.dp.synthesis.marginals import marginal

SIZES = (2, 3, 2, 4, 2)
SETS = st.lists(
    st.sets(st.integers(0, len(SIZES) - 1), min_size=1, max_size=3).map(lambda one: tuple(sorted(one))),
    min_size=1,
    max_size=7,
    unique=True,
)


@given(SETS)
def test_every_set_lies_in_a_clique_and_every_column_in_a_connected_part(sets):
    tree = junction_tree(sets, SIZES)
    assert all(any(set(one) <= set(clique) for clique in tree.cliques) for one in sets)
    assert {column for clique in tree.cliques for column in clique} == set(range(len(SIZES)))
    for column in range(len(SIZES)):
        holders = [place for place, clique in enumerate(tree.cliques) if column in clique]
        # in a rooted tree a connected part has exactly one member whose edge to its parent does not carry the column
        assert sum(column not in tree.separators[place] for place in holders) == 1


@given(SETS)
def test_a_clique_is_never_inside_another(sets):
    cliques = [set(clique) for clique in maximal_cliques(sets, SIZES)]
    assert not any(one < other for one in cliques for other in cliques)


@given(SETS, st.integers(0, 2**32 - 1))
def test_belief_propagation_gives_the_marginals_of_the_whole_table(sets, seed):
    random = np.random.default_rng(seed)
    model = GraphicalModel(SIZES, sets)
    potentials = {one: random.normal(0, 2, [SIZES[column] for column in one]) for one in sets}
    scores = np.zeros(SIZES)
    for one, table in potentials.items():
        scores += table.reshape([SIZES[column] if column in one else 1 for column in range(len(SIZES))])
    joint = np.exp(scores)
    beliefs = model.beliefs(potentials)
    assert beliefs.log_normaliser == pytest.approx(np.log(joint.sum()))
    joint /= joint.sum()
    for one, found in model.marginals(beliefs).items():
        away = tuple(column for column in range(len(SIZES)) if column not in one)
        assert np.allclose(found, joint.sum(axis=away))


def test_the_gradient_is_the_slope_of_the_dual():
    random = np.random.default_rng(1)
    measured = {}
    for one in [(0, 1), (1, 2), (3,), (0, 2, 4)]:
        add(measured, NoisyMarginal(one, random.normal(50, 20, [SIZES[column] for column in one]), 30.0))
    dual = _Dual(GraphicalModel(SIZES, list(measured)), measured, 500.0)
    place = random.normal(size=dual.target.size)
    found = dual.at(place).gradient
    for coordinate in range(place.size):
        step = np.zeros(place.size)
        step[coordinate] = 1e-5
        slope = (dual.at(place + step).value - dual.at(place - step).value) / 2e-5
        assert found[coordinate] == pytest.approx(slope, abs=1e-7)


def test_precise_measurements_are_met():
    random = np.random.default_rng(2)
    joint = random.dirichlet(np.ones(int(np.prod(SIZES)))).reshape(SIZES) * 10_000
    measured = {}
    for one in [(0, 1), (1, 2, 3), (3, 4), (0,)]:
        away = tuple(column for column in range(len(SIZES)) if column not in one)
        add(measured, NoisyMarginal(one, joint.sum(axis=away), 1e-4))
    fitted = fit(measured, SIZES, passes=500, tolerance=1e-7)
    for one, entry in measured.items():
        assert np.abs(fitted.counts(one) - entry.counts).sum() < 5
    assert fitted.total == pytest.approx(10_000)
    assert fitted.counts((0, 4)) is None


def test_two_measurements_of_the_same_columns_are_weighted_by_precision():
    measured = {}
    add(measured, NoisyMarginal((0,), np.array([10.0, 30.0]), 1.0))
    add(measured, NoisyMarginal((0,), np.array([20.0, 20.0]), 3.0))
    assert measured[(0,)].counts == pytest.approx([12.5, 27.5])
    assert measured[(0,)].variance == pytest.approx(0.75)
    assert estimated_total(measured) == pytest.approx(40)


def test_the_number_of_records_is_never_below_one():
    measured = {(0,): NoisyMarginal((0,), np.array([-40.0, 3.0]), 1.0)}
    assert estimated_total(measured) == 1.0


def test_hostile_noise_leaves_a_model_that_can_be_drawn_from():
    measured = {(0, 1): NoisyMarginal((0, 1), np.array([[-1e15, 1e15, 0], [3, -1e15, 1e15]], dtype=float), 1e30)}
    fitted = fit(measured, SIZES)
    assert all(np.isfinite(table).all() for table in fitted.beliefs.cliques)
    assert draw(fitted, 10, StreamRandomness("hostile")).shape == (10, len(SIZES))


def test_drawn_records_meet_the_shares_of_every_clique():
    random = np.random.default_rng(3)
    joint = random.dirichlet(np.ones(int(np.prod(SIZES)))).reshape(SIZES) * 10_000
    measured = {}
    for one in [(0, 1), (1, 2), (2, 3), (3, 4)]:
        away = tuple(column for column in range(len(SIZES)) if column not in one)
        add(measured, NoisyMarginal(one, joint.sum(axis=away), 0.01))
    fitted = fit(measured, SIZES, passes=300, tolerance=1e-6)
    drawn = draw(fitted, 10_000, StreamRandomness("shares"))
    root = fitted.model.tree.cliques[0]
    assert np.abs(marginal(drawn, root, SIZES) - fitted.counts(root)).max() <= 1 + 1e-6
    for one in measured:
        # systematic sampling rounds each group: less than one record per cell, in each of the steps
        assert np.abs(marginal(drawn, one, SIZES) - fitted.counts(one)).max() <= 12


def test_columns_that_the_model_keeps_apart_are_drawn_independently():
    """Chi-square of (0, 2) given 1 on 40,000 draws; the threshold is exceeded by chance with 1e-6 at most."""
    from scipy.stats import chi2

    measured = {}
    for one in [(0, 1), (1, 2)]:
        shape = [SIZES[column] for column in one]
        add(measured, NoisyMarginal(one, np.full(shape, 1000.0) + 200 * np.indices(shape).sum(axis=0), 0.01))
    drawn = draw(fit(measured, SIZES), 40_000, StreamRandomness(11))
    total, freedom = 0.0, 0
    for value in range(SIZES[1]):
        table = marginal(drawn[drawn[:, 1] == value], (0, 2), SIZES)
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        total += float(((table - expected) ** 2 / expected).sum())
        freedom += (SIZES[0] - 1) * (SIZES[2] - 1)
    assert total < chi2.isf(1e-6, freedom)


def test_marginals_count_every_record_once():
    codes = np.array(list(itertools.product(*[range(size) for size in SIZES])))
    for columns in [(0,), (1, 3), (4, 0, 2)]:
        counts = marginal(codes, columns, SIZES)
        assert counts.shape == tuple(SIZES[column] for column in columns)
        assert set(counts.reshape(-1)) == {len(codes) // cells(columns, SIZES)}


def test_drawing_no_records_gives_none():
    measured = {(0,): NoisyMarginal((0,), np.array([1.0, 2.0]), 1.0)}
    assert draw(fit(measured, (2,)), 0, StreamRandomness(1)).shape == (0, 1)
