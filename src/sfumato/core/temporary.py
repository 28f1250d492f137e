"""Temporary places that nothing raw survives, however the process ends.

Rows that another process needs go into a memory file, which has no name and vanishes with the last process that has it open.
Where a name is needed there is a folder that its process holds by a lock. The system drops the lock when the process dies, so
a folder that nobody holds is left over, whatever process numbers, machines or containers say; the next start removes it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.core.platforms import HAS_OWNERS, flags

_FOLDER = flags("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")

#: How the names of held folders start; nothing else in the temporary folder is ever looked at.
PREFIX = "sfumato-held-"
_ATTEMPTS = 100

_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_HERE = -100  # AT_FDCWD


@contextmanager
def temporary_folder(purpose: str) -> Iterator[str]:
    """A folder of this user alone, which is gone afterwards, or at the next start when the process was killed."""
    folder = hold_temporary(purpose)
    try:
        yield str(folder.path)
    finally:
        folder.remove()


def hold_temporary(purpose: str) -> HeldFolder:
    """A temporary folder of this user alone, held until it is removed; what killed processes left is removed first."""
    sweep()
    return hold_folder(lambda: Path(tempfile.gettempdir()) / f"{PREFIX}{purpose}-{secrets.token_hex(8)}")


class HeldFolder:
    """A folder that exists and is held by this process until it is let go or the process ends."""

    def __init__(self, path: Path, lock: int | None) -> None:
        self.path = path
        self._lock = lock
        self._process = os.getpid()

    def remove(self) -> None:
        """Remove the folder and let it go; in a process that was forked from its holder this does nothing."""
        if self._process == os.getpid():
            remove_tree(self.path)
            self.let_go()

    def let_go(self) -> None:
        """Hold it no longer."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def hold_folder(name: Callable[[], Path]) -> HeldFolder:
    """Make a folder under a fresh name, for this user alone, and hold it."""
    for _ in range(_ATTEMPTS):
        path = name()
        try:
            path.mkdir(mode=0o700)
            path.chmod(0o700)  # a umask may have taken away what its owner needs
            held = _held(path)
        except FileExistsError:
            raise
        except FileNotFoundError:
            if not path.parent.is_dir():
                raise
            continue  # somebody who swept was faster
        except BaseException:  # a signal, before anybody knows of the folder
            remove_tree(path)
            raise
        if held is not None:
            return held
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def remove_tree(path: Path) -> None:
    """Remove a folder as far as that is possible. A signal that arrives meanwhile is heard when it is gone."""
    try:
        shutil.rmtree(path, ignore_errors=True)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def remove_unheld(path: Path) -> None:
    """Remove a folder of this user that no process holds; where nobody knows, it stays."""
    left = take_over(path)
    if left is not None:
        left.remove()


def take_over(path: Path) -> HeldFolder | None:
    """A folder of this user whose process is gone, held by this one from now on; None where another process holds it, where there
    is none, or where nobody can tell."""
    try:
        lock = os.open(path, _FOLDER)
    except OSError:
        return None
    try:
        if (not HAS_OWNERS or os.fstat(lock).st_uid == os.geteuid()) and _locked(lock):
            return HeldFolder(path, lock)
    except OSError:
        pass
    os.close(lock)
    return None


def sweep() -> None:
    """Remove the temporary folders of processes that were killed."""
    place = tempfile.gettempdir()
    with suppress(OSError):
        for name in os.listdir(place):
            if name.startswith(PREFIX):
                remove_unheld(Path(place) / name)


def exchange(new: Path, old: Path) -> None:
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
    remove_tree(aside)


def memory_file() -> int:
    """The descriptor of a file without a name: in memory where the system can, else a file that is unlinked once opened."""
    if hasattr(os, "memfd_create"):
        with suppress(OSError):
            return os.memfd_create("sfumato", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile(prefix=PREFIX) as file:
        return os.dup(file.fileno())


def _held(path: Path) -> HeldFolder | None:
    """The folder with its lock; None where somebody who swept was faster, which can only happen before the lock is there."""
    try:
        lock = os.open(path, _FOLDER)
    except FileNotFoundError:
        return None
    except OSError:
        if hasattr(os, "O_DIRECTORY"):
            raise
        return HeldFolder(path, None)  # a system that opens no folders, and so locks none
    try:
        if not _locked(lock):
            os.close(lock)
            return None
    except OSError:  # a file system without locks: nobody can tell, so nobody removes it
        os.close(lock)
        return HeldFolder(path, None)
    if not _is_same(path, lock):
        os.close(lock)
        return None
    return HeldFolder(path, lock)


def _locked(descriptor: int) -> bool:
    """Whether this process now holds the lock; False where another one does."""
    try:
        import fcntl
    except ImportError:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP)) from None

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same(path: Path, descriptor: int) -> bool:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(status.st_mode) and os.path.samestat(status, os.fstat(descriptor))
