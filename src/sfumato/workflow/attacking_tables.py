"""Tables that a file about an attack names: of a kind that holds data alone, and not larger than can be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa

#: A table larger than this is not read.
MOST_BYTES = 1 << 28
_ENDINGS = (".csv", ".tsv", ".parquet", ".pq")
_PARQUET = (".parquet", ".pq")


def named_table(path: Path, what: str, most_cells: int, otherwise: str = "") -> pa.Table:
    """Read the table; `what` it should be and a remark for those who name something else are for the message."""
    from sfumato.engines.sources import read

    if path.suffix.lower() not in _ENDINGS:
        raise SourceError(f"'{path}' is no {what}: it must end with {', '.join(_ENDINGS)}.{' ' * bool(otherwise)}{otherwise}")
    try:
        if not path.is_file():
            raise SourceError(f"there is no file '{path}'")
        if path.stat().st_size > MOST_BYTES:
            raise SourceError(f"'{path}' is larger than {MOST_BYTES:,} bytes and was not read")
    except ValueError:  # a name that no file can have
        raise SourceError(f"the {what} has a name that no file can have") from None
    if path.suffix.lower() in _PARQUET:
        _require_room(path, most_cells)
    return read(path, engine="memory").table()


def _require_room(path: Path, most_cells: int) -> None:
    """A small Parquet file can hold a table that is not small."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        raise SourceError(f"'{path}' is not a complete Parquet file") from None
    if about.num_rows * about.num_columns > most_cells:
        raise SourceError(f"'{path}' has more than {most_cells:,} cells and was not read; attack with fewer people")
