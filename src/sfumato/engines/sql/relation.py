"""What the SQL engines share: a relation answers plans, and the class queries are plans.

An engine says where its rows are (`physical`), which columns they have (`fields`), and how a plan runs
(`run`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

import pyarrow as pa

from sfumato.core.errors import MissingColumn, Unsupported, all_at_once
from sfumato.data.recoding import RecodingTable
from sfumato.data.relation import Relation
from sfumato.data.schema import Type
from sfumato.engines import class_queries
from sfumato.engines.canonical import ARROW_TYPES
from sfumato.engines.class_queries import CELLS, ROWS
from sfumato.engines.distinct_units import lossy_unit
from sfumato.engines.expressions import Kind
from sfumato.engines.plan import AggregateColumn, Field, Group, Plan, Scan

#: Kinds as which different texts may be read as one value: they may not name units.
_ROUNDED_FROM_TEXT: frozenset[Kind] = frozenset({"number", "date", "datetime", "instant", "time"})
#: Stored kinds that may be declared as another type: casts that cannot fail, and text read as what it is
#: declared to be.
_READABLE: frozenset[tuple[Kind, Type]] = frozenset(
    {
        ("integer", "string"),
        ("boolean", "string"),
        ("date", "string"),
        ("time", "string"),
        ("integer", "number"),
        ("date", "datetime"),
        ("string", "integer"),
        ("string", "number"),
        ("string", "boolean"),
        ("string", "date"),
        ("string", "datetime"),
    }
)


class SqlRelation(ABC):
    """Rows of a table that an SQL engine holds; nothing is read before it is asked for."""

    engine: str = "sql"
    #: True where types are found by looking at values.
    infers_types: bool = False

    @cached_property
    @abstractmethod
    def fields(self) -> dict[str, Field]:
        """The columns by name, in order."""

    @abstractmethod
    def run(
        self,
        plan: Plan,
        uploads: Mapping[str, pa.Table] | None = None,
        beside: Mapping[str, Relation] | None = None,
    ) -> pa.Table:
        """The answer to a plan over `rows` (this relation), uploaded tables, and relations `beside` this one that the
        same engine holds, joined in place; in canonical form."""

    @abstractmethod
    def stream(self, plan: Plan) -> Iterator[pa.RecordBatch]:
        """The answer to a plan over `rows`, a batch at a time."""

    def schema(self) -> pa.Schema:
        """Column names and canonical types."""
        return pa.schema([(field.name, ARROW_TYPES[field.kind]) for field in self.fields.values()])

    def count(self) -> int:
        """The number of rows."""
        if not self.fields:
            return 0
        rows = Scan(ROWS, (next(iter(self.fields.values())),))
        answer = self.run(Group(rows, (), (AggregateColumn("rows", "count"),)))
        return int(answer.column(0)[0].as_py())

    def group(self, columns: Sequence[str], *, unit: str | None = None, weight: str | None = None) -> pa.Table:
        """The distinct tuples of `columns`, see `Relation.group`; the order of the rows is the engine's."""
        self._require([*columns, *(extra for extra in (unit, weight) if extra is not None)])
        return class_queries.grouped_table(self.run(class_queries.group_plan(self.fields, columns, unit, weight)))

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, a batch at a time."""
        names = list(self.fields) if columns is None else list(columns)
        self._require(names)
        if names:
            yield from self.stream(Scan(ROWS, tuple(self.fields[name] for name in names)))

    def recode(self, recoding: RecodingTable, keep: Sequence[str]) -> pa.Table:
        """The released rows, see `Relation.recode`; the order of the rows is the engine's."""
        class_queries.check_recoding(recoding, keep, list(self.fields))
        cells = class_queries.cell_table(recoding, self.fields)
        plan = class_queries.recode_plan(self.fields, recoding, cells, keep)
        answer = self.run(plan, {CELLS: cells})
        class_queries.check_all_assigned(recoding, answer.num_rows)
        klass = answer.column(class_queries.CLASS).to_numpy()
        carried = {name: answer.column(name) for name in keep if name not in recoding.quasi}
        return class_queries.released_table(recoding, keep, klass, carried)

    def distinct_units(self, unit: str) -> Self:
        """The same rows, the unit in a form in which no two stored values become one; see `distinct_units.distinct_units`."""
        field = self.fields.get(unit)
        if field is None:
            return self
        if field.stored == "string" and field.kind in _ROUNDED_FROM_TEXT:
            raise lossy_unit(unit, field.kind)
        if field.stored == "string" and field.kind == "integer":
            return self._with_fields({**self.fields, unit: replace(field, strict=True)})
        if field.exact is None:
            return self
        chosen = replace(field, kind=field.exact, stored=field.stored or field.kind, exact=None)
        return self._with_fields({**self.fields, unit: chosen})

    def _with_fields(self, fields: dict[str, Field]) -> Self:
        same = object.__new__(type(self))
        same.__dict__.update(self.__dict__)
        same.__dict__["fields"] = fields
        return same

    def _require(self, names: Sequence[str]) -> None:
        faults = (f"there is no column '{name}' in the table" for name in dict.fromkeys(names) if name not in self.fields)
        all_at_once(MissingColumn, "table", faults)


def lenient(relation: Relation) -> Relation:
    """The same rows, with whatever cannot be read as its declared kind missing instead of an error."""
    if not isinstance(relation, SqlRelation):
        return relation  # rows in this process were converted when they were read
    return relation._with_fields({name: replace(field, lenient=True) for name, field in relation.fields.items()})


def types_are_stored(relation: object) -> bool:
    """True where the engine knows the type of every column without looking at the rows; text files do not."""
    return isinstance(relation, SqlRelation) and not relation.infers_types


def declared_fields(
    stored: Mapping[str, Kind],
    types: Mapping[str, Type] | None,
    missing: Mapping[str, Sequence[str]] | None,
    exact: Mapping[str, Kind] | None = None,
    by_text: Collection[str] = (),
) -> dict[str, Field]:
    """The columns as the owner declares them, over what is stored; all contradictions are reported. `exact` says how
    columns are read without loss whose kind may lose digits, `by_text` which numbers are those that their
    text names."""
    fields, faults = {}, []
    for name, kind in stored.items():
        declared, lossless = (types or {}).get(name), (exact or {}).get(name)
        same = declared is None or declared == kind or (declared == "datetime" and kind == "instant")
        readable = (kind, declared) in _READABLE or (lossless is not None and declared in ("string", lossless))
        if not same and not readable:
            faults.append(f"column '{name}' is stored as {kind} and declared as {declared}")
        chosen: Kind = kind if same or declared is None else declared
        if kind == "integer" and chosen == "number":
            lossless = lossless or "integer"
        elif chosen != kind:
            lossless = None
        codes = tuple((missing or {}).get(name, ()))
        fields[name] = Field(
            name, chosen, codes, stored=None if chosen == kind else kind, exact=lossless, by_text=name in by_text
        )
    all_at_once(
        Unsupported,
        "types that an engine cannot convert (read the table into memory with engine='memory')",
        faults,
    )
    return fields
