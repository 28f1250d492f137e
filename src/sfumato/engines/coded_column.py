"""A column in codes: its different values once, and per row which of them it has."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.engines.canonical import from_numbers, one_array, plain_numbers


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
