"""Generated records and simple masks of them, for measures of masked data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.data.masked import Masked
from sfumato.data.microdata import Microdata


def microdata(columns: Mapping[str, Any]) -> Microdata:
    """A table whose columns are all quasi-identifiers."""
    table = pa.table(dict(columns))
    return sf.read(table, sf.Schema.of(quasi=table.column_names))


def people(size: int = 400, seed: int = 7) -> Microdata:
    """Three numbers that depend on each other, a whole number and two categories that depend on them."""
    draw = np.random.default_rng(seed)
    age = draw.integers(18, 90, size)
    income = np.exp(draw.normal(7, 0.5, size)) + 10 * age
    spent = 0.6 * income + draw.normal(0, 200, size)
    sex = draw.choice(["f", "m"], size)
    town = np.where(age + draw.normal(0, 10, size) > 50, "old", np.where(income > 2000, "rich", "other"))
    return microdata({"age": age.astype(float), "income": income, "spent": spent, "sex": sex, "town": town})


def noisy(data: Microdata, amount: float, seed: int = 0) -> pa.Table:
    """Every number with independent normal noise of that many deviations."""
    draw = np.random.default_rng(seed)
    table = data.table()
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            values = column.to_numpy(zero_copy_only=False).astype(float)
            values = values + amount * np.nanstd(values) * draw.normal(size=values.size)
            columns[name] = pa.array(values, mask=np.isnan(values))
        else:
            columns[name] = column
    return pa.table(columns)


def with_gaps(data: Microdata, share: float, seed: int = 1) -> Microdata:
    """The same table with that share of the cells missing."""
    draw = np.random.default_rng(seed)
    table = data.table()
    columns = {}
    for name in table.column_names:
        values = table.column(name).to_pylist()
        gone = draw.random(len(values)) < share
        columns[name] = [None if lost else value for value, lost in zip(values, gone.tolist(), strict=True)]
    return data_like(data, pa.table(columns))


def data_like(data: Microdata, table: pa.Table) -> Microdata:
    return sf.read(table, data.schema)


def synthetic(data: Microdata, table: pa.Table) -> Masked:
    """The table as one with no record behind its rows."""
    return Masked(table, data.schema, tuple(table.column_names), None)


def taken(data: Microdata, rows: Sequence[int] | np.ndarray[Any, Any], table: pa.Table | None = None) -> Masked:
    """Some rows (of the table, or of the data themselves), each with the record behind it."""
    picked = np.asarray(rows, dtype=np.int64)
    return Masked((table or data.table()).take(pa.array(picked)), data.schema, tuple(data.column_names), picked)
