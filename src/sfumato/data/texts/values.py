"""One text form per value, so that data, hierarchies and files agree whatever type carried the value.

Whole numbers print without a point (`39`, also when a float column carries them), dates in ISO form, booleans as
`true` and `false`; text stays as it is, leading zeros included; a missing value is None and never the text "None"
or "nan". A set of items is written sorted, with the separator that the schema names; white space around items, empty items
and repeated ones mean nothing, and the empty set is the empty text.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.texts import text_of as text_of
from sfumato.data.schema import Schema, Type


def texts(array: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """The text forms of an array of distinct values."""
    return [text_of(value) for value in array.to_pylist()]


def valid_texts(array: pa.Array) -> pa.Array:
    """The same values, missing where a text is not valid UTF-8, which readers of columnar files let through."""
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type)):
        return array
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        cells = array.cast(pa.large_binary()).to_pylist()
        return pa.array([_decoded(cell) for cell in cells], array.type)
    return array


def _decoded(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def as_numbers(values: Sequence[str | None]) -> list[float] | None:
    """The values as numbers, missing ones as NaN, or None when some value is not a number."""
    numbers = []
    for value in values:
        if value is None:
            numbers.append(math.nan)
            continue
        try:
            number = float(value)
        except ValueError:
            return None
        if not math.isfinite(number):
            return None
        numbers.append(number)
    return numbers


_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class CodedText:
    """A text column as codes into its distinct texts; -1 is a missing value."""

    codes: NDArray[np.int32]
    values: pa.StringArray

    @classmethod
    def of(cls, column: pa.ChunkedArray | pa.Array) -> CodedText:
        """Any column by its text forms; texts that several values share (1.50 and 1.5) become one, and a value of a dictionary
        that no row has (a category whose records were removed) is none of the column's."""
        chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        encoded = chunked if pa.types.is_dictionary(chunked.type) else chunked.dictionary_encode()
        encoded = encoded.unify_dictionaries()
        if encoded.num_chunks == 0:
            return cls(np.zeros(0, np.int32), pa.array([], pa.string()))
        indices = [chunk.indices.cast(pa.int32()) for chunk in encoded.chunks]
        # put together by Arrow, which can take the memory of columns that were read before
        codes = pa.concat_arrays([part.fill_null(-1) if part.null_count else part for part in indices]).to_numpy()
        dictionary = valid_texts(encoded.chunk(0).dictionary)
        if pa.types.is_string(dictionary.type) and not dictionary.null_count:
            return cls(codes, dictionary)._of_rows()
        return cls(codes, pa.array([], pa.string())).with_values(texts(dictionary))._of_rows()

    def _of_rows(self) -> CodedText:
        """The same rows without texts that none of them has."""
        occurs = np.zeros(len(self.values) + 1, dtype=np.bool_)  # the last entry serves code -1
        occurs[self.codes] = True
        there = occurs[:-1]
        if there.all():
            return self
        new = np.append(np.cumsum(there) - 1, -1).astype(np.int32)
        return CodedText(new[self.codes], self.values.filter(pa.array(there)))

    def with_values(self, values: Sequence[str | None]) -> CodedText:
        """The same rows with other texts behind the codes; None makes them missing, equal texts share a
        code."""
        positions: dict[str, int] = {}
        new = np.full(len(values) + 1, -1, dtype=np.int32)  # the last entry serves code -1
        for old, value in enumerate(values):
            if value is not None:
                new[old] = positions.setdefault(value, len(positions))
        return CodedText(new[self.codes], pa.array(list(positions), pa.string()))

    def without(self, missing: Collection[str]) -> CodedText:
        """The texts listed in `missing` become missing values."""
        if not missing or not pc.any(pc.is_in(self.values, pa.array(list(missing), pa.string()))).as_py():
            return self
        return self.with_values([None if value in missing else value for value in self.values.to_pylist()])

    def counts(self) -> NDArray[np.int64]:
        """Records per distinct text."""
        counts = np.zeros(len(self.values) + 1, dtype=np.int64)  # the first entry serves code -1
        for start in range(0, self.codes.size, _AT_ONCE):  # counting makes 64 bits of each code
            counts += np.bincount(self.codes[start : start + _AT_ONCE] + 1, minlength=counts.size)
        return counts[1:]

    def to_arrow(self) -> pa.DictionaryArray:
        """The column as dictionary-encoded text."""
        return pa.DictionaryArray.from_arrays(self._indices(), self.values)

    def _indices(self) -> pa.Int32Array:
        """The codes as Arrow has them: as they lie, not a copy, where nothing is missing."""
        missing = self.codes < 0
        return pa.array(self.codes, mask=missing if missing.any() else None)

    def to_typed(self, values: pa.Array) -> pa.Array:
        """The column with typed values in place of the distinct texts."""
        return values.take(self._indices())


@dataclass(frozen=True, eq=False)
class TypedColumn:
    """A column with its type, what there is to say about it, and the fault that prevented a declared type."""

    array: pa.Array
    type: Type
    notes: tuple[str, ...] = ()
    fault: str | None = None


def split(text: str | None, separator: str) -> frozenset[str]:
    """The items of a text; a missing value has none."""
    if text is None:
        return frozenset()
    return frozenset(item for piece in text.split(separator) if (item := piece.strip()))


def sorted_set(text: str | None, separator: str) -> str | None:
    """The one text of a set, however it was written."""
    return None if text is None else separator.join(sorted(split(text, separator)))


def sorted_sets(table: pa.Table, schema: Schema, but: Collection[str] = ()) -> pa.Table:
    """The same rows with every set-valued column, `but` these, written in the one way; the table itself where it is already."""
    for name, column in schema.columns.items():
        if column.items is None or name not in table.column_names or name in but:
            continue
        coded = CodedText.of(table.column(name))
        written_texts = coded.values.to_pylist()
        meant = [sorted_set(text, column.items) for text in written_texts]
        if meant != written_texts:
            written = coded.with_values(meant).to_arrow().cast(table.schema.field(name).type)
            table = table.set_column(table.column_names.index(name), table.schema.field(name), written)
    return table
