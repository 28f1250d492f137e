"""Sealed messages: anybody may seal to a public key, only the private key opens, and a changed message does
not open.

A fresh X25519 key agrees with the recipient's key; HKDF-SHA256 over the shared secret and both public keys
gives a key for one ChaCha20-Poly1305 encryption. There is no sender authentication: combine with a signature
where that matters. RFC 7748, RFC 5869, RFC 8439; the construction is that of ECIES and of HPKE's base mode
(RFC 9180).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.core.errors import InputError
from sfumato.core.randomness import Randomness, SystemRandomness

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

KEY_BYTES = 32
#: How much longer a sealed message is: the fresh public key and the authentication tag.
OVERHEAD = 48
_NONCE = bytes(12)  # every key encrypts a single message


@dataclass(frozen=True)
class SealingKey:
    """A private key that opens what was sealed to `public`."""

    _key: X25519PrivateKey = field(repr=False)

    @classmethod
    def generate(cls, randomness: Randomness | None = None) -> SealingKey:
        """A new key."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        return cls(X25519PrivateKey.from_private_bytes((randomness or SystemRandomness()).bytes(KEY_BYTES)))

    @property
    def public(self) -> bytes:
        """The 32 bytes to which others seal."""
        return self._key.public_key().public_bytes_raw()

    def agree(self, theirs: bytes) -> bytes:
        """The secret shared with the holder of another key."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        try:
            return self._key.exchange(X25519PublicKey.from_public_bytes(theirs))
        except ValueError:
            raise InputError("not a usable public key for sealing") from None


def seal(public: bytes, message: bytes, *, context: bytes = b"", randomness: Randomness | None = None) -> bytes:
    """Seal a message to a public key; it opens only under the same context. `OVERHEAD` bytes longer than the
    message.
    """
    fresh = SealingKey.generate(randomness)
    secret = _one_time_key(fresh.agree(public), fresh.public, public, context)
    return fresh.public + _cipher(secret, message, encrypt=True)


def open_sealed(key: SealingKey, sealed: bytes, *, context: bytes = b"") -> bytes:
    """The message, if it was sealed to this key under this context and not changed since."""
    from cryptography.exceptions import InvalidTag

    fresh, ciphertext = sealed[:KEY_BYTES], sealed[KEY_BYTES:]
    try:
        secret = _one_time_key(key.agree(fresh), fresh, key.public, context)
        return _cipher(secret, ciphertext, encrypt=False)
    except (InvalidTag, InputError, ValueError):
        # One message for every cause: the difference would help whoever tries altered messages.
        raise InputError("the sealed message cannot be opened: wrong key, or it was changed on the way") from None


def _one_time_key(shared: bytes, fresh: bytes, recipient: bytes, context: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    info = b"sfumato-seal-1" + fresh + recipient + context
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(shared)


def _cipher(secret: bytes, text: bytes, *, encrypt: bool) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    cipher = ChaCha20Poly1305(secret)
    return cipher.encrypt(_NONCE, text, None) if encrypt else cipher.decrypt(_NONCE, text, None)
