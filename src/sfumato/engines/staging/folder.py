"""Rows staged as Parquet files in a hidden folder beside their place, on the same file system, published by one rename.

The hidden folder is its owner's alone and held by a lock; the next run into the same place removes one that nobody holds. Rows
come a batch at a time and are written in row groups of one size, so that the same rows give the same files, whichever engine
sorted them.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from sfumato.core.errors import InputError, SourceError, raise_alone
from sfumato.core.files import HeldFolder, exchange, hold_folder, remove_tree, remove_unheld, sync_folder
from sfumato.core.platforms import NEW, set_mode
from sfumato.core.progress import Progress
from sfumato.engines.staging.base import ROWS_PER_GROUP, ParquetFolder, StagedFile, unwritten

if TYPE_CHECKING:
    import pyarrow.parquet as pq

#: How the names of staging folders start; nothing else beside a destination is ever looked at.
PREFIX = ".sfumato-staging-"
_STAGING = re.compile(re.escape(PREFIX) + r"[0-9a-f]{16}")
_PART = re.compile(r"part-[0-9]{5,}\.parquet")
_PATTERNS = "*?[]{}"


def check_folder(destination: ParquetFolder) -> None:
    """Refuse a place where no folder of rows can be put."""
    target = _absolute(destination)
    if any(character in str(target) for character in _PATTERNS):
        raise InputError(f"'{target}': engines read {' '.join(_PATTERNS)} in a path as a pattern. Choose a path without them.")
    if destination.rows_per_file < 1:
        raise InputError(f"rows_per_file is {destination.rows_per_file}; it must be a whole number of at least 1")
    if not target.parent.is_dir():
        raise SourceError(f"there is no folder '{target.parent}' to write '{target.name}' into. Make it first.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise SourceError(f"you may not write into the folder '{target.parent}'. Choose another place, or ask for the right.")
    _check_target(target, destination.overwrite)


def _check_target(target: Path, overwrite: bool) -> None:
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise InputError(f"'{target}' exists and is not a folder. Choose another place for the rows.")
    names = os.listdir(target)
    if names and not overwrite:
        raise InputError(f"'{target}' exists already. Choose another folder, or pass overwrite=True to replace it.")
    if not all(_PART.fullmatch(name) for name in names):
        raise InputError(f"'{target}' holds other files than Parquet parts, so it is not replaced. Choose another folder.")


@contextmanager
def staging_folder(destination: ParquetFolder) -> Iterator[Path]:
    """A hidden folder beside the destination, removed afterwards unless it was published; leftovers of killed runs go first."""
    target = _absolute(destination)
    check_folder(destination)
    sweep_folders(target.parent)
    held: HeldFolder | None = None
    try:
        try:
            held = hold_folder(lambda: target.parent / f"{PREFIX}{secrets.token_hex(8)}")
        except OSError as error:
            refuse_to_write(destination, error)
        yield held.path
    finally:
        if held is not None:
            held.remove()


def sweep_folders(place: Path) -> None:
    """Remove the staging folders of processes that were killed."""
    with suppress(OSError):
        for name in os.listdir(place):
            if _STAGING.fullmatch(name):
                remove_unheld(place / name)


def publish_folder(folder: Path, destination: ParquetFolder) -> Path:
    """Give the staged files to everybody and the folder its name, in one step; returns where it is."""
    target = _absolute(destination)
    try:
        _check_target(target, destination.overwrite)
        for name in sorted(os.listdir(folder)):
            with (folder / name).open("rb+") as file:
                set_mode(file.fileno(), 0o644)
                os.fsync(file.fileno())
        sync_folder(folder)
        folder.chmod(0o755)
        if destination.overwrite and os.path.lexists(target) and os.listdir(target):
            exchange(folder, target)
            remove_tree(folder)  # what was there before
        else:
            os.rename(folder, target)  # refused by the system where another writer was faster
        with suppress(OSError):  # the rows are there, whatever becomes of them later
            sync_folder(target.parent)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise_alone(InputError(f"'{target}' appeared while the rows were being written; it is left alone."))
        refuse_to_write(destination, error)
    return target


def refuse_to_write(destination: ParquetFolder, error: OSError) -> NoReturn:
    """Raise what a failure of the file system means here, without the system's own error."""
    raise_alone(unwritten(destination, os.strerror(error.errno) if error.errno else type(error).__name__))


def part_name(number: int) -> str:
    """The name of a file of a folder; names sort as the rows do."""
    return f"part-{number:05d}.parquet"


def write_parts(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, folder: Path, destination: ParquetFolder, progress: Progress
) -> tuple[StagedFile, ...]:
    """Write sorted rows into files of the folder; a failure removes them."""
    for name in os.listdir(folder):  # of an attempt that gave up
        (folder / name).unlink()
    parts = _PartFiles(folder, schema, destination)
    try:
        for batch in batches:
            parts.add(batch)
            progress("writing rows", parts.rows, 0)
        return parts.finish()
    finally:
        parts.close()


class _PartFiles:
    """Files in a folder, filled one after the other."""

    def __init__(self, folder: Path, schema: pa.Schema, destination: ParquetFolder) -> None:
        self.folder, self.schema, self.destination = folder, schema, destination
        self.rows = 0
        self._files: list[tuple[Path, int]] = []
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._written = 0  # rows in the open file

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        while batch.num_rows:
            piece = batch.slice(0, self._room() - self._waiting_rows)
            self._waiting.append(piece)
            self._waiting_rows += piece.num_rows
            batch = batch.slice(piece.num_rows)
            if self._waiting_rows == self._room():
                self._write_group()

    def finish(self) -> tuple[StagedFile, ...]:
        """The files, complete; no rows at all are one file without any."""
        if self._waiting or not self._files:
            self._write_group()
        self._end_file()
        return tuple(staged_file(path, rows, self.destination) for path, rows in self._files)

    def close(self) -> None:
        if self._writer is not None:
            with suppress(Exception):  # what is on the disk is removed
                self._writer.close()
            self._writer = None

    def _room(self) -> int:
        """How many rows the next row group has."""
        return min(ROWS_PER_GROUP, self.destination.rows_per_file - self._written)

    def _write_group(self) -> None:
        group = pa.Table.from_batches(self._waiting, schema=self.schema)
        self._waiting, self._waiting_rows = [], 0
        try:
            self._open().write_table(group, row_group_size=ROWS_PER_GROUP)
        except OSError as error:
            refuse_to_write(self.destination, error)
        self._written += group.num_rows
        if self._written == self.destination.rows_per_file:
            self._end_file()

    def _open(self) -> pq.ParquetWriter:
        import pyarrow.parquet as pq

        if self._writer is None:
            path = self.folder / part_name(len(self._files))
            os.close(os.open(path, NEW, 0o600))
            # Without Arrow's own schema, so that a file holds what its columns show and nothing else.
            self._writer = pq.ParquetWriter(str(path), self.schema, compression="zstd", store_schema=False)
            self._files.append((path, 0))
        return self._writer

    def _end_file(self) -> None:
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        try:
            writer.close()
        except OSError as error:
            refuse_to_write(self.destination, error)
        self._files[-1] = (self._files[-1][0], self._written)
        self._written = 0


def staged_file(path: Path, rows: int, destination: ParquetFolder) -> StagedFile:
    """What is to be said about a file that was written, from its bytes on the disk."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return StagedFile(path.name, path, os.fstat(file.fileno()).st_size, rows, digest)
    except OSError as error:
        refuse_to_write(destination, error)


def _absolute(destination: ParquetFolder) -> Path:
    return Path(os.path.abspath(destination.path))
