"""Functions of one term and constants: dates, text, and numbers beside plain arithmetic.

Each is total, as every expression is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from typing import Literal as OneOf

from sfumato.core.errors import Unsupported
from sfumato.engines.kinds import LARGEST, NUMERIC, SMALLEST, Kind, expect, kind_of_value

if TYPE_CHECKING:
    from sfumato.engines.expressions import Expression

DatePartName: TypeAlias = OneOf["year", "quarter", "month", "day", "hour", "minute", "weekday", "day_of_year"]
DateStartName: TypeAlias = OneOf["year", "quarter", "month", "week", "day"]


@dataclass(frozen=True)
class Divide:
    """The term divided by a constant, as a floating-point number."""

    term: Expression
    divisor: int | float


@dataclass(frozen=True)
class Floor:
    """The largest whole number that is not above the term, within ±2^53."""

    term: Expression


@dataclass(frozen=True)
class Remainder:
    """What is left of a whole number after dividing by a positive constant, with the sign of the term."""

    term: Expression
    divisor: int


@dataclass(frozen=True)
class Bucket:
    """In which of `count` equal parts of [low, high] the term lies, from 0; what is outside goes to the nearest part.

    It is floor((term - low) · count / (high - low)) computed in floating point in exactly this order.
    """

    term: Expression
    low: int | float
    high: int | float
    count: int


@dataclass(frozen=True)
class DatePart:
    """A part of a date or datetime as a whole number; weekdays are 1 (Monday) to 7. Missing outside the years 1 to 9999."""

    term: Expression
    part: DatePartName


@dataclass(frozen=True)
class DateStart:
    """The first day of the year, quarter, month, week (Monday) or day in which a date or datetime lies.

    Missing outside the years 1 to 9999.
    """

    term: Expression
    part: DateStartName


@dataclass(frozen=True)
class Like:
    """The text matches a pattern in which % stands for any text and _ for any character; case matters."""

    term: Expression
    pattern: str


@dataclass(frozen=True)
class TextPart:
    """At most `length` characters of the text, from the one with number `start` (the first has number 1)."""

    term: Expression
    start: int
    length: int


@dataclass(frozen=True)
class Length:
    """The number of characters (code points) of the text."""

    term: Expression


@dataclass(frozen=True)
class Lowered:
    """The text with A to Z in lower case; other letters stay, because engines disagree about them."""

    term: Expression


@dataclass(frozen=True)
class Uppered:
    """The text with a to z in upper case; other letters stay, because engines disagree about them."""

    term: Expression


Function: TypeAlias = Divide | Floor | Remainder | Bucket | DatePart | DateStart | Like | TextPart | Length | Lowered | Uppered


def function_kind(function: Function, kind: Kind) -> Kind:
    """The kind of a function over a term of this kind; a constant or kind that does not fit is refused."""
    match function:
        case Divide(divisor=divisor):
            expect(kind, NUMERIC, "Divide")
            if not SMALLEST <= abs(divisor) <= LARGEST:
                raise Unsupported(f"Divide needs a divisor between {SMALLEST:g} and {LARGEST:g} in size")
            return "number"
        case Floor():
            expect(kind, NUMERIC, "Floor")
            return "integer"
        case Remainder(divisor=divisor):
            expect(kind, {"integer"}, "Remainder")
            if not 0 < divisor < 2**63:
                raise Unsupported("Remainder needs a positive divisor of at most 64 bits")
            return "integer"
        case Bucket(_, low, high, count):
            expect(kind, NUMERIC, "Bucket")
            if not (low < high and max(abs(low), abs(high)) <= 1e90 and float(high) - float(low) >= 1e-90):
                raise Unsupported("Bucket needs two bounds within ±1e90 that are at least 1e-90 apart, the lower one first")
            if not 1 <= count <= 2**31:
                raise Unsupported("Bucket needs 1 to 2^31 parts")
            return "integer"
        case DatePart(part=part):
            expect(kind, {"datetime"} if part in ("hour", "minute") else {"date", "datetime"}, part)
            return "integer"
        case DateStart(part=part):
            expect(kind, {"date", "datetime"}, part)
            return "date"
        case Like(pattern=pattern):
            expect(kind, {"string"}, "Like")
            kind_of_value(pattern)
            if "\\" in pattern:
                raise Unsupported("a pattern of Like may not contain a backslash: engines read it differently")
            return "boolean"
        case TextPart(_, start, length):
            expect(kind, {"string"}, "TextPart")
            if not (1 <= start < 2**31 and 0 <= length < 2**31):
                raise Unsupported("TextPart needs a start of at least 1 and a length of at least 0")
            return "string"
        case Length():
            expect(kind, {"string"}, "Length")
            return "integer"
        case Lowered() | Uppered():
            expect(kind, {"string"}, type(function).__name__)
            return "string"
