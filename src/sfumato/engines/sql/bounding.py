"""Bounded contributions as plain relational algebra: every engine runs one query.

Rows of a unit are numbered in the order of their values; the first ones are kept, or those with the smallest digests
of the salt, the unit and the number. What is kept is first summed per unit and group, then groups are bounded alike.

Rows of a unit and group that are all alike need no choice: as many as may be kept are counted. Where rows are drawn, an engine
that sorts more cheaply than it groups can bound groups and rows of single rows by two sorts and sum what is left (`by_rows`); it
keeps the same rows.
"""

from __future__ import annotations

from dataclasses import replace

from sfumato.engines.expressions import Cast, Choose, Compare, Expression, IsMissing, Literal, Not, Reference, Scrambled
from sfumato.engines.plan import (
    AggregateColumn,
    Bound,
    BoundedGroup,
    Filter,
    Group,
    Least,
    Named,
    Numbering,
    Order,
    PerUnitAggregate,
    Plan,
    Project,
    as_group,
    column,
    columns,
)

# NUL occurs in no column name of a query, so that ours collide with none.
_PLACE = "\x00place"
_GROUP = "\x00group"
_CHOSEN = "\x00chosen"
_DRAWN_GROUP, _DRAWN_ROW = "\x00drawn group", "\x00drawn row"
_FIRST = "\x00first"


def expanded(plan: BoundedGroup, *, by_rows: bool = False) -> Plan:
    """The same question without `BoundedGroup`; `by_rows` bounds single rows where that gives the same answer."""
    if plan.unit is None or plan.bounds_nothing:
        return as_group(plan)
    names = plan.keys + plan.within
    source: Plan = Filter(plan.source, Not(IsMissing(Reference(plan.unit))))
    by_groups = plan.groups is not None and bool(plan.keys)
    alike = _alike(plan)
    if by_rows and not alike and _summed_by_rows(plan):
        return _bounded_rows(plan, source, plan.unit)
    if plan.salt is None and by_groups or plan.rows is not None and not alike:
        source = Numbering(source, _PLACE, (plan.unit,), _row_order(plan))
    if plan.rows is not None and not alike:
        source = Bound(source, (plan.unit, *plan.keys), plan.rows, _sampled(plan, "rows", _PLACE))
    partial = tuple(_partial(i, aggregate) for i, aggregate in enumerate(plan.aggregates))
    if by_groups and plan.salt is None:
        partial += (AggregateColumn(_PLACE, "min", Reference(_PLACE)),)
    kept: Plan = PerUnitAggregate(source, plan.unit, names, partial)
    if by_groups and plan.groups is not None:
        kept = _bounded_groups(plan, kept, plan.unit, plan.groups)
    most = plan.rows if alike else None
    return _finished(plan, Group(kept, names, tuple(_final(i, a, most) for i, a in enumerate(plan.aggregates))))


def _alike(plan: BoundedGroup) -> bool:
    """Whether the rows of a unit and group have nothing to be distinguished by, and are counted: any of them may be kept."""
    if plan.rows is None or plan.salt is None or not columns(plan.source).keys() <= {plan.unit, *plan.keys}:
        return False
    return all(aggregate.function != "sum" for aggregate in plan.aggregates)


def _summed_by_rows(plan: BoundedGroup) -> bool:
    """Whether rows that are drawn can be summed without summing per unit first: units are counted by their first kept row."""
    if plan.rows is None or plan.salt is None:
        return False
    units = [aggregate for aggregate in plan.aggregates if aggregate.function == "count_distinct"]
    return not units or not plan.within and all(aggregate.where is None for aggregate in units)


