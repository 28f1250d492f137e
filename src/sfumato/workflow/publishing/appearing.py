"""Folders and files that appear whole or not at all.

Everything is written into a hidden sibling, flushed to the disk, and put in its place by one rename. A
failure removes the sibling; a killed process leaves at most that hidden sibling, which the next writer of
the same place removes: nobody holds its lock any more. Modes are those asked for, whatever the umask.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.core.errors import InputError, SourceError
from sfumato.core.files import exchange, hold_folder, refuse_address, remove_tree, remove_unheld, sync_folder
from sfumato.core.platforms import FLUSH, NEW, set_mode

#: The file by which a folder is known as a release, and may be replaced by another one.
MARK = "public/certificate.json"


@contextmanager
def appearing_folder(folder: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write into, which becomes `folder` when the block ends without an error.

    An existing folder is refused; with `overwrite` it is replaced in one step, if it is empty or holds a
    release, so that a mistyped path never deletes somebody's work.
    """
    target = Path(os.path.abspath(folder))
    check_place(target, overwrite=overwrite)
    _sweep(target)
    hidden, held = _hidden_name(target), None
    try:
        make_parents(target)
        held = hold_folder(lambda: _hidden_name(target))
        hidden = held.path
        yield hidden
        hidden.chmod(0o755)
        _flush(hidden)
        _put_in_place(hidden, target, overwrite)
    except OSError as error:
        raise _cannot_write(target, error) from None
    except SourceError as error:  # it names the place that was asked for, not the hidden one
        raise SourceError(str(error).replace(str(hidden), str(target))) from None
    finally:
        remove_tree(hidden)
        if held is not None:
            held.let_go()


def write_bytes(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a new file; it must not exist."""
    descriptor = os.open(path, NEW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        set_mode(file.fileno(), mode)
        file.write(content)


def make_parents(path: Path) -> None:
    """Make the folders above a place, readable by all and writable by their owner, whatever the umask."""
    if not path.parent.exists():
        make_parents(path.parent)
        with suppress(FileExistsError):  # somebody made it at the same time
            make_folder(path.parent, 0o755)


def make_folder(path: Path, mode: int) -> None:
    """Make a folder with this mode, whatever the umask."""
    path.mkdir(mode=0o700)
    path.chmod(mode)


def check_place(target: Path, *, overwrite: bool = False) -> None:
    """Refuse a place where no release can be put."""
    refuse_address(target)
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
        exchange(hidden, target)
    sync_folder(target.parent)


def _hidden_name(target: Path) -> Path:
    return target.parent / f".{target.name}.partial-{secrets.token_hex(8)}"


def _sweep(target: Path) -> None:
    """Remove what killed processes left behind: hidden siblings that no process holds, for whatever place they were meant."""
    pattern = re.compile(r"\..+\.partial-[0-9a-f]{16}(\.old)?")
    try:
        names = os.listdir(target.parent)
    except OSError:
        return
    for name in names:
        matched = pattern.fullmatch(name)
        own = name.startswith(f".{target.name}.partial-")
        # without its successor an old release is all there is
        if matched and (matched[1] is None or (own and target.exists())):
            remove_unheld(target.parent / name)


def _flush(folder: Path) -> None:
    for path, _, files in os.walk(folder):
        for name in files:
            descriptor = os.open(os.path.join(path, name), FLUSH)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(path)


def _cannot_write(target: Path, error: OSError) -> InputError:
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    return InputError(f"the release could not be written to '{target}': {reason}. Nothing was left behind.")
