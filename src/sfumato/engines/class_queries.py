"""The two questions behind a published table, as plans: which classes are there, and into which does each
row go.

`group` is one GROUP BY; a recoding is one join of the rows with the table of cells, where cells whose
records are divided are numbered in an order that depends on values alone, so that every engine divides them
alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import MissingColumn, SourceError, all_at_once
from sfumato.data.recoding import SUPPRESSED, RecodingTable
from sfumato.data.relation import COUNT, SHARES, UNITS, WEIGHT, WHOLE
from sfumato.engines.canonical import ARROW_TYPES, canonical_column, canonical_columns, canonical_table, kind_of_type, one_array
from sfumato.engines.expressions import And, Compare, IsMissing, Not, Reference
from sfumato.engines.plan import (
    AggregateColumn,
    Field,
    Filter,
    Group,
    Join,
    Numbering,
    Order,
    Plan,
    Project,
    Scan,
    column,
)

#: The names under which a plan calls the relation's own rows and the uploaded table of cells.
ROWS = "rows"
CELLS = "cells"
SHOWN = "shown"

CLASS = "\x00class"
FIRST = "\x00first"
LAST = "\x00last"
NUMBER = "\x00number"
TUPLES = "\x00tuples"


def group_plan(fields: Mapping[str, Field], columns: Sequence[str], unit: str | None, weight: str | None) -> Plan:
    """The distinct tuples of `columns` with COUNT and WEIGHT; with a unit one row per tuple and number TUPLES of tuples in
    which a unit has rows (missing for rows without one), with the UNITS of that number. `grouped_table` makes one of both.
    """
    read = dict.fromkeys([*columns, *(extra for extra in (unit, weight) if extra is not None)])
    # Counting all rows still needs some column to read.
    source: Plan = Scan(ROWS, tuple(fields[name] for name in read) or (next(iter(fields.values())),))
    aggregates = [AggregateColumn(COUNT, "count")]
    if weight is not None:
        aggregates.append(AggregateColumn(WEIGHT, "sum", Reference(weight)))
    if unit is None:
        return Group(source, tuple(columns), tuple(aggregates))
    pairs = Group(source, tuple(dict.fromkeys([unit, *columns])), tuple(aggregates))
    tuples = Group(Filter(pairs, Not(IsMissing(Reference(unit)))), (unit,), (AggregateColumn(TUPLES, "count"),))
    sums = [AggregateColumn(entry.name, "sum", Reference(entry.name)) for entry in aggregates]
    return Group(Join(pairs, tuples, ((unit, unit),), kind="left"), (*columns, TUPLES), (AggregateColumn(UNITS, "count"), *sums))


def grouped_table(answer: pa.Table) -> pa.Table:
    """The answer to `group_plan`: no tuple without rows, the sum of no weight is 0, weights in floating
    point."""
    if TUPLES not in answer.column_names and answer.num_rows == 1 and answer.column(COUNT)[0].as_py() == 0:
        answer = answer.slice(0, 0)
    if WEIGHT in answer.column_names:
        place = answer.column_names.index(WEIGHT)
        weights = canonical_column(answer.column(WEIGHT), WEIGHT, "number").fill_null(0.0)
        answer = answer.set_column(place, pa.field(WEIGHT, pa.float64()), weights)
    return _added_up(answer) if TUPLES in answer.column_names else answer


def _added_up(answer: pa.Table) -> pa.Table:
    """One row per tuple: what its units give to it, and all counts added up over the numbers of tuples that units have."""
    keys = answer.column_names[: answer.column_names.index(TUPLES)]
    tuples, count = answer.column(TUPLES), answer.column(COUNT).cast(pa.int64())
    units = pc.if_else(tuples.is_valid(), answer.column(UNITS), count)
    shares = pc.multiply(units, pc.divide(WHOLE, tuples.fill_null(1)))
    sums = {COUNT: count, UNITS: units, SHARES: shares}
    if WEIGHT in answer.column_names:
        sums[WEIGHT] = answer.column(WEIGHT)
    rows = pa.table({**{name: answer.column(name) for name in keys}, **sums}).unify_dictionaries()
    if not rows.num_rows:
        return rows
    table = rows.group_by(keys).aggregate([(name, "sum") for name in sums])
    return table.select([*keys, *(f"{name}_sum" for name in sums)]).rename_columns([*keys, *sums])


def recode_plan(fields: Mapping[str, Field], recoding: RecodingTable, cells: pa.Table, keep: Sequence[str]) -> Plan:
    """The kept columns that are not replaced, and the class of each row that is not suppressed."""
    keys = tuple(recoding.keys.column_names)
    carried = tuple(name for name in keep if name not in recoding.quasi)
    source: Plan = Scan(ROWS, tuple(fields[name] for name in dict.fromkeys([*keys, *carried])))
    if recoding.split:
        order = tuple(Order(Reference(name)) for name in deciding_columns(recoding, keep))
        source = Numbering(source, NUMBER, keys, order)
    joined: Plan = Join(source, Scan(CELLS, table_fields(cells)), tuple((key, key) for key in keys))
    if recoding.split:
        after = Compare(">", Reference(NUMBER), Reference(FIRST))
        before = Compare("<=", Reference(NUMBER), Reference(LAST))
        joined = Filter(joined, And((after, before)))
    return Project(joined, (*(column(name) for name in carried), column(CLASS)))


def release_plan(fields: Mapping[str, Field], recoding: RecodingTable, keep: Sequence[str]) -> tuple[Plan, dict[str, pa.Table]]:
    """The released rows as a plan, with what it joins: which cell goes into which class, and what a class shows."""
    cells = cell_table(recoding, fields)
    numbers = pa.array(np.arange(recoding.classes.num_rows, dtype=np.int64))
    shown = canonical_columns(recoding.classes).append_column(CLASS, numbers)
    rows = recode_plan(fields, recoding, cells, keep)
    joined = Join(rows, Scan(SHOWN, table_fields(shown)), ((CLASS, CLASS),))
    return Project(joined, tuple(column(name) for name in keep)), {CELLS: cells, SHOWN: shown}


def counted_plan(fields: Mapping[str, Field], recoding: RecodingTable, cells: pa.Table, keep: Sequence[str]) -> Plan:
    """The same, rows that hold the same once, with how many they are."""
    carried = tuple(name for name in keep if name not in recoding.quasi)
    return Group(recode_plan(fields, recoding, cells, keep), (*carried, CLASS), (AggregateColumn(COUNT, "count"),))


def cell_table(recoding: RecodingTable, fields: Mapping[str, Field]) -> pa.Table:
    """What is uploaded for `recode_plan`: the key of each entry that is kept, its numbers and its class."""
    kept = np.flatnonzero(recoding.klass >= 0)
    names = recoding.keys.column_names
    keys = canonical_table(recoding.keys, names, [fields[name].kind for name in names])
    cells = keys.take(pa.array(recoding.key[kept]))
    if recoding.split:
        first = recoding.first[kept]
        cells = cells.append_column(FIRST, pa.array(first, type=pa.int64()))
        cells = cells.append_column(LAST, pa.array(first + recoding.count[kept], type=pa.int64()))
    return cells.append_column(CLASS, pa.array(recoding.klass[kept], type=pa.int64()))


def deciding_columns(recoding: RecodingTable, keep: Sequence[str]) -> tuple[str, ...]:
    """The kept columns in which records of one cell may differ: their order says which record is which."""
    fixed = {*recoding.keys.column_names, *recoding.quasi}
    return tuple(name for name in keep if name not in fixed)


def table_fields(table: pa.Table) -> tuple[Field, ...]:
    """The columns of a table in canonical form, as fields of a plan."""
    fields = []
    for name, arrow_type in zip(table.column_names, table.schema.types, strict=True):
        kind = kind_of_type(arrow_type)
        if kind is None:
            raise SourceError(f"column '{name}' has the type {arrow_type}, which engines cannot compare")
        fields.append(Field(name, kind))
    return tuple(fields)


def released_table(
    recoding: RecodingTable,
    keep: Sequence[str],
    klass: NDArray[np.integer[Any]],  # of any size
    carried: Mapping[str, pa.ChunkedArray],
) -> pa.Table:
    """The released rows: `klass[r]` is the class of row r, `carried` the columns that stay as they are."""
    columns = []
    for name in keep:
        columns.append(_shown(recoding.classes.column(name), klass, name) if name in recoding.quasi else carried[name])
    if not columns:
        return pa.table({})
    return pa.table(columns, schema=pa.schema([(n, c.type) for n, c in zip(keep, columns, strict=True)]))


def check_recoding(recoding: RecodingTable, keep: Sequence[str], present: Sequence[str]) -> None:
    """All columns that a recoding names must be there."""
    needed = dict.fromkeys([*recoding.keys.column_names, *keep])
    faults = [f"there is no column '{name}' to recode or keep" for name in needed if name not in present]
    all_at_once(MissingColumn, "recoding", faults)


def check_all_assigned(recoding: RecodingTable, released: int) -> None:
    """Every record that should be released is; otherwise the rows changed after they were grouped."""
    expected = int(recoding.count[recoding.klass != SUPPRESSED].sum())
    if released != expected:
        raise SourceError(
            f"the table changed while it was being protected: {expected:,} records should be released but "
            f"{released:,} match. Nothing was released; protect a snapshot of the table or try again."
        )


def _shown(per_class: pa.ChunkedArray, klass: NDArray[np.integer[Any]], name: str) -> pa.ChunkedArray:
    """The value that each row's class shows."""
    values = one_array(canonical_column(per_class, name))
    if pa.types.is_dictionary(values.type) and values.indices.null_count == 0:
        codes = values.indices.to_numpy()[klass] if len(values) else np.zeros(0, np.int32)
        encoded: pa.Array = pa.DictionaryArray.from_arrays(pa.array(codes), values.dictionary)
    elif len(values) == 0:
        encoded = pa.array([], type=values.type)
    else:
        encoded = values.take(pa.array(klass))
    return pa.chunked_array([encoded], type=ARROW_TYPES[kind_of_type(values.type) or "string"])
