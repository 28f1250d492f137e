"""Rows of a query under a plan: which columns it may name, whose they are, and how many rows one unit may have."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.catalogue import Catalogue, KnownTable
from sfumato.dp.sql.term import Term
from sfumato.engines import plan as p


@dataclass(frozen=True)
class Visible:
    """A column that the query may name: with its table's alias or without."""

    qualifier: str
    name: str
    term: Term
    unit: bool = False  # holds the unit


@dataclass(frozen=True)
class Rows:
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
        qualifier, name = node.table, node.name
        found = [c for c in self.columns if c.name == name and (not qualifier or c.qualifier == qualifier)]
        if not found:
            found = [
                c
                for c in self.columns
                if c.name.lower() == name.lower() and (not qualifier or c.qualifier.lower() == qualifier.lower())
            ]
        if not found:
            there = [c.name for c in self.columns if not c.name.startswith("\x00")]
            known = ", ".join(dict.fromkeys([*there, *self.unread]))
            raise Unsupported(f"there is no column '{name[:60]}' here; there are: {known[:500]}")
        if len(found) > 1 and len({c.term.expression for c in found}) > 1:
            raise Unsupported(f"the column '{name[:60]}' is in more than one table; write table.{name[:60]}")
        return found[0]


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
