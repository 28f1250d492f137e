"""What values a plan speaks of: kinds of columns, and the range in which numbers are computed with."""

from __future__ import annotations

import datetime
import math
from typing import Literal as OneOf
from typing import TypeAlias

from sfumato.core.errors import Unsupported

#: What a column holds, whatever engine carries it. `instant` is a moment in time, `datetime` a reading of
#: a clock, `wide` an integer of up to 38 digits (a sum of integers).
Kind: TypeAlias = OneOf["string", "integer", "number", "boolean", "date", "datetime", "instant", "time", "binary", "wide"]
Value: TypeAlias = None | bool | int | float | str | datetime.date | datetime.datetime

NUMERIC: frozenset[Kind] = frozenset({"integer", "number", "wide"})

#: Numbers are moved into ±LARGEST before they are added, multiplied or divided, infinities too; a factor or dividend
#: closer to zero than SMALLEST counts as zero. No result is then infinite, and none is lost to underflow.
LARGEST = 1e150
SMALLEST = 1e-150


def kind_of_value(value: Value) -> Kind:
    """The kind of a constant."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if -(2**63) <= value < 2**63 else "wide"
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


def expect(kind: Kind, allowed: frozenset[Kind] | set[Kind], where: str) -> None:
    """Refuse an operand of the wrong kind."""
    if kind not in allowed:
        raise Unsupported(f"{where} does not apply to a {kind}; it needs: {', '.join(sorted(allowed))}")
