"""A Parquet file that another version of the library wrote, part by part: nothing in it that no row shows.

The same rows written by another version may be other bytes. So the footer is compared with that of the rows written again;
column chunks and pages must fill the file without a gap; and every entry of a dictionary and every bound in a statistic must be a
value that a row of its group shows. Page headers are read here, because no library shows them.
Apache Parquet format, parquet.thrift; Apache Thrift, compact protocol.
"""

from __future__ import annotations

import base64
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from sfumato.core.errors import VerificationFailed
from sfumato.workflow.verifying.limited_child import FOOTER_LIMITS

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAGIC_BYTES = 4
FOOTER_BYTES = 8
_WRITER = "parquet-cpp-arrow version "
#: Field numbers that parquet.thrift gives the parts of a page header and of the headers in it.
_PAGE, _DATA, _DICTIONARY = frozenset({1, 2, 3}), frozenset(range(1, 6)), frozenset({1, 2, 3})
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_SLACK = 200
#: The kind of short numbers, and the one field of the format that has it: the place of a row group.
_SHORT, _ORDINAL = 4, 7
#: The kinds of values that lists of the format have: truth values, numbers of 32 and 64 bits, bytes and structures.
_LISTED = frozenset({1, 2, 5, 6, 8, 12})
#: A structure of a stranger's file by field number: numbers, bytes, lists and structures again.
Fields: TypeAlias = dict[int, Any]


def refuse_other_parts(path: Path, again: Path, rows: pa.Table) -> None:
    """Raise where the file holds anything besides its rows; `again` is the same rows written by this version."""
    theirs, own = footer_of(path)[0], footer_of(again)[0]
    _refuse_footer(theirs, own, rows)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        _refuse_content(content, theirs, own, rows)


