"""Dates that no release can hold: outside the years 1 to 9999, or infinite, which DuckDB, PostgreSQL and Spark can store."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfumato.core.errors import SourceError, all_at_once
from sfumato.engines.class_queries import ROWS
from sfumato.engines.expressions import Compare, Kind, Literal, Or, Reference
from sfumato.engines.plan import AggregateColumn, Group, Scan
from sfumato.engines.sql.relation import SqlRelation

if TYPE_CHECKING:
    from sfumato.data.relation import Relation

_FIRST, _LAST = datetime.datetime.min, datetime.datetime.max
_ENDS: Mapping[Kind, tuple[datetime.date, datetime.date]] = {
    "date": (datetime.date.min, datetime.date.max),
    "datetime": (_FIRST, _LAST),
    "instant": (_FIRST.replace(tzinfo=datetime.UTC), _LAST.replace(tzinfo=datetime.UTC)),
}


def refuse_other_years(relation: Relation) -> None:
    """Count, in one pass of its engine, the dates of a table that cannot be published, and refuse it where there is one.

    Where reading is lenient such dates are missing, and a table in this process was refused when it was read.
    """
    if not isinstance(relation, SqlRelation):
        return
    fields = [each for each in relation.fields.values() if each.kind in _ENDS and each.stored != "string" and not each.lenient]
    if not fields:
        return
    counts = []
    for place, field in enumerate(fields):
        date, (first, last) = Reference(field.name), _ENDS[field.kind]
        outside = Or((Compare("<", date, Literal(first, field.kind)), Compare(">", date, Literal(last, field.kind))))
        counts += [AggregateColumn(f"dates{place}", "count", date), AggregateColumn(f"outside{place}", "count", where=outside)]
    (answer,) = relation.run(Group(Scan(ROWS, tuple(fields)), (), tuple(counts))).to_pylist()
    counted = [(field.name, answer[f"outside{place}"], answer[f"dates{place}"]) for place, field in enumerate(fields)]
    faults = (
        f"column '{name}' has {odd:,} of {dates:,} dates outside the years 1 to 9999" for name, odd, dates in counted if odd
    )
    all_at_once(SourceError, "dates that no release can hold (correct them, or make them missing, first)", faults)
