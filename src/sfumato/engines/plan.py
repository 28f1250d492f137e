"""What is asked of an engine: a small relational algebra as frozen values.

A plan says which rows are wanted and never how; `validate` checks every reference, name, kind and bound before any
engine sees it. Missing values are values: they group together and join with each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

from sfumato.core.errors import MissingColumn, SchemaError, Unsupported, all_at_once
from sfumato.engines.expressions import NUMERIC, Expression, IsMissing, Kind, Not, Reference, columns_of, kind_of, magnitude

#: What a summed expression may reach, so that a sum over 2^31 rows still has at most 38 digits.
_SUMMED = 2**95


@dataclass(frozen=True)
class Field:
    """A column of a stored table: its name, what it holds, and which texts, or numbers among numbers, mean "no value".

    A `lenient` column is missing where a stored value cannot be read as its kind, instead of an error: whether a
    question about people is answered must not depend on a record. `stored` is what the engine holds where that differs.
    `exact` is the kind in which no two stored values become one, where `kind` is none; see `distinct_units`. A `strict` whole
    number is stored as text and names units: digests of questions say so. A number `by_text` is read as
    its shortest text says, as in this process: people wrote 0.1, and the nearest of 32 bits is 0.10000000149011612.
    """

    name: str
    kind: Kind
    missing: tuple[str, ...] = ()
    lenient: bool = False
    stored: Kind | None = None
    exact: Kind | None = None
    strict: bool = False
    by_text: bool = field(default=False, repr=False)  # digests of questions were made without it


@dataclass(frozen=True)
class Scan:
    """Some columns of a stored table, named as the engine's caller calls it."""

    table: str
    columns: tuple[Field, ...]


@dataclass(frozen=True)
class Filter:
    """The rows for which the condition holds."""

    source: Plan
    condition: Expression


@dataclass(frozen=True)
class Named:
    """An expression under a name."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Project:
    """Exactly these columns, computed from each row."""

    source: Plan
    columns: tuple[Named, ...]


@dataclass(frozen=True)
class Join:
    """Rows of both sides whose `on` columns are equal.

    `nulls` says whether missing equals missing ("match") or nothing at all ("drop", as in SQL). The right side's `on`
    columns do not appear in the result. A left join keeps every left row.
    """

    left: Plan
    right: Plan
    on: tuple[tuple[str, str], ...]
    kind: OneOf["inner", "left"] = "inner"
    nulls: OneOf["match", "drop"] = "match"


@dataclass(frozen=True)
class AggregateColumn:
    """One number per group over the rows for which `where` holds.

    `count` without an expression counts rows, with one the rows where it has a value. Sums of integers are
    `wide`.
    """

    name: str
    function: OneOf["count", "count_distinct", "sum", "min", "max"]
    expression: Expression | None = None
    where: Expression | None = None


@dataclass(frozen=True)
class Group:
    """One row per distinct tuple of `keys`. Without keys there is one row, even over no rows.

    With `sets`, several groupings of the same rows in one pass: one row per distinct tuple of each of these sets of keys, in
    which the other keys are missing. That says to which set a row belongs as long as no key is ever missing in the source.
    """

    source: Plan
    keys: tuple[str, ...]
    aggregates: tuple[AggregateColumn, ...]
    sets: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class PerUnitAggregate:
    """One row per unit and tuple of `keys`: what each unit contributes to each group."""

    source: Plan
    unit: str
    keys: tuple[str, ...]
    aggregates: tuple[AggregateColumn, ...]


@dataclass(frozen=True)
class Order:
    """A sort key, missing values first; text sorts by its UTF-8 bytes on every engine."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True)
class Numbering:
    """Every row with its number, from 1, within its partition in this order; with `ties`, rows that are equal in this order
    have one number, and the next ones the next."""

    source: Plan
    name: str
    partition: tuple[str, ...]
    order: tuple[Order, ...]
    ties: bool = False


@dataclass(frozen=True)
class Least:
    """Every row with the least value that `column` has in its partition."""

    source: Plan
    name: str
    partition: tuple[str, ...]
    column: str


@dataclass(frozen=True)
class Bound:
    """At most `limit` rows of each partition (a unit, or a unit within a group), the first ones in this
    order."""

    source: Plan
    partition: tuple[str, ...]
    limit: int
    order: tuple[Order, ...]


