"""Columns that arrive with a type: brought to the few Arrow types the rest of the system speaks.

Text becomes dictionary-encoded with 32-bit indices, dates days, datetimes microseconds, numbers 64-bit floats
(integers keep their width); what has no plain form (times of day, bytes, identifiers of an extension type)
becomes its text, and that is said.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import SourceError
from sfumato.data.column_types import FIRST_DAY, LAST_DAY, CodedText
from sfumato.data.schema import Type
from sfumato.data.values import text_of

#: Ticks of a day, by the unit of a timestamp.
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


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
    found = pc.min_max(array.cast(pa.int32() if days else pa.int64())).as_py()
    per_day = 1 if days else 86_400_000_000
    low, high = FIRST_DAY * per_day, (LAST_DAY + 1) * per_day
    return found["min"] is None or low <= found["min"] <= found["max"] < high


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
    return _whole(column.cast(pa.float64())), []


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
