"""Every byte of a Parquet file that another version of the library wrote, accounted for.

The footer is read field by field against the list of those that a release has; offsets, sizes and counts must be those of the
pages. A page must hold what this version writes for the same rows, with or without a dictionary, packed as one Zstandard frame.
What cannot be accounted for is refused. Apache Parquet format, parquet.thrift; RFC 8878, Zstandard.
"""

from __future__ import annotations

import mmap
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.files import temporary_folder
from sfumato.workflow.verifying.parquet.parts import FOOTER_BYTES, MAGIC_BYTES, Fields, hidden, struct_of

if TYPE_CHECKING:
    import pyarrow as pa

_WRITER = re.compile(rb"parquet-cpp-arrow version [0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(-SNAPSHOT)?")
_FILE, _GROUP, _CHUNK = frozenset(range(1, 8)), frozenset({1, 2, 3, 5, 6, 7}), frozenset({2, 3})
_COLUMN = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 16})
_ENCODINGS = frozenset({0, 2, 3, 8})  # plain, dictionary (both names), run lengths
_DICTIONARY_PAGE = 2
_ZSTD = b"\x28\xb5\x2f\xfd"
_EVERY_ROW = 1 << 40


@dataclass(frozen=True)
class _Page:
    kind: int
    encoding: int
    header: dict[int, Any]  # without what may differ: the packed size and statistics
    content: bytes
    statistics: Any = field(compare=False)


@dataclass(frozen=True)
class _Chunk:
    """A column chunk: where it stands, what its footer says of it, and its pages."""

    start: int
    data_start: int
    end: int
    size: int  # unpacked, with headers
    pages: list[_Page]


def refuse_other_bytes_within(path: Path, again: Path, rows: pa.Table) -> None:
    """Raise where a byte of the file follows neither from its rows nor from the format; `again` is the rows written here."""
    theirs, own = footer_fields(path), footer_fields(again)
    if set(theirs) - _FILE or not _WRITER.fullmatch(theirs.get(6, b"")) or theirs.get(1) not in (1, 2):
        raise hidden("its footer holds metadata that no release has")
    if any(theirs.get(field) != own.get(field) for field in (2, 3, 5)) or theirs.get(7) not in (None, own.get(7)):
        raise hidden("its footer describes other columns")
    chunks = _chunks(path, theirs)
    with temporary_folder("verify") as place:
        ways = [_chunks(again, own), *_other_ways(rows, Path(place))]
    for number, (group, mine) in enumerate(zip(theirs[4], own[4], strict=True)):
        _refuse_group(group, chunks[number], number)
        for position, (chunk, own_chunk) in enumerate(zip(group[1], mine[1], strict=True)):
            about = chunks[number][position]
            _refuse_column(chunk, own_chunk[3], about)
            if not any(_same_pages(about.pages, way[number][position].pages) for way in ways):
                raise hidden("a page is not written as this version writes its values, which could not be accounted for")


def _other_ways(rows: pa.Table, place: Path) -> list[list[list[_Chunk]]]:
    """The same rows as other versions write them: without dictionaries, and with pages that end elsewhere."""
    import pyarrow.parquet as pq

    from sfumato.data.writers import clean

    ways = []
    plain: dict[str, Any] = {"use_dictionary": False}
    for number, options in enumerate((plain, {"max_rows_per_page": _EVERY_ROW}, {**plain, "max_rows_per_page": _EVERY_ROW})):
        path = place / f"{number}.parquet"
        pq.write_table(clean(rows), path, compression="zstd", **options)
        ways.append(_chunks(path, footer_fields(path)))
    return ways


def footer_fields(path: Path) -> Fields:
    """The footer of a Parquet file by field number."""
    with path.open("rb") as file:
        file.seek(-FOOTER_BYTES, 2)
        length = int.from_bytes(file.read(4), "little")
        file.seek(-FOOTER_BYTES - length, 2)
        footer = file.read(length)
    fields, end = struct_of(footer, 0)
    if end != len(footer):
        raise hidden("there are bytes behind its footer")
    return fields


def _chunks(path: Path, footer: dict[int, Any]) -> list[list[_Chunk]]:
    place = MAGIC_BYTES
    groups = []
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for group in footer.get(4, []):
            chunks = []
            for chunk in group[1]:
                end = place + int(chunk[3][7])
                chunks.append(_pages(content[place:end], place, end))
                place = end
            groups.append(chunks)
    return groups


