"""Write a table to a file, all of it or nothing: Parquet, CSV, Arrow.

The table goes to a temporary file beside the target, is flushed to the disk and takes the target's name in
one step. Before that it is cleaned: dictionary entries that no row uses, values hidden below missing cells
and metadata of earlier owners would otherwise be published with it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.errors import SourceError, Unsupported
from sfumato.core.files import sync_folder
from sfumato.core.platforms import set_mode

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_FORMULA = r"(?s)^(?:[=@\t\r\n].|[+-].)"
_NUMBER = r"^[+-]?(?:[0-9]+(?:[.,][0-9]*)*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?%?$"


def write_file(table: pa.Table, path: str | Path) -> None:
    """Write in the format the ending names: .parquet, .csv, .tsv, .arrow, .feather."""
    writers: dict[str, Callable[[pa.Table, str | Path], None]] = {
        ".parquet": write_parquet,
        ".pq": write_parquet,
        ".csv": write_csv,
        ".tsv": lambda rows, target: write_csv(rows, target, separator="\t"),
        ".arrow": write_arrow,
        ".feather": write_arrow,
        ".ipc": write_arrow,
    }
    ending = Path(path).suffix.lower()
    if ending not in writers:
        raise Unsupported(f"cannot write '{Path(path).name}': the name should end with one of {', '.join(writers)}")
    writers[ending](table, path)


def write_parquet(table: pa.Table, path: str | Path) -> None:
    """Write Parquet, compressed with Zstandard."""
    import pyarrow.parquet as pq

    cleaned = clean(table)
    with atomic_path(path) as temporary:
        pq.write_table(cleaned, temporary, compression="zstd")


def parquet_bytes(table: pa.Table) -> bytes:
    """The content of the file that `write_parquet` writes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(clean(table), sink, compression="zstd")
    return bytes(sink.getvalue())


def write_arrow(table: pa.Table, path: str | Path) -> None:
    """Write an Arrow IPC file (Feather version 2)."""
    import pyarrow as pa

    cleaned = clean(table)
    with atomic_path(path) as temporary, pa.OSFile(str(temporary), "wb") as sink:
        with pa.ipc.new_file(sink, cleaned.schema) as writer:
            writer.write_table(cleaned)


def write_csv(table: pa.Table, path: str | Path, *, separator: str = ",") -> None:
    """Write UTF-8 with a line of column names; text is quoted, a missing value is an empty cell and an empty
    text is `""`."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    cleaned = clean(table)
    _refuse_zero_bytes(cleaned)
    options = pa_csv.WriteOptions(include_header=True, delimiter=separator, quoting_style="needed")
    with atomic_path(path) as temporary, pa.OSFile(str(temporary), "wb") as sink:
        with pa_csv.CSVWriter(sink, _csv_schema(cleaned.schema), write_options=options) as writer:
            for batch in cleaned.to_batches(max_chunksize=1 << 17):
                writer.write_table(pa.Table.from_batches([batch]).cast(_csv_schema(cleaned.schema)))


def spreadsheet_notices(table: pa.Table) -> list[str]:
    """The columns with cells that a spreadsheet would run as formulas, by name and number of cells, without
    values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    notices = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pc.match_substring_regex(pa.array([name]), _FORMULA)[0].as_py():
            notices.append(f"the name of column {name!r} starts like a formula; a spreadsheet may run it")
        if not (pa.types.is_string(_value_type(column.type)) or pa.types.is_large_string(_value_type(column.type))):
            continue
        counted = column.value_counts()
        values = counted.field("values").cast(pa.string())
        risky = pc.and_not(pc.match_substring_regex(values, _FORMULA), pc.match_substring_regex(values, _NUMBER))
        cells = pc.sum(counted.field("counts").filter(risky)).as_py() or 0
        if cells:
            notices.append(
                f"column '{name}': {cells:,} cells start with a character that makes a spreadsheet run them "
                "as a formula; open the file as text, or use Parquet"
            )
    return notices


