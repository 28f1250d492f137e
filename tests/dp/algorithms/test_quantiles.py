"""All quantiles from one release."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError, SchemaError
from sfumato.core.guarantees.loss import ConcentratedDP, PureDP
from sfumato.core.randomness import default
from sfumato.dp import PrivateQuantiles
from sfumato.dp.algorithms.count_tree import tree_counts, tree_sensitivity
from tests.dp.algorithms.tables import microdata, uniform, without

INCOME = {"income": {"type": "number", "bounds": [0, 100_000]}}


@pytest.mark.parametrize("paid", [{"epsilon": 1}, {"rho": "0.05"}])
def test_ranks_are_within_the_stated_error(paid: dict[str, object]) -> None:
    """Seven quantiles of 30,000 incomes, 40 releases: one beyond Chebyshev's 10⁻⁶ margin per release is never seen; the mean
    square stays below the stated one."""
    values = np.sort(100_000 * uniform(30_000, "incomes") ** 3)
    data = microdata({"income": values}, INCOME)
    asked = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
    algorithm = PrivateQuantiles("income", asked, **paid)  # type: ignore[arg-type]
    errors = []
    for seed in range(40):
        released = algorithm.run(data, randomness=default(seed)).result
        rank = np.searchsorted(values, released.column("value").to_numpy())
        errors.append(rank - np.array(asked) * values.size)
    resolution = 30_000 * np.cbrt(1 / 4096)  # the leaf of the smallest incomes holds that many of them at most
    assert np.abs(errors).max() < algorithm.error().margin(1 - 1e-6) + resolution
    assert np.sqrt(np.mean(np.square(errors)[:, 1:])) < 1.5 * algorithm.error().deviation


def test_whole_numbers_have_leaves_of_their_own() -> None:
    data = microdata({"age": [30] * 500 + [40] * 501}, {"age": {"type": "integer", "bounds": [0, 120]}})
    algorithm = PrivateQuantiles("age", (0.1, 0.5, 1), epsilon=50, max_rows=1)
    assert algorithm.leaf_counts(data)[1].size == 121
    assert algorithm.run(data, randomness=default(1)).result.column("value").to_pylist()[:2] == [30.0, 40.0]


def test_quantiles_ascend() -> None:
    data = microdata({"income": [5.0] * 20}, INCOME)
    values = (
        PrivateQuantiles("income", tuple(np.linspace(0, 1, 50)), epsilon="0.1", max_rows=1)
        .run(data, randomness=default(5))
        .result
    )
    assert (np.diff(values.column("value").to_numpy()) >= 0).all()
    assert values.column("value").to_numpy().min() >= 0
    assert values.column("value").to_numpy().max() <= 100_000


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(-10, 110), st.integers(0, 3)), max_size=25),
    st.integers(1, 3),
    st.sampled_from("abc"),
)
def test_one_unit_changes_the_tree_by_at_most_its_sensitivity(rows: list[tuple[str, float, int]], most: int, gone: str) -> None:
    data = microdata(
        {"who": [row[0] for row in rows], "x": [row[1] for row in rows], "t": [row[2] for row in rows]},
        {"who": {"role": "unit", "type": "string"}, "x": {"type": "number", "bounds": [0, 100]}, "t": {"type": "integer"}},
        {"who": pa.string(), "x": pa.float64(), "t": pa.int64()},
    )
    algorithm = PrivateQuantiles("x", epsilon=1, leaves=30, branching=3, max_rows=most, bounding="truncate", order="t")
    trees = [np.concatenate(tree_counts(algorithm.leaf_counts(table)[1], 3)) for table in (data, without(data, "who", gone))]
    change = np.abs(trees[0] - trees[1])
    l1, l2_squared = tree_sensitivity(30, 3, most)
    assert change.sum() <= l1
    assert (change**2).sum() <= l2_squared


def test_the_loss_does_not_depend_on_how_many_are_asked() -> None:
    assert (
        PrivateQuantiles("income", epsilon="0.3", max_rows=1).loss()
        == PrivateQuantiles("income", (0.1, 0.2), epsilon="0.3", max_rows=1).loss()
        == PureDP("0.3")
    )
    assert PrivateQuantiles("income", rho="0.3", max_rows=1).loss() == ConcentratedDP("0.3")


def test_refusals() -> None:
    for wrong in ({"quantiles": ()}, {"quantiles": (1.2,)}, {"leaves": 1}, {"branching": 1}, {"epsilon": None}, {"max_rows": 0}):
        with pytest.raises(ParameterError):
            PrivateQuantiles(**{"column": "income", "epsilon": 1, **wrong})  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="It needs bounds"):
        PrivateQuantiles("x", epsilon=1, max_rows=1).run(microdata({"x": [1.0]}, {"x": {"type": "number"}}))
