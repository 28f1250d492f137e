"""FROM, JOIN, WHERE and sub-queries: rows that each belong to one unit.

Whatever stands below the outer aggregation keeps one invariant: every row comes from the rows of one unit and from
public tables. Then removing a unit removes exactly its rows, and bounding what each unit contributes bounds the
sensitivity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.declaring import CURE
from sfumato.dp.sql.operators.language import lower
from sfumato.dp.sql.operators.term import Term
from sfumato.dp.sql.parse import refuse_clauses, without_alias
from sfumato.dp.sql.reading.catalogue import KnownColumn, KnownTable, Lowering, QueryRows, Visible, scanned_as
from sfumato.dp.sql.reading.fixed_columns import with_fixed_columns
from sfumato.dp.sql.reading.joins import joined
from sfumato.dp.sql.reading.membership import with_members
from sfumato.dp.sql.reading.per_unit import per_unit_rows
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.class_queries import ROWS

#: How often a query may read tables, each sub-query counted as often as it is used.
MOST_SCANS = 32


@dataclass(frozen=True)
class Scope:
    """The names that WITH has given so far; a query under a name sees those given before it."""

    named: Mapping[str, tuple[exp.Select, Scope]] = field(default_factory=dict)

    def find(self, name: str) -> tuple[exp.Select, Scope] | None:
        """The query of that name, in whatever case it is written."""
        return self.named.get(name.lower())

    def extended(self, select: exp.Select) -> Scope:
        """With the names of a query's own WITH."""
        clause = select.args.get("with_")
        if clause is None:
            return self
        if clause.args.get("recursive"):
            raise Unsupported("WITH RECURSIVE is not supported")
        scope = self
        for entry in clause.expressions:
            refuse_clauses(entry, {"this", "alias", "materialized"}, "WITH")
            if not isinstance(entry.this, exp.Select):
                raise Unsupported("WITH takes SELECTs")
            if entry.args["alias"].args.get("columns"):
                raise Unsupported("WITH name(columns) is not supported; name the columns inside, with AS")
            scope = Scope({**scope.named, entry.alias.lower(): (entry.this, scope)})
        return scope


def source_rows(select: exp.Select, lowering: Lowering, outer: Scope | None = None) -> QueryRows:
    """The rows of FROM and JOIN under WHERE."""
    named = (outer or Scope()).extended(select)
    rows = _origin(select, lowering, named)
    where = select.args.get("where")
    return rows if where is None else _filtered(rows, where.this, lowering, named)


def _origin(select: exp.Select, lowering: Lowering, named: Scope) -> QueryRows:
    """The rows of FROM and JOIN."""
    _refuse_clauses(select)
    origin = select.args.get("from_")
    if origin is None:
        raise Unsupported("the query has no FROM: name a table")
    rows = _item(origin.this, lowering, named)
    for join in select.args.get("joins") or ():
        rows = _joined(rows, join, lowering, named)
    return rows


def _filtered(rows: QueryRows, node: exp.Expression, lowering: Lowering, named: Scope) -> QueryRows:
    """The rows for which a condition holds; what it says of other private tables becomes a column first."""
    marked, node = with_members(rows, node, lowering, _SubQueries(lowering, named))
    kept = filtered(marked, node)
    return replace(kept, columns=rows.columns)


@dataclass(frozen=True)
class _SubQueries:
    """Reads the sub-queries of a condition, in the scope of the query that they stand in."""

    lowering: Lowering
    named: Scope

    def private(self, select: exp.Select) -> bool:
        """True when a private table is read anywhere in a sub-query."""
        named = self.named.extended(select)
        for table in select.find_all(exp.Table):
            under_name = named.find(table.name)
            if under_name is not None and under_name[0] is not select:
                private = _SubQueries(self.lowering, under_name[1]).private(under_name[0])
            else:
                private = under_name is None and self.lowering.catalogue.table(table.name).private
            if private:
                return True
        return False

    def origin(self, select: exp.Select) -> QueryRows:
        """The rows of its FROM and JOIN."""
        return _origin(select, self.lowering, self.named.extended(select))

    def filtered(self, rows: QueryRows, node: exp.Expression, select: exp.Select) -> QueryRows:
        """Those of its rows for which a condition holds that looks at them alone."""
        return _filtered(rows, node, self.lowering, self.named.extended(select))

    def shown(self, select: exp.Select, rows: QueryRows) -> QueryRows:
        """What it makes of these rows."""
        return _shown(select, rows, self.lowering)


