"""How a table seems to be written: decimal and thousands marks, dates, texts for no value, with what speaks for and against.

Every proposal is made from the texts of whole columns, and only where one reading is possible: 03/04/2020 alone says nothing of
its order, so that the owner is asked, with the readings to choose from. Places are named by line, never by content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.core.plain_data import Plain
from sfumato.data.texts.column_types import readable_as
from sfumato.data.texts.missing_words import code_of_no_value
from sfumato.data.texts.reading import PLAIN, Reading
from sfumato.data.texts.values import CodedText

if TYPE_CHECKING:
    import pyarrow as pa

_MARKS: tuple[tuple[str | None, str | None], ...] = (
    (None, None), (",", None), (None, ","), (",", "."), (None, " "), (",", " "), (None, "'"), (",", "'"),
)  # fmt: skip
_NUMBERLIKE = "^[+-]?[0-9.,]+(?:[ '\u00a0\u2009\u202f\u2019][0-9]{3})*(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]+)?$"
_SEPARATORS = (".", "/", "-", " ")
#: The orders in which day, month and year are written; a year of four digits in front is followed by the month everywhere.
_ORDERS = ("%d{}%m{}%Y", "%m{}%d{}%Y", "%Y{}%m{}%d", "%d{}%m{}%y", "%m{}%d{}%y", "%y{}%m{}%d", "%d{}%b{}%Y", "%d{}%b{}%y")
_FORMATS = (*(order.format(mark, mark) for mark in _SEPARATORS for order in _ORDERS), "%d. %b %Y", "%b %d, %Y", "%d%b%Y")
_FEWEST_DATES = 2
_GLANCE = 64
_MOST_DATES = 50_000  # distinct texts of a column that are looked at
_NAMED_LINES = 3


@dataclass(frozen=True)
class SuggestedReading:
    """A reading, and by key why; `questions` are readings to choose from, where several are possible. `codes` are texts for no
    value of single columns."""

    reading: Reading = PLAIN
    reasons: Mapping[str, str] = field(default_factory=dict)
    questions: tuple[str, ...] = ()
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    codes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Texts:
    """The distinct texts of a column without those that seem to mean no value, and where they stand."""

    name: str
    coded: CodedText
    words: frozenset[str]

    @property
    def values(self) -> pa.StringArray:
        """The texts that say something."""
        return self.coded.without(self.words).values if self.words else self.coded.values

    def rows(self, chosen: Callable[[str], bool]) -> NDArray[np.int64]:
        """The rows whose text is chosen."""
        flags = np.array([chosen(text) for text in self.coded.values.to_pylist()] + [False])
        return np.flatnonzero(flags[self.coded.codes])


def suggest_reading(table: pa.Table, stated: Plain, first_line: int | None = None) -> SuggestedReading:
    """How the text columns of a table are to be read; what is `stated` is taken as it is. `first_line` is the line of the first
    record in its file, None where there are no lines."""
    columns = [_texts(name, table.column(name)) for name in table.column_names if _is_text(table.schema.field(name).type)]
    columns = [column for column in columns if len(column.coded.values)]
    reading, reasons = PLAIN.overridden(stated), dict.fromkeys(stated, "stated as an option")
    questions: list[str] = []
    choices: dict[str, tuple[str, ...]] = {}
    where = _Places(first_line)
    if not {"decimal", "thousands"} & stated.keys():
        marks, because, question = _number_marks(columns, where)
        reading = reading.overridden(marks)
        reasons |= because
        questions += [question] if question else []
    if "date_format" not in stated:
        pattern, reason, options = _date_format(columns, where)
        reading = reading.overridden({"date_format": pattern})
        reasons |= {"date_format": reason} if pattern else {}
        if options:
            choices["date_format"] = options
            questions.append(reason)
    codes: dict[str, tuple[str, ...]] = {}
    if "missing" not in stated:
        everywhere, codes, reason = _codes(columns, reading, where)
        reading = reading.overridden({"missing": everywhere or None})
        reasons |= {"missing": reason} if reason else {}
    return SuggestedReading(reading, reasons, tuple(questions), choices, codes)


@dataclass(frozen=True)
class _Places:
    first_line: int | None

    def of(self, rows: NDArray[np.int64]) -> str:
        """How many cells, and where the first ones stand."""
        start, word = (1, "record") if self.first_line is None else (self.first_line, "line")
        shown = ", ".join(f"{int(row) + start:,}" for row in rows[:_NAMED_LINES])
        return f"{rows.size:,} {'cell' if rows.size == 1 else 'cells'}, {word}{'s' * (rows.size > 1)} {shown}" + (
            " …" if rows.size > _NAMED_LINES else ""
        )


def _is_text(arrow: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(arrow) or pa.types.is_string(arrow) or pa.types.is_large_string(arrow))


def _texts(name: str, column: pa.ChunkedArray) -> _Texts:
    coded = CodedText.of(column)
    return _Texts(name, coded, frozenset(text for text in coded.values.to_pylist() if code_of_no_value(text) is not None))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:3]) + (" …" if len(names) > 3 else "")


def counted_columns(count: int) -> str:
    """So many columns, in words."""
    return f"{count} {'column' if count == 1 else 'columns'}"


# Numbers ----------------------------------------------------------------------------------------------------------------


def _number_marks(columns: Sequence[_Texts], where: _Places) -> tuple[dict[str, str], dict[str, str], str]:
    """The marks that read most columns of numbers, and why each; a question where two ways read as many differently."""
    import pyarrow.compute as pc

    like = [each for each in columns if len(each.values) and pc.all(pc.match_substring_regex(each.values, _NUMBERLIKE)).as_py()]
    readings = [Reading(decimal=decimal, thousands=thousands) for decimal, thousands in _MARKS]
    read = {each: [column for column in like if _reads(each, column)] for each in readings}
    numbers = [column for column in like if any(column in columns for columns in read.values())]
    most = max(len(columns) for columns in read.values())
    if len(read[PLAIN]) == most:
        return {}, {}, _thousands_or_decimals(numbers)
    best = [each for each in readings if len(read[each]) == most]
    chosen = best[0]
    otherwise = [each for each in best[1:] if (each.decimal or ".") != (chosen.decimal or ".")]
    only = [column for column in read[chosen] if column not in read[PLAIN]]
    if otherwise:
        options = " or ".join(_typed(each) for each in (chosen, otherwise[0]))
        return {}, {}, f"numbers: column {_listed([c.name for c in only])} can be read in two ways; say which: {options}"
    marks = {key: value for key, value in (("decimal", chosen.decimal), ("thousands", chosen.thousands)) if value is not None}
    against = [column.name for column in numbers if column not in read[chosen]]
    rest = f"; against it: column {_listed(against)}, kept as text" if against else "; against it: none"
    return marks, {key: _telling(mark, only, where) + rest for key, mark in marks.items()}, ""


def _thousands_or_decimals(numbers: Sequence[_Texts]) -> str:
    """A question where every number with a point has three digits behind it, as numbers with points between thousands have."""
    import pyarrow.compute as pc

    pointed = [column for column in numbers if pc.any(pc.match_substring(column.values, ".")).as_py()]
    thousands = Reading(decimal=",", thousands=".")
    if not pointed or any(readable_as(column.values, thousands) != "integer" for column in pointed):
        return ""
    listed = _listed([column.name for column in pointed])
    return (
        f"numbers: every point in column {listed} stands before three digits, and is read as a decimal point (--decimal '.'); if "
        f"it stands between thousands, say so: {_typed(thousands)}"
    )


def _telling(mark: str, columns: Sequence[_Texts], where: _Places) -> str:
    """How many columns have numbers with this mark, and where the fullest of them has the first ones."""
    marked = [(column, column.rows(lambda text: mark in text and code_of_no_value(text) is None)) for column in columns]
    marked = [(column, rows) for column, rows in marked if rows.size]
    if not marked:
        return "for it: numbers without it are read too"
    column, rows = max(marked, key=lambda entry: entry[1].size)
    return f"for it: {counted_columns(len(marked))} ({where.of(rows)} of '{column.name}')"


def _reads(reading: Reading, column: _Texts) -> bool:
    return readable_as(column.values, reading) in ("integer", "number")


def _typed(reading: Reading) -> str:
    """A reading as options of a command."""
    listed = reading.to_mapping().items()
    return " ".join(f"--{key.replace('_', '-')} '{value}'" for key, value in listed) or "--decimal '.'"


# Dates ------------------------------------------------------------------------------------------------------------------


def _date_format(columns: Sequence[_Texts], where: _Places) -> tuple[str | None, str, tuple[str, ...]]:
    """The one pattern that reads the columns of dates, and why; or the patterns to choose from."""
    possible = {column.name: _patterns(column) for column in columns}
    dates = [column for column in columns if possible[column.name]]
    if not dates:
        return None, "", ()
    decided = [possible[column.name][0] for column in dates if len(possible[column.name]) == 1]
    counts = {pattern: decided.count(pattern) if decided else _columns_of(pattern, possible) for pattern in _FORMATS}
    best = [pattern for pattern in _FORMATS if counts[pattern] == max(counts.values())]
    if len(best) > 1:
        options = " or ".join(f"--date-format '{pattern}'" for pattern in best)
        named = _listed([column.name for column in dates])
        said = "the columns speak for different orders" if decided else "the values do not say in which order day and month stand"
        return None, f"dates: {said} (column {named}); say which: {options}", tuple(best)
    chosen = best[0]
    reading = Reading(date_format=chosen)
    read = [column for column in dates if chosen in possible[column.name]]
    against = [column.name for column in dates if column not in read]
    parts = [f"for it: {counted_columns(len(read))} ({_listed([column.name for column in read])})"]
    for other in _mirrors(chosen):
        only = partial(_only, reading, Reading(date_format=other))
        telling = [(column, column.rows(only)) for column in read]
        column, rows = max(telling, key=lambda entry: entry[1].size)
        if rows.size:
            parts.append(f"no {other}: {where.of(rows)} of '{column.name}'")
    parts.append(f"against it: column {_listed(against)}, kept as text" if against else "against it: none")
    if "%y" in chosen:
        parts.append("years 00 to 29 are 2000 to 2029, and 30 to 99 are 1930 to 1999")
    return chosen, "; ".join(parts), ()


def _columns_of(pattern: str, possible: Mapping[str, Sequence[str]]) -> int:
    return sum(pattern in patterns for patterns in possible.values())


def _only(reading: Reading, other: Reading, text: str) -> bool:
    return code_of_no_value(text) is None and reading.moment(text) is not None and other.moment(text) is None


def _mirrors(pattern: str) -> list[str]:
    """Patterns of the same look in another order."""
    marks = {letter for letter in pattern if letter in "./- "}
    return [
        other for other in _FORMATS
        if other != pattern and "%b" not in other + pattern and ("%Y" in other) == ("%Y" in pattern)
        and {letter for letter in other if letter in "./- "} == marks and other.startswith("%Y") == pattern.startswith("%Y")
    ]  # fmt: skip


def _patterns(column: _Texts) -> tuple[str, ...]:
    """The patterns that read every text of a column; none for columns of numbers, of ISO dates and of other texts."""
    values = column.values
    if len(values) < _FEWEST_DATES or len(values) > _MOST_DATES or readable_as(values, PLAIN) is not None:
        return ()
    glance = values[:_GLANCE].to_pylist()
    kept = [each for each in _FORMATS if _all_dates(Reading(date_format=each), glance)]
    if not kept:
        return ()
    listed = values.to_pylist()
    return tuple(each for each in kept if _all_dates(Reading(date_format=each), listed))


def _all_dates(reading: Reading, values: Sequence[str]) -> bool:
    return all(reading.moment(value) is not None for value in values)


# No value ---------------------------------------------------------------------------------------------------------------


def _codes(
    columns: Sequence[_Texts], reading: Reading, where: _Places
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]], str]:
    """Texts that mean no value in every column where they occur, those that do so in some columns alone, and why."""
    speaks_for: dict[str, list[_Texts]] = {}
    speaks_against: dict[str, list[_Texts]] = {}
    for column in columns:
        kind = readable_as(column.values, reading) if column.words and len(column.values) else None
        others = column.values.to_pylist()[:1000] if column.words else []
        for text in sorted(column.words):
            word = code_of_no_value(text)
            means_nothing = word is not None and word.means_nothing(text, others, typed=kind is not None or not others)
            (speaks_for if means_nothing else speaks_against).setdefault(text, []).append(column)
    everywhere = tuple(sorted(text for text in speaks_for if text not in speaks_against))
    single: dict[str, tuple[str, ...]] = {}
    for text in sorted(speaks_for.keys() & speaks_against.keys()):
        for column in speaks_for[text]:
            single[column.name] = (*single.get(column.name, ()), text)
    if not speaks_for and not speaks_against:
        return (), {}, ""
    parts = [f"{_shown(text)}: {_counted(text, speaks_for[text], where)}" for text in everywhere]
    kept = [
        f"{_shown(text)} may be a value of column {_listed([column.name for column in against])}, and is kept there"
        for text, against in sorted(speaks_against.items())
    ]
    return everywhere, single, "; ".join([*parts, *kept])


def _counted(text: str, columns: Sequence[_Texts], where: _Places) -> str:
    rows = [column.rows(lambda other: other == text) for column in columns]
    cells = sum(each.size for each in rows)
    first = np.unique(np.concatenate([each[:_NAMED_LINES] for each in rows]))[:_NAMED_LINES]
    places = where.of(first).split(", ", 1)[1]
    return f"{cells:,} {'cell' if cells == 1 else 'cells'} in {counted_columns(len(columns))} ({places})"


def _shown(text: str) -> str:
    return f"'{text}'" if text else "an empty text in quotes"
