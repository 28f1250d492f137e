"""Dates in ISO form: month, quarter, year, decade."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

from sfumato.data.schema import HierarchySpec
from sfumato.data.value_kinds.base import Groups, ValueKind


def groups(value: str) -> Groups:
    """Nothing but whether it is a date; units of the calendar describe the tree."""
    if not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])", value):
        return None
    try:
        datetime.date.fromisoformat(value[:10])
    except ValueError:
        return None
    return ()


def units(values: Sequence[str]) -> HierarchySpec:
    """Units of the calendar, which do not depend on the values."""
    return HierarchySpec(dates=("month", "quarter", "year", "decade"))


KIND = ValueKind(
    "dates",
    "dates (year-month-day)",
    (),
    ("date", "datum", "birthdate", "dob", "birth", "geburtsdatum", "admission", "discharge", "fecha", "data"),
    groups,
    telling=True,
    parameters=units,
)
