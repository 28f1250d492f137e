"""Excel workbooks (.xlsx): one sheet, column names in its first row, cells with the types they have in the
workbook."""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.core.errors import MissingExtra, ParameterError, SourceError
from sfumato.data.readers.expanding import refuse_expanding_archive
from sfumato.data.readers.read_result import RawTable
from sfumato.data.texts.values import text_of


def read_excel(path: Path, where: str, sheet: str | int | None = None) -> RawTable:
    """Read a sheet by name or position (counted from 1); the first by default."""
    try:
        openpyxl = importlib.import_module("openpyxl")
    except ImportError:
        raise MissingExtra("openpyxl", "formats", "reading Excel files") from None
    refuse_expanding_archive(path, where)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    except Exception:  # openpyxl lets zip, XML and key errors of damaged files through
        raise SourceError(f"{where} is not a complete Excel workbook (.xlsx): it is damaged or of another format") from None
    try:
        chosen = _sheet(book, sheet, where)
        rows, errors = _rows(chosen, where)
        notes = [] if len(book.sheetnames) == 1 else [f"sheet {chosen.title!r} of {len(book.sheetnames)}"]
    finally:
        book.close()
    if errors:
        notes.append(f"{errors:,} cells hold an Excel error: read as missing")
    if not rows:
        raise SourceError(f"{where} is empty: the sheet has no row with column names")
    header, body = rows[0], rows[1:]
    names = tuple("" if name is None else str(text_of(name)) for name in header)
    columns = []
    for position, name in enumerate(names):
        column, note = cells_to_column([row[position] for row in body], name or f"column {position + 1}")
        columns.append(pa.chunked_array([column]))
        notes.extend(note)
    return RawTable(names, tuple(columns), False, tuple(notes), guessed=frozenset(range(len(names))))


def cells_to_column(cells: Sequence[Any], name: str) -> tuple[pa.Array, list[str]]:  # cells, as openpyxl reads them
    """A column of Python values: one type where all agree, text where they do not, and that is said."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int} and kinds:
        try:
            return pa.array(cells, pa.int64()), []
        except (OverflowError, pa.ArrowInvalid):
            return _texts(cells), [f"column '{name}' has integers too large for 64 bits: kept as text"]
    if kinds <= {int, float} and kinds:
        return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64()), []
    if kinds == {bool}:
        return pa.array(cells, pa.bool_()), []
    if kinds and kinds <= {datetime.datetime, datetime.date}:
        return _dates(cells), []
    if kinds <= {str}:
        return pa.array(cells, pa.string()), []
    mixed = ", ".join(sorted({_KINDS.get(kind, kind.__name__) for kind in kinds}))
    note = [f"column '{name}' mixes {mixed}: kept as text"]
    return _texts(cells), note if len(kinds) > 1 else []


_KINDS: dict[type, str] = {
    str: "text",
    int: "numbers",
    float: "numbers",
    bool: "booleans",
    datetime.datetime: "dates",
    datetime.date: "dates",
}


def _texts(cells: Sequence[Any]) -> pa.Array:
    return pa.array([text_of(cell) for cell in cells], pa.string())


def _dates(cells: Sequence[Any]) -> pa.Array:
    def at_midnight(cell: Any) -> bool:
        return not isinstance(cell, datetime.datetime) or (cell.time() == datetime.time(0) and cell.tzinfo is None)

    if all(cell is None or at_midnight(cell) for cell in cells):
        days = [cell.date() if isinstance(cell, datetime.datetime) else cell for cell in cells]
        return pa.array(days, pa.date32())
    moments = [
        cell if cell is None or isinstance(cell, datetime.datetime) else datetime.datetime.combine(cell, datetime.time(0))
        for cell in cells
    ]
    return pa.array(moments, pa.timestamp("us"))


def _sheet(book: Any, named: str | int | None, where: str) -> Any:
    names = [sheet.title for sheet in book.worksheets]
    if not names:
        raise SourceError(f"{where} has no sheet with cells")
    if named is None:
        return book.worksheets[0]
    if isinstance(named, int) and 1 <= named <= len(names):
        return book[names[named - 1]]
    if isinstance(named, str) and named in names:
        return book[named]
    raise ParameterError(f"{where} has no sheet {named!r}; there are: {', '.join(map(repr, names))}")


_ERROR = object()  # stands for a cell with an Excel error until the end of the table is found


def _rows(sheet: Any, where: str) -> tuple[list[list[Any]], int]:
    """All rows at the same width, without the empty ones at the end; cells with an Excel error are
    missing."""
    sheet.reset_dimensions()  # workbooks of other programs often state wrong ones
    rows, errors = [], 0
    try:
        for row in sheet.iter_rows():
            cells = []
            for cell in row:
                wrong = getattr(cell, "data_type", "n") == "e"
                errors += wrong
                cells.append(_ERROR if wrong else cell.value)
            rows.append(cells)
    except Exception:  # see `read_excel`
        raise SourceError(f"{where} is not a complete Excel workbook (.xlsx): a sheet is damaged") from None
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()
    width = max((len(row) for row in rows), default=0)
    rows = [row + [None] * (width - len(row)) for row in rows]
    while width and all(row[width - 1] is None for row in rows):
        width -= 1
    return [[None if cell is _ERROR else cell for cell in row[:width]] for row in rows], errors
