"""What a Parquet file says about its values, computed again from the values: bounds, counts, sizes and the order of pages.

Readers skip parts of a file by its statistics: whoever forges a bound hides rows from some readers and shows them to others, and
a bound is room for a value that no row has. So a statistic is what the rows give, or the file is refused. Zero has two signs in a
bound (writers store a lower bound of zero as negative). In indexes of pages parquet-mr cuts texts of more than 64 bytes: a lower
bound between characters, an upper one likewise with its last character raised.
Apache Parquet format, parquet.thrift; parquet-mr, BinaryTruncator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from sfumato.workflow.verifying.parquet.parts import Fields, hidden, stored_values

if TYPE_CHECKING:
    import pyarrow as pa

_BYTE_ARRAY = 6
_CUT = 64  # how many bytes of a text parquet-mr keeps as a bound of a page
_UNORDERED, _ASCENDING, _DESCENDING = 0, 1, 2


def bounds_of(column: pa.ChunkedArray) -> tuple[frozenset[bytes], frozenset[bytes]]:
    """The smallest and the largest value as files store them, each in every form that writers have; empty without values."""
    import pyarrow as pa

    ends = pc.min_max(column)
    smallest, largest = (stored_values(pa.chunked_array([pa.array([ends[end].as_py()], column.type)])) for end in ("min", "max"))
    return frozenset(smallest), frozenset(largest)


def refuse_statistics(stated: object, column: pa.ChunkedArray) -> None:
    """The statistics of a column chunk or of a page: the ends of these values, and how many there are."""
    if stated is None:
        return
    smallest, largest = bounds_of(column)
    ends = {1: largest, 2: smallest, 5: largest, 6: smallest}
    if not isinstance(stated, dict) or set(stated) - set(range(1, 9)):
        raise hidden("a statistic that no writer of releases makes")
    if any(stated.get(number, True) is not True for number in (7, 8)):
        raise hidden("a bound is said not to be exact, and the bounds of releases are")
    if stated.get(3, column.null_count) != column.null_count or not _same_count(stated.get(4), column):
        raise hidden("a statistic counts other values than those shown")
    if any(number in stated and stated[number] not in values for number, values in ends.items()):
        raise hidden("a bound is not the smallest or the largest value shown")


def _same_count(stated: object, column: pa.ChunkedArray) -> bool:
    """Whether a count of different values, where there is one, is right."""
    return stated is None or stated == len(column.unique().drop_null())


def refuse_sizes(stated: object, column: pa.ChunkedArray, *, physical: int, optional: bool) -> None:
    """The size statistics of a column chunk: bytes of its texts, and how many values are there or missing."""
    if stated is None:
        return
    texts = [text_bytes(column)] if physical == _BYTE_ARRAY else []
    levels = [column.null_count, len(column) - column.null_count] if optional else [len(column)]
    if (
        not isinstance(stated, dict)
        or set(stated) - {1, 2, 3}
        or (1 in stated and [stated[1]] != texts)
        or stated.get(2, []) not in ([], [len(column)])
        or stated.get(3, []) not in ([], levels)
    ):
        raise hidden("its footer states other sizes than those of its values")


def refuse_encodings(stated: Sequence[int], counts: object, used: Iterable[tuple[int, int]], levels: set[int]) -> None:
    """How the pages of a column chunk are encoded, and how many there are of each kind: those that it has.

    `used` are kind and encoding of every page, `levels` the encodings of their levels.
    """
    pages = Counter(used)
    values = {encoding for kind, encoding in pages if kind == 0}
    possible = {encoding for _, encoding in pages} | levels
    once = len(set(stated)) == len(stated) and all(type(each) is int for each in stated)
    if not once or (values and not values <= set(stated) <= possible):
        raise hidden("its footer names other encodings than its pages have")
    if counts is None:
        return
    entries = counts if isinstance(counts, list) else []
    listed = [((entry.get(1), entry.get(2)), entry.get(3)) for entry in entries]
    if any(set(entry) - {1, 2, 3} for entry in entries) or len(listed) != len(pages) or dict(listed) != dict(pages):
        raise hidden("its footer counts other pages than it has")


def refuse_text_sizes(stated: object, pages: Sequence[pa.ChunkedArray], physical: int) -> None:
    """The bytes of texts per page, beside the places of pages."""
    if stated is not None and (physical != _BYTE_ARRAY or stated != [text_bytes(page) for page in pages]):
        raise hidden("an index states other sizes than those of its pages")


def refuse_page_bounds(index: Fields, pages: Sequence[pa.ChunkedArray], *, optional: bool) -> None:
    """An index of the bounds of pages: their smallest and largest values, long texts cut, and how many values are missing."""
    ends = [bounds_of(page) for page in pages]
    levels = [count for page in pages for count in _levels(page, optional)]
    expected = {
        1: [len(page) == page.null_count for page in pages],
        5: [page.null_count for page in pages],
        6: [len(page) for page in pages],
        7: levels,
    }
    if set(index) - set(range(1, 8)) or any(number in index and index[number] != value for number, value in expected.items()):
        raise hidden("an index of pages counts other values than those shown")
    smallest, largest = index.get(2, []), index.get(3, [])
    if (
        1 not in index
        or len(smallest) != len(pages)
        or len(largest) != len(pages)
        or any(bound not in _lower(low) for bound, (low, _) in zip(smallest, ends, strict=True))
        or any(bound not in _upper(high) for bound, (_, high) in zip(largest, ends, strict=True))
    ):
        raise hidden("an index of pages has bounds that are not those of the values shown")
    if index.get(4) != _order(pages, smallest, largest):
        raise hidden("an index names another order of its pages than they have")


def _levels(page: pa.ChunkedArray, optional: bool) -> list[int]:
    return [page.null_count, len(page) - page.null_count] if optional else [len(page)]


def _order(pages: Sequence[pa.ChunkedArray], smallest: Sequence[bytes], largest: Sequence[bytes]) -> int:
    """The order of the pages by their bounds, those without values left out; equal ones ascend. Texts compare as they are cut."""
    import pyarrow as pa

    bounds: list[tuple[Any, Any]] = []
    for page, low, high in zip(pages, smallest, largest, strict=True):
        if len(page) > page.null_count:
            ends = pc.min_max(page)
            bounds.append((low, high) if pa.types.is_string(page.type) else (ends["min"].as_py(), ends["max"].as_py()))
    lower, upper = [low for low, _ in bounds], [high for _, high in bounds]
    if lower == sorted(lower) and upper == sorted(upper):
        return _ASCENDING
    descends = lower == sorted(lower, reverse=True) and upper == sorted(upper, reverse=True)
    return _DESCENDING if descends else _UNORDERED


def _lower(values: frozenset[bytes]) -> set[bytes]:
    return {_whole_characters(value) for value in values} or {b""}


def _upper(values: frozenset[bytes]) -> set[bytes]:
    return {value if len(value) <= _CUT else _raised(_whole_characters(value)) or value for value in values} or {b""}


def _whole_characters(value: bytes) -> bytes:
    """The beginning of a text that fits, without half a character at its end."""
    end = _CUT
    while end < len(value) and value[end] & 0xC0 == 0x80:
        end -= 1
    return value[:end]


def _raised(beginning: bytes) -> bytes | None:
    """The beginning with its last byte raised that can be: still a text, and not before any text that begins so."""
    text = bytearray(beginning)
    for place in reversed(range(len(text))):
        before = text[place]
        if before < 0xFF:
            text[place] = before + 1
            try:
                text.decode()
                return bytes(text)
            except UnicodeDecodeError:
                text[place] = before
    return None


def text_bytes(column: pa.ChunkedArray) -> int:
    """How many bytes the texts of a column have together."""
    return int(pc.sum(pc.binary_length(column)).as_py() or 0)
