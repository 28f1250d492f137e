"""Amounts of privacy loss are exact, never negative, and convert upward or not at all."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import BudgetRefused, ParameterError
from sfumato.ledger import LossAmount

fractions = st.fractions(min_value=0, max_value=20, max_denominator=10**6)
amounts = st.one_of(
    st.builds(LossAmount.pure, fractions),
    st.builds(LossAmount.approx, fractions, st.fractions(min_value=0, max_value=1, max_denominator=10**9)),
    st.builds(LossAmount.zcdp, fractions),
)


def test_a_float_counts_as_the_decimal_it_prints_as() -> None:
    assert LossAmount.pure(0.1).epsilon == Fraction(1, 10)
    assert LossAmount.approx(0.5, 1e-6) == LossAmount.approx("1/2", "0.000001")


def test_ten_tenths_are_one() -> None:
    total = LossAmount.nothing("pure")
    for _ in range(10):
        total = total.plus(LossAmount.pure(0.1))
    assert total == LossAmount.pure(1) and total.within(LossAmount.pure(1))


@given(amounts)
def test_an_amount_survives_being_stored(amount: LossAmount) -> None:
    stored = amount.to_mapping()
    assert LossAmount.from_mapping(stored) == amount
    assert all("/" in text for part, text in stored.items() if part != "kind")


@given(fractions)
def test_pure_converts_exactly_upward(epsilon: Fraction) -> None:
    pure = LossAmount.pure(epsilon)
    assert pure.converted("approx") == LossAmount.approx(epsilon, 0)
    assert pure.converted("zcdp").rho == epsilon * epsilon / 2


@pytest.mark.parametrize(
    ("amount", "kind"),
    [
        (LossAmount.approx(1, "1e-6"), "pure"),
        (LossAmount.approx(1, 0), "pure"),
        (LossAmount.approx(1, 0), "zcdp"),
        (LossAmount.zcdp(1), "pure"),
        (LossAmount.zcdp(1), "approx"),
    ],
)
def test_other_conversions_are_refused(amount: LossAmount, kind: str) -> None:
    with pytest.raises(BudgetRefused, match="no exact counterpart"):
        amount.converted(kind)  # type: ignore[arg-type]


@given(amounts, amounts)
def test_adding_is_at_least_each_part(one: LossAmount, other: LossAmount) -> None:
    if one.kind == other.kind:
        total = one.plus(other)
        assert one.within(total) and other.within(total) and total == other.plus(one)
        assert one.minus(total) == LossAmount.nothing(one.kind)


def test_one_part_too_many_exceeds_a_limit() -> None:
    assert not LossAmount.approx(1, "1e-5").within(LossAmount.approx(2, "1e-6"))
    assert not LossAmount.approx(3, "1e-7").within(LossAmount.approx(2, "1e-6"))


@pytest.mark.parametrize(
    "wrong",
    [-1, "-0.1", float("nan"), float("inf"), "abc", "1e999999999", "1/0", True, None, b"1", "9" * 200],
)
def test_what_is_no_amount_is_refused(wrong: object) -> None:
    with pytest.raises(ParameterError):
        LossAmount.pure(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"kind": "pure"},
        {"kind": "pure", "epsilon": "0.1"},
        {"kind": "pure", "epsilon": "-1/2"},
        {"kind": "pure", "epsilon": "1/0"},
        {"kind": "pure", "epsilon": 1},
        {"kind": "pure", "epsilon": "1/2", "delta": "0/1"},
        {"kind": "renyi", "epsilon": "1/2"},
    ],
)
def test_a_stored_amount_is_read_strictly(stored: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        LossAmount.from_mapping(stored)


def test_delta_beyond_one_is_refused_and_capped_in_sums() -> None:
    with pytest.raises(ParameterError, match="delta"):
        LossAmount.approx(1, "1.5")
    assert LossAmount.approx(1, "0.7").plus(LossAmount.approx(1, "0.7")).delta == 1


def test_denominators_that_would_grow_without_end_are_refused() -> None:
    total = LossAmount.nothing("pure")
    primes = [number for number in range(2**11, 2**15) if all(number % d for d in range(2, 182))]
    with pytest.raises(BudgetRefused, match="decimal"):
        for prime in primes:
            total = total.plus(LossAmount.pure(Fraction(1, prime)))


def test_text_is_a_decimal_where_it_ends() -> None:
    assert str(LossAmount.approx("0.25", "1e-9")) == "ε = 0.25, δ = 0.000000001"
    assert str(LossAmount.pure("1/3")) == "ε = 1/3"
