"""Functions of one term to SQL, each written so that every engine computes the same value and none fails."""

from __future__ import annotations

import datetime
import string
from collections.abc import Callable, Mapping

from sqlglot import exp

from sfumato.engines import functions as f
from sfumato.engines.expressions import Expression, Kind, kind_of
from sfumato.engines.sql_values import Dialect, as_kind, clamp, literal, moderate, text_literal

_FIELDS: Mapping[str, str] = {"weekday": "isodow", "day_of_year": "doy"}
_SPARK_FIELDS: Mapping[str, str] = {"weekday": "DAYOFWEEK_ISO", "day_of_year": "DOY"}

#: Added to a number that is divided next: too small to change a part, large enough that nothing underflows.
_NUDGE = 1e-200


def compile_function(
    function: f.Function, kinds: Mapping[str, Kind], inner: Callable[[Expression], exp.Expression], dialect: Dialect
) -> exp.Expression:
    """One function in SQL; `inner` writes its term."""
    term = inner(function.term)
    kind = kind_of(function.term, kinds)
    match function:
        case f.Divide(divisor=divisor):
            # Both sides are floating point, so that no dialect takes it for a division of whole numbers.
            number = moderate(term, function.term, kinds, dialect, near_zero=True)
            return exp.Div(this=number, expression=literal(float(divisor), "number", dialect), typed=True)
        case f.Floor():
            bounds = (literal(float(b) if kind == "number" else b, kind, dialect) for b in (-(2**53), 2**53))
            moved = clamp(term, *bounds)
            return as_kind(exp.Floor(this=moved) if kind == "number" else moved, "integer", dialect)
        case f.Remainder(divisor=divisor):
            return exp.Mod(this=term, expression=literal(divisor, "integer", dialect))
        case f.Bucket():
            return _bucket(term, function, dialect)
        case f.DatePart(part=part):
            name = (_SPARK_FIELDS if dialect == "spark" else _FIELDS).get(part, part)
            taken = exp.Anonymous(this="DATE_PART", expressions=[text_literal(name), term])
            return _in_calendar(term, kind, as_kind(taken, "integer", dialect), dialect)
        case f.DateStart(part=part):
            return _in_calendar(term, kind, _date_start(term, part, dialect), dialect)
        case f.Like(pattern=pattern):
            return exp.Like(this=term, expression=text_literal(pattern))
        case f.TextPart(_, start, length):
            numbers = [exp.Literal.number(start), exp.Literal.number(length)]
            return as_kind(exp.Anonymous(this="SUBSTRING", expressions=[term, *numbers]), "string", dialect)
        case f.Length():
            return as_kind(exp.Anonymous(this="LENGTH", expressions=[term]), "integer", dialect)
        case f.Lowered():
            return _translated(term, string.ascii_uppercase, string.ascii_lowercase, dialect)
        case f.Uppered():
            return _translated(term, string.ascii_lowercase, string.ascii_uppercase, dialect)


def _bucket(term: exp.Expression, bucket: f.Bucket, dialect: Dialect) -> exp.Expression:
    low, high = float(bucket.low), float(bucket.high)
    start, end, count, width, nudge = (
        literal(value, "number", dialect) for value in (low, high, float(bucket.count), high - low, _NUDGE)
    )
    # LEAST and GREATEST skip missing values, which are set aside first; so the term is written twice instead of often.
    moved = exp.Least(this=exp.Greatest(this=as_kind(term, "number", dialect), expressions=[start]), expressions=[end])
    above = exp.Paren(this=exp.Sub(this=moved, expression=start.copy()))
    scaled = exp.Paren(this=exp.Add(this=exp.Mul(this=above, expression=count), expression=nudge))
    place = as_kind(exp.Floor(this=exp.Div(this=scaled, expression=width, typed=True)), "integer", dialect)
    last = literal(bucket.count - 1, "integer", dialect)
    known = exp.Not(this=exp.Is(this=term.copy(), expression=exp.Null()))
    return exp.Case(ifs=[exp.If(this=known, true=exp.Least(this=place, expressions=[last]))])


def _in_calendar(term: exp.Expression, kind: Kind, value: exp.Expression, dialect: Dialect) -> exp.Expression:
    """A value for the years in which all engines have a calendar, not for the infinities of PostgreSQL and DuckDB."""
    if kind == "date":
        first, last = (literal(day, kind, dialect) for day in (datetime.date.min, datetime.date.max))
    else:
        first, last = (literal(moment, kind, dialect) for moment in (datetime.datetime.min, datetime.datetime.max))
    return exp.Case(ifs=[exp.If(this=exp.Between(this=term.copy(), low=first, high=last), true=value)])


def _date_start(term: exp.Expression, part: str, dialect: Dialect) -> exp.Expression:
    day = as_kind(term.copy(), "date", dialect)
    if part == "day":
        return day
    if dialect == "spark":
        return exp.Anonymous(this="TRUNC", expressions=[day, text_literal(part)])
    moment = as_kind(day, "datetime", dialect)
    return as_kind(exp.Anonymous(this="DATE_TRUNC", expressions=[text_literal(part), moment]), "date", dialect)


def _translated(term: exp.Expression, old: str, new: str, dialect: Dialect) -> exp.Expression:
    swapped = exp.Anonymous(this="TRANSLATE", expressions=[term, text_literal(old), text_literal(new)])
    return as_kind(swapped, "string", dialect)
