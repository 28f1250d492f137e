"""Expressions to SQL, written out so that every engine computes the same value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from sqlglot import exp

from sfumato.engines import expressions as e
from sfumato.engines.expressions import Dialect, Kind, kind_of, kind_of_value
from sfumato.engines.sql_values import as_kind, clamp, literal, moderate, sql_type, text_literal, type_named

_COMPARISONS: Mapping[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "is": exp.NullSafeEQ,
}
_ARITHMETIC: Mapping[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}

ColumnOf: TypeAlias = Callable[[str], exp.Expression]


def compile_expression(expression: e.Expression, kinds: Mapping[str, Kind], column: ColumnOf, dialect: Dialect) -> exp.Expression:
    """One expression in SQL; `column` writes a column reference."""

    def inner(part: e.Expression) -> exp.Expression:
        return exp.Paren(this=compile_expression(part, kinds, column, dialect))

    match expression:
        case e.Column(name):
            return column(name)
        case e.Literal(value, kind):
            return literal(value, kind or kind_of_value(value), dialect)
        case e.Compare(operator, left, right):
            return _COMPARISONS[operator](this=inner(left), expression=inner(right))
        case e.And(terms):
            return exp.and_(*(inner(term) for term in terms), copy=False) if terms else exp.true()
        case e.Or(terms):
            return exp.or_(*(inner(term) for term in terms), copy=False) if terms else exp.false()
        case e.Not(term):
            return exp.Not(this=inner(term))
        case e.IsMissing(term):
            return exp.Is(this=inner(term), expression=exp.Null())
        case e.OneOfValues(term, values):
            constants = [literal(value, kind_of_value(value), dialect) for value in values]
            return exp.In(this=inner(term), expressions=constants) if constants else exp.false()
        case e.Arithmetic(operator, left, right):
            result = kind_of(expression, kinds)
            sides = [_operand(inner(side), side, operator, result, kinds, dialect) for side in (left, right)]
            return as_kind(_ARITHMETIC[operator](this=sides[0], expression=sides[1]), result, dialect)
        case e.Choose(branches, otherwise):
            result = kind_of(expression, kinds)
            ifs = [exp.If(this=inner(c), true=as_kind(inner(v), result, dialect)) for c, v in branches]
            return exp.Case(ifs=ifs, default=as_kind(inner(otherwise), result, dialect))
        case e.Cast(term, kind):
            return _cast(inner(term), kind_of(term, kinds), kind, dialect)
        case e.Clamp(term, low, high):
            kind = kind_of(term, kinds)
            return clamp(inner(term), literal(low, kind, dialect), literal(high, kind, dialect))
        case e.FixedPoint(term, scale, limit):
            return _fixed_point(inner(term), term, scale, limit, dialect)
        case e.Scrambled(term, key, numbers):
            return as_kind(exp.func("MD5", _scrambled(inner(term), key, [inner(n) for n in numbers], dialect)), "string", dialect)
        case _:
            return expression.sql(inner(expression.term), kind_of(expression.term, kinds), dialect)


def _scrambled(term: exp.Expression, key: str, numbers: list[exp.Expression], dialect: Dialect) -> exp.Expression:
    joined: exp.Expression = text_literal(key + ":")
    # A missing value scrambles like the empty text: a digest must exist for every row.
    texts = [
        exp.Coalesce(this=exp.cast(part, sql_type("string", dialect), copy=False), expressions=[text_literal("")])
        for part in (term, *numbers)
    ]
    for place, text in enumerate(texts):
        if place:
            joined = exp.DPipe(this=joined, expression=text_literal(":"), safe=True)
        joined = exp.DPipe(this=joined, expression=text, safe=True)
    return joined


def _operand(
    value: exp.Expression, term: e.Expression, operator: str, result: Kind, kinds: Mapping[str, Kind], dialect: Dialect
) -> exp.Expression:
    if result == "number":
        return moderate(value, term, kind_of(term, kinds), dialect, near_zero=operator == "*")
    # Nineteen digits hold any 64-bit integer; the product of two then fits 38.
    width = "DECIMAL(19, 0)" if operator == "*" else "DECIMAL(38, 0)"
    return exp.cast(value, type_named(width, dialect), copy=False)


def _cast(value: exp.Expression, source: Kind, target: Kind, dialect: Dialect) -> exp.Expression:
    if source == "wide" and target == "integer":
        value = clamp(value, *(literal(bound, "wide", dialect) for bound in (-(2**63), 2**63 - 1)))
    if source == "boolean" and target == "integer":
        one, zero = (as_kind(exp.Literal.number(n), "integer", dialect) for n in (1, 0))
        ifs = [exp.If(this=value, true=one), exp.If(this=exp.Not(this=value.copy()), true=zero)]
        return exp.Case(ifs=ifs)
    return as_kind(value, target, dialect)


def _fixed_point(value: exp.Expression, term: e.Expression, scale: int, limit: float, dialect: Dialect) -> exp.Expression:
    number = as_kind(value, "number", dialect)
    if not (isinstance(term, e.Clamp) and -limit <= term.low and term.high <= limit):
        number = exp.Paren(this=clamp(number, *(literal(float(bound), "number", dialect) for bound in (-limit, limit))))
    scaled = exp.Mul(this=number, expression=literal(float(scale), "number", dialect))
    half = literal(0.5, "number", dialect)
    return as_kind(exp.Floor(this=exp.Add(this=scaled, expression=half)), "integer", dialect)
