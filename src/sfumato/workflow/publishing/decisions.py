"""What was decided about the columns of a table before it was protected, and on whose word: for its owner's card."""

from __future__ import annotations

from sfumato.data.schema import Column, Schema
from sfumato.report.content import Decision

_OWNER, _DATA = "the schema", "learnt from the data"


def decisions_of(schema: Schema) -> tuple[Decision, ...]:
    """The unit, what becomes of columns that nobody describes, and each column's part; no value of a record."""
    about_all = [Decision("all columns", f"the unit is {_unit(schema)}", _OWNER if _is_declared(schema) else "nobody")]
    if schema.unlisted != "refuse":
        said = "left out" if schema.unlisted == "drop" else "published as they are"
        about_all.append(Decision("columns that are not described", said, _OWNER))
    return (*about_all, *(Decision(name, _said(column), _whose(column)) for name, column in schema.columns.items()))


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
