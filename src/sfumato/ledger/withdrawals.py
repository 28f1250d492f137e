"""Withdrawals: the owner states that a release was never given away, so that later releases are not combined with it.

The statement is an entry of the chain with its reason, for ever. Nobody can verify it, and nothing else is taken back: the entry
of the release stays, what was given away and called back still counts, and a privacy loss that was charged never returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.core.errors import InputError, LedgerError
from sfumato.core.plain_data import Plain
from sfumato.ledger.chain import Entry

if TYPE_CHECKING:
    from sfumato.ledger.store import Tables

LONGEST_REASON = 500
NOTHING_ENTERED = "Nothing was entered."


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
            f"the folder was deleted unread'. {NOTHING_ENTERED}"
        )
    return text


def is_charged(payload: Plain) -> bool:
    """Whether what was released rests on noise, by its entry: then there is a charge, or there should be one."""
    claims = payload.get("claims")
    stated = claims if isinstance(claims, list) else []
    processes = any(isinstance(claim, Mapping) and claim.get("evidence") == "process" for claim in stated)
    return payload.get("evidence") == "process" or payload.get("charged") is not None or processes


def withdrawal_token(release: str) -> str:
    """The token of the one entry that withdraws a release."""
    return f"withdrawal-{release}"


def token_in_force(tables: Tables, token: str) -> str:
    """The token under which a release is entered. One that was withdrawn and is released again is another entry: it counts."""
    while (entry := tables.by_token(token)) is not None and withdrawal_of(tables, entry.hash) is not None:
        token = f"again-{entry.hash}"
    return token


def withdrawal_of(tables: Tables, release: str) -> Entry | None:
    """The entry that withdrew a release."""
    entry = tables.by_token(withdrawal_token(release))
    return entry if entry is not None and entry.kind == "withdrawal" else None
