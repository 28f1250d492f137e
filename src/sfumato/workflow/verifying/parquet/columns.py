"""How the footers of Parquet files describe columns of each type, as Arrow, DuckDB and Spark write them.

A type has its physical form, its older name (`ConvertedType`) and its newer one (`LogicalType`), either of which may be left out.
Apache Parquet format, parquet.thrift.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.workflow.verifying.parquet.parts import Fields

if TYPE_CHECKING:
    import pyarrow as pa

_BOOLEAN, _INT32, _INT64, _FLOAT, _DOUBLE, _BYTES = 0, 1, 2, 4, 5, 6
_MICROSECONDS: Fields = {2: {}}


def is_described(stated: Fields, kind: pa.DataType) -> bool:
    """Whether a column of the footer is described as writers describe one of this type."""
    physical, older, newer = _description(kind)
    return stated.get(1) == physical and stated.get(6, older) == older and stated.get(10, newer) == newer


def _description(kind: pa.DataType) -> tuple[int, int | None, Fields | None]:
    """The physical type, and the numbers that stand for the older and the newer name."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return _BOOLEAN, None, None
    if types.is_floating(kind):
        return _FLOAT if kind.bit_width == 32 else _DOUBLE, None, None
    if types.is_integer(kind):
        width, signed = kind.bit_width, types.is_signed_integer(kind)
        older = {8: 15, 16: 16, 32: 17, 64: 18}[width] if signed else {8: 11, 16: 12, 32: 13, 64: 14}[width]
        return _INT64 if width == 64 else _INT32, older, {10: {1: width, 2: signed}}
    if types.is_date32(kind):
        return _INT32, 6, {6: {}}
    if types.is_timestamp(kind):
        return _INT64, 10, {8: {1: kind.tz is not None, 2: _MICROSECONDS}}
    return _BYTES, 0, {1: {}}
