"""Counts of cells of coded columns, as plans: rows are coded, bounded per unit and counted where they are.

A row is first its codes (and its unit). Of each unit so many rows are kept, the same for everything that is counted: the first
ones in an order, or those whose digest of salt, unit and place among the unit's rows is least. Each block of columns is then one
whole number per row, and all blocks are counted in one pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.canonical import ARROW_TYPES
from sfumato.engines.class_queries import ROWS
from sfumato.engines.expressions import (
    And,
    Cast,
    Choose,
    Compare,
    Expression,
    IsMissing,
    Literal,
    Not,
    OneOfValues,
    Reference,
    Scrambled,
    Value,
)
from sfumato.engines.functions.parts import Cell
from sfumato.engines.plan import (
    AggregateColumn,
    Bound,
    Field,
    Filter,
    Group,
    Join,
    Named,
    Numbering,
    Order,
    PerUnitAggregate,
    Plan,
    Project,
    Scan,
    column,
)

Counts = NDArray[np.int64]

# NUL occurs in no column name of a table, so that ours collide with none.
_UNIT, _ORDER, _PLACE, _CELL, _COUNT = "\x00unit", "\x00order", "\x00place", "\x00cell", "\x00count"
#: Up to so many values are compared one after the other; more are joined.
COMPARED = 16
#: Up to so many values are named where others are asked for.
_EXCLUDED = 256
_LARGEST_CELL = 2**62


@dataclass(frozen=True)
class Code:
    """A stored column as codes 0 to `size` - 1: an expression over it, or values with their codes.

    What has no code gets the code `other`, or its row is not counted. `part` is computed before, once for each row, as the column
    `part_of` that the expression refers to.
    """

    column: str
    size: int
    expression: Expression | None = None
    values: tuple[tuple[Value, int], ...] = ()
    other: int | None = None
    part: Expression | None = None

    @property
    def joined(self) -> bool:
        """True where the values are many, and given to the engine as a table."""
        return self.expression is None and len(self.values) > COMPARED

    def written(self) -> Expression:
        """The code as an expression, missing where there is none."""
        if self.expression is not None:
            return self.expression
        none = Literal(None, "integer")
        if not self.values:
            return none
        branches = ((Compare("=", Reference(self.column), Literal(value)), Literal(code)) for value, code in self.values)
        return Choose(tuple(branches), none)


@dataclass(frozen=True)
class KeptRows:
    """Which rows of a unit count: `limit` of them, random ones by the salt, or the first ones by a column (missing values last,
    ties by the codes); all of them without a limit. With `once`, each cell of a unit counts as one row."""

    unit: str | None
    limit: int | None = None
    salt: str | None = field(default=None, repr=False)
    order: str | None = None
    once: bool = False


@dataclass(frozen=True)
class CodedRows:
    """The coded rows of a relation: the plan, with what it joins, and the codes' names and sizes."""

    plan: Plan
    uploads: Mapping[str, pa.Table]
    sizes: tuple[int, ...]

    def counted(self, blocks: Sequence[Sequence[int]]) -> Plan:
        """How many rows each cell of each block has: the first block's cells come first, in the order of an array."""
        firsts = starts(self.sizes, blocks)
        names = [f"\x00b{place}" for place in range(len(blocks))]
        cells = [
            Named(name, Cell(tuple(Reference(_code(at)) for at in block), tuple(self.sizes[at] for at in block), first))
            for name, block, first in zip(names, blocks, firsts, strict=False)
        ]
        rows = Project(self.plan, tuple(cells))
        many = tuple((name,) for name in names) if len(names) > 1 else ()
        grouped = Group(rows, tuple(names), (AggregateColumn(_COUNT, "count"),), many)
        present = tuple((Not(IsMissing(Reference(name))), Reference(name)) for name in names[:-1])
        cell = Choose(present, Reference(names[-1])) if present else Reference(names[-1])
        return Project(grouped, (Named(_CELL, cell), column(_COUNT)))


def starts(sizes: Sequence[int], blocks: Sequence[Sequence[int]]) -> list[int]:
    """The number of the first cell of each block, and of the one after the last."""
    cells = [math.prod(sizes[at] for at in block) for block in blocks]
    return [sum(cells[:place]) for place in range(len(cells) + 1)]


def block_counts(answer: pa.Table, sizes: Sequence[int], blocks: Sequence[Sequence[int]]) -> list[Counts]:
    """The answer to `counted` as one array for each block."""
    firsts = starts(sizes, blocks)
    every = np.zeros(firsts[-1], dtype=np.int64)
    cells = answer.column(0).to_numpy(zero_copy_only=False)
    every[cells.astype(np.int64)] = answer.column(1).to_numpy(zero_copy_only=False)
    return np.split(every, firsts[1:-1])


