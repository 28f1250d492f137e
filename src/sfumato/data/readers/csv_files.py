"""CSV and TSV files: separator and encoding detected and said, every cell read as text, malformed rows named
by line.

The parser is Arrow's; a cell is missing when it is empty and not quoted, so that the empty text `""` survives
(RFC 4180 knows no difference, we do).
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from sfumato.core.errors import ParameterError, SourceError, notify
from sfumato.data.readers.expanding import read_expanding
from sfumato.data.readers.read_result import NAMED_BY_A_RECORD, RawTable, Unreadable, are_numbers, unique_names

SEPARATORS = (",", ";", "\t", "|")
_SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
_ENCODING_REASONS = {
    "utf-8": "every byte of the file fits",
    "utf-8-sig": "UTF-8 with a byte-order mark",
    "utf-16": "a byte-order mark",
    "utf-16-le": "a zero in nearly every second byte",
    "utf-16-be": "a zero in nearly every second byte",
    "cp1252": "some bytes are no UTF-8, and all are letters of Windows-1252; check a name with accents",
    "latin-1": "some bytes are neither UTF-8 nor Windows-1252; check a name with accents",
}
_SAMPLE_BYTES = 1 << 18
_SAMPLE_LINES = 200
_BLOCK_BYTES = 1 << 24
_LARGEST_BLOCK = (1 << 31) - 1
_LISTED_LINES = 10


@dataclass(frozen=True)
class CsvOptions:
    """How to read a text file; None means detect. `strip` removes spaces around cells. Where what is `unreadable` shall be
    missing, the line of column names decides alone and faults of lines are named without places and numbers."""

    separator: str | None = None
    encoding: str | None = None
    strip: bool = False
    unreadable: Unreadable = "refuse"


def read_csv(path: Path, where: str, options: CsvOptions) -> RawTable:
    """Read a text file; nothing is typed here."""
    raw = _bytes_of(path, where)
    if options.unreadable == "refuse":
        return _read(raw, path, where, options)
    try:
        return _read(raw, path, where, options)
    except SourceError:
        encoding = options.encoding or "UTF-8"
        raise SourceError(
            f"{where} is not a well-formed text file in {encoding}. Name another encoding if it has one (--encoding NAME, "
            "encoding= in Python); its owner learns more from: sfumato inspect"
        ) from None


def _read(raw: bytes, path: Path, where: str, options: CsvOptions) -> RawTable:
    header_only = options.unreadable == "missing"
    encoding = options.encoding or _encoding_of(raw)
    if header_only and options.encoding is None and encoding not in ("utf-8", "utf-8-sig", "utf-16"):
        raise SourceError(f"{where} is not UTF-8")
    content = _as_utf8(raw, encoding, where)
    if (options.encoding or encoding == "utf-8-sig") and not _is_text_in(content, "utf-8"):  # said, not found out
        raise SourceError(f"{where} is not text in the encoding {encoding}: name another one, or convert the file")
    sample = content[:_SAMPLE_BYTES].decode("utf-8", errors="ignore")
    shown = _first_line(sample) if header_only else sample
    separator = options.separator or detect_separator(shown, prefer=_preferred(path))
    header, blank_lines, empty = _header_of(content, sample, separator, where)
    names, _ = unique_names(header)
    form = {"separator": separator, "encoding": encoding}
    notes = [f"separator {separator_name(separator)}, encoding {encoding}"]
    if are_numbers(names):
        notes.append(NAMED_BY_A_RECORD)
        notify(f"{where}: {NAMED_BY_A_RECORD}; it is read as names, and they are published")
    if empty:
        none = pa.chunked_array([pa.array([], pa.string())])
        return RawTable(tuple(header), tuple(none for _ in names), True, tuple(notes), form=form)
    _refuse_open_quote(content, separator, where)
    table = _parse(content, names, separator, blank_lines, where)
    columns = [_cells(table.column(i), options) for i in range(table.num_columns)]
    return RawTable(tuple(header), tuple(columns), True, tuple(notes), form=form)


@dataclass(frozen=True)
class CsvNames:
    """What the line of column names of a text file says: a name for each column, the separator, and how many blank lines stand
    before it."""

    names: tuple[str, ...]
    separator: str
    blank_lines: int


def names_of(path: Path, where: str, separator: str | None, encoding: str) -> CsvNames:
    """The line of column names of a file that stays where it is; nothing behind that line has a say."""
    try:
        with path.open("rb") as file:
            content = file.read(_SAMPLE_BYTES + 1)
    except OSError as error:
        raise SourceError(f"{where} cannot be read: {type(error).__name__}") from None
    if b"\0" in content:
        raise SourceError(f"{where} is not a text file: it contains zero bytes")
    content = content.removeprefix(codecs.BOM_UTF8)
    if not content or content.isspace():
        raise SourceError(f"{where} is empty: there is not even a line with column names")
    sample = content[:_SAMPLE_BYTES].decode(encoding, errors="replace")
    chosen = separator or detect_separator(_first_line(sample), prefer=_preferred(path))
    header, blank_lines, _ = _header_of(content, sample, chosen, where)
    if any("\ufffd" in name for name in header):
        raise SourceError(f"{where}: its column names are not text in the encoding {encoding}: name another one (--encoding)")
    return CsvNames(unique_names(header)[0], chosen, blank_lines)


def _first_line(sample: str) -> str:
    return next((line for line in sample.splitlines() if line.strip(" ")), "")


def _preferred(path: Path) -> str:
    return "\t" if ".tsv" in path.name.lower() else ","


def separator_name(separator: str | None) -> str:
    """The word for a separator; for one that is not stated that of none."""
    return "" if separator is None else _SEPARATOR_NAMES.get(separator, repr(separator))


def detect_separator(sample: str, prefer: str = ",") -> str:
    """The separator whose number per line, outside quotes, is above zero and most constant over the first
    lines."""
    lines = re.sub(r'"(?:[^"]|"")*"', "", sample).splitlines()
    lines = [line for line in lines[:_SAMPLE_LINES] if line.strip(" ")]
    if len(lines) > 2 and len(sample) >= _SAMPLE_BYTES // 2:
        lines = lines[:-1]  # the sample may end within a line
    best, best_score = prefer, (0.0, 0, 0)
    for separator in SEPARATORS:
        counts = [line.count(separator) for line in lines]
        if not counts or counts[0] == 0:
            continue
        same = sum(count == counts[0] for count in counts) / len(counts)
        score = (same, counts[0], int(separator == prefer))
        if score > best_score:
            best, best_score = separator, score
    return best


def form_evidence(path: Path, where: str, separator: str, encoding: str) -> dict[str, str]:
    """What speaks for a separator and an encoding, and what against; counts of lines alone."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            sample = stream.read(_SAMPLE_BYTES).decode(encoding, errors="ignore")
    except (OSError, pa.ArrowInvalid):
        raise SourceError(f"{where} cannot be read: the file is damaged or not readable") from None
    lines = [line for line in re.sub(r'"(?:[^"]|"")*"', "", sample).splitlines()[:_SAMPLE_LINES] if line.strip(" ")]
    reasons = {}
    for each in dict.fromkeys((separator, *SEPARATORS)):
        counts = [line.count(each) for line in lines]
        if counts and counts[0]:
            same = sum(count == counts[0] for count in counts)
            reasons[each] = f"{same:,} of the first {len(lines):,} lines have {counts[0]:,} of it, as the first line has"
    against = [f"{separator_name(each)}: {reason}" for each, reason in reasons.items() if each != separator]
    chosen = f"{separator_name(separator)}: {reasons.get(separator, 'there is one column')}"
    return {"separator": f"{chosen}; against it: {'; '.join(against) or 'none'}", "encoding": _ENCODING_REASONS.get(encoding, "")}


