"""Putting strata together again: the masked table, the records behind its rows, and what is told about the method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.certificate import plain
from sfumato.core.errors import SfumatoError
from sfumato.data.microdata import Microdata
from sfumato.data.records import NumberColumn, Records
from sfumato.masking.told import BY_STRATUM

if TYPE_CHECKING:
    from sfumato.masking.base import Change, Mask

Int = NDArray[np.int64]


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


def transparency_of(mask: Mask, records: Records, changes: list[Change]) -> dict[str, Any]:
    """Method, parameters and columns; what each stratum adds is told once where it is the same, otherwise stratum by
    stratum."""
    told: dict[str, Any] = {"method": mask.described(), "masked_columns": list(records.names)}
    for name in dict.fromkeys(name for change in changes for name in change.published):
        values = [plain(change.published.get(name)) for change in changes]
        told[name] = values[0] if all(value == values[0] for value in values) else {BY_STRATUM: values}
    return told


def joined_details(changes: list[Change]) -> Mapping[str, Any]:
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
    values = np.concatenate(parts)[order]
    if isinstance(column, NumberColumn):
        known = ~np.isnan(values)
        if not np.isfinite(values[known]).all():
            raise SfumatoError(f"{type(mask).__name__}: masked values of column '{name}' grew beyond what a number can hold")
        return column.restored(values, whole=mask.whole)
    return column.restored(values.astype(np.int32))


def _rows(change: Change, rows: Int) -> int:
    return len(next(iter(change.values.values()))) if change.values else int(rows.size)
