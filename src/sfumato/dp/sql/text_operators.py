"""Dates and texts of a query, over rows alone."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators import Operator, Terms, constant_of
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


def _part(node: exp.Expression, terms: Terms) -> Term:
    if isinstance(node, exp.Extract):
        wanted, source = str(node.this).upper(), node.expression
    else:
        wanted, source = _PART_NODES[type(node)], node.this
    while isinstance(source, (exp.TsOrDsToDate, exp.Paren)):
        source = source.this
    if wanted not in _PARTS:
        raise Unsupported(f"EXTRACT takes {', '.join(name for name in _PARTS if not name.startswith('DAYOF'))}")
    part, low, high = _PARTS[wanted]
    term = terms(source)
    if term.kind not in ("date", "datetime") or (part in ("hour", "minute") and term.kind == "date"):
        raise Unsupported(f"a {term.kind} has no {part}")
    ends = [None if end is None else Fraction(end) for end in (low, high)]
    return Term(f.DatePart(term.expression, part), "integer", ends[0], ends[1])  # type: ignore[arg-type]


def _truncated(node: exp.Expression, terms: Terms) -> Term:
    unit = str(node.args["unit"].this if hasattr(node.args["unit"], "this") else node.args["unit"]).lower()
    term = terms(node.this)
    if term.kind not in ("date", "datetime") or unit not in ("year", "quarter", "month", "week", "day"):
        raise Unsupported("DATE_TRUNC takes 'year', 'quarter', 'month', 'week' or 'day' and a date")
    return Term(f.DateStart(term.expression, unit), "date")  # type: ignore[arg-type]


def _like(node: exp.Like, terms: Terms) -> Term:
    term, pattern = terms(node.this), terms(node.expression).text
    if term.kind != "string" or pattern is None or "\\" in pattern:
        raise Unsupported("LIKE takes a text and a constant pattern of letters, % and _")
    return condition(f.Like(term.expression, pattern))


def _ilike(node: exp.ILike, terms: Terms) -> Term:
    if not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
        raise Unsupported("ILIKE takes a text and a constant pattern of letters, % and _")
    # As rows are lowered: the letters A to Z alone.
    pattern = "".join(letter.lower() if letter.isascii() else letter for letter in str(node.expression.this))
    return _like(exp.Like(this=exp.Lower(this=node.this), expression=exp.Literal.string(pattern)), terms)


def _starts(node: exp.StartsWith, terms: Terms) -> Term:
    start = terms(node.expression).text
    if start is None or any(letter in start for letter in "%_\\"):
        raise Unsupported("STARTS_WITH takes a constant without %, _ and \\")
    return _like(exp.Like(this=node.this, expression=exp.Literal.string(start + "%")), terms)


def _letters(node: exp.Lower | exp.Upper, terms: Terms) -> Term:
    term = _text(terms(node.this))
    changed = f.Lowered(term.expression) if isinstance(node, exp.Lower) else f.Uppered(term.expression)
    return Term(changed, "string")


def _substring(node: exp.Expression, terms: Terms) -> Term:
    term = _text(terms(node.this))
    if isinstance(node, exp.Left):
        start, length = Fraction(1), constant_of(terms(node.expression), "LEFT")
    else:
        start = constant_of(terms(node.args["start"]), "SUBSTRING")
        stated = node.args.get("length")
        length = Fraction(10_000) if stated is None else constant_of(terms(stated), "SUBSTRING")
    if start.denominator != 1 or length.denominator != 1 or start < 1 or not 0 <= length <= 10_000:
        raise Unsupported("SUBSTRING takes a start of at least 1 and a length from 0 to 10,000")
    return Term(f.TextPart(term.expression, int(start), int(length)), "string")


def _length(node: exp.Length, terms: Terms) -> Term:
    return Term(f.Length(_text(terms(node.this)).expression), "integer", Fraction(0), Fraction(2**30), sure=False)


def _text(term: Term) -> Term:
    if term.kind != "string":
        raise Unsupported(f"a text function was given a {term.kind}")
    return term


_REGULAR = "regular expressions differ between engines; use LIKE"

_CALENDAR = "missing outside the years 1 to 9999"

ROWS = (
    Operator(
        "EXTRACT(part FROM day)", (exp.Extract, *_PART_NODES),
        f"year, quarter, month, day, hour, minute, ISODOW (1 is Monday) or DOY, {_CALENDAR}; also `YEAR(day)` and so on", _part,
    ),
    Operator(
        "DATE_TRUNC('part', day)", (exp.TimestampTrunc, exp.DateTrunc),
        f"first day of the year, quarter, month, week or day, {_CALENDAR}", _truncated, reads=("unit",),
    ),
    Operator(
        "CURRENT_DATE", (exp.CurrentDate,),
        rows="the answer would depend on the day it is asked; write the date as DATE '2026-01-31'",
    ),
    Operator(
        "CURRENT_TIMESTAMP", (exp.CurrentTimestamp,),
        rows="the answer would depend on when it is asked; write the moment as a constant",
    ),
    Operator("text LIKE 'pattern'", (exp.Like,), "matches: % is any text, _ any character", _like),
    Operator("text ILIKE 'pattern'", (exp.ILike,), "as `LIKE`, the letters A to Z in either case", _ilike),
    Operator("STARTS_WITH(text, 'start')", (exp.StartsWith,), "begins with a constant", _starts),
    Operator("text SIMILAR TO 'pattern'", (exp.RegexpLike, exp.SimilarTo), rows=_REGULAR),
    Operator("LOWER(text)", (exp.Lower,), "A to Z in lower case, no other letter", _letters),
    Operator("UPPER(text)", (exp.Upper,), "a to z in upper case, no other letter", _letters),
    Operator(
        "SUBSTRING(text, start, length)", (exp.Substring,),
        "so many characters (the rest where no length is said) from the one with number `start`; the first has number 1",
        _substring, reads=("start", "length"),
    ),
    Operator("LEFT(text, length)", (exp.Left,), "so many characters from the first on", _substring),
    Operator("LENGTH(text)", (exp.Length,), "number of characters", _length),
)  # fmt: skip
