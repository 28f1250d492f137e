"""Plain files, bounded: a pipe, a device or a socket is refused before it is read, and a limit counts the bytes
that are really read, whatever the size of the file is said to be.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from sfumato.core.errors import SfumatoError, SourceError

#: More than any file has that a person writes: a schema, a recipe, a key, a list of questions.
MOST_TEXT_BYTES = 64_000_000


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make new names in a folder durable; some file systems cannot, and then they are durable soon enough."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


def open_plain(path: str | os.PathLike[str], error: type[SfumatoError] = SourceError) -> BinaryIO:
    """Open a plain file for reading; opening a pipe would wait for its writer, and a device never ends.

    Where the file is not there or may not be read the `OSError` of the system is passed on.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except ValueError:  # a null character, or half of one that is no byte
        raise error("the name of a file holds a character that no file name can have") from None
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError
        if not stat.S_ISREG(mode):
            raise error(f"'{path}' is not a plain file but {_kind(mode)}. Copy its content into a file and name that one.")
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_plain(
    path: str | os.PathLike[str], error: type[SfumatoError] = SourceError, *, limit: int = MOST_TEXT_BYTES, what: str = "file"
) -> bytes:
    """The content of a plain file of at most `limit` bytes; `what` says what it should have been."""
    with open_plain(path, error) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise error(f"the {what} '{path}' is longer than {limit:,} bytes and was not read")
    return content


def refuse_special(path: str | os.PathLike[str]) -> None:
    """Refuse a pipe, a device or a socket by its name, before a library opens it; whether it exists is not asked here."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise SourceError(f"'{path}' is not a plain file but {_kind(mode)}. Copy its content into a file and name that one.")


def _kind(mode: int) -> str:
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