def _bounded_rows(plan: BoundedGroup, source: Plan, unit: str) -> Plan:
    """Rows drawn within their group, then groups drawn, both by digests that each row carries.

    Every row has the digest of its group in front, so that one order serves both draws: rows within groups, groups within units.
    """
    by_groups = plan.groups is not None and bool(plan.keys)
    source = Numbering(source, _PLACE, (unit,), _row_order(plan))
    drawn = [Named(_DRAWN_ROW, _digest(plan, "rows", unit, _PLACE))]
    within: tuple[str, ...] = (unit, *plan.keys)
    if by_groups:
        source = Numbering(source, _GROUP, (unit,), tuple(Order(Reference(key)) for key in plan.keys), ties=True)
        drawn.append(Named(_DRAWN_GROUP, _digest(plan, "groups", unit, _GROUP)))
        within = (unit, _DRAWN_GROUP, _GROUP)
    source = Project(source, (*(column(name) for name in columns(source)), *drawn))
    source = Numbering(source, _FIRST, within, (Order(Reference(_DRAWN_ROW)), Order(Reference(_PLACE))))
    source = Filter(source, Compare("<=", Reference(_FIRST), Literal(plan.rows)))
    if by_groups:
        order = (Order(Reference(_DRAWN_GROUP)), Order(Reference(_GROUP)))
        source = Numbering(source, _CHOSEN, (unit,), order, ties=True)
        source = Filter(source, Compare("<=", Reference(_CHOSEN), Literal(plan.groups)))
    first = Compare("=", Reference(_FIRST), Literal(1))
    aggregates = tuple(
        AggregateColumn(each.name, "count", None, first) if each.function == "count_distinct" else each
        for each in plan.aggregates
    )
    return Group(source, plan.keys + plan.within, aggregates)


def _row_order(plan: BoundedGroup) -> tuple[Order, ...]:
    values = tuple(Order(Reference(name)) for name in columns(plan.source))
    return plan.order + values


def _sampled(plan: BoundedGroup, what: str, number: str) -> tuple[Order, ...]:
    """By a digest where there is a salt, then (or else) by number."""
    if plan.salt is None or plan.unit is None:
        return (Order(Reference(number)),)
    return (Order(_digest(plan, what, plan.unit, number)), Order(Reference(number)))


def _digest(plan: BoundedGroup, what: str, unit: str, number: str) -> Expression:
    return Scrambled(Reference(unit), f"{plan.salt}:{what}", (Reference(number),))


def _bounded_groups(plan: BoundedGroup, kept: Plan, unit: str, groups: int) -> Plan:
    """The rows of `kept` (one per unit, group and leaf) that belong to the unit's chosen groups.

    Leaves of one group share its number; no second look at the rows is needed, hence no join.
    """
    if plan.salt is not None:
        kept = Numbering(kept, _GROUP, (unit,), tuple(Order(Reference(key)) for key in plan.keys), ties=bool(plan.within))
        order = _sampled(plan, "groups", _GROUP)
    elif plan.within:
        kept = Least(kept, _GROUP, (unit, *plan.keys), _PLACE)
        order = _sampled(plan, "groups", _GROUP)
    else:
        order = _sampled(plan, "groups", _PLACE)
    if not plan.within:
        return Bound(kept, (unit,), groups, order)
    numbered = Numbering(kept, _CHOSEN, (unit,), order, ties=True)
    return Filter(numbered, Compare("<=", Reference(_CHOSEN), Literal(groups)))


def together(plan: Plan, unit: str) -> bool:
    """Whether an engine of many machines has brought the rows of a unit to one place already."""
    match plan:
        case Numbering(partition=partition) if partition == (unit,):
            return True
        case Filter(source) | Bound(source) | Numbering(source) | Least(source):
            return together(source, unit)
        case _:
            return False


def _partial(place: int, aggregate: AggregateColumn) -> AggregateColumn:
    """What one unit contributes to a group; for units, its rows where the condition holds."""
    if aggregate.function == "count_distinct":
        return AggregateColumn(_name(place), "count", None, aggregate.where)
    return replace(aggregate, name=_name(place))


def _final(place: int, aggregate: AggregateColumn, most: int | None) -> AggregateColumn:
    """What all units contribute; of rows that are counted and alike at most so many of each unit."""
    part: Expression = Reference(_name(place))
    if aggregate.function == "count_distinct":
        return AggregateColumn(_name(place), "count", None, Compare(">", part, Literal(0)))
    if most is not None:
        part = Choose(((Compare(">", part, Literal(most)), Literal(most)),), part)
    return AggregateColumn(_name(place), "sum", part)


def _finished(plan: BoundedGroup, group: Group) -> Plan:
    shown = [column(name) for name in group.keys]
    for place, aggregate in enumerate(plan.aggregates):
        total: Expression = Reference(_name(place))
        if aggregate.function == "count":
            none = Choose(((IsMissing(total), Literal(0, "wide")),), total)
            total = Cast(none, "integer")
        shown.append(Named(aggregate.name, total))
    return Project(group, tuple(shown))


def _name(place: int) -> str:
    return f"\x00a{place}"
