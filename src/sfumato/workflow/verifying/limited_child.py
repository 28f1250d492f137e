"""The child process that unpacks a stranger's Parquet file: run by its path, it imports Arrow and nothing else of ours.

Standard input is the file, standard output the place for its rows as an Arrow stream. It runs within the limits that
`core.limited_process` sets; how it ends says what was wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

NOT_PARQUET, ODD_COLUMNS, OTHER_ROWS, TOO_MUCH, NO_MEMORY = 10, 11, 12, 13, 14
#: How long texts and lists of a footer may be, for whoever opens a stranger's file.
FOOTER_LIMITS = {"thrift_string_size_limit": 50_000_000, "thrift_container_size_limit": 1_000_000}
#: What Arrow would import besides, if it is there, and does without: half of the time that the process takes to start.
_NOT_NEEDED = ("numpy", "cloudpickle")
_BATCH_BYTES, _FEWEST_ROWS, _MOST_ROWS = 200_000_000, 1 << 16, 1 << 20


def main(rows: int, output: int, first: int = 0, last: int = -1) -> int:
    """Unpack the row groups `first` to `last` - 1 of standard input (-1: all from the first on) to at most `output` bytes of
    standard output, if the file has this many rows (-1: any number); returns the exit code."""
    try:
        return _unpack(rows, output, first, last)
    except MemoryError:
        return NO_MEMORY


def _unpack(rows: int, output: int, first: int, last: int) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    try:
        with open(0, "rb", buffering=0, closefd=False) as stored:
            footer = pq.ParquetFile(stored, **FOOTER_LIMITS)
            if any(not is_plain_type(column.type) for column in footer.schema_arrow):
                return ODD_COLUMNS
            groups = [footer.metadata.row_group(i).num_rows for i in range(footer.metadata.num_row_groups)]
            if min(groups, default=0) < 0 or sum(groups) != footer.metadata.num_rows or rows not in (-1, sum(groups)):
                return OTHER_ROWS
            chosen = range(len(groups))[first : None if last < 0 else last]
            if sum(groups[i] for i in chosen) * footer.metadata.num_columns > output:
                return TOO_MUCH
            texts = [column.name for column in footer.schema_arrow if _is_text(column.type)]
            file = pq.ParquetFile(stored, read_dictionary=texts, **FOOTER_LIMITS)
            return _write(file, chosen, pa)
    except pa.ArrowMemoryError:
        return NO_MEMORY
    except (OSError, UnicodeDecodeError, ValueError, OverflowError, pa.ArrowException) as error:
        return TOO_MUCH if _is_over(error) else NOT_PARQUET


def _write(file: Any, chosen: range, pa: Any) -> int:
    schema = file.schema_arrow
    with open(1, "wb", buffering=0, closefd=False) as place, pa.ipc.new_stream(place, schema) as stream:
        for batch in _batches(file, chosen):
            stream.write_batch(batch.replace_schema_metadata(schema.metadata))
    return 0


def _batches(file: Any, chosen: range) -> Iterator[Any]:
    """One row group after the other, so that a dictionary is written once and little is held at a time."""
    columns = max(1, file.metadata.num_columns)
    size = max(_FEWEST_ROWS, min(_MOST_ROWS, _BATCH_BYTES // (8 * columns)))
    for group in chosen:
        yield from file.iter_batches(batch_size=size, row_groups=[group], use_threads=False)


def is_plain_type(kind: pa.DataType) -> bool:
    """Text (read as codes, however long it is), numbers, booleans and dates; bytes and nested values would be unpacked."""
    import pyarrow as pa

    types = pa.types
    value = kind.value_type if types.is_dictionary(kind) else kind
    fixed = types.is_primitive(value) or types.is_decimal(value) or types.is_null(value)
    return bool(_is_text(value) or (fixed and not types.is_dictionary(kind)))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_over(error: BaseException) -> bool:
    import errno

    return isinstance(error, OSError) and (error.errno == errno.EFBIG or "File too large" in str(error))


if __name__ == "__main__":
    for module in _NOT_NEEDED:
        sys.modules[module] = None  # type: ignore[assignment]  # which is how Python says: not to be imported
    sys.path.append(sys.argv[3])  # where the parent has Arrow from; last, so that nothing in it hides anything
    os._exit(main(int(sys.argv[1]), int(sys.argv[2]), *map(int, sys.argv[4:])))
