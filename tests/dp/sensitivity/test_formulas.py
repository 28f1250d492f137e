"""Formulas for the catalogue of queries, each against brute force over all small tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import dp
from sfumato.core.declared import build, parameters
from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.loss import Neighbours
from sfumato.dp import sensitivity
from sfumato.dp.sensitivity.baskets import Differing
from sfumato.dp.sensitivity.graphs import Differing as GraphDiffering
from sfumato.dp.sensitivity.graphs import Graph, brute_force, degrees
from tests.examples import examples

BOTH: tuple[Neighbours, ...] = ("add_remove", "replace")
SMALL = [-2, 0, 3, 5]


def found(query: Callable[[list[Any]], Any], neighbours: Neighbours, sizes: Any = range(1, 5), domain: Any = SMALL) -> Fraction:
    return dp.global_sensitivity(query, domain, neighbours, sizes=sizes).l1


@pytest.mark.parametrize("neighbours", BOTH)
def test_count(neighbours: Neighbours) -> None:
    assert sensitivity.count(neighbours).l1 == found(lambda t: sum(x > 0 for x in t), neighbours) == 1


@pytest.mark.golden("G-DP-37")
@pytest.mark.parametrize(("low", "high", "expected"), [(-2, 5, (5, 7)), (0, 100, (100, 100))])
def test_sum(low: int, high: int, expected: tuple[int, int]) -> None:
    for neighbours, change in zip(BOTH, expected, strict=True):
        assert sensitivity.total(low, high, neighbours).l1 == change
        assert found(sum, neighbours, domain=[low, 0, high]) == change


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize(("low", "high"), [(-2, 5), (1, 3), (-4, -1)])
def test_sum_of_squares(low: int, high: int, neighbours: Neighbours) -> None:
    domain = sorted({low, high, max(low, min(high, 0))})
    assert sensitivity.sum_of_squares(low, high, neighbours).l1 == found(
        lambda t: sum(x * x for x in t), neighbours, domain=domain
    )


@pytest.mark.parametrize(("name", "query"), [("minimum", min), ("maximum", max), ("median", statistics.median_low)])
def test_extremes_and_median_on_zero_to_hundred(name: str, query: Any) -> None:
    stated = getattr(sensitivity, name)(0, 100)
    assert stated.l1 == found(query, "replace", sizes=range(1, 6), domain=[0, 50, 100]) == 100
    assert stated.neighbours == "replace"


@pytest.mark.golden("G-DP-13")
def test_median_of_five_jumps_by_hundred() -> None:
    assert statistics.median([0, 0, 100, 100, 100]) - statistics.median([0, 0, 0, 100, 100]) == 100
    around = dp.local_sensitivity(statistics.median, [0, 0, 0, 100, 100], [0, 100], "replace")
    assert around.l1 == 100


def exact_mean(table: list[int]) -> Fraction:
    return Fraction(sum(table), len(table))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_mean_of_a_public_size_is_exact(size: int) -> None:
    assert sensitivity.mean(0, 100, size).l1 == found(exact_mean, "replace", sizes=[size], domain=[0, 30, 100])


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_mean_with_a_minimal_size_is_a_safe_bound(size: int) -> None:
    """The larger of two neighbours has one record more: (max - min)/(S + 1) is exact, the printed value is safe."""
    changed = found(exact_mean, "add_remove", sizes=range(size, size + 4), domain=[0, 100])
    assert changed == Fraction(100, size + 1) <= sensitivity.mean(0, 100, size, "add_remove").l1


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("least", [1, 2, 4])
def test_the_truncated_mean_that_is_answered_changes_by_no_more_than_stated(neighbours: Neighbours, least: int) -> None:
    """For all sizes, also below the minimal one."""
    mechanism = dp.TruncatedMean(10, 90, 1, least, (0, 100), neighbours=neighbours)
    changed = found(mechanism._mean, neighbours, sizes=range(6), domain=[0, 25, 100])
    assert changed <= mechanism.sensitivity.l1


@pytest.mark.golden("G-DP-11")
def test_many_counts() -> None:
    before, after = [15, 20, 3, 87, 32], [16, 21, 4, 88, 33]
    assert sum(abs(a - b) for a, b in zip(before, after, strict=True)) == sensitivity.several_counts(5).l1 == 5
    assert sensitivity.several_counts(5).l2_squared == 5
    everyone = dp.global_sensitivity(lambda t: [len(t)] * 5, ["x"], "add_remove", sizes=range(3))
    assert [everyone.l1, everyone.l2_squared, everyone.largest] == [Fraction(5), Fraction(5), Fraction(1)]


@pytest.mark.golden("G-DP-12")
def test_histogram() -> None:
    for neighbours, change in zip(BOTH, (1, 2), strict=True):
        stated = sensitivity.histogram(neighbours)
        tried = dp.global_sensitivity(lambda t: [t.count(x) for x in "abc"], "abc", neighbours, sizes=range(4))
        assert (stated.l1, stated.l2_squared, stated.largest) == (tried.l1, tried.l2_squared, tried.largest)
        assert stated.l1 == change == dp.Histogram(categories=tuple("abc"), epsilon=1, neighbours=neighbours).sensitivity.l1


def test_bar_chart_of_visits() -> None:
    assert sensitivity.bar_chart(100, unit="person").l1 == 100
    people = [(a, b) for a in range(3) for b in range(3) if a + b <= 2]  # how often a person visits two places
    for neighbours in BOTH:
        tried = dp.global_sensitivity(
            lambda t: [sum(a for a, _ in t), sum(b for _, b in t)], people, neighbours, sizes=range(4), unit="person"
        )
        stated = sensitivity.bar_chart(2, neighbours, unit="person")
        assert (stated.l1, stated.l2_squared, stated.largest) == (tried.l1, tried.l2_squared, tried.largest)


ASPIRIN, PANADOL, SUDAFED, TYLENOL, CEPACOL, VITC, IBUPROFEN = "Aspirin Panadol Sudafed Tylenol Cepacol VitC Ibuprofen".split()
BASKETS = {
    1: [{ASPIRIN, PANADOL}, {ASPIRIN, SUDAFED}],
    2: [{TYLENOL, CEPACOL}, {ASPIRIN, VITC, SUDAFED}],
    3: [{TYLENOL, CEPACOL}, {ASPIRIN, CEPACOL}],
    4: [{ASPIRIN, VITC}, {ASPIRIN, IBUPROFEN, PANADOL}],
    5: [{PANADOL, VITC}, {TYLENOL, CEPACOL, IBUPROFEN}],
    6: [{TYLENOL, PANADOL, CEPACOL}, {PANADOL, SUDAFED, IBUPROFEN}],
}


@pytest.mark.golden("G-DP-25")
def test_aspirins_in_baskets() -> None:
    assert sum(ASPIRIN in basket for baskets in BASKETS.values() for basket in baskets) == 6
    changes = {
        differing: sensitivity.units_sold(differing, transactions=2).l1 for differing in ("customer", "transaction", "item")
    }
    assert changes == {"customer": 2, "transaction": 1, "item": 1}


@pytest.mark.parametrize(("differing", "records"), [("customer", range(7)), ("transaction", range(4)), ("item", range(2))])
def test_units_sold_against_all_customers(differing: Differing, records: range) -> None:
    """A customer with at most 2 transactions of at most 3 units sold holds 0 to 6 of them, and so on."""
    for neighbours in BOTH:
        stated = sensitivity.units_sold(differing, transactions=2, units=3, neighbours=neighbours)
        assert stated.l1 == found(sum, neighbours, range(3), list(records))
        assert stated.unit == differing


def test_trees() -> None:
    assert sensitivity.matching_vertices("tree").l1 == sensitivity.matching_vertices("vertex", most=4).l1 == 1
    assert sensitivity.matching_vertices("tree", most=4).l1 == found(sum, "add_remove", range(3), [0, 1, 4]) == 4


def at_least(degree: int, graph: Graph) -> int:
    return sum(found >= degree for found in degrees(graph))


@pytest.mark.golden("G-DP-32")
def test_graphs_with_four_vertices() -> None:
    assert brute_force(lambda graph: len(graph[1]), "edge", 4).l1 == sensitivity.edge_count("edge").l1 == 1
    assert brute_force(lambda graph: len(graph[1]), "node", 4).l1 == sensitivity.edge_count("node", vertices=4).l1 == 4
    most = {"edge": Fraction(0), "node": Fraction(0)}
    for least in (1, 2, 3):
        for differing in get_args(GraphDiffering):
            tried = brute_force(partial(at_least, least), differing, 4)
            most[differing] = max(most[differing], tried.l1)
            assert tried.l1 <= sensitivity.degree_at_least(differing, vertices=4).l1
    assert most == {"edge": 2, "node": 5}
    assert sensitivity.degree_at_least("edge").l1 == 2 and sensitivity.degree_at_least("node", vertices=4).l1 == 5


@settings(max_examples=examples(30))
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=4, unique=True), st.sampled_from(BOTH))
def test_no_formula_is_below_brute_force(domain: list[int], neighbours: Neighbours) -> None:
    low, high = min(domain), max(domain)
    queries: list[tuple[dp.Sensitivity, Any]] = [
        (sensitivity.total(low, high, neighbours), sum),
        (sensitivity.sum_of_squares(low, high, neighbours), lambda t: sum(x * x for x in t)),
        (sensitivity.minimum(low, high, neighbours), min),
        (sensitivity.mean(low, high, 2, neighbours), lambda t: exact_mean(t)),
    ]
    for stated, query in queries:
        assert dp.global_sensitivity(query, domain, neighbours, sizes=range(2, 5)).l1 <= stated.l1


def test_local_sensitivity_is_marked_and_refused_by_every_mechanism() -> None:
    around = dp.local_sensitivity(sum, [1, 2, 3], SMALL, "add_remove")
    assert around.local and around.l1 == 5
    for make in (
        lambda: dp.Laplace(around, 1),
        lambda: dp.Gaussian(around, 1, "1e-6"),
        lambda: dp.Geometric(around, 1),
        lambda: dp.BoundedLaplace(0, 10, around, 1),
        lambda: dp.Exponential(("a", "b"), around, 1),
        lambda: dp.PermuteAndFlip(("a", "b"), around, 1),
        lambda: dp.ReportNoisyMax(("a", "b"), around, 1),
        lambda: dp.SparseVector(3, around, 1),
    ):
        with pytest.raises(ParameterError, match="single data set"):
            make()


def test_local_sensitivity_may_be_far_below_the_global_one() -> None:
    data = [50] * 5
    assert dp.local_sensitivity(statistics.median, data, [0, 50, 100], "replace").l1 == 0
    assert dp.global_sensitivity(statistics.median, [0, 50, 100], "replace", sizes=[5]).l1 == 100


def test_a_sensitivity_round_trips_through_plain_data() -> None:
    one = sensitivity.mean(0, 1, 3, unit="person")
    assert build(dp.Sensitivity, parameters(one)) == one


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: dp.global_sensitivity(sum, range(40), "replace", sizes=[9]),
        lambda: dp.global_sensitivity(sum, [], "replace", sizes=[1]),
        lambda: dp.global_sensitivity(sum, [1], "both", sizes=[1]),  # type: ignore[arg-type]
        lambda: dp.global_sensitivity(lambda t: float("nan"), [1], "add_remove", sizes=[0, 1]),
        lambda: dp.global_sensitivity(lambda t: [0] * len(t), [1], "add_remove", sizes=[0, 1]),
        lambda: sensitivity.total(5, 1),
        lambda: sensitivity.mean(0, 1, 0),
        lambda: sensitivity.edge_count("node"),
        lambda: sensitivity.units_sold("household"),  # type: ignore[arg-type]
        lambda: brute_force(lambda graph: 0, "edge", 9),
        lambda: dp.Laplace(sensitivity.total(0, 0), 1),
        lambda: dp.Laplace(sensitivity.total(0, 1, "replace"), 1, neighbours="add_remove"),
    ],
)
def test_what_cannot_be_computed_is_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError):
        wrong()


@pytest.mark.parametrize("mechanism", [dp.Laplace, dp.Geometric])
def test_relation_and_unit_travel_from_the_sensitivity_to_the_loss(mechanism: Any) -> None:
    loss = mechanism(sensitivity.histogram("replace", unit="person"), 1).loss()
    assert (loss.neighbours, loss.unit) == ("replace", "person")
