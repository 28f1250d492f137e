"""Randomness as a byte source.

The operating system's generator by default; an AES-CTR stream keyed by it where many bytes are needed; a seeded
stream for tests and demonstrations, which marks every release it touches as a demonstration. A forked process goes on with
bytes of its own: noise that parent and child share would cancel out.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from sfumato.core.errors import ParameterError
from sfumato.core.texts import is_unicode, python_number

if TYPE_CHECKING:
    import numpy as np
    from cryptography.hazmat.primitives.ciphers import CipherContext

_WORD = 8
#: Which fork of which fork this process is, and how often it has forked: together they name every descendant.
_lineage: tuple[int, ...] = ()
_forks = 0


def _before_fork() -> None:
    global _forks
    _forks += 1


def _in_child() -> None:
    global _lineage, _forks
    _lineage, _forks = (*_lineage, _forks), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)


_SYSTEM, _STREAM, _SEEDED = "operating system", "AES-CTR stream keyed by the operating system", "seeded stream (demonstration)"
#: How certificates name a source, and whether it is private.
DESCRIPTIONS = {_SYSTEM: True, _STREAM: True, _SEEDED: False}


class Randomness(Protocol):
    """A source of bytes; `private` is False when somebody could replay it."""

    @property
    def private(self) -> bool: ...

    @property
    def description(self) -> str: ...

    def bytes(self, count: int) -> bytes: ...


@dataclass(frozen=True)
class SystemRandomness:
    """The operating system's cryptographic generator, one call per request."""

    private: bool = field(default=True, init=False)
    description: str = field(default=_SYSTEM, init=False)

    def bytes(self, count: int) -> bytes:
        """That many fresh bytes."""
        return os.urandom(count)


class StreamRandomness:
    """An AES-256-CTR key stream, keyed from the operating system or from a seed.

    With a seed the same bytes come out again: for tests and demonstrations only. In a forked child a stream goes on under
    another key: a fresh one, or with a seed one that follows from the old key and from which fork it is, so that the same
    program gives the same bytes again and no two of its processes share them.
    """

    def __init__(self, seed: int | str | None = None) -> None:
        seed = python_number(seed)
        if isinstance(seed, bool) or not isinstance(seed, (int, str, type(None))):
            raise ParameterError("a seed is an integer, a string or None")
        if isinstance(seed, str) and not is_unicode(seed):
            raise ParameterError("a seed is an integer or a text, and this text holds half a character")
        self._private = seed is None
        self._key = os.urandom(32) if seed is None else hashlib.sha256(f"sfumato seed {seed!r}".encode()).digest()
        self._stream = _aes_counter_stream(self._key)
        self._drawn_in = _lineage, os.getpid()

    @property
    def private(self) -> bool:
        """False when the stream was seeded."""
        return self._private

    @property
    def description(self) -> str:
        """How the certificate names this source."""
        return _STREAM if self._private else _SEEDED

    def bytes(self, count: int) -> bytes:
        """The next bytes of the stream."""
        if self._drawn_in != (_lineage, os.getpid()):
            self._after_fork()
        return self._stream.update(bytes(count))

    def _after_fork(self) -> None:
        lineage, process = _lineage, os.getpid()
        if self._private:
            self._key = os.urandom(32)
        else:  # a fork that Python does not know of has no lineage of its own; its process number has to do
            since = lineage[len(self._drawn_in[0]) :]
            name = repr(since) if since else f"process {process}"
            self._key = hashlib.sha256(b"sfumato fork " + self._key + name.encode()).digest()
        self._stream = _aes_counter_stream(self._key)
        self._drawn_in = lineage, process


def default(seed: int | str | None = None) -> Randomness:
    """The operating system's source, or a seeded stream when a seed is given."""
    return SystemRandomness() if seed is None else StreamRandomness(seed)


def below(source: Randomness, bound: int) -> int:
    """A uniform integer in [0, bound), by rejection, for bounds of any size."""
    if bound < 1:
        raise ParameterError("the bound of a random integer must be at least 1")
    width = (bound - 1).bit_length()
    length = (width + 7) // 8
    while True:
        value = int.from_bytes(source.bytes(length), "big") >> (8 * length - width) if length else 0
        if value < bound:
            return value


def words(source: Randomness, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Uniform unsigned 64-bit words."""
    import numpy as np

    return np.frombuffer(source.bytes(count * _WORD), dtype=np.uint64)


def permutation(source: Randomness, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A uniform permutation of range(count): the order of random words, ties (2^-64) redrawn."""
    import numpy as np

    while True:
        drawn = words(source, count)
        order = np.argsort(drawn, kind="stable")
        ranked = drawn[order]
        if not np.any(ranked[1:] == ranked[:-1]):
            return order.astype(np.int64)


def _aes_counter_stream(key: bytes) -> CipherContext:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
