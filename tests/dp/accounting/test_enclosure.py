"""Enclosures hold the true value, and what leaves them is on the named side."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError
from sfumato.dp.accounting.enclosure import PI, Enclosure, shortened
from sfumato.dp.accounting.normal import density, upper_tail
from tests.dp.accounting.precise import real, tail

numbers = st.fractions(min_value=-50, max_value=50, max_denominator=10**6)
positive = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**6)


def holds(enclosure: Enclosure, value: mpmath.mpf) -> bool:
    return mpmath.mpf(str(enclosure.low)) <= value <= mpmath.mpf(str(enclosure.high))


def width(enclosure: Enclosure) -> float:
    return float((enclosure.high - enclosure.low) / abs(enclosure.high))


@given(numbers, numbers)
def test_sums_differences_and_products_hold_the_true_value(one: Fraction, other: Fraction) -> None:
    a, b = Enclosure.of(one) / 3, Enclosure.of(other) / 7
    x, y = one / 3, other / 7
    for found, truth in ((a + b, x + y), (a - b, x - y), (a * b, x * y), (1 - a, 1 - x), (-a, -x)):
        assert Fraction(found.low) <= truth <= Fraction(found.high)


@given(numbers, positive)
def test_quotients_hold_the_true_value(one: Fraction, other: Fraction) -> None:
    for found, truth in ((Enclosure.of(one) / other, one / other), (Enclosure.of(one) / -other, -one / other)):
        assert Fraction(found.low) <= truth <= Fraction(found.high)


@given(numbers, positive)
def test_exponentials_logarithms_and_roots_hold_the_true_value(any_number: Fraction, above_zero: Fraction) -> None:
    assert holds(Enclosure.of(any_number).exp(), mpmath.exp(real(any_number)))
    assert holds(Enclosure.of(above_zero).ln(), mpmath.log(real(above_zero)))
    assert holds(Enclosure.of(above_zero).sqrt(), mpmath.sqrt(real(above_zero)))
    assert holds(Enclosure.of(above_zero).power(any_number), mpmath.power(real(above_zero), real(any_number)))


@given(positive)
def test_results_are_short_and_on_the_named_side(value: Fraction) -> None:
    third = value / 3
    low, high = shortened(third, upward=False), shortened(third, upward=True)
    assert low <= third <= high
    assert high - low <= third / 10**11
    assert max(low.denominator.bit_length(), high.denominator.bit_length()) <= 256


def test_tiny_results_are_rounded_up_to_something_and_down_to_nothing() -> None:
    tiny = Enclosure.of(-1000).exp()
    assert tiny.up() == Fraction(1, 10**60) and tiny.down() == 0


def test_powers_of_e_that_underflow_are_still_enclosed() -> None:
    found = Enclosure.of(-(10**9)).exp()
    assert found.low == 0 < found.high


def test_the_exponential_of_zero_is_exactly_one() -> None:
    assert Enclosure.of(0).exp().up() == 1 == Enclosure.of(0).exp().down()


@pytest.mark.parametrize(
    "compute", [lambda: Enclosure.of(10**7).exp(), lambda: Enclosure.of(0).ln(), lambda: Enclosure.of(1) / 0]
)
def test_what_cannot_be_computed_is_refused(compute: object) -> None:
    with pytest.raises(ParameterError, match="too extreme"):
        compute()  # type: ignore[operator]


def test_pi_is_enclosed() -> None:
    assert holds(PI, mpmath.pi)


@given(st.fractions(min_value=-40, max_value=60, max_denominator=10**4))
def test_the_normal_tail_holds_the_true_value_to_twenty_digits(x: Fraction) -> None:
    found = upper_tail(Enclosure.of(x))
    assert holds(found, tail(real(x)))
    assert width(found) < 1e-20
    assert holds(density(Enclosure.of(x)), mpmath.npdf(real(x)))


@pytest.mark.parametrize("x", ["0", "2.999999999", "3", "3.0000001", "-3", "1e-30"])
def test_the_normal_tail_is_enclosed_where_the_method_changes(x: str) -> None:
    assert holds(upper_tail(Enclosure.of(Fraction(x))), tail(real(x)))
