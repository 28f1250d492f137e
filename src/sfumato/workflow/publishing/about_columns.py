"""What a card tells of the original's columns: one invented row before and after, and for the owner what was decided.

The values of the row are drawn from what the owner declared (`invented_values`). A search generalises them to the level that the
release shows; a mask is run on a small table of invented rows. A column about which nothing was declared has no example.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core import registry
from sfumato.core.errors import SfumatoError
from sfumato.core.plain_data import Plain
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy, from_tree
from sfumato.data.schema import Column, Schema
from sfumato.report.content import ColumnDecision

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows that a mask is run on: enough for the groups and ranks of the usual parameters.
_INVENTED = 60

#: A value that is longer illustrates nothing.
LONGEST = 60
_GOLDEN = (math.sqrt(5) - 1) / 2
_FIRST_DAY = datetime.date(1984, 5, 17)
_WIDEST_CODE = 12
_SHARE = 0.4

#: The value at a place: another place, another value, as a rule.
Values = Callable[[int], str]

_OWNER, _DATA = "the schema", "learnt from the data"

#: The value of a column before and after; nothing after where the column is not published, or shows what nobody can say.
Example = dict[str, list[str | None]]


def example_row(schema: Schema, method: Plain, facts: Plain, released: pa.Table, trees: Mapping[str, Hierarchy]) -> Example:
    """The invented row of a release: `schema` is that of the original, `facts` what the certificate tells about its making, and
    `released` has the quasi-identifiers as records show them, by the `trees`."""
    columns = {name: invented_values(column, schema.folder) for name, column in schema.columns.items()}
    values = {name: each for name, each in columns.items() if each is not None}
    if registry.has("mask", method.get("name")):
        return _masked(schema, values, method, facts)
    hidden = {*_listed(facts, "removed_columns"), *_listed(facts, "pseudonymised_columns")}
    levels = _finest_levels(released, {name: tree for name, tree in trees.items() if name in values})
    example: Example = {}
    for name, value in values.items():
        before = value(0)
        after = None if name in hidden else _shown(schema, name, before, facts, levels)
        example[name] = [before, after]
    return example


def _listed(facts: Plain, key: str) -> Sequence[str]:
    names = facts.get(key, ())
    return names if isinstance(names, (list, tuple)) else ()


def _shown(schema: Schema, name: str, before: str, facts: Plain, finest: Mapping[str, int]) -> str | None:
    """What a search makes of a value: its node at the level that all records have, or at the finest one that some record has."""
    column, kinds, levels = schema.columns[name], facts.get("hierarchies", {}), facts.get("levels", {})
    if column.role != "quasi" or (name not in kinds and name not in levels):
        return before
    level = levels.get(name, finest.get(name))
    if level is None:
        return None
    kind = column.hierarchy.kind if column.hierarchy is not None else "flat"
    if kind == "frequency" or column.items is not None:  # whose groups are made of the data
        return ROOT if kind == "flat" else None
    try:
        tree = hierarchy_builders.build(name, _alone(column), [before], None, schema.folder)
    except SfumatoError:
        return None
    after = tree.generalise(before, min(int(level), tree.height))
    return after if after is not None and len(after) <= LONGEST else None


def _finest_levels(released: pa.Table, trees: Mapping[str, Hierarchy]) -> dict[str, int]:
    """The finest level that some record shows, by column; none where no record shows a node of the tree."""
    from sfumato.data.texts.values import texts

    finest = {}
    for name in set(trees) & set(released.column_names):
        tree = trees[name]
        highest = {tree.labels[node]: level for level, nodes in enumerate(tree.node_of.tolist()) for node in nodes}
        levels = [highest[text] for text in texts(released.column(name).unique()) if text in highest]
        if levels:
            finest[name] = min(levels)
    return finest


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


def invented_values(column: Column, folder: str | None) -> Values | None:
    """The values that may be invented for a column; None where nothing was declared about it that gives some. `folder` is where
    its hierarchy file is looked up."""
    if column.source != "declared" or column.items is not None:
        return None
    if column.role in ("identifier", "unit"):  # whatever is declared about it: one of those values may be somebody's
        return None
    for listed in (column.domain, column.order, _leaves(column, folder)):
        if listed:
            return _one_of([value for value in listed if value != ROOT and 0 < len(value) <= LONGEST])
    if column.bounds is not None and column.stored_type in (None, "integer", "number"):
        return _between(*column.bounds, whole=column.type != "number" and all(end.is_integer() for end in column.bounds))
    if column.type == "boolean":
        return lambda place: "true" if place % 2 else "false"
    if column.type == "date":
        return lambda place: (_FIRST_DAY + datetime.timedelta(days=37 * place)).isoformat()
    width = column.hierarchy.width if column.hierarchy is not None and column.hierarchy.mask else None
    if width and width <= _WIDEST_CODE:
        return lambda place: f"{(48216 + 7919 * place) % 10**width:0{width}d}"
    return None


def _leaves(column: Column, folder: str | None) -> tuple[str, ...]:
    """The values that a declared tree has at its bottom."""
    spec = column.hierarchy
    if spec is None or (spec.tree is None and spec.file is None) or spec.leaves == "data":
        return ()
    try:
        tree = from_tree(spec.tree) if spec.tree is not None else _load(spec.file or "", spec.separator, folder)
    except SfumatoError:
        return ()
    return tuple(leaf for leaf in tree.leaves if leaf is not None)


def _load(file: str, separator: str | None, folder: str | None) -> Hierarchy:
    path = Path(file)
    return Hierarchy.load(path if folder is None else Path(folder) / path, separator=separator)


def _one_of(values: list[str]) -> Values | None:
    return (lambda place: values[int(_share(place) * len(values))]) if values else None


def _between(low: float, high: float, *, whole: bool) -> Values | None:
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    if whole:
        return lambda place: str(int(low) + int(_share(place) * (int(high) - int(low) + 1)))
    step = 10.0 ** (math.floor(math.log10(high - low)) - 2) if high > low else 1.0
    decimals = max(-math.floor(math.log10(step)), 0)
    return lambda place: f"{min(max(round((low + _share(place) * (high - low)) / step) * step, low), high):.{decimals}f}"


def _share(place: int) -> float:
    """Between 0 and 1, spread evenly over the places."""
    return (_SHARE + _GOLDEN * place) % 1.0


def decisions_of(schema: Schema) -> tuple[ColumnDecision, ...]:
    """The unit, what becomes of columns that nobody describes, and each column's part; no value of a record."""
    about_all = [ColumnDecision("all columns", f"the unit is {_unit(schema)}", _OWNER if _is_declared(schema) else "nobody")]
    if schema.roles == "proposed":
        about_all.append(ColumnDecision("all columns", "the roles that `sfumato inspect` proposed", "nobody confirmed them"))
    if schema.unlisted != "refuse":
        said = "left out" if schema.unlisted == "drop" else "published as they are"
        about_all.append(ColumnDecision("columns that are not described", said, _OWNER))
    return (*about_all, *(ColumnDecision(name, _said(column), _whose(column)) for name, column in schema.columns.items()))


def _is_declared(schema: Schema) -> bool:
    return schema.unit is not None or schema.each_record_is_a_unit


def _unit(schema: Schema) -> str:
    if schema.unit is not None:
        return f"one value of '{schema.unit}'"
    return "one record, because no person has several" if schema.each_record_is_a_unit else "not declared, so records are counted"


def _said(column: Column) -> str:
    parts = [f"role {column.role}"]
    if column.pseudonym:
        parts.append("replaced by a pseudonym")
    if column.hierarchy is not None:
        parts.append(f"hierarchy of the kind {column.hierarchy.kind}")
    if column.least_level or column.greatest_level is not None:
        most = "any" if column.greatest_level is None else str(column.greatest_level)
        parts.append(f"generalised by at least {column.least_level} and at most {most} levels")
    if column.importance != 1.0:
        parts.append(f"importance {column.importance:g}")
    return ", ".join(parts)


def _whose(column: Column) -> str:
    if column.source == "data":
        return f"role: {_OWNER}; values, bounds and order: {_DATA}"
    if column.hierarchy is not None and column.hierarchy.made_of_values:
        return f"{_OWNER}; the tree is {_DATA}"
    return _OWNER
