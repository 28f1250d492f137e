"""Columns of categories that stay in an engine, by their different values and how many records have each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data.records import CategoryColumn, column_of
from sfumato.data.relation import COUNT
from sfumato.data.schema import Column
from sfumato.masking.engine_rows import EngineRows


@dataclass(frozen=True, eq=False)
class CountedColumns:
    """The different values of some columns of an engine, as columns of categories, and how many records have each."""

    values: pa.Table = field(repr=False)
    columns: tuple[CategoryColumn, ...] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, rows: EngineRows, names: Sequence[str]) -> CountedColumns:
        """Asked of the engine."""
        answer = rows.counted(names)
        read = [column_of(answer.column(name), name, rows.schema.columns.get(name, Column())) for name in names]
        columns = tuple(column for column in read if isinstance(column, CategoryColumn))
        return cls(answer.select(list(names)), columns, answer.column(COUNT).to_numpy().astype(np.int64))
