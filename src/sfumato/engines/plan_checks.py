"""Whether a plan makes sense: every reference, name, kind and bound, before any engine sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sfumato.core.errors import MissingColumn, SchemaError, Unsupported, all_at_once
from sfumato.engines.expressions import Column, Expression, Kind, columns_of, kind_of, magnitude
from sfumato.engines.plan import (
    Aggregate,
    Bound,
    BoundedGroup,
    Filter,
    Group,
    Join,
    Number,
    Order,
    PerUnitAggregate,
    Plan,
    Project,
    Scan,
    columns,
    sources,
)

#: What a summed expression may reach, so that a sum over 2^31 rows still has at most 38 digits.
_SUMMED = 2**95


def validate(plan: Plan) -> dict[str, Kind]:
    """Check every column reference, name and kind; all faults are reported at once. Returns the result's columns."""
    missing: list[str] = []
    faults: list[str] = []
    _check(plan, missing, faults)
    all_at_once(MissingColumn, "plan", missing)
    all_at_once(SchemaError, "plan", faults)
    return columns(plan)


def _check(plan: Plan, missing: list[str], faults: list[str]) -> dict[str, Kind] | None:
    below = [_check(source, missing, faults) for source in sources(plan)]
    if any(kinds is None for kinds in below):
        return None  # a fault below would only be repeated here
    known = [kinds for kinds in below if kinds is not None]
    before = len(missing) + len(faults)
    for side, names in _references(plan):
        missing.extend(
            f"{type(plan).__name__} refers to the column '{name}', which its source does not have"
            for name in dict.fromkeys(names)
            if name not in known[side]
        )
    faults.extend(_own_faults(plan, known))
    if len(missing) + len(faults) > before:
        return None
    try:
        for expression in _conditions(plan):
            if kind_of(expression, known[0]) != "boolean":
                faults.append(f"a condition of {type(plan).__name__} is not a truth value")
        for order in _orders(plan):
            kind_of(order.expression, known[0])
        if isinstance(plan, BoundedGroup):
            faults.extend(_beyond_contributions(plan, known[0]))
        return columns(plan)
    except Unsupported as error:
        faults.append(f"{type(plan).__name__}: {error}")
        return None


def _references(plan: Plan) -> Iterator[tuple[int, list[str]]]:
    match plan:
        case Filter(_, condition):
            yield 0, list(columns_of(condition))
        case Project(_, named):
            yield 0, [name for entry in named for name in columns_of(entry.expression)]
        case Join(_, _, on):
            yield 0, [left for left, _ in on]
            yield 1, [right for _, right in on]
        case Group(_, keys, aggregates):
            yield 0, [*keys, *_aggregated(aggregates)]
        case PerUnitAggregate(_, unit, keys, aggregates):
            yield 0, [unit, *keys, *_aggregated(aggregates)]
        case BoundedGroup(_, unit, keys, within, _, _, aggregates, order):
            ordered = [name for entry in order for name in columns_of(entry.expression)]
            yield 0, [*([] if unit is None else [unit]), *keys, *within, *_aggregated(aggregates), *ordered]
        case Number(_, _, partition, order) | Bound(_, partition, _, order):
            yield 0, [*partition, *(name for entry in order for name in columns_of(entry.expression))]


def _aggregated(aggregates: Iterable[Aggregate]) -> list[str]:
    parts = [part for a in aggregates for part in (a.expression, a.where) if part is not None]
    return [name for part in parts for name in columns_of(part)]


def _conditions(plan: Plan) -> list[Expression]:
    match plan:
        case Filter(_, condition):
            return [condition]
        case Group(aggregates=aggregates) | PerUnitAggregate(aggregates=aggregates) | BoundedGroup(aggregates=aggregates):
            return [aggregate.where for aggregate in aggregates if aggregate.where is not None]
        case _:
            return []


def _orders(plan: Plan) -> tuple[Order, ...]:
    return plan.order if isinstance(plan, (Number, Bound, BoundedGroup)) else ()


def _own_faults(plan: Plan, known: list[dict[str, Kind]]) -> Iterator[str]:
    match plan:
        case Scan(table, fields):
            yield from _twice((field.name for field in fields), f"the scan of '{table}'")
            if not fields:
                yield f"the scan of '{table}' reads no column"
        case Project(_, named):
            yield from _twice((entry.name for entry in named), "a projection")
            if not named:
                yield "a projection has no column"
        case Group(_, keys, aggregates):
            yield from _twice([*keys, *(a.name for a in aggregates)], "a grouping")
            if not keys and not aggregates:
                yield "a grouping has neither keys nor aggregates"
        case PerUnitAggregate(_, unit, keys, aggregates):
            yield from _twice([*dict.fromkeys([unit, *keys]), *(a.name for a in aggregates)], "a per-unit aggregate")
        case BoundedGroup():
            yield from _bounded_faults(plan)
        case Number(_, name, _, _):
            yield from _twice([*known[0], name], "a numbering")
        case Bound(_, _, limit, _):
            if limit < 1:
                yield "a bound must keep at least one row"
        case Join(_, _, on):
            matched = {right for _, right in on}
            yield from _twice([*known[0], *(name for name in known[1] if name not in matched)], "a join")
            if not on:
                yield "a join needs at least one pair of columns"
            for left, right in on:
                if left in known[0] and right in known[1] and known[0][left] != known[1][right]:
                    yield f"a join matches '{left}' ({known[0][left]}) with '{right}' ({known[1][right]})"


def _bounded_faults(plan: BoundedGroup) -> Iterator[str]:
    names = [*plan.keys, *plan.within]
    yield from _twice([*names, *(a.name for a in plan.aggregates)], "a bounded grouping")
    if not names and not plan.aggregates:
        yield "a bounded grouping has neither keys nor aggregates"
    if any(bound is not None and bound < 1 for bound in (plan.rows, plan.groups)):
        yield "a bounded grouping must keep at least one row and one group of a unit"
    if plan.salt is not None and plan.order:
        yield "a bounded grouping takes the first rows (order) or random ones (salt), not both"
    if plan.salt == "":
        yield "the salt of a bounded grouping is empty"
    for aggregate in plan.aggregates:
        if aggregate.function in ("min", "max"):
            yield f"a bounded grouping has no '{aggregate.function}': one row could change it without bound"
        if aggregate.function == "count_distinct" and (plan.unit is None or aggregate.expression != Column(plan.unit)):
            yield "a bounded grouping counts distinct units only"


def _beyond_contributions(plan: BoundedGroup, below: dict[str, Kind]) -> Iterator[str]:
    for aggregate in plan.aggregates:
        if aggregate.function == "sum" and aggregate.expression is not None:
            if kind_of(aggregate.expression, below) == "number":
                yield "a bounded grouping sums whole numbers only; use FixedPoint"
            elif magnitude(aggregate.expression, below) >= _SUMMED:
                yield "a bounded grouping sums whole numbers below 2^95 only; clamp them first"


def _twice(names: Iterable[str], where: str) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"{where} has the column '{name}' twice"
        seen.add(name)
