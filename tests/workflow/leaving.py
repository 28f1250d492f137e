"""Everything that leaves with a release, taken apart: files as they are, and each page of a Parquet file unpacked."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_DICTIONARY, _DATA = 2, 0  # page types of the format
_STRUCT, _STOP = 12, 0  # of Thrift's compact protocol


def leaving(public: Path) -> Iterator[tuple[str, bytes]]:
    """Every piece of every file in a public folder, with a name for it."""
    for path in sorted(public.rglob("*")):
        if path.is_dir():
            continue
        content = path.read_bytes()
        yield path.name, content
        for found in re.findall(rb"base64,([A-Za-z0-9+/=]+)", content):
            yield f"{path.name} embedded", base64.b64decode(found)
        if path.suffix == ".parquet":
            yield from pages(path)


def pages(path: Path) -> Iterator[tuple[str, bytes]]:
    """The pages of a Parquet file, dictionaries included, decompressed."""
    content = path.read_bytes()
    told = pq.read_metadata(path)
    for group in range(told.num_row_groups):
        for column in range(told.num_columns):
            chunk = told.row_group(group).column(column)
            place = min(x for x in (chunk.dictionary_page_offset, chunk.data_page_offset) if x)
            end = place + chunk.total_compressed_size
            while place < end:
                kind, unpacked, packed, place = _page_header(content, place)
                assert kind in (_DICTIONARY, _DATA), "a kind of page that this walker does not know"
                body = content[place : place + packed]
                place += packed
                if chunk.compression != "UNCOMPRESSED":
                    body = pa.Codec(chunk.compression.lower()).decompress(body, unpacked).to_pybytes()
                assert len(body) == unpacked
                yield f"{path.name} {chunk.path_in_schema} page", body


def forms(value: str | int | float) -> list[bytes]:
    """How a value can stand in a file: as text in two encodings, or as a number in the widths that files use."""
    if isinstance(value, str):
        return [value.encode(), value.encode("utf-16-le")]
    text = repr(value).removesuffix(".0")
    shown = [text.encode(), f"{value:,}".removesuffix(".0").encode(), struct.pack("<d", float(value))]
    if float(value).is_integer():
        shown += [struct.pack("<q", int(value)), struct.pack("<i", int(value))]
    return shown


def _page_header(content: bytes, place: int) -> tuple[int, int, int, int]:
    """Type, size unpacked, size packed, and where the page begins."""
    values, place = _fields(content, place)
    return values[1], values[2], values[3], place


def _fields(content: bytes, place: int) -> tuple[dict[int, int], int]:
    """The whole numbers of a Thrift struct by field; structs inside it are passed over."""
    values: dict[int, int] = {}
    field = 0
    while content[place] != _STOP:
        head = content[place]
        kind, place = head & 15, place + 1
        if head >> 4:
            field += head >> 4
        else:
            field, place = _number(content, place)
        if kind == _STRUCT:
            _, place = _fields(content, place)
        elif kind in (1, 2):  # booleans stand in the head
            continue
        elif kind == 8:  # bytes: statistics
            length, place = _unsigned(content, place)
            place += length
        else:
            values[field], place = _number(content, place)
    return values, place + 1


def _unsigned(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (content[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if content[place - 1] < 128:
            return value, place


def _number(content: bytes, place: int) -> tuple[int, int]:
    value, place = _unsigned(content, place)
    return (value >> 1) ^ -(value & 1), place
