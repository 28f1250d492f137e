"""A masked table beside its original: which row came from which record, and both sides as comparable arrays.

Masks return a `Masked`; measures accept one, or any table whose rows stand in the order of the original.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import InputError, ParameterError, Unsupported, all_at_once
from sfumato.core.plain_data import Plain
from sfumato.core.view import View
from sfumato.data.microdata import Microdata, ReleasedTable
from sfumato.data.records import Records, paired
from sfumato.data.relation import ORDERED, Relation
from sfumato.data.schema import Schema


@dataclass(frozen=True, eq=False)
class Masked:
    """A masked table, the columns that were masked, the source row behind each of its rows (None: no record stands behind
    them), what may be published about how it was made, and for a recoded table which rows show the same (-1: a row that is
    not shown). `source` is what was masked: the relation, and the records as they were read from it, to which `rows` refers;
    None where the relation hands over its records in one order. `truthful`: every cell shows something its record's value lies
    under."""

    table: pa.Table = field(repr=False)
    schema: Schema = field(repr=False)
    columns: tuple[str, ...]
    rows: NDArray[np.int64] | None = field(repr=False)
    facts: Plain | Callable[[], Plain] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    classes: NDArray[np.int64] | None = field(default=None, repr=False)
    source: tuple[Relation, pa.Table] | None = field(default=None, repr=False)
    truthful: bool = False

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def transparency(self) -> Plain:
        """What may be published about how it was made; `facts`, or what puts them together when somebody asks."""
        return MappingProxyType(dict(self.facts() if callable(self.facts) else self.facts))


#: The rows of a release, in whichever form somebody holds them.
Table: TypeAlias = pa.Table | ReleasedTable | Masked
#: A table that was published, as an outsider has it.
TableView: TypeAlias = View[Table, Schema]
#: What a measure compares with the original, record by record.
Compared: TypeAlias = Table | Microdata


def as_masked(released: Compared, original: Microdata) -> Masked:
    """A `Masked` as it is; rows of a release stand in an order of their own; any other table counts as one whose rows stand in
    the order of the original, where there are as many."""
    if isinstance(released, Masked):
        return released
    if isinstance(released, ReleasedTable):
        names = tuple(name for name in compared_columns(original, None) if name in released.table.column_names)
        return Masked(released.table, original.schema, names, None)
    if isinstance(released, Microdata):
        table = released.table()
    elif isinstance(released, pa.Table):
        table = released
    else:
        raise InputError("a masked table is a Masked, Microdata or an Arrow table")
    schema = original.schema
    same = table.num_rows == len(original) and original.relation.engine in ORDERED
    rows = np.arange(table.num_rows, dtype=np.int64) if same else None
    return Masked(table, schema, tuple(n for n in compared_columns(original, None) if n in table.column_names), rows)


def original_rows(original: Microdata, masked: Masked) -> pa.Table:
    """The original's records in the order to which `masked.rows` refers: as the mask read them, where it masked this table."""
    if masked.source is not None and masked.source[0] is original.relation:
        return masked.source[1]
    if masked.rows is not None and original.relation.engine not in ORDERED:
        raise InputError(
            f"records on {original.relation.engine} have no order of their own, so nobody can say which of them became which "
            "masked row. Read the table with engine='memory' before it is masked."
        )
    return original.table()


def compared_columns(original: Microdata, masked: Masked | None, columns: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The columns a measure is about: those named; otherwise the quasi-identifiers and whatever else was masked; without
    either, every column that names nobody."""
    if columns is not None:
        if not columns or len(set(columns)) != len(columns):
            raise ParameterError("columns must name at least one column, each once")
        return tuple(columns)
    schema = original.schema
    masked_columns = set(masked.columns) if masked is not None else set()
    shown = set(masked.table.column_names) if masked is not None else set(original.column_names)
    chosen = tuple(name for name in original.column_names if name in shown and (name in masked_columns or name in schema.quasi))
    if chosen:
        return chosen
    hidden = {*schema.with_role("identifier"), *schema.with_role("unit"), *schema.with_role("weight")}
    return tuple(name for name in original.column_names if name in shown and name not in hidden)


def sides(original: Microdata, masked: Masked, columns: tuple[str, ...] | None = None) -> tuple[Records, Records]:
    """Original and masked records over the same columns, with the same labels; rows need not correspond."""
    names = compared_columns(original, masked, columns)
    left = Records.of(original_rows(original, masked), original.schema, names)
    right = Records.of(masked.table, original.schema, names)
    return paired(left, right)


def aligned(original: Microdata, masked: Masked, columns: tuple[str, ...] | None = None) -> tuple[Records, Records]:
    """As `sides`, and row i of the first is the record behind row i of the second; refused where no record stands behind a
    row."""
    if masked.rows is None:
        raise InputError(
            "this measure compares each record with its masked row, and no record stands behind these rows (synthetic data, or a "
            "table with another number of rows than the original)"
        )
    left, right = sides(original, masked, columns)
    in_place = masked.rows.size == left.size and bool(np.array_equal(masked.rows, np.arange(left.size)))
    return (left if in_place else left.take(masked.rows)), right


def compared(
    original: object, released: Compared, columns: tuple[str, ...] | None, *, also: tuple[str, ...] = ()
) -> tuple[Records, Records, Masked]:
    """Both sides over the same columns (those asked for, otherwise the quasi-identifiers and whatever was masked) and `also`
    last, with the same labels; rows correspond as `rows` of the masked table says."""
    if not isinstance(original, Microdata):
        raise InputError("this measure compares with the original records: pass what `sf.read` returned")
    masked = as_masked(released, original)
    names = tuple(name for name in compared_columns(original, masked, columns) if name not in also)
    left, right = sides(original, masked, names + also)
    if not left.size or not right.size:
        raise Unsupported(f"the {'masked' if left.size else 'original'} table has no records to compare")
    unknown = [
        f"column '{column.name}' has no known value in the original; leave it out (columns=)"
        for column in left.columns
        if not column.known.any()
    ]
    all_at_once(Unsupported, "comparing masked records", unknown)
    return left, right, masked
