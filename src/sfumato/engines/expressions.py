"""Scalar expressions of a plan, as frozen values with a kind each.

Every function is total: it has a value for each input (missing in, missing out), so that whether a query
fails never depends on a record.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from sfumato.core.errors import Unsupported

#: What a column holds, whatever engine carries it. `instant` is a moment in time, `datetime` a reading of
#: a clock, `wide` an integer of up to 38 digits (a sum of integers).
Kind: TypeAlias = OneOf["string", "integer", "number", "boolean", "date", "datetime", "instant", "time", "binary", "wide"]
Value: TypeAlias = None | bool | int | float | str | datetime.date | datetime.datetime

NUMERIC: frozenset[Kind] = frozenset({"integer", "number", "wide"})


@dataclass(frozen=True)
class Column:
    """A column of the rows at hand."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A constant. A missing constant states its kind."""

    value: Value
    kind: Kind | None = None


@dataclass(frozen=True)
class Compare:
    """`left` against `right`; `is` compares missing values as values and is never missing itself."""

    operator: OneOf["=", "<>", "<", "<=", ">", ">=", "is"]
    left: Expression
    right: Expression


@dataclass(frozen=True)
class And:
    """All terms hold; without terms it is true."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True)
class Or:
    """Some term holds; without terms it is false."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True)
class Not:
    """The term does not hold."""

    term: Expression


@dataclass(frozen=True)
class IsMissing:
    """The term has no value."""

    term: Expression


@dataclass(frozen=True)
class OneOfValues:
    """The term equals one of some constants."""

    term: Expression
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Arithmetic:
    """Sum, difference or product of two numbers; integers widen, so that 64-bit inputs cannot overflow."""

    operator: OneOf["+", "-", "*"]
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Choose:
    """The value of the first branch whose condition holds, else `otherwise`."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression


@dataclass(frozen=True)
class Cast:
    """The term as another kind. Only casts without failing inputs are allowed, see `CASTS`."""

    term: Expression
    kind: Kind


@dataclass(frozen=True)
class Clamp:
    """The term moved into [low, high]; a missing value stays missing."""

    term: Expression
    low: int | float
    high: int | float


@dataclass(frozen=True)
class FixedPoint:
    """floor(term · scale + ½) as an integer, after clamping the term to ±`limit` so that it fits 64 bits.

    The tie rule is written out because engines round halves differently.
    """

    term: Expression
    scale: int
    limit: float


@dataclass(frozen=True)
class Scrambled:
    """A hexadecimal digest of a key and the term's text: a fixed, data-independent order in which to sample
    rows."""

    term: Expression
    key: str


Expression: TypeAlias = (
    Column
    | Literal
    | Compare
    | And
    | Or
    | Not
    | IsMissing
    | OneOfValues
    | Arithmetic
    | Choose
    | Cast
    | Clamp
    | FixedPoint
    | Scrambled
)

#: Casts that are defined for every value and read the same on all engines.
CASTS: Mapping[Kind, frozenset[Kind]] = {
    "integer": frozenset({"integer", "number", "string", "wide"}),
    "wide": frozenset({"wide", "number", "string"}),
    "number": frozenset({"number"}),
    "boolean": frozenset({"boolean", "string", "integer"}),
    "string": frozenset({"string"}),
    "date": frozenset({"date", "datetime", "string"}),
    "datetime": frozenset({"datetime", "date"}),
    "instant": frozenset({"instant"}),
    "time": frozenset({"time"}),
    "binary": frozenset({"binary"}),
}


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside this one."""
    match expression:
        case Compare(_, left, right) | Arithmetic(_, left, right):
            return (left, right)
        case And(terms) | Or(terms):
            return terms
        case Choose(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case Column() | Literal():
            return ()
        case _:
            return (expression.term,)


def columns_of(expression: Expression) -> Iterator[str]:
    """The names of all columns that are read."""
    if isinstance(expression, Column):
        yield expression.name
    for child in children(expression):
        yield from columns_of(child)


def kind_of(expression: Expression, columns: Mapping[str, Kind]) -> Kind:
    """The kind of an expression over these columns; a contradiction is refused."""
    match expression:
        case Column(name):
            return columns[name]
        case Literal(value, kind):
            return kind or kind_of_value(value)
        case Compare(operator, left, right):
            _comparable(kind_of(left, columns), kind_of(right, columns), operator)
            return "boolean"
        case OneOfValues(term, values):
            for value in values:
                _comparable(kind_of(term, columns), kind_of_value(value), "in")
            return "boolean"
        case And(terms) | Or(terms):
            for term in terms:
                _expect(kind_of(term, columns), {"boolean"}, type(expression).__name__)
            return "boolean"
        case Not(term):
            _expect(kind_of(term, columns), {"boolean"}, "Not")
            return "boolean"
        case IsMissing(term):
            kind_of(term, columns)
            return "boolean"
        case Arithmetic(operator, left, right):
            kinds = {kind_of(left, columns), kind_of(right, columns)}
            allowed: frozenset[Kind] = NUMERIC - {"wide"} if operator == "*" else NUMERIC
            for kind in kinds:
                _expect(kind, allowed, operator)
            return "number" if "number" in kinds else "wide"
        case Choose(branches, otherwise):
            return _choose(branches, otherwise, columns)
        case Cast(term, kind):
            source = kind_of(term, columns)
            if kind not in CASTS[source]:
                raise Unsupported(f"a {source} cannot be read as {kind} without values for which that fails")
            return kind
        case Clamp(term, low, high):
            source = kind_of(term, columns)
            _expect(source, NUMERIC, "Clamp")
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise Unsupported("Clamp needs finite bounds, the lower one first")
            if source != "number" and not (isinstance(low, int) and isinstance(high, int)):
                raise Unsupported("Clamp needs whole bounds for whole numbers")
            return source
        case FixedPoint(term, scale, limit):
            _expect(kind_of(term, columns), NUMERIC, "FixedPoint")
            if scale < 1 or not 0 < limit * scale < 2**62:
                raise Unsupported("FixedPoint needs a scale of at least 1 and limit · scale below 2^62")
            return "integer"
        case Scrambled(term, _):
            _expect(kind_of(term, columns), {"string", "integer", "boolean", "date"}, "Scrambled")
            return "string"


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


def _choose(branches: tuple[tuple[Expression, Expression], ...], otherwise: Expression, columns: Mapping[str, Kind]) -> Kind:
    kinds = {kind_of(otherwise, columns)}
    for condition, value in branches:
        _expect(kind_of(condition, columns), {"boolean"}, "Choose")
        kinds.add(kind_of(value, columns))
    if len(kinds) == 1:
        return kinds.pop()
    if kinds <= NUMERIC:
        return "number" if "number" in kinds else "wide"
    raise Unsupported(f"the branches of Choose have different kinds: {', '.join(sorted(kinds))}")


def _comparable(left: Kind, right: Kind, operator: str) -> None:
    if left != right and not {left, right} <= NUMERIC:
        raise Unsupported(f"a {left} cannot be compared with a {right} ({operator}); cast one of them")


def _expect(kind: Kind, allowed: frozenset[Kind] | set[Kind], where: str) -> None:
    if kind not in allowed:
        raise Unsupported(f"{where} does not apply to a {kind}; it needs: {', '.join(sorted(allowed))}")
