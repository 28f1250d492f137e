"""A query understood: its keys, what must be measured, and how the answer is put together from that.

The outer SELECT is taken apart: keys with their declared values, aggregates as statistics over measurements, and the
expressions around them, which are post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.aggregates import Asked, Statistic
from sfumato.dp.sql.catalogue import Catalogue, KnownTable
from sfumato.dp.sql.grouping import Grouping, Key, Ordering, Shown
from sfumato.dp.sql.measurement import Measurement, StatisticPlan
from sfumato.dp.sql.parse import sql_text
from sfumato.dp.sql.parts import in_parts
from sfumato.dp.sql.rows import source_rows
from sfumato.dp.sql.visible_rows import Lowering, Rows
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.expressions import Value


@dataclass(frozen=True)
class Question:
    """What was asked, ready to be priced and run."""

    text: str
    rows: Rows
    keys: tuple[Key, ...]
    measurements: tuple[Measurement, ...]
    statistics: Mapping[str, Statistic]
    shown: tuple[Shown, ...]
    having: exp.Expression | None
    order: tuple[Ordering, ...]
    limit: int | None
    offset: int
    tables: Mapping[str, KnownTable] = field(repr=False)
    primary: str = ""

    @property
    def discovers(self) -> bool:
        """True when some key has no declared values."""
        return any(key.values is None for key in self.keys)

    @property
    def groups(self) -> int | None:
        """How many groups the answer has; None where they are discovered."""
        if self.discovers:
            return None
        count = 1
        for key in self.keys:
            count *= len(key.values or ())
        return count

    @property
    def counts_rows(self) -> bool:
        """True when more than the number of units is measured, so that it matters how many rows of one unit count."""
        return any(measurement.kind != "units" for measurement in self.measurements)

    @property
    def unit(self) -> str:
        """Whose data is protected."""
        table = self.tables[self.primary]
        return table.unit or "record"


def understand(
    select: exp.Select,
    catalogue: Catalogue,
    keys: Mapping[str, tuple[Value, ...]] | None = None,
    order: tuple[str, ...] = (),
) -> Question:
    """Take a query apart; anything outside the supported shape is refused with the reason.

    `order` are further columns that truncation will need.
    """
    lowering = Lowering(catalogue, referenced=_referenced(select, order))
    if select.args.get("distinct"):
        raise Unsupported("SELECT DISTINCT on the outside is not supported; use GROUP BY with an aggregate such as COUNT(*)")
    rows = source_rows(select, lowering)
    if not rows.private or lowering.primary is None:
        raise Unsupported("the query reads public tables only; there is nothing to protect: compute it directly")
    grouping = Grouping(select, rows, lowering, keys or {})
    found: dict[str, Asked] = {}
    shown = tuple(grouping.shown(item, found) for item in select.expressions)
    shown = _named_apart(shown, [isinstance(item, (exp.Alias, exp.Column)) for item in select.expressions])
    having_node = select.args.get("having")
    having = None if having_node is None else grouping.condition(having_node.this, found)
    sorted_by = select.args["order"].expressions if select.args.get("order") else ()
    ordering = tuple(grouping.ordering(entry, shown, found) for entry in sorted_by)
    if not found:
        raise Unsupported(
            "the query has no aggregate, and single rows are never shown: add COUNT(*), SUM(…), AVG(…), and GROUP BY where needed"
        )
    measuring = StatisticPlan(rows, found.values())
    statistics = {text: measuring.statistic(asked) for text, asked in found.items()}
    return Question(
        text=sql_text(select),
        rows=rows,
        keys=tuple(grouping.keys),
        measurements=tuple(measuring.measurements.values()),
        statistics=statistics,
        shown=shown,
        having=having,
        order=ordering,
        limit=_count(select, "limit"),
        offset=_count(select, "offset") or 0,
        tables=dict(lowering.read),
        primary=lowering.primary,
    )


def _named_apart(shown: tuple[Shown, ...], chosen: list[bool]) -> tuple[Shown, ...]:
    """Columns that nobody named are numbered where they are called alike; names that somebody chose must differ."""
    taken: dict[str, int] = {}
    made = []
    for column, by_hand in sorted(zip(shown, chosen, strict=True), key=lambda entry: not entry[1]):
        taken[column.name] = taken.get(column.name, 0) + 1
        if taken[column.name] > 1 and by_hand:
            raise Unsupported(f"two columns of the answer are called '{column.name[:60]}'; name them apart with AS")
        number = f" ({taken[column.name]})" if taken[column.name] > 1 else ""
        made.append((column, replace(column, name=column.name + number)))
    renamed = {id(before): after for before, after in made}
    return tuple(renamed[id(column)] for column in shown)


def _referenced(select: exp.Select, order: tuple[str, ...]) -> frozenset[str]:
    """The names of all columns anywhere in the query; with a star, of all columns there are."""
    names = {part.name.lower() for part in select.walk() if isinstance(part, exp.Column)} | {name.lower() for name in order}
    names |= {
        identifier.name.lower()
        for part in select.walk()
        if isinstance(part, exp.Join)
        for identifier in part.args.get("using") or ()
    }
    if any(isinstance(part, exp.Star) and not isinstance(part.parent, exp.Count) for part in select.walk()):
        return _Everything()
    return frozenset(names)


class _Everything(frozenset[str]):
    """Contains every name."""

    def __contains__(self, name: object) -> bool:
        return True


def _count(select: exp.Select, clause: str) -> int | None:
    node = select.args.get(clause)
    if node is None:
        return None
    value = node.expression
    if not isinstance(value, exp.Literal) or value.is_string or not str(value.this).isdecimal() or len(str(value.this)) > 9:
        raise Unsupported(f"{clause.upper()} takes a whole number")
    return int(value.this)


#: From so many declared texts on, a key travels as a number, found by a join instead of a list.
CODED = 64


def coded(key: Key) -> bool:
    """True when the engine is given the key's values as a table and answers with their numbers."""
    return key.kind == "string" and key.values is not None and len(key.values) > CODED


