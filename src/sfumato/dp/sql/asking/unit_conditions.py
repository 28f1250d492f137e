"""What a question's conditions say about the units whose rows it reads: the part of them that is the same in all rows of a unit.

Every column of a question's rows is traced to what it is computed from. Some of that is one value per unit: the unit itself, an
aggregate of all of a unit's rows (columns declared `one_per_unit` become such), and, where each record is a unit, every column
of the record. These have a name that all questions share. Whatever else a row holds is a value of its own of each question, about
which nothing is assumed. Then a unit with rows in two questions fulfils both conditions with the same shared values, and where
no values do that, no unit has rows in both: docs/theory/batches.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.question import Question
from sfumato.dp.sql.reading.catalogue import KnownTable, scanned_as
from sfumato.dp.sql.reading.normal_form import form, normal_rows
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.class_queries import ROWS
from sfumato.engines.expressions import Kind
from sfumato.engines.substitution import substituted, with_children


@dataclass(frozen=True)
class UnitCondition:
    """What holds for every unit with rows in a question, and what its columns hold; None where every unit may have rows."""

    condition: e.Expression | None
    kinds: Mapping[str, Kind]


@dataclass(frozen=True)
class _TracedRows:
    """Rows under a plan: what holds for each of them, and what its columns are."""

    conditions: tuple[e.Expression, ...]
    columns: Mapping[str, e.Expression]


@dataclass
class _Tracing:
    """The tables of one question, by what plans call them, and the names that it has given."""

    tables: Mapping[str, KnownTable]
    own: str
    kinds: dict[str, Kind] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def alone(self, kind: Kind) -> e.Expression:
        """A value that no other question is supposed to share."""
        return self.shared(f"{self.own} {next(self.numbers)}", kind)

    def shared(self, name: str, kind: Kind) -> e.Expression:
        """A value that has the same name in all questions."""
        self.kinds[name] = kind
        return e.Reference(name)

    def rows(self, plan: p.Plan) -> _TracedRows:
        match plan:
            case p.Scan(name, fields):
                return _TracedRows((), {each.name: self._stored(self.tables[name], each) for each in fields})
            case p.Filter(source, condition):
                below = self.rows(source)
                return _TracedRows((*below.conditions, _about_values(substituted(condition, below.columns))), below.columns)
            case p.Project(source, named):
                below = self.rows(source)
                return _TracedRows(below.conditions, {each.name: substituted(each.expression, below.columns) for each in named})
            case p.Join():
                return self._joined(plan)
            case p.PerUnitAggregate():
                return self._per_unit(plan)
        raise Unsupported(f"rows under {type(plan).__name__} have no condition")

    def _stored(self, table: KnownTable, stored: p.Field) -> e.Expression:
        if table.private and table.unit is None:
            return self.shared(f"record of {table.name}: {stored.name}", stored.kind)
        if table.private and stored.name == table.unit:
            # Tables that name the unit in different kinds may mean different people by it.
            return self.shared(f"unit {table.unit}, {stored.kind}", stored.kind)
        return self.alone(stored.kind)

    def _joined(self, plan: p.Join) -> _TracedRows:
        left, right = self.rows(plan.left), self.rows(plan.right)
        matched = {name for _, name in plan.on}
        if plan.kind == "inner":
            others = {name: held for name, held in right.columns.items() if name not in matched}
            return _TracedRows((*left.conditions, *right.conditions), {**left.columns, **others})
        # A row without a match has missing values, whatever the unit's own value is.
        kinds = p.columns(plan.right)
        return _TracedRows(
            left.conditions, {**left.columns, **{n: self.alone(kinds[n]) for n in right.columns if n not in matched}}
        )

    def _per_unit(self, plan: p.PerUnitAggregate) -> _TracedRows:
        below, kinds = self.rows(plan.source), p.columns(plan)
        columns = {name: below.columns[name] for name in (plan.unit, *plan.keys)}
        if plan.keys:
            return _TracedRows(below.conditions, columns | {each.name: self.alone(kinds[each.name]) for each in plan.aggregates})
        # One row per unit: its aggregates are functions of all rows that the unit has below.
        source = normal_rows(plan.source, _named(self.tables))
        for each in plan.aggregates:
            parts = [None if part is None else source.of(part) for part in (each.expression, each.where)]
            name = form("per unit", source.rows, source.of(e.Reference(plan.unit)), each.function, parts)
            columns[each.name] = self.shared(name, kinds[each.name])
        return _TracedRows(below.conditions, columns)


def unit_condition(question: Question, own: str) -> UnitCondition:
    """The condition that a question's units fulfil; `own` is a name that no other question of the batch has."""
    tables = {ROWS if name == question.primary else scanned_as(name): table for name, table in question.tables.items()}
    tracing = _Tracing(tables, own)
    conditions = tracing.rows(question.rows.plan).conditions
    if not conditions:
        return UnitCondition(None, tracing.kinds)
    return UnitCondition(conditions[0] if len(conditions) == 1 else e.And(conditions), tracing.kinds)


def _about_values(condition: e.Expression) -> e.Expression:
    """The condition with "this comparison with a constant is missing" said of what is compared, which is the same."""
    match condition:
        case e.IsMissing(e.Compare("=", term, e.Literal(value))) if value is not None:
            return e.IsMissing(term)
    return with_children(condition, tuple(_about_values(child) for child in e.children(condition)))


def _named(tables: Mapping[str, KnownTable]) -> Callable[[str], str]:
    """Tables by their own names: which of them is scanned first differs from question to question."""
    return lambda scanned: form("table", tables[scanned].name)
