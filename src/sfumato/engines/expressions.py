"""Scalar expressions of a plan, as frozen values with a kind each, and what kinds of values there are.

Every function is total: it has a value for each input (missing in, missing out), so that whether a query fails never
depends on a record. Where an engine would fail on an extreme number (PostgreSQL reports overflow and underflow),
operands are moved into a range in which none does, on every engine alike: see `LARGEST`.
"""

from __future__ import annotations

import datetime
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias
from typing import Literal as OneOf

from sfumato.core.errors import Unsupported
from sfumato.core.texts import with_article

if TYPE_CHECKING:
    from sqlglot import exp

Dialect: TypeAlias = OneOf["duckdb", "postgres", "spark"]

#: What a column holds, whatever engine carries it. `instant` is a moment in time, `datetime` a reading of
#: a clock, `wide` an integer of up to 38 digits (a sum of integers).
Kind: TypeAlias = OneOf["string", "integer", "number", "boolean", "date", "datetime", "instant", "time", "binary", "wide"]
Value: TypeAlias = None | bool | int | float | str | datetime.date | datetime.datetime

NUMERIC: frozenset[Kind] = frozenset({"integer", "number", "wide"})

#: The least and the largest whole number of a kind. A constant beyond them would fail in some engines, and only where a row
#: reaches it: whether a question fails would reveal something about the rows.
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
        raise Unsupported(f"{where} does not apply to {with_article(kind)}; it needs: {', '.join(sorted(allowed))}")


@dataclass(frozen=True)
class Reference:
    """A column of the rows."""

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
    """Sum, difference, product or quotient of two numbers.

    Whole numbers widen, and what could exceed 38 digits is refused. A quotient is a floating-point number, missing where the
    divisor is zero, or closer to it than SMALLEST.
    """

    operator: OneOf["+", "-", "*", "/"]
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Joined:
    """Several texts one after the other, missing where one of them is."""

    terms: tuple[Expression, ...]


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
class Scrambled:
    """A hexadecimal digest of a key, the term's text and further whole numbers: an order in which to sample rows that
    has nothing to do with their values.

    Text, whole numbers, truth values and dates have the same digest on all engines; other kinds are scrambled in the
    form in which the engine writes them.
    """

    term: Expression
    key: str
    numbers: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Function(ABC):
    """A function of one term and constants, missing where the term is, which says itself what it takes and how each engine
    writes it.

    All of them are in `engines.functions`; what is here are columns and constants, logic, comparisons, arithmetic, choices and
    kinds. `narrows` says that no whole number becomes larger by it.
    """

    term: Expression
    narrows: ClassVar[bool] = False

    @abstractmethod
    def kind(self, kind: Kind) -> Kind:
        """The kind of the value over a term of this kind; a constant or kind that does not fit is refused."""

    @abstractmethod
    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        """The function over a term of this kind, written so that every engine computes the same value and none fails."""

    @property
    def largest(self) -> int:
        """What the value can reach in size, where it is a whole number."""
        return 2**63

    @property
    def ends(self) -> tuple[float, float] | None:
        """Between which numbers the value lies, whatever the term is; None where the function does not say so."""
        return None

    @property
    def copies(self) -> int:
        """How often its SQL writes the term."""
        return 1


@dataclass(frozen=True)
class RowFunction(ABC):
    """A function of several terms, computed where some are missing too; with `once`, once per row however often it is used."""

    terms: tuple[Expression, ...]
    once: ClassVar[bool] = False

    @abstractmethod
    def kind(self, kinds: tuple[Kind, ...]) -> Kind:
        """The kind of the value over terms of these kinds; what does not fit is refused."""

    @abstractmethod
    def sql(self, terms: tuple[exp.Expression, ...], kinds: tuple[Kind, ...], dialect: Dialect) -> exp.Expression:
        """The function over terms of these kinds, written so that every engine computes the same value and none fails."""


def within(term: Expression, limit: float) -> bool:
    """True for what is known to lie within ±limit, whatever the rows hold."""
    return isinstance(term, Function) and term.ends is not None and max(map(abs, term.ends)) <= limit


Expression: TypeAlias = (
    Reference
    | Literal
    | Compare
    | And
    | Or
    | Not
    | IsMissing
    | OneOfValues
    | Arithmetic
    | Joined
    | Choose
    | Cast
    | Scrambled
    | Function
    | RowFunction
)

