"""Signatures over bytes with Ed25519: who holds the public key can tell that the owner signed exactly this.

The signed message is prefixed with a context ("certificate", "head"), so that a signature made for one
purpose cannot be presented for another. Bernstein et al., "High-speed high-security signatures", CHES 2011;
RFC 8032.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from sfumato.core.declared import Declared
from sfumato.core.errors import InputError, ParameterError, forgetting
from sfumato.core.files import read_private, write_private
from sfumato.core.ranges import Made

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KEY_BYTES = 32
SIGNATURE_BYTES = 64
_TEXT = "ed25519:"


def _key_bytes(raw: bytes) -> bytes:
    if len(raw) != KEY_BYTES:
        raise ParameterError("not a key")
    return raw


@dataclass(frozen=True)
class VerifyingKey(Declared):
    """A public key of 32 bytes (`raw`). Its text form, `ed25519:…`, goes on certificates; `identity` is for people
    who compare keys.
    """

    raw: Annotated[bytes, Made(_key_bytes, f"the {KEY_BYTES} bytes of an Ed25519 public key"), "the key"]

    @property
    def identity(self) -> str:
        """The key's digest, all 256 bits: 64 hexadecimal digits in groups of four. Fewer could be hit by trying keys."""
        digits = hashlib.sha256(self.raw).hexdigest()
        return "-".join(digits[start : start + 4] for start in range(0, len(digits), 4))

    def __str__(self) -> str:
        return _TEXT + base64.b64encode(self.raw).decode()

    @classmethod
    def parse(cls, text: str) -> VerifyingKey:
        """Read the text form."""
        try:
            if not text.startswith(_TEXT):
                raise ValueError
            return cls(base64.b64decode(text[len(_TEXT) :].strip(), validate=True))
        except (ValueError, binascii.Error, InputError):
            raise InputError("not a public key; it looks like ed25519:… and is printed when the key is made") from None

    def pem(self) -> str:
        """The key for other programs, in PEM."""
        from cryptography.hazmat.primitives import serialization

        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self._key().public_bytes(serialization.Encoding.PEM, form).decode()

    def verifies(self, message: bytes, signature: bytes, *, context: str) -> bool:
        """True when the matching key signed exactly this message in this context."""
        from cryptography.exceptions import InvalidSignature

        try:
            self._key().verify(signature, framed(message, context))
        except (InvalidSignature, ValueError):
            return False
        return True

    def _key(self) -> Ed25519PublicKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        return Ed25519PublicKey.from_public_bytes(self.raw)


@dataclass(frozen=True)
class SigningKey:
    """A private key, kept in a file that only its owner may read."""

    _key: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def generate(cls) -> SigningKey:
        """A new key."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate())

    @property
    def public(self) -> VerifyingKey:
        """The public half."""
        return VerifyingKey(self._key.public_key().public_bytes_raw())

    def sign(self, message: bytes, *, context: str) -> bytes:
        """64 bytes that only this key can make."""
        return self._key.sign(framed(message, context))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a new file (PKCS #8 in PEM, mode 0600); an existing file is never overwritten."""
        from cryptography.hazmat.primitives import serialization

        write_private(
            path,
            self._key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )

    @classmethod
    @forgetting()
    def load(cls, path: str | os.PathLike[str]) -> SigningKey:
        """Read a key file; refused when others may read it."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(read_private(path, limit=10_000), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise InputError(f"{os.fspath(path)} is not an unencrypted private key in PEM") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise InputError(f"{os.fspath(path)} holds a key of another kind; Ed25519 is needed")
        return cls(key)


def framed(message: bytes, context: str) -> bytes:
    """The bytes that are signed: context and message cannot run into each other."""
    name = context.encode()
    if not name or len(name) > 255:
        raise InputError("the context of a signature is a short name")
    return b"sfumato-signature-1" + bytes([len(name)]) + name + message
