"""Integral privacy: generators of a model."""

from __future__ import annotations

import pytest

from sfumato.core.errors import Unsupported
from sfumato.measures.risk.disclosure.integral_privacy import IntegralPrivacy, rounded_mean, tree_structure

FOUR = [1.0, 2.0, 3.0, 4.0]


@pytest.mark.golden("G-PBD-03")
def test_the_mean_of_two_of_four_numbers() -> None:
    model = IntegralPrivacy(rounded_mean(), k=2, sizes=(2,))
    generators = model.generators(FOUR)
    assert set(generators[2.5].databases) == {frozenset({0, 3}), frozenset({1, 2})}
    assert generators[2.5].common == frozenset()
    assert generators[2.5].is_private(2)
    for single in (1.5, 2.0, 3.0, 3.5):
        assert generators[single].count == 1
        assert not generators[single].is_private(2)
    assert [entry.model for entry in model.private_models(FOUR)] == [2.5]
    assert model.is_private([0, 3], FOUR)
    assert not model.is_private([0, 1], FOUR)


def test_a_record_common_to_all_generators_is_given_away() -> None:
    """The maximum of a subset is in every database that has it."""
    model = IntegralPrivacy(lambda records: max(records), k=2, sizes=(2, 3))
    generators = model.generators(FOUR)
    assert generators[4.0].count >= 2
    assert generators[4.0].common == frozenset({3})
    assert not generators[4.0].is_private(2)


def test_a_known_background_is_no_new_disclosure() -> None:
    model = IntegralPrivacy(rounded_mean(), k=2, sizes=(3,), background=frozenset({0}))
    population = [1.0, 2.0, 3.0, 4.0, 5.0]
    generators = model.generators(population)
    assert all(0 in database for entry in generators.values() for database in entry.databases)
    # 1 + {2, 5} and 1 + {3, 4} have the same mean and share the background alone
    assert generators[round(8 / 3, 6)].common == frozenset({0})
    assert generators[round(8 / 3, 6)].is_private(2)


def test_too_many_subsets_ask_for_samples() -> None:
    with pytest.raises(Unsupported, match="samples"):
        IntegralPrivacy(rounded_mean(), k=2, sizes=(20,)).generators(list(range(60)))
    sampled = IntegralPrivacy(rounded_mean(0), k=2, sizes=(20,), samples=50)
    found = sampled.generators([float(i % 5) for i in range(60)])
    assert sum(entry.count for entry in found.values()) <= 50
    assert found == sampled.generators([float(i % 5) for i in range(60)])


def test_recurrent_decision_trees_are_integrally_private() -> None:
    """Two well separated groups: nearly every sample learns the same tree; no record is in all."""
    records = [((float(i),), "low") for i in range(10)] + [((float(i + 1_000),), "high") for i in range(10)]
    model = IntegralPrivacy(tree_structure(depth=2, digits=-2), k=10, sizes=(12,), samples=40)
    recurrent = model.private_models(records)
    assert recurrent[0].count >= 30
    assert recurrent[0].model[0] == 0  # the first split is on the only attribute
