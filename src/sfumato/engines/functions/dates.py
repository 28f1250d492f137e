"""Functions of dates: their parts and starts, days as numbers, and days moved by so many others.

All are missing outside the years 1 to 9999.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.engines.expressions import Dialect, Function, Kind, expect
from sfumato.engines.sql.values import as_kind, literal, text_literal

DatePartName: TypeAlias = OneOf["year", "quarter", "month", "day", "hour", "minute", "weekday", "day_of_year"]
DateStartName: TypeAlias = OneOf["year", "quarter", "month", "week", "day"]

_FIELDS: Mapping[str, str] = {"weekday": "isodow", "day_of_year": "doy"}
_SPARK_FIELDS: Mapping[str, str] = {"weekday": "DAYOFWEEK_ISO", "day_of_year": "DOY"}

#: The day with the number 0.
EPOCH = datetime.date(1970, 1, 1)
#: So many days has the calendar from its first to its last.
CALENDAR = (datetime.date.max - datetime.date.min).days


@dataclass(frozen=True)
class DatePart(Function):
    """A part of a date or datetime as a whole number; weekdays are 1 (Monday) to 7. Missing outside the years 1 to 9999."""

    part: DatePartName

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"datetime"} if self.part in ("hour", "minute") else {"date", "datetime"}, self.part)
        return "integer"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        name = (_SPARK_FIELDS if dialect == "spark" else _FIELDS).get(self.part, self.part)
        part = exp.Anonymous(this="DATE_PART", expressions=[text_literal(name), term])
        return in_calendar(term, kind, as_kind(part, "integer", dialect), dialect)


@dataclass(frozen=True)
class DateStart(Function):
    """The first day of the year, quarter, month, week (Monday) or day in which a date or datetime lies.

    Missing outside the years 1 to 9999.
    """

    part: DateStartName

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"date", "datetime"}, self.part)
        return "date"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        return in_calendar(term, kind, self._start(as_kind(term.copy(), "date", dialect), dialect), dialect)

    def _start(self, day: exp.Expression, dialect: Dialect) -> exp.Expression:
        if self.part == "day":
            return day
        if dialect == "spark":
            return exp.Anonymous(this="TRUNC", expressions=[day, text_literal(self.part)])
        moment = as_kind(day, "datetime", dialect)
        return as_kind(exp.Anonymous(this="DATE_TRUNC", expressions=[text_literal(self.part), moment]), "date", dialect)


def in_calendar(term: exp.Expression, kind: Kind, value: exp.Expression, dialect: Dialect) -> exp.Expression:
    """A value for the years in which all engines have a calendar, not for the infinities of PostgreSQL and DuckDB."""
    if kind == "date":
        first, last = (literal(day, kind, dialect) for day in (datetime.date.min, datetime.date.max))
    else:
        first, last = (literal(moment, kind, dialect) for moment in (datetime.datetime.min, datetime.datetime.max))
    return exp.Case(ifs=[exp.If(this=exp.Between(this=term.copy(), low=first, high=last), true=value)])


@dataclass(frozen=True)
class DayNumber(Function):
    """How many days after 1970-01-01 a date, or the date of a datetime, lies."""

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"date", "datetime"}, "DayNumber")
        return "integer"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        day = as_kind(term.copy(), "date", dialect)
        epoch = literal(EPOCH, "date", dialect)
        if dialect == "spark":
            days: exp.Expression = exp.Anonymous(this="DATEDIFF", expressions=[day, epoch])
        else:
            days = exp.Paren(this=exp.Sub(this=day, expression=epoch))
        return in_calendar(term, kind, as_kind(days, "integer", dialect), dialect)

    @property
    def largest(self) -> int:
        return CALENDAR

    @property
    def ends(self) -> tuple[float, float]:
        return float((datetime.date.min - EPOCH).days), float((datetime.date.max - EPOCH).days)

    @property
    def copies(self) -> int:
        return 2


@dataclass(frozen=True)
class DayShift(Function):
    """The date so many days later, or earlier; missing where that is no date of the calendar."""

    days: int

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"date"}, "DayShift")
        if abs(self.days) > CALENDAR:
            raise Unsupported("DayShift needs fewer days than the calendar has")
        return "date"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        if dialect == "spark":
            moved: exp.Expression = exp.Anonymous(this="DATE_ADD", expressions=[term, exp.Literal.number(self.days)])
        else:
            days = exp.Literal.number(abs(self.days))
            moved = (exp.Sub if self.days < 0 else exp.Add)(this=term, expression=days)
        span = datetime.timedelta(days=abs(self.days))
        first = datetime.date.min + (span if self.days < 0 else datetime.timedelta(0))
        last = datetime.date.max - (span if self.days > 0 else datetime.timedelta(0))
        inside = exp.Between(this=term.copy(), low=literal(first, kind, dialect), high=literal(last, kind, dialect))
        return exp.Case(ifs=[exp.If(this=inside, true=as_kind(moved, "date", dialect))])

    @property
    def copies(self) -> int:
        return 2