@dataclass(frozen=True)
class BoundedGroup:
    """One row per group over what each unit may contribute: at most `rows` of its rows to a group, and rows to at most
    `groups` groups.

    A group is a tuple of `keys`; `within` divides it further without counting as groups of their own (a leaf of a
    histogram), so that the result has the columns keys, within, aggregates. Rows whose unit is missing are left out.
    `unit` None makes every row a unit of its own, so that neither bound binds. None as a bound is no bound; `groups`
    means nothing without keys. Without keys and within there is one row, even over no rows.

    With `salt` the kept rows of each (unit, keys) and the kept groups of each unit are uniformly random, decided by the
    salt: a secret, fresh for each question. Without, they are the first ones: rows by `order` and then by all columns
    of the source in their order (missing first, text by bytes), so that only equal rows tie; groups by their first row
    in that order. Either way, what a unit contributes depends on its own rows (and the salt) alone. So leaving out a
    unit changes at most `groups` groups, each in at most `rows` rows.

    The aggregates are over the kept rows: `count` (rows; with an expression the rows where it has a value), `sum` of
    whole numbers below 2^95 in size, and `count_distinct` of the unit (units with a kept row where `where` holds).
    """

    source: Plan
    unit: str | None
    keys: tuple[str, ...]
    within: tuple[str, ...]
    rows: int | None
    groups: int | None
    aggregates: tuple[AggregateColumn, ...]
    order: tuple[Order, ...] = ()
    salt: str | None = field(default=None, repr=False)

    @property
    def bounds_nothing(self) -> bool:
        """True where all rows of all units that are known count."""
        return self.unit is None or self.rows is None and (self.groups is None or not self.keys)

    @property
    def sampled(self) -> bool:
        """True where what is counted of a unit is decided by chance, or units are counted beside it."""
        if self.unit is None or self.salt is None:
            return False
        return not self.bounds_nothing or any(aggregate.function == "count_distinct" for aggregate in self.aggregates)


Plan: TypeAlias = Scan | Filter | Project | Join | Group | PerUnitAggregate | Numbering | Least | Bound | BoundedGroup


def sources(plan: Plan) -> tuple[Plan, ...]:
    """The plans directly below this one."""
    match plan:
        case Scan():
            return ()
        case Join(left, right):
            return (left, right)
        case _:
            return (plan.source,)


def parts(plan: Plan) -> Iterator[Plan]:
    """The plan and all below it."""
    yield plan
    for below in sources(plan):
        yield from parts(below)


def scans(plan: Plan) -> Iterator[Scan]:
    """The stored tables that are read."""
    return (part for part in parts(plan) if isinstance(part, Scan))


def as_group(plan: PerUnitAggregate | BoundedGroup) -> Group:
    """The grouping that a per-unit aggregate is, or a bounded one where it bounds nothing."""
    if isinstance(plan, PerUnitAggregate):
        return Group(plan.source, (plan.unit, *(key for key in plan.keys if key != plan.unit)), plan.aggregates)
    present = plan.source if plan.unit is None else Filter(plan.source, Not(IsMissing(Reference(plan.unit))))
    return Group(present, plan.keys + plan.within, plan.aggregates)


def columns(plan: Plan) -> dict[str, Kind]:
    """The columns of the result, in order, with their kinds."""
    match plan:
        case Scan(_, fields):
            return {field.name: field.kind for field in fields}
        case Filter(source) | Bound(source):
            return columns(source)
        case Project(source, named):
            below = columns(source)
            return {entry.name: kind_of(entry.expression, below) for entry in named}
        case Join(left, right, on):
            matched = {name for _, name in on}
            return columns(left) | {n: kind for n, kind in columns(right).items() if n not in matched}
        case Group(source, keys, aggregates):
            below = columns(source)
            return {key: below[key] for key in keys} | {a.name: aggregate_kind(a, below) for a in aggregates}
        case BoundedGroup() | PerUnitAggregate():
            return columns(as_group(plan))
        case Numbering(source, name):
            return {**columns(source), name: "integer"}
        case Least(source, name, _, held):
            below = columns(source)
            return {**below, name: below[held]}


def aggregate_kind(aggregate: AggregateColumn, below: Mapping[str, Kind]) -> Kind:
    """The kind of an aggregate's result."""
    if aggregate.expression is None:
        if aggregate.function != "count":
            raise Unsupported(f"the aggregate '{aggregate.function}' needs an expression")
        return "integer"
    kind = kind_of(aggregate.expression, below)
    if aggregate.function in ("count", "count_distinct"):
        return "integer"
    if aggregate.function == "sum":
        if kind not in NUMERIC:
            raise Unsupported(f"a {kind} cannot be summed")
        return "number" if kind == "number" else "wide"
    if kind == "boolean":
        raise Unsupported(f"'{aggregate.function}' of a boolean is not the same on all engines; count instead")
    return kind


