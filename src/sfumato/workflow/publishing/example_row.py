"""One invented row before and after: what a release does to each column, shown on nobody's record.

Its values are drawn from what the owner declared (`data.invented_values`). A search generalises them to the level that the
release shows; a mask is run on a small table of invented rows. A column about which nothing was declared has no example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.core import registry
from sfumato.core.errors import SfumatoError
from sfumato.core.plain_data import Plain
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.hierarchy import ROOT
from sfumato.data.invented_values import LONGEST, Values, invented_values
from sfumato.data.schema import Column, Schema

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows that a mask is run on: enough for the groups and ranks of the usual parameters.
_INVENTED = 60

#: The value of a column before and after; nothing after where the column is not published, or shows what nobody can say.
Example = dict[str, list[str | None]]


def example_row(schema: Schema, method: Plain, facts: Plain) -> Example:
    """The invented row of a release: `schema` is that of the original, `facts` what the certificate tells about its making."""
    columns = {name: invented_values(column, schema.folder) for name, column in schema.columns.items()}
    values = {name: each for name, each in columns.items() if each is not None}
    if registry.has("mask", method.get("name")):
        return _masked(schema, values, method, facts)
    hidden = {*_listed(facts, "removed_columns"), *_listed(facts, "pseudonymised_columns")}
    example: Example = {}
    for name, value in values.items():
        before = value(0)
        after = None if name in hidden else _shown(schema, name, before, facts)
        example[name] = [before, after]
    return example


def _listed(facts: Plain, key: str) -> Sequence[str]:
    names = facts.get(key, ())
    return names if isinstance(names, (list, tuple)) else ()


def _shown(schema: Schema, name: str, before: str, facts: Plain) -> str | None:
    """What a search makes of a value: its node at the level that all records have, or one step above it where levels differ."""
    column, kinds, levels = schema.columns[name], facts.get("hierarchies", {}), facts.get("levels", {})
    if column.role != "quasi" or (name not in kinds and name not in levels):
        return before
    level = levels[name] if name in levels else max(column.least_level, 1)
    kind = column.hierarchy.kind if column.hierarchy is not None else "flat"
    if kind == "frequency" or column.items is not None:  # whose groups are made of the data
        return ROOT if kind == "flat" else None
    try:
        tree = hierarchy_builders.build(name, _alone(column), [before], None, schema.folder)
    except SfumatoError:
        return None
    after = tree.generalise(before, min(int(level), tree.height))
    return after if after is not None and len(after) <= LONGEST else None


def _alone(column: Column) -> Column:
    """The column without its domain and bounds, whose tree over one value is quickly built."""
    return column.model_copy(update={"domain": None, "bounds": None, "order": None})


def _masked(schema: Schema, values: Mapping[str, Values], method: Plain, facts: Plain) -> Example:
    """A row of an invented table, and what the mask makes of it."""
    rows, place = _run(schema, values, method), 0
    changed = set(_listed(facts, "masked_columns"))
    hidden = {*_listed(facts, "removed_columns"), *_listed(facts, "pseudonymised_columns")}
    if rows is not None:
        place = max(
            range(_INVENTED), key=lambda row: len([name for name in rows if rows[name][row] not in (None, values[name](row))])
        )
    example: Example = {}
    for name, value in values.items():
        after = None if name in hidden else value(place) if name not in changed else None if rows is None else rows[name][place]
        example[name] = [value(place), None if after is None or len(after) > LONGEST else after]
    return example


def _run(schema: Schema, values: Mapping[str, Values], method: Plain) -> dict[str, list[str | None]] | None:
    """What a mask makes of invented rows, in their order; None where it cannot be run on them, or makes other rows."""
    import pyarrow as pa

    from sfumato.data.microdata import Microdata
    from sfumato.data.texts.values import texts
    from sfumato.engines.memory import MemoryRelation

    described = schema.replace(columns={name: schema.columns[name] for name in values})
    try:
        mask = registry.make("mask", registry.in_names_of_now("mask", method))
        table = pa.table(
            {name: _typed(schema.columns[name], [value(row) for row in range(_INVENTED)]) for name, value in values.items()}
        )
        masked = mask.apply(Microdata(MemoryRelation(table), described), seed="invented rows").result
        if masked.rows is None:
            return None
        places = {int(source): row for row, source in enumerate(masked.rows.tolist())}
        shown = {name: texts(masked.table.column(name)) for name in values if name in masked.table.column_names}
        return {
            name: [None if row not in places else column[places[row]] for row in range(_INVENTED)]
            for name, column in shown.items()
        }
    except (SfumatoError, pa.ArrowInvalid):
        return None


def _typed(column: Column, values: list[str]) -> pa.Array:
    import pyarrow as pa

    kinds: dict[str | None, Any] = {"boolean": pa.bool_(), "date": pa.date32(), "number": pa.float64(), "integer": pa.int64()}
    if column.stored_type is None and column.bounds is not None:
        return pa.array(values).cast(pa.float64())
    return pa.array(values).cast(kinds.get(column.stored_type, pa.string()))
