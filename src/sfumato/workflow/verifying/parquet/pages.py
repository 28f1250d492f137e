"""The bytes of a data page, from its first level to its last value: nothing stands behind or between the values that rows show.

A page begins with runs that say where values are missing, and goes on with values in the plain encoding, as places in a
dictionary, or, of truth values, as runs. Runs are walked, so that a page ends with its last one; runs of nothing, long forms of
short numbers and bits that fill up the last byte are where text could hide, and are refused.
Apache Parquet format, Encodings.md: plain, RLE and bit-packing hybrid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.workflow.verifying.parquet.parts import hidden, varint
from sfumato.workflow.verifying.parquet.statistics import text_bytes

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN, _PLAIN_DICTIONARY, _RUNS, _DICTIONARY = 0, 2, 3, 8
_BOOLEAN, _BYTE_ARRAY = 0, 6
_WIDTHS = {1: 4, 2: 8, 4: 4, 5: 8}
_WIDEST = 32
_GROUP = 8  # values that are packed together
_PADDED = 256  # DuckDB fills packed values up to so many, with zeros or with what stood there in the run before
_LENGTH = 4  # bytes that say how many follow


def refuse_other_bytes(page: bytes, encoding: int, values: pa.ChunkedArray, physical: int, *, optional: bool) -> None:
    """Raise where an unpacked data page holds something besides these values."""
    try:
        place = _after_runs(page, 0, 1, len(values)) if optional else 0
        if _end(page, place, encoding, values, physical) != len(page):
            raise hidden("there are bytes behind the last value of a page")
    except (IndexError, KeyError):
        raise hidden("a page is encoded as no writer of releases encodes it") from None


def _end(page: bytes, place: int, encoding: int, values: pa.ChunkedArray, physical: int) -> int:
    count = int(len(values) - values.null_count)
    if encoding == _PLAIN:
        if physical == _BYTE_ARRAY:
            return place + _LENGTH * count + text_bytes(values)
        if physical == _BOOLEAN:
            return _after_bits(page, place, 1, count)
        return place + _WIDTHS[physical] * count
    if encoding in (_DICTIONARY, _PLAIN_DICTIONARY):
        if place == len(page) and not count:
            return place
        return _walked(page, place + 1, page[place], count, len(page))
    if encoding == _RUNS and physical == _BOOLEAN:
        return _after_runs(page, place, 1, count)
    raise KeyError(encoding)


def _after_runs(page: bytes, place: int, width: int, count: int) -> int:
    """Where runs end whose length stands before them."""
    start = place + _LENGTH
    end = start + int.from_bytes(page[place:start], "little")
    if end > len(page) or _walked(page, start, width, count, end) != end:
        raise hidden("there are bytes behind the runs of a page")
    return end


def _walked(page: bytes, place: int, width: int, count: int, end: int) -> int:
    """Where the runs of so many values end."""
    if width > _WIDEST:
        raise KeyError(width)
    before = 0
    while count > 0:
        head, place = varint(page, place)
        times = head >> 1
        if not times:
            raise hidden("a run of no values in a page")
        if head & 1:
            packed = min(times * _GROUP, count)
            bits = int.from_bytes(page[place : place + times * width], "little")
            rest = bits >> (width * packed)
            if times * _GROUP - packed >= _PADDED or (rest and rest != before >> (width * packed)):
                raise hidden("a run of more values than a page has")
            before = bits
            place += times * width
            count -= packed
        else:
            size = (width + 7) // 8
            if times > count or int.from_bytes(page[place : place + size], "little") >> width:
                raise hidden("a run of more values than a page has, or of another value")
            place += size
            count -= times
        if place > end:
            raise KeyError(place)
    return place


def _after_bits(page: bytes, place: int, width: int, count: int) -> int:
    """Where packed bits end; those that fill up the last byte are zero."""
    bits = width * count
    end = place + (bits + 7) // 8
    if bits % 8 and page[end - 1] >> (bits % 8):
        raise hidden("bits behind the last value of a page")
    return end
