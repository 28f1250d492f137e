"""Files of statistical packages: SPSS (.sav, .zsav, .por), Stata (.dta), SAS (.sas7bdat, .xpt).

Values stay codes; variable labels, value labels and user-missing codes go to the column's description. An
empty text and a user-missing code are missing values, as they are in those packages.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.core.errors import MissingExtra, SourceError
from sfumato.data.readers.excel import cells_to_column
from sfumato.data.readers.read_result import RawTable
from sfumato.data.schema import Column
from sfumato.data.texts.values import text_of

#: By file ending: the reader's name, the package as users call it, whether it delivers user-missing codes.
READERS: dict[str, tuple[str, str, bool]] = {
    ".sav": ("read_sav", "SPSS", True),
    ".zsav": ("read_sav", "SPSS", True),
    ".por": ("read_por", "SPSS", False),
    ".dta": ("read_dta", "Stata", True),
    ".sas7bdat": ("read_sas7bdat", "SAS", True),
    ".xpt": ("read_xport", "SAS", False),
}


def read_statistics(path: Path, where: str, ending: str) -> RawTable:
    """Read a file of a statistical package."""
    reader, package, knows_missing = READERS[ending]
    try:
        pyreadstat = importlib.import_module("pyreadstat")
    except ImportError:
        raise MissingExtra("pyreadstat", "formats", f"reading {package} files") from None
    options = {"user_missing": True} if knows_missing else {}
    try:
        values, meta = getattr(pyreadstat, reader)(str(path), output_format="dict", **options)
    except Exception:  # the reader raises its own error, and several of Python's, for damaged files
        raise SourceError(f"{where} is not a complete {package} file: it is damaged, cut short or of another format") from None
    names = tuple(meta.column_names)
    columns, described, notes = [], {}, [f"{package} file"]
    for position, name in enumerate(names):
        cells, codes = _without_missing(
            list(values[name]), meta.missing_ranges.get(name, []), meta.missing_user_values.get(name, [])
        )
        column, note = cells_to_column(_whole_numbers(cells), name)
        columns.append(pa.chunked_array([column]))
        notes.extend(note)
        described[position] = Column(
            label=meta.column_names_to_labels.get(name) or None,
            labels=_labels(meta.variable_value_labels.get(name)),
            missing=codes,
        )
        if codes:
            notes.append(f"column '{name}': {len(codes)} user-missing codes are read as missing")
    return RawTable(names, tuple(columns), False, tuple(notes), described)


def _without_missing(
    cells: list[Any], ranges: Sequence[Mapping[str, Any]], user: Sequence[str]
) -> tuple[list[Any], tuple[str, ...]]:
    """User-missing values become None; the codes are those declared singly and those of declared ranges that
    occur."""
    codes: dict[str, None] = {}
    for extent in ranges:
        if extent["lo"] == extent["hi"]:
            codes[str(text_of(extent["lo"]))] = None
    for code in user:
        codes[str(code)] = None
    kept: list[Any] = []
    for cell in cells:
        if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
            kept.append(None)
        elif _within(cell, ranges) or (isinstance(cell, str) and cell in user):
            codes[str(text_of(cell))] = None
            kept.append(None)
        else:
            kept.append(cell)
    return kept, tuple(codes)


def _within(cell: Any, ranges: Sequence[Mapping[str, Any]]) -> bool:
    for extent in ranges:
        try:
            if extent["lo"] <= cell <= extent["hi"]:
                return True
        except TypeError:  # a numeric range and a text cell
            continue
    return False


def _whole_numbers(cells: list[Any]) -> list[Any]:
    """These packages store every number as a float; columns of whole numbers become integers."""
    if all(cell is None or (isinstance(cell, (int, float)) and float(cell).is_integer() and abs(cell) < 2**53) for cell in cells):
        return [None if cell is None else int(cell) for cell in cells]
    return cells


def _labels(labels: Mapping[Any, str] | None) -> dict[str, str] | None:
    if not labels:
        return None
    return {str(text_of(value)): label for value, label in labels.items()}
