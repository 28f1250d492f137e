"""Read a table from a file: CSV, TSV, Parquet, Arrow, Excel, SPSS, Stata, SAS.

The format follows from the ending of the name, or from the first bytes where the ending says nothing.
Columns of Parquet and Arrow files carry their types; text columns of Parquet are read as dictionaries, which keeps a table about
people small in memory. Whatever is wrong with a file becomes one `SourceError` that names places (lines, columns), never
contents.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.core.errors import SourceError, forgetting
from sfumato.core.files import open_plain
from sfumato.core.plain_data import Plain
from sfumato.data.readers.csv_files import CsvOptions, form_evidence, read_csv
from sfumato.data.readers.excel import read_excel
from sfumato.data.readers.frames import from_frame, is_frame
from sfumato.data.readers.read_result import RawTable, ReadResult, Unreadable, finish
from sfumato.data.readers.statistical_packages import READERS as STATISTICS
from sfumato.data.readers.statistical_packages import read_statistics
from sfumato.data.schema import Schema
from sfumato.data.texts.reading import PLAIN, Reading, stated_options

__all__ = ["ENDINGS", "ReadResult", "from_frame", "is_frame", "read_file"]

_TEXT = (".csv", ".tsv", ".txt", ".tab", ".data", ".dat")
_COMPRESSED = (".gz", ".bz2", ".zst")
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc", ".arrows")
_EXCEL = (".xlsx", ".xlsm")
_DATABASES = (".duckdb", ".ddb", ".db")
#: First bytes of files that hold no text: Parquet, Arrow, archives, old Office files.
_NO_TEXT = (b"PAR1", b"ARROW1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0")

#: Endings of the names of files that `read_file` understands.
ENDINGS = (*_TEXT, *_PARQUET, *_ARROW, *_EXCEL, *STATISTICS)


@forgetting()
def read_file(
    path: str | Path,
    schema: Schema | None = None,
    *,
    strip: bool = False,
    sheet: str | int | None = None,
    as_text: bool = False,
    unreadable: Unreadable = "refuse",
    **how: object,  # keys of a `Reading`
) -> ReadResult:
    """Read a file into an Arrow table; the schema may describe columns that the file does not have.

    Types come from the schema where it declares them, from the file where it has them, and are inferred
    otherwise; with `as_text` every cell is kept as the text it is, which is how a written release is read
    back. `separator`, `encoding`, `decimal`, `thousands`, `date_format` and `missing` say how texts are read, over what the
    schema says under `read`; `strip` removes spaces around the cells of text files, `sheet` (name or number) is for Excel.
    What is `unreadable` as its declared type is refused with all such faults, or missing; in that case a text file is in
    UTF-8, or begins with a byte-order mark.
    """
    file = Path(path)
    where = f"'{path}'"
    reading = PLAIN if schema is None else schema.read
    if any(value is not None for value in how.values()):
        reading = reading.overridden(stated_options(how))
    if reading is not PLAIN:
        schema = (Schema() if schema is None else schema).read_as(reading)
    first_bytes = _probe(file, where)
    ending = _ending(file)
    if ending in STATISTICS:
        raw = read_statistics(file, where, ending)
    elif ending in _EXCEL:
        raw = read_excel(file, where, sheet)
    else:
        raw = _columnar(file, where, ending, first_bytes) or read_csv(
            file, where, CsvOptions(reading.separator, reading.encoding, strip, unreadable)
        )
    return finish(raw, where, schema, as_text=as_text, unreadable=unreadable)


def is_text_file(path: str | Path) -> bool:
    """Whether a file is read as text, by its ending and its first bytes; False where there is none."""
    file = Path(path)
    ending = _ending(file)
    if "://" in str(path) or ending in (*STATISTICS, *_EXCEL, *_PARQUET, *_ARROW, *_DATABASES):
        return False
    try:
        return file.is_file() and not _probe(file, f"'{path}'").startswith(_NO_TEXT)
    except SourceError:
        return False


def form_reasons(path: str | Path, reading: Reading, stated: Plain) -> dict[str, str]:
    """Why a text file was read with its separator and encoding."""
    said = {name: "stated as an option" for name in ("separator", "encoding") if name in stated}
    return {**form_evidence(Path(path), f"'{path}'", reading.separator or ",", reading.encoding or "utf-8"), **said}


def one_record_a_line(path: str | Path, records: int) -> bool:
    """Whether the text file has a line of names and then a line for each record: no empty lines, no line breaks within cells."""
    if str(path).lower().endswith(_COMPRESSED):
        return False
    ends, last = 0, b""
    try:
        with open_plain(path) as file:
            while block := file.read(1 << 20):
                if b"\0" in block:  # UTF-16
                    return False
                ends, last = ends + block.count(b"\n"), block[-1:]
    except OSError:
        return False
    return ends == records + (last == b"\n")


@forgetting()
def read_parquet_bytes(content: bytes, schema: Schema | None = None) -> ReadResult:
    """Read what would be a Parquet file from memory, as `read_file` reads the file."""
    return finish(_read_parquet(content, "the table"), "the table", schema)


def parquet_names(source: Path | bytes) -> list[str]:
    """The names of the columns of a Parquet file, or its content."""
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(_opened(source)).names)
    except (OSError, UnicodeDecodeError, pa.ArrowException):
        raise _damaged(_place(source)) from None


def parquet_columns(source: Path | bytes, schema: Schema | None = None) -> Iterator[pa.Table]:
    """A Parquet file, or its content, as `read_file` reads it, but one column at a time, each as a table of its own."""
    where = _place(source)
    for name in parquet_names(source):
        yield finish(_read_parquet(source, where, [name]), where, schema).table


def _place(source: Path | bytes) -> str:
    return "the table" if isinstance(source, bytes) else f"'{source}'"


def _columnar(file: Path, where: str, ending: str, first_bytes: bytes) -> RawTable | None:
    """The table in a Parquet or Arrow file; None where the file is read as text."""
    if ending in _PARQUET or (ending not in (*_ARROW, *_TEXT) and first_bytes.startswith(b"PAR1")):
        return _read_parquet(file, where)
    if ending in _ARROW or (ending not in _TEXT and first_bytes.startswith(b"ARROW1")):
        return _read_arrow(file, where)
    if ending not in _TEXT and first_bytes.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise SourceError(f"{where} is an archive or an old Office file; save the table as .xlsx or .csv")
    return None


def _ending(file: Path) -> str:
    endings = [ending.lower() for ending in file.suffixes]
    if endings and endings[-1] in _COMPRESSED:
        endings.pop()
    return endings[-1] if endings else ""


def _probe(file: Path, where: str) -> bytes:
    """The first bytes of the file, or the reason why there are none."""
    try:
        if file.is_dir():
            raise SourceError(f"{where} is a folder; name a file in it")
        with open_plain(file) as stream:
            head = stream.read(8)
    except FileNotFoundError:
        raise SourceError(f"there is no file {where}") from None
    except PermissionError:
        raise SourceError(f"{where} may not be read: permission denied") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"{where} cannot be read: {type(error).__name__}") from None
    if not head:
        raise SourceError(f"{where} is empty")
    return head


def _read_parquet(source: Path | bytes, where: str, chosen: list[str] | None = None) -> RawTable:
    """Read a Parquet file, or its content, or some columns of it; an index that pandas stored as a column is left out."""
    import pyarrow.parquet as pq

    try:
        fields = pq.read_schema(_opened(source))
        texts = [field.name for field in fields if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
        table = pq.ParquetFile(_opened(source), read_dictionary=texts).read(columns=chosen)
        table.validate(full=True)
        return RawTable.of(table)
    except (OSError, UnicodeDecodeError, pa.ArrowException):
        raise _damaged(where) from None


def _damaged(where: str) -> SourceError:
    return SourceError(f"{where} is not a complete Parquet file: it is damaged, cut short or of another format")


def _opened(source: Path | bytes) -> Any:
    return pa.BufferReader(source) if isinstance(source, bytes) else source


def _read_arrow(path: Path, where: str) -> RawTable:
    """Read an Arrow IPC file (Feather version 2) or stream."""
    try:
        with pa.OSFile(str(path)) as source:
            try:
                table = pa.ipc.open_file(source).read_all()
            except pa.ArrowInvalid:
                source.seek(0)
                table = pa.ipc.open_stream(source).read_all()
        table.validate(full=True)
        return RawTable.of(table)
    except (OSError, UnicodeDecodeError, pa.ArrowException):
        raise SourceError(f"{where} is not a complete Arrow file: it is damaged, cut short or of another format") from None
