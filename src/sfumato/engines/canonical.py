"""One Arrow form per kind of column, so that results of different engines are equal value by value.

Text is `dictionary<int32, string>`, whole numbers `int64`, other numbers `float64` (decimals too; beyond 15
digits they round), dates `date32`, times in microseconds, moments in UTC. NaN is a missing value, negative
zero is zero. In this process a column is also held as codes into its distinct values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import SourceError, raise_alone
from sfumato.data.texts.decimals import nearest_floats
from sfumato.data.texts.values import valid_texts
from sfumato.engines.expressions import Kind

TEXT = pa.dictionary(pa.int32(), pa.string())

ARROW_TYPES: Mapping[Kind, pa.DataType] = {
    "string": TEXT,
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "instant": pa.timestamp("us", tz="UTC"),
    "time": pa.time64("us"),
    "binary": pa.binary(),
    "wide": pa.decimal128(38, 0),
}


def kind_of_type(arrow_type: pa.DataType) -> Kind | None:
    """What a column of this Arrow type holds; None for types that are carried but never grouped (lists,
    structs)."""
    types = pa.types
    arrow_type = arrow_type.value_type if types.is_dictionary(arrow_type) else arrow_type
    if (
        types.is_string(arrow_type)
        or types.is_large_string(arrow_type)
        or types.is_string_view(arrow_type)
        or types.is_null(arrow_type)
    ):
        return "string"
    if types.is_boolean(arrow_type):
        return "boolean"
    if types.is_integer(arrow_type):
        return "integer"
    if types.is_floating(arrow_type) or types.is_decimal(arrow_type):
        return "number"
    if types.is_date(arrow_type):
        return "date"
    if types.is_timestamp(arrow_type):
        return "datetime" if arrow_type.tz is None else "instant"
    if types.is_time(arrow_type):
        return "time"
    if types.is_binary(arrow_type) or types.is_large_binary(arrow_type) or types.is_fixed_size_binary(arrow_type):
        return "binary"
    return None


def canonical_type(arrow_type: pa.DataType) -> pa.DataType:
    """The form in which engines hand over a column of this type."""
    kind = kind_of_type(arrow_type)
    return arrow_type if kind is None else ARROW_TYPES[kind]


def canonical_column(column: pa.Array | pa.ChunkedArray, name: str, kind: Kind | None = None) -> pa.ChunkedArray:
    """A column in its one form; `kind` overrules what its type suggests (a sum arrives as a decimal but is
    `wide`)."""
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    column_kind = kind or kind_of_type(chunked.type)
    if column_kind is None:
        return chunked
    target = ARROW_TYPES[column_kind]
    if column_kind == "string":
        return _text(chunked)
    if pa.types.is_dictionary(chunked.type):
        chunked = _decoded(chunked)
    if chunked.type != target:
        chunked = _cast(chunked, target, name)
    return _plain_numbers(chunked) if column_kind == "number" else chunked


def canonical_table(table: pa.Table, names: Sequence[str], kinds: Sequence[Kind | None]) -> pa.Table:
    """A query's result, column by position, under its real names."""
    columns = [canonical_column(column, name, kind) for column, name, kind in zip(table.columns, names, kinds, strict=True)]
    return pa.table(columns, schema=pa.schema([(n, c.type) for n, c in zip(names, columns, strict=True)]))


def canonical_columns(table: pa.Table) -> pa.Table:
    """A table with every column in its one form."""
    return canonical_table(table, table.column_names, [kind_of_type(arrow_type) for arrow_type in table.schema.types])


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array; dictionaries of different chunks are merged."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    combined = column.combine_chunks()
    return combined.combine_chunks() if isinstance(combined, pa.ChunkedArray) else combined


def plain_numbers(array: pa.Array) -> NDArray[Any]:  # of any number type
    """The numbers or truth values of an array without gaps, as they lie in memory.

    `to_numpy` would import pandas where it is installed, which takes longer than a small question.
    """
    if pa.types.is_boolean(array.type):
        bits = np.frombuffer(array.buffers()[1], dtype=np.uint8) if len(array) else np.zeros(0, np.uint8)
        return np.unpackbits(bits, count=array.offset + len(array), bitorder="little")[array.offset :].view(np.bool_)
    return np.from_dlpack(array) if len(array) else np.zeros(0, dtype=array.type.to_pandas_dtype())


