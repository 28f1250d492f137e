"""What several units lose together, against brute force on mechanisms whose laws are known exactly."""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import InputError
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, PureDP
from sfumato.dp.accounting.composition import group
from sfumato.ledger import LossAmount, Protected, UnitChange
from sfumato.ledger.group_loss import grouped
from tests.examples import examples

#: e^ε of the mechanisms below, so that all probabilities are fractions.
BASE = 3


def geometric(true: int, outputs: range) -> dict[int, Fraction]:
    """Two-sided geometric noise on a whole number: one step changes every probability by a factor of at most 3."""
    weight = Fraction(BASE - 1, BASE + 1)
    return {shown: weight * Fraction(1, BASE ** abs(shown - true)) for shown in outputs}


def randomised_response(bits: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """Every bit told truly with probability 3/4."""
    told = itertools.product((0, 1), repeat=len(bits))
    chance = {True: Fraction(BASE, BASE + 1), False: Fraction(1, BASE + 1)}
    return {answer: _product(chance[a == b] for a, b in zip(answer, bits, strict=True)) for answer in told}


def _product(factors: object) -> Fraction:
    found = Fraction(1)
    for factor in factors:  # type: ignore[attr-defined]
        found *= factor
    return found


def largest_ratio(one: dict, other: dict) -> Fraction:  # type: ignore[type-arg]
    return max(max(one[shown] / other[shown], other[shown] / one[shown]) for shown in one)


@pytest.mark.parametrize("rows", [1, 2, 3, 8])
def test_a_pure_loss_of_m_rows_is_m_times_that_of_one_and_no_less(rows: int) -> None:
    counts = largest_ratio(geometric(5, range(-30, 30)), geometric(5 + rows, range(-30, 30)))
    bits = largest_ratio(randomised_response((0,) * rows), randomised_response((1,) * rows))
    steps = grouped(LossAmount.pure("0.1"), rows).epsilon
    assert steps == rows * Fraction("0.1") and counts == bits == BASE**rows


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows"), [("1", "1e-6", 8), ("0.1", "1e-9", 100), ("1e-40", "1e-9", 3), ("5", "1e-30", 7)]
)
def test_delta_grows_as_the_sum_of_powers_and_is_rounded_up(epsilon: str, delta: str, rows: int) -> None:
    with localcontext(prec=80):
        exact = Decimal(delta) * sum((Decimal(epsilon) * step).exp() for step in range(rows))
    found = grouped(LossAmount.approx(epsilon, delta), rows)
    assert found.epsilon == rows * Fraction(epsilon) and found.delta is not None
    assert Fraction(exact) * (1 - Fraction(1, 10**70)) <= found.delta <= Fraction(exact) * (1 + Fraction(1, 10**11))


@given(
    st.lists(st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any), min_size=3, max_size=5),
    st.fractions(Fraction(11, 10), 4, max_denominator=10),
)
def test_the_law_of_m_steps_is_within_the_group_loss(weights: list[list[int]], base: Fraction) -> None:
    """Any chain of laws, each (ε, δ) beside the next: the first and the last are within the loss of the group."""
    laws = [[Fraction(weight, sum(row)) for weight in row] for row in weights]

    def excess(one: list[Fraction], other: list[Fraction], factor: Fraction) -> Fraction:
        return sum((max(p - factor * q, Fraction(0)) for p, q in zip(one, other, strict=True)), Fraction(0))

    steps = len(laws) - 1
    delta = max(excess(*pair, base) for a, b in itertools.pairwise(laws) for pair in ((a, b), (b, a)))
    with localcontext(prec=40):
        epsilon = Fraction((Decimal(base.numerator) / Decimal(base.denominator)).ln()).limit_denominator(10**20) + Fraction(
            1, 10**15
        )
    found = grouped(LossAmount("approx", epsilon=epsilon, delta=delta), steps)
    assert found.delta is not None
    assert max(excess(laws[0], laws[-1], base**steps), excess(laws[-1], laws[0], base**steps)) <= found.delta <= 1


