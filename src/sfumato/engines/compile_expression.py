"""Expressions to SQL, written out so that every engine computes the same value."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Literal as OneOf
from typing import TypeAlias

from sqlglot import exp

from sfumato.engines import expressions as e
from sfumato.engines.expressions import Kind, Value, kind_of, kind_of_value

Dialect: TypeAlias = OneOf["duckdb", "postgres", "spark"]

_TYPES: Mapping[Dialect, Mapping[Kind, str]] = {
    "duckdb": {"datetime": "TIMESTAMP", "instant": "TIMESTAMPTZ", "string": "TEXT", "binary": "BLOB"},
    "postgres": {"datetime": "TIMESTAMP", "instant": "TIMESTAMPTZ", "string": "TEXT", "binary": "BYTEA"},
    "spark": {"datetime": "TIMESTAMP_NTZ", "instant": "TIMESTAMP", "string": "STRING", "binary": "BINARY"},
}
_SHARED_TYPES: Mapping[Kind, str] = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "time": "TIME",
    "wide": "DECIMAL(38, 0)",
}

#: Some value of each kind, as text: what a missing value is replaced by beside a flag that says it was
#: missing.
ZERO: Mapping[Kind, str] = {
    "string": "",
    "integer": "0",
    "number": "0",
    "wide": "0",
    "boolean": "false",
    "date": "1970-01-01",
    "datetime": "1970-01-01",
    "instant": "1970-01-01 00:00:00+00",
    "time": "00:00:00",
    "binary": "",
}

#: The collation that compares text byte by byte; a column may have been declared with another.
_BY_BYTES: Mapping[Dialect, str] = {"duckdb": "binary", "postgres": "C", "spark": "UTF8_BINARY"}

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


def identifier(name: str) -> exp.Identifier:
    """A name, always quoted."""
    return exp.to_identifier(name, quoted=True)


def text_literal(text: str) -> exp.Literal:
    """A text constant; the dialect's writer escapes it."""
    return exp.Literal.string(text)


def sql_type(kind: Kind, dialect: Dialect) -> exp.DataType:
    """The type that carries a kind."""
    name = _TYPES[dialect].get(kind) or _SHARED_TYPES[kind]
    return exp.DataType.build(name, dialect=None if name == "DOUBLE" else dialect)


def as_kind(value: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
    """A value cast to the type of a kind; text always compares and sorts by its bytes."""
    cast = exp.cast(value, sql_type(kind, dialect))
    return exp.Collate(this=cast, expression=identifier(_BY_BYTES[dialect])) if kind == "string" else cast


def literal(value: Value, kind: Kind, dialect: Dialect) -> exp.Expression:
    """A constant of a kind."""
    if value is None:
        return as_kind(exp.Null(), kind, dialect)
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, (datetime.date, datetime.datetime)):
        return as_kind(text_literal(value.isoformat()), kind, dialect)
    return as_kind(text_literal(repr(value)), kind, dialect)


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
            return exp.and_(*(inner(term) for term in terms)) if terms else exp.true()
        case e.Or(terms):
            return exp.or_(*(inner(term) for term in terms)) if terms else exp.false()
        case e.Not(term):
            return exp.Not(this=inner(term))
        case e.IsMissing(term):
            return exp.Is(this=inner(term), expression=exp.Null())
        case e.OneOfValues(term, values):
            constants = [literal(value, kind_of_value(value), dialect) for value in values]
            return exp.In(this=inner(term), expressions=constants) if constants else exp.false()
        case e.Arithmetic(operator, left, right):
            result = kind_of(expression, kinds)
            sides = [_operand(inner(side), operator, result, dialect) for side in (left, right)]
            return as_kind(_ARITHMETIC[operator](this=sides[0], expression=sides[1]), result, dialect)
        case e.Choose(branches, otherwise):
            result = kind_of(expression, kinds)
            ifs = [exp.If(this=inner(c), true=as_kind(inner(v), result, dialect)) for c, v in branches]
            return exp.Case(ifs=ifs, default=as_kind(inner(otherwise), result, dialect))
        case e.Cast(term, kind):
            return _cast(inner(term), kind_of(term, kinds), kind, dialect)
        case e.Clamp(term, low, high):
            kind = kind_of(term, kinds)
            return _clamp(inner(term), literal(low, kind, dialect), literal(high, kind, dialect))
        case e.FixedPoint(term, scale, limit):
            return _fixed_point(inner(term), scale, limit, dialect)
        case e.Scrambled(term, key):
            text = exp.cast(inner(term), sql_type("string", dialect))
            # A missing value scrambles like the empty text: a digest must exist for every row.
            known = exp.Coalesce(this=text, expressions=[text_literal("")])
            joined = exp.DPipe(this=text_literal(key + ":"), expression=known, safe=True)
            return as_kind(exp.func("MD5", joined), "string", dialect)


def _operand(value: exp.Expression, operator: str, result: Kind, dialect: Dialect) -> exp.Expression:
    if result == "number":
        return as_kind(value, "number", dialect)
    # Nineteen digits hold any 64-bit integer; the product of two then fits 38.
    width = "DECIMAL(19, 0)" if operator == "*" else "DECIMAL(38, 0)"
    return exp.cast(value, exp.DataType.build(width, dialect=dialect))


def _cast(value: exp.Expression, source: Kind, target: Kind, dialect: Dialect) -> exp.Expression:
    if source == "boolean" and target == "integer":
        one, zero = (as_kind(exp.Literal.number(n), "integer", dialect) for n in (1, 0))
        ifs = [exp.If(this=value, true=one), exp.If(this=exp.Not(this=value.copy()), true=zero)]
        return exp.Case(ifs=ifs)
    return as_kind(value, target, dialect)


def _clamp(value: exp.Expression, low: exp.Expression, high: exp.Expression) -> exp.Expression:
    # LEAST and GREATEST skip missing values on some engines and would turn them into bounds.
    below = exp.If(this=exp.LT(this=value, expression=low), true=low.copy())
    above = exp.If(this=exp.GT(this=value.copy(), expression=high), true=high.copy())
    return exp.Case(ifs=[below, above], default=value.copy())


def _fixed_point(value: exp.Expression, scale: int, limit: float, dialect: Dialect) -> exp.Expression:
    number = as_kind(value, "number", dialect)
    bounds = (literal(float(bound), "number", dialect) for bound in (-limit, limit))
    scaled = exp.Mul(this=exp.Paren(this=_clamp(number, *bounds)), expression=literal(float(scale), "number", dialect))
    half = literal(0.5, "number", dialect)
    return as_kind(exp.Floor(this=exp.Add(this=scaled, expression=half)), "integer", dialect)
