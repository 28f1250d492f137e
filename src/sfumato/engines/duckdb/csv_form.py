"""The form of a text file that DuckDB reads where it lies: stated in full, so that nothing is guessed from the records.

Names and separator come from the line of names alone, as the reader of this process has them. One pass over the bytes, before
anything else, finds what DuckDB would read as another value than this process, or leave out; such a file is refused.
"""

from __future__ import annotations

import codecs
import mmap
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from sfumato.core.errors import SourceError
from sfumato.data.readers.csv_files import names_of, refuse_ragged
from sfumato.data.texts.reading import Reading
from sfumato.engines.duckdb.csv_lengths import MOST_NAMED, LineLengths
from sfumato.engines.duckdb.written_texts import encoding_in_place

if TYPE_CHECKING:
    from sfumato.engines.sql.compile import PhysicalTable

_BLOCK_BYTES = 1 << 22
#: The longest line, and how much DuckDB reads at once; it leaves out longer lines where it reads leniently.
LARGEST_LINE: Final = 1 << 24
_BUFFER_BYTES: Final = 1 << 25
_QUOTE = ord('"')
_INTO_MEMORY = "Leave engine out to read it into memory, or write the file again"


def csv_table(path: Path, reading: Reading) -> PhysicalTable:
    """A text file as DuckDB is to read it, its columns under plain names; `SourceError` where it would read other rows."""
    from sfumato.engines.sql.compile import PhysicalTable

    where = f"'{path}'"
    encoding = encoding_in_place(reading)
    names = names_of(path, where, reading.separator, encoding or "utf-8")
    refuse_other_rows(path, where, names.separator, len(names.names), latin=encoding is not None)
    physical = tuple(f"c{place}" for place in range(len(names.names)))
    options: list[tuple[str, str | bool | int | tuple[str, ...]]] = [
        ("auto_detect", False),
        ("columns", physical),
        ("delim", names.separator),
        ("quote", '"'),
        ("escape", '"'),
        ("comment", ""),
        ("header", True),
        ("skip", names.blank_lines),
        ("nullstr", ""),
        ("allow_quoted_nulls", False),
        ("compression", "none"),
        ("hive_partitioning", False),
        ("max_line_size", LARGEST_LINE),
        ("buffer_size", _BUFFER_BYTES),
    ]
    if encoding is not None:
        options.append(("encoding", encoding))
    columns = dict(zip(names.names, physical, strict=True))
    return PhysicalTable((str(path.resolve()),), "read_csv", tuple(options), columns)


def refuse_other_rows(path: Path, where: str, separator: str, columns: int, *, latin: bool = False) -> None:
    """Refuse a file that DuckDB reads in another way than this process does, or not at all."""
    glance, lengths = _Glance(separator, latin), LineLengths(separator, columns)
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                if (fault := glance.fault(block)) is not None:
                    raise SourceError(f"{where} {fault}")
                lengths.look(block)
            lengths.finish()
            fault = _closely(file.fileno(), separator) if glance.finished() else None
            count, longer = lengths.count, lengths.faulty
            if fault is None and lengths.in_doubt:
                count, longer = _longer(file.fileno(), separator, columns)
    except OSError as error:
        raise SourceError(f"{where} cannot be read: {type(error).__name__}") from None
    if fault is not None:
        raise SourceError(f"{where} {fault}. {_INTO_MEMORY}")
    refuse_ragged(longer, count, columns, where)


