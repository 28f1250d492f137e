"""Roots, logarithms and exponentials of a term: missing where they have no value, and never an error of an engine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.engines.expressions import LARGEST, NUMERIC, Dialect, Function, Kind, expect, within
from sfumato.engines.sql.values import as_kind, literal, moderate

#: Logarithms are multiples of 1 over this: engines differ in the last digit, which would move values across a boundary.
_STEPS = 2.0**40
#: An exponent of this size gives a number that arithmetic does not move, see `LARGEST`.
EXPONENT = 345.0
#: How far the base of a logarithm is from 1, so that all logarithms are floating-point multiples of a step.
_CLEAR_OF_ONE = 0.1


def is_base(base: float) -> bool:
    """True for a number that logarithms are taken to."""
    return math.isfinite(base) and base > 0 and abs(base - 1) >= _CLEAR_OF_ONE


def _where(condition: exp.Expression, value: exp.Expression) -> exp.Expression:
    """A value where a condition holds, else missing: what fails elsewhere is not asked there."""
    return exp.Case(ifs=[exp.If(this=condition, true=value)])


@dataclass(frozen=True)
class Root(Function):
    """The square root of the term, missing below zero. It is rounded correctly on every engine."""

    def kind(self, kind: Kind) -> Kind:
        expect(kind, NUMERIC, "Root")
        return "number"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        number = exp.Paren(this=moderate(term, self.term, kind, dialect, near_zero=False))
        zero = literal(0.0, "number", dialect)
        return exp.Sqrt(this=_where(exp.GTE(this=number, expression=zero), number.copy()))

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, math.sqrt(LARGEST)

    @property
    def copies(self) -> int:
        return 2 if within(self.term, LARGEST) else 6


@dataclass(frozen=True)
class Logarithm(Function):
    """The logarithm of the term to a constant base, rounded to a multiple of 2^-40; missing from zero down.

    A term closer to zero than `SMALLEST` counts as zero.
    """

    base: float

    def kind(self, kind: Kind) -> Kind:
        expect(kind, NUMERIC, "Logarithm")
        if not is_base(self.base):
            raise Unsupported("Logarithm needs a base above 0 and at least 0.1 away from 1")
        return "number"

    def of(self, value: float) -> float:
        """The logarithm of a number above zero."""
        logarithm = math.log(min(value, LARGEST))
        return math.floor(self._to_base(logarithm) * _STEPS + 0.5) / _STEPS

    def _to_base(self, logarithm: float) -> float:
        return logarithm if self.base == math.e else logarithm / math.log(self.base)

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        number = exp.Paren(this=moderate(term, self.term, kind, dialect, near_zero=True))
        zero, steps, half, divisor = (literal(value, "number", dialect) for value in (0.0, _STEPS, 0.5, math.log(self.base)))
        logarithm: exp.Expression = exp.Ln(this=_where(exp.GT(this=number, expression=zero), number.copy()))
        if self.base != math.e:
            logarithm = exp.Paren(this=exp.Div(this=logarithm, expression=divisor, typed=True))
        scaled = exp.Add(this=exp.Mul(this=logarithm, expression=steps), expression=half)
        whole = as_kind(exp.Floor(this=scaled), "number", dialect)
        return exp.Div(this=whole, expression=steps.copy(), typed=True)

    @property
    def ends(self) -> tuple[float, float]:
        reach = abs(self._to_base(math.log(LARGEST))) + 1.0
        return -reach, reach

    @property
    def copies(self) -> int:
        return 4 if within(self.term, LARGEST) else 8


@dataclass(frozen=True)
class PowerOfE(Function):
    """e to the power of the term: zero for exponents below -345, missing above 345. Engines may differ in the last digit."""

    def kind(self, kind: Kind) -> Kind:
        expect(kind, NUMERIC, "PowerOfE")
        return "number"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        number = exp.Paren(this=as_kind(term, "number", dialect))
        zero, low, high = (literal(value, "number", dialect) for value in (0.0, -EXPONENT, EXPONENT))
        inside = exp.Between(this=number.copy(), low=low, high=high)
        power = exp.Exp(this=_where(inside, number.copy()))
        below = exp.LT(this=number, expression=low.copy())
        return exp.Case(ifs=[exp.If(this=below, true=zero)], default=power)

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, math.exp(EXPONENT)

    @property
    def copies(self) -> int:
        return 3
