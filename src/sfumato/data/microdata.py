"""Microdata: one record per person (or per event of a person), with a schema, as they are and as they were released.

Macrodata, by contrast, are aggregates (counts, sums, tables); they have rooms of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato.core.texts import counted
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.relation import Relation
from sfumato.data.schema import Schema

if TYPE_CHECKING:
    import numpy as np
    import polars
    import pyarrow as pa
    from numpy.typing import NDArray


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


@dataclass(frozen=True)
class ShownValue:
    """What one released text stands for: its loss in [0, 1], the domain values below it, the leaves listed below it,
    and how many hierarchy levels were climbed at most."""

    loss: float
    size: float
    leaves: frozenset[str | None] = field(repr=False)
    steps: int = 0
    bounds: tuple[float, float] | None = None  # half-open numeric extent of a range made by partitioning


@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """The rows that were published.

    `records` is how many records the original had, so that `records - table.num_rows` were suppressed. `ranges`
    describes shown values that are no hierarchy node (ranges made by partitioning), by column and text. `known_cells` says, by
    column, how many records of the original have a value, where that was counted. Where rows are known by their groups,
    `counts[i]` says for how many records row i stands; None: for one each.
    """

    table: pa.Table = field(repr=False)
    schema: Schema = field(repr=False)
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    records: int = 0
    ranges: Mapping[str, Mapping[str, ShownValue]] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    known_cells: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    counts: NDArray[np.int64] | None = field(default=None, repr=False)

    @property
    def released_records(self) -> int:
        """Records in the release."""
        return int(self.table.num_rows if self.counts is None else self.counts.sum())

    @property
    def suppressed(self) -> int:
        """Records of the original that are not in the release."""
        return max(self.records - self.released_records, 0)

    @cached_property
    def shown(self) -> Mapping[str, Mapping[str | None, ShownValue]]:
        """For every quasi-identifier with a hierarchy: what each text that may appear stands for.

        A text that names nodes on several levels is read as the most general of them.
        """
        values: dict[str, Mapping[str | None, ShownValue]] = {}
        for name, tree in self.hierarchies.items():
            meanings = _node_values(tree)
            meanings.update(self.ranges.get(name, {}).items())
            values[name] = meanings
        return values


def _node_values(tree: Hierarchy) -> dict[str | None, ShownValue]:
    values: dict[str | None, ShownValue] = {}
    for level in range(tree.height + 1):
        below: dict[int, list[int]] = {}
        for position, node in enumerate(tree.node_of[level].tolist()):
            below.setdefault(node, []).append(position)
        for node, positions in below.items():
            values[tree.labels[node]] = ShownValue(
                loss=float(tree.loss[node]),
                size=float(tree.sizes[node]),
                leaves=frozenset(tree.leaves[i] for i in positions),
                steps=int(max(tree.steps[level, i] for i in positions)),
            )
    return values