class _Glance:
    """What the bytes of a file say at a glance: a fault, or whether its cells are to be looked at one by one."""

    def __init__(self, separator: str, latin: bool) -> None:
        self._latin = latin
        self._blank = separator != " "
        self._ends = np.zeros(256, dtype=np.bool_)
        self._ends[[ord(separator), 10, 13]] = True
        self._before = b"\n\n"  # the last bytes of the block before
        self._line = self._quotes = self._returns = self._feeds = self._both = 0
        self._odd = False

    def fault(self, block: bytes) -> str | None:
        """Why DuckDB cannot read this block; None where nothing is known against it."""
        if b"\0" in block:
            return "is not a text file: it contains zero bytes"
        if self._latin and _of_latin_controls(block):
            return "is not text in Latin-1: it has bytes that Latin-1 leaves empty, as Windows-1252 does not; state its encoding"
        ends = [place for place in (block.find(b"\n"), block.find(b"\r")) if place >= 0]
        longest = self._line + (min(ends) if ends else len(block))
        if longest > LARGEST_LINE:
            return f"has a line of more than {LARGEST_LINE >> 20} MiB, which DuckDB does not read. {_INTO_MEMORY}"
        self._line = len(block) - 1 - max(block.rfind(b"\n"), block.rfind(b"\r")) if ends else longest
        self._returns += block.count(b"\r")
        self._feeds += block.count(b"\n")
        self._both += (self._before[-1:] + block).count(b"\r\n")
        if b'"' in block:
            self._quotes += block.count(b'"')
            self._odd = self._odd or self._has_odd_quotes(self._before + block)
        elif self._before.endswith(b'"'):
            self._odd = self._odd or self._has_odd_quotes(self._before + block[:2])
        self._before = (self._before + block[-4:])[-4:]
        return None

    def finished(self) -> bool:
        """Whether the cells are to be looked at."""
        one_kind = self._returns == 0 or self._feeds == 0 or self._returns == self._feeds == self._both
        return self._odd or self._quotes % 2 == 1 or not one_kind

    def _has_odd_quotes(self, content: bytes) -> bool:
        """Whether some quote neither opens nor closes a cell, nor is one of two that stand for one."""
        values = np.frombuffer(content + b"\n\n", dtype=np.uint8)
        places = np.flatnonzero(values[:-2] == _QUOTE)
        places = places[places > 0]
        before, after, second = values[places - 1], values[places + 1], values[places + 2]
        begins, ends = self._ends[before], self._ends[after]
        twice_before, twice = before == _QUOTE, after == _QUOTE
        odd = ~begins & ~ends & ~twice_before & ~twice
        odd |= begins & twice & ~self._ends[second] & (second != _QUOTE)
        if self._blank:
            odd |= ((before == 32) & twice) | ((after == 32) & twice_before)
        return bool(odd.any())


def _of_latin_controls(block: bytes) -> bool:
    values = np.frombuffer(block, dtype=np.uint8)
    return bool(((values >= 0x80) & (values < 0xA0)).any())


def _closely(file: int, separator: str) -> str | None:
    """What DuckDB reads otherwise in some cell, and None where nothing is."""
    with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as content:
        ends = set()
        for cell in _cells(separator).finditer(content, len(codecs.BOM_UTF8) if content[:3] == codecs.BOM_UTF8 else 0):
            kind = (cell.lastgroup or "").removeprefix("quoted_")
            if kind in _FAULTS:
                return _FAULTS[kind]
            ends.add(kind)
    ends -= {"next", "last"}
    return "ends its lines in several ways, which DuckDB does not read" if len(ends) > 1 else None


_FAULTS = {
    "open": "has a quoted cell that is never closed",
    "behind": "has characters behind the closing quote of a cell, which DuckDB reads otherwise",
    "ahead": "has blanks before the opening quote of a cell, which DuckDB leaves out",
}


def _longer(file: int, separator: str, columns: int) -> tuple[int, list[tuple[int | None, int]]]:
    """How many records end with a separator too many, and the first of them: number and cells."""
    record, cells, begins, count = 1, 0, 0, 0
    longer: list[tuple[int | None, int]] = []
    with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as content:
        for cell in _cells(separator).finditer(content, len(codecs.BOM_UTF8) if content[:3] == codecs.BOM_UTF8 else 0):
            kind, begins, cells = (cell.lastgroup or "").removeprefix("quoted_"), cell.start(), cells + 1
            if kind == "next":
                continue
            if cells > columns and content[begins : begins + 1] in (b"\r", b"\n", b""):
                count += 1
                longer += [(record, cells)] if len(longer) < MOST_NAMED else []
            record, cells = record + 1, 0
    return count, longer


def _cells(separator: str) -> re.Pattern[bytes]:
    """Cell by cell, with what follows as the name of the last group."""
    mark = re.escape(separator).encode()
    end = rb"(?:(?P<next>" + mark + rb")|(?P<both>\r\n)|(?P<return>\r)|(?P<feed>\n)|(?P<last>\Z))"
    quoted = rb'"(?:[^"]++|"")*+(?:"(?:' + end.replace(b"?P<", b"?P<quoted_") + rb"|(?P<behind>))|(?P<open>))"
    ahead = b"" if separator == " " else rb'|(?P<ahead> +")'
    plain = rb"[^" + mark + rb"\r\n]*+" + end
    return re.compile(rb"(?:" + quoted + ahead + rb"|" + plain + rb")")