def coded_rows(fields: Mapping[str, Field], codes: Sequence[Code], kept: KeptRows) -> CodedRows:
    """The rows that count, as codes."""
    named = [*(code.column for code in codes), kept.unit, kept.order]
    source: Plan = Scan(ROWS, tuple(fields[name] for name in dict.fromkeys(named) if name is not None))
    parts = {part_of(code.column): code.part for code in codes if code.part is not None}
    if parts:
        carried = (column(name) for name in dict.fromkeys(named) if name is not None)
        source = Project(source, (*carried, *(Named(name, part) for name, part in parts.items())))
    uploads = {}
    shown = []
    for place, code in enumerate(codes):
        if code.joined:
            source, uploads[f"values {place}"] = _joined(source, place, code, fields[code.column])
            value: Expression = Reference(f"code {place}")
        else:
            value = code.written()
        shown.append(Named(_code(place), value))
    if kept.unit is not None:
        shown.append(Named(_UNIT, Reference(kept.unit)))
    if kept.order is not None:
        shown.append(Named(_ORDER, _sortable(kept.order, fields)))
    plan: Plan = Project(source, tuple(shown))
    needed = [_code(place) for place, code in enumerate(codes) if code.other is None]
    needed += [_UNIT] if kept.unit is not None else []
    conditions: tuple[Expression, ...] = tuple(Not(IsMissing(Reference(name))) for name in needed)
    if conditions:
        plan = Filter(plan, And(conditions) if len(conditions) > 1 else conditions[0])
    plan = _with_others(plan, codes, shown)
    return CodedRows(_kept(plan, [code.size for code in codes], kept), uploads, tuple(code.size for code in codes))


def part_of(name: str) -> str:
    """The column in which a part of a stored column stands before its code is settled."""
    return f"\x00part {name}"


def _joined(source: Plan, place: int, code: Code, stored: Field) -> tuple[Plan, pa.Table]:
    value, number = Field(f"value {place}", stored.kind), Field(f"code {place}", "integer")
    table = pa.table(
        {
            value.name: pa.array([each for each, _ in code.values], ARROW_TYPES[stored.kind]),
            number.name: pa.array([each for _, each in code.values], pa.int64()),
        }
    )
    listed = Scan(f"values {place}", (value, number))
    return Join(source, listed, ((code.column, value.name),), "left", "drop"), table


def _with_others(plan: Plan, codes: Sequence[Code], shown: Sequence[Named]) -> Plan:
    """Values without a code get the one that stands for them."""
    others = {_code(place): code.other for place, code in enumerate(codes) if code.other is not None}
    if not others:
        return plan
    columns = [
        Named(each.name, Choose(((IsMissing(Reference(each.name)), Literal(others[each.name])),), Reference(each.name)))
        if each.name in others
        else column(each.name)
        for each in shown
    ]
    return Project(plan, tuple(columns))


def _sortable(name: str, fields: Mapping[str, Field]) -> Expression:
    """The least of truth values is not the same on all engines."""
    held = Reference(name)
    return Cast(held, "integer") if fields[name].kind == "boolean" else held


def _kept(plan: Plan, sizes: Sequence[int], kept: KeptRows) -> Plan:
    """At most so many rows of each unit. What is kept of one depends on its own rows, and on the salt, alone."""
    if kept.unit is None:
        return plan
    names = tuple(_code(place) for place in range(len(sizes)))
    if kept.once:
        first = (AggregateColumn(_ORDER, "min", Reference(_ORDER)),) if kept.order is not None else ()
        plan = PerUnitAggregate(plan, _UNIT, names, first)
    if kept.limit is None:
        return plan
    by_codes = tuple(Order(each) for each in _all_codes(sizes))
    if kept.salt is None:
        late = Order(Cast(IsMissing(Reference(_ORDER)), "integer"))
        return Bound(plan, (_UNIT,), kept.limit, (late, Order(Reference(_ORDER)), *by_codes))
    # All codes decide a row's place, whichever of them are counted: rows that share a place are equal in everything.
    numbered = Numbering(plan, _PLACE, (_UNIT,), by_codes)
    chance = Scrambled(Reference(_UNIT), f"{kept.salt}:rows", (Reference(_PLACE),))
    return Bound(numbered, (_UNIT,), kept.limit, (Order(chance), Order(Reference(_PLACE))))


def _all_codes(sizes: Sequence[int]) -> list[Cell]:
    """All codes of a row as few whole numbers that sort as the codes do: fewer columns are faster to sort by."""
    groups: list[list[int]] = [[]]
    for place, size in enumerate(sizes):
        if groups[-1] and math.prod(sizes[at] for at in groups[-1]) * size >= _LARGEST_CELL:
            groups.append([])
        groups[-1].append(place)
    return [Cell(tuple(Reference(_code(at)) for at in group), tuple(sizes[at] for at in group)) for group in groups]


def unwritten(fields: Mapping[str, Field], name: str, listed: Sequence[Value], condition: Expression) -> Plan:
    """The different values of a column for which a condition holds and that are none of those listed, if these are not many."""
    values = Filter(Scan(ROWS, (fields[name],)), condition)
    if 0 < len(listed) <= _EXCLUDED:
        values = Filter(values, Not(OneOfValues(Reference(name), tuple(listed))))
    return Group(values, (name,), ())


def _code(place: int) -> str:
    return f"\x00c{place}"
