"""Types, constants and ranges of values in SQL: what every compiled expression is made of."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import cache

from sqlglot import exp

from sfumato.engines import expressions as e
from sfumato.engines.expressions import Dialect, Kind, Value

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


def identifier(name: str) -> exp.Identifier:
    """A name, always quoted."""
    return exp.to_identifier(name, quoted=True)


def text_literal(text: str) -> exp.Literal:
    """A text constant; the dialect's writer escapes it."""
    return exp.Literal.string(text)


def sql_type(kind: Kind, dialect: Dialect) -> exp.DataType:
    """The type that carries a kind."""
    return type_named(_TYPES[dialect].get(kind) or _SHARED_TYPES[kind], dialect)


def type_named(name: str, dialect: Dialect) -> exp.DataType:
    """A type by its name."""
    return _parsed(name, dialect).copy()


@cache
def _parsed(name: str, dialect: Dialect) -> exp.DataType:
    return exp.DataType.build(name, dialect=None if name == "DOUBLE" else dialect)


def as_kind(value: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
    """A value cast to the type of a kind; text always compares and sorts by its bytes."""
    cast = exp.cast(value, sql_type(kind, dialect), copy=False)
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


def clamp(value: exp.Expression, low: exp.Expression, high: exp.Expression) -> exp.Expression:
    """A value moved between two others; a missing one stays missing."""
    # LEAST and GREATEST skip missing values on some engines and would turn them into bounds.
    below = exp.If(this=exp.LT(this=value, expression=low), true=low.copy())
    above = exp.If(this=exp.GT(this=value.copy(), expression=high), true=high.copy())
    return exp.Case(ifs=[below, above], default=value.copy())


def moderate(value: exp.Expression, term: e.Expression, kind: Kind, dialect: Dialect, *, near_zero: bool) -> exp.Expression:
    """A number moved to where no engine overflows or underflows, see `expressions.LARGEST`."""
    number = as_kind(value, "number", dialect)
    if kind != "number":
        return number  # at most 38 digits, and none is between zero and one
    zero, *bounds = (literal(bound, "number", dialect) for bound in (0.0, -e.LARGEST, e.LARGEST))
    ifs = []
    bounded = isinstance(term, e.Clamp) and max(abs(term.low), abs(term.high)) <= e.LARGEST
    if not bounded:
        ifs += [exp.If(this=exp.LT(this=number.copy(), expression=bounds[0]), true=bounds[0].copy())]
        ifs += [exp.If(this=exp.GT(this=number.copy(), expression=bounds[1]), true=bounds[1].copy())]
    if near_zero:
        tiny = exp.LT(this=exp.Abs(this=number.copy()), expression=literal(e.SMALLEST, "number", dialect))
        ifs += [exp.If(this=tiny, true=zero)]
    return exp.Case(ifs=ifs, default=number) if ifs else number
