"""What a reader returns: an Arrow table in known types, notes on what was detected, and what the file says of
its columns.

Format readers produce a `RawTable`; `finish` names its columns once, applies missing codes and types, and
reports every fault at once. Columns that arrive with a type are brought to the few Arrow types that the rest of the system
speaks (`normalise`): text is dictionary-encoded with 32-bit indices, dates are days, datetimes microseconds, numbers 64-bit
floats (integers keep their width); what has no plain form (times of day, bytes, identifiers of an extension type) becomes its
text, and that is said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import SourceError, all_at_once
from sfumato.data.schema import Column, Schema, Type
from sfumato.data.texts.column_types import FIRST_DAY, LAST_DAY, convert, infer, numbers_at_once
from sfumato.data.texts.decimals import exact_text, nearest_floats
from sfumato.data.texts.number_codes import codes_as_written, plain_codes, without_number_codes
from sfumato.data.texts.reading import PLAIN, Reading
from sfumato.data.texts.text_forms import MISFITS
from sfumato.data.texts.values import CodedText, TypedColumn, text_of

_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*%?\s*(\.\d+)?")
#: Ticks of a day, by the unit of a timestamp.
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}

#: What to do about a value that cannot be read as the type that its column is declared to have.
Unreadable = Literal["refuse", "missing"]
#: What a private answer says about such values; the same words whether there are any or not.
UNREADABLE = "A value that cannot be read as its declared type counts as missing"


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns as a format delivers them.

    `textual` says that the format has no types (CSV), so that they are inferred; `guessed` names, by position, columns
    of other formats whose type follows from their cells (Excel, Python objects in a frame). `described` carries labels
    and missing codes that the file itself declares, by position. `form` has separator and encoding of a text file.
    """

    names: tuple[str, ...]
    columns: tuple[pa.ChunkedArray, ...] = field(repr=False)
    textual: bool = False
    notes: tuple[str, ...] = ()
    described: Mapping[int, Column] = field(default_factory=dict, repr=False)
    guessed: frozenset[int] = frozenset()
    form: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: pa.Table) -> RawTable:
        """A table in memory, without the index columns that pandas adds."""
        index = _pandas_index(table.schema)
        kept = [i for i, name in enumerate(table.column_names) if name not in index]
        notes = (f"the pandas index ({len(index)} columns) was left out",) if len(kept) < table.num_columns else ()
        return cls(tuple(table.column_names[i] for i in kept), tuple(table.column(i) for i in kept), False, notes)


def _pandas_index(schema: pa.Schema) -> set[str]:
    stored = (schema.metadata or {}).get(b"pandas")
    if stored is None:
        return set()
    try:
        columns = json.loads(stored).get("index_columns", [])
    except (ValueError, AttributeError, RecursionError):
        return set()
    if not isinstance(columns, list):
        return set()
    return {name for name in columns if isinstance(name, str) and name.startswith("__index_level_")}


@dataclass(frozen=True, eq=False)
class ReadResult:
    """A table that was read.

    `notes` say what was detected and decided, without values of records; `columns` describes every column:
    its type, and labels, value labels and missing codes where the file or the schema has them. `inferred` are the columns
    whose type nobody declared and that another record could have changed. `exact` has the decimals and integers that
    became floating-point numbers, as they were, and None for texts that did. `reading` says how the texts were read, with
    what was detected.
    """

    table: pa.Table = field(repr=False)
    notes: tuple[str, ...] = ()
    columns: dict[str, Column] = field(default_factory=dict, repr=False)
    inferred: frozenset[str] = frozenset()
    exact: dict[str, pa.ChunkedArray | None] = field(default_factory=dict, repr=False)
    reading: Reading = PLAIN


#: What is said of a file without a line of names.
NAMED_BY_A_RECORD = "the first line, which should hold the names of the columns, looks like a record of its own"


def are_numbers(names: Sequence[str]) -> bool:
    """Whether most names are numbers, as where a file has no line of names."""
    return 2 * sum(_NUMBER.fullmatch(name) is not None for name in names) > len(names)


