"""The loss of many questions over parts of the data, against every record of a small world."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, PureDP
from sfumato.dp.accounting import disjoint
from sfumato.dp.accounting.disjoint import composed
from sfumato.dp.accounting.predicates import among, equals, within
from sfumato.engines.expressions import And, Compare, Expression, Literal, Not, OneOfValues, Or
from tests.dp.accounting.rows import truth
from tests.examples import examples

AGES, TOWNS = range(6), ("Rome", "Oslo", "Bern")

atoms = st.one_of(
    st.builds(within, st.just("age"), st.sampled_from(AGES), st.sampled_from(AGES)),
    st.builds(equals, st.just("town"), st.sampled_from(TOWNS)),
    st.builds(lambda values: among("town", *values), st.lists(st.sampled_from(TOWNS), max_size=2)),
)
conditions = st.one_of(
    st.none(),
    atoms,
    atoms.map(Not),
    st.builds(lambda a, b: And((a, b)), atoms, atoms),
    st.builds(lambda a, b: Or((a, b)), atoms, atoms),
)
questions = st.lists(st.tuples(conditions, st.integers(1, 9)), min_size=1, max_size=7)


def sees(condition: Expression | None, age: int, town: str) -> bool:
    if condition is None:
        return True
    codes = {name: float(code) for code, name in enumerate(TOWNS)}
    return truth(_coded(condition, codes), {"age": age, "town": codes[town]}, True) is True


def _coded(condition: Expression, codes: dict[str, float]) -> Expression:
    """The same condition with towns as numbers, for the reading by rows."""
    match condition:
        case And(terms):
            return And(tuple(_coded(term, codes) for term in terms))
        case Or(terms):
            return Or(tuple(_coded(term, codes) for term in terms))
        case Not(term):
            return Not(_coded(term, codes))
        case OneOfValues(term, values):
            return OneOfValues(term, tuple(codes.get(value, value) for value in values))  # type: ignore[arg-type]
        case Compare(operator, left, Literal(value)):
            return Compare(operator, left, Literal(codes.get(value, value)))  # type: ignore[arg-type]
    return condition


def truth_of(asked: list[tuple[Expression | None, int]], replaced: bool) -> int:
    """What really adds up for the worst record, or the worst pair of records."""
    seen = [frozenset(i for i, (where, _) in enumerate(asked) if sees(where, *record)) for record in product(AGES, TOWNS)]
    changed = {one | other for one in seen for other in seen} if replaced else set(seen)
    return max(sum(asked[i][1] for i in each) for each in changed)


@settings(max_examples=examples(30))
@given(questions, st.booleans())
def test_the_total_is_never_below_the_truth_nor_above_the_sum(asked: list[tuple[Expression | None, int]], replaced: bool) -> None:
    relation = "replace" if replaced else "add_remove"
    total = composed([(where, PureDP(cost, neighbours=relation)) for where, cost in asked])  # type: ignore[arg-type]
    assert truth_of(asked, replaced) <= total.epsilon <= sum(cost for _, cost in asked)  # type: ignore[attr-defined]


@settings(max_examples=examples(15))
@given(questions, st.booleans())
def test_without_listing_all_sets_the_total_is_still_no_understatement(
    asked: list[tuple[Expression | None, int]], replaced: bool
) -> None:
    relation = "replace" if replaced else "add_remove"
    losses = [(where, PureDP(cost, neighbours=relation)) for where, cost in asked]
    most, disjoint._MOST_SETS = disjoint._MOST_SETS, 0
    try:
        total = composed(losses)  # type: ignore[arg-type]
    finally:
        disjoint._MOST_SETS = most
    assert truth_of(asked, replaced) <= total.epsilon <= sum(cost for _, cost in asked)  # type: ignore[attr-defined]


@given(st.lists(st.tuples(st.sampled_from(AGES), st.sampled_from(AGES), st.integers(1, 9)), min_size=1, max_size=8))
def test_ranges_of_one_column_are_accounted_for_exactly(ranges: list[tuple[int, int, int]]) -> None:
    asked = [(within("age", min(a, b), max(a, b)), cost) for a, b, cost in ranges]
    assert composed([(where, PureDP(cost)) for where, cost in asked]).epsilon == truth_of(asked, False)  # type: ignore[attr-defined]


def test_one_question_per_town_costs_one_and_the_whole_table_comes_on_top() -> None:
    towns = [(equals("town", town), PureDP("0.5")) for town in TOWNS]
    assert composed(towns) == PureDP("0.5")
    assert composed([*towns, (None, PureDP("0.2"))]) == PureDP("0.7")


def test_a_replaced_record_may_change_two_towns() -> None:
    losses = [(equals("town", town), PureDP(cost, neighbours="replace")) for town, cost in zip(TOWNS, (1, 2, 3), strict=True)]
    assert composed(losses) == PureDP(5, neighbours="replace")


def test_groups_of_disjoint_questions_count_twice_where_a_record_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = [(equals("town", town), PureDP(cost, neighbours="replace")) for town, cost in zip(TOWNS, (1, 2, 3), strict=True)]
    monkeypatch.setattr(disjoint, "_MOST_SETS", 0)
    assert composed(losses) == PureDP(5, neighbours="replace")


def test_users_are_separated_only_by_columns_that_are_constant_per_user() -> None:
    losses = [(equals("town", town), PureDP(1, unit="user")) for town in TOWNS]
    assert composed(losses) == PureDP(3, unit="user")
    assert composed(losses, constant=["town"]) == PureDP(1, unit="user")


def test_other_kinds_are_composed_alike() -> None:
    rome, oslo = equals("town", "Rome"), equals("town", "Oslo")
    assert composed([(rome, ConcentratedDP("0.1")), (oslo, PureDP(1))]) == ConcentratedDP("0.5")
    assert composed([(rome, ApproxDP(1, "1e-9")), (oslo, ApproxDP("0.5", "1e-6"))]) == ApproxDP(1, "1e-6")


def test_many_questions_fall_back_to_groups() -> None:
    """A hundred ages and a hundred towns overlap in ten thousand pairs, too many to list: groups are exact here too."""
    asked = [(equals("age", i), PureDP(1)) for i in range(60)] + [(equals("town", f"t{i}"), PureDP(2)) for i in range(60)]
    assert composed(asked) == PureDP(Fraction(3))


def test_no_question_is_refused() -> None:
    with pytest.raises(ParameterError, match="no question"):
        composed([])
