"""Noise drawn by an engine: a table of quantile cells is uploaded, and each row looks up the cell that its keyed draw names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from sfumato.engines.digests.keyed_draws import EXACT_BITS, draw, exact_draw
from sfumato.engines.expressions import Choose, Expression, Literal, OneOfValues, Reference
from sfumato.engines.functions.numbers import Remainder, Rounded
from sfumato.engines.functions.plain_arithmetic import Affine
from sfumato.kernels.sampling.cells import CELLS, PARTS, WHOLE, QuantileCells
from sfumato.masking.engine_rows import EngineRows
from sfumato.masking.engine_summaries import NumberSummary

#: One step of a fraction of a cell.
_STEP = 2.0**-EXACT_BITS


@dataclass(frozen=True, eq=False)
class DrawnNumbers:
    """Rows beside a draw of a law for each of some columns; `helpers` are to be left behind."""

    rows: EngineRows = field(repr=False)
    draws: Mapping[str, Expression] = field(repr=False)
    helpers: tuple[str, ...] = field(repr=False)


def drawn_numbers(rows: EngineRows, method: str, names: Sequence[str], cells: QuantileCells) -> DrawnNumbers:
    """An independent draw of the law for every value of these columns."""
    rows, held = rows.drawn(f"{method} {name}" for name in names)
    helpers: list[str] = list(held.values())
    draws: dict[str, Expression] = {}
    for place, (name, drawn) in enumerate(zip(names, held.values(), strict=True)):
        cell, part, left, width = (f"\x00{what} {place}" for what in ("cell", "part", "left", "width"))
        first = Remainder(draw(drawn, 0), CELLS)
        divided = OneOfValues(Reference(cell), (0, CELLS - 1))
        rows = rows.with_columns({cell: first})
        rows = rows.with_columns({part: Choose(((divided, Remainder(draw(drawn, 1), PARTS)),), Literal(WHOLE))})
        table = {"\x00first": cells.first, "\x00second": cells.second, left: cells.left, width: cells.width * _STEP}
        rows = rows.looked_up(pa.table(table), {cell: "\x00first", part: "\x00second"})
        drawn_number = f"\x00number {place}"
        # the width for one step of the fraction: a power of two, by which dividing is exact
        rows = rows.with_columns({drawn_number: Affine((Reference(left), exact_draw(drawn, 2), Reference(width)))})
        draws[name] = Reference(drawn_number)
        helpers += [cell, part, left, width, drawn_number]
    return DrawnNumbers(rows, draws, tuple(helpers))


def shown_number(value: Expression, column: NumberSummary, *, whole: bool) -> tuple[Expression, pa.DataType]:
    """A masked number as it is published: whole where the column is, unless somebody wants real numbers."""
    return (Rounded(value, 0), pa.int64()) if column.whole and whole else (value, pa.float64())


def rounded_back_share(grid: float, deviation: float) -> float:
    """The expected share of values that rounding to a grid makes what they were, for normal noise of this deviation."""
    from scipy.special import ndtr

    return float(1.0 - 2.0 * ndtr(-0.5 * grid / deviation)) if deviation > 0 else 1.0
