"""Codes of numbers and cells of codes: parts of a declared range, and combinations of codes as one whole number.

Parts are computed in the order in which this process computes them over arrays, operation by operation in double precision, so
that an engine puts a number into the same part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.engines.expressions import NUMERIC, Dialect, Function, Kind, RowFunction, expect
from sfumato.engines.sql.values import as_kind, clamp, literal

#: Added to a number that is divided next: too small to change a part, large enough that nothing underflows.
_NUDGE = 1e-200
#: Bounds of parts lie within this size, and at least as far apart as its inverse.
FARTHEST = 1e90
#: Whole bounds up to here are exact in every product of codes and counts.
LARGEST_WHOLE = 2**48
_MOST_PARTS = 1 << 31


def _divided(left: exp.Expression, right: exp.Expression, dialect: Dialect) -> exp.Expression:
    """The whole part of a quotient of whole numbers from zero up."""
    if dialect == "postgres":  # a quotient of two whole numbers is whole there
        return exp.Div(this=left, expression=right, typed=True, safe=False)
    return exp.IntDiv(this=left, expression=right)


@dataclass(frozen=True)
class WholePart(Function):
    """(floor(term) - low) · count // (high - low + 1) after clamping the term to [low, high]: which of `count` parts of a run of
    whole numbers it lies in."""

    low: int
    high: int
    count: int

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"integer", "number"}, "WholePart")
        if not -LARGEST_WHOLE <= self.low <= self.high <= LARGEST_WHOLE:
            raise Unsupported("WholePart needs bounds within ±2^48, the lower one first")
        if not 1 <= self.count <= min(self.high - self.low + 1, 10_000) and self.count != self.high - self.low + 1:
            raise Unsupported("WholePart needs 1 to 10,000 parts, or as many as there are numbers")
        return "integer"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        ends = (literal(end if kind == "integer" else float(end), kind, dialect) for end in (self.low, self.high))
        moved: exp.Expression = clamp(term, *ends)
        whole = as_kind(exp.Floor(this=moved) if kind == "number" else moved, "integer", dialect)
        above = exp.Paren(this=exp.Sub(this=whole, expression=literal(self.low, "integer", dialect)))
        span = self.high - self.low + 1
        if self.count == span:
            return above
        product = exp.Paren(this=exp.Mul(this=above, expression=literal(self.count, "integer", dialect)))
        return as_kind(_divided(product, literal(span, "integer", dialect), dialect), "integer", dialect)

    @property
    def largest(self) -> int:
        return self.count - 1

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, float(self.largest)

    @property
    def copies(self) -> int:
        return 3


@dataclass(frozen=True)
class EqualPart(Function):
    """floor((term - low) / (high - low) · count) after clamping the term to [low, high], at most `count` - 1."""

    low: float
    high: float
    count: int

    def kind(self, kind: Kind) -> Kind:
        expect(kind, NUMERIC, "EqualPart")
        if not parts_fit(self.low, self.high, self.count):
            raise Unsupported("EqualPart needs two bounds within ±1e90 that are at least 1e-90 apart, and 1 to 2^31 parts")
        return "integer"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        low, high = float(self.low), float(self.high)
        start, end, count, width, nudge = (
            literal(value, "number", dialect) for value in (low, high, float(self.count), high - low, _NUDGE)
        )
        number = as_kind(term, "number", dialect)
        moved = exp.Least(this=exp.Greatest(this=number, expressions=[start]), expressions=[end])
        above = exp.Paren(this=exp.Add(this=exp.Paren(this=exp.Sub(this=moved, expression=start.copy())), expression=nudge))
        share = exp.Paren(this=exp.Div(this=above, expression=width, typed=True))
        place = as_kind(exp.Floor(this=exp.Mul(this=share, expression=count)), "integer", dialect)
        part = exp.Least(this=place, expressions=[literal(self.count - 1, "integer", dialect)])
        # LEAST and GREATEST skip missing values, which are set aside first.
        present = exp.Not(this=exp.Is(this=term.copy(), expression=exp.Null()))
        return exp.Case(ifs=[exp.If(this=present, true=part)])

    @property
    def largest(self) -> int:
        return self.count - 1

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, float(self.largest)

    @property
    def copies(self) -> int:
        return 2


def parts_fit(low: float, high: float, count: int) -> bool:
    """True for bounds and a number of parts that engines compute with."""
    within = math.isfinite(low) and math.isfinite(high) and max(abs(low), abs(high)) <= FARTHEST
    return within and float(high) - float(low) >= 1 / FARTHEST and 1 <= count <= _MOST_PARTS


@dataclass(frozen=True)
class PartByEdges(RowFunction):
    """The part of a number (the first term), from the one that `EqualPart` gives it (the second term): a part begins at
    low + part · step, with step = (high - low) / count, and the number is moved by one part where it lies beyond an edge."""

    low: float = 0.0
    high: float = 1.0
    count: int = 1

    def kind(self, kinds: tuple[Kind, ...]) -> Kind:
        number, part = kinds
        expect(number, NUMERIC, "PartByEdges")
        expect(part, {"integer"}, "PartByEdges")
        if not parts_fit(self.low, self.high, self.count):
            raise Unsupported("PartByEdges needs two bounds within ±1e90 that are at least 1e-90 apart, and 1 to 2^31 parts")
        return "integer"

    def sql(self, terms: tuple[exp.Expression, ...], kinds: tuple[Kind, ...], dialect: Dialect) -> exp.Expression:
        number, part = as_kind(terms[0], "number", dialect), terms[1]
        step = (float(self.high) - float(self.low)) / self.count

        def edge(place: exp.Expression) -> exp.Expression:
            product = exp.Mul(this=as_kind(place, "number", dialect), expression=literal(step, "number", dialect))
            return exp.Add(this=literal(float(self.low), "number", dialect), expression=exp.Paren(this=product))

        zero, one, last = (literal(value, "integer", dialect) for value in (0, 1, self.count - 1))
        after = exp.Paren(this=exp.Add(this=part.copy(), expression=one))
        beyond = exp.And(
            this=exp.LT(this=part.copy(), expression=last), expression=exp.GTE(this=number, expression=edge(after.copy()))
        )
        before = exp.And(
            this=exp.GT(this=part.copy(), expression=zero), expression=exp.LT(this=number.copy(), expression=edge(part.copy()))
        )
        down = exp.Sub(this=part.copy(), expression=one.copy())
        return exp.Case(ifs=[exp.If(this=beyond, true=after), exp.If(this=before, true=down)], default=part)


@dataclass(frozen=True)
class Cell(RowFunction):
    """Codes 0 to size - 1 of several columns as one whole number from `first` on: the cell's place in an array of these sizes.

    Missing where a code is missing.
    """

    sizes: tuple[int, ...] = ()
    first: int = 0
    once: ClassVar[bool] = False

    def kind(self, kinds: tuple[Kind, ...]) -> Kind:
        for kind in kinds:
            expect(kind, {"integer"}, "Cell")
        if len(kinds) != len(self.sizes) or not kinds or min(self.sizes) < 1 or self.first < 0:
            raise Unsupported("Cell needs a size of at least 1 for each code")
        if math.prod(self.sizes) + self.first >= 2**62:
            raise Unsupported("Cell needs fewer than 2^62 cells")
        return "integer"

    def sql(self, terms: tuple[exp.Expression, ...], kinds: tuple[Kind, ...], dialect: Dialect) -> exp.Expression:
        place: exp.Expression = terms[0]
        for term, size in zip(terms[1:], self.sizes[1:], strict=True):
            scaled = exp.Mul(this=exp.Paren(this=place), expression=literal(size, "integer", dialect))
            place = exp.Add(this=scaled, expression=term)
        if self.first:
            place = exp.Add(this=exp.Paren(this=place), expression=literal(self.first, "integer", dialect))
        return exp.Paren(this=place)