def unique_names(raw_names: Sequence[str | None]) -> tuple[tuple[str, ...], list[str]]:
    """Every column gets a name of its own: a repeated one becomes `name.2`, an empty one `column 3`."""
    proper = {name for name in raw_names if name}
    used: set[str] = set()
    names, renamed = [], []
    for position, name in enumerate(raw_names, 1):
        chosen = name or f"column {position}"
        number = 2
        while chosen in used or (chosen != name and chosen in proper):
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
    """Names, missing codes and types, as the schema says that the table is read; conversion faults of all columns are reported
    together, counted, without values, unless what is `unreadable` shall be missing."""
    names, notes = unique_names(raw.names)
    nested = [
        f"column '{name}' has the nested type {column.type}"
        for name, column in zip(names, raw.columns, strict=True)
        if is_nested(column.type)
    ]
    all_at_once(SourceError, f"{where}: flatten nested columns before reading", nested)
    described = {name: raw.described[i] for i, name in enumerate(names) if i in raw.described}
    declared, reading = (dict(schema.columns), schema.read) if schema is not None else ({}, PLAIN)
    arrays, columns, faults, inferred = [], {}, [], set()
    exact: dict[str, pa.ChunkedArray | None] = {}
    # each column goes as soon as it is read: the whole table need not be there twice
    textual, guessed, said, form, waiting = raw.textual, raw.guessed, raw.notes, raw.form, list(raw.columns)
    del raw
    for place, name in enumerate(names):
        column, waiting[place] = waiting[place], None
        if not _is_declared(declared.get(name)) and not as_text:
            # A unit is only compared, and wide whole numbers of a unit keep all their digits whatever type they get.
            unit = name in declared and declared[name].role == "unit"
            follows_cells = textual or place in guessed or (type_depends_on_values(column.type) and not unit)
            inferred.update([name] if follows_cells else [])
        typed = _typed(name, column, textual, declared.get(name), reading, as_text, lenient=unreadable == "missing")
        arrays.append(typed.array)
        exact.update(_before_rounding(name, column, typed.array))
        notes.extend(typed.notes)
        columns[name] = _description(declared.get(name), described.get(name), typed)
        if typed.fault:
            faults.append(typed.fault)
    all_at_once(
        SourceError,
        f"{where} {MISFITS}",
        faults,
    )
    return ReadResult(
        pa.table(dict(zip(names, arrays, strict=True))) if names else pa.table({}),
        (*said, *notes),
        columns,
        frozenset(inferred),
        exact,
        reading.overridden(form) if form else reading,
    )


def _before_rounding(name: str, column: pa.ChunkedArray, read: pa.Array) -> dict[str, pa.ChunkedArray | None]:
    """A column that is a floating-point number only since it was read, as it was; a text is not kept."""
    packed = pa.types.is_dictionary(column.type) or pa.types.is_run_end_encoded(column.type)
    stored = column.type.value_type if packed else column.type
    if not pa.types.is_floating(read.type) or pa.types.is_floating(stored):
        return {}
    kept = not packed and (pa.types.is_decimal(stored) or pa.types.is_integer(stored))
    return {name: column if kept else None}


def _is_declared(column: Column | None) -> bool:
    return column is not None and column.type is not None and column.source == "declared"


def _typed(
    name: str,
    column: pa.ChunkedArray,
    textual: bool,
    declared: Column | None,
    reading: Reading,
    as_text: bool,
    *,
    lenient: bool,
) -> TypedColumn:
    if as_text:
        return TypedColumn(CodedText.of(column).to_arrow(), "string")
    declared_type = declared.stored_type if declared is not None else None
    missing = frozenset((*(declared.missing if declared is not None else ()), *reading.missing))
    typed = _read(name, column, textual, declared_type, missing, reading, lenient=lenient)
    packed = pa.types.is_dictionary(column.type) or pa.types.is_run_end_encoded(column.type)
    written = textual or _is_text(column.type.value_type if packed else column.type)
    codes = codes_as_written(missing, reading) if written and missing else missing
    return replace(typed, array=without_number_codes(typed.array, codes)) if codes else typed