def column(name: str) -> Named:
    """A column carried through a projection under its own name."""
    return Named(name, Reference(name))


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
    kinds_below = [kinds for kinds in below if kinds is not None]
    before = len(missing) + len(faults)
    for side, names in _references(plan):
        missing.extend(
            f"{type(plan).__name__} refers to the column '{name}', which its source does not have"
            for name in dict.fromkeys(names)
            if name not in kinds_below[side]
        )
    faults.extend(_own_faults(plan, kinds_below))
    if len(missing) + len(faults) > before:
        return None
    try:
        for expression in _conditions(plan):
            if kind_of(expression, kinds_below[0]) != "boolean":
                faults.append(f"a condition of {type(plan).__name__} is not a truth value")
        for order in _orders(plan):
            kind_of(order.expression, kinds_below[0])
        if isinstance(plan, BoundedGroup):
            faults.extend(_beyond_contributions(plan, kinds_below[0]))
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
        case Least(_, _, partition, held):
            yield 0, [*partition, held]
        case Numbering(_, _, partition, order) | Bound(_, partition, _, order):
            yield 0, [*partition, *(name for entry in order for name in columns_of(entry.expression))]


def _aggregated(aggregates: Iterable[AggregateColumn]) -> list[str]:
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
    return plan.order if isinstance(plan, (Numbering, Bound, BoundedGroup)) else ()


def _own_faults(plan: Plan, below: list[dict[str, Kind]]) -> Iterator[str]:
    match plan:
        case Scan(table, fields):
            yield from _twice((field.name for field in fields), f"the scan of '{table}'")
            if not fields:
                yield f"the scan of '{table}' reads no column"
        case Project(_, named):
            yield from _twice((entry.name for entry in named), "a projection")
            if not named:
                yield "a projection has no column"
        case Group(_, keys, aggregates, sets):
            yield from _twice([*keys, *(a.name for a in aggregates)], "a grouping")
            if not keys and not aggregates:
                yield "a grouping has neither keys nor aggregates"
            if sets and {key for each in sets for key in each} != set(keys):
                yield "the sets of a grouping are made of all its keys"
            if len({frozenset(each) for each in sets}) < len(sets) or not all(sets):
                yield "the sets of a grouping are different and none is empty"
        case PerUnitAggregate(_, unit, keys, aggregates):
            yield from _twice([*dict.fromkeys([unit, *keys]), *(a.name for a in aggregates)], "a per-unit aggregate")
        case BoundedGroup():
            yield from _bounded_faults(plan)
        case Numbering(_, name) | Least(_, name):
            yield from _twice([*below[0], name], "a numbering")
            if isinstance(plan, Least) and below[0].get(plan.column) == "boolean":
                yield "the least of truth values is not the same on all engines"
        case Bound(_, _, limit, _):
            if limit < 1:
                yield "a bound must keep at least one row"
        case Join(_, _, on):
            matched = {right for _, right in on}
            yield from _twice([*below[0], *(name for name in below[1] if name not in matched)], "a join")
            if not on:
                yield "a join needs at least one pair of columns"
            for left, right in on:
                if left in below[0] and right in below[1] and below[0][left] != below[1][right]:
                    yield f"a join matches '{left}' ({below[0][left]}) with '{right}' ({below[1][right]})"


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
        if aggregate.function == "count_distinct" and (plan.unit is None or aggregate.expression != Reference(plan.unit)):
            yield "a bounded grouping counts distinct units only"


def _beyond_contributions(plan: BoundedGroup, below: dict[str, Kind]) -> Iterator[str]:
    for aggregate in plan.aggregates:
        if aggregate.function == "sum" and aggregate.expression is not None:
            if kind_of(aggregate.expression, below) == "number":
                yield "a bounded grouping sums whole numbers only; use FixedPoint"
            elif magnitude(aggregate.expression, below) >= _SUMMED:
                yield "a bounded grouping sums whole numbers below 2^95 only; clamp them first"


def _twice(names: Iterable[str], where: str) -> Iterator[str]:
    earlier: set[str] = set()
    for name in names:
        if name in earlier:
            yield f"{where} has the column '{name}' twice"
        earlier.add(name)
