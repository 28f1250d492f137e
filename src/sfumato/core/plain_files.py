"""Plain files, bounded: a pipe, a device or a socket is refused before it is read, and a limit counts the bytes
that are really read, whatever the size of the file is said to be.

Keys and pseudonym maps are private: only their owner may read them. They are written to a temporary name and moved into place,
so that a crash leaves the old file or the new one and never a half; they are read only when nobody else could have read or
replaced them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from pathlib import Path
from typing import BinaryIO

from sfumato.core.errors import InputError, SfumatoError, SourceError
from sfumato.core.platforms import HAS_OWNERS, NEW, NO_LINK, READ, flags, set_mode

#: More than any file has that a person writes: a schema, a recipe, a key, a list of questions.
MOST_TEXT_BYTES = 64_000_000
#: An address, also one whose two slashes became one when it was taken for a path.
_ADDRESS = re.compile(r"(?:^|/)[A-Za-z][A-Za-z0-9+.-]+:/")
#: More than any private file has.
_MOST_PRIVATE_BYTES = 1_000_000
_FOLDER = flags("O_RDONLY", "O_CLOEXEC")
_NEW = NEW | NO_LINK | flags("O_CLOEXEC")


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make new names in a folder durable; some file systems cannot, and then they are durable soon enough."""
    try:
        descriptor = os.open(folder, _FOLDER)
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
        descriptor = os.open(path, READ)
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


def refuse_address(path: str | os.PathLike[str]) -> None:
    """Refuse the address of a database where a file or folder is to be made; it may hold a password and is not repeated."""
    if _ADDRESS.search(os.fspath(path)) is not None:
        raise InputError("this is an address of a database, and a file or folder is written here. Name one without '://'.")


def _kind(mode: int) -> str:
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


def write_private(path: str | os.PathLike[str], content: bytes, *, replace: bool = False) -> None:
    """Write a file with mode 0600; an existing one is refused unless `replace`."""
    refuse_address(path)
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        _write_new(temporary, content)
        if replace:
            os.replace(temporary, target)
        else:
            _move_without_replacing(temporary, target, content)
        sync_folder(target.parent)
    except FileExistsError:
        raise InputError(f"{target} exists already and is not overwritten. Name another file, or move that one away.") from None
    except OSError as error:
        raise SourceError(f"{target} cannot be written: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def read_private(path: str | os.PathLike[str], *, limit: int = _MOST_PRIVATE_BYTES) -> bytes:
    """Read a file that belongs to this user and that nobody else may read or write."""
    target = Path(path)
    try:
        if not hasattr(os, "O_NOFOLLOW") and target.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        descriptor = os.open(target, READ | NO_LINK)
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise SourceError(f"{target} cannot be read: {reason}") from None
    with open(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(f"{target} is not a plain file")
        if HAS_OWNERS and status.st_mode & 0o077:
            raise InputError(
                f"{target} can be used by others (mode {stat.S_IMODE(status.st_mode):04o}). "
                f"If nobody has read it, run: chmod 600 '{target}'. Otherwise make a new one."
            )
        if HAS_OWNERS and status.st_uid not in (os.geteuid(), 0):
            raise InputError(f"{target} belongs to another user, who could have exchanged it")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise SourceError(f"{target} is longer than {limit:,} bytes, which no file of this kind is")
    return content


def make_private_folder(path: Path) -> None:
    """Create a folder (mode 0700) and its parents; an existing one is left as it is."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"the folder {path} cannot be created: {error.strerror}") from None


def _write_new(path: Path, content: bytes) -> None:
    descriptor = os.open(path, _NEW, 0o600)
    with open(descriptor, "wb") as file:
        set_mode(file.fileno(), 0o600)  # a narrower umask must not make it unreadable for its owner
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _move_without_replacing(temporary: Path, target: Path, content: bytes) -> None:
    try:
        os.link(temporary, target)  # fails when the target exists, which a rename would not
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links: written directly, still never over an existing file.
        _write_new(target, content)
