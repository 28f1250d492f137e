"""The digest of a table's rows, the same whatever file they are written to and whichever version of Arrow wrote it.

Column by column: the name, the kind of value, which cells are missing, and the cells as numbers or texts. The ledger keeps it, so
that rows saved as CSV are held against those that were entered, whatever wrote either.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.certificate import canonical

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


def rows_digest(table: pa.Table) -> str:
    """SHA-256 of names and values, in hexadecimal digits; the order of rows and columns counts.

    >>> import pyarrow as pa
    >>> plain = pa.table({"sex": ["f", None], "age": pa.array([30, 31], pa.int32())})
    >>> coded = pa.table({"sex": plain["sex"].dictionary_encode(), "age": plain["age"].cast("int64")})
    >>> rows_digest(plain) == rows_digest(coded)
    True
    """
    found = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind, cells, texts = _parts(column)
        found.update(canonical([name, kind, len(column)]))
        found.update(np.packbits(column.is_valid().to_numpy(zero_copy_only=False)).data)
        found.update(np.ascontiguousarray(cells, dtype=cells.dtype.newbyteorder("<")).data)
        for part in texts:
            found.update(part)
    return found.hexdigest()


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
