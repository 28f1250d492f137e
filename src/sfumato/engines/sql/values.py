"""Values in SQL: types, constants, ranges, and expressions written out so that every engine computes the same value."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias

from sqlglot import exp

from sfumato.engines import expressions as e
from sfumato.engines.expressions import Dialect, Kind, Value, kind_of, kind_of_value

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
    if not e.within(term, e.LARGEST):
        ifs += [exp.If(this=exp.LT(this=number.copy(), expression=bounds[0]), true=bounds[0].copy())]
        ifs += [exp.If(this=exp.GT(this=number.copy(), expression=bounds[1]), true=bounds[1].copy())]
    if near_zero:
        tiny = exp.LT(this=exp.Abs(this=number.copy()), expression=literal(e.SMALLEST, "number", dialect))
        ifs += [exp.If(this=tiny, true=zero)]
    return exp.Case(ifs=ifs, default=number) if ifs else number


#: A sum is added up in parts of so many bits: those of 10^12 rows stay below 2^63.
_PART_BITS = 21


def whole_sum(value: exp.Expression, largest: int, dialect: Dialect) -> exp.Expression:
    """The exact sum of whole numbers of at most this size, as a wide number: parts of their bits, added up as 64 bits each.

    Spark adds decimals up as objects, a hundred times slower; of a negative number all parts but the highest are positive.
    """
    starts = range(0, max(1, min(largest, 2**63) - 1).bit_length(), _PART_BITS)
    total: exp.Expression | None = None
    for start in starts:
        shifted = exp.Anonymous(this="SHIFTRIGHT", expressions=[value.copy(), exp.Literal.number(start)])
        part = shifted if start else value.copy()
        if start != starts[-1]:
            part = exp.BitwiseAnd(this=exp.Paren(this=part), expression=literal(2**_PART_BITS - 1, "integer", dialect))
        summed: exp.Expression = as_kind(exp.Sum(this=as_kind(part, "integer", dialect)), "wide", dialect)
        if start:
            summed = exp.Mul(this=summed, expression=literal(2**start, "wide", dialect))
        total = summed if total is None else exp.Add(this=total, expression=summed)
    return as_kind(exp.Paren(this=total), "wide", dialect)


# Expressions ------------------------------------------------------------------------------------------------------------

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
        case e.Reference(name):
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
            if operator == "/":
                # Both sides are floating point, so that no dialect takes it for a division of whole numbers.
                divisor = exp.Nullif(this=sides[1], expression=literal(0.0, "number", dialect))
                return exp.Div(this=exp.Paren(this=sides[0]), expression=divisor, typed=True)
            return as_kind(_ARITHMETIC[operator](this=sides[0], expression=sides[1]), result, dialect)
        case e.Joined(terms):
            joined = inner(terms[0]) if terms else text_literal("")
            for term in terms[1:]:
                joined = exp.DPipe(this=joined, expression=inner(term), safe=True)
            return as_kind(joined, "string", dialect)
        case e.Choose(branches, otherwise):
            result = kind_of(expression, kinds)
            ifs = [exp.If(this=inner(c), true=as_kind(inner(v), result, dialect)) for c, v in branches]
            return exp.Case(ifs=ifs, default=as_kind(inner(otherwise), result, dialect))
        case e.Cast(term, kind):
            return _cast(inner(term), kind_of(term, kinds), kind, dialect)
        case e.Scrambled(term, key, numbers):
            return as_kind(exp.func("MD5", _scrambled(inner(term), key, [inner(n) for n in numbers], dialect)), "string", dialect)
        case e.RowFunction(terms):
            return expression.sql(tuple(map(inner, terms)), tuple(kind_of(term, kinds) for term in terms), dialect)
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
        return moderate(value, term, kind_of(term, kinds), dialect, near_zero=operator in ("*", "/"))
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


def _copies(node: e.Expression, child: e.Expression) -> int:
    """How often the SQL of an expression writes a part of it."""
    if isinstance(node, e.Function):
        return node.copies
    if not isinstance(node, e.Arithmetic):
        return 1
    return (1 if e.within(child, e.LARGEST) else 3) + (node.operator in ("*", "/"))


def written_size(expression: e.Expression) -> int:
    """How long an expression is when an engine writes it out: clamps and choices repeat what they look at."""
    sizes: dict[int, int] = {}
    pending: list[tuple[e.Expression, bool]] = [(expression, False)]
    while pending:
        node, ready = pending.pop()
        if id(node) in sizes:
            continue
        below = e.children(node)
        if ready:
            sizes[id(node)] = 1 + sum(_copies(node, child) * sizes[id(child)] for child in below)
        else:
            pending.append((node, True))
            pending.extend((child, False) for child in below)
    return sizes[id(expression)]
