"""The claim that matters: leaving out one unit changes what is measured by no more than the stated sensitivity."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.dp.algorithms.count_tree import tree_counts
from sfumato.dp.sql.measuring.measurement import BRANCHING
from sfumato.dp.sql.measuring.noise import Price, Request, price
from sfumato.dp.sql.measuring.one_query import _leaves, _value_counts, distinct_values, flat_plan, run, split
from sfumato.dp.sql.question import Question
from tests.dp.sql.random_queries import customer_rows, opened, options, order_rows, queries
from tests.examples import examples

SALT = "ab" * 16


class FixedSalt:
    """A byte source whose bytes are always the same, so that neighbours share the salt."""

    private, description = False, "fixed"

    def bytes(self, count: int) -> bytes:
        return bytes.fromhex(SALT)[:count]


def measured(question: Question, priced: Price) -> dict[str, dict[tuple[Any, ...], int]]:
    """Every measured integer before noise, per measurement and coordinate."""
    flat, trees = split(question, priced)
    found: dict[str, dict[tuple[Any, ...], int]] = {measurement.name: {} for measurement in [*flat, *trees]}
    keys = len(question.keys)
    if flat:
        answer = run(question, flat_plan(question, priced, flat, SALT))
        for row in zip(*(column.to_pylist() for column in answer.columns), strict=True):
            for place, measurement in enumerate(flat):
                found[measurement.name][tuple(row[:keys])] = int(row[keys + place] or 0)
    for values in distinct_values(question):
        found[values.name] = dict(_value_counts(question, priced, values, FixedSalt()))
    for tree in trees:
        for group, leaves in _leaves(question, priced, tree, FixedSalt()).items():
            for depth, level in enumerate(tree_counts(leaves, BRANCHING)):
                found[tree.name].update({(*group, depth, place): int(count) for place, count in enumerate(level) if count})
    return found


def check_neighbours(customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str, bounds: dict[str, Any]) -> None:
    def all_of(leave_out: int | None) -> tuple[Price, dict[str, dict[tuple[Any, ...], int]]]:
        kept = [[row for row in table if row["customer_id"] != leave_out or leave_out is None] for table in (customers, orders)]
        asked = opened(kept[0], kept[1], **bounds)
        question = asked._question(asked._parsed(query), None)
        priced = price(question, Request(epsilon=1, delta="1e-6"), asked._bounds)
        return priced, measured(question, priced)

    priced, whole = all_of(None)
    units = [row["customer_id"] for row in [*customers, *orders] if row["customer_id"] is not None]
    # The unit with most rows has most to change; one more for good measure.
    for unit in list(dict.fromkeys(sorted(units, key=lambda unit: (-units.count(unit), unit))))[:2]:
        _, less = all_of(unit)
        for name, noise in priced.noises.items():
            coordinates = whole[name].keys() | less[name].keys()
            changes = [abs(whole[name].get(place, 0) - less[name].get(place, 0)) for place in coordinates]
            assert sum(changes) <= noise.l1
            assert sum(change**2 for change in changes) <= noise.l2_squared


@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(customer_rows(), order_rows(), queries(), options())
def test_one_unit_less_changes_no_measurement_by_more_than_its_sensitivity(
    customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str, bounds: dict[str, Any]
) -> None:
    check_neighbours(customers, orders, query, bounds)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(customer_rows(), order_rows(), queries(), options())
def test_the_same_for_many_more_queries(
    customers: list[dict[str, Any]], orders: list[dict[str, Any]], query: str, bounds: dict[str, Any]
) -> None:
    check_neighbours(customers, orders, query, bounds)


@settings(max_examples=examples(9), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 3), st.integers(1, 3), st.sampled_from(["sample", "truncate"]))
def test_a_heavy_unit_is_held_to_its_bounds(rows: int, groups: int, bounding: str) -> None:
    heavy = [
        {"customer_id": 1, "category": "books", "amount": 1e9, "quantity": 20, "city": city}
        for city in ("Bern", "Basel", "Zürich", "Genève")
        for _ in range(7)
    ]
    light = [{"customer_id": 2, "category": "food", "amount": 1.0, "quantity": 1, "city": "Bern"}]
    query = (
        "SELECT city, COUNT(*), SUM(amount), SUM(quantity), COUNT(DISTINCT customer_id), MEDIAN(amount) FROM orders GROUP BY city"
    )
    check_neighbours([], [*heavy, *light], query, {"max_rows": rows, "max_groups": groups, "bounding": bounding})
