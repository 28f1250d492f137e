"""Whatever was released, as the measures of classes see it: a table with its roles."""

from __future__ import annotations

import pyarrow as pa

from sfumato.core.errors import InputError
from sfumato.data.masked import Compared, Masked
from sfumato.data.microdata import Microdata, ReleasedTable


def as_released(released: Compared, original: Microdata | None = None) -> ReleasedTable:
    """A `ReleasedTable` as it is; a masked table or microdata with their own schema; an Arrow table with the original's."""
    if isinstance(released, ReleasedTable):
        return released
    if isinstance(released, Masked):
        return ReleasedTable(released.table, released.schema, records=len(released))
    if isinstance(released, Microdata):
        return ReleasedTable(released.table(), released.schema, records=len(released))
    if isinstance(original, Microdata) and isinstance(released, pa.Table):
        return ReleasedTable(released, original.schema, records=released.num_rows)
    raise InputError("a released table is a ReleasedTable, a Masked, Microdata, or an Arrow table beside its original")
