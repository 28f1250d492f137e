"""Functions of a number and constants beside plain arithmetic: clamping, rounding, division, buckets.

Each is total, as every expression is, and has everything in one place: what it takes, what it gives, and its SQL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.engines.expressions import (
    LARGEST,
    NUMERIC,
    SMALLEST,
    Dialect,
    Expression,
    Function,
    Kind,
    expect,
    expect_whole,
    within,
)
from sfumato.engines.sql.values import as_kind, clamp, literal, moderate

#: Added to a number that is divided next: too small to change a part, large enough that nothing underflows.
_NUDGE = 1e-200
#: Whole numbers up to this size are floating-point numbers.
_FARTHEST = 2.0**53


@dataclass(frozen=True)
class Clamp(Function):
    """The term moved into [low, high]; a missing value stays missing."""

    low: int | float
    high: int | float
    narrows: ClassVar[bool] = True

    def kind(self, kind: Kind) -> Kind:
        expect(kind, NUMERIC, "Clamp")
        low, high = self.low, self.high
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise Unsupported("Clamp needs finite bounds, the lower one first")
        if kind != "number" and not (isinstance(low, int) and isinstance(high, int)):
            raise Unsupported("Clamp needs whole bounds for whole numbers")
        if kind != "number":
            expect_whole(kind, (int(low), int(high)), "Clamp")
        return kind

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        return clamp(term, literal(self.low, kind, dialect), literal(self.high, kind, dialect))

    @property
    def largest(self) -> int:
        return max(abs(int(self.low)), abs(int(self.high)))

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def copies(self) -> int:
        return 3


@dataclass(frozen=True)
class FixedPoint(Function):
    """floor(term · scale + ½) as an integer, after clamping the term to ±`limit` so that it fits 64 bits.

    The tie rule is written out because engines round halves differently.
    """

    scale: int
    limit: float

    def kind(self, kind: Kind) -> Kind:
        expect(kind, NUMERIC, "FixedPoint")
        if self.scale < 1 or not 0 < self.limit * self.scale < 2**62:
            raise Unsupported("FixedPoint needs a scale of at least 1 and limit · scale below 2^62")
        return "integer"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        number = as_kind(term, "number", dialect)
        if not within(self.term, self.limit):
            bounds = (literal(float(bound), "number", dialect) for bound in (-self.limit, self.limit))
            number = exp.Paren(this=clamp(number, *bounds))
        scaled = exp.Mul(this=number, expression=literal(float(self.scale), "number", dialect))
        half = literal(0.5, "number", dialect)
        return as_kind(exp.Floor(this=exp.Add(this=scaled, expression=half)), "integer", dialect)

    @property
    def largest(self) -> int:
        return int(self.scale * self.limit) + 1

    @property
    def ends(self) -> tuple[float, float]:
        return float(-self.largest), float(self.largest)

    @property
    def copies(self) -> int:
        return 1 if within(self.term, self.limit) else 3


@dataclass(frozen=True)
class Divide(Function):
    """The term divided by a constant, as a floating-point number."""

    divisor: int | float

    def kind(self, kind: Kind) -> Kind:
        expect(kind, NUMERIC, "Divide")
        if not SMALLEST <= abs(self.divisor) <= LARGEST:
            raise Unsupported(f"Divide needs a divisor between {SMALLEST:g} and {LARGEST:g} in size")
        return "number"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        # Both sides are floating point, so that no dialect takes it for a division of whole numbers.
        number = moderate(term, self.term, kind, dialect, near_zero=True)
        return exp.Div(this=number, expression=literal(float(self.divisor), "number", dialect), typed=True)

    @property
    def copies(self) -> int:
        return 2 if within(self.term, LARGEST) else 4


def _moved(value: exp.Expression, term: Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
    """A number within ±2^53."""
    if within(term, _FARTHEST):
        return value
    ends = (literal(end if kind == "number" else int(end), kind, dialect) for end in (-_FARTHEST, _FARTHEST))
    return clamp(value, *ends)


class _ToWhole(Function):
    """A whole number beside the term, within ±2^53; a subclass says which."""

    rounded: ClassVar[type[exp.Expression]]

    def kind(self, kind: Kind) -> Kind:
        expect(kind, NUMERIC, type(self).__name__)
        return "integer"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        moved = _moved(term, self.term, kind, dialect)
        return as_kind(self.rounded(this=moved) if kind == "number" else moved, "integer", dialect)

    @property
    def ends(self) -> tuple[float, float]:
        return -_FARTHEST, _FARTHEST

    @property
    def copies(self) -> int:
        return 1 if within(self.term, _FARTHEST) else 3


@dataclass(frozen=True)
class Floor(_ToWhole):
    """The largest whole number that is not above the term, within ±2^53."""

    rounded = exp.Floor


@dataclass(frozen=True)
class Ceil(_ToWhole):
    """The smallest whole number that is not below the term, within ±2^53."""

    rounded = exp.Ceil


@dataclass(frozen=True)
class Rounded(Function):
    """floor(term · 10^digits + ½) / 10^digits in floating point, in this order, within ±2^53 / 10^digits; whole without digits.

    Halves go up, which is written out because engines round them differently.
    """

    digits: int

    def kind(self, kind: Kind) -> Kind:
        expect(kind, NUMERIC, "Rounded")
        if not 0 <= self.digits <= 15:
            raise Unsupported("Rounded needs 0 to 15 digits")
        return "number" if self.digits else "integer"

    def of(self, value: float) -> float:
        """The rounded number."""
        moved = min(max(value, -self._limit), self._limit)
        return math.floor(moved * self._power + 0.5) / self._power

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        power, half, *ends = (literal(value, "number", dialect) for value in (self._power, 0.5, -self._limit, self._limit))
        number = as_kind(term, "number", dialect)
        moved = number if within(self.term, self._limit) else exp.Paren(this=clamp(number, *ends))
        whole = exp.Floor(this=exp.Add(this=exp.Mul(this=moved, expression=power), expression=half))
        if not self.digits:
            return as_kind(whole, "integer", dialect)
        return exp.Div(this=whole, expression=power.copy(), typed=True)

    @property
    def _power(self) -> float:
        return 10.0**self.digits

    @property
    def _limit(self) -> float:
        return _FARTHEST / self._power

    @property
    def ends(self) -> tuple[float, float]:
        return self.of(-self._limit), self.of(self._limit)

    @property
    def copies(self) -> int:
        return 1 if within(self.term, self._limit) else 3


@dataclass(frozen=True)
class Remainder(Function):
    """What is left of a whole number after dividing by a positive constant, with the sign of the term."""

    divisor: int

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"integer"}, "Remainder")
        if not 0 < self.divisor < 2**63:
            raise Unsupported("Remainder needs a positive divisor of at most 64 bits")
        return "integer"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        return exp.Mod(this=term, expression=literal(self.divisor, "integer", dialect))

    @property
    def largest(self) -> int:
        return self.divisor - 1

    @property
    def ends(self) -> tuple[float, float]:
        return float(-self.largest), float(self.largest)


@dataclass(frozen=True)
class Bucket(Function):
    """In which of `count` equal parts of [low, high] the term lies, from 0; what is outside goes to the nearest part.

    It is floor((term - low) · count / (high - low)) computed in floating point in exactly this order.
    """

    low: int | float
    high: int | float
    count: int

    def kind(self, kind: Kind) -> Kind:
        expect(kind, NUMERIC, "Bucket")
        low, high = self.low, self.high
        if not (low < high and max(abs(low), abs(high)) <= 1e90 and float(high) - float(low) >= 1e-90):
            raise Unsupported("Bucket needs two bounds within ±1e90 that are at least 1e-90 apart, the lower one first")
        if not 1 <= self.count <= 2**31:
            raise Unsupported("Bucket needs 1 to 2^31 parts")
        return "integer"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        low, high = float(self.low), float(self.high)
        start, end, count, width, nudge = (
            literal(value, "number", dialect) for value in (low, high, float(self.count), high - low, _NUDGE)
        )
        # LEAST and GREATEST skip missing values, which are set aside first; so the term is written twice instead of often.
        moved = exp.Least(this=exp.Greatest(this=as_kind(term, "number", dialect), expressions=[start]), expressions=[end])
        above = exp.Paren(this=exp.Sub(this=moved, expression=start.copy()))
        scaled = exp.Paren(this=exp.Add(this=exp.Mul(this=above, expression=count), expression=nudge))
        place = as_kind(exp.Floor(this=exp.Div(this=scaled, expression=width, typed=True)), "integer", dialect)
        last = literal(self.count - 1, "integer", dialect)
        present = exp.Not(this=exp.Is(this=term.copy(), expression=exp.Null()))
        return exp.Case(ifs=[exp.If(this=present, true=exp.Least(this=place, expressions=[last]))])

    @property
    def largest(self) -> int:
        return self.count - 1

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, float(self.largest)

    @property
    def copies(self) -> int:
        return 2
