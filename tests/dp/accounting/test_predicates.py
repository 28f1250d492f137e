"""Whether two conditions are certainly disjoint: never claimed wrongly, and found where it matters."""

from __future__ import annotations

import datetime
import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.dp.accounting.predicates import among, certainly_disjoint, columns_read, composition_of, equals, within
from sfumato.engines.expressions import (
    And,
    Arithmetic,
    Compare,
    Expression,
    IsMissing,
    Literal,
    Not,
    OneOfValues,
    Or,
    Reference,
)
from tests.dp.accounting.rows import truth
from tests.examples import examples

POSITIVE, NEGATIVE = equals("hiv", "positive"), equals("hiv", "negative")


def compare(column: str, operator: str, value: object) -> Expression:
    return Compare(operator, Reference(column), Literal(value))  # type: ignore[arg-type]


@pytest.mark.golden("G-DP-23")
def test_hiv_positive_and_its_neighbours() -> None:
    blonde = And((POSITIVE, equals("hair", "blonde")))
    assert composition_of(blonde, POSITIVE) == "sequential"
    assert composition_of(POSITIVE, NEGATIVE) == "parallel"
    assert composition_of(POSITIVE, within("age", 10, 20)) == "sequential"


DISJOINT = [
    (compare("age", "<", 18), compare("age", ">=", 18)),
    (within("age", 10, 20), within("age", 21, 30)),
    (among("city", "Rome", "Oslo"), among("city", "Paris")),
    (POSITIVE, Not(POSITIVE)),
    (Reference("smokes"), Not(Reference("smokes"))),
    (Reference("smokes"), equals("smokes", False)),
    (IsMissing(Reference("age")), compare("age", ">", 3)),
    (IsMissing(Reference("age")), compare("age", "<>", 3)),
    (compare("age", "is", None), compare("age", "is", 3)),
    (And((POSITIVE, within("age", 0, 9))), Or((NEGATIVE, And((POSITIVE, within("age", 10, 19)))))),
    (Not(Or((POSITIVE, NEGATIVE))), And((NEGATIVE, equals("hair", "red")))),
    (compare("born", "<", datetime.date(2000, 1, 1)), compare("born", ">", datetime.date(2000, 1, 1))),
    (Compare("<", Literal(5), Reference("x")), compare("x", "<=", 5)),
    (
        Compare(">", Arithmetic("+", Reference("x"), Reference("y")), Literal(5)),
        Not(Compare(">", Arithmetic("+", Reference("x"), Reference("y")), Literal(5))),
    ),
    (Compare("<", Reference("x"), Reference("y")), Not(Compare("<", Reference("x"), Reference("y")))),
    (Or(()), POSITIVE),
    (Literal(False), None),
    (Literal(None, "boolean"), None),
    (equals("x", None), None),
]

OVERLAPPING = [
    (POSITIVE, None),
    (None, None),
    (compare("age", "<=", 18), compare("age", ">=", 18)),
    (compare("x", ">", 3), compare("x", "<", 4)),
    (compare("age", "<>", 3), compare("age", "<>", 4)),
    (Not(compare("x", "<", 3)), compare("x", ">", 10)),
    (IsMissing(Reference("age")), Not(compare("age", "is", 3))),
    (equals("name", "Anna"), Not(equals("name", "ANNA"))),
    (equals("name", "Anna"), equals("name", "anna ")),
    (compare("name", "<", "b"), compare("name", ">", "c")),
    (equals("x", 2**60), equals("x", 2**60 + 1)),
    (equals("x", 1), equals("x", True)),
    (equals("t", datetime.datetime(2000, 1, 1)), equals("t", datetime.date(2001, 1, 1))),
    (Compare("<", Reference("x"), Reference("y")), Compare(">", Reference("x"), Reference("y"))),
    (Not(compare("x", "<", 3)), Not(compare("x", ">=", 3))),
]


@pytest.mark.parametrize(("one", "other"), DISJOINT)
def test_disjoint_conditions_are_found(one: Expression | None, other: Expression | None) -> None:
    assert certainly_disjoint(one, other) and certainly_disjoint(other, one)


@pytest.mark.parametrize(("one", "other"), OVERLAPPING)
def test_what_may_overlap_on_some_engine_is_not_claimed_disjoint(one: Expression | None, other: Expression | None) -> None:
    assert not certainly_disjoint(one, other) and not certainly_disjoint(other, one)


def test_between_neighbouring_whole_numbers_lies_no_integer() -> None:
    above, below = compare("x", ">", 3), compare("x", "<", 4)
    assert not certainly_disjoint(above, below)
    assert certainly_disjoint(above, below, kinds={"x": "integer"})
    assert not certainly_disjoint(above, compare("x", "<", 5), kinds={"x": "integer"})


def test_long_lists_are_compared_quickly_and_hopeless_ones_given_up() -> None:
    assert certainly_disjoint(among("x", *range(500)), among("x", *range(500, 1000)))
    tangled = [Or(tuple(And((equals(f"a{i}", j), equals(f"b{i}", j))) for i in range(12))) for j in range(12)]
    assert not certainly_disjoint(And(tuple(tangled)), And(tuple(map(Not, tangled))), Not(And(tuple(tangled))))


def test_the_columns_of_a_condition() -> None:
    assert columns_read(And((POSITIVE, within("age", 1, 2)))) == {"hiv", "age"} and columns_read(None) == set()


VALUES = [None, -1, 0, 1, 2, 2.5, 3, math.nan]


atoms = st.one_of(
    st.builds(
        compare,
        st.sampled_from("xyz"),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "is"]),
        st.sampled_from([0, 1, 2, 2.5, None]),
    ),
    st.sampled_from("xyz").map(lambda name: IsMissing(Reference(name))),
    st.builds(
        lambda name, values: OneOfValues(Reference(name), tuple(values)),
        st.sampled_from("xyz"),
        st.lists(st.sampled_from([0, 1, 2])),
    ),
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda terms: And(tuple(terms))),
        st.lists(inner, min_size=1, max_size=3).map(lambda terms: Or(tuple(terms))),
        inner.map(Not),
    ),
    max_leaves=6,
)


@settings(max_examples=examples(50))
@given(conditions, conditions)
def test_disjointness_is_claimed_exactly_when_no_row_fulfils_both(one: Expression, other: Expression) -> None:
    """The values cover every region of the constants used, so the search must agree with the enumeration."""
    names = sorted(columns_read(one) | columns_read(other))
    rows = [dict(zip(names, values, strict=True)) for values in product(VALUES, repeat=len(names))]
    common = any(
        truth(one, row, on_top) is True and truth(other, row, on_top) is True for row in rows for on_top in (True, False)
    )
    assert certainly_disjoint(one, other) is not common
