"""IN (SELECT …) and EXISTS (SELECT …) over private tables: whether a unit has a matching row becomes a column of its rows.

The sub-query is reduced to one row per unit (and per further column that is equated), which a LEFT JOIN on the unit brings to
the rows of the condition. So the rows of one unit are kept or left out by that unit's own rows alone, and none is multiplied.
NOT IN means NOT EXISTS: a missing value matches nothing, and does not make the whole condition unknown as in SQL.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators.aggregates import is_aggregate
from sfumato.dp.sql.operators.language import lower
from sfumato.dp.sql.operators.term import Term, condition
from sfumato.dp.sql.parse import conjuncts, refuse_clauses, without_alias
from sfumato.dp.sql.reading.catalogue import Lowering, QueryRows, Visible
from sfumato.engines import expressions as e
from sfumato.engines import plan as p

#: What the column of a sub-query of a condition begins with; no identifier of a query can.
_MEMBER = "\x00member "

_RECORDS = (
    "a condition about another private table (IN, EXISTS) needs a unit column: every record is a unit of its own here, so that "
    "no row of the other table belongs to it. Open the session with unit=… (--unit), a column that both tables have"
)
_UNEQUATED = (
    "a sub-query of a private table in a condition must equate the unit, so that each row is kept or left out by rows of its own "
    "unit: WHERE unit IN (SELECT unit FROM b WHERE …), or WHERE EXISTS (SELECT 1 FROM b WHERE b.unit = a.unit AND …)"
)
_CORRELATED = (
    "a sub-query of a condition may name columns of the outer query in equalities b.x = a.y joined by AND, and in no other way; "
    "join the tables instead and count units: SELECT COUNT(DISTINCT a.unit) FROM a JOIN b ON a.unit = b.unit WHERE b.x > a.y"
)
_GROUPED = (
    "EXISTS takes a sub-query without GROUP BY, HAVING, aggregates and LIMIT; aggregate per unit with IN instead: "
    "WHERE unit IN (SELECT unit FROM b GROUP BY unit HAVING COUNT(*) > 2)"
)

#: Columns of the outer query with what the sub-query has to be equal to them.
Pairs = list[tuple[Visible, Term, bool]]


class SubQueries(Protocol):
    """How the sub-queries of a condition are read."""

    def private(self, select: exp.Select) -> bool:
        """True when a private table is read anywhere in a sub-query."""

    def origin(self, select: exp.Select) -> QueryRows:
        """The rows of its FROM and JOIN."""

    def filtered(self, rows: QueryRows, node: exp.Expression, select: exp.Select) -> QueryRows:
        """Those of its rows for which a condition holds that looks at them alone."""

    def shown(self, select: exp.Select, rows: QueryRows) -> QueryRows:
        """What it makes of these rows."""


def with_members(rows: QueryRows, node: exp.Expression, lowering: Lowering, read: SubQueries) -> tuple[QueryRows, exp.Expression]:
    """The rows with a column for each sub-query of a private table in the condition, and the condition over these columns."""
    select = _sub_query(node)
    if select is not None and read.private(select):
        return _marked(rows, node, select, lowering, read)
    if isinstance(node, (exp.Select, exp.Subquery)):
        return rows, node
    copied = node.copy()
    for name, value in list(node.args.items()):
        if isinstance(value, exp.Expression):
            rows, part = with_members(rows, value, lowering, read)
            copied.set(name, part)
        elif isinstance(value, list):
            parts = []
            for entry in value:
                if isinstance(entry, exp.Expression):
                    rows, entry = with_members(rows, entry, lowering, read)
                parts.append(entry)
            copied.set(name, parts)
    return rows, copied


def _sub_query(node: exp.Expression) -> exp.Select | None:
    """The SELECT behind IN or EXISTS."""
    held = node.args.get("query") if isinstance(node, exp.In) else node.this if isinstance(node, exp.Exists) else None
    while isinstance(held, (exp.Subquery, exp.Paren)):
        refuse_clauses(held, {"this"}, "a sub-query in parentheses")
        held = held.this
    return held if isinstance(held, exp.Select) else None


def _marked(
    rows: QueryRows, node: exp.Expression, select: exp.Select, lowering: Lowering, read: SubQueries
) -> tuple[QueryRows, exp.Expression]:
    if not rows.private:
        raise Unsupported(
            "a public table cannot be narrowed by a private one: put the private table first and join the public one"
        )
    if rows.unit is None:
        raise Unsupported(_RECORDS)
    inner, pairs = _inner(rows, node, select, read)
    if inner.unit is None:
        raise Unsupported(_RECORDS)
    if not any(one.unit and unit for one, _, unit in pairs):
        raise Unsupported(_UNEQUATED)
    names: dict[tuple[str, e.Expression], str] = {}
    for one, term, _ in pairs:
        if one.term.kind != term.kind:
            raise Unsupported(f"a sub-query compares '{one.name[:60]}' ({one.term.kind}) with {term.kind} values")
        names.setdefault((_plan_column(one), term.expression), lowering.fresh("v"))
    unit, mark = lowering.fresh("v"), lowering.fresh("v")
    keys = tuple(p.Named(name, expression) for (_, expression), name in names.items())
    # A missing value equals nothing; plans match missing with missing, so that it must not be on both sides.
    there = e.And(tuple(e.Not(e.IsMissing(e.Reference(name))) for name in (unit, *names.values())))
    one_each = p.Filter(p.Project(inner.plan, (p.Named(unit, e.Reference(inner.unit)), *keys)), there)
    matches = p.PerUnitAggregate(one_each, unit, tuple(names.values()), ())
    right = p.Project(matches, (*(p.column(name) for name in names.values()), p.Named(mark, e.Reference(unit))))
    plan = p.Join(rows.plan, right, tuple((outer, name) for (outer, _), name in names.items()), "left")
    member = Visible("", _MEMBER + mark, condition(e.Not(e.IsMissing(e.Reference(mark)))))
    marked = replace(rows, plan=plan, columns=(*rows.columns, member))
    return marked, exp.column(exp.to_identifier(member.name, quoted=True))


def _inner(rows: QueryRows, node: exp.Expression, select: exp.Select, read: SubQueries) -> tuple[QueryRows, Pairs]:
    """The rows of the sub-query, and what is equated."""
    inner = read.origin(select)
    where = select.args.get("where")
    pairs: Pairs = []
    own: list[exp.Expression] = []
    for part in [] if where is None else conjuncts(where.this):
        outside = [] if part.find(exp.Select) else [c for c in part.find_all(exp.Column) if not inner.has(c) and rows.has(c)]
        if outside:
            pairs.append(_equated(rows, inner, part))
        else:
            own.append(part)
    if own:
        inner = read.filtered(inner, exp.and_(*own), select)
    groups = any(select.args.get(name) for name in ("group", "having", "limit", "offset"))
    grouped = groups or any(is_aggregate(part) for item in select.expressions for part in item.walk())
    if grouped and (pairs or isinstance(node, exp.Exists)):
        raise Unsupported(_GROUPED)
    if isinstance(node, exp.In):
        inner, pair = _listed(rows, inner, node, select, read, grouped=grouped)
        pairs.append(pair)
    return inner, pairs


def _equated(rows: QueryRows, inner: QueryRows, part: exp.Expression) -> tuple[Visible, Term, bool]:
    """The columns that a part of the sub-query's WHERE equates."""
    if isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column):
        for own, other in ((part.this, part.expression), (part.expression, part.this)):
            if inner.has(own) and not inner.has(other):
                held = inner.find(own)
                return rows.find(other), held.term, held.unit
    raise Unsupported(_CORRELATED)


def _listed(
    rows: QueryRows, inner: QueryRows, node: exp.In, select: exp.Select, read: SubQueries, *, grouped: bool
) -> tuple[QueryRows, tuple[Visible, Term, bool]]:
    """What stands before IN, with what the sub-query lists."""
    if not isinstance(node.this, exp.Column):
        raise Unsupported("IN (SELECT …) of a private table takes one column before IN; compute it in a sub-query first")
    if len(select.expressions) != 1 or isinstance(select.expressions[0], exp.Star):
        raise Unsupported("IN takes a sub-query of one column: IN (SELECT unit FROM …)")
    if grouped:
        inner = read.shown(select, inner)
        listed = inner.columns[0]
        return inner, (rows.find(node.this), listed.term, listed.unit)
    item = without_alias(select.expressions[0])
    held = inner.find(item) if isinstance(item, exp.Column) else None
    term = lower(item, inner.resolve) if held is None else held.term
    return inner, (rows.find(node.this), term, held is not None and held.unit)


def _plan_column(column: Visible) -> str:
    if not isinstance(column.term.expression, e.Reference):
        raise Unsupported(
            "a sub-query of a condition is compared with columns, not expressions; compute them in a sub-query first"
        )
    return column.term.expression.name
