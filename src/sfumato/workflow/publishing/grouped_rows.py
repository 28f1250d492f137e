"""Rows that are elsewhere, as this process knows them: by their groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NoReturn

import numpy as np
import pyarrow as pa

from sfumato.core.errors import Unsupported
from sfumato.data.texts.values import texts
from sfumato.measures.guarantees.grouped import GroupedTable


@dataclass(frozen=True)
class Tied:
    """Of a column of pseudonyms: whether one has several records, and whether one has records in several classes."""

    several_records: bool
    several_classes: bool


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows that are elsewhere, as this process knows them: groups of some columns, the names of all, what pseudonyms tie, and how
    many rows were not grouped."""

    groups: GroupedTable = field(repr=False)
    column_names: tuple[str, ...]
    pseudonyms: Mapping[str, Tied] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    ungrouped: int = 0

    @classmethod
    def without_groups(cls, rows: int, column_names: tuple[str, ...], pseudonyms: Mapping[str, Tied]) -> GroupedRows:
        """Rows of which nothing is promised that groups could show: masked ones may be as many groups as rows."""
        nothing = GroupedTable(pa.table({}), np.zeros(0, dtype=np.int64))
        return cls(nothing, column_names, pseudonyms, rows)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return self.groups.records + self.ungrouped

    @property
    def num_columns(self) -> int:
        """How many columns the rows have."""
        return len(self.column_names)

    def to_pandas(self) -> NoReturn:
        """Refused: the rows are elsewhere."""
        self._refuse()

    def to_polars(self) -> NoReturn:
        """Refused: the rows are elsewhere."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise Unsupported(
            "the rows of this release stayed in their engine and are where destination= put them: read the Parquet files in "
            "public/data of its folder, or its table"
        )

    def tied(self, name: str, *, people: bool) -> bool:
        """Whether pseudonyms of a column tie records together: in several classes where `people` are counted, else at all."""
        tied = self.pseudonyms[name]
        return tied.several_classes if people else tied.several_records


def texts_shown(rows: pa.Table | GroupedRows, name: str) -> set[str | None]:
    """The different values that a column shows, as texts; of rows that are elsewhere the column must be one that was grouped."""
    table = rows.groups.table if isinstance(rows, GroupedRows) else rows
    return set(texts(table.column(name).unique()))
