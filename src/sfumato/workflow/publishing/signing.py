"""The owner's signature over a certificate: made when a release is saved, checked by whoever verifies it.

A key is two files: the private one, and beside it the public one, which goes to whoever verifies.
"""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from typing import Any

from sfumato.core.certificate import canonical
from sfumato.core.errors import InputError, SourceError, VerificationFailed
from sfumato.core.files import open_plain, read_plain
from sfumato.core.plain_data import PlainDict
from sfumato.wire.signatures import SigningKey, VerifyingKey
from sfumato.workflow.publishing.appearing import write_bytes

CONTEXT = "certificate"
_PRIVATE = b"-----BEGIN"


def sign_certificate(certificate: PlainDict, key: SigningKey) -> dict[str, str]:
    """What `signature.json` holds: the public key and the signature over the certificate's canonical
    bytes.
    """
    signature = key.sign(canonical(certificate), context=CONTEXT)
    return _form(key.public, signature)


def _form(key: VerifyingKey, signature: bytes) -> dict[str, str]:
    return {"public_key": str(key), "signature": base64.b64encode(signature).decode()}


def check_signature(
    stated: Any,  # JSON of a stranger, of any shape
    certificate: object,
    expected: str | Path | None,
) -> tuple[bool, str]:
    """Whether the signature is by the expected key, or at least by the key it brings along, and how to
    say so.
    """
    try:
        brought = VerifyingKey.parse(stated["public_key"])
        signature = base64.b64decode(stated["signature"], validate=True)
        signed = canonical(certificate)
        if _form(brought, signature) != stated:  # other spaces, or bits that base64 does not use
            raise ValueError
    except (InputError, TypeError, KeyError, ValueError, AttributeError, binascii.Error):
        raise VerificationFailed("signature.json is not a signature") from None
    key = brought if expected is None else public_key(expected)
    if not key.verifies(signed, signature, context=CONTEXT):
        raise VerificationFailed(f"the signature is not by the key {key.identity} over this certificate")
    if expected is None:
        return (
            True,
            f"signed by the key {key.identity}; compare it with the owner's, the release cannot vouch for itself",
        )
    return True, f"signed by the key {key.identity}, which you expected"


def new_key(file: str | Path) -> tuple[VerifyingKey, Path]:
    """Make a key: the private half in `file`, the public half beside it with `.pub`. Returns the public half and
    its file; no existing file is overwritten.
    """
    private = Path(file)
    beside = private.with_name(f"{private.name}.pub")
    if os.path.lexists(beside):
        raise InputError(f"{beside} exists already and is not overwritten. Name another file, or move that one away.")
    key = SigningKey.generate()
    key.save(private)
    try:
        write_bytes(beside, f"{key.public}\n".encode())
    except OSError as error:
        private.unlink(missing_ok=True)
        raise SourceError(f"{beside} cannot be written: {error.strerror}") from None
    return key.public, beside


def known_key(file: str | Path) -> VerifyingKey:
    """The public key in a file that holds a private or a public one."""
    try:
        with open_plain(file) as opened:
            start = opened.read(len(_PRIVATE))
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror}") from None
    return SigningKey.load(file).public if start == _PRIVATE else public_key(file)


def public_key(key: str | Path) -> VerifyingKey:
    """A public key from its text form or from the file that holds it."""
    text = str(key)
    if text.startswith("ed25519:"):
        return VerifyingKey.parse(text)
    try:
        return VerifyingKey.parse(read_plain(key, InputError, limit=10_000, what="public key file").decode("utf-8").strip())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the public key file '{key}' cannot be read: {type(error).__name__}") from None


def signer_in_words(key: VerifyingKey) -> str:
    """How a card names whoever signed."""
    return f"signed by the key {key.identity}"