def ordered_values(key: Key) -> list[Value]:
    """The declared values of a key in an order of their own, a missing one first."""
    known: list[Any] = [value for value in key.values or () if value is not None]
    return [*(value for value in key.values or () if value is None), *sorted(known)]


def key_table(key: Key) -> str:
    """What plans call the table of a key's values."""
    return f"keys {key.name}"


def source_plan(question: Question, inputs: Mapping[str, e.Expression]) -> p.Plan:
    """The rows with unit, keys and the given inputs; rows outside the declared keys are left out before bounding."""
    plan = question.rows.plan
    conditions: list[e.Expression] = []
    for key in question.keys:
        if key.values is None or coded(key):
            continue
        allowed = _allowed(key)
        if None in key.values:
            allowed = e.Or((allowed, e.IsMissing(key.expression)))
        conditions.append(allowed)
    if conditions:
        plan = p.Filter(plan, conditions[0] if len(conditions) == 1 else e.And(tuple(conditions)))
    named = []
    for key in question.keys:
        if coded(key):
            plan = _joined_with_values(plan, key)
        named.append(p.Named(key.name, e.Column(f"{key.name} code") if coded(key) else key.expression))
    given = {**{each.name: each.expression for each in named}, **inputs}
    plan, shorter = in_parts(plan, given)
    named = [p.Named(name, expression) for name, expression in shorter.items()]
    if question.rows.unit is not None:
        named.append(p.Named(question.rows.unit, e.Column(question.rows.unit)))
    if not named:
        named = [p.Named("k", e.Literal(1))]
    return p.Project(plan, tuple(named))


def _joined_with_values(plan: p.Plan, key: Key) -> p.Plan:
    """The rows whose key is declared, with the number of its value."""
    held = key.expression.name if isinstance(key.expression, e.Column) else f"{key.name} text"
    if not isinstance(key.expression, e.Column):
        carried = tuple(p.Named(name, e.Column(name)) for name in p.columns(plan))
        plan = p.Project(plan, (*carried, p.Named(held, key.expression)))
    value, code = p.Field(f"{key.name} value", "string"), p.Field(f"{key.name} code", "integer")
    return p.Join(plan, p.Scan(key_table(key), (value, code)), ((held, value.name),))


def _allowed(key: Key) -> e.Expression:
    """The key has one of its declared values; a run of whole numbers is written as a range."""
    known = tuple(value for value in key.values or () if value is not None)
    numbers = [value for value in known if isinstance(value, int) and not isinstance(value, bool)]
    if key.kind == "integer" and len(numbers) == len(known) > 2 and max(numbers) - min(numbers) + 1 == len(set(numbers)):
        low, high = e.Literal(min(numbers)), e.Literal(max(numbers))
        return e.And((e.Compare(">=", key.expression, low), e.Compare("<=", key.expression, high)))
    return e.OneOfValues(key.expression, known)
