"""Sub-queries that aggregate per unit: one row per unit, or per unit and further keys.

`SELECT user_id, SUM(amount) AS total FROM purchases GROUP BY user_id` keeps every row with its unit, so that the outer
query can bound and count it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER, Asked, is_aggregate, taken_out
from sfumato.dp.sql.operators.language import lower
from sfumato.dp.sql.operators.term import EXACT, Term, as_number, bounded
from sfumato.dp.sql.parse import group_nodes, without_alias
from sfumato.dp.sql.reading.catalogue import Lowering, QueryRows, Visible
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.functions import numbers as f

#: Sums within a unit of a column without bounds are taken in steps of 2^-20 and up to 2^31 per row.
_FINE, _LARGE = 2**20, 2.0**31


def per_unit_rows(select: exp.Select, rows: QueryRows, lowering: Lowering) -> QueryRows:
    """The rows of a sub-query with GROUP BY, DISTINCT or aggregates."""
    if rows.unit is None:
        raise Unsupported(
            "a sub-query that aggregates needs a unit column, and every record is a unit of its own here; "
            "open the session with unit=…, or aggregate in the outer query alone"
        )
    keys, items = _keys(select, rows)
    if not any(key.unit for key in keys):
        raise Unsupported(
            "a sub-query that aggregates must group by the unit, so that each of its rows belongs to one unit: "
            "SELECT unit, … GROUP BY unit, …"
        )
    by_text: dict[str, Asked] = {}
    shown = [(item, taken_out(without_alias(item), by_text)) for item in items]
    having = select.args.get("having")
    kept = None if having is None else taken_out(having.this, by_text)
    named = {key.name: lowering.fresh("v") for key in keys}
    inputs = [p.Named(named[key.name], bounded(key.term).expression) for key in keys]
    terms: dict[str, Term] = {}
    aggregates: list[p.AggregateColumn] = []
    for text, asked in by_text.items():
        name = lowering.fresh("v")
        terms[text] = _aggregate(asked, name, rows, inputs, aggregates, lowering)
    unit = next(named[key.name] for key in keys if key.unit)
    source = p.Project(rows.plan, tuple(inputs))
    plan: p.Plan = p.PerUnitAggregate(source, unit, tuple(n for n in named.values() if n != unit), tuple(aggregates))

    def resolve(node: exp.Column) -> Term:
        if node.name.startswith(PLACEHOLDER):
            return terms[node.name.removeprefix(PLACEHOLDER)]
        column = rows.find(node)
        for key in keys:
            if key.term.expression == column.term.expression:
                return replace(bounded(key.term), expression=e.Reference(named[key.name]))
        raise Unsupported(f"the column '{node.name[:60]}' must be in GROUP BY or inside an aggregate")

    if kept is not None:
        held = lower(kept, resolve)
        if held.kind != "boolean":
            raise Unsupported("HAVING needs a condition")
        plan = p.Filter(plan, held.expression)
    outputs, visible = [p.Named(unit, e.Reference(unit))], []
    for item, node in shown:
        key = _key_of(item, keys, rows)
        if key is not None:
            term = replace(bounded(key.term), expression=e.Reference(named[key.name]))
        else:
            term = lower(node, resolve)
        name = lowering.fresh("v")
        outputs.append(p.Named(name, term.expression))
        is_unit = key is not None and key.unit
        visible.append(Visible("", item.alias_or_name, replace(term, expression=e.Reference(name)), is_unit))
    result = QueryRows(
        p.Project(plan, tuple(outputs)), tuple(visible), unit, rows.private, unlimited=rows.unlimited, copies=rows.copies
    )
    return replace(result, single=True, unlimited=0, copies=1) if len(keys) == 1 else result


def _keys(select: exp.Select, rows: QueryRows) -> tuple[list[Visible], list[exp.Expression]]:
    items = list(select.expressions)
    if any(isinstance(item, exp.Star) for item in items):
        raise Unsupported("SELECT * cannot be grouped; name the columns")
    group = select.args.get("group")
    if select.args.get("distinct"):
        if group is not None or select.args["distinct"].args.get("on"):
            raise Unsupported("use either GROUP BY or DISTINCT")
        nodes = list(items)
    else:
        nodes = group_nodes(select)
    keys: list[Visible] = []
    for node in nodes:
        plain = without_alias(node)
        aliased = next((i for i in items if isinstance(plain, exp.Column) and not plain.table and i.alias == plain.name), None)
        if aliased is not None and not any(c.name.lower() == plain.name.lower() for c in rows.columns):
            plain = without_alias(aliased)  # a column of the rows comes before an alias of the same name
        if isinstance(plain, exp.Column):
            held = rows.find(plain)
            term, unit = held.term, held.unit
        else:
            term, unit = lower(plain, rows.resolve), False
        if not any(key.term.expression == term.expression for key in keys):
            keys.append(Visible("", f"{len(keys)}", term, unit))
    return keys, items


def _key_of(item: exp.Expression, keys: list[Visible], rows: QueryRows) -> Visible | None:
    """The key that an item of SELECT shows: whatever it is called, the same expression over rows."""
    plain = without_alias(item)
    if any(is_aggregate(part) for part in plain.walk()):
        return None
    expression = lower(plain, rows.resolve).expression
    return next((key for key in keys if key.term.expression == expression), None)


def _aggregate(
    asked: Asked, name: str, rows: QueryRows, inputs: list[p.Named], aggregates: list[p.AggregateColumn], lowering: Lowering
) -> Term:
    where = None if asked.where is None else lower(asked.where, rows.resolve)
    term = None if asked.argument is None else bounded(lower(asked.argument, rows.resolve))

    def column_of(expression: e.Expression) -> e.Expression:
        column = lowering.fresh("v")
        inputs.append(p.Named(column, expression))
        return e.Reference(column)

    condition = None if where is None else column_of(where.expression)
    aggregate = asked.aggregate
    if aggregate.measures in ("rows", "units"):
        counted = None if term is None else column_of(term.expression)
        aggregates.append(p.AggregateColumn(name, aggregate.per_unit or "count", counted, condition))
        return Term(e.Reference(name), "integer", Fraction(0))
    number = aggregate.measures in ("sum", "moments") and not aggregate.squares
    if term is None or (number and not term.numeric):
        raise Unsupported(f"{asked.function.upper()} needs a number")
    if aggregate.per_unit is None:
        raise Unsupported(
            f"{asked.function.upper()} inside a sub-query is not supported; take SUM and COUNT per unit there, "
            "or AVG in the outer query"
        )
    if aggregate.measures == "tree":
        if term.kind == "boolean":
            raise Unsupported("MIN and MAX of a condition: use SUM(CASE WHEN … THEN 1 ELSE 0 END) > 0")
        aggregates.append(p.AggregateColumn(name, aggregate.per_unit, column_of(term.expression), condition))
        return replace(term, expression=e.Reference(name), values=None)
    return _sum(term, name, column_of, condition, aggregates)


def _sum(
    term: Term,
    name: str,
    column_of: Callable[[e.Expression], e.Expression],
    condition: e.Expression | None,
    aggregates: list[p.AggregateColumn],
) -> Term:
    low = Fraction(0) if term.low is not None and term.low >= 0 else None
    high = Fraction(0) if term.high is not None and term.high <= 0 else None
    if term.kind == "integer":
        aggregates.append(p.AggregateColumn(name, "sum", column_of(term.expression), condition))
        return Term(f.FixedPoint(e.Reference(name), 1, float(EXACT)), "integer", low, high)
    # Sums of floating-point numbers depend on the order of rows; sums of fixed-point integers do not.
    largest = max((abs(end) for end in (term.low, term.high) if end is not None), default=Fraction(_LARGE))
    limit = float(largest) if term.low is not None and term.high is not None else _LARGE
    scale = _FINE if limit * _FINE < 2**61 else 1
    fixed = f.FixedPoint(as_number(term).expression, scale, max(limit, 1.0))
    aggregates.append(p.AggregateColumn(name, "sum", column_of(fixed), condition))
    total = e.Cast(e.Reference(name), "number")
    return Term(f.Divide(total, float(scale)) if scale != 1 else total, "number", low, high)
