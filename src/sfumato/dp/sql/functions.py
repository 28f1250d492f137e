"""SQL expressions over rows, one rule per allowed node; everything else is refused with a reason.

Every allowed function is total: it has a value for each input, so that whether a query fails never depends on a record.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.term import (
    EXACT,
    Term,
    arithmetic,
    as_number,
    bounded,
    clamped,
    condition,
    constant,
    merged,
    null,
)
from sfumato.engines import expressions as e
from sfumato.engines.expressions import Value

#: Resolves a column reference of the query.
Resolve = Callable[[exp.Column], Term]

_COMPARISONS: Mapping[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "is",
}
_ARITHMETIC: Mapping[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_PARTS: Mapping[str, tuple[str, int | None, int | None]] = {
    "YEAR": ("year", None, None),
    "QUARTER": ("quarter", 1, 4),
    "MONTH": ("month", 1, 12),
    "DAY": ("day", 1, 31),
    "HOUR": ("hour", 0, 23),
    "MINUTE": ("minute", 0, 59),
    "ISODOW": ("weekday", 1, 7),
    "DAYOFWEEKISO": ("weekday", 1, 7),
    "DOY": ("day_of_year", 1, 366),
}
_PART_NODES: Mapping[type[exp.Expression], str] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.Day: "DAY",
    exp.DayOfWeekIso: "ISODOW",
    exp.DayOfYear: "DOY",
}
_TYPES: Mapping[str, str] = {
    "INT": "integer", "BIGINT": "integer", "SMALLINT": "integer", "TINYINT": "integer",
    "DOUBLE": "number", "FLOAT": "number", "DECIMAL": "number",
    "TEXT": "string", "VARCHAR": "string", "CHAR": "string", "BOOLEAN": "boolean", "DATE": "date",
    "TIMESTAMP": "datetime", "DATETIME": "datetime",
}  # fmt: skip

#: Why some well-known functions are not offered, and what to write instead.
_REASONS: Mapping[type[exp.Expression], str] = {
    exp.Rand: "a query may not draw its own random numbers: the same question must mean the same thing",
    exp.CurrentDate: "the answer would depend on the day it is asked; write the date as DATE '2026-01-31'",
    exp.CurrentTimestamp: "the answer would depend on when it is asked; write the moment as a constant",
    exp.Sqrt: "roots differ between engines in the last digit; take the root of the answer instead",
    exp.Ln: "logarithms fail on some values; transform the answer instead of the rows",
    exp.Log: "logarithms fail on some values; transform the answer instead of the rows",
    exp.Exp: "exponentials overflow on some values; transform the answer instead of the rows",
    exp.RegexpLike: "regular expressions differ between engines; use LIKE",
    exp.SimilarTo: "regular expressions differ between engines; use LIKE",
    exp.Subquery: "a sub-query inside an expression is not supported; join its table instead",
    exp.Select: "a sub-query inside an expression is not supported; join its table instead",
    exp.Exists: "EXISTS is not supported; join the other table on the unit instead",
    exp.Window: "window functions are not supported; aggregate per unit in a sub-query instead",
}


def lower(node: exp.Expression, resolve: Resolve) -> Term:
    """The term that an SQL expression means."""
    rule = _RULES.get(type(node))
    if rule is not None:
        return rule(node, resolve)
    if isinstance(node, exp.AggFunc):
        raise Unsupported(f"{_name(node)} stands where a value of one row is needed; aggregates belong in SELECT or HAVING")
    if isinstance(node, exp.Anonymous):
        return _named_function(node, resolve)
    reason = _REASONS.get(type(node), "only total functions that mean the same on every engine are allowed")
    raise Unsupported(f"{_name(node)} is not supported: {reason}")


def _name(node: exp.Expression) -> str:
    if isinstance(node, exp.Anonymous):
        return f"the function {str(node.this)[:40]}"
    return node.sql_name() if isinstance(node, exp.Func) else type(node).__name__.upper()


def _named_function(node: exp.Anonymous, resolve: Resolve) -> Term:
    name = str(node.this).upper()
    arguments = node.expressions
    if name == "CLAMP" and len(arguments) == 3:
        term, low, high = (lower(argument, resolve) for argument in arguments)
        return clamped(term, _constant(low, "CLAMP"), _constant(high, "CLAMP"))
    raise Unsupported(
        f"the function {str(node.this)[:40]} is not supported: only total functions that mean the same on every engine are allowed"
    )


def _literal(node: exp.Literal, resolve: Resolve) -> Term:
    if node.is_string:
        return constant(str(node.this))
    text = str(node.this)
    if len(text) > 60:
        raise Unsupported("a number in the query has too many digits")
    try:
        return constant(int(text))
    except ValueError:
        return constant(float(text))


def _negative(node: exp.Neg, resolve: Resolve) -> Term:
    term = lower(node.this, resolve)
    value = term.constant
    if value is not None:
        return constant(-int(value) if term.kind == "integer" else -float(value))
    return arithmetic("-", constant(0), term)


def _compare(node: exp.Binary, resolve: Resolve) -> Term:
    left, right = _alike(lower(node.this, resolve), lower(node.expression, resolve))
    return condition(e.Compare(_COMPARISONS[type(node)], left.expression, right.expression))  # type: ignore[arg-type]


def _alike(left: Term, right: Term) -> tuple[Term, Term]:
    """Both sides of a comparison in comparable kinds: a text beside a date is read as a date."""
    for one, other, swapped in ((left, right, False), (right, left, True)):
        if other.text is not None and one.kind in ("date", "datetime"):
            read = _moment(other.text, one.kind)
            return (read, one) if swapped else (one, read)
        if other.missing and one.kind != other.kind:
            none = null(one.kind)
            return (none, one) if swapped else (one, none)
    if left.kind != right.kind and not (left.numeric and right.numeric):
        raise Unsupported(f"a {left.kind} cannot be compared with a {right.kind}")
    return left, right


def _moment(text: str, kind: str) -> Term:
    try:
        if kind == "date":
            return constant(datetime.date.fromisoformat(text))
        return constant(datetime.datetime.fromisoformat(text))
    except ValueError:
        raise Unsupported("a date in the query is not written as 'YYYY-MM-DD'") from None


def _truth(node: exp.Expression, resolve: Resolve) -> e.Expression:
    term = lower(node, resolve)
    if term.missing:
        return e.Literal(None, "boolean")
    if term.kind != "boolean":
        raise Unsupported(f"a {term.kind} stands where a condition is needed; compare it with something")
    return term.expression


def _between(node: exp.Between, resolve: Resolve) -> Term:
    term = lower(node.this, resolve)
    parts = []
    for operator, key in ((">=", "low"), ("<=", "high")):
        left, right = _alike(term, lower(node.args[key], resolve))
        parts.append(e.Compare(operator, left.expression, right.expression))  # type: ignore[arg-type]
    return condition(e.And(tuple(parts)))


def _one_of(node: exp.In, resolve: Resolve) -> Term:
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        raise Unsupported("IN (SELECT …) is not supported; join the other table instead")
    term = lower(node.this, resolve)
    if len(node.expressions) > 10_000:
        raise Unsupported("IN lists more than 10,000 values; put them into a public table and join it")
    values: list[Value] = []
    for entry in node.expressions:
        _, other = _alike(term, lower(entry, resolve))
        if not isinstance(other.expression, e.Literal) or other.missing:
            raise Unsupported("IN takes a list of constants")
        values.append(other.expression.value)
    return condition(e.OneOfValues(term.expression, tuple(values)))


def _is(node: exp.Is, resolve: Resolve) -> Term:
    term = lower(node.this, resolve)
    if isinstance(node.expression, exp.Null):
        return condition(e.IsMissing(term.expression))
    if isinstance(node.expression, exp.Boolean):
        if term.kind != "boolean":
            raise Unsupported("IS TRUE and IS FALSE are for conditions")
        return condition(e.Compare("is", term.expression, e.Literal(bool(node.expression.this))))
    raise Unsupported("IS takes NULL, TRUE or FALSE")


def _case(node: exp.Case, resolve: Resolve) -> Term:
    conditions, terms = [], []
    for branch in node.args["ifs"]:
        test = branch.this if node.this is None else exp.EQ(this=node.this.copy(), expression=branch.this.copy())
        conditions.append(_truth(test, resolve))
        terms.append(lower(branch.args["true"], resolve))
    default = node.args.get("default")
    terms.append(null() if default is None else lower(default, resolve))
    return _chosen(conditions, terms)


def _if(node: exp.If, resolve: Resolve) -> Term:
    otherwise = node.args.get("false")
    terms = [lower(node.args["true"], resolve), null() if otherwise is None else lower(otherwise, resolve)]
    return _chosen([_truth(node.this, resolve)], terms)


def _chosen(conditions: list[e.Expression], terms: list[Term]) -> Term:
    return merged(terms, lambda parts: e.Choose(tuple(zip(conditions, parts[:-1], strict=True)), parts[-1]))


def _coalesce(node: exp.Coalesce, resolve: Resolve) -> Term:
    terms = [lower(part, resolve) for part in (node.this, *node.expressions)]

    def first_known(parts: list[e.Expression]) -> e.Expression:
        *tested, last = parts
        return e.Choose(tuple((e.Not(e.IsMissing(part)), part) for part in tested), last)

    merged_term = merged(terms, first_known)
    certain = terms[-1].values is not None and None not in terms[-1].values
    if merged_term.values is not None and certain:
        return replace(merged_term, values=tuple(v for v in merged_term.values if v is not None))
    return merged_term


def _extreme(node: exp.Least | exp.Greatest, resolve: Resolve) -> Term:
    """LEAST and GREATEST; missing when one argument is."""
    terms = [bounded(lower(part, resolve)) for part in (node.this, *node.expressions)]
    least = isinstance(node, exp.Least)
    constants = [term.constant for term in terms if term.constant is not None]
    rest = [term for term in terms if term.constant is None]
    if len(rest) == 1 and constants and rest[0].numeric:
        term = rest[0]
        edge = min(constants) if least else max(constants)
        if term.kind != "number" and edge.denominator != 1:
            term = as_number(term)
        side = constant(int(edge) if term.kind != "number" else float(edge))
        beyond = e.Compare(">" if least else "<", term.expression, side.expression)
        chosen = e.Choose(((beyond, side.expression),), term.expression)
        low, high = term.low, term.high
        if least:
            high = edge if high is None else min(high, edge)
            low = None if low is None else min(low, edge)
        else:
            low = edge if low is None else max(low, edge)
            high = None if high is None else max(high, edge)
        kind = "number" if term.kind == "number" else term.kind
        return Term(chosen, kind, low, high)
    if not all(term.numeric for term in terms):
        raise Unsupported("LEAST and GREATEST are for numbers")
    operator = "<=" if least else ">="

    def chosen_of(parts: list[e.Expression]) -> e.Expression:
        found = parts[0]
        for part in parts[1:]:
            known = e.And((e.Not(e.IsMissing(found)), e.Not(e.IsMissing(part))))
            ordered = e.Compare(operator, found, part)  # type: ignore[arg-type]
            found = e.Choose(((e.And((known, ordered)), found), (known, part)), e.Arithmetic("+", found, part))
        return found

    return merged([as_number(term) for term in terms], chosen_of)


def _absolute(node: exp.Abs, resolve: Resolve) -> Term:
    term = bounded(lower(node.this, resolve))
    negative = arithmetic("-", constant(0), term)
    merged_term = merged(
        [negative, term], lambda parts: e.Choose(((e.Compare("<", term.expression, constant(0).expression), parts[0]),), parts[1])
    )
    high = merged_term.high
    return replace(merged_term, low=Fraction(0), high=high, values=None)


def _divide(node: exp.Div, resolve: Resolve) -> Term:
    divisor = lower(node.expression, resolve).constant
    if divisor is None:
        raise Unsupported("a row's value can be divided by a constant only, since a divisor from the data may be zero")
    if not Fraction(1, 10**9) <= abs(divisor) <= 10**9:
        raise Unsupported("the divisor must lie between 1e-9 and 1e9")
    term = as_number(bounded(lower(node.this, resolve)))
    ends = [None if end is None else end / divisor for end in (term.low, term.high)]
    if divisor < 0:
        ends.reverse()
    return Term(e.Divide(term.expression, float(divisor)), "number", ends[0], ends[1], sure=False)


def _floor(node: exp.Floor | exp.Ceil, resolve: Resolve) -> Term:
    up = isinstance(node, exp.Ceil)
    term = bounded(lower(node.this, resolve))
    if up:
        below = Term(e.Floor(_minus(term).expression), "integer", *_floored(_minus(term)))
        return arithmetic("-", constant(0), below)
    return Term(e.Floor(term.expression), "integer", *_floored(term))


def _minus(term: Term) -> Term:
    return bounded(arithmetic("-", constant(0), term))


def _floored(term: Term) -> tuple[Fraction | None, Fraction | None]:
    limits = (Fraction(-EXACT), Fraction(EXACT))
    low = limits[0] if term.low is None else Fraction(term.low // 1)
    high = limits[1] if term.high is None else Fraction(term.high // 1)
    return max(low, limits[0]), min(high, limits[1])


def _whole_division(node: exp.IntDiv, resolve: Resolve) -> Term:
    return _floor(exp.Floor(this=exp.Div(this=node.this, expression=node.expression)), resolve)


def _round(node: exp.Round, resolve: Resolve) -> Term:
    digits = Fraction(0) if node.args.get("decimals") is None else _constant(lower(node.args["decimals"], resolve), "ROUND")
    if digits.denominator != 1 or not 0 <= digits <= 9:
        raise Unsupported("ROUND takes a whole number of digits from 0 to 9")
    power = 10 ** int(digits)
    scaled = exp.Floor(
        this=exp.Add(
            this=exp.Mul(this=exp.Paren(this=node.this.copy()), expression=exp.Literal.number(power)),
            expression=exp.Literal.number("0.5"),
        )
    )
    if power == 1:
        return lower(scaled, resolve)
    return lower(exp.Div(this=scaled, expression=exp.Literal.number(power)), resolve)


def _remainder(node: exp.Mod, resolve: Resolve) -> Term:
    divisor = _constant(lower(node.expression, resolve), "MOD")
    term = bounded(lower(node.this, resolve))
    if term.kind != "integer" or divisor.denominator != 1 or not 0 < divisor < EXACT:
        raise Unsupported("MOD takes a whole number and a positive whole constant")
    low = Fraction(0) if term.low is not None and term.low >= 0 else -(divisor - 1)
    return Term(e.Remainder(term.expression, int(divisor)), "integer", low, divisor - 1)


def _power(node: exp.Pow, resolve: Resolve) -> Term:
    if _constant(lower(node.expression, resolve), "POWER") != 2:
        raise Unsupported("POWER takes the exponent 2 only; write other products out")
    term = lower(node.this, resolve)
    squared = arithmetic("*", term, term)
    return replace(squared, low=Fraction(0) if squared.low is None else max(squared.low, Fraction(0)))


def _bucket(node: exp.WidthBucket, resolve: Resolve) -> Term:
    """WIDTH_BUCKET as in the standard: 0 below, 1 … n inside, n + 1 above."""
    term = as_number(lower(node.this, resolve))
    low, high, count = (
        _constant(lower(node.args[key], resolve), "WIDTH_BUCKET") for key in ("min_value", "max_value", "num_buckets")
    )
    if low >= high or count.denominator != 1 or not 1 <= count <= 10_000:
        raise Unsupported("WIDTH_BUCKET(x, low, high, n) takes constants with low < high and n from 1 to 10,000")
    inside = e.Bucket(term.expression, float(low), float(high), int(count))
    below = e.Compare("<", term.expression, e.Literal(float(low)))
    above = e.Compare(">=", term.expression, e.Literal(float(high)))
    shifted = e.FixedPoint(e.Arithmetic("+", inside, e.Literal(1)), 1, float(EXACT))
    chosen = e.Choose(((below, e.Literal(0)), (above, e.Literal(int(count) + 1))), shifted)
    return Term(chosen, "integer", Fraction(0), count + 1)


def _cast(node: exp.Cast, resolve: Resolve) -> Term:
    wanted = _TYPES.get(node.to.this.name if hasattr(node.to.this, "name") else str(node.to.this))
    term = lower(node.this, resolve)
    if wanted is None:
        raise Unsupported("CAST takes INTEGER, DOUBLE, TEXT, BOOLEAN, DATE or TIMESTAMP")
    if term.text is not None and wanted in ("date", "datetime"):
        return _moment(term.text, wanted)
    if wanted == term.kind:
        return term
    if wanted == "number" and term.numeric:
        return as_number(term)
    if wanted == "integer" and term.numeric:
        return lower(exp.Round(this=node.this), resolve)
    if wanted == "integer" and term.kind == "boolean":
        return Term(e.Cast(term.expression, "integer"), "integer", Fraction(0), Fraction(1))
    if wanted in e.CASTS[term.kind]:
        return Term(e.Cast(term.expression, wanted), wanted)  # type: ignore[arg-type]
    raise Unsupported(f"a {term.kind} cannot be cast to {wanted}: some values would fail")


def _part(node: exp.Expression, resolve: Resolve) -> Term:
    if isinstance(node, exp.Extract):
        wanted, source = str(node.this).upper(), node.expression
    else:
        wanted, source = _PART_NODES[type(node)], node.this
    while isinstance(source, (exp.TsOrDsToDate, exp.Paren)):
        source = source.this
    if wanted not in _PARTS:
        raise Unsupported(f"EXTRACT takes {', '.join(name for name in _PARTS if name != 'DAYOFWEEKISO')}")
    part, low, high = _PARTS[wanted]
    term = lower(source, resolve)
    if term.kind not in ("date", "datetime") or (part in ("hour", "minute") and term.kind == "date"):
        raise Unsupported(f"a {term.kind} has no {part}")
    ends = [None if end is None else Fraction(end) for end in (low, high)]
    return Term(e.DatePart(term.expression, part), "integer", ends[0], ends[1])  # type: ignore[arg-type]


def _truncated(node: exp.Expression, resolve: Resolve) -> Term:
    unit = str(node.args["unit"].this if hasattr(node.args["unit"], "this") else node.args["unit"]).lower()
    term = lower(node.this, resolve)
    if term.kind not in ("date", "datetime") or unit not in ("year", "quarter", "month", "week", "day"):
        raise Unsupported("DATE_TRUNC takes 'year', 'quarter', 'month', 'week' or 'day' and a date")
    return Term(e.DateStart(term.expression, unit), "date")  # type: ignore[arg-type]


def _like(node: exp.Like, resolve: Resolve) -> Term:
    term, pattern = lower(node.this, resolve), lower(node.expression, resolve).text
    if term.kind != "string" or pattern is None or "\\" in pattern:
        raise Unsupported("LIKE takes a text and a constant pattern of letters, % and _")
    return condition(e.Like(term.expression, pattern))


def _ilike(node: exp.ILike, resolve: Resolve) -> Term:
    lowered = exp.Like(this=exp.Lower(this=node.this), expression=exp.Literal.string(str(node.expression.this).lower()))
    return _like(lowered, resolve)


def _starts(node: exp.StartsWith, resolve: Resolve) -> Term:
    start = lower(node.expression, resolve).text
    if start is None or any(letter in start for letter in "%_\\"):
        raise Unsupported("STARTS_WITH takes a constant without %, _ and \\")
    return _like(exp.Like(this=node.this, expression=exp.Literal.string(start + "%")), resolve)


def _letters(node: exp.Lower | exp.Upper, resolve: Resolve) -> Term:
    term = _text(lower(node.this, resolve))
    made = e.Lowered(term.expression) if isinstance(node, exp.Lower) else e.Uppered(term.expression)
    return Term(made, "string")


def _substring(node: exp.Expression, resolve: Resolve) -> Term:
    term = _text(lower(node.this, resolve))
    if isinstance(node, exp.Left):
        start, length = Fraction(1), _constant(lower(node.expression, resolve), "LEFT")
    else:
        start = _constant(lower(node.args["start"], resolve), "SUBSTRING")
        stated = node.args.get("length")
        length = Fraction(10_000) if stated is None else _constant(lower(stated, resolve), "SUBSTRING")
    if start.denominator != 1 or length.denominator != 1 or start < 1 or not 0 <= length <= 10_000:
        raise Unsupported("SUBSTRING takes a start of at least 1 and a length from 0 to 10,000")
    return Term(e.TextPart(term.expression, int(start), int(length)), "string")


def _length(node: exp.Length, resolve: Resolve) -> Term:
    return Term(e.Length(_text(lower(node.this, resolve)).expression), "integer", Fraction(0), Fraction(2**30), sure=False)


def _nullif(node: exp.Nullif, resolve: Resolve) -> Term:
    return _case(
        exp.Case(
            ifs=[exp.If(this=exp.EQ(this=node.this.copy(), expression=node.expression.copy()), true=exp.Null())],
            default=node.this.copy(),
        ),
        resolve,
    )


def _text(term: Term) -> Term:
    if term.kind != "string":
        raise Unsupported(f"a text function was given a {term.kind}")
    return term


def _constant(term: Term, where: str) -> Fraction:
    value = term.constant
    if value is None:
        raise Unsupported(f"{where} takes constants")
    return value


_RULES: dict[type[exp.Expression], Callable[[Any, Resolve], Term]] = {
    exp.Column: lambda node, resolve: resolve(node),
    exp.Literal: _literal,
    exp.Boolean: lambda node, resolve: constant(bool(node.this)),
    exp.Null: lambda node, resolve: null(),
    exp.Paren: lambda node, resolve: lower(node.this, resolve),
    exp.Neg: _negative,
    exp.And: lambda node, resolve: condition(e.And((_truth(node.this, resolve), _truth(node.expression, resolve)))),
    exp.Or: lambda node, resolve: condition(e.Or((_truth(node.this, resolve), _truth(node.expression, resolve)))),
    exp.Not: lambda node, resolve: condition(e.Not(_truth(node.this, resolve))),
    exp.Between: _between,
    exp.In: _one_of,
    exp.Is: _is,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Least: _extreme,
    exp.Greatest: _extreme,
    exp.Abs: _absolute,
    exp.Div: _divide,
    exp.IntDiv: _whole_division,
    exp.Floor: _floor,
    exp.Ceil: _floor,
    exp.Round: _round,
    exp.Mod: _remainder,
    exp.Pow: _power,
    exp.WidthBucket: _bucket,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _part,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.Like: _like,
    exp.ILike: _ilike,
    exp.StartsWith: _starts,
    exp.Lower: _letters,
    exp.Upper: _letters,
    exp.Substring: _substring,
    exp.Left: _substring,
    exp.Length: _length,
    exp.Nullif: _nullif,
    **dict.fromkeys(_COMPARISONS, _compare),
    **{
        node: (
            lambda operator: (
                lambda given, resolve: arithmetic(operator, lower(given.this, resolve), lower(given.expression, resolve))
            )
        )(operator)
        for node, operator in _ARITHMETIC.items()
    },
    **dict.fromkeys(_PART_NODES, _part),
}
