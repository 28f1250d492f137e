"""What travels and what must stay secret: key files, signatures, sealed messages, frames, fingerprints,
mixes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.core.lazy import from_table

_TABLE: dict[str, str] = {
    "Cascade": "sfumato.wire.mix",
    "Fingerprint": "sfumato.wire.fingerprint",
    "FrameReader": "sfumato.wire.frames",
    "Mix": "sfumato.wire.mix",
    "OwnerKey": "sfumato.wire.keys",
    "SealingKey": "sfumato.wire.sealing",
    "SigningKey": "sfumato.wire.signatures",
    "VerifyingKey": "sfumato.wire.signatures",
    "fingerprint": "sfumato.wire.fingerprint",
    "load_or_create_owner_key": "sfumato.wire.keys",
    "open_sealed": "sfumato.wire.sealing",
    "seal": "sfumato.wire.sealing",
    "sha256_file": "sfumato.wire.fingerprint",
}

if TYPE_CHECKING:
    from sfumato.wire.fingerprint import Fingerprint as Fingerprint
    from sfumato.wire.fingerprint import fingerprint as fingerprint
    from sfumato.wire.fingerprint import sha256_file as sha256_file
    from sfumato.wire.frames import FrameReader as FrameReader
    from sfumato.wire.keys import OwnerKey as OwnerKey
    from sfumato.wire.keys import load_or_create_owner_key as load_or_create_owner_key
    from sfumato.wire.mix import Cascade as Cascade
    from sfumato.wire.mix import Mix as Mix
    from sfumato.wire.sealing import SealingKey as SealingKey
    from sfumato.wire.sealing import open_sealed as open_sealed
    from sfumato.wire.sealing import seal as seal
    from sfumato.wire.signatures import SigningKey as SigningKey
    from sfumato.wire.signatures import VerifyingKey as VerifyingKey

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    return from_table(__name__, _TABLE, name)


def __dir__() -> list[str]:
    return __all__
