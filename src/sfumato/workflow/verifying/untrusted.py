"""Reading a folder that somebody else wrote: plain files with plain names, bounded in size, never a link.

Every file is opened relative to the folder's own descriptor and without following links, so that no name
leads outside; what is hashed is copied to a private place first, so that what was hashed is what is read.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sfumato.core.errors import VerificationFailed, forgetting
from sfumato.core.platforms import NO_LINK, READ, flags, require_ability

MAX_FILES = 200
MAX_JSON_BYTES = 16_000_000
MAX_TEXT_BYTES = 64_000_000
MAX_DATA_BYTES = 16_000_000_000
MAX_JSON_DEPTH = 60
_LARGE = 1 << 20
_FOLDER = flags("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
_MOST_DIGITS = 300  # a longer whole number is beyond every floating-point number

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Copied:
    """A file that was copied out: where to, and what it was."""

    path: Path
    sha256: str
    length: int


@dataclass(frozen=True)
class UntrustedFolder:
    """An open folder; `names` are its plain files."""

    descriptor: int
    names: tuple[str, ...]

    def read(self, name: str, limit: int = MAX_JSON_BYTES) -> bytes:
        """The content of a small file."""
        with self._opened(name, limit) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            content = file.read(limit + 1)
        if len(content) > limit:
            raise VerificationFailed(f"the file {quoted(name)} is larger than {limit:,} bytes")
        return content

    def copy(self, name: str, destination: Path, limit: int, expected: int | None = None) -> Copied:
        """Copy a file to a private place and hash what was copied.

        A file that is not `expected` bytes long, or that is mostly holes, is refused before any of it is copied.
        """
        digest = hashlib.sha256()
        target = destination / name
        with self._opened(name, limit) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            size = os.fstat(descriptor).st_size
            if expected is not None and size != expected:
                raise VerificationFailed(
                    f"the file {quoted(name)} is not the one that was certified: its length differs, and so does its digest"
                )
            if size > _LARGE and _stored_bytes(descriptor, size) < size // 2:
                raise VerificationFailed(f"the file {quoted(name)} is mostly holes, which no file of a release is")
            length = _copy(name, file, target, limit, digest)
        return Copied(target, digest.hexdigest(), length)

    def refuse(self, name: str) -> None:
        """Raise where there is anything of this name."""
        try:
            os.lstat(name, dir_fd=self.descriptor)
        except OSError:
            return
        raise VerificationFailed(f"{quoted(name)} is not a plain file")

    @contextmanager
    def inside(self, name: str, most: int = MAX_FILES) -> Iterator[UntrustedFolder]:
        """A folder in this one, with at most so many plain files and nothing else in it."""
        with _opened_folder(name, self.descriptor) as descriptor:
            yield UntrustedFolder(descriptor, _listed(descriptor, (), most))

    @contextmanager
    def _opened(self, name: str, limit: int) -> Iterator[int]:
        try:
            descriptor = os.open(name, READ | NO_LINK, dir_fd=self.descriptor)
        except OSError as error:
            raise VerificationFailed(f"the file {quoted(name)} cannot be opened: {_reason(error)}") from None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise VerificationFailed(f"{quoted(name)} is not a plain file")
            if status.st_size > limit:
                raise VerificationFailed(f"the file {quoted(name)} is larger than {limit:,} bytes")
            yield descriptor
        finally:
            os.close(descriptor)


def _copy(name: str, file: BinaryIO, target: Path, limit: int, digest: hashlib._Hash) -> int:
    length = 0
    with target.open("xb") as copy:
        while block := file.read(1 << 20):
            length += len(block)
            if length > limit:
                raise VerificationFailed(f"the file {quoted(name)} is larger than {limit:,} bytes")
            digest.update(block)
            copy.write(block)
    return length


def _stored_bytes(descriptor: int, size: int) -> int:
    """How much of a file is stored and not a hole; all of it where the system does not say. Moves back to the start."""
    stored = end = 0
    if not hasattr(os, "SEEK_DATA"):
        return size
    try:
        while end < size and stored < size // 2:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, start, os.SEEK_HOLE)
            stored += end - start
    except OSError as error:
        if error.errno != errno.ENXIO:  # that is: nothing but a hole from here on
            stored = size
    os.lseek(descriptor, 0, os.SEEK_SET)
    return stored


@contextmanager
def untrusted(folder: Path, *, folders: Collection[str] = ()) -> Iterator[UntrustedFolder]:
    """Open a folder and list it; anything but plain files with plain names is refused, and folders other than those in `folders`,
    which are not looked into."""
    with _opened_folder(os.fspath(folder), None) as descriptor:
        yield UntrustedFolder(descriptor, _listed(descriptor, folders, MAX_FILES))


@contextmanager
def _opened_folder(name: str, inside: int | None) -> Iterator[int]:
    require_ability(hasattr(os, "O_DIRECTORY") and hasattr(os, "O_NOFOLLOW"), "reading a folder of somebody else without links")
    try:
        descriptor = os.open(name, _FOLDER, dir_fd=inside)
    except OSError as error:
        raise VerificationFailed(f"the folder cannot be opened: {_reason(error)}") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _listed(descriptor: int, folders: Collection[str], most: int) -> tuple[str, ...]:
    names = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if entry.name in folders and entry.is_dir(follow_symlinks=False):
                continue
            names.append(entry.name)
            if len(names) > most:
                raise VerificationFailed(f"the folder holds more than {most} files")
            if not _PLAIN_NAME.fullmatch(entry.name):
                raise VerificationFailed(f"the folder holds a file with an unusual name: {quoted(entry.name)}")
            if not entry.is_file(follow_symlinks=False):
                raise VerificationFailed(f"{quoted(entry.name)} is not a plain file")
    return tuple(sorted(names))


def is_plain_name(name: object) -> bool:
    """True for a name that stays inside its folder."""
    return isinstance(name, str) and _PLAIN_NAME.fullmatch(name) is not None


@forgetting()
def parse_json(raw: bytes, what: str) -> Any:  # JSON of any shape
    """JSON of a stranger: no repeated keys, no NaN, bounded depth, whole characters."""
    try:
        text = raw.decode("utf-8")
        depth = _depth(text)
        if depth > MAX_JSON_DEPTH:
            raise VerificationFailed(f"{what} is nested {depth} deep; at most {MAX_JSON_DEPTH} is read")
        content = json.loads(
            text, object_pairs_hook=_without_repeats, parse_constant=_no_constant, parse_int=_whole, parse_float=_real
        )
        if r"\ud" in text.lower():  # half a character, which no text of a release has and no file can hold
            json.dumps(content, ensure_ascii=False).encode()
        return content
    except UnicodeDecodeError:
        raise VerificationFailed(f"{what} is not UTF-8 text") from None
    except OverflowError:
        raise VerificationFailed(f"{what} holds a number that is too large to be measured") from None
    except (ValueError, RecursionError):
        raise VerificationFailed(f"{what} is not valid JSON") from None


def quoted(name: str) -> str:
    """A foreign name in a message: short, and without characters that act on a terminal."""
    shown = name if len(name) <= 60 else name[:59] + "…"
    return ascii(shown)


def _depth(text: str) -> int:
    deepest = depth = 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*+"|[\[{\]}]', text):
        mark = match[0]
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}":
            depth -= 1
    return deepest


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("repeated key")
    return mapping


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise OverflowError
    return int(digits)


def _real(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise OverflowError
    return number


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else type(error).__name__
