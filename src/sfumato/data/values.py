"""One text form per value, so that data, hierarchies and files agree whatever type carried the value.

Whole numbers print without a point (`39`, also when a float column carries them), dates in ISO form, booleans as
`true` and `false`; text stays as it is, leading zeros included; a missing value is None and never the text "None"
or "nan".
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def text_of(value: Any) -> str | None:
    """The text form of one value."""
    if value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time(0)
        return value.date().isoformat() if midnight and value.tzinfo is None else value.isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def texts(array: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """The text forms of an array of distinct values."""
    return [text_of(value) for value in array.to_pylist()]


def as_numbers(values: Sequence[str | None]) -> list[float] | None:
    """The values as numbers, missing ones as NaN, or None when some value is not a number."""
    numbers = []
    for value in values:
        if value is None:
            numbers.append(math.nan)
            continue
        try:
            number = float(value)
        except ValueError:
            return None
        if not math.isfinite(number):
            return None
        numbers.append(number)
    return numbers
