"""Distances: the plain ones against the transport problem, those of whole tables against the plain ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.schema import HierarchySpec
from sfumato.measures.guarantees import class_distances, thresholds
from sfumato.measures.guarantees.compared import Compared
from sfumato.measures.guarantees.distances import (
    emd_equal,
    emd_general,
    emd_hierarchical,
    emd_ordered,
    hierarchical_ground,
    kl,
    variational,
)
from sfumato.measures.guarantees.examined import ExaminedTable
from sfumato.measures.guarantees.measure import measure
from sfumato.measures.guarantees.overview import measure_all
from tests.measures.tables import classes_table, grouped_schema

VALUES = "abcdefg"
#: An unbalanced tree: `g` hangs right below the root, a and b deep below.
TREE = {"low": {"deep": ["a", "b"], "c": []}, "high": ["d", "e", "f"], "g": []}

weights = st.lists(st.integers(0, 20), min_size=7, max_size=7).filter(lambda w: sum(w) > 0)
class_counts = st.dictionaries(st.sampled_from(VALUES), st.integers(1, 9), min_size=1)
several_classes = st.lists(class_counts, min_size=1, max_size=5)


def shares(counts: list[int]) -> np.ndarray:
    return np.array(counts) / sum(counts)


def tree() -> Hierarchy:
    from sfumato.data.hierarchies.hierarchy import from_tree

    return from_tree(TREE)


@given(weights, weights)
def test_each_earth_movers_distance_is_the_cheapest_transport(p: list[int], q: list[int]) -> None:
    left, right = shares(p), shares(q)
    positions = np.arange(7)
    steps = np.abs(positions[:, None] - positions[None, :])
    assert emd_equal(left, right) == pytest.approx(emd_general(left, right, steps != 0), abs=1e-9)
    assert emd_ordered(left, right) == pytest.approx(emd_general(left, right, steps / 6), abs=1e-9)
    over_tree = emd_hierarchical(left, right, tree(), list(VALUES))
    order = [tree().index[value] for value in VALUES]
    ground = hierarchical_ground(tree())[np.ix_(order, order)]
    assert over_tree == pytest.approx(emd_general(left, right, ground), abs=1e-9)


@given(weights, weights, weights)
def test_distances_are_convex_in_the_class(p: list[int], r: list[int], q: list[int]) -> None:
    left, other, right = shares(p), shares(r), shares(q)
    between = (left + other) / 2
    for distance in (variational, emd_ordered, lambda a, b: emd_hierarchical(a, b, tree(), list(VALUES))):
        assert distance(between, right) <= max(distance(left, right), distance(other, right)) + 1e-12


@given(several_classes, st.dictionaries(st.sampled_from(VALUES + "h"), st.integers(1, 9), min_size=1))
def test_a_tables_distances_are_the_largest_of_its_classes(classes: list[dict[str, int]], more: dict[str, int]) -> None:
    """Against a reference with values the table lacks: the plain functions and the exact ones agree."""
    released = classes_table(classes)
    totals = {value: sum(entry.get(value, 0) for entry in classes) for value in VALUES + "h"}
    reference = {value: n + more.get(value, 0) for value, n in totals.items() if n + more.get(value, 0)}
    names = sorted(reference)
    q = shares([reference[value] for value in names])
    spec = HierarchySpec(tree={**TREE, "h": []})
    schema = grouped_schema(hierarchy=spec)
    ordered_schema = grouped_schema(order=tuple(VALUES + "h"))
    from sfumato.data.hierarchies.hierarchy import from_tree
    from sfumato.measures.guarantees.reference import ReferenceDistribution

    whole = from_tree({**TREE, "h": []})
    original = ReferenceDistribution({"disease": reference}, sum(reference.values()))
    each = [shares([entry.get(value, 0) for value in names]) for entry in classes]
    expected = {
        "equal": max(variational(p, q) for p in each),
        "kl": max(kl(p, q) for p in each),
        "ordered": max(emd_ordered(p, q) for p in each),
        "hierarchical": max(emd_hierarchical(p, q, whole, names) for p in each),
    }
    for distance, value in expected.items():
        roles = ordered_schema if distance == "ordered" else schema
        found = measure(released, roles, sf.TCloseness(1, "disease", distance=distance), original=original)
        assert found.value == pytest.approx(value, abs=1e-12), distance
        assert found.also["reference input"] == found.value


@given(several_classes)
def test_numbers_beyond_64_bits_give_the_same_fractions(classes: list[dict[str, int]]) -> None:
    """Python integers and 64-bit integers, forced one after the other, agree."""
    examined = ExaminedTable(classes_table(classes), grouped_schema(order=tuple(VALUES)))
    compared = Compared.against(examined, "disease", "released")
    ranks = class_distances.value_ranks(compared.values, examined.described("disease"), "disease")
    whole = tree()

    def everything() -> list[list[tuple[int, int]]]:
        found = (
            class_distances.equal(compared),
            class_distances.ordered(compared, ranks),
            class_distances.hierarchical(compared, whole),
        )
        return [[(int(n), int(d)) for n, d in zip(*pair, strict=True)] for pair in found]

    narrow = everything()
    limit, thresholds.EXACT_LIMIT = thresholds.EXACT_LIMIT, 0
    try:
        wide = everything()
    finally:
        thresholds.EXACT_LIMIT = limit
    assert narrow == wide


def test_kl_is_infinite_where_the_reference_has_no_mass() -> None:
    assert kl((0.5, 0.5), (1.0, 0.0)) == math.inf
    assert kl((1.0, 0.0), (0.5, 0.5)) == pytest.approx(math.log(2))


def test_what_is_no_distribution_is_refused() -> None:
    for p, q in (((0.5, 0.6), (0.5, 0.5)), ((-0.5, 1.5), (0.5, 0.5)), ((1.0,), (0.5, 0.5))):
        with pytest.raises(ParameterError):
            variational(p, q)


def test_a_single_value_is_at_distance_0() -> None:
    found = measure_all(classes_table([{"a": 3}, {"a": 2}]), grouped_schema())
    assert set(found.attributes["disease"].t.values()) == {0.0}


def test_the_ordered_distance_needs_an_order() -> None:
    released = classes_table([{"a": 1, "b": 2}, {"c": 1}])
    guarantee = sf.TCloseness(0.5, "disease", distance="ordered", reference="released")
    with pytest.raises(Unsupported, match="order"):
        measure(released, grouped_schema(), guarantee)
    assert measure(released, grouped_schema(order=("a", "b", "c")), guarantee).value > 0
    assert "ordered" not in measure_all(released, grouped_schema()).attributes["disease"].t


def test_the_leaves_of_a_hierarchy_are_no_order() -> None:
    released = classes_table([{"a": 1, "b": 2}, {"c": 1}])
    tree = HierarchySpec(tree={"first": ["a", "b"], "second": ["c"]})
    guarantee = sf.TCloseness(0.5, "disease", distance="ordered", reference="released")
    with pytest.raises(Unsupported, match="order"):
        measure(released, grouped_schema(hierarchy=tree), guarantee)
    found = measure_all(released, grouped_schema(hierarchy=tree)).attributes["disease"].t
    assert "ordered" not in found and "hierarchical" in found


def test_numbers_are_ordered_by_value_and_missing_comes_last() -> None:
    ranks = class_distances.value_ranks(("10", None, "9", "-1"), sf.Column(), "x")
    assert ranks.tolist() == [2, 3, 1, 0]


def test_suppression_makes_the_two_references_differ() -> None:
    original = classes_table([{"a": 5, "b": 5}, {"a": 8, "b": 2}])
    released = classes_table([{"a": 5, "b": 5}])
    found = measure(released, grouped_schema(), sf.TCloseness(0.1, "disease"), original=original)
    assert found.also == {"reference input": pytest.approx(0.15), "reference released": 0.0}
    assert not found.holds
    own = sf.TCloseness(0.1, "disease", reference="released")
    assert measure(released, grouped_schema(), own, original=original).holds
