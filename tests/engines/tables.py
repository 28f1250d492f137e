"""Tables that are hard on engines, and how results of different engines are compared."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.data.recoding import RecodingTable

DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)

ODD = "na\"me; DROP TABLE people; --'`\\"


def nasty_table() -> pa.Table:
    """Nulls, NaN, negative zero, odd names, Unicode, leading zeros, dates, equal rows, repeated units."""
    columns: dict[str, Any] = {
        "marital-status": ["single", "wed", None, "single", "", "single", "wed", "wed"],
        "Country": ["NO", "NO", "FI", "NO", None, "NO", "SE", "NO"],
        "country": ["Å", "ångström", "日本", "Å", "a\u0301", "Å", "🙂", "z"],
        ODD: ["01234", "1234", "x\ny", "01234", 'quo"te', "01234", "back\\slash", "tab\t,'"],
        "größe in cm": [1.5, float("nan"), None, 1.5, -0.0, 1.5, float("inf"), 0.0],
        "age": [39, 50, None, 39, -1, 39, 2**62, 50],
        "member": [True, None, False, True, True, True, False, None],
        "born": [DAY, None, datetime.date(1899, 1, 1), DAY, DAY, DAY, datetime.date(9999, 12, 31), None],
        "seen": [MOMENT, None, MOMENT, MOMENT, None, MOMENT, datetime.datetime(2030, 1, 1), MOMENT],
        "plain": ["b", "a", "c", "a", "é", "B", None, "a"],
        "unit": ["u1", "u1", None, "u2", "u3", "u1", None, "u3"],
        "weight": [1, 2, 3, 4, None, 6, 7, 8],
        "x" * 63: [1, 2, 3, 4, 5, 6, 7, 8],
    }
    return pa.table(columns)


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as a sorted list, so that order does not matter."""
    columns = [column.to_pylist() for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr)


def recoding_of(
    grouped: pa.Table,
    keys: Sequence[str],
    quasi: Sequence[str],
    klass: Sequence[int],
    *,
    labels: Sequence[str | None] = ("*", "a–m", None),
) -> RecodingTable:
    """A recoding with one entry per key that shows `labels` in every quasi-identifier."""
    cells = grouped.num_rows
    return RecodingTable(
        keys=grouped.select(list(keys)),
        quasi=tuple(quasi),
        key=np.arange(cells),
        first=np.zeros(cells, dtype=np.int64),
        count=grouped.column("\x00count").to_numpy(),
        klass=np.asarray(klass, dtype=np.int64),
        classes=pa.table({name: pa.array(labels, pa.string()).dictionary_encode() for name in quasi}),
        split=False,
    )


def by_value(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The table in an order that depends on values alone, so that all engines speak of the same cell."""
    columns = [table.column(name).to_pylist() for name in names]
    order = sorted(range(table.num_rows), key=lambda row: [repr(column[row]) for column in columns])
    return table.take(pa.array(order, pa.int64()))
