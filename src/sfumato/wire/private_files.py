"""Files that only their owner may read: keys and pseudonym maps.

Written to a temporary name and moved into place, so that a crash leaves the old file or the new one and never
a half; read only when nobody else could have read or replaced them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from sfumato.core.errors import InputError, SourceError
from sfumato.core.plain_files import sync_folder

READ_LIMIT = 1_000_000


def write_private(path: str | os.PathLike[str], content: bytes, *, replace: bool = False) -> None:
    """Write a file with mode 0600; an existing one is refused unless `replace`."""
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


def read_private(path: str | os.PathLike[str], *, limit: int = READ_LIMIT) -> bytes:
    """Read a file that belongs to this user and that nobody else may read or write."""
    target = Path(path)
    try:
        descriptor = os.open(target, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise SourceError(f"{target} cannot be read: {reason}") from None
    with open(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise SourceError(f"{target} is not a plain file")
        if found.st_mode & 0o077:
            raise InputError(
                f"{target} can be used by others (mode {stat.S_IMODE(found.st_mode):04o}). "
                f"If nobody has read it, run: chmod 600 '{target}'. Otherwise make a new one."
            )
        if found.st_uid not in (os.geteuid(), 0):
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
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file:
        os.fchmod(file.fileno(), 0o600)  # a narrower umask must not make it unreadable for its owner
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