def footer_of(path: Path) -> tuple[pq.FileMetaData, pa.Schema]:
    """What the footer of a stranger's file says, read with limits."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, **FOOTER_LIMITS) as file:
        return file.metadata, file.schema_arrow


def _refuse_content(content: mmap.mmap, theirs: pq.FileMetaData, own: pq.FileMetaData, rows: pa.Table) -> None:
    end = len(content) - FOOTER_BYTES - int.from_bytes(content[-8:-4], "little")
    place, start = MAGIC_BYTES, 0
    for number in range(theirs.num_row_groups):
        group = theirs.row_group(number)
        shown_rows = rows.slice(start, group.num_rows)
        start += group.num_rows
        for position in range(group.num_columns):
            chunk, mine = group.column(position), own.row_group(number).column(position)
            _refuse_chunk(chunk, mine, place)
            values = stored_values(shown_rows.column(position))
            _refuse_pages(content[place : place + chunk.total_compressed_size], chunk, values)
            place += chunk.total_compressed_size
    if place != end:
        raise hidden("there are bytes between its columns and its footer")


def _refuse_footer(theirs: pq.FileMetaData, own: pq.FileMetaData, rows: pa.Table) -> None:
    import pyarrow as pa

    metadata = dict(theirs.metadata or {})
    described = metadata.pop(b"ARROW:schema", None)
    if metadata or described is None or not str(theirs.created_by).startswith(_WRITER):
        raise hidden("its footer holds metadata that no release has")
    stored = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(described, validate=True)))
    plain = pa.schema([pa.field(field.name, field.type) for field in rows.schema])
    if not stored.equals(plain, check_metadata=True):
        raise hidden("its footer describes other columns")
    if not theirs.schema.equals(own.schema):
        raise hidden("its columns have other types than those of a release")
    shape = [[meta.row_group(i).num_rows for i in range(meta.num_row_groups)] for meta in (theirs, own)]
    if shape[0] != shape[1]:
        raise hidden("its rows are grouped in another way")


def _refuse_chunk(chunk: pq.ColumnChunkMetaData, own: pq.ColumnChunkMetaData, place: int) -> None:
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    if first != place or chunk.has_offset_index or chunk.has_column_index:
        raise hidden("its columns do not follow each other without a gap")
    if chunk.compression != own.compression or chunk.total_uncompressed_size > own.total_uncompressed_size * 1.01 + _SLACK:
        raise hidden("a column takes more room than its values")
    mine, theirs = own.statistics, chunk.statistics
    if (theirs is None) != (mine is None) or (theirs is not None and theirs.to_dict() != mine.to_dict()):
        raise hidden("a statistic is not one of the values shown")


def _refuse_pages(chunk: bytes, about: pq.ColumnChunkMetaData, shown: set[bytes]) -> None:
    place = values = 0
    while place < len(chunk):
        header, body = struct_of(chunk, place)
        size, kind = header.get(3), header.get(1)
        field, fields = {_DATA_PAGE: (5, _DATA), _DICTIONARY_PAGE: (7, _DICTIONARY)}.get(kind or 0, (0, _DATA))
        inner = header.get(field)
        if (
            set(header) != {*_PAGE, field}
            or not isinstance(inner, dict)
            or set(inner) - fields
            or type(size) is not int
            or size < 0
        ):
            raise hidden("a page has a header that no release has")
        if kind == _DICTIONARY_PAGE:
            if place:
                raise hidden("a dictionary stands where none belongs")
            _refuse_entries(chunk[body : body + size], header, inner, about, shown)
        else:
            values += int(inner.get(1, 0))
            refuse_bounds(inner.get(5), shown)
        place = body + size
    if place != len(chunk) or values != about.num_values:
        raise hidden("its pages do not hold one value per row")


def _refuse_entries(
    packed: bytes, header: dict[int, Any], inner: dict[int, Any], about: pq.ColumnChunkMetaData, shown: set[bytes]
) -> None:
    import pyarrow as pa

    size = int(header[2])
    if not 0 <= size <= about.total_uncompressed_size:
        raise hidden("a dictionary is larger than its column")
    codec = about.compression.lower()
    unpacked = packed if codec == "uncompressed" else pa.Codec(codec).decompress(packed, size).to_pybytes()
    values = list(entries_of(unpacked, about.physical_type))
    if len(values) != inner.get(1) or not set(values) <= shown:
        raise hidden("a dictionary has entries that no row uses")


def entries_of(content: bytes, kind: str) -> Iterator[bytes]:
    """The values of a dictionary page, as bytes."""
    place = 0
    width = {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "BYTE_ARRAY": 0}[kind]
    while place < len(content):
        length = width or int.from_bytes(content[place : place + 4], "little")
        place += 0 if width else 4
        yield content[place : place + length]
        place += length


def refuse_bounds(statistics: object, shown: set[bytes]) -> None:
    """The statistics of a page; counts are numbers, bounds are bytes."""
    if statistics is None:
        return
    counts = {3: int, 7: bool, 8: bool}
    if not isinstance(statistics, dict) or any(
        type(value) is not counts[field] if field in counts else field not in (1, 2, 5, 6) or value not in shown
        for field, value in statistics.items()
    ):
        raise hidden("a statistic is not one of the values shown")


def stored_values(column: pa.ChunkedArray) -> set[bytes]:
    """The distinct values as the file stores them; zero with either sign, because a lower bound of zero is stored as negative."""
    import pyarrow as pa

    values = set(stored_in_turn(column, len(column)))
    if not pa.types.is_floating(column.type):
        return values
    width = column.type.bit_width // 8
    zeros = {bytes(width), bytes(width - 1) + b"\x80"}
    return values | zeros if values & zeros else values


def stored_in_turn(column: pa.ChunkedArray, most: int) -> list[bytes]:
    """The first distinct values as the file stores them, in the order in which they appear."""
    import pyarrow as pa

    values = column.unique()
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    values = values.drop_null().slice(0, most)
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return [text.encode() for text in values.to_pylist()]
    if pa.types.is_boolean(kind):
        return [bytes([value]) for value in values.to_pylist()]
    if pa.types.is_date32(kind):
        numbers = values.cast(pa.int32()).to_numpy()
    elif pa.types.is_timestamp(kind):
        numbers = values.cast(pa.int64()).to_numpy()
    else:
        numbers = values.to_numpy()
        if numbers.dtype.itemsize < 4:
            numbers = numbers.astype("<i4")
    return [number.tobytes() for number in numbers]


def struct_of(content: bytes, place: int) -> tuple[Fields, int]:
    """A structure of the compact protocol by field number, and where it ends."""
    fields: dict[int, Any] = {}
    last = 0
    while True:
        head = content[place]
        place += 1
        if head == 0:
            return fields, place
        kind, step = head & 15, head >> 4
        if step:
            last += step
        else:
            number, place = varint(content, place)
            if 0 < _signed(number) - last <= 15:  # the shorter form would have done
                raise hidden("a part has a header that no release has")
            last = _signed(number)
        if last in fields or (kind == _SHORT and last != _ORDINAL):
            raise hidden("a page has a header that no release has")
        fields[last], place = _value(content, place, kind)


def _value(content: bytes, place: int, kind: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, place
    if kind in (4, 5, 6):
        number, place = varint(content, place)
        return _signed(number), place
    if kind == 8:
        length, place = varint(content, place)
        return content[place : place + length], place + length
    if kind == 12:
        return struct_of(content, place)
    if kind == 9:
        return _list(content, place)
    if kind == 3:
        return content[place], place + 1
    raise hidden("a page has a header that no release has")


def _list(content: bytes, place: int) -> tuple[list[Any], int]:
    kind, length = content[place] & 15, content[place] >> 4
    place += 1
    if length == 15:
        length, place = varint(content, place)
        if length < 15:
            raise hidden("a part has a header that no release has")
    if kind not in _LISTED:
        raise hidden("a part has a header that no release has")
    entries: list[Any] = []
    for _ in range(length):
        if kind in (1, 2):  # a truth value among others is a byte
            if content[place] not in (1, 2):
                raise hidden("a part has a header that no release has")
            entry, place = content[place] == 1, place + 1
        else:
            entry, place = _value(content, place, kind)
        entries.append(entry)
    return entries, place


def varint(content: bytes, place: int) -> tuple[int, int]:
    """A number in its shortest form, and where it ends."""
    number = shift = 0
    while True:
        byte = content[place]
        place += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128 or shift > 63:
            if byte == 0 and shift > 7:  # a shorter form would have done
                raise hidden("a part has a header that no release has")
            return number, place


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def hidden(what: str) -> VerificationFailed:
    return VerificationFailed(f"the data file holds something besides its rows: {what}")
