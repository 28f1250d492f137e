"""Which columns a mask works on, checked before anything is touched, and how large their numbers are.

Dividing by a power of two is exact: in units of the magnitude squares and sums neither overflow nor vanish.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import InputError, MissingColumn, Unsupported, all_at_once
from sfumato.core.ranges import Each, Text
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.data.schema import Schema

if TYPE_CHECKING:
    from sfumato.engines.sources import TableLike
    from sfumato.masking.base import Mask


#: The names of different columns, or of none.
DifferentColumns = Annotated[
    tuple[str, ...], Each(Text("the name of a column"), different=True, what="a list of different columns")
]

_WORDS = {"number": "numbers", "ordered": "ordered categories", "category": "categories"}


def microdata(data: TableLike) -> Microdata:
    """Microdata, or anything `read` takes, every column of which is then plain."""
    if isinstance(data, Microdata):
        return data
    from sfumato.engines.sources import read

    return read(data)


def in_memory(table: pa.Table, schema: Schema) -> Microdata:
    """A table that a mask made, under the schema of the original; a column may have become one of real numbers or words."""
    from sfumato.engines.memory import MemoryRelation

    return Microdata(
        MemoryRelation(table), schema.replace(columns={n: c for n, c in schema.columns.items() if n in table.column_names})
    )


def chosen_columns(mask: Mask, people: Microdata) -> tuple[str, ...]:
    """The columns named, or the quasi-identifiers; for synthetic data all that may be published."""
    name = type(mask).__name__
    if mask.columns is not None:
        missing = [f"column '{column}' is not in the data" for column in mask.columns if column not in people.column_names]
        all_at_once(MissingColumn, name, missing)
        return mask.columns
    chosen = mask.columns_of(people.schema, people.column_names)
    if not chosen:
        raise InputError(
            f"{name}: the schema names no quasi-identifier to mask. Give columns=(…), or a schema with the role 'quasi'."
        )
    return chosen


def check_columns(mask: Mask, records: Records) -> None:
    """Refuse columns of a kind the method cannot mask, without any value, or with one value where that would stay as it is."""
    name = type(mask).__name__
    if records.size == 0:
        raise InputError(f"{name}: the table has no records")
    faults = []
    for column in records.columns:
        if column.kind not in mask.handles:
            able = " and ".join(_WORDS[kind] for kind in ("number", "ordered", "category") if kind in mask.handles)
            faults.append(
                f"column '{column.name}' holds {_WORDS[column.kind]}, and {name} masks {able} only; "
                "leave it out of columns=(…) and mask it by another method"
            )
        elif not column.known.any():
            faults.append(f"column '{column.name}' has no values at all; leave it out of columns=(…)")
        elif mask.refuses_constant and is_constant(column):
            faults.append(f"column '{column.name}' has one value only, which {name} cannot change; leave it out of columns=(…)")
    all_at_once(Unsupported, name, faults)


def is_constant(column: NumberColumn | CategoryColumn) -> bool:
    """Whether all its known values are one."""
    present = column.present if isinstance(column, NumberColumn) else column.codes[column.known]
    return bool(present.size and np.all(present == present[0]))


Real = NDArray[np.float64]


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
