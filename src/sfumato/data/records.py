"""Records as arrays: numbers as floats, categories as codes, missing values marked; and the way back to Arrow.

What masks change and what measures of masked data compare. Dates and moments are numbers of days; whole numbers beyond
2^53 have no float of their own and are refused. Squares of values beyond 1e154 have no float, and those of values below 1e-162
are 0, so that a column would look constant: numbers are squared in units that are powers of two, by which dividing is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import MissingColumn, Unsupported, all_at_once
from sfumato.data.schema import Column, Schema
from sfumato.data.texts.values import CodedText, as_numbers

Kind = Literal["number", "ordered", "category"]
Real = NDArray[np.float64]
Codes = NDArray[np.int32]
Rows = NDArray[np.int64]

#: Up to here every whole number has a float of its own.
LARGEST_WHOLE = float(2**53)
_MICROSECONDS_PER_DAY = 86_400_000_000
#: In days: moments may be kept in whole seconds.
SECOND = 1 / 86_400
#: The days since 1970 of the years 1 to 9999, and of those that can be counted in nanoseconds.
_CALENDAR = (-719_162.0, 2_932_897.0)
_CALENDAR_NS = (-106_751.0, 106_751.0)
#: Columns whose largest value lies between 1/this and this keep their unit; fourth powers of it are finite.
_ORDINARY = 1e50


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column of numbers; NaN is a missing value. `arrow` is the type it came in."""

    name: str
    values: Real = field(repr=False)
    arrow: pa.DataType
    kind: ClassVar[Kind] = "number"

    @property
    def whole(self) -> bool:
        """Whether the column holds whole numbers (integers, dates)."""
        return bool(pa.types.is_integer(self.arrow) or pa.types.is_date(self.arrow))

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Where a value is known."""
        places = ~np.isnan(self.values)
        places.flags.writeable = False
        return places

    @cached_property
    def present(self) -> Real:
        """The values that are known; the column itself, not a copy, where all are."""
        return self.values if self.known.all() else self.values[self.known]

    def take(self, rows: Rows) -> NumberColumn:
        """The column at these rows."""
        return replace(self, values=self.values[rows])

    def restored(self, values: Real, *, whole: bool = True) -> pa.Array:
        """Numbers as an Arrow column of the original type; with `whole=False` a column of integers becomes one of floats."""
        unknown = np.isnan(values)
        if pa.types.is_temporal(self.arrow):
            self._refuse_outside_calendar(values[~unknown])
        if pa.types.is_timestamp(self.arrow):
            counted = pa.array(np.rint(np.where(unknown, 0.0, values) * _MICROSECONDS_PER_DAY).astype(np.int64), mask=unknown)
            return counted.cast(pa.timestamp("us", self.arrow.tz)).cast(self.arrow, safe=False)
        if pa.types.is_date(self.arrow):
            days = pa.array(np.rint(np.where(unknown, 0.0, values)).astype(np.int32), mask=unknown)
            return days.cast(pa.date32())
        if pa.types.is_integer(self.arrow) and whole:
            limited = np.clip(np.where(unknown, 0.0, values), -LARGEST_WHOLE, LARGEST_WHOLE)
            return pa.array(np.rint(limited).astype(np.int64), mask=unknown)
        return pa.array(values, mask=unknown if unknown.any() else None)

    def _refuse_outside_calendar(self, days: Real) -> None:
        counted_finely = pa.types.is_timestamp(self.arrow) and self.arrow.unit == "ns"
        first, end = _CALENDAR_NS if counted_finely else _CALENDAR
        if days.size and not (float(days.min()) >= first and float(np.rint(days.max())) < end):
            span = "1678 to 2261, which is what its type holds" if counted_finely else "1 to 9999"
            raise Unsupported(
                f"column '{self.name}' would hold dates outside the years {span}; use less noise, or limit the column by "
                "top and bottom coding first"
            )


@dataclass(frozen=True, eq=False)
class CategoryColumn:
    """A column of categories as codes into `labels`; -1 is a missing value. Labels of an ordered column stand in order."""

    name: str
    codes: Codes = field(repr=False)
    labels: tuple[str, ...] = field(repr=False)
    ordered: bool
    arrow: pa.DataType

    @property
    def kind(self) -> Kind:
        """Ordered or not."""
        return "ordered" if self.ordered else "category"

    @property
    def known(self) -> NDArray[np.bool_]:
        """Where a value is known."""
        return self.codes >= 0

    def take(self, rows: Rows) -> CategoryColumn:
        """The column at these rows, with the same labels."""
        return replace(self, codes=self.codes[rows])

    def restored(self, codes: Codes) -> pa.Array:
        """Codes as an Arrow column of the original type."""
        texts = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(self.labels, pa.string()))
        if pa.types.is_dictionary(self.arrow) or pa.types.is_string(self.arrow):
            return texts
        return texts.cast(pa.string()).cast(self.arrow)


@dataclass(frozen=True, eq=False)
class Records:
    """Some columns of a table as arrays, in the order asked for."""

    columns: tuple[NumberColumn | CategoryColumn, ...]
    size: int

    @classmethod
    def of(cls, table: pa.Table, schema: Schema, names: Iterable[str]) -> Records:
        """The named columns; all columns that cannot be read as numbers or categories are reported at once."""
        chosen = tuple(names)
        gone = [f"column '{name}' is not in the table" for name in chosen if name not in table.column_names]
        all_at_once(MissingColumn, "records", gone)
        columns, faults = [], []
        for name in chosen:
            try:
                columns.append(column_of(table.column(name), name, schema.columns.get(name, Column())))
            except Unsupported as error:
                faults.append(str(error))
        all_at_once(Unsupported, "records", faults)
        return cls(tuple(columns), table.num_rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @property
    def numbers(self) -> tuple[NumberColumn, ...]:
        """The columns of numbers."""
        return tuple(column for column in self.columns if isinstance(column, NumberColumn))

    @property
    def categories(self) -> tuple[CategoryColumn, ...]:
        """The columns of categories."""
        return tuple(column for column in self.columns if isinstance(column, CategoryColumn))

    def matrix(self) -> Real:
        """The columns of numbers side by side, one row per record (C order); NaN is a missing value."""
        columns = self.numbers
        joined = np.empty((self.size, len(columns)))
        for position, column in enumerate(columns):
            joined[:, position] = column.values
        return joined

    def take(self, rows: Rows) -> Records:
        """The records at these rows."""
        return Records(tuple(column.take(rows) for column in self.columns), int(rows.size))


def column_of(column: pa.ChunkedArray, name: str, described: Column) -> NumberColumn | CategoryColumn:
    """A column as its schema describes it, otherwise as its Arrow type says."""
    if described.items is not None:
        raise Unsupported(f"column '{name}' holds sets of items, neither numbers nor categories")
    kind = kind_of(column.type, described)
    if kind == "number":
        return NumberColumn(name, _numbers(column, name), column.type)
    coded = CodedText.of(column)
    labels = tuple(coded.values.to_pylist())
    if described.order is not None:
        listed = described.order if described.source == "declared" else _extended(described.order, labels)
        return _ordered(name, coded.codes, labels, listed, column.type)
    order = sorted(range(len(labels)), key=labels.__getitem__)
    place = np.empty(len(labels) + 1, dtype=np.int32)
    place[order] = np.arange(len(labels), dtype=np.int32)
    place[-1] = -1
    return CategoryColumn(name, place[coded.codes], tuple(labels[i] for i in order), False, column.type)


def kind_of(arrow: pa.DataType, described: Column) -> Kind:
    """Number, ordered category or category: by the schema, then by the Arrow type."""
    if described.order is not None:
        return "ordered"
    if described.type in ("string", "boolean", "category") or described.domain is not None:
        return "category"
    counted = pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow)
    return "number" if counted or pa.types.is_date(arrow) or pa.types.is_timestamp(arrow) else "category"


def paired(original: Records, masked: Records) -> tuple[Records, Records]:
    """Both with the same labels behind their codes, so that codes can be compared; kinds must agree column by column."""
    faults = [
        f"column '{a.name}' is {_word(a)} in the original and {_word(b)} in the masked table"
        for a, b in zip(original.columns, masked.columns, strict=True)
        if isinstance(a, NumberColumn) != isinstance(b, NumberColumn)
    ]
    all_at_once(Unsupported, "comparing masked records", faults)
    left: list[NumberColumn | CategoryColumn] = []
    right: list[NumberColumn | CategoryColumn] = []
    for a, b in zip(original.columns, masked.columns, strict=True):
        if isinstance(a, CategoryColumn) and isinstance(b, CategoryColumn):
            labels = (*dict.fromkeys((*a.labels, *b.labels)),)
            a, b = _relabelled(a, labels), _relabelled(b, labels)
        left.append(a)
        right.append(b)
    return Records(tuple(left), original.size), Records(tuple(right), masked.size)


def _relabelled(column: CategoryColumn, labels: tuple[str, ...]) -> CategoryColumn:
    index = {label: i for i, label in enumerate(labels)}
    place = np.array([*(index[label] for label in column.labels), -1], dtype=np.int32)
    return replace(column, codes=place[column.codes], labels=labels)


def _numbers(column: pa.ChunkedArray, name: str) -> Real:
    arrow = column.type
    if pa.types.is_timestamp(arrow):
        counted = column.cast(pa.timestamp("us", arrow.tz)).cast(pa.int64())
        return _floats(counted) / _MICROSECONDS_PER_DAY
    if pa.types.is_date(arrow):
        return _floats(column.cast(pa.date32()).cast(pa.int32()))
    values = _floats(column)
    if pa.types.is_integer(arrow) and values.size and np.nanmax(np.abs(values), initial=0.0) > LARGEST_WHOLE:
        raise Unsupported(f"column '{name}' has whole numbers beyond 2^53; declare it as type = \"string\" if they are codes")
    if np.isinf(values).any():
        raise Unsupported(f"column '{name}' has infinite values; set them to missing first")
    return values


def _floats(column: pa.ChunkedArray) -> Real:
    return np.array(pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy(), dtype=np.float64)


def _extended(order: Sequence[str], labels: Sequence[str]) -> tuple[str, ...]:
    """An order that was learnt binds nobody: values that it does not list stand at their place among numbers, or at the end."""
    values = (*order, *sorted(set(labels) - set(order)))
    numbers = as_numbers(values)
    return values if numbers is None else tuple(value for _, value in sorted(zip(numbers, values, strict=True)))


def _ordered(name: str, codes: Codes, labels: Sequence[str], order: Sequence[str], arrow: pa.DataType) -> CategoryColumn:
    index = {label: i for i, label in enumerate(order)}
    if any(label not in index for label in labels):
        raise Unsupported(f"column '{name}' has values that its order does not list")
    place = np.array([*(index[label] for label in labels), -1], dtype=np.int32)
    return CategoryColumn(name, place[codes], tuple(order), True, arrow)


def _word(column: NumberColumn | CategoryColumn) -> str:
    return "a number" if isinstance(column, NumberColumn) else "a category"


def magnitude(values: Real) -> float:
    """The power of two next to the largest absolute value; 1 where there is none. Missing values (NaN) are passed over."""
    largest = float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0))
    if not largest > 0.0:
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1)


def magnitudes(table: Real) -> Real:
    """The magnitude of each column."""
    return np.array([magnitude(column) for column in table.T], dtype=np.float64)


def mean_of(values: Real) -> float:
    """The mean; its sum cannot overflow."""
    unit = magnitude(values)
    return float((values / unit).mean()) * unit


def deviation_of(values: Real, *, ddof: int = 0) -> float:
    """The standard deviation, whose squares neither overflow nor vanish."""
    unit = magnitude(values)
    return float((values / unit).std(ddof=ddof)) * unit


def unit_of(values: Real) -> float:
    """The unit of a column: 1, or the power of two nearest to its largest absolute value where that is extreme."""
    largest = float(np.max(np.abs(values), initial=0.0, where=~np.isnan(values)))
    if largest == 0 or 1 / _ORDINARY <= largest <= _ORDINARY:
        return 1.0
    # Not below the least normal float: dividing by a smaller one would overflow.
    return float(np.ldexp(1.0, max(int(np.frexp(largest)[1]) - 1, -1022)))


def in_units(values: Real, unit: float) -> Real:
    """Values divided by the unit; what is too far away for a float becomes infinite."""
    if unit == 1:
        return values
    with np.errstate(over="ignore"):
        return values / unit


def in_own_units(original: Records, masked: Records) -> tuple[Records, Records]:
    """Both sides, each column of numbers in the unit of the original; refused where masked values are so far away from the
    original ones that their squares have no float in that unit."""
    left, right, faults = [], [], []
    for before, after in zip(original.columns, masked.columns, strict=True):
        if isinstance(before, NumberColumn) and isinstance(after, NumberColumn):
            unit = unit_of(before.values)
            shown = in_units(after.values, unit)
            largest = float(np.max(np.abs(in_units(before.values, unit)), initial=0.0, where=before.known)) or 1.0
            if float(np.max(np.abs(shown), initial=0.0, where=after.known)) > _ORDINARY * largest:
                faults.append(
                    f"column '{before.name}' has masked values more than {_ORDINARY:g} times as large as any original one; check "
                    "the mask, or leave the column out (columns=)"
                )
            before, after = replace(before, values=in_units(before.values, unit)), replace(after, values=shown)
        left.append(before)
        right.append(after)
    all_at_once(Unsupported, "comparing masked records", faults)
    return Records(tuple(left), original.size), Records(tuple(right), masked.size)
