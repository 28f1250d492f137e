"""Length-prefixed frames: how messages share a stream of bytes, with bounds that a hostile sender cannot
pass.

A frame is its length in four bytes, most significant first, and then that many bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.core.errors import InputError

PREFIX = 4
FRAME_LIMIT = 1 << 20


def packed(payload: bytes, *, limit: int = FRAME_LIMIT) -> bytes:
    """One frame."""
    if len(payload) > limit:
        raise InputError(f"a frame holds at most {limit:,} bytes")
    return len(payload).to_bytes(PREFIX, "big") + payload


def joined(payloads: Iterable[bytes], *, limit: int = FRAME_LIMIT) -> bytes:
    """Several frames in a row."""
    return b"".join(packed(payload, limit=limit) for payload in payloads)


def split(stream: bytes, *, limit: int = FRAME_LIMIT, count_limit: int = 100_000) -> list[bytes]:
    """All frames of a complete stream; refused when one is too long, there are too many, or the last is cut
    off.
    """
    reader = FrameReader(limit=limit, count_limit=count_limit)
    frames = reader.feed(stream)
    reader.finish()
    return frames


class FrameReader:
    """Collects bytes as they arrive and gives out complete frames; after a fault it accepts nothing more."""

    def __init__(self, *, limit: int = FRAME_LIMIT, count_limit: int = 100_000) -> None:
        self._limit = limit
        self._count_limit = count_limit
        self._count = 0
        self._buffer = bytearray()
        self._failed = False

    def feed(self, received: bytes) -> list[bytes]:
        """Take what arrived; return the frames that are complete."""
        if self._failed:
            raise InputError("the stream was refused before; open a new one")
        self._buffer += received
        frames, start = [], 0
        while len(self._buffer) - start >= PREFIX:
            length = int.from_bytes(self._buffer[start : start + PREFIX], "big")
            # Checked before anything is waited for: the announced length decides how much memory a sender can
            # claim.
            if length > self._limit:
                self._refuse(f"a frame announces more than the {self._limit:,} bytes allowed")
            if len(self._buffer) - start - PREFIX < length:
                break
            self._count += 1
            if self._count > self._count_limit:
                self._refuse(f"the stream has more than the {self._count_limit:,} frames allowed")
            start += PREFIX
            frames.append(bytes(self._buffer[start : start + length]))
            start += length
        del self._buffer[:start]
        return frames

    def finish(self) -> None:
        """Say that the stream has ended; refused when it ended inside a frame."""
        if self._buffer:
            self._refuse("the stream ends in the middle of a frame")

    def _refuse(self, reason: str) -> None:
        self._failed = True
        self._buffer.clear()
        raise InputError(reason)
