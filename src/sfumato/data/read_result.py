"""What a reader returns: an Arrow table in known types, notes on what was detected, and what the file says of
its columns.

Format readers produce a `RawTable`; `finish` names its columns once, applies missing codes and types, and
reports every fault at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import SourceError, all_at_once
from sfumato.data.column_types import CodedText, TypedColumn, convert, infer, numbers_at_once
from sfumato.data.decimals import exact_text
from sfumato.data.native_types import (
    is_nested,
    normalise,
    type_depends_on_values,
    type_name,
    within_calendar,
    years_are_printable,
)
from sfumato.data.schema import Column, Schema

_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*%?\s*(\.\d+)?")

#: What to do about a value that cannot be read as the type that its column is declared to have.
Unreadable = Literal["refuse", "missing"]


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns as a format delivers them.

    `textual` says that the format has no types (CSV), so that they are inferred; `guessed` names, by position, columns
    of other formats whose type follows from their cells (Excel, Python objects in a frame). `described` carries labels
    and missing codes that the file itself declares, by position.
    """

    names: tuple[str, ...]
    columns: tuple[pa.ChunkedArray, ...] = field(repr=False)
    textual: bool = False
    notes: tuple[str, ...] = ()
    described: Mapping[int, Column] = field(default_factory=dict, repr=False)
    guessed: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class ReadResult:
    """A table that was read.

    `notes` say what was detected and decided, without values of records; `columns` describes every column:
    its type, and labels, value labels and missing codes where the file or the schema has them. `inferred` are the columns
    whose type nobody declared and that another record could have changed. `exact` has the decimals and integers that
    became floating-point numbers, as they were, and None for texts that did.
    """

    table: pa.Table = field(repr=False)
    notes: tuple[str, ...] = ()
    columns: dict[str, Column] = field(default_factory=dict, repr=False)
    inferred: frozenset[str] = frozenset()
    exact: dict[str, pa.ChunkedArray | None] = field(default_factory=dict, repr=False)


#: What is said of a file without a line of names.
NAMED_BY_A_RECORD = "the first line, which should hold the names of the columns, looks like a record of its own"


def are_numbers(names: Sequence[str]) -> bool:
    """Whether most names are numbers, as where a file has no line of names."""
    return 2 * sum(_NUMBER.fullmatch(name) is not None for name in names) > len(names)


def unique_names(given: Sequence[str | None]) -> tuple[tuple[str, ...], list[str]]:
    """Every column gets a name of its own: a repeated one becomes `name.2`, an empty one `column 3`."""
    taken = {name for name in given if name}
    used: set[str] = set()
    names, renamed = [], []
    for position, name in enumerate(given, 1):
        chosen = name or f"column {position}"
        number = 2
        while chosen in used or (chosen != name and chosen in taken):
            chosen = f"{name or f'column {position}'}.{number}"
            number += 1
        if chosen != name:
            renamed.append(f"column {position} {_fault_of_name(name)}: read as {chosen!r}")
        used.add(chosen)
        names.append(chosen)
    return tuple(names), renamed


def _fault_of_name(name: str | None) -> str:
    return f"repeats the name {name!r}" if name else "has no name"


