"""What a mask works on: its columns and the strata of their rows, checked before anything is touched; and the table put together
again from what became of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import InputError, MissingColumn, ParameterError, SfumatoError, Unsupported, all_at_once
from sfumato.core.ranges import Each, Text
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.data.schema import Schema
from sfumato.data.texts.values import CodedText

if TYPE_CHECKING:
    from sfumato.engines.sources import TableLike
    from sfumato.masking.base import Change, Mask

Int = NDArray[np.int64]

#: The names of different columns, or of none.
DifferentColumns = Annotated[
    tuple[str, ...], Each(Text("the name of a column"), different=True, what="a list of different columns")
]

WORDS = {"number": "numbers", "ordered": "ordered categories", "category": "categories"}


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
            able = " and ".join(WORDS[kind] for kind in ("number", "ordered", "category") if kind in mask.handles)
            faults.append(
                f"column '{column.name}' holds {WORDS[column.kind]}, and {name} masks {able} only; "
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


def check_strata(mask: Mask, parts: Sequence[Records]) -> None:
    """Refuse columns with one value only in some stratum, where the method would leave them as they are."""
    if not (mask.refuses_constant and mask.refuses_constant_stratum):
        return
    name = type(mask).__name__
    still = [sum(is_constant(column) for column in columns) for columns in zip(*(part.columns for part in parts), strict=True)]
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


def assembled(
    mask: Mask, people: Microdata, table: pa.Table, records: Records, groups: list[Int], changes: list[Change]
) -> tuple[pa.Table, Int | None]:
    """The masked table and the source row behind each of its rows.

    Where every record has its row, rows stay where they were. Synthetic rows carry the masked columns and the strata only.
    """
    behind = [rows if change.rows is None else rows[change.rows] for rows, change in zip(groups, changes, strict=True)]
    unrelated = any(change.unrelated for change in changes)
    in_place = all(change.rows is None and not change.unrelated for change in changes)
    source = np.concatenate(behind)
    order = np.argsort(source, kind="stable") if in_place else np.arange(source.size)
    if unrelated:
        sizes = [_rows(change, rows) for change, rows in zip(changes, groups, strict=True)]
        source = np.concatenate([np.full(size, rows[0], dtype=np.int64) for size, rows in zip(sizes, groups, strict=True)])
        order = np.arange(source.size)
    kept = (*(mask.strata or ()), *records.names) if unrelated else people.column_names
    columns: dict[str, Any] = {}
    for name in (column for column in people.column_names if column in set(kept)):
        if name in records.names:
            columns[name] = _joined(mask, records, name, changes, order)
        else:
            columns[name] = table.column(name).take(pa.array(source[order]))
    return pa.table(columns), None if unrelated else source[order]


def joined_details(changes: list[Change]) -> Mapping[str, object]:
    """The details of one stratum as they are, of several as lists."""
    if len(changes) == 1:
        return changes[0].details
    names = dict.fromkeys(name for change in changes for name in change.details)
    return {name: [change.details.get(name) for change in changes] for name in names}


def _joined(mask: Mask, records: Records, name: str, changes: list[Change], order: Int) -> pa.Array | pa.ChunkedArray:
    column = next(column for column in records.columns if column.name == name)
    parts = [change.values[name] for change in changes]
    if any(isinstance(part, (pa.Array, pa.ChunkedArray)) for part in parts):
        chunks = [chunk for part in parts for chunk in (part.chunks if isinstance(part, pa.ChunkedArray) else [part])]
        return pa.chunked_array(chunks).take(pa.array(order))
    values = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if not _ascending(order):
        values = values[order]
    if isinstance(column, NumberColumn):
        if np.isinf(values).any():
            raise SfumatoError(f"{type(mask).__name__}: masked values of column '{name}' grew beyond what a number can hold")
        return column.restored(values, whole=mask.whole)
    return column.restored(values.astype(np.int32))


def _ascending(order: Int) -> bool:
    """Whether an order of all places leaves everything where it is."""
    return bool(np.all(order[1:] > order[:-1]))


def _rows(change: Change, rows: Int) -> int:
    return len(next(iter(change.values.values()))) if change.values else int(rows.size)
