"""A look at hierarchies before they are used: every level with how many values are left and a few
examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import MissingColumn, ParameterError, SchemaError
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.texts import nearest
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.hierarchies.level_sizes import level_sizes
from sfumato.data.relation import COUNT
from sfumato.data.schema import Schema
from sfumato.data.texts.values import texts

if TYPE_CHECKING:
    from sfumato.data.microdata import Microdata
    from sfumato.engines.sources import TableLike

EXAMPLES = 4


def preview(
    source: str | Path,
    *,
    column: str | None = None,
    data: TableLike = None,
    k: int = 5,
    **reading: object,  # keys of a `Reading`
) -> dict[str, list[PlainDict]]:
    """The levels of a hierarchy file, or of every quasi-identifier of a schema.

    With `data` the hierarchies are built over, and checked against, the values that occur there (those of `column`, for a
    file), read as the schema says and `reading` overrides, and each level says how many records its groups have and which have
    fewer than `k`. What is shown are values of hierarchies, for the owner who edits them.
    """
    if Path(source).suffix.lower() == ".csv":
        tree = Hierarchy.load(source)
        if data is None:
            return {Path(source).name: levels_of(tree)}
        if column is None:
            raise ParameterError("name the column of the data that the hierarchy is for (column=, --column).")
        occurring = _counts(data, None, column, reading)
        return {column: levels_of(hierarchy_builders.cover(tree, list(occurring), name=column), occurring, k)}
    schema = Schema.load(source)
    names = schema.quasi if column is None else (column,)
    if column is not None and column not in schema.columns:
        raise MissingColumn(f"the schema describes no column '{column}'; it has {', '.join(schema.columns)}")
    if not names:
        raise SchemaError("the schema has no quasi-identifiers, so there are no hierarchies to show")
    levels = {}
    for name in names:
        counts = None if data is None else _counts(data, schema, name, reading)
        levels[name] = levels_of(_tree(schema, name, counts), counts, k)
    return levels


def levels_of(tree: Hierarchy, counts: Mapping[str | None, int] | None = None, k: int = 5) -> list[PlainDict]:
    """Per level: how many values are left, the mean loss of a leaf, and examples; with the records that have each leaf also the
    smallest group, and how many groups and records are below k."""
    sizes = None if counts is None else level_sizes(tree, list(counts), list(counts.values()), k)
    levels = []
    for level in range(tree.height + 1):
        nodes = tree.node_of[level]
        labels = list(dict.fromkeys(nodes.tolist()))
        step = max(len(labels) // EXAMPLES, 1)
        levels.append(
            {
                "level": level,
                "values": len(labels),
                "loss": float(tree.loss[nodes].mean()),
                "examples": [tree.labels[node] or "missing" for node in labels[::step][:EXAMPLES]],
            }
        )
        if sizes is not None:
            size = sizes[level]
            below = {"small_groups": size.small_groups, "small_records": size.small_records}
            levels[-1] |= {"groups": size.values, "smallest": size.smallest, "k": k, **below}
    return levels


def _tree(schema: Schema, name: str, counts: Mapping[str | None, int] | None) -> Hierarchy:
    described = schema.columns[name]
    if counts is None:
        values = [*(described.domain or ())]
        return hierarchy_builders.build(name, described, values, None, schema.folder)
    return hierarchy_builders.build(name, described, list(counts), list(counts.values()), schema.folder)


def _counts(data: Any, schema: Schema | None, name: str, reading: Plain) -> dict[str | None, int]:
    from sfumato.engines.sources import read

    return value_counts(read(data, schema=schema, **reading), name)


def value_counts(people: Microdata, name: str) -> dict[str | None, int]:
    """How many records have each value of a column."""
    if name not in people.column_names:
        names = people.column_names
        raise MissingColumn(f"{people.description} has no column '{name}'{nearest(name, names)}; it has {', '.join(names)}")
    grouped = people.relation.group([name])
    counts: dict[str | None, int] = {}
    for text, count in zip(texts(grouped.column(name)), grouped.column(COUNT).to_pylist(), strict=True):
        counts[text] = counts.get(text, 0) + int(count)
    return counts
