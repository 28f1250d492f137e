"""Classes of a table: the records that show the same text in every quasi-identifier.

Columns are dictionary-encoded, their codes combined into one number per record (made dense again before
it could overflow), and equal numbers are one class. Missing is a value of its own; the integer 39 and
the text "39" are the same value. Samarati, "Protecting respondents' identities in microdata release",
IEEE TKDE 13(6), 2001.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import MissingColumn, all_at_once
from sfumato.data.texts.values import texts
from sfumato.measures.guarantees.thresholds import Numbers

Integers = NDArray[np.int64]

_KEY_LIMIT = 1 << 62
_DENSE_CELLS = 50_000_000


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column as codes: record i shows `values[codes[i]]`, and all values are different texts (None is
    missing).
    """

    values: tuple[str | None, ...] = field(repr=False)
    codes: Integers = field(repr=False)

    @classmethod
    def of(cls, column: pa.Array | pa.ChunkedArray) -> CodedColumn:
        """Encode an Arrow column of any type; values with the same text share a code, and those of a dictionary that no record
        has are left out."""
        chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        encoded = chunked if pa.types.is_dictionary(chunked.type) else chunked.dictionary_encode()
        encoded = encoded.unify_dictionaries()
        listed = texts(encoded.chunk(0).dictionary) if encoded.num_chunks else []
        missing = len(listed)
        parts = [
            chunk.indices.fill_null(missing).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
            for chunk in encoded.chunks
        ]
        codes = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        if encoded.null_count:
            listed.append(None)
        occur = np.bincount(codes, minlength=len(listed)).tolist()
        distinct = list(dict.fromkeys(value for value, count in zip(listed, occur, strict=True) if count))
        if len(distinct) != len(listed):
            position = {value: i for i, value in enumerate(distinct)}
            codes = np.array([position.get(value, -1) for value in listed], dtype=np.int64)[codes]
        return cls(tuple(distinct), codes)

    @classmethod
    def one_after_another(cls, columns: Sequence[CodedColumn]) -> CodedColumn:
        """The records of several columns; equal texts share a code."""
        position = {value: i for i, value in enumerate(dict.fromkeys(value for column in columns for value in column.values))}
        recoded = [np.array([position[value] for value in column.values], dtype=np.int64)[column.codes] for column in columns]
        return cls(tuple(position), np.concatenate(recoded))

    def to_arrow(self) -> pa.DictionaryArray:
        """The column as dictionary-encoded text."""
        if None not in self.values:
            return pa.DictionaryArray.from_arrays(pa.array(self.codes), pa.array(self.values, pa.string()))
        missing = self.values.index(None)
        others = [value for value in self.values if value is not None]
        codes = pa.array(self.codes - (self.codes > missing), mask=self.codes == missing)
        return pa.DictionaryArray.from_arrays(codes, pa.array(others, pa.string()))


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """How often each value occurs in each class, as a list of the occurring pairs, sorted by class.

    Pair j says that `count[j]` records of class `klass[j]` show value `value[j]`; class c owns the pairs
    from `starts[c]` on. Every class has at least one pair, so sums over pairs by `starts` are sums per
    class.
    """

    values: tuple[str | None, ...] = field(repr=False)
    klass: Integers = field(repr=False)
    value: Integers = field(repr=False)
    count: Integers = field(repr=False)
    sizes: Integers = field(repr=False)

    @cached_property
    def starts(self) -> Integers:
        """Where the pairs of each class begin."""
        return np.searchsorted(self.klass, np.arange(self.sizes.size, dtype=np.int64))

    @cached_property
    def totals(self) -> Integers:
        """Records per value over the whole table."""
        totals = np.zeros(len(self.values), dtype=np.int64)
        np.add.at(totals, self.value, self.count)
        return totals

    def per_class(self, numbers: Numbers) -> Numbers:
        """Sum of a number per pair, by class."""
        if not self.sizes.size:
            return numbers[:0]
        return np.add.reduceat(numbers, self.starts)

    def largest(self, numbers: Numbers) -> Numbers:
        """Maximum of a number per pair, by class."""
        if not self.sizes.size:
            return numbers[:0]
        return np.maximum.reduceat(numbers, self.starts)

    def regrouped(self, group_of_value: Integers) -> ValueCounts:
        """The same histogram with values merged into groups (the nodes of a hierarchy level)."""
        groups = int(group_of_value.max()) + 1 if group_of_value.size else 1
        key = self.klass * groups + group_of_value[self.value]
        order = np.argsort(key, kind="stable")
        ranked = key[order]
        first = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]])) if key.size else order
        counts = np.add.reduceat(self.count[order], first) if key.size else self.count
        kept = ranked[first]
        return ValueCounts((None,) * groups, kept // groups, kept % groups, counts, self.sizes)


@dataclass(frozen=True, eq=False)
class Classes:
    """The partition of a table's records by their quasi-identifiers.

    `of_row[i]` is the class of row i, `sizes[c]` its records, `units[c]` its different units (the
    records where the schema has no unit column), `first[c]` one row of it. Classes are numbered in
    order of appearance. `counts[i]` says for how many records row i stands; None: for one each.
    """

    quasi: tuple[str, ...]
    of_row: Integers = field(repr=False)
    sizes: Integers = field(repr=False)
    units: Integers = field(repr=False)
    first: Integers = field(repr=False)
    counts: Integers | None = field(default=None, repr=False)

    @classmethod
    def of(cls, table: pa.Table, quasi: Sequence[str], *, unit: str | None = None, counts: Integers | None = None) -> Classes:
        """Group the records of a table by the texts of these columns; row i stands for `counts[i]` records."""
        require_columns(table, [*quasi, *([unit] if unit else [])])
        rows = table.num_rows
        # one column at a time: ten million rows of nine columns would not fit in codes beside the table
        of_row, count = combined((CodedColumn.of(table.column(name)) for name in quasi), rows)
        sizes = tally(of_row, count, counts)
        first = np.zeros(count, dtype=np.int64)
        first[of_row[::-1]] = np.arange(rows - 1, -1, -1, dtype=np.int64)
        units = sizes if unit is None else _units(of_row, count, CodedColumn.of(table.column(unit)))
        return cls(tuple(quasi), of_row, sizes, units, first, counts)

    def __len__(self) -> int:
        return int(self.sizes.size)

    @property
    def records(self) -> int:
        """All records."""
        return int(self.of_row.size if self.counts is None else self.counts.sum())

    def histogram(self, column: CodedColumn) -> ValueCounts:
        """Count the values of a column in every class."""
        width = max(len(column.values), 1)
        cells = len(self) * width
        key = self.of_row * width + column.codes
        if cells <= min(_DENSE_CELLS, max(1_000_000, 4 * self.of_row.size)):
            dense = tally(key, cells, self.counts)
            occurring = np.flatnonzero(dense)
            counts = dense[occurring]
        else:
            occurring, counts = tally_occurring(key, self.counts)
        return ValueCounts(column.values, occurring // width, occurring % width, counts, self.sizes)


def tally(codes: Integers, width: int, counts: Integers | None = None) -> Integers:
    """How many records have each of the codes 0 to `width` - 1; row i stands for `counts[i]` records."""
    if counts is None:
        return np.bincount(codes, minlength=width).astype(np.int64)
    totals = np.zeros(width, dtype=np.int64)
    np.add.at(totals, codes, counts)  # whole numbers: sums of floating-point weights would be rounded
    return totals


def tally_occurring(codes: Integers, counts: Integers | None = None) -> tuple[Integers, Integers]:
    """The codes that occur, in order (the rows of a matrix of codes), and how many records have each."""
    axis = 0 if codes.ndim > 1 else None
    if counts is None:
        occurring, times = np.unique(codes, axis=axis, return_counts=True)
        return occurring, times.astype(np.int64)
    occurring, position = np.unique(codes, axis=axis, return_inverse=True)
    return occurring, tally(position.reshape(-1), len(occurring), counts)


def combined(columns: Iterable[CodedColumn], rows: int) -> tuple[Integers, int]:
    """One dense code per record for the tuple of its codes, and how many there are."""
    key = np.zeros(rows, dtype=np.int64)
    radix = 1
    for column in columns:
        width = max(len(column.values), 1)
        if radix * width > _KEY_LIMIT:
            key, radix = _dense(key)
        key *= width  # in place: a second column of keys would be as large as two columns of the table
        key += column.codes
        radix *= width
    return _dense(key)


def require_columns(table: pa.Table, names: Sequence[str]) -> None:
    """Every named column must be in the table, exactly once."""
    present = table.column_names
    faults = [f"column '{name}' is not in the table" for name in names if name not in present]
    faults += [f"column '{name}' is in the table more than once" for name in names if present.count(name) > 1]
    all_at_once(MissingColumn, "the table to measure", faults)


def _dense(key: Integers) -> tuple[Integers, int]:
    encoded = pa.array(key).dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def _units(of_row: Integers, count: int, unit: CodedColumn) -> Integers:
    """Different units by class; a record without one may be anybody's, and counts as nobody's."""
    width = max(len(unit.values), 1)
    named = np.array([value is not None for value in unit.values], dtype=bool)[unit.codes] if unit.values else unit.codes == 0
    pairs = np.unique((of_row * width + unit.codes)[named])
    return np.bincount(pairs // width, minlength=count).astype(np.int64)