def _pages(content: bytes, start: int, end: int) -> _Chunk:
    place = size = 0
    data_start = -1
    pages = []
    while place < len(content):
        header, body = struct_of(content, place)
        kind, unpacked, packed = int(header[1]), int(header[2]), int(header[3])
        if kind != _DICTIONARY_PAGE and data_start < 0:
            data_start = start + place
        size += body - place + unpacked
        inner = dict(header.get(7 if kind == _DICTIONARY_PAGE else 5) or {})
        statistics = inner.pop(5, None)
        shape = {1: kind, 2: unpacked, 5: inner}  # `parquet_parts` found no other field
        pages.append(_Page(kind, int(inner[2]), shape, _unpacked(content[body : body + packed], unpacked), statistics))
        place = body + packed
    return _Chunk(start, data_start, end, size, pages)


def _unpacked(packed: bytes, size: int) -> bytes:
    import pyarrow as pa

    refuse_other_frames(packed)
    unpacked = pa.Codec("zstd").decompress(packed, size).to_pybytes()
    if len(unpacked) != size:
        raise hidden("a page has another size than it says")
    return bytes(unpacked)


def refuse_other_frames(packed: bytes) -> None:
    """One frame from the first byte to the last: no second one, none to be skipped, nothing behind it."""
    about = packed[4]
    single = about >> 5 & 1
    if packed[:4] != _ZSTD or about & 0b11011:
        raise hidden("a page is not one Zstandard frame")
    place = 5 + (1 - single) + (single, 2, 4, 8)[about >> 6]
    last = False
    while not last:
        block = int.from_bytes(packed[place : place + 3], "little")
        last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        place += 3 + (1 if kind == 1 else size)
        if kind == 3 or place > len(packed) or (size == 0 and not last):
            raise hidden("a page is not one Zstandard frame")
    if place + (4 if about & 4 else 0) != len(packed):
        raise hidden("a page is not one Zstandard frame")


def _refuse_group(group: dict[int, Any], chunks: list[_Chunk], number: int) -> None:
    packed = sum(chunk.end - chunk.start for chunk in chunks)
    if (
        set(group) - _GROUP
        or group.get(2) != sum(chunk.size for chunk in chunks)
        or group.get(5, 0) not in (0, chunks[0].start)
        or group.get(6, packed) != packed
        or group.get(7, number) != number
    ):
        raise hidden("its footer says something of a group of rows that no release says")


def _refuse_column(chunk: dict[int, Any], own: dict[int, Any], about: _Chunk) -> None:
    theirs = chunk.get(3, {})
    counted = Counter((page.kind, page.encoding) for page in about.pages)
    with_dictionary = about.pages[0].kind == _DICTIONARY_PAGE if about.pages else False
    encodings = theirs.get(2, [])
    if (
        set(chunk) - _CHUNK
        or set(theirs) - _COLUMN
        or chunk.get(2, 0) not in (0, about.start, about.end)
        or any(theirs.get(field) != own.get(field) for field in (1, 3, 4, 5))
        or len(set(encodings)) != len(encodings)
        or not set(encodings) <= _ENCODINGS
        or theirs.get(6) != about.size
        or theirs.get(9) != about.data_start
        or theirs.get(11, about.start if with_dictionary else None) != (about.start if with_dictionary else None)
        or not _same_statistics(theirs.get(12), own.get(12))
        or theirs.get(16) not in (None, own.get(16))
    ):
        raise hidden("its footer says something of a column that no release says")
    if 13 in theirs:
        stated = [((entry.get(1), entry.get(2)), entry.get(3)) for entry in theirs[13]]
        if any(set(entry) - {1, 2, 3} for entry in theirs[13]) or len(stated) != len(counted) or dict(stated) != dict(counted):
            raise hidden("its footer counts other pages than it has")


def _same_pages(theirs: list[_Page], own: list[_Page]) -> bool:
    """The same values in the same encoding, and of each page the same statistics, or none."""
    return theirs == own and all(
        page.statistics is None or _same_statistics(page.statistics, other.statistics)
        for page, other in zip(theirs, own, strict=True)
    )


def _same_statistics(theirs: Any, own: Any) -> bool:
    """Those of the rows; the older names of the bounds, 1 and 2, hold the same as the newer ones, 5 and 6."""
    if theirs is None or own is None:
        return theirs is own
    newer = {1: 5, 2: 6}
    return all(value == own.get(newer.get(field, field)) for field, value in theirs.items())
