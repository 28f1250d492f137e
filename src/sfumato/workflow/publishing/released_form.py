"""One form for a released table, whichever engine made it: one type per kind of value, rows in the order of
their content.

Text is dictionary-encoded with a sorted dictionary, whole numbers have 64 bits, and rows are sorted by all
columns from left to right, so that the place of a row tells nothing about its place in the source. Each
column is ranked, the ranks are packed into as few 64-bit keys as possible, and one sort orders the rows. The digest of such
rows is the same whatever file they are written to: names, kinds of values and cells count. The ledger keeps it, so that
rows saved as CSV are compared with those that were entered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.certificate import canonical

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


_LARGEST_KEY = 2**62


@dataclass(frozen=True, eq=False)
class _Ranked:
    """A column as ranks into its sorted distinct values; the rank after the last stands for a missing
    value.
    """

    ranks: NDArray[np.int32]
    values: pa.Array
    missing: bool

    @property
    def size(self) -> int:
        return len(self.values) + int(self.missing)

    def column(self, ranks: NDArray[np.int32]) -> pa.Array:
        """The values that these ranks stand for."""
        codes = pa.array(ranks, mask=ranks == len(self.values) if self.missing else None)
        if pa.types.is_string(self.values.type):
            return pa.DictionaryArray.from_arrays(codes, self.values)
        return self.values.take(codes)


def released_form(table: pa.Table, counts: NDArray[np.int64] | None = None) -> pa.Table:
    """The same rows, each as often as `counts` says where they do, in the form and the order that a release has."""
    ranked = [_rank(table.column(name)) for name in table.column_names]
    columns = [column.column(ranks) for column, ranks in zip(ranked, _sorted_ranks(ranked, counts), strict=True)]
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def in_order_of_content(table: pa.Table) -> bool:
    """Whether the rows stand in the order that a release has."""
    undecided = np.ones(max(table.num_rows - 1, 0), dtype=np.bool_)
    for key in _packed([_rank(column) for column in table.columns]):
        if bool((undecided & (key[1:] < key[:-1])).any()):
            return False
        undecided &= key[1:] == key[:-1]
    return True


def in_one_type(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values in the one type that a release has for their kind, text written out."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pa.chunked_array([_one_type(chunk) for chunk in column.chunks], type=_one_type(pa.array([], column.type)).type)


def _rank(column: pa.ChunkedArray) -> _Ranked:
    whole = _dictionary(column)
    values = _one_type(whole.dictionary)
    codes = whole.indices.cast(pa.int32())
    missing_code = len(values)
    if codes.null_count:
        codes = pc.fill_null(codes, missing_code)
    positions = codes.to_numpy(zero_copy_only=False)
    used = np.bincount(positions, minlength=missing_code + 1) > 0
    # The same value may stand twice in a dictionary, a missing value may be an entry, and entries may be
    # unused.
    distinct = pc.unique(values.filter(pa.array(used[:missing_code]))).drop_null()
    ordered = distinct.take(pc.array_sort_indices(distinct))
    ranks = pc.fill_null(pc.index_in(values, value_set=ordered), len(ordered)).to_numpy(zero_copy_only=False)
    rank_of = np.append(ranks, len(ordered)).astype(np.int32)
    missing = bool(used[rank_of == len(ordered)].any())
    if np.array_equal(rank_of, np.arange(missing_code + 1)):
        return _Ranked(positions, ordered, missing)
    return _Ranked(rank_of[positions], ordered, missing)


def _dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    if encoded.num_chunks == 1:
        return encoded.chunk(0)
    if encoded.num_chunks == 0:
        return pa.array([], type=encoded.type.value_type).dictionary_encode()
    return encoded.unify_dictionaries().combine_chunks()


def _one_type(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return values.cast(pa.int64())
    if pa.types.is_floating(kind):
        numbers = pc.add(values.cast(pa.float64()), 0.0)  # negative zero is zero
        return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return values.cast(pa.string())
    if pa.types.is_timestamp(kind):
        return values.cast(pa.timestamp("us", tz=kind.tz))
    if pa.types.is_date64(kind):
        return values.cast(pa.date32())
    return values


def _sorted_ranks(columns: list[_Ranked], counts: NDArray[np.int64] | None) -> Iterator[NDArray[np.int32]]:
    """The ranks of every column after the rows were sorted by all columns."""
    keys = _packed(columns)
    if counts is not None:
        order = np.lexsort(keys[::-1]) if keys else np.arange(counts.size)
        for column in columns:
            yield np.repeat(column.ranks[order], counts[order])
        return
    if len(keys) <= 1:
        # All columns fit into one key: equal keys are equal rows, so the sorted keys themselves say what
        # each row holds. Most rows of a release equal their neighbour, and digits are taken apart once for
        # all of them.
        if keys:
            ordered = np.sort(keys[0])
            starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
            lengths = np.diff(starts, append=ordered.size)
            for column, digits in zip(columns, _unpacked(ordered[starts], columns), strict=True):
                yield column.ranks if digits is None else np.repeat(digits, lengths)
        else:
            yield from (column.ranks for column in columns)
        return
    order = np.lexsort(keys[::-1])
    for column in columns:
        yield column.ranks[order]


def _packed(columns: list[_Ranked]) -> list[NDArray[np.int64]]:
    """The ranks as digits of as few 64-bit numbers as possible, the first columns the most significant."""
    keys: list[NDArray[np.int64]] = []
    size = _LARGEST_KEY
    for column in columns:
        if column.size <= 1:
            continue
        if size * column.size > _LARGEST_KEY:
            keys.append(column.ranks.astype(np.int64))
            size = column.size
        else:
            keys[-1] *= column.size
            keys[-1] += column.ranks
            size *= column.size
    return keys


def _unpacked(key: NDArray[np.int64], columns: list[_Ranked]) -> Iterator[NDArray[np.int32] | None]:
    """The digits of each key, None for a column that has no digit because all rows hold the same."""
    digits: list[NDArray[np.int32] | None] = []
    for column in reversed(columns):
        if column.size <= 1:
            digits.append(None)
            continue
        rest = key // column.size
        digits.append((key - rest * column.size).astype(np.int32))
        key = rest
    return reversed(digits)


def rows_digest(table: pa.Table) -> str:
    """SHA-256 of names and values, in hexadecimal digits; the order of rows and columns counts.

    >>> import pyarrow as pa
    >>> plain = pa.table({"sex": ["f", None], "age": pa.array([30, 31], pa.int32())})
    >>> coded = pa.table({"sex": plain["sex"].dictionary_encode(), "age": plain["age"].cast("int64")})
    >>> rows_digest(plain) == rows_digest(coded)
    True
    """
    digest = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind, cells, texts = _parts(column)
        digest.update(canonical([name, kind, len(column)]))
        digest.update(np.packbits(column.is_valid().to_numpy(zero_copy_only=False)).data)
        digest.update(np.ascontiguousarray(cells, dtype=cells.dtype.newbyteorder("<")).data)
        for part in texts:
            digest.update(part)
    return digest.hexdigest()


def _parts(column: pa.ChunkedArray) -> tuple[str, NDArray[Any], list[pa.Buffer]]:
    """The kind of a column's values; its cells as numbers, 0 where one is missing, or as lengths of texts; the texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_floating(arrow):
        return "number", _numbers(column.cast(pa.float64())), []
    if pa.types.is_uint64(arrow):
        return "unsigned", _numbers(column), []
    if pa.types.is_integer(arrow):
        return "integer", _numbers(column.cast(pa.int64())), []
    if pa.types.is_boolean(arrow):
        return "boolean", _numbers(column.cast(pa.uint8())), []
    if pa.types.is_date32(arrow):
        return "date", _numbers(column.cast(pa.int32())), []
    if pa.types.is_timestamp(arrow):
        return str(arrow), _numbers(column.cast(pa.int64())), []
    written = column.cast(pa.large_string()).fill_null("")
    return "text", pc.binary_length(written).to_numpy(), [_text(chunk) for chunk in written.chunks if len(chunk)]


def _numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    cells: NDArray[Any] = column.fill_null(0).to_numpy()
    return cells


def _text(chunk: pa.LargeStringArray) -> pa.Buffer:
    """The texts of a chunk, one after the other."""
    _, places, texts = chunk.buffers()
    first, last = np.frombuffer(places, dtype=np.int64)[[chunk.offset, chunk.offset + len(chunk)]]
    return texts.slice(first, last - first) if texts is not None else places.slice(0, 0)
