"""What values a plan speaks of: kinds of columns, and the range in which numbers are computed with."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Literal as OneOf
from typing import TypeAlias

from sfumato.core.errors import Unsupported

#: What a column holds, whatever engine carries it. `instant` is a moment in time, `datetime` a reading of
#: a clock, `wide` an integer of up to 38 digits (a sum of integers).
Kind: TypeAlias = OneOf["string", "integer", "number", "boolean", "date", "datetime", "instant", "time", "binary", "wide"]
Value: TypeAlias = None | bool | int | float | str | datetime.date | datetime.datetime

NUMERIC: frozenset[Kind] = frozenset({"integer", "number", "wide"})

#: The least and the largest whole number of a kind. A constant beyond them would fail in some engines, and only where a row
#: reaches it: whether a question fails would tell about the rows.
WHOLE: Mapping[Kind, tuple[int, int]] = {"integer": (-(2**63), 2**63 - 1), "wide": (-(10**38) + 1, 10**38 - 1)}

#: Numbers are moved into ±LARGEST before they are added, multiplied or divided, infinities too; a factor or dividend
#: closer to zero than SMALLEST counts as zero. No result is then infinite, and none is lost to underflow.
LARGEST = 1e150
SMALLEST = 1e-150


def kind_of_value(value: Value) -> Kind:
    """The kind of a constant."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        kind: Kind = "integer" if _holds("integer", value) else "wide"
        if not _holds(kind, value):
            raise Unsupported("a whole number as a constant has at most 38 digits")
        return kind
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Unsupported("a constant must be a finite number")
        return "number"
    if isinstance(value, str):
        if "\x00" in value:
            raise Unsupported("a text constant may not contain the character NUL")
        return "string"
    if isinstance(value, datetime.datetime):
        return "datetime" if value.tzinfo is None else "instant"
    if isinstance(value, datetime.date):
        return "date"
    raise Unsupported("a missing constant needs a kind")


def _holds(kind: Kind, value: int) -> bool:
    least, largest = WHOLE[kind]
    return least <= value <= largest


def expect_whole(kind: Kind, values: tuple[int, ...], where: str) -> None:
    """Refuse constants that a kind of whole numbers does not have."""
    if not all(_holds(kind, value) for value in values):
        raise Unsupported(f"{where} needs constants of at most {'64 bits' if kind == 'integer' else '38 digits'} here")


def expect(kind: Kind, allowed: frozenset[Kind] | set[Kind], where: str) -> None:
    """Refuse an operand of the wrong kind."""
    if kind not in allowed:
        raise Unsupported(f"{where} does not apply to a {kind}; it needs: {', '.join(sorted(allowed))}")
