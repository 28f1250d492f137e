"""Codes that mean "no value", as numbers: among numbers a code is compared by its value, since 999 and 999.0 are one number.

Texts of a table that is read with other marks have codes with these marks: under `decimal = ","` -9,5 is a number, and 9.5 none.
A code that is no number (`NA`) is compared by its text, like every code in a column of text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.data.texts.decimals import plain_text
from sfumato.data.texts.reading import Reading

_NUMBER = re.compile(r"[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,3})?")


def whole_codes(codes: Iterable[str]) -> list[int]:
    """The codes that a whole number of 64 bits can equal.

    >>> whole_codes(["NA", "-9", "-9.0", "+7", "1.5"])
    [-9, 7]
    """
    inside = [code for code in _decimals(codes) if -(2**63) <= code < 2**63]
    return [int(code) for code in inside if code == int(code)]


def float_codes(codes: Iterable[str]) -> list[float]:
    """The codes that a floating-point number can equal; zero has no sign.

    >>> float_codes(["NA", "-9", "1.50"])
    [-9.0, 1.5]
    """
    return [number + 0.0 for code in _decimals(codes) if math.isfinite(number := float(code))]


def plain_codes(codes: Iterable[str]) -> list[str]:
    """The codes that are numbers, each as the one plain text of its value.

    >>> plain_codes(["NA", "-9.0", "1.50"])
    ['-9', '1.5']
    """
    return [plain_text(code) for code in _decimals(codes)]


def codes_as_written(codes: Iterable[str], reading: Reading) -> list[str]:
    """The codes of a column of text that are numbers as its texts are read, each with a decimal point and without marks between
    thousands.

    >>> codes_as_written(["NA", "-9,50", "9.999", "1.5"], Reading(decimal=",", thousands="."))
    ['-9.50', '9999']
    """
    return list(codes) if reading.plain_numbers else [number for code in codes if (number := reading.number(code)) is not None]


def without_number_codes(array: pa.Array, codes: Iterable[str]) -> pa.Array:
    """Whole and floating-point numbers that equal a code become missing; any other array stays as it is."""
    if pa.types.is_integer(array.type):
        numbers, listed = array.cast(pa.int64()), pa.array(whole_codes(codes), pa.int64())
    elif pa.types.is_floating(array.type):
        numbers, listed = pc.add(array.cast(pa.float64()), 0.0), pa.array(float_codes(codes), pa.float64())
    else:
        return array
    if not len(listed):
        return array
    return pc.if_else(pc.is_in(numbers, listed), pa.scalar(None, array.type), array)


def _decimals(codes: Iterable[str]) -> list[Decimal]:
    return list(dict.fromkeys(Decimal(text) for code in codes if _NUMBER.fullmatch(text := code.strip())))
