"""Categories changed by an engine: the law becomes small tables that each row looks its new category up in.

A law that keeps a category or moves to any other needs the number of each category; a matrix becomes cells of two categories each
(`kernels.sampling.cells`), chosen and divided by keyed draws. All decisions compare whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data.records import CategoryColumn
from sfumato.engines.digests.keyed_draws import DRAW_BITS, draw
from sfumato.engines.expressions import Arithmetic, Cast, Choose, Compare, Expression, IsMissing, Literal, Reference
from sfumato.engines.functions.numbers import Remainder
from sfumato.kernels.sampling.cells import alias_cells
from sfumato.masking.counted_columns import CountedColumns
from sfumato.masking.engine_rows import EngineRows
from sfumato.masking.pram.transition_law import SUPPRESSED, TransitionLaw, Variable, holds_labels

#: Which draw of a column decides what: whether it stays or which cell, what it becomes, whether it is suppressed.
_FIRST, _SECOND, _HIDDEN = range(3)


def threshold(probability: float) -> int:
    """The whole number below which a draw lies with this probability."""
    return round(Fraction(probability) * (1 << DRAW_BITS))


def changed(rows: EngineRows, counted: CountedColumns, variable: Variable, law: TransitionLaw) -> EngineRows:
    """The rows with the columns of the variable drawn anew."""
    names = [column.name for column in variable.columns]
    rows, held = rows.drawn([f"Pram {variable.name}"])
    drawn = held[f"Pram {variable.name}"]
    types = [_type(column, variable, law, place) for place, column in enumerate(variable.columns)]
    if law.matrix is not None:
        rows, values, helpers = _by_matrix(rows, counted, variable, law, drawn, types)
    else:
        rows, values, helpers = _by_staying(rows, counted, variable, law, drawn, types)
    if law.suppress:
        hit = Compare("<", draw(drawn, _HIDDEN), Literal(threshold(law.suppress)))
        absent = IsMissing(Reference(names[0]))
        values = [Choose(((absent, Literal(None, "string")), (hit, Literal(SUPPRESSED))), value) for value in values]
    masked = {name: (value, arrow) for name, value, arrow in zip(names, values, types, strict=True)}
    return rows.replaced(masked, (drawn, *helpers))


def _by_staying(
    rows: EngineRows, counted: CountedColumns, variable: Variable, law: TransitionLaw, drawn: str, types: Sequence[pa.DataType]
) -> tuple[EngineRows, list[Expression], list[str]]:
    """Each category stays with one probability, otherwise it becomes any other."""
    code, new = "\x00code", "\x00new"
    keys = {f"\x00was {place}": counted.values.column(place) for place in range(counted.values.num_columns)}
    present = _present(counted)
    codes = pa.table({**keys, code: pa.array(variable.codes.astype(np.int64))}).filter(pa.array(present))
    on = {column.name: key for column, key in zip(variable.columns, keys, strict=True)}
    rows = rows.looked_up(codes, on)
    became: Expression = Reference(code)
    stay = 1.0 if law.stay is None else law.stay
    if stay < 1:
        other = Remainder(draw(drawn, _SECOND), len(law.inputs) - 1)
        next_one = Cast(Arithmetic("+", other, Literal(1)), "integer")
        stays = Compare("<", draw(drawn, _FIRST), Literal(threshold(stay)))
        missing = (IsMissing(Reference(code)), Literal(None, "integer"))
        became = Choose((missing, (stays, Reference(code)), (Compare("<", other, Reference(code)), other)), next_one)
    rows = rows.with_columns({new: became})
    labels = _labels(law.inputs, types)
    numbers = pa.array(np.arange(len(law.inputs), dtype=np.int64))
    shown = {f"\x00shown {place}": labels[place] for place in range(len(types))}
    rows = rows.looked_up(pa.table({"\x00number": numbers, **shown}), {new: "\x00number"})
    return rows, [Reference(name) for name in shown], [code, new, *shown]


def _by_matrix(
    rows: EngineRows, counted: CountedColumns, variable: Variable, law: TransitionLaw, drawn: str, types: Sequence[pa.DataType]
) -> tuple[EngineRows, list[Expression], list[str]]:
    """Each category has a row of cells, of two categories each."""
    matrix: Any = law.matrix
    places = np.flatnonzero(_present(counted))
    entries = {int(place): alias_cells(matrix[variable.codes[place]].tolist(), DRAW_BITS) for place in places}
    width = len(next(iter(entries.values()), [None]))
    outputs = law.reached
    labels = _labels(outputs, types)
    was = pa.array(np.repeat(places, width))
    own = pa.array([cell.own for cells in entries.values() for cell in cells], pa.int64())
    other = pa.array([cell.other for cells in entries.values() for cell in cells], pa.int64())
    table: dict[str, Any] = {
        f"\x00was {place}": counted.values.column(place).take(was) for place in range(counted.values.num_columns)
    }
    on = {column.name: key for column, key in zip(variable.columns, table, strict=True)}
    table["\x00number"] = pa.array(np.tile(np.arange(width, dtype=np.int64), places.size))
    limits = [cell.threshold for cells in entries.values() for cell in cells]
    table["\x00below"] = pa.array(limits, pa.int64())
    for place in range(len(types)):
        table[f"\x00own {place}"] = labels[place].take(own)
        table[f"\x00other {place}"] = labels[place].take(other)
    rows = rows.with_columns({"\x00cell": Remainder(draw(drawn, _FIRST), width)})
    rows = rows.looked_up(pa.table(table), {**on, "\x00cell": "\x00number"})
    below = Compare("<", draw(drawn, _SECOND), Reference("\x00below"))
    values: list[Expression] = [
        Choose(((below, Reference(f"\x00own {place}")),), Reference(f"\x00other {place}")) for place in range(len(types))
    ]
    helpers = ["\x00cell", "\x00below", *(f"\x00{which} {place}" for which in ("own", "other") for place in range(len(types)))]
    return rows, values, helpers


def _present(counted: CountedColumns) -> NDArray[np.bool_]:
    return np.asarray(np.all([column.codes >= 0 for column in counted.columns], axis=0), dtype=np.bool_)


def _labels(outputs: Sequence[Any], types: Sequence[pa.DataType]) -> list[pa.Array]:
    """The categories column by column, as they are published."""
    parts = [outputs] if len(types) == 1 else [[label[place] for label in outputs] for place in range(len(types))]
    return [pa.array(list(part), pa.string()).cast(arrow) for part, arrow in zip(parts, types, strict=True)]


def _type(column: CategoryColumn, variable: Variable, law: TransitionLaw, place: int) -> pa.DataType:
    """What the column becomes: text, or the type that it has where that holds every category it may show."""
    outputs: Mapping[str, None] = dict.fromkeys(label if len(variable.columns) == 1 else label[place] for label in law.outputs)
    value = column.arrow.value_type if pa.types.is_dictionary(column.arrow) else column.arrow
    if pa.types.is_string(value) or not holds_labels(value, tuple(outputs)):
        return pa.string()
    return value
