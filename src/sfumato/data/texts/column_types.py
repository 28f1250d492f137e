"""Types of text columns: inferred with care, or converted as the schema declares.

Every decision is made on the distinct texts of a column, never row by row. Inference accepts only canonical
forms, so that `01234` and `NO` stay text and nothing changes its meaning by being read; a declared type is
converted leniently and all faults are counted.
"""

from __future__ import annotations

import datetime
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.data.schema import Type
from sfumato.data.texts import text_forms
from sfumato.data.texts.reading import PLAIN, Reading
from sfumato.data.texts.values import CodedText, TypedColumn

_INTEGER = r"^(?:0|-?[1-9][0-9]{0,18})$"
_NUMBER = r"^-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?$"
_TOO_LONG_FOR_A_NUMBER = r"^-?[1-9][0-9]{15,}$"
_LEADING_ZEROS = r"^0[0-9]+$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DATETIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?$"
_DATETIME_UTC = _DATETIME[:-1] + r"(?:Z|\+00:00|\+0000)$"
#: Numbers with a decimal comma, perhaps with points between thousands.
_DECIMAL_COMMA = r"^-?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+),[0-9]+$"

_GLANCE = 1000
FIRST_DAY = -719_162  # 0001-01-01 in days, the first date Python can print
LAST_DAY = 2_932_896  # 9999-12-31

#: Texts that often stand for "no value"; they mean just themselves unless the schema lists them as `missing`.
MARKERS = frozenset({"NA", "N/A", "n/a", "#N/A", "?", "-", ".", "NULL", "null", "None", "NaN", "nan", "(null)"})

ARROW_TYPES: dict[Type, pa.DataType] = {
    "string": pa.dictionary(pa.int32(), pa.string()),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
}


def numbers_at_once(column: pa.ChunkedArray) -> TypedColumn | None:
    """A long column of mostly different canonical numbers, typed without collecting its distinct texts
    first."""
    glance = column[:_GLANCE].drop_null()
    if len(glance) < _GLANCE // 2 or 2 * len(glance.unique()) < len(glance):
        return None
    typed = as_typed(glance)
    if typed is None or typed[1] not in ("integer", "number"):
        return None
    typed = as_typed(column)
    return TypedColumn(typed[0].combine_chunks(), typed[1]) if typed is not None else None


def infer(name: str, text: CodedText, reading: Reading = PLAIN) -> TypedColumn:
    """The narrowest type all texts have in the form in which they are read; otherwise text, with a note where that may
    surprise."""
    if not len(text.values):
        return TypedColumn(text.to_arrow(), "string", (f"column '{name}' has no values",) if text.codes.size else ())
    filled = text.without({""})
    if len(filled.values):
        typed = _as_read(filled.values, reading)
        if typed is not None:
            values, kind = typed
            notes = () if filled is text else (f"column '{name}': empty quoted cells are read as missing",)
            return TypedColumn(filled.to_typed(values), kind, notes)
    return TypedColumn(text.to_arrow(), "string", tuple(_surprises(name, text)))


def _as_read(values: pa.StringArray, reading: Reading) -> tuple[pa.Array, Type] | None:
    """The distinct texts as numbers or dates of a reading, or in the canonical forms that it does not read otherwise."""
    if reading.plain:
        return as_typed(values)
    for plain in (_plain_numbers(values, reading), _plain_dates(values, reading)):
        if plain is not None:
            return as_typed(plain)
    typed = as_typed(values)
    otherwise = typed is not None and (
        (typed[1] in ("integer", "number") and not reading.plain_numbers)
        or (typed[1] in ("date", "datetime") and not reading.reads_iso)
    )
    return None if otherwise else typed


def readable_as(values: pa.StringArray, reading: Reading) -> Type | None:
    """The type that all these texts have under a reading; None where they are texts."""
    typed = _as_read(values, reading) if len(values) else None
    return None if typed is None else typed[1]


def _plain_numbers(values: pa.StringArray, reading: Reading) -> pa.StringArray | None:
    """All texts as plain numbers; None where numbers are plain already, or one is no number."""
    if reading.plain_numbers or not _all_match(values, f"^(?:{reading.number_form})$"):
        return None
    return pa.array([reading.number(value) for value in values.to_pylist()], pa.string())


