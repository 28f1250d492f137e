"""Types of the columns of a CSV file that stays on disk, found in one pass over it.

Only canonical forms count as numbers or dates, so that `01234` and `NO` stay text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.data.schema import Type
from sfumato.data.texts.reading import PLAIN, Reading
from sfumato.data.texts.text_forms import DAY
from sfumato.engines.duckdb.written_texts import kind_forms

if TYPE_CHECKING:
    import duckdb

    from sfumato.engines.sql.compile import PhysicalTable

_FORMS: Mapping[Type, str] = {
    "integer": r"0|-?[1-9][0-9]{0,17}",
    "number": r"-?(?:(?:0|[1-9][0-9]{0,14})(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?",
    "boolean": r"true|false",
    "date": DAY,
}


def text_kinds(
    connection: duckdb.DuckDBPyConnection,
    source: PhysicalTable,
    names: Sequence[str],
    missing: Mapping[str, Sequence[str]],
    reading: Reading = PLAIN,
) -> dict[str, Type]:
    """The types of those columns that are not text."""
    from sqlglot import exp

    from sfumato.engines.sql.values import identifier, text_literal

    if not names:
        return {}
    tests: list[exp.Expression] = []
    candidates: list[tuple[str, Type]] = []
    for name in names:
        column = exp.column(identifier(source.columns.get(name, name)))
        # an empty text in quotes is missing among numbers and dates, as it is in this process
        absent = [text_literal(code) for code in ("", *missing.get(name, ()))]
        value = exp.Case(ifs=[exp.If(this=exp.In(this=column, expressions=absent), true=exp.Null())], default=column.copy())
        for kind, form in _FORMS.items():
            for test in kind_forms(value, kind, form, reading):
                tests.append(exp.alias_(exp.Anonymous(this="bool_and", expressions=[test]), f"t{len(tests)}"))
                candidates.append((name, kind))
    # a broken line is refused, or left out, by the question that reads the rows: it does not decide whether a table opens
    rows = replace(source, options=(*source.options, ("ignore_errors", True)))
    query = exp.select(*tests).from_(rows.expression()).sql(dialect="duckdb")
    row = connection.sql(query).fetchone() or ()
    types: dict[str, Type] = {}
    for (name, kind), holds in zip(candidates, row, strict=True):
        if holds and name not in types:
            types[name] = kind
    return types
