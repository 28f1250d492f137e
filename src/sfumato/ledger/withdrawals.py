"""Withdrawals: the owner states that a release was never given away, so that later releases are not combined with it.

The statement is an entry of the chain with its reason, for ever. Nobody can verify it, and nothing else is taken back: the entry
of the release stays, what was given away and called back still counts, and a privacy loss that was charged never returns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.core.errors import InputError, LedgerError, as_name
from sfumato.core.plain_data import Plain
from sfumato.ledger.chain import Entry, is_hash

if TYPE_CHECKING:
    from sfumato.ledger.store import Tables

#: The fewest digits of an id that name a release, and the longest reason.
FEWEST_DIGITS, LONGEST_REASON = 8, 500
NOTHING_ENTERED = "Nothing was entered."
_LIST = "`sfumato ledger releases` lists the releases with their ids"


@dataclass(frozen=True)
class Withdrawal:
    """The owner's statement that a release was never given away: which, about which dataset, why, when, and its own entry."""

    release: str
    dataset: str
    reason: str = field(repr=False)
    time: str
    entry: str
    sequence: int

    @classmethod
    def of(cls, entry: Entry) -> Withdrawal:
        """The statement in an entry."""
        try:
            stated = entry.payload
            return cls(str(stated["release"]), entry.dataset, str(stated["reason"]), entry.time, entry.hash, entry.sequence)
        except (ValueError, KeyError, TypeError):
            raise LedgerError(
                f"the withdrawal in entry {entry.sequence} cannot be read: the ledger was edited or damaged. Run verify."
            ) from None


def settled_reason(reason: object) -> str:
    """The reason of a withdrawal: a short printable text."""
    text = reason.strip() if isinstance(reason, str) else ""
    if not text or len(text) > LONGEST_REASON or not text.isprintable():
        raise InputError(
            f"a withdrawal needs its reason, 1 to {LONGEST_REASON} printable characters, such as 'the review found a wrong role; "
            f"the folder was given to nobody'. {NOTHING_ENTERED}"
        )
    return text


def is_charged(payload: Plain) -> bool:
    """Whether what was released rests on noise, by its entry: then there is a charge, or there should be one."""
    claims = payload.get("claims")
    stated = claims if isinstance(claims, list) else []
    processes = any(isinstance(claim, Mapping) and claim.get("evidence") == "process" for claim in stated)
    return payload.get("evidence") == "process" or payload.get("charged") is not None or processes


def named_release(tables: Tables, release: object, dataset: str | None) -> Entry:
    """The release of that id, refused where it cannot be withdrawn."""
    entry = _named(tables, release)
    short = f"{entry.hash[:16]}…"
    if entry.kind != "release":
        raise InputError(
            f"entry {short} is no release but a {entry.kind}, and only a release is withdrawn; {_LIST}. {NOTHING_ENTERED}"
        )
    if dataset is not None and entry.dataset != dataset:
        raise InputError(f"release {short} is about dataset '{entry.dataset}', and '{dataset}' was named. {NOTHING_ENTERED}")
    if is_charged(entry.payload):
        raise InputError(
            f"release {short} is a private result, and a privacy charge never returns: its noise was drawn, whoever has seen "
            f"it. Only releases with class guarantees and masked tables are withdrawn. {NOTHING_ENTERED}"
        )
    earlier = tables.withdrawal(entry.hash)
    if earlier is not None:
        raise InputError(f"release {short} was withdrawn already on {earlier.time[:10]}. {NOTHING_ENTERED}")
    return entry


def _named(tables: Tables, release: object) -> Entry:
    """The one entry of that id."""
    text = release.strip().rstrip("…").lower() if isinstance(release, str) else ""
    if not re.fullmatch(f"[0-9a-f]{{{FEWEST_DIGITS},64}}", text):
        raise InputError(
            f"{as_name(release)} is no id of a release: an id is the hash of its entry, or its first {FEWEST_DIGITS} or more "
            f"digits; {_LIST}. {NOTHING_ENTERED}"
        )
    entries = [tables.by_hash(text)] if is_hash(text) else tables.beginning(text)
    named = [entry for entry in entries if entry is not None]
    if not named:
        raise InputError(f"the ledger has no entry {as_name(text)}; {_LIST}. {NOTHING_ENTERED}")
    if len(named) > 1:
        raise InputError(f"several entries of the ledger begin with {as_name(text)}: give more digits. {NOTHING_ENTERED}")
    return named[0]
