"""What lies beside a file about an attack: tables that hold data alone and can be read, and folders of releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sfumato.attacks.adversary import Target, writable
from sfumato.core.errors import HierarchyGap, InputError, SourceError
from sfumato.data.masked import TableView

#: A table larger than this is not read.
MOST_BYTES = 1 << 28
_ENDINGS = (".csv", ".tsv", ".parquet", ".pq")
_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class BesideFile:
    """The tables and releases in the `folder` of a file, by name."""

    folder: Path

    def table(self, place: str, what: str, most_cells: int, otherwise: str = "") -> pa.Table:
        """Read the table; `what` it should be and a remark for those who name something else are for the message."""
        from sfumato.engines.sources import read

        path = self.folder / place
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

    def release(self, published: object, target: Target) -> TableView:
        """The release with its texts read over the target's values."""
        from sfumato.workflow.attacking.releases import person, view_of

        place = published.get("release") if isinstance(published, Mapping) and len(published) == 1 else None
        if not isinstance(place, str) or not writable(place) or "\0" in place:
            raise InputError('published must name the folder of a release, and that alone: {"release": "out"}')
        try:
            return view_of(self.folder / place, person(target))
        except HierarchyGap:
            raise InputError("a value of the target, or of the release, is missing from the hierarchy of its column") from None


def _require_room(path: Path, most_cells: int) -> None:
    """A small Parquet file can hold a table that is not small."""
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        raise SourceError(f"'{path}' is not a complete Parquet file") from None
    if about.num_rows * about.num_columns > most_cells:
        raise SourceError(f"'{path}' has more than {most_cells:,} cells and was not read; attack with fewer people")
