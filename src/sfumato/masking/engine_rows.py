"""Rows that stay in their engine while masks change them: a plan that grows step by step, and what is asked about its rows.

A mask replaces columns by expressions of a plan, looks values up in small tables that are uploaded, and takes its draws from
`engines.digests.keyed_draws`. What it has to know about the data comes back as counts, extremes and sums of whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.core.errors import Unsupported
from sfumato.core.plain_data import Plain
from sfumato.data.records import Kind as ColumnKind
from sfumato.data.records import kind_of
from sfumato.data.relation import COUNT
from sfumato.data.schema import Column, Schema
from sfumato.engines.canonical import canonical_columns
from sfumato.engines.class_queries import ROWS, table_fields
from sfumato.engines.digests.keyed_draws import ROW, with_draws, with_numbers
from sfumato.engines.expressions import Expression, Kind
from sfumato.engines.plan import AggregateColumn, Field, Filter, Group, Join, Named, Plan, Project, Scan, column, columns
from sfumato.engines.plannable import Plannable

if TYPE_CHECKING:
    from sfumato.masking.base import Mask

#: More different values than these of a column are not brought here.
MOST_VALUES = 1_000_000
#: Masks that need all records at once work in this process, up to so many.
MOST_RECORDS = 10_000_000


@dataclass(frozen=True, eq=False)
class EngineRows:
    """Rows as a plan over `relation` and uploaded tables; `types` are those of the columns of data as they stand now.

    `key` is that of the run's draws, `step` names the mask that is at work, so that no two masks share a draw.
    """

    relation: Plannable = field(repr=False)
    schema: Schema = field(repr=False)
    plan: Plan = field(repr=False)
    size: int
    types: Mapping[str, pa.DataType] = field(repr=False)
    key: bytes = field(repr=False)
    uploads: Mapping[str, pa.Table] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    step: str = "0"

    @classmethod
    def of(cls, relation: Plannable, schema: Schema, names: Sequence[str], size: int, key: bytes) -> EngineRows:
        """The named columns of a relation."""
        fields: Mapping[str, Field] = relation.fields
        types = {each.name: each.type for each in relation.schema()}
        return cls(relation, schema, Scan(ROWS, tuple(fields[name] for name in names)), size, {n: types[n] for n in names}, key)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of data."""
        return tuple(self.types)

    def kind(self, name: str) -> Kind:
        """What a column holds."""
        return columns(self.plan)[name]

    def column_kind(self, name: str) -> ColumnKind:
        """Number, ordered category or category, as masks distinguish them."""
        return kind_of(self.types[name], self.schema.columns.get(name, Column()))

    def ask(self, aggregates: Iterable[AggregateColumn], keys: Sequence[Named] = (), where: Expression | None = None) -> pa.Table:
        """Aggregates over the rows, or for each tuple of keys, over the rows where a condition holds."""
        listed = tuple(aggregates)
        source = self.plan if where is None else Filter(self.plan, where)
        if keys:
            source = Project(source, (*map(column, columns(source)), *keys))
        return self.relation.run(Group(source, tuple(key.name for key in keys), listed), self.uploads)

    def counted(self, names: Sequence[str]) -> pa.Table:
        """The different values of these columns, with how many records have them; too many are refused."""
        values = Group(self.plan, tuple(names), ())
        different = self.relation.run(Group(values, (), (AggregateColumn("values", "count"),)), self.uploads)
        count = int(different.column(0)[0].as_py())
        if count > MOST_VALUES:
            listed = ", ".join(f"'{name}'" for name in names)
            raise Unsupported(
                f"{listed} has {count:,} different values, and at most {MOST_VALUES:,} are looked up in a table that is brought "
                "to the engine; generalise it in the source, or leave it out of columns=(…)"
            )
        return self.relation.run(Group(self.plan, tuple(names), (AggregateColumn(COUNT, "count"),)), self.uploads)

    def drawn(self, purposes: Iterable[str]) -> tuple[EngineRows, dict[str, str]]:
        """The rows with draws for each purpose, and the name of each one's column."""
        listed = list(purposes)
        numbered = self.plan if ROW in columns(self.plan) else with_numbers(self.plan)
        held = {purpose: f"\x00draws {self.step} {place}" for place, purpose in enumerate(listed)}
        named = {held[purpose]: f"{self.step}/{purpose}" for purpose in listed}
        plan, keys = with_draws(numbered, named, self.key, f"\x00keys {self.step} {len(self.uploads)}")
        return replace(self, plan=plan, uploads={**self.uploads, **keys}), held

    def looked_up(self, table: pa.Table, on: Mapping[str, str]) -> EngineRows:
        """The rows beside what an uploaded table has where its columns (values of `on`) equal theirs; missing values match
        nothing."""
        name = f"\x00table {self.step} {len(self.uploads)}"
        clean = canonical_columns(table)
        joined = Join(self.plan, Scan(name, table_fields(clean)), tuple(on.items()), kind="left", nulls="drop")
        return replace(self, plan=joined, uploads={**self.uploads, name: clean})

    def with_columns(self, added: Mapping[str, Expression]) -> EngineRows:
        """The rows with more columns, or others in their place."""
        kinds = columns(self.plan)
        shown = [Named(name, added[name]) if name in added else column(name) for name in kinds]
        shown += [Named(name, expression) for name, expression in added.items() if name not in kinds]
        return replace(self, plan=Project(self.plan, tuple(shown)))

    def replaced(self, masked: Mapping[str, tuple[Expression, pa.DataType]], helpers: Iterable[str] = ()) -> EngineRows:
        """The rows with masked columns in place of those that were there; helping columns are left behind."""
        gone = set(helpers)
        kept = [name for name in columns(self.plan) if name not in gone]
        shown = tuple(Named(name, masked[name][0]) if name in masked else column(name) for name in kept)
        types = {name: masked[name][1] if name in masked else arrow for name, arrow in self.types.items()}
        return replace(self, plan=Project(self.plan, shown), types=types)

    def filtered(self, condition: Expression, size: int) -> EngineRows:
        """The rows where a condition holds, of which there are so many."""
        return replace(self, plan=Filter(self.plan, condition), size=size)

    def at_step(self, number: int) -> EngineRows:
        """The rows for the next of several masks."""
        return replace(self, step=f"{self.step}.{number}")

    def finished(self, names: Sequence[str]) -> Plan:
        """The masked rows, without what only served to mask them."""
        return Project(self.plan, tuple(column(name) for name in names))


@dataclass(frozen=True, eq=False)
class EngineChange:
    """What a mask made of rows in an engine: `published` is for everybody, `details` are the owner's."""

    rows: EngineRows = field(repr=False)
    columns: tuple[str, ...]
    published: Plain = field(default_factory=lambda: MappingProxyType({}))
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def needs_all_records(mask: Mask, why: str = "it needs all records at once") -> Unsupported:
    """The refusal of a mask that works in this process alone."""
    return Unsupported(
        f"{type(mask).__name__} is not computed by an engine: {why}. Leave destination= out and mask the table in this process "
        f"(up to {MOST_RECORDS:,} records); of a larger one mask a uniform sample: sample=100_000 (--sample 100000), say"
    )
