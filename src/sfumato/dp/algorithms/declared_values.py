"""Columns as integers and codes, read by the schema's declarations alone.

What a value may be is declared before a row is read; numbers outside are clamped, categories outside are left out,
so that nothing that happens here depends on more than one record at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import SchemaError, Unsupported, all_at_once
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Column
from sfumato.data.texts.values import texts, valid_texts
from sfumato.dp.declaring import CURE
from sfumato.dp.protected_unit import refuse_undecided
from sfumato.engines.distinct_units import distinct_units
from sfumato.engines.sql.relation import lenient

Codes = NDArray[np.int64]

#: A number becomes a whole number of steps from the lower bound; this many steps reach the upper bound.
STEPS = 1 << 20


@dataclass(frozen=True)
class Axis:
    """A column of numbers between declared bounds."""

    name: str
    low: float
    high: float
    whole: bool = False

    @property
    def width(self) -> float:
        """The length of the declared range."""
        return self.high - self.low

    def value(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """The numbers that lie so many steps above the lower bound."""
        return self.low + np.asarray(steps, dtype=np.float64) * (self.width / STEPS)


@dataclass(frozen=True)
class Categories:
    """A column whose values are declared one by one."""

    name: str
    values: tuple[str, ...]


def declared_axis(data: Microdata, name: str, faults: list[str]) -> Axis | None:
    """The declared bounds of a column of numbers; what is wrong is appended to `faults`."""
    column = _column(data, name, faults)
    if column is None:
        return None
    kind = _number_kind(data.relation.schema().field(name).type)
    if kind is None:
        faults.append(f"column '{name}' does not hold numbers")
        return None
    if column.bounds is None or column.source != "declared":
        state = "learnt from the data, which would reveal something about it" if column.bounds is not None else "missing"
        faults.append(f"the bounds of column '{name}' are {state}. It needs bounds = [low, high]. {CURE}")
        return None
    low, high = column.bounds
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
        faults.append(f"the bounds of column '{name}' must be two finite numbers, the first below the second")
        return None
    return Axis(name, low, high, kind == "integer")


def declared_categories(data: Microdata, name: str, faults: list[str]) -> Categories | None:
    """The declared domain of a column (its `domain`, or its `order`); what is wrong is appended to `faults`."""
    column = _column(data, name, faults)
    if column is None:
        return None
    if pa.types.is_boolean(data.relation.schema().field(name).type):
        return Categories(name, ("false", "true"))
    values = column.domain or column.order
    if not values or column.source != "declared":
        state = "learnt from the data, which would reveal something about it" if values else "missing"
        faults.append(f"the domain of column '{name}' is {state}. It needs domain = [values]. {CURE}")
        return None
    if len(set(values)) < len(values):
        faults.append(f"the domain of column '{name}' names a value twice")
        return None
    return Categories(name, tuple(values))


def refuse(data: Microdata, algorithm: str, faults: Sequence[str]) -> None:
    """One error for all faults, before a row is read."""
    all_at_once(SchemaError, f"{algorithm} on '{data.schema.dataset}'", faults)


def check_unit(data: Microdata, rows: int | None, faults: list[str]) -> str | None:
    """The unit column. Without one a record is a unit, and a bound above one row says something else; with one it is needed."""
    unit = data.schema.unit
    if unit is not None and rows is None:
        faults.append(
            f"how many rows of one {unit} count is not declared: say max_rows=… (--set max_rows=…). Rows beyond that are left "
            "out, and a larger number takes more noise, so that none is assumed"
        )
    if unit is None and rows is not None and rows > 1:
        faults.append(
            f"max_rows = {rows} bounds what one unit contributes, but no column has the role unit. "
            'Give the column that names the person role = "unit", or leave max_rows at 1'
        )
    if unit is not None and unit not in data.column_names:
        faults.append(f"the unit column '{unit}' is not in the data")
    return unit


def read(data: Microdata, names: Sequence[str | None], *, for_owner: bool = False) -> pa.Table:
    """Those columns of all rows, in one scan: an engine may give the rows in another order next time.

    A cell that cannot be read as its declared type is missing, because an error would reveal that somebody has one. Whom the
    result protects must be decided (see `protected_unit`), unless it is its owner's alone.
    """
    if not for_owner:
        refuse_undecided(data.schema)
    columns = list(dict.fromkeys(name for name in names if name is not None))
    refuse_untyped(data, columns)
    relation = lenient(distinct_units(data.relation, data.schema.unit if data.schema.unit in columns else None))
    schema = pa.schema([relation.schema().field(name) for name in columns])
    return pa.Table.from_batches(list(relation.batches(columns)), schema=schema)


def refuse_untyped(data: Microdata, names: Sequence[str]) -> None:
    """Types that were found in the values may not decide what is refused or what an answer looks like."""
    untyped = [name for name in names if name in data.inferred]
    if untyped:
        raise Unsupported(
            f"the type of {', '.join(untyped)[:200]} is not declared, and was found by looking at the values, which would "
            'tell about them. It needs type = "string", "integer", "number" or another in the schema that the table is read '
            f"with. {CURE}"
        )


def clamped_numbers(column: pa.ChunkedArray, axis: Axis) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Values inside the bounds, and which rows have one."""
    floats = column.cast(pa.float64(), safe=False)
    present = floats.is_valid().to_numpy()
    numbers = floats.fill_null(axis.low).to_numpy().astype(np.float64)
    present = present & ~np.isnan(numbers)
    return np.clip(np.where(present, numbers, axis.low), axis.low, axis.high), present


