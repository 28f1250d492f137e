"""One text form per value, so that data, hierarchies and files agree whatever type carried the value.

Whole numbers print without a point (`39`, also when a float column carries them), dates in ISO form, booleans as
`true` and `false`; text stays as it is, leading zeros included; a missing value is None and never the text "None"
or "nan".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa

from sfumato.core.texts import text_of as text_of


def texts(array: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """The text forms of an array of distinct values."""
    return [text_of(value) for value in array.to_pylist()]


def valid_texts(array: pa.Array) -> pa.Array:
    """The same values, missing where a text is not valid UTF-8, which readers of columnar files let through."""
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type)):
        return array
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        cells = array.cast(pa.large_binary()).to_pylist()
        return pa.array([_decoded(cell) for cell in cells], array.type)
    return array


def _decoded(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


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