def filtered(rows: QueryRows, node: exp.Expression) -> QueryRows:
    """The rows for which a condition holds."""
    inner = any(isinstance(part, (exp.Select, exp.Subquery)) for part in node.walk())
    if not inner and any(isinstance(part, exp.AggFunc) for part in node.walk()):
        raise Unsupported("an aggregate cannot stand in WHERE; use HAVING")
    term = lower(node, rows.resolve)
    if term.kind != "boolean":
        raise Unsupported("WHERE needs a condition")
    return replace(rows, plan=p.Filter(rows.plan, term.expression))


_REFUSED = {
    "windows": "WINDOW name AS (…) is not supported; write it out as OVER (…)",
    "qualify": "QUALIFY is not supported; choose from the answer instead",
    "pivots": "PIVOT is not supported; use GROUP BY",
    "laterals": "LATERAL is not supported",
    "match": "MATCH_RECOGNIZE is not supported",
    "sample": "a query may not sample by itself; the session bounds contributions",
    "locks": "locks are not supported",
    "into": "SELECT INTO is not supported: nothing is written",
    "connect": "CONNECT BY is not supported",
    "cluster": "CLUSTER BY is not supported",
    "distribute": "DISTRIBUTE BY is not supported",
    "sort": "SORT BY is not supported; use ORDER BY",
    "prewhere": "PREWHERE is not supported",
    "settings": "settings are not supported",
    "format": "FORMAT is not supported",
    "options": "options are not supported",
    "kind": "SELECT AS STRUCT or VALUE is not supported",
    "hint": "hints are not supported",
    "limit_options": "LIMIT with options is not supported",
}


