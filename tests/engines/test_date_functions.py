"""Days as numbers, days moved by others, and texts one after the other: one value on every engine, for every input."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from sfumato.core.errors import SchemaError
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.class_queries import ROWS
from sfumato.engines.functions import dates as d
from sfumato.engines.plan import validate
from tests.engines.conftest import OpenTable
from tests.engines.test_functions import DATES, MOMENTS, TEXTS, X, computed, each


def shifted(day: datetime.date, days: int) -> datetime.date | None:
    try:
        return day + datetime.timedelta(days=days)
    except OverflowError:
        return None


def test_days_are_counted_from_one_day(on_engine: OpenTable) -> None:
    found = computed(on_engine, DATES, "date", pa.date32(), number=d.DayNumber(X))
    assert found["number"] == each(lambda day: (day - datetime.date(1970, 1, 1)).days, DATES)
    found = computed(on_engine, MOMENTS, "datetime", pa.timestamp("us"), number=d.DayNumber(X))
    assert found["number"] == each(lambda moment: (moment.date() - datetime.date(1970, 1, 1)).days, MOMENTS)


def test_dates_are_moved_and_missing_outside_the_calendar(on_engine: OpenTable) -> None:
    moves = {"none": 0, "later": 31, "earlier": -400, "far": d.CALENDAR, "back": -d.CALENDAR}
    found = computed(on_engine, DATES, "date", pa.date32(), **{name: d.DayShift(X, days) for name, days in moves.items()})
    for name, days in moves.items():
        assert found[name] == each(lambda day, days=days: shifted(day, days), DATES)


def test_texts_are_joined_and_missing_where_one_is(on_engine: OpenTable) -> None:
    found = computed(on_engine, TEXTS, "string", pa.string(), joined=e.Joined((X, e.Literal("/'%"), X)), alone=e.Joined((X,)))
    assert found["joined"] == each(lambda text: f"{text}/'%{text}", TEXTS)
    assert found["alone"] == TEXTS


def test_other_kinds_are_refused() -> None:
    scan = p.Scan(ROWS, (p.Field("x", "integer"), p.Field("m", "datetime"), p.Field("d", "date")))
    for expression in (
        d.DayNumber(X),
        d.DayShift(e.Reference("m"), 1),
        d.DayShift(e.Reference("d"), d.CALENDAR + 1),
        e.Joined((X, X)),
    ):
        with pytest.raises(SchemaError):
            validate(p.Project(scan, (p.Named("y", expression),)))
