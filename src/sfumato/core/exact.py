"""Exact numbers from what people write: 0.1 is one tenth, not the nearest binary fraction."""

from __future__ import annotations

import decimal
import math
import re
from fractions import Fraction
from typing import TypeAlias

from sfumato.core.errors import ParameterError
from sfumato.core.texts import python_number

Number: TypeAlias = int | str | float | Fraction

#: One amount may be this fine or large, in bits.
AMOUNT_BITS = 256


def exact(written: Number, name: str) -> Fraction:
    """The number as written. A float counts as the decimal it prints as: 0.1 is exactly 1/10."""
    value = written if type(written) in (int, float, str, Fraction) else python_number(written)
    value = str(value) if isinstance(value, decimal.Decimal) else value
    if isinstance(value, bool) or not isinstance(value, (int, str, float, Fraction)):
        raise ParameterError(f"{name} must be a number, a decimal in quotes or a fraction such as 1/3")
    # Bounded before parsing: "1e999999999" would otherwise become a number that fills the memory.
    exponent = re.search(r"[eE]([+-]?[0-9_]+)\s*$", value) if isinstance(value, str) else None
    if isinstance(value, str) and (len(value) > 100 or (exponent and len(exponent[1]) > 4)):
        raise ParameterError(f"{name} has too many digits; use a decimal with fewer places")
    try:
        number = Fraction(repr(value) if isinstance(value, float) else value)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ParameterError(f"{name} must be a finite number") from None
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > AMOUNT_BITS:
        raise ParameterError(f"{name} has too many digits; use a decimal with fewer places")
    return number


def shown(value: Fraction) -> str:
    """Decimal where it ends within twelve places, else the fraction; a very long one is abbreviated."""
    if (value * 10**12).denominator == 1:
        whole, rest = divmod(abs((value * 10**12).numerator), 10**12)
        return ("-" if value < 0 else "") + f"{whole}.{rest:012d}".rstrip("0").rstrip(".")
    text = f"{value.numerator}/{value.denominator}"
    return text if len(text) <= 40 else f"about {float(value):.6g}"


def exactly_shown(value: Fraction) -> str:
    """The number as it can be typed, with all its digits: a decimal where it ends within twelve places, else the fraction."""
    text = shown(value)
    return text if not text.startswith("about") else f"{value.numerator}/{value.denominator}"


def rounded_to(digits: int, number: float, *, up: bool) -> float:
    """So many digits of a number that stands behind "at most" (`up`: never less than it) or "at least" (never more)."""
    if not math.isfinite(number):
        return number
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR)
    return float(context.create_decimal_from_float(number))
