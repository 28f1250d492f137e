"""One Parquet file of a release with several, whichever writer wrote it: nothing in it besides its rows, part by part.

Rows of large releases are written by Arrow, DuckDB or Spark, so that no single writer says which bytes they must be. The footer
is read field by field against what these three write. Column chunks and page indexes must fill the file without a gap, pages
must be single Zstandard frames and hold one value per row, a dictionary must list values of its group in the order in which rows
show them, and statistics must be those of the rows (`parquet.statistics`). Row groups have the sizes that writers give them.
Bloom filters are refused, since values that no row shows could hide in them. How a writer encodes values inside a page is not
repeated, but a page holds nothing besides them (`parquet.pages`).
Apache Parquet format, parquet.thrift; RFC 8878, Zstandard.
"""

from __future__ import annotations

import json
import mmap
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.errors import VerificationFailed
from sfumato.engines.staging.base import ROWS_PER_GROUP
from sfumato.workflow.verifying.parquet.columns import is_described
from sfumato.workflow.verifying.parquet.pages import refuse_other_bytes
from sfumato.workflow.verifying.parquet.parts import (
    FOOTER_BYTES,
    MAGIC_BYTES,
    Fields,
    entries_of,
    hidden,
    stored_in_turn,
    struct_of,
)
from sfumato.workflow.verifying.parquet.published import footer_fields, refuse_other_frames
from sfumato.workflow.verifying.parquet.statistics import (
    refuse_encodings,
    refuse_page_bounds,
    refuse_sizes,
    refuse_statistics,
    refuse_text_sizes,
)

if TYPE_CHECKING:
    import pyarrow as pa

_ARROW, _DUCKDB, _SPARK = b"parquet-cpp-arrow", b"DuckDB", b"parquet-mr"
_WRITERS = {
    _ARROW: re.compile(rb"parquet-cpp-arrow version [0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(-SNAPSHOT)?"),
    _DUCKDB: re.compile(rb"DuckDB version v[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3} \(build [0-9a-f]{7,40}\)"),
    _SPARK: re.compile(rb"parquet-mr version [0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3} \(build [0-9a-f]{7,40}\)"),
}
_ROOTS = {_ARROW: b"schema", _DUCKDB: b"duckdb_schema", _SPARK: b"spark_schema"}
_SPARK_VERSION, _SPARK_COLUMNS = b"org.apache.spark.version", b"org.apache.spark.sql.parquet.row.metadata"
#: Field numbers that parquet.thrift gives the parts of a footer, as far as these writers use them.
_FILE, _GROUP = frozenset(range(1, 8)), frozenset({1, 2, 3, 5, 6, 7})
_CHUNK, _META = frozenset(range(2, 8)), frozenset({1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 16})
_COLUMN = frozenset({1, 3, 4, 6, 10})
_ENCODINGS = frozenset({0, 2, 3, 4, 5, 6, 7, 8, 9})
#: How levels are encoded: run lengths, or packed bits where there is only one.
_RUNS, _LEVELS = 3, frozenset({3, 4})
_PHYSICAL = {0: "BOOLEAN", 1: "INT32", 2: "INT64", 4: "FLOAT", 5: "DOUBLE", 6: "BYTE_ARRAY"}
_ZSTD = 6
#: Which version of the format each writer states, and how many rows every row group has but the last: as many as
#: `engines.staging` asks of Arrow, whole vectors of DuckDB, and in Spark, which counts bytes, those after which it looks first.
_FORMATS = {_ARROW: 2, _DUCKDB: 1, _SPARK: 1}
_VECTOR, _LOOKED_AT = 2048, 100
#: Data pages of the first version, and dictionaries: where the header of the kind stands, and its fields.
_PAGES = {0: (5, frozenset(range(1, 6))), 2: (7, frozenset({1, 2, 3}))}


