"""Days as numbers, and days moved by so many others: missing outside the years 1 to 9999."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.engines.expressions import Dialect, Function, Kind, expect
from sfumato.engines.functions import in_calendar
from sfumato.engines.sql_values import as_kind, literal

#: The day with the number 0.
EPOCH = datetime.date(1970, 1, 1)
#: So many days has the calendar from its first to its last.
CALENDAR = (datetime.date.max - datetime.date.min).days


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
