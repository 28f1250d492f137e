"""Decimals as text, in which every digit is kept and equal values have one text, and as the nearest floating-point numbers."""

from __future__ import annotations

from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

#: Up to here Arrow writes a decimal without an exponent.
_PLAIN_SCALE = 6
_EVERY_DIGIT = Context(prec=100)


def exact_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals or whole numbers as the plain text of their value: 1.50 and 1.5 are one text."""
    if not pa.types.is_decimal(column.type) or column.type.scale == 0:
        return column.cast(pa.string())
    if 0 < column.type.scale <= _PLAIN_SCALE:
        return pc.utf8_rtrim(pc.utf8_rtrim(column.cast(pa.string()), "0"), ".")
    chunks = []
    for chunk in column.chunks:
        coded = chunk.dictionary_encode()
        texts = [plain_text(value) for value in coded.dictionary.to_pylist()]
        chunks.append(pa.array(texts, pa.string()).take(coded.indices))
    return pa.chunked_array(chunks, type=pa.string())


def nearest_floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals as the floating-point numbers nearest to them; Arrow's own way from decimals gives a neighbour of one in eight.

    >>> from decimal import Decimal
    >>> nearest_floats(pa.chunked_array([[Decimal("0.35")]])).to_pylist()
    [0.35]
    """
    return column.cast(pa.string()).cast(pa.float64())


def plain_text(value: Decimal) -> str:
    """A decimal without exponent and without zeros at its end.

    >>> plain_text(Decimal("1.50")), plain_text(Decimal("1E+3"))
    ('1.5', '1000')
    """
    return format(value.normalize(_EVERY_DIGIT) if value else Decimal(0), "f")
