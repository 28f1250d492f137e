"""Sub-queries of public tables inside expressions, computed first and put in as constants.

`(SELECT SUM(population) FROM regions)` is a number and `IN (SELECT city FROM regions)` a list: public tables need no protection,
and no private row is read for them. The engine computes them under the same rules as everything else, so that a query can call
nothing that a question cannot. Sub-queries of private tables are left for the rules that lower a query.
"""

from __future__ import annotations

import datetime
import math
from typing import Any

from sqlglot import exp

from sfumato.core.errors import SfumatoError, Unsupported
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER, Asked, is_aggregate, taken_out
from sfumato.dp.sql.operators.base import Cell
from sfumato.dp.sql.operators.language import check, evaluate, lower
from sfumato.dp.sql.parse import without_alias
from sfumato.dp.sql.reading.catalogue import Catalogue, Lowering, QueryRows
from sfumato.dp.sql.reading.multiplicity import computed
from sfumato.dp.sql.reading.rows import Scope, source_rows
from sfumato.engines import expressions as e
from sfumato.engines import plan as p

#: A list of constants may be so long; more values are joined instead.
MOST_VALUES = 10_000
_SHAPE = "a sub-query of public tables in an expression is SELECT one expression FROM … WHERE …: no GROUP BY, ORDER BY or LIMIT"


def with_public_constants(select: exp.Select, catalogue: Catalogue) -> exp.Select:
    """The query with its sub-queries of public tables replaced by what they are."""
    if all(table.private for table in catalogue.tables.values()):
        return select
    copied = select.copy()
    scope = Scope().extended(copied)
    # The innermost first: a sub-query may use another.
    for node in reversed(list(copied.find_all(exp.Subquery, exp.In, bfs=True))):
        inner = _inner(node)
        if inner is None or not _is_public(inner, catalogue, scope, frozenset()):
            continue
        if isinstance(node, exp.In):
            node.set("expressions", [_literal(value) for value in _listed(inner, catalogue, scope)])
            node.set("query", None)
        else:
            node.replace(_literal(_single(inner, catalogue, scope)))
    return copied


def _inner(node: exp.Expression) -> exp.Select | None:
    """The SELECT of a sub-query inside an expression; None for one in FROM."""
    if isinstance(node, exp.In):
        query = node.args.get("query")
        inner = query.this if isinstance(query, exp.Subquery) else query
    else:
        beside = isinstance(node.parent, (exp.From, exp.Join, exp.In, exp.CTE, exp.Subquery, exp.Exists))
        inner = None if beside else node.this
    return inner if isinstance(inner, exp.Select) else None


def _is_public(select: exp.Select, catalogue: Catalogue, scope: Scope, seen: frozenset[str]) -> bool:
    """True where every table that is read is public."""
    for table in select.find_all(exp.Table):
        named = scope.find(table.name)
        if named is not None and table.name.lower() not in seen:
            if not _is_public(named[0], catalogue, named[1], seen | {table.name.lower()}):
                return False
        elif not any(own.lower() == table.name.lower() and not held.private for own, held in catalogue.tables.items()):
            return False
    return select.find(exp.Table) is not None


def _single(select: exp.Select, catalogue: Catalogue, scope: Scope) -> Cell:
    """The one value of a sub-query; missing where it has no row."""
    node, rows, lowering = _asked(select, catalogue, scope)
    if any(is_aggregate(part) for part in node.walk()):
        return _aggregated(node, rows, lowering)
    values = _column(node, rows, lowering)
    if len(values) > 1:
        raise Unsupported(
            f"a sub-query that stands for one value has {len(values):,} rows; narrow it with WHERE, or aggregate it, for "
            "instance with MAX(…)"
        )
    return values[0] if values else None


def _listed(select: exp.Select, catalogue: Catalogue, scope: Scope) -> list[Cell]:
    node, rows, lowering = _asked(select, catalogue, scope)
    values = list(dict.fromkeys(_column(node, rows, lowering)))
    if None in values:
        raise Unsupported("the sub-query of IN has a missing value, which equals nothing: add WHERE … IS NOT NULL to it")
    if len(values) > MOST_VALUES:
        raise Unsupported(f"the sub-query of IN has more than {MOST_VALUES:,} values; join its table instead")
    return values