def _read(
    name: str,
    column: pa.ChunkedArray,
    textual: bool,
    declared_type: Type | None,
    missing: frozenset[str],
    reading: Reading,
    *,
    lenient: bool,
) -> TypedColumn:
    """The column in its type, without cells whose text is a missing code."""
    if textual:
        at_once = reading.plain_numbers and not plain_codes(missing) and declared_type in (None, "integer", "number")
        at_once = at_once and not pa.types.is_dictionary(column.type)
        quick = numbers_at_once(column) if at_once else None
        if quick is not None and declared_type in (None, quick.type):
            return quick
        text = CodedText.of(column).without(missing)
        if declared_type is not None:
            return convert(name, text, declared_type, lenient=lenient, reading=reading)
        return infer(name, text, reading)
    if declared_type not in (None, "number") and pa.types.is_decimal(column.type):
        # never by way of floating-point numbers, which have too few digits for a long identifier
        text = CodedText.of(exact_text(column)).without(missing.union(plain_codes(missing)))
        return convert(name, text, declared_type, lenient=lenient)
    array, notes = normalise(name, within_calendar(column) if lenient else column)
    kind = type_name(array.type)
    if not years_are_printable(array):
        return TypedColumn(array, kind, (), f"column '{name}' has dates outside the years 1 to 9999")
    if missing:
        array = _without_codes(array, missing)
    if declared_type is not None and declared_type != kind:
        written = reading if kind == "string" else PLAIN  # values that have a type are written as the program writes them
        changed = convert(name, CodedText.of(array), declared_type, lenient=lenient, reading=written)
        return TypedColumn(changed.array, changed.type, (*notes, *changed.notes), changed.fault)
    return TypedColumn(array, kind, tuple(notes))


def _without_codes(array: pa.Array, missing: frozenset[str]) -> pa.Array:
    """Values whose text is a missing code become missing, whatever their type, and numbers that equal one."""
    text = CodedText.of(array).without(missing)
    if pa.types.is_dictionary(array.type):
        return text.to_arrow()
    absent = pa.array(text.codes < 0)
    return without_number_codes(pc.if_else(absent, pa.scalar(None, array.type), array), missing)


def _description(declared: Column | None, described: Column | None, typed: TypedColumn) -> Column:
    base = declared if declared is not None else Column()
    changes: dict[str, object] = {"type": typed.type}
    if described is not None:
        changes["label"] = base.label or described.label
        changes["labels"] = base.labels or described.labels
        changes["missing"] = tuple(dict.fromkeys([*base.missing, *described.missing]))
    return base.model_copy(update=changes)


def type_name(arrow: pa.DataType) -> Type:
    """The schema's word for an Arrow type that `normalise` returns."""
    if pa.types.is_boolean(arrow):
        return "boolean"
    if pa.types.is_integer(arrow):
        return "integer"
    if pa.types.is_floating(arrow):
        return "number"
    if pa.types.is_date(arrow):
        return "date"
    if pa.types.is_timestamp(arrow):
        return "datetime"
    return "string"


def is_nested(arrow: pa.DataType) -> bool:
    """True for lists, structs, maps and unions, which are no cells of a table about people."""
    return bool(pa.types.is_nested(arrow)) and not pa.types.is_run_end_encoded(arrow)


def type_depends_on_values(arrow: pa.DataType) -> bool:
    """True where `normalise` chooses by what the cells hold: whole numbers that may or may not fit into 64 bits."""
    whole_decimals = pa.types.is_decimal(arrow) and arrow.scale <= 0
    return bool(pa.types.is_uint64(arrow) or whole_decimals)


def years_are_printable(array: pa.Array) -> bool:
    """True unless a date lies outside the years 1 to 9999, which only a damaged file has."""
    if not (pa.types.is_date32(array.type) or pa.types.is_timestamp(array.type)):
        return True
    days = pa.types.is_date32(array.type)
    ends = pc.min_max(array.cast(pa.int32() if days else pa.int64())).as_py()
    per_day = 1 if days else 86_400_000_000
    low, high = FIRST_DAY * per_day, (LAST_DAY + 1) * per_day
    return ends["min"] is None or low <= ends["min"] <= ends["max"] < high


