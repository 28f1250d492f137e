"""Dates of a query: their parts, the days between them, and dates moved by constant intervals."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators.base import Operator, Terms
from sfumato.dp.sql.operators.term import ANY_DAYS, ANY_MOMENTS, Term, arithmetic, constant
from sfumato.engines import expressions as e
from sfumato.engines.functions import dates as d

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
    if part == "year":
        return _year(term)
    return Term(d.DatePart(term.expression, part), "integer", ends[0], ends[1])  # type: ignore[arg-type]


def _year(term: Term) -> Term:
    """The year of a date: one of those of the declared dates, and the nearest of them for any other date."""
    held, part = term.expression, d.DatePart(term.expression, "year")
    if isinstance(held, e.Literal) and isinstance(held.value, datetime.date):
        return constant(held.value.year)
    listed = _listed_dates(term)
    if not listed:
        return Term(part, "integer", hint=_hint(term))
    years = tuple(sorted({value.year for value in listed}))
    return Term(part, "integer", Fraction(years[0]), Fraction(years[-1]), years, sure=False)


def _listed_dates(term: Term) -> list[datetime.date] | None:
    """The declared dates of a column; None where something else is declared, or nothing."""
    if term.values is None:
        return None
    listed = [value for value in term.values if isinstance(value, datetime.date)]
    return listed if len(listed) + term.values.count(None) == len(term.values) else None


def _hint(*terms: Term) -> str:
    """Why a number made of dates has no bounds."""
    stated = next((term.hint for term in terms if term.hint), "")
    return stated or (ANY_DAYS if all(term.kind == "date" for term in terms) else ANY_MOMENTS)


def _truncated(node: exp.Expression, terms: Terms) -> Term:
    unit = str(node.args["unit"].this if hasattr(node.args["unit"], "this") else node.args["unit"]).lower()
    term = terms(node.this)
    if term.kind not in ("date", "datetime") or unit not in ("year", "quarter", "month", "week", "day"):
        raise Unsupported("DATE_TRUNC takes 'year', 'quarter', 'month', 'week' or 'day' and a date")
    return Term(d.DateStart(term.expression, unit), "date")  # type: ignore[arg-type]


# Days between dates, and intervals ---------------------------------------------------------------------------------------

#: Units of intervals: in days, or in months.
_DAYS: Mapping[str, int] = {"DAY": 1, "WEEK": 7}
_MONTHS: Mapping[str, int] = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_INTERVALS = "an interval is written as INTERVAL '30 days', or 3 MONTH: a whole number of days, weeks, months, quarters or years"
_WRITTEN = re.compile(r"\s*([+-]?\d{1,7})\s*")


def days_between(later: Term, earlier: Term) -> Term:
    """How many days one date lies after another."""
    numbers = [_day_number(term) for term in (later, earlier)]
    difference = arithmetic("-", numbers[0], numbers[1])
    if all(term.values is not None for term in numbers):
        return difference
    # Any two dates of the calendar: no bounds that anybody means.
    return replace(difference, low=None, high=None, values=None, hint=_hint(later, earlier))


def _day_number(term: Term) -> Term:
    if term.kind not in ("date", "datetime"):
        raise Unsupported(f"days are counted between two dates, not with a {term.kind}")
    held = term.expression
    if isinstance(held, e.Literal) and isinstance(held.value, datetime.date):
        return constant(_days(held.value))
    listed = _listed_dates(term)
    number = d.DayNumber(held)
    low, high = (Fraction(int(end)) for end in number.ends)
    if listed:
        numbers = tuple(dict.fromkeys(_days(value) for value in listed))
        # The declared days; a record of another day counts as the nearest of them.
        return Term(number, "integer", Fraction(min(numbers)), Fraction(max(numbers)), numbers, sure=False)
    return Term(number, "integer", low, high)


def _days(value: datetime.date) -> int:
    day = value.date() if isinstance(value, datetime.datetime) else value
    return (day - d.EPOCH).days


def _difference(node: exp.DateDiff, terms: Terms) -> Term:
    unit = str(getattr(node.args.get("unit"), "this", node.args.get("unit") or "DAY")).upper()
    if unit not in ("DAY", "DAYS"):
        raise Unsupported(
            "DATEDIFF counts days: DATEDIFF('day', a, b). For years write EXTRACT(YEAR FROM b) - EXTRACT(YEAR FROM a), for "
            "months 12 times that plus EXTRACT(MONTH FROM b) - EXTRACT(MONTH FROM a); inside SUM or AVG number the months in a "
            "sub-query first: FROM (SELECT unit, 12 * EXTRACT(YEAR FROM a) + EXTRACT(MONTH FROM a) AS m FROM t) AS t"
        )
    return days_between(terms(node.this), terms(node.expression))


def moved_date(term: Term, interval: exp.Interval, sign: int) -> Term:
    """A date moved by a constant interval; a column by days alone."""
    months, days = interval_of(interval)
    return _moved(term, sign * months, sign * days)


def moved_by_days(term: Term, days: Term, sign: int) -> Term:
    """A date and a constant number of days."""
    number = days.constant
    if number is None or number.denominator != 1 or abs(number) > d.CALENDAR:
        raise Unsupported("a date is moved by a constant number of days: day + 7, or day + INTERVAL '7 days'")
    return _moved(term, 0, sign * int(number))


def interval_of(node: exp.Interval) -> tuple[int, int]:
    """An interval as months and days."""
    unit = str(getattr(node.args.get("unit"), "this", "")).upper().removesuffix("S")
    written = node.this.this if isinstance(node.this, exp.Literal) else None
    number = None if written is None else _WRITTEN.fullmatch(str(written))
    if number is None or unit not in (*_DAYS, *_MONTHS):
        raise Unsupported(_INTERVALS)
    count = int(number.group(1))
    return (0, count * _DAYS[unit]) if unit in _DAYS else (count * _MONTHS[unit], 0)


def shifted(day: datetime.date, months: int, days: int) -> datetime.date:
    """A day so many months and then days later; the last day of a month where that has no such day."""
    try:
        month = day.year * 12 + day.month - 1 + months
        year, place = month // 12, month % 12 + 1
        last = calendar.monthrange(year, place)[1]
        return day.replace(year=year, month=place, day=min(day.day, last)) + datetime.timedelta(days=days)
    except (ValueError, OverflowError, calendar.IllegalMonthError):
        raise Unsupported("a date of the query lies outside the years 1 to 9999") from None


def with_constant_dates(select: exp.Select) -> exp.Select:
    """The query with constant dates that are moved by intervals replaced by the dates they are, in answers as in rows."""
    copied = select.copy()
    for node in reversed(list(copied.find_all(exp.Add, exp.Sub, bfs=True))):
        day, interval = node.this, node.expression
        while isinstance(day, exp.Paren):
            day = day.this
        written = day.this if isinstance(day, exp.Cast) and day.is_type("date") else None
        if isinstance(interval, exp.Interval) and isinstance(written, exp.Literal):
            sign = 1 if isinstance(node, exp.Add) else -1
            months, days = interval_of(interval)
            try:
                start = datetime.date.fromisoformat(str(written.this))
            except ValueError:
                raise Unsupported("a date in the query is not written as 'YYYY-MM-DD'") from None
            moved = shifted(start, sign * months, sign * days)
            node.replace(exp.cast(exp.Literal.string(moved.isoformat()), "DATE"))
    return copied


def _moved(term: Term, months: int, days: int) -> Term:
    held = term.expression
    if isinstance(held, e.Literal) and isinstance(held.value, datetime.date):
        return constant(shifted(held.value, months, days))
    if term.kind != "date" or months:
        raise Unsupported(
            "in rows a date is moved by a constant number of days alone; move the constant on the other side instead: "
            "day >= DATE '2024-12-31' - INTERVAL 3 MONTH"
        )
    if abs(days) > d.CALENDAR:
        raise Unsupported("a date of the query lies outside the years 1 to 9999")
    listed = None
    if term.values is not None:
        listed = tuple(shifted(value, 0, days) if isinstance(value, datetime.date) else None for value in term.values)
    return Term(d.DayShift(held, days), "date", values=listed)


def _added(node: exp.DateAdd | exp.DateSub, terms: Terms) -> Term:
    sign = -1 if isinstance(node, exp.DateSub) else 1
    if isinstance(node.expression, exp.Interval):
        return moved_date(terms(node.this), node.expression, sign)
    return moved_by_days(terms(node.this), terms(node.expression), sign)


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
    Operator(
        "DATEDIFF('day', a, b)", (exp.DateDiff,),
        f"days from a date a to a date b, {_CALENDAR}; also `DATE_DIFF` and `b - a`. To be summed "
        "it needs `CLAMP`, or columns whose dates are listed in the schema",
        _difference, reads=("unit",),
    ),
    Operator(
        "day + INTERVAL '7 days'", (exp.DateAdd, exp.DateSub),
        f"a date so many days later, {_CALENDAR}; also `day - INTERVAL …`, `day + 7` and `DATE_ADD`. A constant date is also "
        "moved by weeks, months, quarters and years", _added, reads=("unit",),
    ),
)  # fmt: skip
