"""A look at hierarchies before they are used: every level with how many values are left and a few
examples.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import MissingColumn, SchemaError
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.data import hierarchy_builders
from sfumato.data.hierarchy import Hierarchy
from sfumato.data.relation import COUNT
from sfumato.data.schema import Schema
from sfumato.data.values import texts

if TYPE_CHECKING:
    from sfumato.engines.sources import TableLike

EXAMPLES = 4


def preview(
    source: str | Path,
    *,
    column: str | None = None,
    data: TableLike = None,
    **reading: object,  # keys of a `Reading`
) -> dict[str, list[PlainDict]]:
    """The levels of a hierarchy file, or of every quasi-identifier of a schema.

    With `data` the hierarchies are built over, and checked against, the values that occur there, read as the schema says and
    `reading` overrides. What is shown are values of hierarchies, for the owner who edits them.
    """
    if Path(source).suffix.lower() == ".csv":
        return {Path(source).name: levels_of(Hierarchy.load(source))}
    schema = Schema.load(source)
    names = schema.quasi if column is None else (column,)
    if column is not None and column not in schema.columns:
        raise MissingColumn(f"the schema describes no column '{column}'; it has {', '.join(schema.columns)}")
    if not names:
        raise SchemaError("the schema has no quasi-identifiers, so there are no hierarchies to show")
    return {name: levels_of(_tree(schema, name, data, reading)) for name in names}


def levels_of(tree: Hierarchy) -> list[PlainDict]:
    """Per level: how many values are left, the mean loss of a leaf, and examples."""
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
    return levels


def _tree(schema: Schema, name: str, data: Any, reading: Plain) -> Hierarchy:
    described = schema.columns[name]
    if data is None:
        values = [*(described.domain or ())]
        return hierarchy_builders.build(name, described, values, None, schema.folder)
    from sfumato.engines.sources import read

    grouped = read(data, schema=schema, **reading).relation.group([name])
    counts: dict[str | None, int] = {}
    for text, count in zip(texts(grouped.column(name)), grouped.column(COUNT).to_pylist(), strict=True):
        counts[text] = counts.get(text, 0) + int(count)
    return hierarchy_builders.build(name, described, list(counts), list(counts.values()), schema.folder)