_READ = {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_", "distinct"}


def _refuse_clauses(select: exp.Select) -> None:
    for name, value in select.args.items():
        if value and name not in _READ:
            raise Unsupported(_REFUSED.get(name, f"SELECT with {name.strip('_').upper()} is not supported"))


def _item(node: exp.Expression, lowering: Lowering, named: Scope) -> QueryRows:
    if isinstance(node, exp.Subquery):
        refuse_clauses(node, {"this", "alias"}, "a sub-query in FROM")
        _refuse_renaming(node)
        inner = node.this
        while isinstance(inner, (exp.Subquery, exp.Paren)):
            refuse_clauses(inner, {"this"}, "a sub-query in parentheses")
            inner = inner.this
        if not isinstance(inner, exp.Select):
            raise Unsupported("a sub-query in FROM must be a SELECT")
        return _aliased(_inner(inner, lowering, named), node.alias or "\x00sub")
    if isinstance(node, exp.Table):
        if not isinstance(node.this, exp.Identifier):
            raise Unsupported("only declared tables can be read: no files, no table functions")
        if node.args.get("db") or node.args.get("catalog"):
            raise Unsupported("name a table of the session, without a schema or database before it")
        for clause in _REFUSED.keys() & {name for name, value in node.args.items() if value}:
            raise Unsupported(_REFUSED[clause])
        refuse_clauses(node, {"this", "alias"}, "a table")
        _refuse_renaming(node)
        sub_query = named.find(node.name)
        if sub_query is not None:
            return _aliased(_inner(sub_query[0], lowering, sub_query[1]), node.alias_or_name)
        return _scan(lowering.catalogue.table(node.name), node.alias_or_name, lowering)
    raise Unsupported("FROM takes tables of the session and sub-queries")


def _refuse_renaming(node: exp.Expression) -> None:
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise Unsupported("AS name(columns) is not supported; name the columns inside, with AS")


def _scan(table: KnownTable, alias: str, lowering: Lowering) -> QueryRows:
    lowering.scans += 1
    if lowering.scans > MOST_SCANS:
        raise Unsupported(f"the query reads tables more than {MOST_SCANS} times")
    lowering.read[table.name] = table
    if table.private and lowering.primary is None:
        lowering.primary = table.name
    columns_read = [c for c in table.columns.values() if c.name.lower() in lowering.referenced or c.name == table.unit]
    unnamed = not columns_read
    if unnamed:  # COUNT(*) alone names no column; the rows must still be read
        columns_read = [next((c for c in table.columns.values() if not c.untyped), next(iter(table.columns.values())))]
    untyped = [c.name for c in columns_read if c.untyped and table.private]
    if untyped:
        if unnamed:
            raise Unsupported(
                f'no column has a declared type, and rows are counted by reading one. Give a column type = "string", "integer", '
                f'"number" or another: a type found by looking at the values would reveal something about them. {CURE}'
            )
        raise Unsupported(
            f"the type of '{untyped[0][:60]}' is not declared, and was found by looking at the values, which would reveal "
            f'something about them. It needs type = "string", "integer", "number" or another in the schema. {CURE}'
        )
    scanned = ROWS if table.name == lowering.primary else scanned_as(table.name)
    names = {c.name: lowering.fresh("v") for c in columns_read}
    scan = p.Scan(scanned, tuple(c.field for c in columns_read))
    plan: p.Plan
    fixed = [column for column in columns_read if column.one_per_unit]
    if fixed and table.unit is not None:
        plan = with_fixed_columns(scan, names, table.unit, fixed, lowering)
    else:
        plan = p.Project(scan, tuple(p.Named(names[c.name], e.Reference(c.name)) for c in columns_read))
    unit = names[table.unit] if table.unit is not None else None
    columns = tuple(Visible(alias, c.name, _declared(c, names[c.name]), c.name == table.unit) for c in columns_read)
    unread = tuple(name for name, column in table.columns.items() if name not in names and not column.untyped)
    return QueryRows(plan, columns, unit, table.private, unlimited=int(table.private), unread=unread)


def _declared(column: KnownColumn, name: str) -> Term:
    return Term(e.Reference(name), column.field.kind, column.low, column.high, column.values, sure=False, hint=column.hint)


def _aliased(rows: QueryRows, alias: str) -> QueryRows:
    return replace(rows, columns=tuple(replace(column, qualifier=alias) for column in rows.columns))


def _inner(select: exp.Select, lowering: Lowering, named: Scope) -> QueryRows:
    return _shown(select, source_rows(select, lowering, named), lowering)


def _shown(select: exp.Select, rows: QueryRows, lowering: Lowering) -> QueryRows:
    """What a sub-query makes of the rows of FROM, JOIN and WHERE."""
    if select.args.get("limit") or select.args.get("offset"):
        raise Unsupported("LIMIT in a sub-query mixes the rows of different units; put it on the outer query")
    if any(item.find(exp.Window) is not None for item in select.expressions):
        raise Unsupported(
            "a window is computed over the groups of the outer query, not over the rows of a sub-query, where it would mix "
            "units; aggregate per unit there instead"
        )
    grouped = select.args.get("group") or select.args.get("distinct") or select.args.get("having")
    if grouped or any(isinstance(part, exp.AggFunc) for item in select.expressions for part in item.walk()):
        return per_unit_rows(select, rows, lowering)
    return _projected(select, rows, lowering)


def _projected(select: exp.Select, rows: QueryRows, lowering: Lowering) -> QueryRows:
    named: list[p.Named] = []
    visible: list[Visible] = []
    for item in select.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            refuse_clauses(item if isinstance(item, exp.Star) else item.this, set(), "*")
            if isinstance(item, exp.Column):
                raise Unsupported("table.* is not supported; name the columns")
            visible.extend(rows.columns)
            named.extend(p.Named(_column_name(c.term), c.term.expression) for c in rows.columns)
            continue
        node = without_alias(item)
        if isinstance(node, exp.Column):
            held = rows.find(node)
            term, unit = held.term, held.unit
        else:
            term, unit = lower(node, rows.resolve), False
        name = lowering.fresh("v")
        named.append(p.Named(name, term.expression))
        visible.append(Visible("", item.alias_or_name, replace(term, expression=e.Reference(name)), unit))
    if rows.unit is not None:
        named.append(p.Named(rows.unit, e.Reference(rows.unit)))
    unique = {entry.name: entry for entry in named}
    unread = rows.unread if any(isinstance(item, exp.Star) for item in select.expressions) else ()
    return replace(rows, plan=p.Project(rows.plan, tuple(unique.values())), columns=tuple(visible), unread=unread)


def _column_name(term: Term) -> str:
    if not isinstance(term.expression, e.Reference):
        raise Unsupported("SELECT * cannot be used here; name the columns")
    return term.expression.name


def _joined(left: QueryRows, join: exp.Join, lowering: Lowering, named: Scope) -> QueryRows:
    return joined(left, _item(join.this, lowering, named), join, lowering)
