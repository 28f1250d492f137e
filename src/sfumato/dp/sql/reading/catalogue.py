"""What an analyst may know of the tables: names, kinds, units, and the bounds and domains that the owner declared; and of the
rows that a query makes of them: which columns it may name, whose rows they are, and how many of them one unit may have.

Nothing here is read from the rows of a private table: bounds and domains marked `source = "data"` are left out, so
that whatever is decided from this catalogue depends on the schema alone. A public table's own values are no secret.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from sfumato.core.errors import ParameterError, SchemaError, Unsupported
from sfumato.core.exact import exact
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Column
from sfumato.dp.declaring import CURE
from sfumato.dp.protected_unit import unit_column
from sfumato.dp.sql.operators.term import MOST_GROUPS, Term
from sfumato.engines import plan as p
from sfumato.engines.canonical import canonical_columns, kind_of_type
from sfumato.engines.distinct_units import distinct_units
from sfumato.engines.expressions import Kind, Value
from sfumato.engines.plan import Field
from sfumato.engines.sql.relation import types_are_stored

if TYPE_CHECKING:
    import pyarrow as pa


#: A public table may have this many rows: it travels to the engine with each question.
MOST_PUBLIC_ROWS = 1_000_000


@dataclass(frozen=True)
class KnownColumn:
    """A column: what it holds, its declared bounds, and the values it may have where those are declared."""

    field: Field
    low: Fraction | None = None
    high: Fraction | None = None
    values: tuple[Value, ...] | None = None
    hint: str = ""  # why bounds or values are absent, for refusals
    untyped: bool = False  # its type was found by looking at the values, so that it may not be used
    one_per_unit: bool = False  # declared the same in all rows of a unit, and made so before anything else looks at it

    @property
    def name(self) -> str:
        """The column's name."""
        return self.field.name


@dataclass(frozen=True)
class KnownTable:
    """A table: private, with the unit whose data is protected, or public."""

    name: str
    columns: Mapping[str, KnownColumn]
    unit: str | None = None
    private: bool = True
    data: Microdata | None = field(default=None, repr=False, compare=False)
    rows: pa.Table | None = field(default=None, repr=False, compare=False)
    #: What a query calls the only table of a session, where that is not its name.
    called: str = ""

    def __getstate__(self) -> dict[str, object]:
        """A copy of an answer holds no row of the tables that were asked."""
        return {**vars(self), "data": None, "rows": None}

    def column(self, name: str) -> KnownColumn | None:
        """The column of that name; a name in another case serves where it is the only one."""
        if name in self.columns:
            return self.columns[name]
        near = [own for own in self.columns if own.lower() == name.lower()]
        return self.columns[near[0]] if len(near) == 1 else None


@dataclass(frozen=True)
class Catalogue:
    """The tables of a session."""

    tables: Mapping[str, KnownTable]
    alone: bool = False  # one table was given without a name: any name means it

    def table(self, name: str) -> KnownTable:
        """The table of that name."""
        if name in self.tables:
            return self.tables[name]
        near = [own for own in self.tables if own.lower() == name.lower()]
        if len(near) == 1:
            return self.tables[near[0]]
        if self.alone:
            return replace(next(iter(self.tables.values())), called=name.lower())
        close = difflib.get_close_matches(name, self.tables, n=1)
        hint = f" Did you mean '{close[0]}'?" if close else f" There are: {', '.join(sorted(self.tables))}."
        raise Unsupported(f"there is no table '{name[:60]}' in this session.{hint}")


def private_table(name: str, data: Microdata, unit: str | None) -> KnownTable:
    """A private table as its schema describes it."""
    unit = unit_column(data, unit)
    if unit is not None and not _untyped(data, unit):
        data = replace(data, relation=distinct_units(data.relation, unit))
    fields = relation_fields(data)
    if unit is not None and unit not in fields:
        raise SchemaError(f"table '{name}' has no column '{unit}', which was named as the unit")
    columns = {}
    for column, stored in fields.items():
        described = data.schema.columns.get(column, Column())
        if column == unit:
            # The unit is never clamped or narrowed: two people must not become one.
            columns[column] = KnownColumn(stored)
        else:
            columns[column] = replace(_known(stored, described), one_per_unit=unit is not None and described.one_per_unit)
        if _untyped(data, column):
            columns[column] = replace(columns[column], untyped=True)
    return KnownTable(name, columns, unit, True, data)


def _untyped(data: Microdata, column: str) -> bool:
    """True for a column whose type was found by looking at its values; every question that needs it is refused."""
    described = data.schema.columns.get(column, Column())
    return not types_are_stored(data.relation) and (described.type is None or described.source != "declared")


def public_table(name: str, source: object) -> KnownTable:
    """A public table, from anything `read` accepts as a frame; its own values are its domain."""
    from sfumato.engines.sources import read

    table = canonical_columns((source if isinstance(source, Microdata) else read(source)).table())
    if table.num_rows > MOST_PUBLIC_ROWS:
        raise ParameterError(f"the public table '{name}' has more than {MOST_PUBLIC_ROWS:,} rows")
    columns = {}
    for column in table.column_names:
        kind = kind_of_type(table.schema.field(column).type)
        if kind is not None:
            columns[column] = _public(Field(column, kind), table.column(column))
    return KnownTable(name, columns, None, False, None, table)


