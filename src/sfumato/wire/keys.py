"""The owner's secret key: 32 random bytes in a file that only the owner may read.

Fingerprints and pseudonyms are computed with keys derived from it, one per purpose (HKDF-Expand with SHA-256,
RFC 5869), so that what is published under one purpose says nothing about another. Destroying the file makes
all of them meaningless.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from sfumato.core.declared import Declared
from sfumato.core.errors import InputError, ParameterError, forgetting
from sfumato.core.files import make_private_folder, read_private, write_private
from sfumato.core.randomness import Randomness, SystemRandomness
from sfumato.core.ranges import Made

KEY_BYTES = 32
_HEADER = "sfumato-owner-key-1"


def _key_bytes(secret: bytes) -> bytes:
    if not isinstance(secret, bytes) or len(secret) != KEY_BYTES:
        raise ParameterError("not a key")
    return secret


@dataclass(frozen=True)
class OwnerKey(Declared):
    """The `secret` from which keys for single purposes are derived. Never printed."""

    secret: Annotated[bytes, Made(_key_bytes, f"the {KEY_BYTES} bytes of an owner's key"), "the secret"] = field(repr=False)

    @classmethod
    def generate(cls, randomness: Randomness | None = None) -> OwnerKey:
        """A new key from the operating system's randomness, or from a seeded one in a demonstration."""
        return cls((randomness or SystemRandomness()).bytes(KEY_BYTES))

    def derive(self, purpose: str) -> bytes:
        """The 32-byte key for one purpose."""
        return hmac.new(self.secret, b"sfumato:" + purpose.encode() + b"\x01", hashlib.sha256).digest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a new file, mode 0600; an existing file is never overwritten."""
        write_private(path, f"{_HEADER} {self.secret.hex()}\n".encode())

    @classmethod
    @forgetting()
    def load(cls, path: str | os.PathLike[str]) -> OwnerKey:
        """Read a key file; refused when others may read it."""
        header, _, digits = read_private(path, limit=200).decode("ascii", errors="replace").strip().partition(" ")
        try:
            if header != _HEADER:
                raise ValueError
            return cls(bytes.fromhex(digits))
        except (ValueError, InputError):
            raise InputError(f"{os.fspath(path)} is not an owner's key file, or it is damaged") from None


def default_owner_key_path() -> Path:
    """The file named by SFUMATO_KEY, else `sfumato/owner.key` in the user's configuration folder."""
    named = os.environ.get("SFUMATO_KEY")
    if named:
        return Path(named)
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    # The specification of these folders says that a relative path is to be ignored.
    folder = Path(configured) if os.path.isabs(configured) else Path.home() / ".config"
    return folder / "sfumato" / "owner.key"


def load_or_create_owner_key(path: str | os.PathLike[str] | None = None) -> OwnerKey:
    """The owner's key, made on first use; several processes that start together end up with the same one."""
    target = default_owner_key_path() if path is None else Path(path)
    if not os.path.lexists(target):
        make_private_folder(target.parent)
        try:
            OwnerKey.generate().save(target)
        except InputError:
            if not os.path.lexists(target):
                raise
    return OwnerKey.load(target)


def owner_key_of(key: object, randomness: Randomness) -> OwnerKey:
    """The key itself, the key in that file, or the owner's own, made on first use; of a demonstration, one from its seed."""
    if isinstance(key, OwnerKey):
        return key
    if isinstance(key, (str, Path)):
        return load_or_create_owner_key(key)
    if key is not None:
        raise ParameterError("key is an OwnerKey or the path of the file that holds one")
    return load_or_create_owner_key() if randomness.private else OwnerKey.generate(randomness)
