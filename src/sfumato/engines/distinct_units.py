"""Distinct units: the column that names a person is never read in a form in which two people become one.

Decimals and whole numbers beyond 64 bits are read as the text of their exact value; equal decimals have one text
whatever their scale. Numbers that were text may not name units: digits would be lost, or one unit written in two ways.
"""

from __future__ import annotations

import pyarrow as pa

from sfumato.core.errors import SchemaError
from sfumato.data.relation import Relation
from sfumato.data.texts.decimals import exact_text
from sfumato.engines.expressions import Kind

#: Decimals of at most this many digits, none of them behind the point, are 64-bit integers.
_INTEGER_DIGITS = 18


def distinct_units(relation: Relation, unit: str | None) -> Relation:
    """The same rows with the unit column in a form in which different stored values stay different; the type that is
    stored decides, never a value."""
    if unit is None or not hasattr(relation, "distinct_units"):
        return relation
    apart: Relation = relation.distinct_units(unit)
    return apart


def rounded(relation: object) -> dict[str, None]:
    """The columns that this engine hands over as floating-point numbers, although it holds more digits."""
    fields = getattr(relation, "fields", {})
    return {name: None for name, field in fields.items() if field.kind == "number" and field.exact is not None}


def exact_kind(digits: int | None, scale: int | None) -> Kind:
    """What holds every value of a decimal type; without a known width its text."""
    return "integer" if scale == 0 and digits is not None and digits <= _INTEGER_DIGITS else "string"


def exact_column(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Decimals and integers without loss; None for a column whose canonical form loses nothing."""
    if pa.types.is_dictionary(column.type):
        if not (pa.types.is_decimal(column.type.value_type) or pa.types.is_integer(column.type.value_type)):
            return None  # texts of all rows may be too many bytes for one array
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        if exact_kind(column.type.precision, column.type.scale) == "integer":
            return column.cast(pa.int64())
        return exact_text(column)
    if not pa.types.is_integer(column.type):
        return None
    return exact_text(column) if column.type == pa.uint64() else column.cast(pa.int64())


def lossy_unit(name: str, kind: Kind = "number") -> SchemaError:
    """The refusal of a unit column that was turned into what may lose digits."""
    what = "floating-point numbers" if kind == "number" else f"a {kind}"
    return SchemaError(
        f"the unit column '{name}' is read as {what}, although it is stored otherwise: two people with long values could become "
        'one. Declare it in the schema with role = "unit" and type = "string" (or "integer")'
    )
