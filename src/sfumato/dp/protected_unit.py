"""Whom an answer protects, decided before a row is read and from the schema alone.

A column that names people says that rows belong to somebody, and not how many rows one person has. As long as nobody says
that, a promise about one record may be no promise about one person, so that it is not made.
"""

from __future__ import annotations

from sfumato.core.errors import ParameterError, SchemaError
from sfumato.core.guarantees.loss import RECORD
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Schema


def unit_column(data: Microdata, stated: str | None = None) -> str | None:
    """The column that names the unit, None where each record is one: as `stated` for a run, else as the schema says."""
    schema = data.schema
    column = schema.unit
    if stated is not None and stated != RECORD:
        if column not in (None, stated):
            raise ParameterError(
                f"unit='{stated}' is another unit than the schema's: there column '{column}' has the role unit, and what "
                f"is published about one '{column}' would not be counted. Leave unit out, or change the schema"
            )
        return stated
    if RECORD in (column, stated) and RECORD in data.column_names:
        raise ParameterError(
            f"a column is called '{RECORD}', which as a unit stands for each row by itself; a ledger could not tell them apart. "
            "Give the column another name"
        )
    if stated == RECORD and column is not None:
        raise ParameterError(
            f"unit='{RECORD}' says that no person has several rows, and in the schema column '{column}' has the role unit. "
            "Leave unit out, or change the schema"
        )
    if column is None and stated is None:
        refuse_undecided(schema)
    return column


def refuse_undecided(schema: Schema) -> None:
    """Refuse a schema that names people and does not say whether one person has one row or several."""
    names = schema.with_role("identifier")
    if schema.unit is not None or schema.each_record_is_a_unit or not names:
        return
    listed = ", ".join(f"'{name}'" for name in names[:5]) + (" …" if len(names) > 5 else "")
    raise SchemaError(
        f"the schema of '{schema.dataset}' has columns that name people ({listed}) and does not say whether one person may have "
        "several rows, so that it is not clear whom an answer would protect. If so, give the column that names the person "
        'role = "unit" (for one run: unit=…, --unit); if each row is a person of its own, write unit = "record" at the top '
        f"of the schema (for one run: unit='{RECORD}', --unit {RECORD})"
    )


def as_decided(schema: Schema, unit: str | None) -> Schema:
    """The schema with this unit column, or with each record as a unit of its own."""
    from sfumato.data.schema import Column, Role

    if unit is None:
        return schema if schema.each_record_is_a_unit or schema.unit is not None else schema.replace(unit=RECORD)
    if unit == schema.unit:
        return schema
    changed: dict[str, Role] = dict.fromkeys(schema.with_role("unit"), "plain")
    changed[unit] = "unit"
    columns = dict(schema.columns)
    for name, role in changed.items():
        columns[name] = columns.get(name, Column()).model_copy(update={"role": role})
    return schema.replace(columns=columns, unit=None)
