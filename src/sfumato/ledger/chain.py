"""The hash chain: what an entry is, which bytes its hash covers, and how one entry follows from the one
before.

The hash of an entry is SHA-256 over canonical JSON of all its fields and the hash of its predecessor, so that
no entry can be changed, removed, inserted or moved without changing every hash after it. The first entry
follows from the identity of the ledger. Who may write the file could compute a whole new chain; a head noted
elsewhere, as on certificates, shows that.
Haber, Stornetta, "How to time-stamp a digital document", Journal of Cryptology 1991.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from sfumato.core.certificate import canonical
from sfumato.core.errors import InputError
from sfumato.core.plain_data import PlainDict

FORMAT = "sfumato-ledger-1"

EntryKind = Literal["grant", "reserve", "commit", "rollback", "release", "note", "unit", "version", "withdrawal"]
KINDS: tuple[str, ...] = get_args(EntryKind)

_HASH = re.compile(r"[0-9a-f]{64}")
#: Longest payload, in bytes of canonical JSON: room for a stored answer, not for a table.
PAYLOAD_LIMIT = 4_000_000
NAME_LIMIT = 200


@dataclass(frozen=True)
class Entry:
    """One line of the ledger. `payload_text` is the payload as canonical JSON, exactly as it was hashed."""

    sequence: int
    time: str
    dataset: str
    kind: EntryKind
    analyst: str
    token: str
    payload_text: str
    previous: str
    hash: str = ""

    @property
    def payload(self) -> PlainDict:
        """The payload as plain data."""
        return cast("dict[str, Any]", json.loads(self.payload_text))

    def computed_hash(self) -> str:
        """The hash these fields must have. The payload enters as text, so any language can check it."""
        fields = {name: value for name, value in self.__dict__.items() if name not in ("hash", "payload_text")}
        return hashlib.sha256(canonical({"format": FORMAT, "payload": self.payload_text, **fields})).hexdigest()

    def sealed(self) -> Entry:
        """The same entry with its hash."""
        return replace(self, hash=self.computed_hash())

    def __repr__(self) -> str:
        return f"Entry({self.sequence}, {self.kind}, {self.time}, hash={self.hash[:12]}…)"


@dataclass(frozen=True)
class Head:
    """The end of a chain: noted elsewhere, it shows later that nothing before it was changed or cut off."""

    ledger: str
    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{FORMAT}:{self.ledger}:{self.sequence}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read back what `str` wrote."""
        parts = text.strip().split(":")
        if len(parts) != 4 or parts[0] != FORMAT or not parts[2].isdecimal() or not _HASH.fullmatch(parts[3]):
            raise InputError("this is not the head of a ledger; it is printed by `sfumato ledger verify`")
        return cls(parts[1], int(parts[2]), parts[3])


def genesis(identity: str) -> str:
    """What the first entry of a ledger follows from; two ledgers never share it."""
    return hashlib.sha256(f"{FORMAT}:{identity}".encode()).hexdigest()


def is_hash(text: str) -> bool:
    """True for the text form of a SHA-256 hash."""
    return _HASH.fullmatch(text) is not None


def withdrawal_token(release: str) -> str:
    """The token of the one entry that withdraws the release with that hash."""
    return f"withdrawal-{release}"


def payload_text(payload: Mapping[str, object]) -> str:
    """Canonical JSON of a payload, refused when it is no plain data or too long. Payloads never hold record
    values.
    """
    if not isinstance(payload, Mapping):
        raise InputError("the payload of a ledger entry must be a mapping")
    try:
        text = canonical(dict(payload)).decode()
        faithful = canonical(json.loads(text)).decode() == text
    except (TypeError, ValueError, RecursionError):
        # The cause is not chained: its message may print the value.
        raise InputError("the payload of a ledger entry must be plain data: text, finite numbers, lists, mappings") from None
    if not faithful:
        raise InputError("the payload of a ledger entry has keys that are no text")
    if len(text.encode()) > PAYLOAD_LIMIT:
        raise InputError(f"the payload of a ledger entry is longer than {PAYLOAD_LIMIT:,} bytes")
    return text


def checked_name(text: str, what: str) -> None:
    """A dataset id, analyst or token: short, printable, exact."""
    usable = isinstance(text, str) and 0 < len(text) <= NAME_LIMIT
    if not usable or not text.isprintable() or text != text.strip():
        raise InputError(f"the {what} of a ledger entry must be 1 to {NAME_LIMIT} printable characters without outer spaces")