def clean(table: pa.Table) -> pa.Table:
    """The same rows and nothing else: no unused dictionary entries, no bytes below missing cells, no
    metadata, NaN as missing."""
    import pyarrow as pa

    nested = [name for name, arrow in zip(table.column_names, table.schema.types, strict=True) if pa.types.is_nested(arrow)]
    if nested:
        raise Unsupported(f"columns with nested values cannot be written: {', '.join(map(repr, nested))}")
    arrays = [_clean_column(column) for column in table.columns]
    fields = [pa.field(name, array.type) for name, array in zip(table.column_names, arrays, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


@contextmanager
def atomic_path(path: str | Path, *, mode: int = 0o644) -> Iterator[Path]:
    """A temporary file beside the target that becomes the target when the block succeeds and vanishes when it
    does not; it has this mode whatever the umask, and is its owner's alone until then."""
    target = Path(path)
    if target.exists() and not target.is_file():  # a device or a pipe would be replaced by a file
        raise SourceError(f"cannot write '{target}': it is not a plain file. Name another one.")
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield temporary
        with temporary.open("rb+") as written:
            set_mode(written.fileno(), mode)
            os.fsync(written.fileno())
        os.replace(temporary, target)
        with suppress(OSError):  # the file is there, whatever becomes of it later
            sync_folder(target.parent)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SourceError(f"cannot write '{target}': {reason}. Nothing was left behind.") from None
    finally:
        temporary.unlink(missing_ok=True)


def _clean_column(column: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow = column.type
    if pa.types.is_dictionary(arrow):
        return _clean_dictionary(column.unify_dictionaries())
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return _clean_dictionary(column.dictionary_encode()).cast(arrow)
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], arrow)
    if pa.types.is_floating(arrow):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, arrow), array)
    if not array.null_count or pa.types.is_null(arrow):
        return array
    present = array.is_valid().to_numpy(zero_copy_only=False)
    # taken again from the values present alone, so that nothing is left in the buffer below a missing cell
    return array.drop_null().take(pa.array(np.cumsum(present) - 1, mask=~present))


def _clean_dictionary(column: pa.ChunkedArray) -> pa.Array:
    """Only the values that occur, in sorted order: the order of a dictionary would reveal the order of the
    original rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    value_type = _value_type(column.type)
    if column.num_chunks == 0:
        return pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), pa.array([], value_type))
    codes = _codes(column)
    dictionary = column.chunk(0).dictionary
    position = np.full(len(dictionary) + 1, -1, dtype=np.int32)
    occurring = np.bincount(codes if not column.null_count else codes[codes >= 0], minlength=len(dictionary))
    used = np.flatnonzero(occurring)
    kept = dictionary.take(pa.array(used))
    order = pc.sort_indices(kept).to_numpy()
    in_order = used.size == len(dictionary) and np.array_equal(order, np.arange(used.size))
    if in_order and column.num_chunks == 1 and not column.null_count and not dictionary.null_count:
        return pa.DictionaryArray.from_arrays(pa.array(codes), dictionary)  # the codes as they lie, not a copy
    position[used[order]] = np.arange(used.size, dtype=np.int32)
    values = kept.take(pa.array(order))
    if values.null_count:  # sorted last: a null among the values is a missing cell
        values = values[: len(values) - values.null_count]
        position[position >= len(values)] = -1
    new = position[codes]
    return pa.DictionaryArray.from_arrays(pa.array(new, mask=new < 0), values)


def _codes(column: pa.ChunkedArray) -> NDArray[np.int32]:
    """The codes of a dictionary-encoded column, -1 for a missing cell; those of one whole chunk are not copied."""
    import pyarrow as pa

    parts = [chunk.indices.cast(pa.int32()) for chunk in column.chunks]
    filled = [(part.fill_null(-1) if part.null_count else part).to_numpy() for part in parts]
    return filled[0] if len(filled) == 1 else np.concatenate(filled)


def _csv_schema(schema: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field(field.name, _value_type(field.type)) for field in schema])


def _value_type(arrow: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return arrow.value_type if pa.types.is_dictionary(arrow) else arrow


def _refuse_zero_bytes(table: pa.Table) -> None:
    """A zero byte would make the file unreadable as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bad = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_string(_value_type(column.type)) or pa.types.is_large_string(_value_type(column.type)):
            parts = [chunk.dictionary if pa.types.is_dictionary(column.type) else chunk for chunk in column.chunks]
            if any(pc.any(pc.match_substring(values, "\0")).as_py() for values in parts):
                bad.append(name)
    if bad or any("\0" in name for name in table.column_names):
        listed = ", ".join(repr(name) for name in bad) or "a column name"
        raise Unsupported(f"text with zero bytes cannot be written as CSV ({listed}); write Parquet instead")
