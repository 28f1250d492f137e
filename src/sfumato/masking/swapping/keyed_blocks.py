"""Rank swapping by an engine: ranks are cut into blocks at a random place, and each block is put into a random order.

A block has one rank more than a value may move, so that no value moves further. Parts of the range are counted first: a rank is
the number of values in lower parts and the place within the part, so that no engine has to put all rows into one order.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from sfumato.engines.digests.keyed_draws import draw, drawn_here
from sfumato.engines.expressions import Arithmetic, Cast, Compare, Expression, IsMissing, Literal, Not, Reference
from sfumato.engines.functions.numbers import Bucket, Remainder
from sfumato.engines.plan import AggregateColumn, Filter, Join, Named, Numbering, Order, Project
from sfumato.masking.engine_rows import EngineRows
from sfumato.masking.engine_summaries import NumberSummary

#: Parts of the range that are counted.
_PARTS = 4096
_PART, _BELOW, _PLACE, _BLOCK, _BY_RANK, _BY_CHANCE = (
    f"\x00{what}" for what in ("part", "below", "place", "block", "by rank", "by chance")
)
_THEIR_BLOCK, _THEIR_PLACE, _THEIRS = "\x00their block", "\x00their place", "\x00theirs"


def swapped_in_blocks(
    rows: EngineRows, source: EngineRows, method: str, column: NumberSummary, ranks: int, *, whole: bool
) -> tuple[EngineRows, float]:
    """The rows with the values of a column moved by at most so many ranks, and the share of values that came out as they were.

    `source` are the same rows before any column was swapped, from which values are taken. Whole numbers become real ones unless
    they stay `whole`.
    """
    purpose, name = f"{method} {column.name}", column.name
    width = ranks + 1
    offset = drawn_here("offset", 0, f"{rows.step}/{purpose}", rows.key)[0] % width
    taking, drawn = _in_blocks(rows, purpose, column, width, offset)
    giving, _ = _in_blocks(replace(source, uploads=taking.uploads), purpose, column, width, offset)
    chance = (Order(draw(drawn, 2)), Order(draw(drawn, 3)))
    by_chance = Numbering(taking.plan, _BY_CHANCE, (_BLOCK,), chance)
    present = Filter(giving.plan, Not(IsMissing(Reference(name))))
    by_rank = Numbering(present, _BY_RANK, (_BLOCK,), (Order(Reference(_PART)), Order(Reference(_PLACE))))
    theirs = Project(
        by_rank,
        (Named(_THEIR_BLOCK, Reference(_BLOCK)), Named(_THEIR_PLACE, Reference(_BY_RANK)), Named(_THEIRS, Reference(name))),
    )
    joined = Join(by_chance, theirs, ((_BLOCK, _THEIR_BLOCK), (_BY_CHANCE, _THEIR_PLACE)), kind="left", nulls="drop")
    swapped = replace(taking, plan=joined, uploads=giving.uploads)
    same = swapped.ask([AggregateColumn("same", "count", where=Compare("=", Reference(_THEIRS), Reference(name)))])
    unchanged = int(same.column(0)[0].as_py()) / column.count
    helpers = (drawn, _PART, _BELOW, _PLACE, _BLOCK, _BY_CHANCE, _THEIRS)
    theirs_as_number = (Cast(Reference(_THEIRS), "number"), pa.float64())
    shown = theirs_as_number if column.whole and not whole else (Reference(_THEIRS), rows.types[name])
    return swapped.replaced({name: shown}, helpers), unchanged


def _in_blocks(rows: EngineRows, purpose: str, column: NumberSummary, width: int, offset: int) -> tuple[EngineRows, str]:
    """The rows with the block of each value's rank, and the column of their draws."""
    rows, held = rows.drawn([purpose])
    ranked = _ranked(rows, column, held[purpose], offset)
    rank = Cast(Arithmetic("-", Arithmetic("+", Reference(_BELOW), Reference(_PLACE)), Literal(1)), "integer")
    start = Cast(Arithmetic("-", rank, Remainder(rank, width)), "integer")
    return ranked.with_columns({_BLOCK: start}), held[purpose]


def _ranked(rows: EngineRows, column: NumberSummary, drawn: str, offset: int) -> EngineRows:
    """The rows with the number of known values in lower parts of the range, and their place within the part; equal values
    stand in the order of their draws. Rows without a value have neither. The offset is added in the uploaded table: no statement
    shows it."""
    part: Expression = Bucket(Reference(column.name), column.low, column.high, _PARTS)
    counts = rows.ask([AggregateColumn("count", "count")], [Named(_PART, part)], Not(IsMissing(Reference(column.name))))
    below, total = [], offset
    listed = counts.sort_by(_PART).to_pylist()
    for each in listed:
        below.append(total)
        total += each["count"]
    table = pa.table({"\x00number": pa.array([each[_PART] for each in listed], pa.int64()), _BELOW: pa.array(below, pa.int64())})
    placed = rows.with_columns({_PART: part}).looked_up(table, {_PART: "\x00number"})
    order = (Order(Reference(column.name)), Order(draw(drawn, 0)), Order(draw(drawn, 1)))
    return replace(placed, plan=Numbering(placed.plan, _PLACE, (_PART,), order))
