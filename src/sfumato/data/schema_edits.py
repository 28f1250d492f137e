"""The description of a hierarchy, written into a schema file; everything else there stays as it is, comments included."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from sfumato.core.errors import InputError, MissingColumn, SchemaError, forgetting
from sfumato.data.schema import HierarchySpec, Schema
from sfumato.data.writers import atomic_path


def hierarchy_line(spec: HierarchySpec) -> str:
    """The line for a column of a schema.

    >>> hierarchy_line(HierarchySpec(file="occupation.csv", leaves="data"))
    'hierarchy = {file = "occupation.csv", leaves = "data"}'
    """
    return f"hierarchy = {_inline(spec).as_string()}"


@forgetting()
def write_hierarchy(path: str | Path, column: str, spec: HierarchySpec, *, overwrite: bool = False) -> None:
    """Describe the hierarchy of a column in a schema file, in one step. A hierarchy that stands there is kept unless `overwrite`;
    a flat one says nothing and is replaced."""
    file = Path(path)
    text = edited_schema(file, column, spec, overwrite=overwrite)
    mode = stat.S_IMODE(os.stat(file).st_mode)
    with atomic_path(file.resolve(), mode=mode) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


@forgetting()
def edited_schema(file: Path, column: str, spec: HierarchySpec, *, overwrite: bool = False) -> str:
    """The text of a schema file with the hierarchy of a column; nothing is written."""
    import tomlkit

    schema = Schema.load(file)
    described = schema.columns.get(column)
    if described is None:
        raise MissingColumn(f"the schema '{file}' describes no column '{column}'; it has {', '.join(schema.columns)}")
    if described.hierarchy is not None and described.hierarchy.kind != "flat" and not overwrite and described.hierarchy != spec:
        raise InputError(
            f"column '{column}' has a hierarchy in '{file}' already ({described.hierarchy.kind}), which is not overwritten. "
            "Ask for it to be overwritten, or edit the schema."
        )
    document: Any = tomlkit.parse(file.read_bytes().decode("utf-8"))  # with the line ends that it has
    document["columns"][column]["hierarchy"] = _inline(spec)
    text = tomlkit.dumps(document)
    expected = schema.replace(columns={**schema.columns, column: described.model_copy(update={"hierarchy": spec})})
    if _parsed(text, file) != expected:  # nested tables in an order that a key cannot be put into
        raise SchemaError(
            f"'{file}' is written in a way that cannot be edited here. Write this line for '{column}': {hierarchy_line(spec)}"
        )
    return text


def _parsed(text: str, file: Path) -> Schema | None:
    import tomlkit.exceptions

    try:
        return Schema.parse(tomlkit.parse(text).unwrap(), folder=file.resolve().parent, name=str(file))
    except (SchemaError, tomlkit.exceptions.TOMLKitError):
        return None


def _inline(spec: HierarchySpec) -> Any:  # a table of tomlkit
    import tomlkit

    table = tomlkit.inline_table()
    for key, value in spec.model_dump(exclude_defaults=True, exclude_none=True).items():
        numbers = isinstance(value, tuple)
        table[key] = [int(n) if isinstance(n, float) and n.is_integer() else n for n in value] if numbers else value
    return table
