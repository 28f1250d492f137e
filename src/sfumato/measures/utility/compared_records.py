"""Original and masked records side by side, as measures of masked data compare them.

What all these measures refuse is refused here: a table without records, a column without a known value.
"""

from __future__ import annotations

from sfumato.core.errors import InputError, Unsupported, all_at_once
from sfumato.data.masked import Compared, Masked, as_masked, compared_columns, sides
from sfumato.data.microdata import Microdata
from sfumato.data.records import Records


def compared(
    original: object, released: Compared, columns: tuple[str, ...] | None, *, also: tuple[str, ...] = ()
) -> tuple[Records, Records, Masked]:
    """Both sides over the same columns (those asked for, otherwise the quasi-identifiers and whatever was masked) and `also`
    last, with the same labels; rows correspond as `rows` of the masked table says."""
    if not isinstance(original, Microdata):
        raise InputError("this measure compares with the original records: pass what `sf.read` returned")
    masked = as_masked(released, original)
    names = tuple(name for name in compared_columns(original, masked, columns) if name not in also)
    left, right = sides(original, masked, names + also)
    if not left.size or not right.size:
        raise Unsupported(f"the {'masked' if left.size else 'original'} table has no records to compare")
    unknown = [
        f"column '{column.name}' has no known value in the original; leave it out (columns=)"
        for column in left.columns
        if not column.known.any()
    ]
    all_at_once(Unsupported, "comparing masked records", unknown)
    return left, right, masked
