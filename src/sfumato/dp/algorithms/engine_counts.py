"""Counts of declared cells that the engine counts: only cells come here.

The rows of each unit are chosen once for all cells (`engines.cell_counts`), with a salt that is drawn here and used for one run.
See docs/theory/marginals-in-engines.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from sfumato.core.randomness import Randomness
from sfumato.data.microdata import Microdata
from sfumato.dp.algorithms.declared_values import refuse_untyped
from sfumato.dp.protected_unit import refuse_undecided
from sfumato.engines.cell_counts import Code, CodedRows, Counts, KeptRows, block_counts, coded_rows, starts
from sfumato.engines.class_queries import ROWS
from sfumato.engines.distinct_units import distinct_units
from sfumato.engines.snapshots import held_for
from sfumato.engines.sql.relation import SqlRelation, lenient

#: The cells that one query may answer with: 16 bytes each while they arrive.
ANSWER_CELLS = 1 << 22
#: The blocks of columns that one query counts.
ANSWER_BLOCKS = 64

Block = tuple[int, ...]


def rows_in_engine(data: Microdata, names: Sequence[str | None], *, for_owner: bool = False) -> SqlRelation | None:
    """The relation where it answers plans in an engine of its own, under the rules of `declared_values.read`; else None."""
    relation = getattr(data.relation, "held", data.relation)
    if not isinstance(relation, SqlRelation):
        return None
    if not for_owner:
        refuse_undecided(data.schema)
    columns = [name for name in names if name is not None]
    refuse_untyped(data, columns)
    readable = lenient(distinct_units(relation, data.schema.unit if data.schema.unit in columns else None))
    return readable if isinstance(readable, SqlRelation) else None


def fresh_salt(source: Randomness) -> str:
    """What decides which rows of a unit are kept: a secret of one run."""
    return source.bytes(16).hex()


def cell_counts(relation: SqlRelation, codes: Sequence[Code], kept: KeptRows) -> Counts:
    """How many rows each combination of the codes has, as one array of all cells."""
    rows = coded_rows(relation.fields, codes, kept)
    every = tuple(range(len(codes)))
    return block_counts(relation.run(rows.counted([every]), rows.uploads), rows.sizes, [every])[0]


def counted_blocks(relation: SqlRelation, rows: CodedRows, blocks: Sequence[Block]) -> Iterator[tuple[Block, Counts]]:
    """The cells of each block of columns, in as few passes as their number allows, about one state of the table."""
    asked = list(_queries(rows.sizes, blocks))
    plans = [rows.counted(some) for some in asked]
    with ExitStack() as stack:
        held = relation
        if len(plans) > 1:
            (still,) = held_for(stack, [(relation, [(ROWS, plan) for plan in plans])])
            held = still if isinstance(still, SqlRelation) else relation
        for some, plan in zip(asked, plans, strict=True):
            counts = block_counts(held.run(plan, rows.uploads), rows.sizes, some)
            yield from zip(some, counts, strict=True)


def _queries(sizes: Sequence[int], blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks whose cells arrive together."""
    together: list[Block] = []
    for block in blocks:
        if together and (len(together) == ANSWER_BLOCKS or starts(sizes, [*together, block])[-1] > ANSWER_CELLS):
            yield together
            together = []
        together.append(block)
    if together:
        yield together