def _asked(select: exp.Select, catalogue: Catalogue, scope: Scope) -> tuple[exp.Expression, QueryRows, Lowering]:
    refused = [name for name in ("group", "having", "order", "limit", "offset", "distinct", "with_") if select.args.get(name)]
    if len(select.expressions) != 1 or set(refused) - {"distinct"}:
        raise Unsupported(_SHAPE)
    tables = [table for table in catalogue.tables.values() if not table.private]
    lowering = Lowering(catalogue, referenced=frozenset(name.lower() for table in tables for name in table.columns))
    try:
        rows = source_rows(select, lowering, scope)
        node = without_alias(select.expressions[0])
        if isinstance(node, exp.Star):
            raise Unsupported(_SHAPE)
        return node, rows, lowering
    except SfumatoError as error:
        raise Unsupported(f"in a sub-query of public tables: {error} (it cannot name columns of the query around it)") from None


def _column(node: exp.Expression, rows: QueryRows, lowering: Lowering) -> list[Cell]:
    term = lower(node, rows.resolve)
    plan = p.Project(rows.plan, (p.Named("value", term.expression),))
    values: list[Cell] = computed(plan, lowering.read).column("value").to_pylist()
    return values


def _aggregated(node: exp.Expression, rows: QueryRows, lowering: Lowering) -> Cell:
    asked: dict[str, Asked] = {}
    expression = taken_out(node, asked)
    if any(not column.name.startswith(PLACEHOLDER) for column in expression.find_all(exp.Column)):
        raise Unsupported(_SHAPE)
    check(expression, lambda name: "number")
    inputs: list[p.Named] = [p.Named("row", e.Literal(1))]
    columns: list[p.AggregateColumn] = []
    for number, each in enumerate(asked.values()):
        columns += _aggregate_columns(each, number, rows, inputs)
    (row,) = computed(p.Group(p.Project(rows.plan, tuple(inputs)), (), tuple(columns)), lowering.read).to_pylist()
    return evaluate(expression, {PLACEHOLDER + text: _value(row, number) for number, text in enumerate(asked)})


def _aggregate_columns(asked: Asked, number: int, rows: QueryRows, inputs: list[p.Named]) -> list[p.AggregateColumn]:
    aggregate = asked.aggregate
    mean = aggregate.measures == "moments" and not aggregate.squares
    if aggregate.per_unit is None and not mean:
        raise Unsupported(
            f"{asked.function.upper()} of a public table is not computed here; there are COUNT, SUM, AVG, MIN and MAX"
        )
    where = None
    if asked.where is not None:
        inputs.append(p.Named(f"w{number}", lower(asked.where, rows.resolve).expression))
        where = e.Reference(f"w{number}")
    if asked.argument is None:
        return [p.AggregateColumn(f"a{number}", "count", None, where)]
    term = lower(asked.argument, rows.resolve)
    if (mean or aggregate.measures == "sum") and not term.numeric:
        raise Unsupported(f"{asked.function.upper()} needs a number, not a {term.kind}")
    inputs.append(p.Named(f"x{number}", term.expression))
    held = e.Reference(f"x{number}")
    total = p.AggregateColumn(f"a{number}", aggregate.per_unit or "sum", held, where)
    return [total, p.AggregateColumn(f"n{number}", "count", held, where)] if mean else [total]


def _value(row: dict[str, Any], number: int) -> Cell:
    value = row[f"a{number}"]
    if f"n{number}" in row:
        count = row[f"n{number}"]
        return float(value) / count if count else None
    return int(value) if value is not None and not isinstance(value, (float, str, datetime.date)) else value


def _literal(value: Cell) -> exp.Expression:
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, (int, float)):
        if not math.isfinite(value):
            raise Unsupported("a sub-query of public tables is not a finite number")
        number = exp.Literal.number(repr(abs(value)))
        return exp.Paren(this=exp.Neg(this=number)) if value < 0 else number
    if isinstance(value, datetime.datetime):
        return exp.cast(exp.Literal.string(str(value)), "TIMESTAMP")
    if isinstance(value, datetime.date):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    return exp.Literal.string(str(value))