def from_numbers(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array:  # of any number type
    """Whole or real numbers as an array, some of them missing; `pyarrow.array` would import pandas, see `plain_numbers`."""
    held = np.ascontiguousarray(values)
    present = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
    return pa.Array.from_buffers(pa.from_numpy_dtype(held.dtype), held.size, [present, pa.py_buffer(held)])


def decoded_table(table: pa.Table) -> pa.Table:
    """The table without dictionary encoding, for receivers that know none."""
    columns = [_decoded(c) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    return pa.table(columns, schema=pa.schema([(n, c.type) for n, c in zip(table.column_names, columns, strict=True)]))


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type) and not pa.types.is_string(column.type.value_type):
        column = _decoded(column)
    if not pa.types.is_dictionary(column.type):
        if not pa.types.is_string(column.type):
            column = column.cast(pa.string())
        column = column.dictionary_encode() if column.num_chunks else pa.chunked_array([], type=TEXT)
    return _valid(column if column.type == TEXT else column.cast(TEXT))


def _valid(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Missing where a text is not UTF-8: engines disagree on such text, and some stop at it."""
    chunks, changed = [], False
    for chunk in column.chunks:
        values = valid_texts(chunk.dictionary)
        if values.null_count > chunk.dictionary.null_count:
            codes = pc.if_else(values.is_valid(), pa.array(np.arange(len(values), dtype=np.int32)), pa.scalar(None, pa.int32()))
            chunk = pa.DictionaryArray.from_arrays(codes.take(chunk.indices), values.fill_null(""))
            changed = True
        chunks.append(chunk)
    return pa.chunked_array(chunks, type=TEXT) if changed else column


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = [chunk.dictionary_decode() for chunk in column.chunks]
    return pa.chunked_array(chunks, type=column.type.value_type)


def _cast(column: pa.ChunkedArray, target: pa.DataType, name: str) -> pa.ChunkedArray:
    if pa.types.is_floating(target):
        return nearest_floats(column) if pa.types.is_decimal(column.type) else column.cast(target, safe=False)
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        if pa.types.is_timestamp(target) or pa.types.is_time(target):
            return column  # finer than microseconds: kept as it is rather than cut
        raise_alone(
            SourceError(f"column '{name}' holds whole numbers beyond 64 bits. Store it as text or as a floating-point number.")
        )


def _plain_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = []
    changed = False
    for chunk in column.chunks:
        values = chunk.fill_null(1.0).to_numpy(zero_copy_only=False)
        odd = np.isnan(values)
        if odd.any():
            chunk, changed = pc.if_else(pa.array(odd), pa.scalar(None, chunk.type), chunk), True
        if bool((np.signbit(values) & (values == 0)).any()):
            chunk, changed = pc.add(chunk, 0.0), True
        chunks.append(chunk)
    return pa.chunked_array(chunks, type=column.type) if changed else column


@dataclass(frozen=True, eq=False)
class Coded:
    """A column in codes: `values[codes[r]]` is the value of row r; a missing value has the code
    `len(values)`."""

    values: pa.Array = field(repr=False)
    codes: NDArray[np.int32] = field(repr=False)
    missing: bool

    @property
    def cardinality(self) -> int:
        """How many different codes there may be."""
        return len(self.values) + self.missing

    def ranks(self) -> NDArray[np.int32]:
        """Per code, its place in the canonical order: missing first, text by bytes."""
        ranks = np.zeros(len(self.values) + 1, dtype=np.int32)
        order = pc.sort_indices(self.values).to_numpy(zero_copy_only=False)
        ranks[order] = np.arange(1, len(self.values) + 1, dtype=np.int32)
        return ranks

    def at(self, rows: NDArray[np.int64]) -> pa.Array:
        """The values of some rows, with a dictionary of just those that occur."""
        codes = self.codes[rows]
        used = np.flatnonzero(np.bincount(codes, minlength=len(self.values))[: len(self.values)])
        values = self.values
        mask = codes == len(values) if self.missing else None
        if not pa.types.is_string(values.type):
            return values.take(from_numbers(codes, mask))
        if used.size < len(values):
            renumber = np.zeros(len(values) + 1, dtype=np.int32)
            renumber[used] = np.arange(used.size, dtype=np.int32)
            codes, values = renumber[codes], values.take(from_numbers(used))
        return pa.DictionaryArray.from_arrays(from_numbers(codes, mask), values)


def encode(column: pa.ChunkedArray) -> Coded:
    """A canonical column in codes."""
    array = one_array(column)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
        return Coded(array.dictionary, _filled(array.indices, len(array.dictionary)), array.indices.null_count > 0)
    values = array.dictionary
    codes = _filled(array.indices, len(values))
    distinct = values.dictionary_encode()
    if len(distinct.dictionary) == len(values):
        return Coded(values, codes, array.indices.null_count > 0)
    # A dictionary may repeat a value or hold a missing one; codes must not.
    renumber = np.append(_filled(distinct.indices, len(distinct.dictionary)), len(distinct.dictionary))
    codes = renumber.astype(np.int32)[codes]
    return Coded(distinct.dictionary, codes, bool((codes == len(distinct.dictionary)).any()))


def _filled(indices: pa.Array, missing: int) -> NDArray[np.int32]:
    filled = indices if indices.null_count == 0 else indices.fill_null(missing)
    return np.ascontiguousarray(plain_numbers(filled), dtype=np.int32)
