"""Several groupings of one table as one: rows are read once, and each grouping counts and sums where its own conditions hold.

Groupings that bound nobody share a scan where they have the same keys. A row counts for a grouping if its filter holds, which
becomes a condition of its aggregates; a group belongs to it if at least one row does.
The answers are those of each grouping by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.engines.expressions import And, Expression, Or, Reference, columns_of
from sfumato.engines.plan import AggregateColumn, BoundedGroup, Field, Filter, Named, Plan, Project, Scan, columns
from sfumato.engines.substitution import substituted

#: NUL occurs in no column name of a query, so that ours collide with none.
_KEY, _INPUT, _HOLDS, _NUMBER, _ROWS = "\x00k", "\x00x", "\x00w", "\x00a", "\x00n"
#: Above this many aggregates a single query becomes slow to plan.
_MOST_AGGREGATES = 200


@dataclass(frozen=True)
class _Flat:
    """A grouping written over the columns of its table: what it filters by, and what its columns are."""

    place: int
    plan: BoundedGroup
    scan: Scan
    conditions: tuple[Expression, ...]
    inputs: Mapping[str, Expression]

    @property
    def shares(self) -> object:
        """What groupings must have in common."""
        names = self.plan.keys + self.plan.within
        unit = None if self.plan.unit is None else self.inputs[self.plan.unit]
        return self.scan.table, unit, tuple(self.inputs[name] for name in names), len(self.plan.keys)


@dataclass(frozen=True)
class SharedScan:
    """One plan that answers several, by their places."""

    plan: Plan
    members: tuple[_Flat, ...]

    def answers(self, answer: pa.Table) -> dict[int, pa.Table]:
        """The answer to each of the plans."""
        return {member.place: _part(number, member, answer) for number, member in enumerate(self.members)}


def shared_scans(plans: Iterable[tuple[int, Plan]]) -> list[SharedScan]:
    """One plan for each set of at least two groupings that can share a scan; the others are in none."""
    alike: dict[object, list[_Flat]] = {}
    for place, plan in plans:
        flat = _flat(place, plan)
        if flat is not None:
            alike.setdefault(flat.shares, []).append(flat)
    shared = []
    for members in alike.values():
        for chunk in _chunks(members):
            if len(chunk) > 1:
                shared.append(SharedScan(_combined(chunk), tuple(chunk)))
    return shared


def _chunks(members: Sequence[_Flat]) -> list[list[_Flat]]:
    chunks: list[list[_Flat]] = [[]]
    for member in members:
        if sum(1 + len(each.plan.aggregates) for each in (*chunks[-1], member)) > _MOST_AGGREGATES:
            chunks.append([])
        chunks[-1].append(member)
    return chunks


def _flat(place: int, plan: Plan) -> _Flat | None:
    """A grouping that bounds nobody over filters and renamed columns of one table; None for everything else."""
    if not isinstance(plan, BoundedGroup) or not plan.bounds_nothing or not isinstance(plan.source, (Project, Filter)):
        return None
    below, upper = _peeled(plan.source)
    if not isinstance(below, Project):
        return None
    inner, conditions = _peeled(below.source)
    renamed: dict[str, Expression] | None = None
    while isinstance(inner, Project):
        if not all(isinstance(each.expression, Reference) for each in inner.columns):
            return None  # long expressions stand in columns of their own, and are not written out again
        outer = {each.name: each.expression for each in inner.columns}
        conditions = [substituted(each, outer) for each in conditions]
        renamed = outer if renamed is None else {name: substituted(each, outer) for name, each in renamed.items()}
        inner, more = _peeled(inner.source)
        conditions += more
    if not isinstance(inner, Scan):
        return None
    own = renamed if renamed is not None else {name: Reference(name) for name in columns(inner)}
    inputs = {each.name: substituted(each.expression, own) for each in below.columns}
    conditions += [substituted(each, inputs) for each in upper]
    return _Flat(place, plan, inner, tuple(conditions), inputs)


def _peeled(plan: Plan) -> tuple[Plan, list[Expression]]:
    """What lies below filters, and their conditions."""
    conditions = []
    while isinstance(plan, Filter):
        conditions.append(plan.condition)
        plan = plan.source
    return plan, conditions


def _combined(members: Sequence[_Flat]) -> BoundedGroup:
    first = members[0]
    fields: dict[str, Field] = {}
    for member in members:
        fields.update({field.name: field for field in member.scan.columns})
    source: Plan = Scan(first.scan.table, tuple(fields.values()))
    if all(member.conditions for member in members):
        source = Filter(source, _any([_all(member.conditions) for member in members]))
    names = first.plan.keys + first.plan.within
    shown = [Named(f"{_KEY}{i}", first.inputs[name]) for i, name in enumerate(names)]
    unit = None
    if first.plan.unit is not None:
        unit = f"{_KEY}unit"
        shown.append(Named(unit, first.inputs[first.plan.unit]))
    aggregates: list[AggregateColumn] = []
    for number, member in enumerate(members):
        used = {
            name for each in member.plan.aggregates for part in (each.expression, each.where) if part for name in columns_of(part)
        }
        renamed = {name: Reference(f"{_INPUT}{number} {name}") for name in member.inputs if name in used}
        if member.plan.unit is not None and unit is not None:
            renamed[member.plan.unit] = Reference(unit)
        shown += [
            Named(renamed[name].name, each) for name, each in member.inputs.items() if name in used and name != member.plan.unit
        ]
        holds: tuple[Expression, ...] = ()
        if member.conditions:
            shown.append(Named(f"{_HOLDS}{number}", _all(member.conditions)))
            holds = (Reference(f"{_HOLDS}{number}"),)
        for place, each in enumerate(member.plan.aggregates):
            where = (*holds, *(() if each.where is None else (substituted(each.where, renamed),)))
            expression = None if each.expression is None else substituted(each.expression, renamed)
            condition = _all(where) if where else None
            aggregates.append(replace(each, name=f"{_NUMBER}{number} {place}", expression=expression, where=condition))
        if names and holds:
            aggregates.append(AggregateColumn(f"{_ROWS}{number}", "count", None, holds[0]))
    keys = tuple(f"{_KEY}{i}" for i in range(len(names)))
    split = len(first.plan.keys)
    salt = next((member.plan.salt for member in members if member.plan.salt is not None), None)
    return BoundedGroup(Project(source, tuple(shown)), unit, keys[:split], keys[split:], None, None, tuple(aggregates), (), salt)


def _part(number: int, member: _Flat, answer: pa.Table) -> pa.Table:
    rows = f"{_ROWS}{number}"
    if rows in answer.column_names:
        answer = answer.filter(pc.greater(answer.column(rows), 0))
    names = member.plan.keys + member.plan.within
    own = [answer.column(f"{_KEY}{i}") for i in range(len(names))]
    own += [answer.column(f"{_NUMBER}{number} {place}") for place in range(len(member.plan.aggregates))]
    return pa.table(own, names=[*names, *(each.name for each in member.plan.aggregates)])


def _all(conditions: Sequence[Expression]) -> Expression:
    return conditions[0] if len(conditions) == 1 else And(tuple(conditions))


def _any(conditions: Sequence[Expression]) -> Expression:
    different = tuple(dict.fromkeys(conditions))
    return different[0] if len(different) == 1 else Or(different)
