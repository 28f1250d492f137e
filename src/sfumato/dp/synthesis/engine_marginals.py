"""Marginals that the engine counts: the columns that are looked at together are covered by a few blocks, counted in one pass.

A block is a set of columns with at most `BLOCK_CELLS` cells, by the declared sizes alone. Every marginal that may be asked for
lies in one and is added up from it here. A table of few declared cells is one block: one grouping of its cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.dp.algorithms.engine_codes import also_numbers, equal_parts, listed_code, whole_parts
from sfumato.dp.algorithms.engine_counts import Block, counted_blocks
from sfumato.dp.synthesis.coded_columns import DomainColumn, ListedValues, Ranges, compared
from sfumato.dp.synthesis.declared_domain import Domain
from sfumato.dp.synthesis.junction_tree import Columns, cells
from sfumato.engines.cell_counts import Code, CodedRows, Counts, KeptRows, coded_rows
from sfumato.engines.expressions import Kind
from sfumato.engines.sql.relation import SqlRelation

#: The cells of a block of columns, unless a single marginal has more.
BLOCK_CELLS = 1 << 18


def engine_codes(domain: Domain, kinds: Sequence[Kind], relation: SqlRelation | None = None) -> list[Code] | None:
    """The columns of a domain as codes that an engine computes; None where it cannot.

    With a relation, listed numbers are also found where its texts write them in another way.
    """
    codes = [_code(column, kind, relation) for column, kind in zip(domain.columns, kinds, strict=True)]
    every = [code for code in codes if code is not None]
    return every if len(every) == len(codes) else None


def _code(column: DomainColumn, kind: Kind, relation: SqlRelation | None) -> Code | None:
    other = column.known if column.missing else None
    if isinstance(column, ListedValues):
        places = column.places()
        if kind == "string" and relation is not None:
            places = also_numbers(relation, column.name, places, compared)
        return listed_code(column.name, kind, places, column.size, other)
    if not isinstance(column, Ranges):
        return None
    if column.kind == "integer":
        return whole_parts(column.name, kind, int(column.low), int(column.high), column.known, column.size, other)
    return equal_parts(column.name, kind, column.low, column.high, column.known, column.size, other)


class EngineMarginals:
    """Counts of combinations of columns, of the rows that an engine holds. What was counted is kept until the end of a run."""

    def __init__(self, relation: SqlRelation, codes: Sequence[Code], kept: KeptRows) -> None:
        self._relation = relation
        self._rows: CodedRows = coded_rows(relation.fields, codes, kept)
        self._held: dict[Columns, _CountTable] = {}

    def prepare(self, column_sets: Iterable[Columns]) -> None:
        """Count these combinations; those that were counted before are not counted again."""
        sizes = self._rows.sizes
        wanted = [columns for columns in dict.fromkeys(column_sets) if columns not in self._held]
        within: dict[Block, list[Columns]] = {}
        for columns, block in zip(wanted, covering_blocks(wanted, sizes), strict=True):
            within.setdefault(block, []).append(columns)
        for block, counts in counted_blocks(self._relation, self._rows, list(within)):
            table = counts.reshape([sizes[place] for place in block])
            for columns in within[block]:
                others = tuple(axis for axis, place in enumerate(block) if place not in columns)
                self._held[columns] = _CountTable.of(table.sum(axis=others, dtype=np.int64))

    def marginal(self, columns: Columns) -> NDArray[np.int64]:
        """Records per combination of these columns."""
        if columns not in self._held:
            self.prepare([columns])
        return self._held[columns].table()

    def marginals(self, column_sets: Iterable[Columns]) -> Iterator[tuple[Columns, NDArray[np.int64]]]:
        """`marginal` of many combinations."""
        wanted = list(column_sets)
        self.prepare(wanted)
        for columns in wanted:
            yield columns, self.marginal(columns)

    def total(self) -> int:
        """How many records are counted."""
        return int(self.marginal((0,)).sum())


@dataclass(frozen=True, eq=False)
class _CountTable:
    """A table of counts; where most are 0, the others with their places."""

    shape: tuple[int, ...]
    counts: Counts
    places: Counts | None

    @classmethod
    def of(cls, table: Counts) -> _CountTable:
        flat = table.reshape(-1)
        places = np.flatnonzero(flat)
        if 2 * places.size < flat.size:
            return cls(table.shape, flat[places], places)
        return cls(table.shape, flat, None)

    def table(self) -> NDArray[np.int64]:
        if self.places is None:
            return self.counts.reshape(self.shape)
        flat = np.zeros(int(np.prod(self.shape)), dtype=np.int64)
        flat[self.places] = self.counts
        return flat.reshape(self.shape)


def covering_blocks(column_sets: Sequence[Columns], sizes: Sequence[int]) -> list[Block]:
    """For each combination the block of columns that it lies in: each time the block that it adds the fewest cells to."""
    blocks: list[set[int]] = []
    chosen: list[int] = []
    for columns in column_sets:
        own = set(columns)
        best, best_cells = -1, 0
        for place, block in enumerate(blocks):
            if own <= block:
                best = place
                break
            joined = cells(tuple(block | own), sizes)
            if joined <= BLOCK_CELLS and (best < 0 or joined < best_cells):
                best, best_cells = place, joined
        if best < 0:
            best = len(blocks)
            blocks.append(set())
        blocks[best] |= own
        chosen.append(best)
    return [tuple(sorted(blocks[place])) for place in chosen]