def relation_fields(data: Microdata) -> dict[str, Field]:
    """The columns that an engine can work with, as plans name them."""
    fields: dict[str, Field] | None = getattr(data.relation, "fields", None)
    if fields is not None:
        return dict(fields)
    listed = {}
    for entry in data.relation.schema():
        kind = kind_of_type(entry.type)
        if kind is not None:
            listed[entry.name] = Field(entry.name, kind)
    return listed


def _known(stored: Field, described: Column) -> KnownColumn:
    if described.source != "declared":
        return KnownColumn(stored, hint=f"its bounds and values were learnt from the data. {CURE}")
    low = high = None
    if described.bounds is not None and stored.kind in ("integer", "number", "wide"):
        low, high = (exact(bound, "bounds") for bound in described.bounds)
        if stored.kind != "number":
            low, high = Fraction(-((-low) // 1)), Fraction(high // 1)
            if low > high:
                return KnownColumn(stored, hint="no whole number lies between its bounds")
    listed = described.domain if described.domain is not None else described.order
    values = None if listed is None else values_of_texts(listed, stored.kind)
    return KnownColumn(stored, low, high, values)


def values_of_texts(listed: Iterable[str], kind: Kind) -> tuple[Value, ...] | None:
    """The declared values in the column's kind, each once ("1" and "01" are one); None where the kind has no values that can
    be listed."""
    converted = _converted(list(listed), kind)
    return None if converted is None else tuple(dict.fromkeys(converted))


def _converted(texts: list[str], kind: Kind) -> tuple[Value, ...] | None:
    try:
        if kind == "string":
            return tuple(texts)
        if kind == "integer":
            return tuple(int(text) for text in texts)
        if kind == "boolean":
            return tuple({"true": True, "false": False}[text.lower()] for text in texts)
        if kind == "date":
            import datetime

            return tuple(datetime.date.fromisoformat(text) for text in texts)
    except (ValueError, KeyError):
        return None
    return None


def _public(stored: Field, column: pa.ChunkedArray) -> KnownColumn:
    import pyarrow.compute as pc

    low = high = None
    values: tuple[Value, ...] | None = None
    if stored.kind in ("integer", "number") and len(column) > column.null_count:
        ends = pc.min_max(column)
        low, high = (exact(ends[end].as_py(), "bounds") for end in ("min", "max"))
    if stored.kind in ("string", "integer", "boolean", "date"):
        distinct = pc.unique(column)
        if len(distinct) <= MOST_GROUPS:
            values = tuple(sorted((v for v in distinct.to_pylist() if v is not None), key=repr))
            if column.null_count:
                values = (None, *values)
    return KnownColumn(stored, low, high, values)


@dataclass(frozen=True)
class Visible:
    """A column that the query may name: with its table's alias or without."""

    qualifier: str
    name: str
    term: Term
    unit: bool = False  # holds the unit
    perhaps_unit: bool = False  # holds the unit where the right side of a LEFT JOIN has a row, else nothing
    qualified: bool = False  # can be named with its table's alias only: USING shows the other side's


@dataclass(frozen=True)
class QueryRows:
    """Rows under a plan; `unit` is the plan's column that says whose they are, None when each row is its own unit."""

    plan: p.Plan
    columns: tuple[Visible, ...]
    unit: str | None
    private: bool
    single: bool = False  # each unit has at most one row
    unlimited: int = 0  # how many private sides were joined of which a unit may have any number of rows
    copies: int = 1  # how many of these rows public tables make of one private row, at most
    unread: tuple[str, ...] = ()  # columns that a query could name here and does not

    def resolve(self, node: exp.Column) -> Term:
        """The column that a reference names."""
        return self.find(node).term

    def find(self, node: exp.Column) -> Visible:
        """The column that a reference names, with what is known of it."""
        if not isinstance(node.this, exp.Identifier):
            raise Unsupported("* stands where a column is needed; name the columns")
        name, called = node.name, self._called(node)
        matches = [c for c in called if c.name == name and (not node.table or c.qualifier == node.table)] or called
        if not matches:
            there = [c.name for c in self.columns if not c.name.startswith("\x00")]
            offered = ", ".join(dict.fromkeys([*there, *self.unread]))
            text = f". If it is a text, write it in single quotes: '{name[:60]}'" if node.this.quoted and not node.table else ""
            raise Unsupported(f"there is no column '{name[:60]}' here; there are: {offered[:500]}{text}")
        if len(matches) > 1 and len({c.term.expression for c in matches}) > 1:
            raise Unsupported(f"the column '{name[:60]}' is in more than one table; write table.{name[:60]}")
        return matches[0]

    def has(self, node: exp.Column) -> bool:
        """True when a reference names one of these columns, or several."""
        return bool(self._called(node))

    def _called(self, node: exp.Column) -> list[Visible]:
        """The columns of that name, in whatever case it is written."""
        qualifier, name = node.table.lower(), node.name.lower()
        return [
            column
            for column in self.columns
            if column.name.lower() == name and (column.qualifier.lower() == qualifier if qualifier else not column.qualified)
        ]


@dataclass
class Lowering:
    """The state of lowering one query: which tables it reads, and fresh names for what it computes."""

    catalogue: Catalogue
    primary: str | None = None
    read: dict[str, KnownTable] = field(default_factory=dict)
    referenced: frozenset[str] = frozenset()
    scans: int = 0
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def fresh(self, what: str) -> str:
        """A plan column name that nothing else has."""
        return f"{what}{next(self.numbers)}"


def scanned_as(table: str) -> str:
    """What plans call a table other than the first private one."""
    return f"table {table}"
