"""Several Parquet files as one table, read by DuckDB where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engines.duckdb.relation import DuckDBRelation

if TYPE_CHECKING:
    from sfumato.engines.sql.compile import PhysicalTable


class ParquetFiles(DuckDBRelation):
    """Parquet files with the same columns, one after the other."""

    def __init__(self, files: Sequence[Path], *, threads: int | None = None, memory_limit: str | None = None) -> None:
        super().__init__(files[0], threads=threads, memory_limit=memory_limit)
        self._paths = tuple(files)

    def __repr__(self) -> str:
        return f"ParquetFiles({len(self._paths)} files)"

    @property
    def _files(self) -> tuple[Path, ...]:
        return self._paths

    @property
    def _database(self) -> bool:
        return False

    @cached_property
    def _source(self) -> PhysicalTable:
        return self._parquet(self._paths)
