"""Dates and texts of a query."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.dispatch import Resolve, constant_of, lower, rule
from sfumato.dp.sql.term import Term, condition
from sfumato.engines import functions as f

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
    "DAYOFYEAR": ("day_of_year", 1, 366),
}
_PART_NODES: Mapping[type[exp.Expression], str] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.Day: "DAY",
    exp.DayOfWeekIso: "ISODOW",
    exp.DayOfYear: "DOY",
}


@rule(exp.Extract, *_PART_NODES)
def _part(node: exp.Expression, resolve: Resolve) -> Term:
    if isinstance(node, exp.Extract):
        wanted, source = str(node.this).upper(), node.expression
    else:
        wanted, source = _PART_NODES[type(node)], node.this
    while isinstance(source, (exp.TsOrDsToDate, exp.Paren)):
        source = source.this
    if wanted not in _PARTS:
        raise Unsupported(f"EXTRACT takes {', '.join(name for name in _PARTS if not name.startswith('DAYOF'))}")
    part, low, high = _PARTS[wanted]
    term = lower(source, resolve)
    if term.kind not in ("date", "datetime") or (part in ("hour", "minute") and term.kind == "date"):
        raise Unsupported(f"a {term.kind} has no {part}")
    ends = [None if end is None else Fraction(end) for end in (low, high)]
    return Term(f.DatePart(term.expression, part), "integer", ends[0], ends[1])  # type: ignore[arg-type]


@rule(exp.TimestampTrunc, exp.DateTrunc)
def _truncated(node: exp.Expression, resolve: Resolve) -> Term:
    unit = str(node.args["unit"].this if hasattr(node.args["unit"], "this") else node.args["unit"]).lower()
    term = lower(node.this, resolve)
    if term.kind not in ("date", "datetime") or unit not in ("year", "quarter", "month", "week", "day"):
        raise Unsupported("DATE_TRUNC takes 'year', 'quarter', 'month', 'week' or 'day' and a date")
    return Term(f.DateStart(term.expression, unit), "date")  # type: ignore[arg-type]


@rule(exp.Like)
def _like(node: exp.Like, resolve: Resolve) -> Term:
    term, pattern = lower(node.this, resolve), lower(node.expression, resolve).text
    if term.kind != "string" or pattern is None or "\\" in pattern:
        raise Unsupported("LIKE takes a text and a constant pattern of letters, % and _")
    return condition(f.Like(term.expression, pattern))


@rule(exp.ILike)
def _ilike(node: exp.ILike, resolve: Resolve) -> Term:
    if not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
        raise Unsupported("ILIKE takes a text and a constant pattern of letters, % and _")
    # As rows are lowered: the letters A to Z alone.
    pattern = "".join(letter.lower() if letter.isascii() else letter for letter in str(node.expression.this))
    return _like(exp.Like(this=exp.Lower(this=node.this), expression=exp.Literal.string(pattern)), resolve)


@rule(exp.StartsWith)
def _starts(node: exp.StartsWith, resolve: Resolve) -> Term:
    start = lower(node.expression, resolve).text
    if start is None or any(letter in start for letter in "%_\\"):
        raise Unsupported("STARTS_WITH takes a constant without %, _ and \\")
    return _like(exp.Like(this=node.this, expression=exp.Literal.string(start + "%")), resolve)


@rule(exp.Lower, exp.Upper)
def _letters(node: exp.Lower | exp.Upper, resolve: Resolve) -> Term:
    term = _text(lower(node.this, resolve))
    made = f.Lowered(term.expression) if isinstance(node, exp.Lower) else f.Uppered(term.expression)
    return Term(made, "string")


@rule(exp.Substring, exp.Left)
def _substring(node: exp.Expression, resolve: Resolve) -> Term:
    term = _text(lower(node.this, resolve))
    if isinstance(node, exp.Left):
        start, length = Fraction(1), constant_of(lower(node.expression, resolve), "LEFT")
    else:
        start = constant_of(lower(node.args["start"], resolve), "SUBSTRING")
        stated = node.args.get("length")
        length = Fraction(10_000) if stated is None else constant_of(lower(stated, resolve), "SUBSTRING")
    if start.denominator != 1 or length.denominator != 1 or start < 1 or not 0 <= length <= 10_000:
        raise Unsupported("SUBSTRING takes a start of at least 1 and a length from 0 to 10,000")
    return Term(f.TextPart(term.expression, int(start), int(length)), "string")


@rule(exp.Length)
def _length(node: exp.Length, resolve: Resolve) -> Term:
    return Term(f.Length(_text(lower(node.this, resolve)).expression), "integer", Fraction(0), Fraction(2**30), sure=False)


def _text(term: Term) -> Term:
    if term.kind != "string":
        raise Unsupported(f"a text function was given a {term.kind}")
    return term
