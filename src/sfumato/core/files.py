"""Files that are what they are said to be, and temporary places that nothing raw survives, however the process ends.

A pipe, a device or a socket is refused before it is read, and a limit counts the bytes that are really read. Keys and pseudonym
maps are private: only their owner may read them. They are written to a temporary name and moved into place, so that a crash
leaves the old file or the new one and never a half; they are read only when nobody else could have read or replaced them.

Rows that another process needs go into a memory file, which has no name and vanishes with the last process that has it open.
Where a name is needed there is a folder that its process holds by a lock. The system drops the lock when the process dies, so
a folder that nobody holds is left over, whatever process numbers, machines or containers say; the next start removes it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sfumato.core.errors import InputError, SfumatoError, SourceError
from sfumato.core.platforms import HAS_OWNERS, NEW, NO_LINK, READ, flags, set_mode

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
