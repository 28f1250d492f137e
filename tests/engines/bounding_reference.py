"""Bounded contributions in plain Python: what every engine must agree with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.class_queries import ROWS
from sfumato.engines.functions import numbers as f

FIELDS = (
    p.Field("unit", "string"),
    p.Field("city", "string"),
    p.Field("year", "integer"),
    p.Field("n", "integer"),
    p.Field("ok", "boolean"),
)
SCAN = p.Scan(ROWS, FIELDS)
N, OK, UNIT = e.Reference("n"), e.Reference("ok"), e.Reference("unit")
LARGE = e.Arithmetic("*", f.Clamp(N, -(2**45), 2**45), f.Clamp(N, -(2**45), 2**45))

AGGREGATES = (
    p.AggregateColumn("rows", "count"),
    p.AggregateColumn("known", "count", N),
    p.AggregateColumn("good", "count", None, OK),
    p.AggregateColumn("good_known", "count", N, OK),
    p.AggregateColumn("units", "count_distinct", UNIT),
    p.AggregateColumn("good_units", "count_distinct", UNIT, OK),
    p.AggregateColumn("sum", "sum", N),
    p.AggregateColumn("good_sum", "sum", N, OK),
    p.AggregateColumn("squares", "sum", LARGE),
)

Row = tuple[Any, ...]


def table(rows: Iterable[Row]) -> pa.Table:
    """Rows of (unit, city, year, n, ok)."""
    columns = list(zip(*rows, strict=True)) or [[]] * 5
    types = [pa.string(), pa.string(), pa.int64(), pa.int64(), pa.bool_()]
    names = [field.name for field in FIELDS]
    return pa.table([pa.array(list(c), t) for c, t in zip(columns, types, strict=True)], names=names)


def bounded(
    keys: Sequence[str],
    rows: int | None,
    groups: int | None,
    *,
    within: Sequence[str] = (),
    unit: str | None = "unit",
    salt: str | None = None,
    order: Sequence[p.Order] = (),
    aggregates: Sequence[p.AggregateColumn] | None = None,
) -> p.BoundedGroup:
    """A question over `SCAN`."""
    asked = AGGREGATES if aggregates is None else tuple(aggregates)
    if unit is None:
        asked = tuple(a for a in asked if a.function != "count_distinct")
    return p.BoundedGroup(SCAN, unit, tuple(keys), tuple(within), rows, groups, asked, tuple(order), salt)


def first_kept(rows: Sequence[Row], plan: p.BoundedGroup, order: Callable[[Row], Any]) -> list[Row]:
    """The rows that truncation keeps; `order` is the plan's order as a key, ties are broken by all columns."""
    by_unit: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        if row[0] is not None:
            by_unit[row[0]].append(row)
    kept = []
    for own in by_unit.values():
        own.sort(key=lambda row: (order(row), [canonical(value) for value in row]))
        groups: dict[Row, list[Row]] = defaultdict(list)
        for row in own:
            groups[key_of(row, plan.keys)].append(row)
        for chosen in list(groups.values())[: plan.groups if plan.keys else None]:
            kept += chosen[: plan.rows]
    return kept


def canonical(value: Any) -> Any:
    """Sorts missing values first and text by its bytes."""
    return (value is not None, value.encode() if isinstance(value, str) else 0 if value is None else value)


def key_of(row: Row, keys: Sequence[str]) -> Row:
    """Some columns of a row."""
    places = {field.name: place for place, field in enumerate(FIELDS)}
    return tuple(row[places[key]] for key in keys)


def aggregated(rows: Sequence[Row], names: Sequence[str], *, units: bool = True) -> list[Row]:
    """`AGGREGATES` over some rows, as rows of the result in any order."""
    groups: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key_of(row, names)].append(row)
    if not names and not rows:
        groups[()] = []
    return sorted(((*key, *_aggregates(members, units)) for key, members in groups.items()), key=repr)


def _aggregates(rows: Sequence[Row], units: bool) -> Iterable[Any]:
    known = [row for row in rows if row[3] is not None]
    good = [row for row in rows if row[4]]
    yield from (len(rows), len(known), len(good), len([row for row in good if row[3] is not None]))
    if units:
        yield from (len({row[0] for row in rows}), len({row[0] for row in good}))
    yield _sum(row[3] for row in known)
    yield _sum(row[3] for row in good if row[3] is not None)
    yield _sum(min(max(row[3], -(2**45)), 2**45) ** 2 for row in known)


def _sum(values: Iterable[int]) -> Decimal | None:
    listed = list(values)
    return Decimal(sum(listed)) if listed else None
