"""Bounded contributions as plain relational algebra: every engine runs one query.

Rows of a unit are numbered in the order of their values; the first ones are kept, or those with the smallest digests
of the salt, the unit and the number. What is kept is first summed per unit and group, then groups are bounded alike.
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


def expanded(plan: BoundedGroup) -> Plan:
    """The same question without `BoundedGroup`."""
    if plan.unit is None or plan.bounds_nothing:
        return as_group(plan)
    names = plan.keys + plan.within
    source: Plan = Filter(plan.source, Not(IsMissing(Reference(plan.unit))))
    by_groups = plan.groups is not None and bool(plan.keys)
    if plan.rows is not None or plan.salt is None:
        source = Numbering(source, _PLACE, (plan.unit,), _row_order(plan))
    if plan.rows is not None:
        source = Bound(source, (plan.unit, *plan.keys), plan.rows, _sampled(plan, "rows", _PLACE))
    partial = tuple(_partial(i, aggregate) for i, aggregate in enumerate(plan.aggregates))
    if by_groups and plan.salt is None:
        partial += (AggregateColumn(_PLACE, "min", Reference(_PLACE)),)
    kept: Plan = PerUnitAggregate(source, plan.unit, names, partial)
    if by_groups and plan.groups is not None:
        kept = _bounded_groups(plan, kept, plan.unit, plan.groups)
    return _finished(plan, Group(kept, names, tuple(_final(i, aggregate) for i, aggregate in enumerate(plan.aggregates))))


def _row_order(plan: BoundedGroup) -> tuple[Order, ...]:
    values = tuple(Order(Reference(name)) for name in columns(plan.source))
    return plan.order + values


def _sampled(plan: BoundedGroup, what: str, number: str) -> tuple[Order, ...]:
    """By a digest where there is a salt, then (or else) by number."""
    if plan.salt is None or plan.unit is None:
        return (Order(Reference(number)),)
    return (
        Order(Scrambled(Reference(plan.unit), f"{plan.salt}:{what}", (Reference(number),))),
        Order(Reference(number)),
    )


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


def _final(place: int, aggregate: AggregateColumn) -> AggregateColumn:
    part = Reference(_name(place))
    if aggregate.function == "count_distinct":
        return AggregateColumn(_name(place), "count", None, Compare(">", part, Literal(0)))
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
