"""What DuckDB's own types hold, and how their values are read without another becoming of them."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.engines.distinct_units import exact_kind
from sfumato.engines.expressions import Kind

_EXACT: Mapping[str, Kind] = {
    "BOOLEAN": "boolean",
    "FLOAT": "number",
    "DOUBLE": "number",
    "DATE": "date",
    "TIME": "time",
    "BLOB": "binary",
    "TIMESTAMP": "datetime",
    "TIMESTAMP_S": "datetime",
    "TIMESTAMP_MS": "datetime",
    "TIMESTAMP_NS": "datetime",
    "TIMESTAMP WITH TIME ZONE": "instant",
}
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"})
_READ_AS_TEXT = frozenset({"UBIGINT", "HUGEINT", "UHUGEINT", "TIMESTAMP_NS"})
#: Whole numbers of so many digits all fit the 53 bits of a floating-point number.
_DIGITS_HELD = 15


def kind_of_sql_type(sql_type: str) -> Kind:
    """What a column of this DuckDB type holds; types without a kind of their own are read as text."""
    if sql_type in _EXACT:
        return _EXACT[sql_type]
    if sql_type.startswith("DECIMAL"):
        return "number"
    return "integer" if sql_type in _INTEGERS or sql_type.removeprefix("U") in _INTEGERS else "string"


def exact_kind_of(sql_type: str) -> Kind | None:
    """The kind that holds every value of a DuckDB type, where `kind_of_sql_type` may lose digits or have no room."""
    if sql_type.startswith("DECIMAL("):
        digits, scale = sql_type.removeprefix("DECIMAL(").removesuffix(")").split(",")
        return exact_kind(int(digits), int(scale))
    return "string" if sql_type in _READ_AS_TEXT else None


def is_read_by_text(sql_type: str) -> bool:
    """True for numbers that DuckDB turns into others than the nearest: of 32 bits, and decimals whose digits a number of 64 bits
    may not hold as a whole number."""
    if sql_type.startswith("DECIMAL("):
        return int(sql_type.removeprefix("DECIMAL(").split(",")[0]) > _DIGITS_HELD
    return sql_type == "FLOAT"