def within_calendar(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same dates, those outside the years 1 to 9999 missing."""
    if not (pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)):
        return column
    ticks = column.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(column.type) else column.cast(pa.int64())
    per_day = 1 if pa.types.is_date32(column.type) else _PER_DAY["ms" if pa.types.is_date64(column.type) else column.type.unit]
    low, high = (max(-(2**63), min(2**63 - 1, end * per_day)) for end in (FIRST_DAY, LAST_DAY + 1))
    inside = pc.and_(pc.greater_equal(ticks, low), pc.less(ticks, high))
    return pc.if_else(inside, column, pa.scalar(None, column.type))


def normalise(name: str, column: pa.ChunkedArray) -> tuple[pa.Array, list[str]]:
    """The column in one chunk and one of the known types, and notes on what changed."""
    arrow = column.type
    if isinstance(arrow, pa.ExtensionType):
        return _as_text(column), [f"column '{name}' has the type {arrow.extension_name}: kept as text"]
    if pa.types.is_dictionary(arrow):
        if _is_text(arrow.value_type) or pa.types.is_null(arrow.value_type):
            return _as_text(column), []
        column = column.cast(arrow.value_type)
        arrow = column.type
    if pa.types.is_run_end_encoded(arrow):
        column = pc.run_end_decode(column)
        arrow = column.type
    if _is_text(arrow) or pa.types.is_null(arrow):
        return _as_text(column), []
    if pa.types.is_boolean(arrow) or pa.types.is_date32(arrow) or pa.types.is_float64(arrow):
        return _whole(column), []
    if pa.types.is_integer(arrow):
        return _integers(name, column)
    if pa.types.is_floating(arrow):
        # by way of the shortest text, so that a 32-bit 0.1 becomes 0.1 and not 0.10000000149011612
        texts = column.cast(pa.float32()).cast(pa.string())
        return _whole(texts.cast(pa.float64())), []
    if pa.types.is_decimal(arrow):
        return _decimals(column)
    if pa.types.is_date64(arrow):
        return _days(name, column), []
    if pa.types.is_timestamp(arrow):
        return _moments(name, column)
    return _as_text(column), [f"column '{name}' has the type {arrow}: kept as text"]


def _is_text(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _as_text(column: pa.ChunkedArray) -> pa.Array:
    arrow = column.type
    if pa.types.is_dictionary(arrow) and not pa.types.is_string(arrow.value_type):
        # through 64-bit text first: views and large strings have no direct way everywhere
        column = column.cast(pa.dictionary(pa.int32(), pa.string()))
    elif pa.types.is_null(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        column = column.cast(pa.string())
    elif not pa.types.is_dictionary(arrow) and not pa.types.is_string(arrow):
        column = pa.chunked_array([pa.array([text_of(value) for value in column.to_pylist()], pa.string())])
    return CodedText.of(column).to_arrow()


def _integers(name: str, column: pa.ChunkedArray) -> tuple[pa.Array, list[str]]:
    if not pa.types.is_unsigned_integer(column.type):
        return _whole(column), []
    try:
        return _whole(column.cast(pa.int64())), []
    except pa.ArrowInvalid:
        return _as_text(column), [f"column '{name}' has integers above 2^63: kept as text"]


def _decimals(column: pa.ChunkedArray) -> tuple[pa.Array, list[str]]:
    if column.type.scale <= 0:
        try:
            return _whole(column.cast(pa.int64())), []
        except pa.ArrowInvalid:
            pass
    return _whole(nearest_floats(column)), []


def _days(name: str, column: pa.ChunkedArray) -> pa.Array:
    try:
        return _whole(column.cast(pa.date32()))
    except pa.ArrowInvalid:
        raise _no_date(name) from None


def _no_date(name: str) -> SourceError:
    return SourceError(f"column '{name}' has dates far outside the years 1 to 9999. Correct them, or make them missing, first")


def _moments(name: str, column: pa.ChunkedArray) -> tuple[pa.Array, list[str]]:
    notes = []
    zone = column.type.tz
    plain = pa.timestamp("us", "UTC" if zone else None)
    if zone and zone != "UTC":
        notes.append(f"column '{name}': datetimes converted from {zone} to UTC")
    try:
        return _whole(column.cast(plain)), notes
    except pa.ArrowInvalid:
        if column.type.unit != "ns":  # not too fine but too far away
            raise _no_date(name) from None
        notes.append(f"column '{name}': datetimes shortened to microseconds")
        return _whole(column.cast(plain, safe=False)), notes