def _plain_dates(values: pa.StringArray, reading: Reading) -> pa.StringArray | None:
    """All texts as dates in ISO form; None where no other form is read, or one is no date."""
    if reading.dates is None:
        return None
    glance = values[:64].to_pylist()
    if any(reading.moment(value) is None for value in glance):
        return None
    moments = [*map(reading.moment, values.to_pylist())]
    return None if None in moments else pa.array(moments, pa.string())


def as_typed(values: pa.StringArray | pa.ChunkedArray) -> tuple[pa.Array, Type] | None:
    """The distinct texts as integers, numbers, booleans, dates or datetimes, or None when they are text."""
    if _all_match(values, _INTEGER):
        integers = _cast(values, pa.int64())
        return (integers, "integer") if integers is not None else None
    if _all_match(values, _NUMBER):
        if _any_match(values, _TOO_LONG_FOR_A_NUMBER):
            return None  # identifiers longer than a number can hold would lose digits
        numbers = _cast(values, pa.float64())
        if numbers is not None and pc.all(pc.is_finite(numbers)).as_py():
            return numbers, "number"
        return None
    if set(values.to_pylist() if len(values) <= 2 else ()) <= {"true", "false"} and len(values) <= 2:
        return pc.equal(values, "true"), "boolean"
    if _all_match(values, _DATE):
        days = _as_days(values)
        return (days, "date") if days is not None else None
    moments = _as_moments(values)
    return (moments, "datetime") if moments is not None else None


def convert(name: str, text: CodedText, kind: Type, *, lenient: bool = False, reading: Reading = PLAIN) -> TypedColumn:
    """The column as the declared type; texts that are none are counted in `fault`, or missing where `lenient`. Then no
    text decides how another one is read, and neither what type the column gets."""
    if kind == "string":
        return TypedColumn(text.to_arrow(), "string")
    text = text.without({""})
    exact = _exactly(text.values, kind, reading)
    if exact is not None:
        exact = exact.cast(ARROW_TYPES[kind]) if lenient else exact
        return TypedColumn(text.to_typed(exact), kind)
    parsed = [_parse(value, kind, reading) for value in text.values.to_pylist()]
    wrong = np.array([value is None for value in parsed] + [False])
    bad_rows = wrong[text.codes]
    if bad_rows.any() and not lenient:
        count = int(bad_rows.sum())
        said = text_forms.unreadable_texts(name, count, int((text.codes >= 0).sum()), kind)
        fault = f"{said} (first in record {int(np.argmax(bad_rows)) + 1:,})"
        return TypedColumn(text.to_arrow(), "string", (), fault)
    return TypedColumn(text.to_typed(pa.array(parsed, ARROW_TYPES[kind])), kind)


def _exactly(values: pa.StringArray, declared: Type, reading: Reading) -> pa.Array | None:
    """All texts as the wanted type at once, where they are canonical."""
    if not len(values):
        return _empty(declared)
    inferred = _as_read(values, reading)
    if inferred is None:
        return None
    typed, kind = inferred
    if kind == declared:
        return typed
    if (kind, declared) in (("integer", "number"), ("date", "datetime")):
        return typed.cast(ARROW_TYPES[declared], safe=False)  # integers beyond 2^53 are rounded, as declared
    return None


def _parse(value: str, kind: Type, reading: Reading = PLAIN) -> bool | int | float | datetime.date | None:
    """One text, read leniently because the owner declared the type; None when it is none of that type."""
    text = value.strip()
    if kind in ("integer", "number") and not reading.plain_numbers:
        text = reading.number(text) or ""
    if kind in ("date", "datetime") and reading.dates is not None:
        text = reading.moment(text) or (text if reading.reads_iso else "")
    if kind == "boolean":
        return None if text.lower() not in (*text_forms.YES, *text_forms.NO) else text.lower() in text_forms.YES
    if kind == "integer":
        whole = int(text.partition(".")[0]) if re.fullmatch(text_forms.INTEGER, text) else None
        return whole if whole is not None and -(2**63) <= whole < 2**63 else None
    if kind == "number":
        return float(text) if re.fullmatch(text_forms.NUMBER, text) else None
    if not re.fullmatch(text_forms.MOMENT, text):
        return None
    try:
        moment = datetime.datetime.fromisoformat(text[:11] + text[11:].replace(" ", ""))
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):  # no day of the calendar, or none in UTC
        return None
    if kind == "date":
        return moment.date() if moment.time() == datetime.time(0) else None
    return moment


