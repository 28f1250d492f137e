"""Folders and files that appear whole or not at all.

Everything is written into a hidden sibling, flushed to the disk, and put in its place by one rename. A
failure removes the sibling; a killed process leaves at most that hidden sibling, which the next writer of
the same place removes.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import platform
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.core.errors import InputError, SourceError

#: The file by which a folder is known as a release, and may be replaced by another one.
MARK = "public/certificate.json"

_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_HERE = -100  # AT_FDCWD


@contextmanager
def appearing_folder(folder: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write into, which becomes `folder` when the block ends without an error.

    An existing folder is refused; with `overwrite` it is replaced in one step, if it is empty or holds a
    release, so that a mistyped path never deletes somebody's work.
    """
    target = Path(os.path.abspath(folder))
    check_place(target, overwrite=overwrite)
    _sweep(target)
    hidden = target.parent / f".{target.name}.partial-{_machine()}-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden.mkdir(mode=0o700)
        yield hidden
        hidden.chmod(0o755)
        _flush(hidden)
        _put_in_place(hidden, target, overwrite)
    except OSError as error:
        raise _cannot_write(target, error) from error
    except SourceError as error:  # it names the place that was asked for, not the hidden one
        raise SourceError(str(error).replace(str(hidden), str(target))) from None
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def write_bytes(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a new file; it must not exist."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def check_place(target: Path, *, overwrite: bool = False) -> None:
    """Refuse a place where no release can be put."""
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise InputError(f"'{target}' exists and is not a folder. Choose another place for the release.")
    if not overwrite:
        raise InputError(f"'{target}' exists already. Choose another folder, or pass overwrite=True (--overwrite) to replace it.")
    if any(target.iterdir()) and not (target / MARK).is_file():
        raise InputError(f"'{target}' is not empty and holds no release, so it is not replaced. Choose another folder.")


def _put_in_place(hidden: Path, target: Path, overwrite: bool) -> None:
    if not os.path.lexists(target):
        try:
            # onto an empty folder that appeared meanwhile this succeeds too: nothing is lost
            os.rename(hidden, target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise InputError(f"'{target}' appeared while the release was being written; it is left alone.") from None
            raise
    else:
        check_place(target, overwrite=overwrite)
        _exchange(hidden, target)
    _flush_folder(target.parent)


def _exchange(new: Path, old: Path) -> None:
    """Swap two folders in one step where the system can; the old content is then at `new` and removed by the
    caller.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None, use_errno=True)
        swap = getattr(library, "renameat2", None)
        if swap is not None and swap(_HERE, os.fsencode(new), _HERE, os.fsencode(old), _EXCHANGE) == 0:
            return
    aside = new.with_name(new.name + ".old")
    os.rename(old, aside)
    try:
        os.rename(new, old)
    except OSError:
        os.rename(aside, old)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _sweep(target: Path) -> None:
    """Remove what a killed process left behind: hidden siblings whose process is gone."""
    pattern = re.compile(re.escape(f".{target.name}.partial-{_machine()}-") + r"(\d+)-[0-9a-f]{8}(\.old)?")
    try:
        names = os.listdir(target.parent)
    except OSError:
        return
    for name in names:
        matched = pattern.fullmatch(name)
        if matched and not _is_running(int(matched[1])):
            shutil.rmtree(target.parent / name, ignore_errors=True)


def _machine() -> str:
    """A short name of this machine: process numbers of another one on the same disk mean nothing here."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _flush(folder: Path) -> None:
    for path, _, files in os.walk(folder):
        for name in files:
            descriptor = os.open(os.path.join(path, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        _flush_folder(Path(path))


def _flush_folder(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # some systems cannot open folders; the rename itself is still one step
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


def _cannot_write(target: Path, error: OSError) -> InputError:
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    return InputError(f"the release could not be written to '{target}': {reason}. Nothing was left behind.")
