"""The data file of somebody else's release, unpacked in a child process with limits on memory, time and output.

What a Parquet file says about its size is not believed: the bytes that come out are counted, and a file that asks for
more than a table of its length does is refused. The rows come back through a file without a name, so none outlive this.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from sfumato.core.errors import ParameterError, SfumatoError, VerificationFailed
from sfumato.core.files import memory_file
from sfumato.core.limited_process import Limits, limited_process
from sfumato.workflow.verifying import limited_child

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.data.schema import Schema

VARIABLE = "SFUMATO_UNPACKED_BYTES"
#: What a file may unpack into: so much in any case, and for each of its bytes so many. A table that was generalised to
#: nearly nothing reaches a ratio of about 1,500.
FREE_BYTES, BYTES_PER_BYTE = 1 << 30, 2_000
_MOST_BYTES = 64_000_000_000
_CHILD_BYTES, _CHILD_BYTES_PER_BYTE = 2_500_000_000, 4
_CHILD_SECONDS, _BYTES_PER_SECOND, _PATIENCE = 60, 2_000_000, 4
_CSV_BYTES_PER_BYTE = 6
_WORDS = {
    limited_child.NOT_PARQUET: "the data file is not a complete Parquet file: it is damaged, cut short or of another format",
    limited_child.ODD_COLUMNS: "the data file has columns of a kind that no release has",
    limited_child.OTHER_ROWS: "the data file does not have as many rows as the certificate says",
    limited_child.NO_MEMORY: "the data file needs far more memory to unpack than its size allows; it was not unpacked",
}


def read_foreign(path: Path, schema: Schema, rows: int | None = None) -> pa.Table:
    """The rows of a stranger's `data.parquet` or `data.csv`, with the types of the schema; `rows` is how many there must be."""
    from sfumato.data.readers.files import read_file
    from sfumato.data.readers.read_result import RawTable, finish

    try:
        if path.suffix == ".parquet":
            return finish(RawTable.of(unpack(path, rows)), "the data file", schema).table
        if path.stat().st_size * _CSV_BYTES_PER_BYTE > _most_bytes():
            raise _too_much(_most_bytes())
        return read_file(path, schema, separator=",", encoding="utf-8").table
    except VerificationFailed:
        raise
    except SfumatoError as error:
        reason = type(error).__name__ if error.owner_only else str(error)
        raise VerificationFailed(f"the data file cannot be read: {reason}") from None
    except (MemoryError, OverflowError, ValueError, OSError) as error:
        raise VerificationFailed(f"the data file cannot be read ({type(error).__name__})") from None


def unpack(path: Path, rows: int | None = None, groups: range | None = None) -> pa.Table:
    """The table in a Parquet file, or these row groups of it, unpacked by a child process; whatever goes wrong there is one
    `VerificationFailed`. `rows` is how many the whole file must have."""
    import pyarrow as pa

    with _unpacked(path, rows, groups) as (place, size, most):
        content = pa.py_buffer(mmap.mmap(place.fileno(), size, access=mmap.ACCESS_READ))
    try:
        table = pa.ipc.open_stream(content).read_all()
        table.validate(full=True)
    except (OSError, ValueError, UnicodeDecodeError, pa.ArrowException):
        raise VerificationFailed(_WORDS[limited_child.NOT_PARQUET]) from None
    if sum(_written_out(column) for column in table.columns) > most:
        raise _too_much(most)
    return table


def unpack_in_turn(path: Path, rows: int, groups: range, sizes: Sequence[int]) -> Generator[pa.Table, None, None]:
    """Row groups as tables of so many rows each, of which this process holds one at a time; each ends where a group does."""
    import pyarrow as pa

    with _unpacked(path, rows, groups) as (place, _, most):
        place.seek(0)
        written = 0
        try:
            with pa.ipc.open_stream(pa.PythonFile(place, mode="r")) as stream:
                for size in sizes:
                    table = _next_rows(stream, size)
                    written += sum(_written_out(column) for column in table.columns)
                    if written > most:
                        raise _too_much(most)
                    yield table
                    del table
                if any(batch.num_rows for batch in stream):
                    raise VerificationFailed(_WORDS[limited_child.OTHER_ROWS])
        except (OSError, ValueError, UnicodeDecodeError, pa.ArrowException):
            raise VerificationFailed(_WORDS[limited_child.NOT_PARQUET]) from None