def finish(
    raw: RawTable, where: str, schema: Schema | None = None, *, as_text: bool = False, unreadable: Unreadable = "refuse"
) -> ReadResult:
    """Names, missing codes and types; conversion faults of all columns are reported together, counted,
    without values, unless what is `unreadable` shall be missing."""
    names, notes = unique_names(raw.names)
    nested = [
        f"column '{name}' has the nested type {column.type}"
        for name, column in zip(names, raw.columns, strict=True)
        if is_nested(column.type)
    ]
    all_at_once(SourceError, f"{where}: flatten nested columns before reading", nested)
    described = {name: raw.described[i] for i, name in enumerate(names) if i in raw.described}
    declared = dict(schema.columns) if schema is not None else {}
    arrays, columns, faults, inferred = [], {}, [], set()
    exact: dict[str, pa.ChunkedArray | None] = {}
    for place, (name, column) in enumerate(zip(names, raw.columns, strict=True)):
        if not _is_declared(declared.get(name)) and not as_text:
            # A unit is only compared, and wide whole numbers of a unit keep all their digits whatever type they get.
            unit = name in declared and declared[name].role == "unit"
            follows_cells = raw.textual or place in raw.guessed or (type_depends_on_values(column.type) and not unit)
            inferred.update([name] if follows_cells else [])
        typed = _typed(name, column, raw.textual, declared.get(name), as_text, lenient=unreadable == "missing")
        arrays.append(typed.array)
        exact.update(_before_rounding(name, column, typed.array))
        notes.extend(typed.notes)
        columns[name] = _description(declared.get(name), described.get(name), typed)
        if typed.fault:
            faults.append(typed.fault)
    all_at_once(
        SourceError,
        f"{where} has values that do not fit their type (correct the type, or list the code under the column, as missing)",
        faults,
    )
    return ReadResult(
        pa.table(dict(zip(names, arrays, strict=True))) if names else pa.table({}),
        (*raw.notes, *notes),
        columns,
        frozenset(inferred),
        exact,
    )


def _before_rounding(name: str, given: pa.ChunkedArray, read: pa.Array) -> dict[str, pa.ChunkedArray | None]:
    """A column that is a floating-point number only since it was read, as it was; a text is not kept."""
    packed = pa.types.is_dictionary(given.type) or pa.types.is_run_end_encoded(given.type)
    stored = given.type.value_type if packed else given.type
    if not pa.types.is_floating(read.type) or pa.types.is_floating(stored):
        return {}
    kept = not packed and (pa.types.is_decimal(stored) or pa.types.is_integer(stored))
    return {name: given if kept else None}


def _is_declared(column: Column | None) -> bool:
    return column is not None and column.type is not None and column.source == "declared"


def _typed(
    name: str, column: pa.ChunkedArray, textual: bool, declared: Column | None, as_text: bool, *, lenient: bool
) -> TypedColumn:
    if as_text:
        return TypedColumn(CodedText.of(column).to_arrow(), "string")
    wanted = declared.type if declared is not None else None
    missing = frozenset(declared.missing) if declared is not None else frozenset()
    if textual:
        quick = numbers_at_once(column) if not missing and wanted in (None, "integer", "number") else None
        if quick is not None and wanted in (None, quick.type):
            return quick
        text = CodedText.of(column).without(missing)
        return convert(name, text, wanted, lenient=lenient) if wanted is not None else infer(name, text)
    if wanted not in (None, "number") and pa.types.is_decimal(column.type):
        # never by way of floating-point numbers, which have too few digits for a long identifier
        return convert(name, CodedText.of(exact_text(column)).without(missing), wanted, lenient=lenient)
    array, notes = normalise(name, within_calendar(column) if lenient else column)
    kind = type_name(array.type)
    if not years_are_printable(array):
        return TypedColumn(array, kind, (), f"column '{name}' has dates outside the years 1 to 9999")
    if missing:
        array = _without_codes(array, missing)
    if wanted is not None and wanted != kind:
        changed = convert(name, CodedText.of(array), wanted, lenient=lenient)
        return TypedColumn(changed.array, changed.type, (*notes, *changed.notes), changed.fault)
    return TypedColumn(array, kind, tuple(notes))


def _without_codes(array: pa.Array, missing: frozenset[str]) -> pa.Array:
    """Values whose text is a missing code become missing, whatever their type."""
    text = CodedText.of(array).without(missing)
    if pa.types.is_dictionary(array.type):
        return text.to_arrow()
    absent = pa.array(text.codes < 0)
    return pc.if_else(absent, pa.scalar(None, array.type), array)


def _description(declared: Column | None, found: Column | None, typed: TypedColumn) -> Column:
    base = declared if declared is not None else Column()
    changes: dict[str, object] = {"type": typed.type}
    if found is not None:
        changes["label"] = base.label or found.label
        changes["labels"] = base.labels or found.labels
        changes["missing"] = tuple(dict.fromkeys([*base.missing, *found.missing]))
    return base.model_copy(update=changes)
