"""Compressed files that unpack into far more than they hold: refused while they are unpacked, not after.

A table about people shrinks to a fifth or a twentieth of its size, seldom to less than a hundredth. A file beyond that is
read only when its owner says so: `SFUMATO_EXPANSION=2000` allows two thousand bytes for each byte of the file.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Protocol

from sfumato.core.errors import ParameterError, SourceError

VARIABLE = "SFUMATO_EXPANSION"
USUAL_EXPANSION = 100
#: So much is unpacked without a question, however small the file is.
FREE_BYTES = 256 << 20
_BLOCK_BYTES = 1 << 24


class Stream(Protocol):
    """What hands out bytes piece by piece."""

    def read(self, nbytes: int) -> bytes:
        """At most so many bytes; none at the end."""


def read_expanding(stream: Stream, stored: int, where: str) -> bytes:
    """All bytes of a stream over a file of `stored` bytes; refused as soon as they are more than such a file holds."""
    most = _most_bytes(stored)
    blocks = [stream.read(stored + 1)]  # of a file that is not compressed all there is, without a second copy
    length = len(blocks[0])
    while block := stream.read(_BLOCK_BYTES):
        length += len(block)
        if length > most:
            raise _refusal(where, most)
        blocks.append(block)
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def refuse_expanding_archive(path: Path, where: str) -> None:
    """Refuse a zip archive whose parts unpack into too much; no part yields more bytes than the archive says."""
    try:
        most = _most_bytes(path.stat().st_size)
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(part.file_size for part in archive.infolist())
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return  # not an archive: the reader of the format says so
    if unpacked > most:
        raise _refusal(where, most)


def _most_bytes(stored: int) -> int:
    ratio = os.environ.get(VARIABLE, str(USUAL_EXPANSION))
    if not (ratio.isascii() and ratio.isdecimal() and 0 < int(ratio[:12]) == int(ratio)):
        raise ParameterError(f"the variable {VARIABLE} is a whole number: how many bytes one byte of a file may unpack into")
    return max(FREE_BYTES, stored * int(ratio))


def _refusal(where: str, most: int) -> SourceError:
    return SourceError(
        f"{where} unpacks into more than {most:,} bytes, far more than a table of its size does, and was not read further. "
        f"If it is meant to, unpack it yourself or set {VARIABLE}=2000."
    )
