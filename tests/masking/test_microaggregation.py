"""What the methods of microaggregation share: groups of columns, mixed data, hierarchies, missing cells, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import HierarchyGap, ParameterError, Unsupported
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.masking.microaggregation.base import Microaggregation
from tests.masking import microaggregation_oracles as oracle

METHODS = [sf.Mdav, sf.VMdav, sf.Cbfs]
JOBS = {"office": ["clerk", "manager"], "craft": ["baker", "smith"]}
SCHEMA = Schema(
    columns={
        "age": Column(role="quasi", type="integer"),
        "job": Column(role="quasi", type="string", hierarchy=HierarchySpec(tree=JOBS)),
        "school": Column(role="quasi", type="string", order=("none", "primary", "secondary", "tertiary")),
        "town": Column(role="quasi", type="string"),
    }
)


def people(count: int = 60, missing: float = 0.0) -> sf.Microdata:
    random = np.random.default_rng(9)

    def holes() -> Any:
        return random.random(count) < missing

    table = pa.table(
        {
            "age": pa.array(random.integers(18, 90, count), mask=holes()),
            "job": pa.array(random.choice(["clerk", "manager", "baker", "smith"], count), mask=holes()),
            "school": pa.array(random.choice(["none", "primary", "secondary", "tertiary"], count), mask=holes()),
            "town": pa.array(random.choice(["A", "B", "C"], count), mask=holes()),
        }
    )
    return sf.read(table, SCHEMA)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("centroid", ["mode", "ancestor"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_mixed_data_become_k_anonymous_without_holes(method: type[Microaggregation], centroid: Any, missing: float) -> None:
    data = people(missing=missing)
    outcome = method(4, category_centroid=centroid).apply(data)
    assert outcome.claimed == (KAnonymity(4),)
    assert sum(column.null_count for column in outcome.result.table.columns) == 0
    schema = data.schema if centroid == "mode" else Schema.of(quasi=data.schema.quasi)
    assert sf.check(outcome.result.table, schema, list(outcome.claimed)).holds


def test_a_cluster_shows_its_mean_its_median_and_its_central_categories() -> None:
    table = pa.table(
        {
            "age": [20, 20, 21, 80, 80, 80],
            "job": ["clerk", "clerk", "smith", "baker", "smith", "clerk"],
            "school": ["none", "primary", "tertiary", "tertiary", "tertiary", "secondary"],
            "town": ["A", "A", "B", "C", "C", "B"],
        }
    )
    data = sf.read(table, SCHEMA)
    shown = sf.Mdav(3).apply(data).result.table
    # baker and smith are both nearer to the other two than clerk is; of the two the first is taken
    assert shown.to_pydict() == {
        "age": [20, 20, 20, 80, 80, 80],
        "job": ["clerk", "clerk", "clerk", "baker", "baker", "baker"],
        "school": ["primary"] * 3 + ["tertiary"] * 3,
        "town": ["A", "A", "A", "C", "C", "C"],
    }
    above = sf.Mdav(3, category_centroid="ancestor").apply(data).result.table
    assert above.column("job").to_pylist() == ["*"] * 6
    assert above.column("town").to_pylist() == ["*"] * 6
    within = sf.Mdav(3, category_centroid="ancestor", columns=("age", "job")).apply(
        sf.read(table.set_column(1, "job", pa.array(["clerk", "manager", "clerk", "smith", "smith", "smith"])), SCHEMA)
    )
    assert within.result.table.column("job").to_pylist() == ["office"] * 3 + ["smith"] * 3


def test_records_close_in_the_hierarchy_cluster_together() -> None:
    schema = Schema(columns={"job": Column(role="quasi", type="string", hierarchy=HierarchySpec(tree=JOBS))})
    data = sf.read(pa.table({"job": ["clerk", "baker", "manager", "smith"]}), schema)
    labels = sf.Mdav(2).apply(data).details["labels"]
    assert oracle.as_sets(labels) == {frozenset({0, 2}), frozenset({1, 3})}


def test_a_missing_number_gets_the_mean_of_the_known_ones_of_its_cluster() -> None:
    table = pa.table({"a": [0.0, 0.1, None, 9.0, 9.2, 9.4], "b": [0.0, 0.1, 0.2, 9.0, 9.1, 9.2]})
    outcome = sf.Mdav(3, columns=("a", "b")).apply(sf.read(table))
    assert outcome.result.table.column("a").to_pylist() == pytest.approx([0.05] * 3 + [9.2] * 3)


def test_a_cluster_without_known_values_gets_those_of_all() -> None:
    table = pa.table({"a": [None, None, 1.0, 3.0], "t": [None, None, "x", "x"], "b": [0.0, 0.0, 50.0, 51.0]})
    table = table.set_column(1, "t", pa.array([None, None, "x", "y"], pa.string()))
    shown = sf.Mdav(2, columns=("a", "t", "b")).apply(sf.read(table)).result.table
    assert shown.column("a").to_pylist() == [2.0] * 4
    assert shown.column("t").to_pylist() == ["x"] * 4
    above = sf.Mdav(2, columns=("a", "t", "b"), category_centroid="ancestor").apply(sf.read(table)).result.table
    assert above.column("t").to_pylist() == ["*"] * 4


@pytest.mark.parametrize("method", METHODS)
def test_groups_of_columns_lose_less_and_claim_nothing(method: type[Microaggregation]) -> None:
    random = np.random.default_rng(3)
    table = pa.table({name: random.normal(size=120) for name in "abcd"})
    data = sf.read(table, sf.Schema.of(quasi=list("abcd")))
    grouped = method(5, groups=(("a", "b"), ("c", "d"))).apply(data)
    together = method(5).apply(data)
    assert grouped.claimed == () and together.claimed == (KAnonymity(5),)
    assert max(grouped.details["information_loss"]) < together.details["information_loss"]
    assert grouped.result.transparency["attribute_groups"] == [["a", "b"], ["c", "d"]]
    alone = method(5, columns=("a", "b")).apply(data).result.table
    assert grouped.result.table.column("a").equals(alone.column("a"))


def test_k_anonymity_is_not_claimed_where_it_would_not_hold() -> None:
    table = pa.table(
        {"a": np.arange(20.0), "b": np.arange(20.0) % 7, "s": ["x", "y"] * 10, "who": [f"p{i // 2}" for i in range(20)]}
    )
    schema = Schema.of(quasi=["a", "b"], plain=["s", "who"])
    assert sf.Mdav(3, columns=("a",)).apply(sf.read(table, schema)).claimed == ()
    assert sf.Mdav(3, strata=("s",)).apply(sf.read(table, schema)).claimed == ()
    units = schema.replace(columns={**schema.columns, "who": Column(role="unit")})
    assert sf.Mdav(3).apply(sf.read(table, units)).claimed == ()
    assert sf.Mdav(3, columns=("a", "b", "s")).apply(sf.read(table, schema)).claimed == (KAnonymity(3),)


def test_strata_are_clustered_apart() -> None:
    table = pa.table({"a": [1.0, 1.0, 2.0, 2.0], "s": ["x", "y", "x", "y"]})
    outcome = sf.Mdav(2, columns=("a",), strata=("s",)).apply(sf.read(table))
    assert outcome.result.table.column("a").to_pylist() == [1.5] * 4
    constant = pa.table({"a": [1.0, 7.0, 1.0, 8.0], "s": ["x", "y", "x", "y"]})
    assert sf.Mdav(2, columns=("a",), strata=("s",)).apply(sf.read(constant)).result.table.column("a").to_pylist() == [
        1.0,
        7.5,
        1.0,
        7.5,
    ]


def test_nothing_about_records_is_published() -> None:
    told = dict(sf.Mdav(4).apply(people()).result.transparency)
    assert set(told) == {"method", "masked_columns", "k", "standardised", "attribute_groups"}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [1, 0, -2, 2.5, True])
def test_a_k_that_hides_nobody_is_refused(method: type[Microaggregation], k: Any) -> None:
    with pytest.raises(ParameterError, match="at least 2"):
        method(k)


@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_be_done_is_refused(method: type[Microaggregation]) -> None:
    with pytest.raises(ParameterError, match="61"):
        method(61).apply(people())
    with pytest.raises(ParameterError, match="groups must list"):
        method(3, groups=(("age",), ("age", "job")))
    with pytest.raises(ParameterError, match="groups must be lists of columns, none of them empty"):
        method(3, groups=(("age",), ()))
    with pytest.raises(ParameterError, match="exactly the masked columns"):
        method(3, groups=(("age",),)).apply(people())
    with pytest.raises(ParameterError, match="category_centroid"):
        method(3, category_centroid="middle")  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="one value only"):
        method(2, columns=("a",)).apply(sf.read(pa.table({"a": [1, 1, 1]})))


def test_a_category_outside_its_hierarchy_is_refused() -> None:
    table = people().table()
    jobs = pa.array(["astronaut", *table.column("job").to_pylist()[1:]])
    with pytest.raises(HierarchyGap, match="'job'"):
        sf.Mdav(3).apply(sf.read(table.set_column(1, "job", jobs), SCHEMA))