@dataclass(frozen=True)
class _PlacedPage:
    start: int
    end: int
    first: int  # the place of its first value in the column
    values: int

    def of(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Its values."""
        return column.slice(self.first, self.values)


@dataclass
class StoredForm:
    """A file whose parts are compared with its rows, one row group after the other, and with its own length at the end."""

    content: mmap.mmap = field(repr=False)
    footer: Fields = field(repr=False)
    writer: bytes = _ARROW
    _taken: list[tuple[int, int]] = field(default_factory=list, repr=False)

    def refuse_other_group(self, number: int, rows: pa.Table) -> None:
        """Raise where a row group holds something besides these rows."""
        group = self.footer[4][number]
        chunks = [chunk.get(3, {}) for chunk in group.get(1, [])]
        starts = [_start(meta) for meta in chunks]
        if (
            set(group) - _GROUP
            or len(chunks) != rows.num_columns
            or group.get(3) != rows.num_rows
            or group.get(5, starts[0]) != starts[0]
            or group.get(6) not in (None, sum(int(meta.get(7, -1)) for meta in chunks))
            or group.get(7, number) != number
            or group.get(2) != sum(int(meta.get(6, -1)) for meta in chunks)
        ):
            raise hidden("its footer says something of a group of rows that no writer of releases says")
        if number < len(self.footer[4]) - 1:
            self._refuse_other_size(rows.num_rows)
        described = self.footer[2][1:]
        for chunk, name, column, about in zip(group[1], rows.column_names, rows.columns, described, strict=True):
            self._refuse_chunk(chunk, name.encode(), column, about)

    def _refuse_other_size(self, rows: int) -> None:
        """Row groups that are not the last have one size, or a smallest one."""
        usual = {_ARROW: rows == ROWS_PER_GROUP, _DUCKDB: rows > 0 and rows % _VECTOR == 0, _SPARK: rows >= _LOOKED_AT}
        if not usual[self.writer]:
            raise hidden("its rows are in groups of a size that no writer of releases makes")

    def refuse_gaps(self) -> None:
        """Raise where some bytes of the file belong to no part of it, or to two."""
        end = len(self.content) - FOOTER_BYTES - int.from_bytes(self.content[-8:-4], "little")
        place = MAGIC_BYTES
        for start, stop in sorted(self._taken):
            if start != place:
                raise hidden("its parts do not follow each other without a gap")
            place = stop
        if place != end:
            raise hidden("there are bytes between its columns and its footer")

    def _take(self, start: object, length: object) -> bytes:
        if type(start) is not int or type(length) is not int or not 0 < start <= start + length <= len(self.content):
            raise hidden("a part lies outside of it")
        self._taken.append((start, start + length))
        return self.content[start : start + length]

    def _refuse_chunk(self, chunk: Fields, name: bytes, column: pa.ChunkedArray, described: Fields) -> None:
        about, optional = chunk.get(3, {}), described.get(3) == 1
        if 14 in about or 15 in about:
            raise hidden("a Bloom filter, which may know values that no row shows")
        start = _start(about)
        content = self._take(start, about.get(7)) if about.get(7) or len(column) else b""
        if (
            set(chunk) - _CHUNK
            or set(about) - _META
            or chunk.get(2, 0) not in (0, max(start, 0), start + len(content))
            or about.get(3) != [name]
            or about.get(4) != _ZSTD
            or about.get(1) != described.get(1)
            or about.get(5) != len(column)
            or not set(about.get(2, [])) <= _ENCODINGS
        ):
            raise hidden("its footer says something of a column that no writer of releases says")
        refuse_statistics(about.get(12), column)
        refuse_sizes(about.get(16), column, physical=about[1], optional=optional)
        pages, size = _pages(content, start, about, column, optional=optional)
        if (pages[0].start if pages else 0) != about.get(9):
            raise hidden("its footer names another place of a page")
        if size != about.get(6):
            raise hidden("a column takes another room than it says")
        self._refuse_indexes(chunk, column, pages, optional=optional)

    def _refuse_indexes(self, chunk: Fields, column: pa.ChunkedArray, pages: list[_PlacedPage], *, optional: bool) -> None:
        if self.writer != _SPARK and set(chunk) & {4, 5, 6, 7}:
            raise hidden("an index of pages, which only Spark writes")
        values = [page.of(column) for page in pages]
        if 4 in chunk:
            index = _struct_of_all(self._take(chunk[4], chunk.get(5)))
            _refuse_places(index, pages)
            refuse_text_sizes(index.get(2), values, chunk[3][1])
        if 6 in chunk:
            refuse_page_bounds(_struct_of_all(self._take(chunk[6], chunk.get(7))), values, optional=optional)


@contextmanager
def stored_form(path: Path, columns: pa.Schema, rows: int) -> Iterator[StoredForm]:
    """The parts of a file with these columns and so many rows; its footer is checked. Whatever a stranger wrote, what goes wrong
    is one `VerificationFailed`."""
    try:
        footer = footer_fields(path)
        writer = _refuse_footer(footer, columns, rows)
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield StoredForm(content, footer, writer)
    except VerificationFailed:
        raise
    except (OSError, ValueError, TypeError, OverflowError, LookupError, AttributeError, RecursionError, MemoryError) as error:
        raise VerificationFailed(f"the parts of the data file cannot be compared ({type(error).__name__})") from None


def _struct_of_all(content: bytes) -> Fields:
    """A structure that fills these bytes."""
    fields, end = struct_of(content, 0)
    if end != len(content):
        raise hidden("there are bytes behind one of its parts")
    return fields


def _refuse_footer(footer: Fields, columns: pa.Schema, rows: int) -> bytes:
    """The writer that the footer names."""
    created = footer.get(6, b"")
    writer = next((name for name, form in _WRITERS.items() if form.fullmatch(created)), None)
    if writer is None or set(footer) - _FILE or footer.get(1) != _FORMATS[writer] or footer.get(3) != rows:
        raise hidden("its footer holds metadata that no writer of releases leaves there")
    pairs = footer.get(5) or []
    metadata = {pair.get(1): pair.get(2) for pair in pairs}
    if len(metadata) != len(pairs) or any(set(pair) != {1, 2} for pair in pairs):
        raise hidden("its footer holds metadata that no writer of releases leaves there")
    _refuse_metadata(metadata, writer, columns)
    root, *described = footer.get(2, [{}])
    if (
        set(root) - {3, 4, 5}
        or root.get(3) not in (None, 0)
        or root.get(4) != _ROOTS[writer]
        or root.get(5) != len(columns)
        or [each.get(4) for each in described] != [name.encode() for name in columns.names]
        or any(set(each) - _COLUMN or each.get(3) not in (0, 1) for each in described)
        or any(not is_described(each, kind) for each, kind in zip(described, columns.types, strict=True))
    ):
        raise hidden("its footer describes other columns")
    orders = footer.get(7)
    if orders is not None and orders != [{1: {}}] * len(columns):
        raise hidden("its footer names an order of values that no writer of releases names")
    return writer


def _refuse_metadata(metadata: dict[bytes, bytes], writer: bytes, columns: pa.Schema) -> None:
    import base64

    import pyarrow as pa

    if not metadata and writer != _SPARK:
        return
    if writer == _ARROW and set(metadata) == {b"ARROW:schema"}:
        stored = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(metadata[b"ARROW:schema"], validate=True)))
        if stored.equals(pa.schema([pa.field(each.name, each.type) for each in stored]), check_metadata=True):
            if stored.names == columns.names:
                return
    if writer == _SPARK and set(metadata) == {_SPARK_VERSION, _SPARK_COLUMNS}:
        listed = json.loads(metadata[_SPARK_COLUMNS])
        fields = [
            {"name": name, "type": str(each["type"]), "nullable": bool(each["nullable"]), "metadata": {}}
            for name, each in zip(columns.names, listed["fields"], strict=True)
        ]
        kinds = {"string", "long", "integer", "double", "float", "boolean", "date", "timestamp", "timestamp_ntz", "short", "byte"}
        again = json.dumps({"type": "struct", "fields": fields}, ensure_ascii=False, separators=(",", ":"))
        if metadata[_SPARK_COLUMNS] == again.encode() and {each["type"] for each in fields} <= kinds:
            if re.fullmatch(rb"[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}", metadata[_SPARK_VERSION]):
                return
    raise hidden("its footer holds metadata that no writer of releases leaves there")


def _start(about: Fields) -> int:
    places = [int(about[number]) for number in (9, 11) if about.get(number)]  # 0 where there is no such page
    return min(places) if places else -1


def _pages(
    content: bytes, start: int, about: Fields, column: pa.ChunkedArray, *, optional: bool
) -> tuple[list[_PlacedPage], int]:
    """The data pages of a column, and the room that all of its pages take unpacked."""
    place = size = values = 0
    pages: list[_PlacedPage] = []
    used: list[tuple[int, int]] = []
    levels: set[int] = set()
    while place < len(content):
        header, body = struct_of(content, place)
        kind = header.get(1)
        if kind not in _PAGES:
            raise hidden("a page of a kind that no writer of releases makes")
        number, fields = _PAGES[kind]
        inner, unpacked, packed = header.get(number), header.get(2), header.get(3)
        if (
            set(header) - {1, 2, 3, 4, number}
            or not isinstance(inner, dict)
            or set(inner) - fields
            or not {inner.get(2)} <= _ENCODINGS
            or type(inner.get(1, 0)) is not int
            or type(unpacked) is not int
            or type(packed) is not int
            or unpacked < 0
            or not 0 <= packed <= len(content) - body
        ):
            raise hidden("a page has a header that no writer of releases gives it")
        page = content[body : body + packed]
        if 4 in header and header[4] % (1 << 32) != zlib.crc32(page):
            raise hidden("a page has another checksum than its bytes")
        refuse_other_frames(page)
        if kind == 2:
            if place:
                raise hidden("a dictionary stands where none belongs")
            _refuse_dictionary(page, unpacked, inner, about, column)
        else:
            pages.append(_PlacedPage(start + place, start + body + packed, values, inner.get(1, 0)))
            values += pages[-1].values
            if inner.get(3) != _RUNS or inner.get(4) not in _LEVELS or pages[-1].values < 1 or values > len(column):
                raise hidden("a page has a header that no writer of releases gives it")
            levels |= {inner[3], inner[4]}
            shown = pages[-1].of(column)
            refuse_statistics(inner.get(5), shown)
            refuse_other_bytes(_unpacked(page, unpacked, about), inner[2], shown, about[1], optional=optional)
        used.append((kind, inner[2]))
        size += body - place + unpacked
        place = body + packed
    if values != about.get(5):
        raise hidden("its pages do not hold one value per row")
    refuse_encodings(about.get(2, []), about.get(13), used, levels)
    return pages, size


def _unpacked(packed: bytes, size: int, about: Fields) -> bytes:
    import pyarrow as pa

    if size > int(about.get(6, 0)):
        raise hidden("a page is larger than its column")
    return pa.Codec("zstd").decompress(packed, size).to_pybytes() if size else b""


def _refuse_dictionary(packed: bytes, size: int, inner: Fields, about: Fields, column: pa.ChunkedArray) -> None:
    """The values of the column in the order in which its rows show them, all or, where a writer gave up, the first ones."""
    values = list(entries_of(_unpacked(packed, size, about), _PHYSICAL[about[1]]))
    shown = stored_in_turn(column, len(values))
    if len(values) != inner.get(1, 0) or values != shown or inner.get(3, False) is not False:
        raise hidden("a dictionary has entries that no row uses, or in another order than its rows")


def _refuse_places(index: Fields, pages: list[_PlacedPage]) -> None:
    """An index of where the pages stand, which must be where they do."""
    expected = [{1: page.start, 2: page.end - page.start, 3: page.first} for page in pages]
    if set(index) - {1, 2} or index.get(1) != expected:
        raise hidden("an index names other places than those of its pages")
