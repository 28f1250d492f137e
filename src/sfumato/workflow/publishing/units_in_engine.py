"""Different units behind the classes of a recoding, counted by the engine before the column that names them is dropped."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.engines import class_queries
from sfumato.engines.expressions import Reference
from sfumato.engines.plan import AggregateColumn, Group
from sfumato.engines.plannable import Plannable
from sfumato.measures.guarantees.grouped import GroupedTable, UnitsOfClasses
from sfumato.measures.guarantees.measure import measure_grouped
from sfumato.workflow.publishing.claims import UnitCounts, counts_units, refuse_violations

if TYPE_CHECKING:
    from sfumato.data.recoding import RecodingTable
    from sfumato.workflow.protect import ReleaseRequest

_UNITS = "\x00units of a class"
_RECORDS = "\x00records of a class"


def units_of_classes(relation: Plannable, recoding: RecodingTable, unit: str, request: ReleaseRequest) -> UnitCounts:
    """Measure what counts different people on the classes as they will be shown; outsiders cannot repeat this."""
    counting = [each for each in request.guarantees if isinstance(each, ClassGuarantee) and counts_units(each)]
    values = tuple(dict.fromkeys(each.sensitive for each in counting if each.sensitive is not None))
    cells = class_queries.cell_table(recoding, relation.fields)
    rows = class_queries.recode_plan(relation.fields, recoding, cells, (*request.plan.keep, unit))
    counted = relation.run(
        Group(rows, (class_queries.CLASS,), (AggregateColumn(_UNITS, "count_distinct", Reference(unit)),)),
        {class_queries.CELLS: cells},
    )
    grouped = relation.run(
        Group(rows, (class_queries.CLASS, *values), (AggregateColumn(_RECORDS, "count"),)), {class_queries.CELLS: cells}
    )
    units = UnitsOfClasses(_shown(recoding, counted), counted.column(_UNITS).to_numpy().astype(np.int64))
    shown = _shown(recoding, grouped)
    for name in values:
        shown = shown.append_column(name, grouped.column(name))
    groups = GroupedTable(shown, grouped.column(_RECORDS).to_numpy().astype(np.int64), (units,))
    described = request.people.schema.replace(
        columns={name: column for name, column in request.people.schema.columns.items() if name in shown.column_names}
    )
    measured = measure_grouped(groups, described, counting)
    refuse_violations(list(zip(counting, measured, strict=True)), "the recoded table")
    return UnitCounts(unit, MappingProxyType(dict(zip(counting, measured, strict=True))))


def _shown(recoding: RecodingTable, grouped: pa.Table) -> pa.Table:
    """What the classes of these groups show."""
    return recoding.classes.take(grouped.column(class_queries.CLASS))