def _next_rows(stream: pa.RecordBatchReader, size: int) -> pa.Table:
    """So many rows of a stream, which must end a batch, each checked before anything is read from it."""
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    missing = size
    while missing > 0 and (batch := next(stream, None)) is not None:
        batch.validate(full=True)
        batches.append(batch)
        missing -= batch.num_rows
    if missing:
        raise VerificationFailed(_WORDS[limited_child.OTHER_ROWS])
    return pa.Table.from_batches(batches, schema=stream.schema)


@contextmanager
def _unpacked(path: Path, rows: int | None, groups: range | None) -> Iterator[tuple[BinaryIO, int, int]]:
    """The place where a child process put the rows, their bytes as it wrote them, and how many there may be written out."""
    length = path.stat().st_size
    most = min(_most_bytes(), FREE_BYTES + BYTES_PER_BYTE * length)
    with path.open("rb") as stored, open(memory_file(), "w+b", buffering=0) as place:
        _run(stored, place, length, most, -1 if rows is None else rows, groups)
        size = os.fstat(place.fileno()).st_size
        if not 0 < size <= most:
            raise VerificationFailed(_WORDS[limited_child.NOT_PARQUET])
        yield place, size, most


def _written_out(column: pa.ChunkedArray) -> int:
    """The bytes of a column with every text written out: codes are short, and each may stand for a long one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = (pc.take(pc.binary_length(chunk.dictionary), chunk.indices) for chunk in column.chunks)
    return sum(pc.sum(chunk_lengths.cast(pa.int64())).as_py() or 0 for chunk_lengths in lengths)


def _run(stored: BinaryIO, place: BinaryIO, length: int, most: int, rows: int, groups: range | None) -> None:
    import pyarrow as pa

    seconds = _CHILD_SECONDS + length // _BYTES_PER_SECOND
    limits = Limits(_CHILD_BYTES + _CHILD_BYTES_PER_BYTE * length, seconds, most)
    chosen = [] if groups is None else [str(groups.start), str(groups.stop)]
    arguments = [str(rows), str(most), str(Path(pa.__file__).parent.parent), *chosen]
    program = limited_child.__file__
    try:
        with limited_process(program, arguments, limits, stdin=stored, stdout=place, environment=_environment()) as child:
            code = child.code(_PATIENCE * seconds)
    except TimeoutError:
        raise VerificationFailed(
            f"the data file took more than {_PATIENCE * seconds:,} seconds to unpack and was given up"
        ) from None
    except OSError as error:
        raise VerificationFailed(f"the process that unpacks the data file cannot be started: {error.strerror}") from None
    if code == limited_child.TOO_MUCH:
        raise _too_much(most)
    if code != 0:
        raise VerificationFailed(_WORDS.get(code, "the data file cannot be unpacked: the process that tried it was stopped"))


def _too_much(most: int) -> VerificationFailed:
    return VerificationFailed(
        f"the data file unpacks into more than the {most:,} bytes that its size allows; it was not read further. "
        f"If it is meant to, set {VARIABLE} to a larger number."
    )


def _most_bytes() -> int:
    """What may be unpacked into memory here: half of what the machine has, or what the user says."""
    limit = os.environ.get(VARIABLE)
    if limit is None:
        return min(_MOST_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    if not (limit.isascii() and limit.isdecimal() and len(limit) < 16 and int(limit) > 0):
        raise ParameterError(f"the variable {VARIABLE} is a whole number of bytes")
    return int(limit)


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR") if name in os.environ}
    return {**kept, "ARROW_DEFAULT_MEMORY_POOL": "system"}
