"""Where released rows go, and rows that were written there but that nobody sees yet.

Rows are written to a staging place first, read back and judged there, and then published in one step. Whatever ends before that
step leaves the destination as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from sfumato.core.errors import InputError, SourceError
from sfumato.core.texts import counted
from sfumato.data.relation import Relation
from sfumato.engines.address import is_postgres_url, redacted

#: Rows in a file of a folder, and in a row group of such a file: what a verifier holds at a time.
ROWS_PER_FILE = 4_194_304
ROWS_PER_GROUP = 131_072

DEFAULT_TABLE = "release"


@dataclass(frozen=True)
class ParquetFolder:
    """A folder of Parquet files `part-00000.parquet`, …, whose rows are sorted across all of them.

    With `overwrite` a folder that is empty, or holds such files and nothing else, is replaced.
    """

    path: Path
    overwrite: bool = False
    rows_per_file: int = ROWS_PER_FILE

    def __str__(self) -> str:
        return f"the folder '{self.path}'"


@dataclass(frozen=True)
class DatabaseTable:
    """A table of a PostgreSQL database (`address` is its URL) or of a DuckDB file (`address` is its path)."""

    address: str = field(repr=False)  # it may hold a password
    name: str = DEFAULT_TABLE
    overwrite: bool = False

    @property
    def is_postgres(self) -> bool:
        """Whether it is in PostgreSQL."""
        return is_postgres_url(self.address)

    def __str__(self) -> str:
        where = redacted(self.address) if self.is_postgres else f"'{self.address}'"
        return f"table '{self.name}' of {where}"


@dataclass(frozen=True)
class SparkTable:
    """A table of the catalogue of a Spark session. One that is there is never replaced."""

    name: str

    def __str__(self) -> str:
        return f"the Spark table '{self.name}'"


Destination: TypeAlias = ParquetFolder | DatabaseTable | SparkTable


@dataclass(frozen=True)
class StagedFile:
    """A file that was written: where it is now, how long it is, how many rows it has, and its SHA-256."""

    name: str
    path: Path
    bytes: int
    rows: int
    sha256: str


class Staged:
    """Rows that are written and not published.

    `relation` reads what was written, `files` lists the files where there are any. `publish` makes everything appear in one
    step; without it, everything is gone when the block ends. `prepare` does all of it that can fail but the last step, so that a
    release can be entered in a ledger in between; the rows cannot be read any more then.
    """

    def __init__(
        self,
        rows: int,
        relation: Relation,
        publish: Callable[[], Path | None],
        files: tuple[StagedFile, ...] = (),
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self.rows = rows
        self.relation = relation
        self.files = files
        self.published = False
        self._publish = publish
        self._prepare = prepare

    def __repr__(self) -> str:
        return f"Staged({counted(self.rows, 'row')}, {'published' if self.published else 'not published'})"

    def prepare(self) -> None:
        """Do what can be done before the rows appear; once."""
        prepare, self._prepare = self._prepare, None
        if prepare is not None:
            prepare()

    def publish(self) -> None:
        """Make the rows appear in their place, whole or not at all."""
        if self.published:
            raise InputError("these rows are published already")
        self.prepare()
        folder = self._publish()
        self.published = True
        if folder is not None:
            self.files = tuple(replace(file, path=folder / file.name) for file in self.files)


def unwritten(destination: Destination, reason: str) -> SourceError:
    """The one error for rows that could not be written; `reason` is words of the program or the system."""
    return SourceError(f"the rows could not be written: {reason}. Nothing was published to {destination}, and nothing was left.")