def _surprises(name: str, text: CodedText) -> list[str]:
    """What the owner may not expect of a column that stays text."""
    counts = text.counts()
    total = int(counts.sum())
    numeric = np.asarray(pc.match_substring_regex(text.values, _NUMBER).to_numpy(zero_copy_only=False), dtype=bool)
    zeros = np.asarray(pc.match_substring_regex(text.values, _LEADING_ZEROS).to_numpy(zero_copy_only=False), dtype=bool)
    markers = np.asarray(pc.is_in(text.values, pa.array(sorted(MARKERS))).to_numpy(zero_copy_only=False), dtype=bool)
    notes = []
    marked = int(counts[markers].sum())
    if marked * 100 >= total:
        shown = ", ".join(f"'{marker}'" for marker in text.values.filter(pa.array(markers)).to_pylist())
        remaining = text.values.filter(pa.array(~markers))
        typed = as_typed(remaining) if len(remaining) else None
        kind = f" and the column would be {typed[1]}" if typed else ""
        notes.append(
            f"column '{name}': {marked:,} cells read {shown}, kept as values; "
            f'if they mean "no value", list them under the column in the schema, as missing{kind}'
        )
    elif 2 * int(counts[numeric].sum()) >= total > int(counts[numeric | zeros].sum()):
        others = total - int(counts[numeric].sum())
        notes.append(f"column '{name}' mixes numbers and text ({others:,} of {total:,} values are no numbers): kept as text")
    if zeros.any() and (numeric | zeros | markers).all():
        notes.append(f"column '{name}' has digits with leading zeros: kept as text")
    if _all_match(text.values, _DECIMAL_COMMA):
        notes.append(f"column '{name}' looks like numbers with a decimal comma: kept as text; read with decimal = ','")
    return notes


def _all_match(values: pa.StringArray, pattern: str) -> bool:
    # a glance at a few values spares scanning a long column that is plain text
    if len(values) > 64 and not pc.all(pc.match_substring_regex(values[:64], pattern)).as_py():
        return False
    return len(values) > 0 and bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())


def _any_match(values: pa.StringArray, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(values, pattern)).as_py())


def _cast(values: pa.StringArray, arrow: pa.DataType) -> pa.Array | None:
    try:
        return values.cast(arrow)
    except pa.ArrowInvalid:
        return None


def _as_days(values: pa.StringArray) -> pa.Array | None:
    days = _cast(values, pa.date32())
    if days is None:
        return None
    numbers = days.cast(pa.int32())
    inside = pc.and_(pc.greater_equal(numbers, FIRST_DAY), pc.less_equal(numbers, LAST_DAY))
    return days if pc.all(inside).as_py() else None


def _as_moments(values: pa.StringArray) -> pa.Array | None:
    """Dates with times, all without a zone or all in UTC; pure dates may stand among them at midnight."""
    if _all_match(values, _DATETIME_UTC):
        without_zone = _cast(pc.replace_substring_regex(values, r"(?:Z|\+00:?00)$", ""), pa.timestamp("us"))
        moments = without_zone.cast(pa.timestamp("us", "UTC")) if without_zone is not None else None
    elif _all_match(values, f"{_DATE}|{_DATETIME}"):
        moments = _cast(values, pa.timestamp("us"))
    else:
        return None
    days = pc.utf8_slice_codeunits(values, 0, 10)
    return moments if moments is not None and _as_days(days) is not None else None


def _empty(kind: Type) -> pa.Array:
    return pa.array([], ARROW_TYPES[kind])