def in_steps(column: pa.ChunkedArray, axis: Axis) -> tuple[Codes, NDArray[np.bool_]]:
    """Values as whole numbers from 0 to `STEPS`, and which rows have one."""
    numbers, present = clamped_numbers(column, axis)
    steps = np.rint((numbers - axis.low) / axis.width * STEPS).astype(np.int64)
    return np.clip(steps, 0, STEPS), present


def category_codes(column: pa.ChunkedArray, categories: Categories) -> Codes:
    """The position of each value in the declared domain; -1 where it is missing or not declared."""
    place = {value: code for code, value in enumerate(categories.values)}
    distinct, codes = distinct_values(column)
    table = np.array([-1 if text is None else place.get(text, -1) for text in texts(distinct)] + [-1], dtype=np.int64)
    return table[codes]


def unit_codes(table: pa.Table, unit: str | None) -> Codes:
    """A number per row that is the same for rows of the same unit, -1 where it is missing; without a unit column
    every row has its own."""
    if unit is None:
        return np.arange(table.num_rows, dtype=np.int64)
    return distinct_values(table.column(unit))[1]


def distinct_values(column: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, Codes]:
    """Different values, and for each row the position of its value, -1 where it is missing or no valid text.

    Only dictionaries are put together, with 64-bit offsets, never the texts of all rows: nobody's long or frequent
    text may make a release fail.
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if not chunks:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        return pa.array([], kind), np.zeros(0, dtype=np.int64)
    coded = [chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode() for chunk in chunks]
    every = pa.concat_arrays([_wide(chunk.dictionary) for chunk in coded])
    # A dictionary may hold a value twice, or a missing one, and two chunks share values.
    once = valid_texts(every).dictionary_encode()
    place = _positions(once.indices)
    starts = np.cumsum([0, *(len(chunk.dictionary) for chunk in coded)])
    parts = [
        np.append(place[start:stop], -1)[_positions(chunk.indices)]
        for chunk, start, stop in zip(coded, starts, starts[1:], strict=False)
    ]
    return once.dictionary, np.concatenate(parts)


def _wide(values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type) or pa.types.is_string_view(values.type):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if pa.types.is_binary(values.type) else values


def _positions(indices: pa.Array) -> Codes:
    return np.asarray(indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _column(data: Microdata, name: str, faults: list[str]) -> Column | None:
    if name not in data.column_names:
        faults.append(f"there is no column '{name}' in the data")
        return None
    if name not in data.schema.columns:
        faults.append(f"column '{name}' is not described in the schema")
        return None
    refuse_untyped(data, [name])
    return data.schema.columns[name]


def _number_kind(kind: pa.DataType) -> str | None:
    if pa.types.is_integer(kind):
        return "integer"
    return "number" if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else None
