"""CBFS and its p-sensitive and l-diverse variants."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import Infeasible, MissingColumn, ParameterError
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.core.guarantees.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from tests.examples import examples
from tests.masking import microaggregation_oracles as oracle


def numbers(values: list[int]) -> sf.Microdata:
    return sf.read(pa.table({"x": values}))


@pytest.mark.golden("G-MSK-07")
def test_clusters_of_three_on_a_line() -> None:
    plain = sf.Cbfs(3, columns=("x",), standardise=False, whole=False)
    first = plain.apply(numbers([1, 2, 3, 10, 11, 12, 13]))
    assert oracle.as_sets(first.details["labels"]) == {frozenset({0, 1, 2}), frozenset({3, 4, 5, 6})}
    assert first.details["squared_error"] == pytest.approx(7)
    second = plain.apply(numbers([0, 1, 4, 5, 9, 10, 11, 30]))
    assert second.result.table.column("x").to_pylist() == pytest.approx([3.8] * 5 + [17.0] * 3)
    assert second.details["labels"] == [1, 1, 1, 1, 1, 0, 0, 0]
    assert second.details["squared_error"] == pytest.approx(304.8)


@st.composite
def people(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[str]]:
    count = draw(st.integers(4, 40))
    points = draw(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=count, max_size=count))
    values = draw(st.lists(st.sampled_from("aaaabbcd"), min_size=count, max_size=count))
    return points, values


def data(points: list[tuple[float, float]] | list[tuple[int, int]], values: list[str]) -> sf.Microdata:
    table = pa.table({"x": [x for x, _ in points], "y": [y for _, y in points], "ill": values})
    return sf.read(table, sf.Schema.of(quasi=["x", "y"], sensitive=["ill"]))


def varied(points: list[tuple[int, int]]) -> bool:
    return all(len(set(column)) > 1 for column in zip(*points, strict=True))


@given(people(), st.integers(2, 5), st.integers(2, 4))
def test_p_sensitive_clusters_are_those_of_the_definition(given: tuple[Any, Any], k: int, p: int) -> None:
    whole, values = given
    if len(whole) < k or len(set(values)) < p or not varied(whole):
        return
    # off the grid, each by its own amount: equal distances to a rounded centroid would be told apart by rounding alone
    points = [(x + 0.0137 * math.sin(9 * i), y + 0.0171 * math.cos(7 * i)) for i, (x, y) in enumerate(whole)]
    expected = oracle.cbfs(points, k, values, p)
    if not expected:
        return
    outcome = sf.Cbfs(k, p=p, standardise=False).apply(data(points, values))
    assert oracle.as_sets(outcome.details["labels"]) == oracle.sets(expected)


@settings(max_examples=examples(20))
@given(people(), st.integers(2, 5), st.sampled_from(["p", "distinct", "entropy", "recursive"]), st.sampled_from([2, 3]))
def test_every_cluster_is_as_diverse_as_asked_or_the_request_is_refused(
    given: tuple[Any, Any], k: int, kind: str, least: int
) -> None:
    points, values = given
    if len(points) < k or not varied(points):
        return
    mask = {
        "p": lambda: sf.Cbfs(k, p=least),
        "distinct": lambda: sf.Cbfs(k, l=least, diversity="distinct"),
        "entropy": lambda: sf.Cbfs(k, l=least - 0.3),
        "recursive": lambda: sf.Cbfs(k, l=least, diversity="recursive", c=2.5),
    }[kind]()
    claim = {
        "p": DistinctLDiversity(least, "ill"),
        "distinct": DistinctLDiversity(least, "ill"),
        "entropy": EntropyLDiversity(least - 0.3, "ill"),
        "recursive": RecursiveLDiversity(2.5, least, "ill"),
    }[kind]
    table = data(points, values)
    try:
        outcome = mask.apply(table)
    except Infeasible:
        # then not even one class of everybody is diverse enough
        whole = table.table().set_column(0, "x", pa.array([0] * len(points))).set_column(1, "y", pa.array([0] * len(points)))
        assert not sf.check(whole, table.schema, [claim]).holds
        return
    assert outcome.claimed == (KAnonymity(k), claim)
    assert sf.check(outcome.result.table, table.schema, list(outcome.claimed)).holds
    assert min(Counter(outcome.details["labels"]).values()) >= k


def test_a_cluster_grows_by_the_nearest_record_that_makes_it_more_uncertain() -> None:
    points = [(x, 0) for x in (0, 1, 2, 3, 4, 100, 101, 102)]
    table = data([(x, i % 2) for i, (x, _) in enumerate(points)], list("aaabbabb"))
    outcome = sf.Cbfs(2, l=2, columns=("x",), standardise=False).apply(table)
    for members in oracle.as_sets(outcome.details["labels"]):
        shares = [count / len(members) for count in Counter("aaabbabb"[row] for row in members).values()]
        assert math.exp(-sum(share * math.log(share) for share in shares)) >= 2 - 1e-9


def test_e68_distinct_diversity_is_p_sensitivity_and_entropy_asks_for_more() -> None:
    random = np.random.default_rng(6)
    points = [(int(x), int(y)) for x, y in random.integers(-50, 50, (120, 2))]
    table = data(points, random.choice(["a", "b", "c"], 120, p=[0.6, 0.3, 0.1]).tolist())
    sensitive = sf.Cbfs(5, p=2).apply(table)
    distinct = sf.Cbfs(5, l=2, diversity="distinct").apply(table)
    entropy = sf.Cbfs(5, l=2).apply(table)
    assert sensitive.details["labels"] == distinct.details["labels"] != entropy.details["labels"]
    assert not sf.check(distinct.result.table, table.schema, list(entropy.claimed)).holds
    assert sf.check(entropy.result.table, table.schema, [*entropy.claimed, *distinct.claimed]).holds


def test_all_sensitive_columns_of_the_schema_are_meant_unless_one_is_named() -> None:
    random = np.random.default_rng(5)
    table = pa.table(
        {
            "x": random.normal(size=200),
            "ill": random.choice(["a", "b", "c"], 200),
            "paid": random.choice(["low", "high"], 200, p=[0.9, 0.1]),
        }
    )
    people = sf.read(table, sf.Schema.of(quasi=["x"], sensitive=["ill", "paid"]))
    both = sf.Cbfs(4, p=2).apply(people)
    assert [getattr(claim, "attribute", None) for claim in both.claimed] == [None, "ill", "paid"]
    assert sf.check(both.result.table, people.schema, list(both.claimed)).holds
    one = sf.Cbfs(4, p=2, sensitive="ill").apply(people)
    assert [getattr(claim, "attribute", None) for claim in one.claimed] == [None, "ill"]
    assert one.details["information_loss"] < both.details["information_loss"]


def test_a_missing_sensitive_value_is_a_value_of_its_own() -> None:
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "ill": ["a", None, "a", None]})
    people = sf.read(table, sf.Schema.of(quasi=["x"], sensitive=["ill"]))
    outcome = sf.Cbfs(2, p=2).apply(people)
    assert sf.check(outcome.result.table, people.schema, list(outcome.claimed)).holds


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"p": 2, "l": 2}, "not both"),
        ({"p": 1}, "p must be"),
        ({"p": 2.5}, "p must be"),
        ({"l": 1}, "l must be"),
        ({"l": float("nan")}, "l must be"),
        ({"l": 2.5, "diversity": "distinct"}, "whole number"),
        ({"l": 2, "diversity": "recursive"}, "c belongs"),
        ({"l": 2, "c": 2.0}, "c belongs"),
        ({"l": 2, "diversity": "recursive", "c": 0.0}, "c must be"),
        ({"l": 2, "diversity": "plenty"}, "diversity must be"),
        ({"sensitive": "ill"}, "say what"),
        ({"p": 2, "sensitive": ()}, "sensitive must be the names of columns"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        sf.Cbfs(3, **parameters)


def test_what_the_data_cannot_give_is_refused() -> None:
    table = pa.table({"x": [1, 2, 3, 4, 5, 6], "ill": ["a", "a", "a", "a", "a", "b"]})
    people = sf.read(table, sf.Schema.of(quasi=["x"], sensitive=["ill"]))
    with pytest.raises(Infeasible, match="'ill'"):
        sf.Cbfs(2, p=3).apply(people)
    with pytest.raises(Infeasible, match="'ill'"):
        sf.Cbfs(2, l=2).apply(people)
    with pytest.raises(MissingColumn, match="'nowhere'"):
        sf.Cbfs(2, p=2, sensitive="nowhere").apply(people)
    with pytest.raises(ParameterError, match="masked and be the sensitive"):
        sf.Cbfs(2, p=2, sensitive="x").apply(people)
    with pytest.raises(ParameterError, match="name them by sensitive"):
        sf.Cbfs(2, p=2).apply(sf.read(table, sf.Schema.of(quasi=["x"], plain=["ill"])))