#: Casts that are defined for every value and read the same on all engines; a `wide` number beyond 64 bits becomes the
#: nearest `integer`.
CASTS: Mapping[Kind, frozenset[Kind]] = {
    "integer": frozenset({"integer", "number", "string", "wide"}),
    "wide": frozenset({"wide", "integer", "number", "string"}),
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
        case And(terms) | Or(terms) | Joined(terms) | RowFunction(terms):
            return terms
        case Choose(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case Reference() | Literal():
            return ()
        case Scrambled(term, _, numbers):
            return (term, *numbers)
        case _:
            return (expression.term,)


def columns_of(expression: Expression) -> Iterator[str]:
    """The names of all columns that are read."""
    if isinstance(expression, Reference):
        yield expression.name
    for child in children(expression):
        yield from columns_of(child)


def kind_of(expression: Expression, columns: Mapping[str, Kind]) -> Kind:
    """The kind of an expression over these columns; a contradiction is refused."""
    match expression:
        case Reference(name):
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
                expect(kind_of(term, columns), {"boolean"}, type(expression).__name__)
            return "boolean"
        case Not(term):
            expect(kind_of(term, columns), {"boolean"}, "Not")
            return "boolean"
        case IsMissing(term):
            kind_of(term, columns)
            return "boolean"
        case Arithmetic(operator, left, right):
            kinds = {kind_of(left, columns), kind_of(right, columns)}
            allowed: frozenset[Kind] = NUMERIC - {"wide"} if operator == "*" else NUMERIC
            for kind in kinds:
                expect(kind, allowed, operator)
            if operator == "/":
                return "number"
            if "number" not in kinds and magnitude(expression, columns) >= 10**38:
                raise Unsupported(f"whole numbers joined by {operator} could exceed 38 digits; clamp them or make them wide last")
            return "number" if "number" in kinds else "wide"
        case Joined(terms):
            for term in terms:
                expect(kind_of(term, columns), {"string"}, "Joined")
            return "string"
        case Choose(branches, otherwise):
            return _choose(branches, otherwise, columns)
        case Cast(term, kind):
            source = kind_of(term, columns)
            if kind not in CASTS[source]:
                raise Unsupported(f"a {source} cannot be read as {kind} without values for which that fails")
            return kind
        case Scrambled(term, key, numbers):
            kind_of(term, columns)
            kind_of_value(key)
            for number in numbers:
                expect(kind_of(number, columns), {"integer"}, "Scrambled")
            return "string"
        case RowFunction(terms):
            return expression.kind(tuple(kind_of(term, columns) for term in terms))
        case _:
            return expression.kind(kind_of(expression.term, columns))


def magnitude(expression: Expression, columns: Mapping[str, Kind]) -> int:
    """What a whole number can reach in size, as far as its expression tells; a wide column is taken for a sum."""
    match expression:
        case Literal(value=int(value)):
            return abs(value)
        case Function(term):
            return min(magnitude(term, columns), expression.largest) if expression.narrows else expression.largest
        case Arithmetic("*", left, right):
            return magnitude(left, columns) * magnitude(right, columns)
        case Arithmetic(_, left, right):
            return magnitude(left, columns) + magnitude(right, columns)
        case Choose(branches, otherwise):
            return max(magnitude(value, columns) for value in (*(value for _, value in branches), otherwise))
        case Cast(term, "wide"):
            return magnitude(term, columns)
        case _:
            return 2**94 if kind_of(expression, columns) == "wide" else 2**63


def _choose(branches: tuple[tuple[Expression, Expression], ...], otherwise: Expression, columns: Mapping[str, Kind]) -> Kind:
    kinds = {kind_of(otherwise, columns)}
    for condition, value in branches:
        expect(kind_of(condition, columns), {"boolean"}, "Choose")
        kinds.add(kind_of(value, columns))
    if len(kinds) == 1:
        return kinds.pop()
    if kinds <= NUMERIC:
        return "number" if "number" in kinds else "wide"
    raise Unsupported(f"the branches of Choose have different kinds: {', '.join(sorted(kinds))}")


def _comparable(left: Kind, right: Kind, operator: str) -> None:
    if left != right and not {left, right} <= NUMERIC:
        raise Unsupported(f"a {left} cannot be compared with a {right} ({operator}); cast one of them")
