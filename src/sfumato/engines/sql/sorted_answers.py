"""Answers in the order of a release: sorted by their columns, text by its bytes, missing values last, on every engine.

It is the order of `workflow.publishing.released_form`, so that rows that an engine wrote lie as they would have been saved from
memory. Before they are sorted numbers get their one form: no NaN, no negative zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from sfumato.core.errors import MissingColumn, Unsupported, all_at_once
from sfumato.engines.canonical import ARROW_TYPES, canonical_column
from sfumato.engines.expressions import Dialect, Kind
from sfumato.engines.sql.compile import CompiledQuery, without_nan
from sfumato.engines.sql.values import as_kind, literal


def plain_type(kind: Kind) -> pa.DataType:
    """The Arrow type in which values of a kind are written; text has no dictionary of its own."""
    return pa.string() if kind == "string" else ARROW_TYPES[kind]


def plain_schema(columns: Mapping[str, Kind]) -> pa.Schema:
    """The Arrow schema of written rows."""
    return pa.schema([(name, plain_type(kind)) for name, kind in columns.items()])


def plain_batch(answer: pa.Table, query: CompiledQuery) -> pa.RecordBatch:
    """A batch of a query's answer in the types in which it is written, under the plan's names."""
    columns = []
    for column, (name, kind) in zip(answer.columns, query.columns.items(), strict=True):
        target = plain_type(kind)
        value = column.cast(target) if kind == "string" else canonical_column(column, name, kind)
        if value.type != target:
            raise Unsupported(f"column '{name}' holds moments finer than microseconds, which engines do not write alike")
        columns.append(value.combine_chunks())
    return pa.RecordBatch.from_arrays(columns, schema=plain_schema(query.columns))


def sort_columns(columns: Mapping[str, Kind], order: Sequence[str]) -> tuple[str, ...]:
    """The columns to sort by: `order` first, then all others, so that only equal rows tie."""
    faults = (f"there is no column '{name}' to sort by" for name in dict.fromkeys(order) if name not in columns)
    all_at_once(MissingColumn, "order", faults)
    return tuple(dict.fromkeys([*order, *columns]))


def in_order(query: CompiledQuery, order: Sequence[str]) -> CompiledQuery:
    """The same answer, sorted by `order` and then by all other columns."""
    places = {name: f"v{place}" for place, name in enumerate(query.columns)}
    values = plain_values(query)
    shown = [exp.column(place, table="r") for place in places.values()]
    keys = [exp.Ordered(this=exp.column(places[n], table="r"), nulls_first=False) for n in sort_columns(query.columns, order)]
    rows = exp.select(*shown).from_(values.subquery("r")).order_by(*keys)
    return CompiledQuery(rows, query.dialect, query.columns)


def plain_values(query: CompiledQuery) -> exp.Select:
    """The answer with every value in its one form, its columns called `v0`, `v1`, …"""
    names = query.physical_names()
    values = [
        exp.alias_(_plain(exp.column(name, table="q"), kind, query.dialect), f"v{place}")
        for place, (name, kind) in enumerate(zip(names, query.columns.values(), strict=True))
    ]
    return exp.select(*values).from_(query.expression.subquery("q"))


def _plain(value: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
    if kind != "number":
        return as_kind(value, kind, dialect)
    zero = literal(0.0, "number", dialect)
    # A negative zero equals zero and would be sorted before it by some engines.
    positive = exp.If(this=exp.EQ(this=value.copy(), expression=zero), true=zero.copy())
    return exp.Case(ifs=[positive], default=without_nan(value, dialect))
