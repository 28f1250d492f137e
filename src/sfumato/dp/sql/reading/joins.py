"""JOIN and LEFT JOIN: with public tables, and between private tables of the same unit.

A row of a private-private join must come from one unit, so that the tables are joined on it; a row of a LEFT JOIN that finds no
other is one of the left side alone, which the unit's own rows on the right decide. Where every record is
its own unit a public table may match at most once, or one record would become several; see `multiplicity` for how often
the rows of a unit may be multiplied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators.language import lower
from sfumato.dp.sql.operators.term import Term
from sfumato.dp.sql.parse import conjuncts, refuse_clauses
from sfumato.dp.sql.reading.catalogue import Lowering, QueryRows, Visible
from sfumato.dp.sql.reading.multiplicity import check_public_join, largest_per_key, public_copies, unlimited_sides
from sfumato.engines import expressions as e
from sfumato.engines import plan as p


def joined(left: QueryRows, right: QueryRows, join: exp.Join, lowering: Lowering) -> QueryRows:
    """Both sides joined."""
    refuse_clauses(join, {"this", "on", "using", "side", "kind", "method"}, "JOIN")
    kind = _kind(join)
    if right.private and not left.private and kind == "inner":
        left, right = right, left
    if right.private and not left.private:
        raise Unsupported("put the private table first: FROM private LEFT JOIN public")
    pairs, conditions = _pairs(left, right, join)
    afterwards = []
    for part in conditions:
        if all(right.has(column) for column in part.find_all(exp.Column)):
            right = _kept(right, part)
        elif kind == "inner":
            afterwards.append(part)
        else:
            raise Unsupported(
                "ON of a LEFT JOIN takes equalities a.x = b.y and conditions on the right table alone, joined by AND; compute "
                "others in a sub-query of the left table first: FROM (SELECT unit, CASE … END AS x FROM a) AS a LEFT JOIN b …"
            )
    if left.private and right.private:
        _check_same_unit(left, right, pairs)
    unlimited = unlimited_sides(left, right)
    on, left_plan, right_plan = [], left.plan, right.plan
    for one, other in pairs:
        if one.term.kind != other.term.kind:
            raise Unsupported(f"JOIN compares '{one.name}' ({one.term.kind}) with '{other.name}' ({other.term.kind})")
        on.append((_plan_column(one), _plan_column(other)))
    # A missing value equals nothing in SQL; plans match missing with missing, so that it must not be on both sides.
    matchable = e.And(tuple(e.Not(e.IsMissing(e.Reference(name))) for name in dict.fromkeys(name for _, name in on)))
    right_plan = p.Filter(right_plan, matchable)
    made_of_one = public_copies(left, right.copies) if right.private else _public_side(left, right_plan, on, lowering)
    matched = {theirs: mine for mine, theirs in on}
    copies: dict[str, str] = {}
    if kind == "left":
        # The plan drops the right side's keys, and after a LEFT JOIN they are not the left side's: unmatched ones are missing.
        copies = {name: lowering.fresh("v") for name in matched}
        kept = [p.Named(name, e.Reference(name)) for name in p.columns(right_plan)]
        right_plan = p.Project(right_plan, (*kept, *(p.Named(copy, e.Reference(name)) for name, copy in copies.items())))
    plan = p.Join(left_plan, right_plan, tuple(dict.fromkeys(on)), kind)
    columns = [*left.columns]
    merged = {identifier.name.lower() for identifier in join.args.get("using") or ()}
    for column in right.columns:
        if kind == "left":
            there, beside = _perhaps(column.term, copies), column.qualified or column.name.lower() in merged
            columns.append(replace(column, term=there, unit=False, perhaps_unit=column.unit, qualified=beside))
        elif (held := _plan_column(column)) in matched:
            one = next(c for c in left.columns if isinstance(c.term.expression, e.Reference) and _plan_column(c) == matched[held])
            columns.append(replace(column, term=one.term))
        else:
            columns.append(column)
    single = left.single and right.single and right.private
    rows = replace(left, plan=plan, columns=tuple(columns), private=left.private or right.private, single=single)
    rows = replace(rows, unlimited=unlimited, copies=made_of_one, unread=(*left.unread, *right.unread))
    for part in afterwards:
        rows = _kept(rows, part)
    return rows


def _kept(rows: QueryRows, node: exp.Expression) -> QueryRows:
    """The rows for which a part of ON holds."""
    term = lower(node, rows.resolve)
    if term.kind != "boolean":
        raise Unsupported("ON needs a condition")
    return replace(rows, plan=p.Filter(rows.plan, term.expression))


def _perhaps(term: Term, copies: Mapping[str, str]) -> Term:
    """A column of the right side of a LEFT JOIN, which may be missing."""
    if isinstance(term.expression, e.Reference) and term.expression.name in copies:
        term = replace(term, expression=e.Reference(copies[term.expression.name]))
    return term if term.values is None else replace(term, values=tuple(dict.fromkeys((*term.values, None))))


def _kind(join: exp.Join) -> Literal["inner", "left"]:
    side, kind, method = (str(join.args.get(name) or "").upper() for name in ("side", "kind", "method"))
    if method or kind in ("CROSS", "SEMI", "ANTI", "NATURAL") or side in ("RIGHT", "FULL"):
        raise Unsupported("only JOIN and LEFT JOIN with ON or USING are supported")
    if side == "LEFT":
        return "left"
    if not (join.args.get("on") or join.args.get("using")):
        raise Unsupported("a JOIN needs ON or USING: a product of tables mixes the rows of different units")
    return "inner"


def _pairs(left: QueryRows, right: QueryRows, join: exp.Join) -> tuple[list[tuple[Visible, Visible]], list[exp.Expression]]:
    """The columns that are equated, and whatever else ON demands."""
    using = join.args.get("using")
    if using:
        names = [exp.column(identifier.name) for identifier in using]
        return [(left.find(name), right.find(name)) for name in names], []
    condition = join.args.get("on")
    if condition is None:
        raise Unsupported("a JOIN needs ON or USING: a product of tables mixes the rows of different units")
    pairs, others = [], []
    for part in conjuncts(condition):
        sides = _sides(left, right, part)
        if sides is None:
            others.append(part)
        else:
            pairs.append(sides)
    if not pairs:
        raise Unsupported("JOIN … ON must compare a column of one table with a column of the other; qualify them: a.x = b.y")
    return pairs, others


def _sides(left: QueryRows, right: QueryRows, part: exp.Expression) -> tuple[Visible, Visible] | None:
    """The columns that an equality compares, one of each side; None for any other condition."""
    if not (isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column)):
        return None
    for first, second in ((part.this, part.expression), (part.expression, part.this)):
        if left.has(first) and right.has(second):
            return left.find(first), right.find(second)
    return None


def _check_same_unit(left: QueryRows, right: QueryRows, pairs: list[tuple[Visible, Visible]]) -> None:
    if left.unit is None or right.unit is None:
        raise Unsupported("two private tables can be joined only where both have a unit column")
    if not any(one.unit and other.unit for one, other in pairs):
        raise Unsupported("join private tables on their unit, so that a joined row belongs to one unit: ON a.unit = b.unit AND …")


def _public_side(left: QueryRows, right: p.Plan, on: list[tuple[str, str]], lowering: Lowering) -> int:
    """How many rows public tables make of one private row, the public right side included."""
    if not left.private:
        check_public_join(left.plan, right, on, lowering.read)
        return 1
    largest = largest_per_key(right, [name for _, name in on], lowering.read)
    if left.unit is None and largest > 1:
        raise Unsupported(
            "the public side has several rows for one key, and every record is a unit of its own: a record would be counted "
            "several times. Join a table on a unique key, or give the session a unit column and bounds"
        )
    return public_copies(left, largest)


def _plan_column(column: Visible) -> str:
    if not isinstance(column.term.expression, e.Reference):
        raise Unsupported("JOIN … ON compares columns, not expressions; compute them in a sub-query first")
    return column.term.expression.name