@settings(max_examples=examples(20))
@given(st.integers(1, 12), st.fractions(0, 3, max_denominator=100), st.fractions(0, 1, max_denominator=10**9))
def test_the_account_and_the_ledger_agree(rows: int, epsilon: Fraction, delta: Fraction) -> None:
    for loss in (PureDP(epsilon), ConcentratedDP(epsilon)):
        assert LossAmount.of(group(loss, rows)) == grouped(LossAmount.of(loss), rows)
    mine, theirs = grouped(LossAmount.of(ApproxDP(epsilon, delta)), rows), LossAmount.of(group(ApproxDP(epsilon, delta), rows))
    assert mine.epsilon == theirs.epsilon and mine.delta is not None and theirs.delta is not None
    assert abs(mine.delta - theirs.delta) <= theirs.delta * Fraction(1, 10**10)


@given(st.integers(1, 5), st.integers(1, 5), st.fractions(Fraction(1, 50), 2, max_denominator=50))
def test_a_group_of_groups_is_a_larger_group(few: int, more: int, epsilon: Fraction) -> None:
    for loss in (LossAmount.pure(epsilon), LossAmount.zcdp(epsilon)):
        assert grouped(grouped(loss, few), more) == grouped(loss, few * more)


@pytest.mark.parametrize("size", [0, -1, True, 1.5, "8", 10**9 + 1])
def test_odd_sizes_are_refused(size: object) -> None:
    with pytest.raises(InputError, match="whole number"):
        grouped(LossAmount.pure(1), size)  # type: ignore[arg-type]


def test_a_delta_that_says_nothing_is_one() -> None:
    assert grouped(LossAmount.approx(1, "1e-6"), 40) == LossAmount.approx(40, 1)
    assert grouped(LossAmount.approx(100, "1e-60"), 10**6).delta == 1
    assert grouped(LossAmount.approx(0, "1e-6"), 40).delta == Fraction(40, 10**6)


# How many steps one change takes, by trying every small database.

PEOPLE, HOMES = ("p", "q"), ("g", "h")
ROWS = [(person, home) for person in PEOPLE for home in HOMES]
Database = tuple[int, ...]  # how often each row occurs
DATABASES = list(itertools.product(range(3), repeat=len(ROWS)))


def restricted(database: Database, place: int, name: str) -> Database:
    return tuple(0 if row[place] == name else count for row, count in zip(ROWS, database, strict=True))


def parity(database: Database, place: int) -> int:
    """+1 for every unit with an odd number of rows, -1 for every other that is there: one unit changes it by 1."""
    found = 0
    for name in (PEOPLE, HOMES)[place]:
        rows = sum(count for row, count in zip(ROWS, database, strict=True) if row[place] == name)
        found += 0 if rows == 0 else (1 if rows % 2 else -1)
    return found


def neighbours(unit: str) -> list[tuple[Database, Database]]:
    if unit == "record":
        less = [(d, (*d[:i], d[i] - 1, *d[i + 1 :])) for d in DATABASES for i in range(len(ROWS)) if d[i]]
        return less
    place = ("person", "home").index(unit)
    return [(d, restricted(d, place, name)) for d in DATABASES for name in (PEOPLE, HOMES)[place]]


@pytest.mark.parametrize(
    ("before", "after", "most"),
    [
        ("record", "person", 4),
        ("person", "record", None),
        ("person", "home", 2),
        ("home", "person", 2),
        ("person", "person", None),
    ],
)
def test_no_change_of_unit_takes_more_steps_than_it_counts(before: str, after: str, most: int | None) -> None:
    """The count whose sensitivity is one unit of `before`, over all pairs that differ by one unit of `after`."""

    def value(database: Database) -> int:
        return sum(database) if before == "record" else parity(database, ("person", "home").index(before))

    own = max(abs(value(a) - value(b)) for a, b in neighbours(before))
    changes = max(abs(value(a) - value(b)) for a, b in neighbours(after))
    change = UnitChange(1, Protected(before), Protected(after), most)
    assert own == 1 and change.steps == changes, "neither too few steps nor more than needed"


def test_what_replaced_units_say_of_units_that_come_and_go() -> None:
    """Nothing: their number may be told as it is. The other way round two steps suffice."""
    assert UnitChange(1, Protected("p", "replace"), Protected("p")).steps is None
    assert UnitChange(1, Protected("record", "replace"), Protected("p"), 8).steps is None
    assert UnitChange(1, Protected("p"), Protected("p", "replace")).steps == 2
    assert UnitChange(1, Protected("record"), Protected("p", "replace"), 8).steps == 16
    assert UnitChange(1, Protected("p"), Protected("record", "replace")).steps == 4
    assert UnitChange(1, Protected("record"), Protected("p")).steps is None and UnitChange(1, None, Protected("p")).steps is None
