"""Optimal univariate microaggregation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.masking.microaggregation.optimal_univariate import optimal_partition
from tests.examples import examples
from tests.masking import microaggregation_oracles as oracle


def masked(values: list[float], k: int = 3) -> Any:
    return sf.OptimalUnivariate(k, columns=("x",), whole=False).apply(sf.read(pa.table({"x": values})))


@pytest.mark.golden("G-MSK-02")
def test_two_groups_of_three() -> None:
    outcome = masked([1, 2, 3, 10, 11, 12])
    assert outcome.result.table.column("x").to_pylist() == [2, 2, 2, 11, 11, 11]
    assert outcome.details["x"]["squared_error"] == 4
    assert outcome.details["x"]["labels"] == [0, 0, 0, 1, 1, 1]


@pytest.mark.golden("G-MSK-03")
def test_a_group_of_three_and_one_of_four() -> None:
    """E-32: 2k - 1 records suffice; a group of 2k could be cut in two."""
    outcome = masked([1, 2, 3, 10, 11, 12, 13])
    assert outcome.result.table.column("x").to_pylist() == [2, 2, 2, 11.5, 11.5, 11.5, 11.5]
    assert outcome.details["x"]["squared_error"] == 7
    assert (outcome.details["x"]["smallest_cluster"], outcome.details["x"]["largest_cluster"]) == (3, 4)


@settings(max_examples=examples(15))
@given(st.permutations(range(9)), st.lists(st.integers(0, 30), min_size=9, max_size=9), st.integers(2, 4))
def test_no_clusters_of_one_attribute_lose_less(order: list[int], values: list[int], k: int) -> None:
    points = [[float(values[i])] for i in order]
    labels = optimal_partition(np.array([point[0] for point in points]), k).tolist()
    found = oracle.error(points, [sorted(members) for members in oracle.as_sets(labels)])
    best = min(oracle.error(points, partition) for partition in oracle.every_partition(list(range(9)), k))
    assert found == pytest.approx(best, abs=1e-9)


@given(st.lists(st.integers(0, 100), min_size=4, max_size=60), st.integers(2, 4))
def test_no_heuristic_loses_less_than_the_optimum_in_one_dimension(values: list[int], k: int) -> None:
    if len(set(values)) < 2:
        return
    data = sf.read(pa.table({"x": values}))
    best = sf.OptimalUnivariate(k, columns=("x",)).apply(data).details["x"]["information_loss"]
    for mask in (sf.Mdav(k, columns=("x",)), sf.VMdav(k, 1.1, columns=("x",)), sf.Cbfs(k, columns=("x",))):
        assert mask.apply(data).details["information_loss"] >= best - 1e-12


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=50), st.integers(2, 3))
def test_means_and_order_are_kept_and_every_value_is_shared_by_k(values: list[float], k: int) -> None:
    if len(set(values)) < 2:
        return
    shown = np.array(masked(values, k).result.table.column("x").to_pylist())
    assert shown.mean() == pytest.approx(np.mean(values), rel=1e-9, abs=1e-6)
    assert np.all(np.diff(shown[np.argsort(values, kind="stable")]) >= 0)
    assert np.unique(shown, return_counts=True)[1].min() >= k


def test_each_column_is_grouped_on_its_own_and_k_anonymity_claimed_for_one_alone() -> None:
    table = pa.table({"x": [1, 2, 10, 11], "y": [5, 1, 6, 2]})
    two = sf.OptimalUnivariate(2).apply(sf.read(table, sf.Schema.of(quasi=["x", "y"])))
    assert two.result.table.to_pydict() == {"x": [2, 2, 10, 10], "y": [6, 2, 6, 2]}
    assert two.claimed == ()
    one = sf.read(table, sf.Schema.of(quasi=["x"], plain=["y"]))
    outcome = sf.OptimalUnivariate(2).apply(one)
    assert outcome.claimed == (KAnonymity(2),)
    assert sf.check(outcome.result.table, one.schema, list(outcome.claimed)).holds


def test_a_missing_value_joins_the_middle_and_is_filled() -> None:
    outcome = masked([1.0, 2.0, None, 9.0, 10.0], 2)
    assert outcome.result.table.column("x").null_count == 0
    assert outcome.result.table.column("x").to_pylist() == [1.5, 1.5, 9.5, 9.5, 9.5]


@pytest.mark.parametrize("k", [1, 0, -3, 2.5, True])
def test_a_k_that_hides_nobody_is_refused(k: int) -> None:
    with pytest.raises(ParameterError, match="at least 2"):
        sf.OptimalUnivariate(k)


def test_more_records_than_there_are_are_refused() -> None:
    with pytest.raises(ParameterError, match="k = 4"):
        masked([1.0, 2.0, 3.0], 4)
