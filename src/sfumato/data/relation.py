"""What a dataset needs from the engine that holds its rows.

A relation is a table somewhere: Arrow columns in this process, a DuckDB or PostgreSQL table, a Spark table. The
searches see only the result of one `GROUP BY` (`group`); the release is produced by one join (`recode`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.data.recoding import RecodingTable

#: Column names of a grouped result besides the grouped columns; no data column can collide, see `group`.
COUNT = "\x00count"
UNITS = "\x00units"
SHARES = "\x00shares"
WEIGHT = "\x00weight"

#: What a unit has to give away: WHOLE // m to each of the m tuples in which it has rows. Divisible by 1 to 20.
WHOLE = 232_792_560

#: Engines that hand over the rows of an unchanged table in the same order every time; elsewhere another user's scan, or the
#: schedule of a cluster, decides it.
ORDERED = frozenset({"memory", "duckdb"})


class Relation(Protocol):
    """Rows held by an engine."""

    @property
    def engine(self) -> str:
        """`memory`, `duckdb`, `postgres` or `spark`."""

    def schema(self) -> pa.Schema:
        """Column names and Arrow types."""

    def count(self) -> int:
        """The number of rows."""

    def group(self, columns: Sequence[str], *, unit: str | None = None, weight: str | None = None) -> pa.Table:
        """The distinct tuples of `columns`, missing values as values, with the columns COUNT (int64); UNITS (int64: its
        different units) and SHARES (int64: what these give to it, see `WHOLE`) when `unit` is given; and WEIGHT (float64:
        sum of weights) when `weight` is given. A row without a unit is a unit of its own.
        """

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, a batch at a time."""

    def recode(self, recoding: RecodingTable, keep: Sequence[str]) -> pa.Table:
        """The rows after a recoding: quasi-identifiers replaced, suppressed records dropped, other `keep` columns as they are."""
