"""Which columns a mask works on, checked before anything is touched; and the strata it works in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import InputError, MissingColumn, ParameterError, Unsupported, all_at_once
from sfumato.core.ranges import Each, Text
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.data.schema import Schema
from sfumato.data.values import CodedText

if TYPE_CHECKING:
    from sfumato.masking.base import Mask

#: The names of different columns, or of none.
DifferentColumns = Annotated[
    tuple[str, ...], Each(Text("the name of a column"), different=True, what="a list of different columns")
]

_WORDS = {"number": "numbers", "ordered": "ordered categories", "category": "categories"}


def microdata(data: Any) -> Microdata:
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
        elif mask.refuses_constant and _constant(column):
            faults.append(f"column '{column.name}' has one value only, which {name} cannot change; leave it out of columns=(…)")
    all_at_once(Unsupported, name, faults)


def check_strata(mask: Mask, parts: Sequence[Records]) -> None:
    """Refuse columns with one value only in some stratum, where the method would leave them as they are."""
    if not (mask.refuses_constant and mask.refuses_constant_stratum):
        return
    name = type(mask).__name__
    still = [sum(_constant(column) for column in columns) for columns in zip(*(part.columns for part in parts), strict=True)]
    all_at_once(
        Unsupported,
        name,
        (
            f"column '{column.name}' does not vary within {count:,} of {len(parts):,} strata, where {name} would leave it as it "
            "is; merge strata, or leave it out of columns=(…)"
            for column, count in zip(parts[0].columns, still, strict=True)
            if count
        ),
    )


def strata_of(table: pa.Table, strata: tuple[str, ...] | None, masked: tuple[str, ...]) -> list[NDArray[np.int64]]:
    """The rows of each stratum, in the order of the table; one stratum of all rows when none are named."""
    if not strata:
        return [np.arange(table.num_rows, dtype=np.int64)]
    missing = [f"stratum column '{name}' is not in the data" for name in strata if name not in table.column_names]
    all_at_once(MissingColumn, "strata", missing)
    both = sorted(set(strata) & set(masked))
    if both:
        raise ParameterError(f"column '{both[0]}' cannot be masked and be a stratum at once")
    key = np.zeros(table.num_rows, dtype=np.int64)
    for name in strata:
        codes = CodedText.of(table.column(name)).codes.astype(np.int64) + 1
        key = np.unique(key * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].reshape(-1)
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def _constant(column: NumberColumn | CategoryColumn) -> bool:
    values = column.values if isinstance(column, NumberColumn) else column.codes
    known = values[column.known]
    return bool(known.size and np.all(known == known[0]))