def _bytes_of(path: Path, where: str) -> bytes:
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            content = read_expanding(stream, path.stat().st_size, where)
    except (OSError, pa.ArrowInvalid):
        raise SourceError(f"{where} cannot be read: the file is damaged or not readable") from None
    if not content or content.isspace():
        raise SourceError(f"{where} is empty: there is not even a line with column names")
    return content


def _encoding_of(raw: bytes) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if raw.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    if 0 in raw[:4096]:  # Latin text in UTF-16 without a byte-order mark has a zero in nearly every other place
        even, odd = raw[:4096:2], raw[1:4096:2]
        if odd.count(0) * 10 > len(odd) * 8 and 0 not in even:
            return "utf-16-le"
        if even.count(0) * 10 > len(even) * 8 and 0 not in odd:
            return "utf-16-be"
    return next((encoding for encoding in ("utf-8", "cp1252") if _is_text_in(raw, encoding)), "latin-1")


def _is_text_in(raw: bytes, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for start in range(0, len(raw), _BLOCK_BYTES):  # in blocks, so that no second copy of the file is made
            decoder.decode(raw[start : start + _BLOCK_BYTES], final=start + _BLOCK_BYTES >= len(raw))
    except UnicodeDecodeError:
        return False
    return True


def _as_utf8(raw: bytes, encoding: str, where: str) -> bytes:
    try:
        if encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig"):
            content = raw.removeprefix(codecs.BOM_UTF8)
        else:
            content = raw.decode(encoding).encode("utf-8")
        content[:_SAMPLE_BYTES].decode("utf-8", errors="ignore")
    except LookupError:
        raise ParameterError(f"there is no encoding called {encoding!r}") from None
    except (UnicodeDecodeError, UnicodeEncodeError):
        raise SourceError(f"{where} is not text in the encoding {encoding}: name another one, or convert the file") from None
    if b"\0" in content:
        raise SourceError(f"{where} is not a text file: it contains zero bytes")
    if not content or content.isspace():
        raise SourceError(f"{where} is empty: there is not even a line with column names")
    return content


def _header_of(content: bytes, sample: str, separator: str, where: str) -> tuple[list[str], int, bool]:
    """The column names, how many blank lines stand before them, and whether nothing follows."""
    blank = re.match(r"(?:[ \t]*(?:\r\n|\r|\n))*", sample) if separator != "\t" else re.match(r"(?:\r\n|\r|\n)*", sample)
    start = blank.end() if blank else 0
    lines = len(re.findall(r"\r\n|\r|\n", sample[:start]))
    source = io.StringIO(sample[start:], newline="")
    reader = csv.reader(_Lines(source), delimiter=separator)
    try:
        header = next(reader)
    except (StopIteration, csv.Error):
        raise SourceError(f"{where} has no readable line with column names") from None
    if len(content) > _SAMPLE_BYTES and source.tell() == len(sample) - start:
        raise SourceError(f"{where} has no line of column names within its first {_SAMPLE_BYTES >> 10} KiB") from None
    consumed = len(sample[: start + source.tell()].encode())
    return header, lines, consumed >= len(content)


class _Lines:
    """Lines ended by \\r\\n, \\n or a lone \\r, one at a time, so that the position after the header is
    known."""

    def __init__(self, source: io.StringIO) -> None:
        self._source = source

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._source.readline()
        if not line:
            raise StopIteration
        return line


def _refuse_open_quote(content: bytes, separator: str, where: str) -> None:
    """A quote that is never closed would silently swallow the rest of the file."""
    if content.count(b'"') % 2 == 0:
        return
    reader = csv.reader(io.StringIO(content.decode("utf-8", errors="replace"), newline=""), delimiter=separator, strict=True)
    line = 1
    try:
        for _ in reader:
            line = reader.line_num + 1
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            raise SourceError(f"{where}: a quoted cell that starts in line {line:,} is never closed") from None


def _parse(content: bytes, names: tuple[str, ...], separator: str, blank_lines: int, where: str) -> pa.Table:
    wrong: list[tuple[int | None, int]] = []
    if content.endswith(separator.encode()):  # Arrow takes an empty last cell for a quoted one where the one before it is
        content += b"\n"

    def remember(row: pa_csv.InvalidRow) -> str:
        wrong.append((row.number, row.actual_columns))
        return "skip"

    def attempt(threads: bool, block: int, on_invalid: Callable[[pa_csv.InvalidRow], str] | None) -> pa.Table:
        return pa_csv.read_csv(
            pa.BufferReader(content),
            read_options=pa_csv.ReadOptions(
                column_names=list(names),
                skip_rows=blank_lines,
                skip_rows_after_names=1,
                use_threads=threads,
                block_size=block,
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=separator,
                newlines_in_values=True,
                ignore_empty_lines=len(names) > 1,  # in a single column an empty line is a missing value
                invalid_row_handler=on_invalid,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    whole_file = min(len(content) + 1, _LARGEST_BLOCK)
    try:
        try:
            # Arrow's threads may not hold a Python function: one that lets go of it while Python ends aborts the process.
            table = attempt(True, _BLOCK_BYTES, None)
        except pa.ArrowInvalid:
            # A record longer than a block, or lines of another length: only a single thread knows their numbers.
            table = attempt(False, whole_file, remember)
    except pa.ArrowInvalid:
        raise SourceError(f"{where} cannot be read as text separated by {separator!r}, or is not UTF-8 throughout") from None
    shown = [(None if number is None else number + blank_lines, cells) for number, cells in wrong]
    refuse_ragged(shown, len(wrong), len(names), where)
    return table


def refuse_ragged(wrong: Sequence[tuple[int | None, int]], count: int, expected: int, where: str) -> None:
    """Refuse a text file of which so many lines have another length; `wrong` has number and cells of the first of them."""
    if not count:
        return
    shown = [f"{number:,} ({cells})" for number, cells in wrong[:_LISTED_LINES] if number is not None]
    more = " …" if count > _LISTED_LINES else ""
    raise SourceError(
        f"{where}: {count:,} {'line does' if count == 1 else 'lines do'} not have {expected} "
        f"cell{'s' * (expected != 1)} like the line of column names; "
        f"line (cells): {', '.join(shown)}{more}. "
        "Quote cells that contain the separator, or name another separator."
    )


def _cells(column: pa.ChunkedArray, options: CsvOptions) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return pc.utf8_trim_whitespace(column) if options.strip else column
