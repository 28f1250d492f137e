"""Numbers in sentences: an interval holds the measured one, a percentage reaches 0 and 100 only when exact."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.texts import percent, rounded_up, within
from sfumato.dp.sql.margins.expected_error import ColumnNote

_NUMBERS = st.one_of(st.integers(-(10**12), 10**12), st.floats(-1e18, 1e18, allow_nan=False))
_MARGINS = st.floats(1e-12, 1e15)


@given(_NUMBERS, _MARGINS)
def test_a_printed_interval_holds_the_whole_measured_one(value: float, margin: float) -> None:
    number, around = (Decimal(part.replace(",", "")) for part in within(value, margin).split(" ± "))
    low, high = Decimal(str(value)) - Decimal(str(margin)), Decimal(str(value)) + Decimal(str(margin))
    assert number - around <= low and high <= number + around
    assert around <= Decimal(str(margin)) * Decimal("1.3"), "and is hardly longer"
    assert "e" not in within(value, margin).lower()


def test_a_large_sum_keeps_the_digits_that_its_margin_speaks_of() -> None:
    assert within(1_649_994_428.9, 374.2) == "1,649,994,429 ± 380"
    assert within(412.37, 3.24) == "412.4 ± 3.3"
    assert within(0.1 + 0.2, 0.0) == "0.30000000000000004 ± 0"
    assert within(1.5, float("inf")) == "1.5 ± ?"


@given(st.floats(1e-12, 1e15), st.integers(1, 6))
def test_a_margin_is_rounded_up(number: float, digits: int) -> None:
    shown = Decimal(rounded_up(number, digits).replace(",", ""))
    assert Decimal(str(number)) <= shown <= Decimal(str(number)) * (1 + Decimal(10) ** (1 - digits))


@given(st.floats(0, 1))
def test_a_percentage_reaches_its_ends_only_when_exact(rate: float) -> None:
    assert (percent(rate) in ("0 %", "0.0 %", "0.00 %")) == (rate == 0)
    assert (percent(rate) in ("100 %", "100.0 %", "100.00 %")) == (rate == 1)


def test_a_note_names_the_confidence_as_asked_and_no_smaller_margin() -> None:
    assert ColumnNote("n", "count", 12_344.1).sentence(0.999) == "n: within ±12,350 at 99.9%"
