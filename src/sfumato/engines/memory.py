"""Rows in this process: Arrow columns, each encoded once.

Grouping packs the codes of the columns into one key per row; a recoding is then a few array takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import MissingColumn, SchemaError, Unsupported, all_at_once
from sfumato.core.texts import counted
from sfumato.data.recoding import SUPPRESSED, RecodingTable
from sfumato.data.relation import COUNT, SHARES, UNITS, WEIGHT, WHOLE
from sfumato.engines import class_queries
from sfumato.engines.canonical import Coded, canonical_column, canonical_columns, canonical_type, encode, kind_of_type
from sfumato.engines.distinct_units import exact_column, lossy_unit
from sfumato.kernels.classes.grouping import group_columns

if TYPE_CHECKING:
    from sfumato.data.relation import Relation
    from sfumato.engines.plan import Field, Plan

R = TypeVar("R")

BATCH_ROWS = 131_072


@dataclass(frozen=True, eq=False)
class _Grouped:
    """The last grouping: its key columns and, per row, which of them it has."""

    keys: pa.Table
    group_of_row: NDArray[np.int64]


class MemoryRelation:
    """An Arrow table as a relation. Columns are converted to their canonical form on first use.

    `exact` has the columns that became floating-point numbers when they were read, as they were before; None where that
    is not known any more. No such column names units, see `distinct_units`.
    """

    engine = "memory"

    def __init__(self, table: pa.Table, exact: Mapping[str, pa.ChunkedArray | None] | None = None) -> None:
        names = table.column_names
        twice = sorted({name for name in names if names.count(name) > 1})
        all_at_once(SchemaError, "table", (f"the column name '{name}' occurs more than once" for name in twice))
        self._rows: int = table.num_rows
        self._given: dict[str, pa.ChunkedArray] = dict(zip(names, table.columns, strict=True))
        self._canonical: dict[str, pa.ChunkedArray] = {}
        self._coded: dict[str, Coded] = {}
        self._grouped: _Grouped | None = None
        self._exact = dict(exact or {})
        self._distinct_units: dict[str, MemoryRelation] = {}

    def __repr__(self) -> str:
        return f"MemoryRelation({counted(self._rows, 'row')}, {counted(len(self._names), 'column')})"

    @property
    def _names(self) -> list[str]:
        return list(self._given)

    def schema(self) -> pa.Schema:
        """Column names and canonical types."""
        fields = []
        for name in self._names:
            arrow_type = self._given[name].type
            # Only moments finer than microseconds keep a type that depends on their values.
            fine = pa.types.is_timestamp(arrow_type) and arrow_type.unit == "ns"
            fields.append((name, self.column(name).type if fine else canonical_type(arrow_type)))
        return pa.schema(fields)

    def count(self) -> int:
        """The number of rows."""
        return self._rows

    def column(self, name: str) -> pa.ChunkedArray:
        """A column in its canonical form."""
        if name not in self._canonical:
            self._canonical[name] = canonical_column(self._given[name], name)
        return self._canonical[name]

    def distinct_units(self, unit: str) -> MemoryRelation:
        """The same rows, the unit in a form in which no two values become one; see `distinct_units.distinct_units`."""
        if unit not in self._given:
            return self
        if unit not in self._distinct_units:
            stored = self._given[unit]
            before = self._exact.get(unit, stored)
            if before is None:
                raise lossy_unit(unit)
            exact = exact_column(before)
            if exact is None:
                return self
            if before is not stored:  # a missing code is a number no more
                exact = pc.if_else(stored.is_valid(), exact, pa.scalar(None, exact.type))
            others = {name: column for name, column in self._exact.items() if name != unit}
            self._distinct_units[unit] = MemoryRelation(pa.table({**self._given, unit: exact}), others)
        return self._distinct_units[unit]

    def coded(self, name: str) -> Coded:
        """A column in codes."""
        if name not in self._coded:
            if name not in self._given:
                raise MissingColumn(f"there is no column '{name}' in the table")
            column = self.column(name)
            if kind_of_type(column.type) is None:
                raise Unsupported(f"column '{name}' has the type {column.type}, whose values cannot be grouped")
            self._coded[name] = encode(column)
        return self._coded[name]

    def group(self, columns: Sequence[str], *, unit: str | None = None, weight: str | None = None) -> pa.Table:
        """The distinct tuples of `columns` in the order of their first row, see `Relation.group`."""
        needed = dict.fromkeys([*columns, *(extra for extra in (unit, weight) if extra is not None)])
        faults = (f"there is no column '{name}' in the table" for name in needed if name not in self._given)
        all_at_once(MissingColumn, "grouping", faults)
        coded = [self.coded(name) for name in columns]
        group_of_row, first = self._groups(coded)
        keys = {name: column.at(first) for name, column in zip(columns, coded, strict=True)}
        counts: dict[str, pa.Array] = {COUNT: pa.array(np.bincount(group_of_row, minlength=first.size))}
        if unit is not None:
            counts[UNITS], counts[SHARES] = map(pa.array, self._units(unit, group_of_row, first.size))
        if weight is not None:
            weights = canonical_column(self.column(weight), weight, "number").fill_null(0.0).to_numpy()
            counts[WEIGHT] = pa.array(np.bincount(group_of_row, weights=weights, minlength=first.size))
        table = pa.table({**keys, **counts})
        self._grouped = _Grouped(table.select(list(columns)), group_of_row)
        return table

    def _groups(self, coded: Sequence[Coded]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if not coded or not self._rows:
            return np.zeros(self._rows, np.int64), np.zeros(min(self._rows, 1), np.int64)
        return group_columns([column.codes for column in coded], [column.cardinality for column in coded])

    def _units(self, unit: str, group_of_row: NDArray[np.int64], groups: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The different units of each group, and what they give to it; a row without a unit is a unit of its own."""
        units = self.coded(unit)
        width = len(units.values)
        owned = units.codes < width
        group, owner = np.divmod(np.unique(group_of_row[owned] * width + units.codes[owned]), max(width, 1))
        alone = np.bincount(group_of_row[~owned], minlength=groups)
        shares = alone * WHOLE
        np.add.at(shares, group, WHOLE // np.bincount(owner, minlength=width)[owner])
        return np.bincount(group, minlength=groups) + alone, shares

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows in their order, a batch at a time."""
        names = self._names if columns is None else list(columns)
        yield from self._select(names).to_batches(max_chunksize=BATCH_ROWS)

    def _select(self, names: Sequence[str]) -> pa.Table:
        faults = (f"there is no column '{name}' in the table" for name in names if name not in self._given)
        all_at_once(MissingColumn, "table", faults)
        chosen = [self.column(name) for name in names]
        return pa.table(chosen, schema=pa.schema([(n, c.type) for n, c in zip(names, chosen, strict=True)]))

    def recode(self, recoding: RecodingTable, keep: Sequence[str]) -> pa.Table:
        """The released rows in their original order, see `Relation.recode`."""
        class_queries.check_recoding(recoding, keep, self._names)
        key_of_row = self._key_of_row(recoding.keys)
        # One more place at the end serves rows without a key (-1).
        class_of_key = np.full(recoding.keys.num_rows + 1, SUPPRESSED, dtype=np.int32)
        class_of_key[recoding.key] = recoding.klass
        klass = class_of_key[key_of_row]
        if recoding.split:
            divided = _divided_rows(recoding, key_of_row)
            deciding = class_queries.deciding_columns(recoding, keep)
            klass[divided] = self._divided(recoding, key_of_row[divided], divided, deciding)
        kept = klass >= 0
        suppressed = not bool(kept.all())
        class_queries.check_all_assigned(recoding, int(kept.sum()) if suppressed else klass.size)
        mask = pa.array(kept) if suppressed else None
        carried = {
            name: self.column(name) if mask is None else self.column(name).filter(mask)
            for name in keep
            if name not in recoding.quasi
        }
        return class_queries.released_table(recoding, keep, klass[kept] if suppressed else klass, carried)

    def _key_of_row(self, keys: pa.Table) -> NDArray[np.int64]:
        """Which key each row has, -1 for none: known from the last grouping, or found by value."""
        if self._grouped is not None and _same_keys(self._grouped.keys, keys):
            return self._grouped.group_of_row
        if not keys.num_columns or not self._rows:
            return np.zeros(self._rows, dtype=np.int64)
        stacked, sizes = [], []
        for name in keys.column_names:
            own = self.coded(name)
            other = encode(canonical_column(keys.column(name), name, kind_of_type(self.column(name).type)))
            codes, size = _in_codes_of(other, own)
            stacked.append(np.concatenate([own.codes, codes]))
            sizes.append(size)
        groups, first = group_columns(stacked, sizes)
        key_of_group = np.full(first.size, -1, dtype=np.int64)
        key_of_group[groups[self._rows :]] = np.arange(keys.num_rows)
        return key_of_group[groups[: self._rows]]

    def _divided(
        self,
        recoding: RecodingTable,
        key_of_row: NDArray[np.int64],
        rows: NDArray[np.int64],
        deciding: Sequence[str],
    ) -> NDArray[np.int64]:
        """The classes of those rows whose cell is divided, numbered within the cell by their other values."""
        chosen = pa.array(rows)
        coded = [encode(self.column(name).take(chosen)) for name in reversed(deciding)]
        ranks: list[NDArray[np.generic]] = [column.ranks()[column.codes] for column in coded]
        order = np.lexsort([*ranks, key_of_row])
        start = np.searchsorted(key_of_row[order], np.arange(recoding.keys.num_rows))
        begin = start[recoding.key] + recoding.first
        entries = np.flatnonzero((recoding.count > 0) & np.isin(recoding.key, key_of_row))
        entries = entries[np.argsort(begin[entries], kind="stable")]
        klass = np.full(rows.size, SUPPRESSED, dtype=np.int64)
        if entries.size:
            place = np.arange(rows.size)
            latest = np.searchsorted(begin[entries], place, side="right") - 1
            entry = entries[np.maximum(latest, 0)]
            inside = (latest >= 0) & (place < begin[entry] + recoding.count[entry])
            klass[order[inside]] = recoding.klass[entry[inside]]
        return klass

    @property
    def fields(self) -> dict[str, Field]:
        """The columns by name, in order, without those that cannot be compared (lists, structs)."""
        from sfumato.engines.plan import Field

        kinds = {field.name: kind_of_type(field.type) for field in self.schema()}
        return {name: Field(name, kind) for name, kind in kinds.items() if kind is not None}

    def run(
        self,
        plan: Plan,
        uploads: Mapping[str, pa.Table] | None = None,
        beside: Mapping[str, Relation] | None = None,
    ) -> pa.Table:
        """The answer to a plan over `rows` (this relation), uploaded tables and other tables in memory; a DuckDB in this
        process computes it."""
        from sfumato.engines.duckdb.relation import run_in_process

        return run_in_process(plan, self._tables(plan, uploads or {}, beside or {}))

    def deliver(
        self, plan: Plan, uploads: Mapping[str, pa.Table], order: Sequence[str], take: Callable[[Iterator[pa.RecordBatch]], R]
    ) -> R:
        """Give the answer to a plan over `rows` and uploaded tables to `take`, sorted (see `sorted_answers`), a batch at a
        time."""
        from sfumato.engines.duckdb.relation import deliver_in_process

        return deliver_in_process(plan, self._tables(plan, uploads, {}), order, take)

    def _tables(self, plan: Plan, uploads: Mapping[str, pa.Table], beside: Mapping[str, Relation]) -> dict[str, pa.Table]:
        """The tables that a plan reads, in canonical form."""
        from sfumato.engines.joining import not_together
        from sfumato.engines.plan import scans

        relations: dict[str, MemoryRelation] = {class_queries.ROWS: self}
        for name, other in beside.items():
            if not isinstance(other, MemoryRelation):
                raise not_together(self, name, other)
            relations[name] = other
        tables = {name: canonical_columns(table) for name, table in uploads.items()}
        read: dict[str, dict[str, None]] = {}
        for scan in scans(plan):
            read.setdefault(scan.table, {}).update(dict.fromkeys(field.name for field in scan.columns))
        tables.update({name: relation._select(list(read[name])) for name, relation in relations.items() if name in read})
        return tables


def _divided_rows(recoding: RecodingTable, key_of_row: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of cells that no single entry covers."""
    cells = recoding.keys.num_rows
    sizes = np.bincount(key_of_row[key_of_row >= 0], minlength=cells)
    whole = np.zeros(cells + 1, dtype=np.bool_)
    whole[-1] = True
    whole[recoding.key] = (recoding.first == 0) & (recoding.count == sizes[recoding.key])
    whole[:-1] &= np.bincount(recoding.key, minlength=cells) == 1
    return np.flatnonzero(~whole[key_of_row])


def _in_codes_of(other: Coded, own: Coded) -> tuple[NDArray[np.int32], int]:
    """The codes of another column in terms of this one's values; values unknown here get new codes."""
    place = pc.index_in(other.values, value_set=own.values)
    translate = np.empty(len(other.values) + 1, dtype=np.int32)
    shared = place.is_valid().to_numpy(zero_copy_only=False)
    translate[:-1][shared] = place.drop_null().to_numpy()
    fresh = int((~shared).sum())
    translate[:-1][~shared] = np.arange(len(own.values) + 1, len(own.values) + 1 + fresh, dtype=np.int32)
    translate[-1] = len(own.values)
    return translate[other.codes], len(own.values) + 1 + fresh


def _same_keys(one: pa.Table, other: pa.Table) -> bool:
    if one is other:
        return True
    if one.column_names != other.column_names or one.num_rows != other.num_rows:
        return False
    # Selecting columns keeps their buffers, so that the common case is seen without looking at values.
    return all(_address(a) == _address(b) for a, b in zip(one.columns, other.columns, strict=True)) or one.equals(other)


def _address(column: pa.ChunkedArray) -> list[int]:
    """Where the column's memory is."""
    addresses = []
    for chunk in column.chunks:
        arrays = [chunk, chunk.dictionary] if pa.types.is_dictionary(chunk.type) else [chunk]
        for array in arrays:
            addresses.append(array.offset)
            addresses.extend(buffer.address for buffer in array.buffers() if buffer is not None)
    return addresses
