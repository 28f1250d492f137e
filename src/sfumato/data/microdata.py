"""Microdata: one record per person (or per event of a person), with a schema.

Macrodata, by contrast, are aggregates (counts, sums, tables); they have rooms of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sfumato.core.texts import counted
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.relation import Relation
from sfumato.data.schema import Schema

if TYPE_CHECKING:
    import polars
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class Microdata:
    """Rows on an engine plus their schema.

    `description` names the source without secrets; `notes` say what reading detected (separator, encoding, types).
    `inferred` are the columns whose type was found by looking at their values, because nobody had declared it when they
    were read: whoever promises that nothing depends on one record may not use them.
    """

    relation: Relation = field(repr=False)
    schema: Schema = field(repr=False)
    description: str = "table"
    notes: tuple[str, ...] = ()
    inferred: frozenset[str] = frozenset()
    #: Hierarchies already built over these rows, by column: files are read and trees assembled once.
    hierarchies: dict[str, Hierarchy] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        rows = counted(len(self), "row") if self.relation.engine == "memory" else f"rows on {self.relation.engine}"
        return f"Microdata('{self.schema.dataset}', {rows}, {counted(len(self.column_names), 'column')}, from {self.description})"

    def __len__(self) -> int:
        return self.relation.count()

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns as the engine has them."""
        return tuple(self.relation.schema().names)

    def table(self) -> pa.Table:
        """All rows as an Arrow table in memory; sets of items are written in one way, so that equal ones are equal."""
        import pyarrow as pa

        from sfumato.data.texts.values import sorted_sets

        return sorted_sets(pa.Table.from_batches(list(self.relation.batches()), schema=self.relation.schema()), self.schema)

    def to_pandas(self) -> Any:  # pandas has no types
        """All rows as a pandas DataFrame."""
        from sfumato.data.pandas_frames import pandas_frame

        return pandas_frame(self.table())

    def to_polars(self) -> polars.DataFrame:
        """All rows as a polars DataFrame."""
        from sfumato.core.extras import require_extra

        require_extra("polars", "polars", "to_polars()")
        import polars

        frame = polars.from_arrow(self.table())
        assert isinstance(frame, polars.DataFrame)  # noqa: S101  (for the type checker: a table makes no series)
        return frame

    def with_schema(self, schema: Schema) -> Microdata:
        """The same rows under another schema."""
        schema.require_columns(self.column_names, self.description)
        return replace(self, schema=schema)
