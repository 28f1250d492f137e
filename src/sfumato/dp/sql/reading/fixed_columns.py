"""Columns that the owner declares the same in all rows of a unit, made so before anything else looks at them.

Each row shows the least value that any row of its unit has, missing ones aside. That value is decided by the unit's own rows
alone, so that every row still belongs to one unit; and where a condition on the column holds for one row of a unit, it holds for
all. Nobody has to be believed: where the declaration is wrong, the answer is about the value that was fixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfumato.dp.sql.reading.catalogue import KnownColumn, Lowering
from sfumato.engines import expressions as e
from sfumato.engines import plan as p


def with_fixed_columns(
    scan: p.Scan, names: Mapping[str, str], unit: str, columns: Sequence[KnownColumn], lowering: Lowering
) -> p.Plan:
    """The rows of a scan under these names, with one value per unit in each of the columns; rows without a unit are left out."""
    fixed = {column.name for column in columns}
    rows = p.Project(scan, tuple(p.Named(names[c.name], e.Reference(c.name)) for c in scan.columns if c.name not in fixed))
    held, least = lowering.fresh("v"), {column.name: lowering.fresh("v") for column in columns}
    ordered = {column.name: lowering.fresh("v") for column in columns}
    inputs = [p.Named(ordered[c.name], _ordered(c)) for c in columns]
    source = p.Filter(p.Project(scan, (p.Named(held, e.Reference(unit)), *inputs)), e.Not(e.IsMissing(e.Reference(held))))
    aggregates = tuple(p.AggregateColumn(least[c.name], "min", e.Reference(ordered[c.name])) for c in columns)
    per_unit = p.PerUnitAggregate(source, held, (), aggregates)
    joined = p.Join(rows, per_unit, ((names[unit], held),))
    carried = [p.Named(names[c.name], e.Reference(names[c.name])) for c in scan.columns if c.name not in fixed]
    return p.Project(joined, (*carried, *(p.Named(names[c.name], _shown(c, least[c.name])) for c in columns)))


def _ordered(column: KnownColumn) -> e.Expression:
    """The column as something that has a least value on every engine: conditions have none."""
    held = e.Reference(column.name)
    if column.field.kind != "boolean":
        return held
    return e.Choose(((held, e.Literal(1)), (e.Not(held), e.Literal(0))), e.Literal(None, "integer"))


def _shown(column: KnownColumn, least: str) -> e.Expression:
    value = e.Reference(least)
    return e.Compare("=", value, e.Literal(1)) if column.field.kind == "boolean" else value
