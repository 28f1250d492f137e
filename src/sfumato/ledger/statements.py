"""The owner's statements about releases: which of them were never given away."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sfumato.core.errors import InputError, as_name
from sfumato.ledger.chain import Entry, is_hash
from sfumato.ledger.transactions import Transactions, check_selected
from sfumato.ledger.withdrawals import (
    NOTHING_ENTERED,
    Withdrawal,
    is_charged,
    settled_reason,
    withdrawal_of,
    withdrawal_token,
)

if TYPE_CHECKING:
    from sfumato.ledger.store import Tables

#: The fewest digits of an id that name a release.
FEWEST_DIGITS = 8
_LIST = "`sfumato ledger releases` lists the releases with their ids"


class Statements(Transactions):
    """Withdrawals: the owner's part of a ledger."""

    def withdraw(self, release: str, reason: str, *, dataset: str | None = None) -> Entry:
        """State that a release of rows was never given to anybody; the ids are those of `releases`, or how one begins.

        The release is then not combined with later ones, and every later certificate about its dataset repeats the statement as
        the owner's, which nobody can verify. Do not withdraw what was given away and called back: whoever has had it keeps what
        it tells. A private result cannot be withdrawn: what it cost never returns. `dataset`, where it is named, must be that of
        the release.
        """
        check_selected(dataset)
        stated = settled_reason(reason)
        with self._writing() as tables:
            entry = self._withdrawable(tables, release, dataset)
            payload = {"release": entry.hash, "reason": stated}
            return self._append(tables, "withdrawal", entry.dataset, payload, token=withdrawal_token(entry.hash))

    def withdrawable(self, release: str, *, dataset: str | None = None) -> Entry:
        """The release that an id names, refused as `withdraw` refuses it; nothing is entered."""
        check_selected(dataset)
        with self._reading() as tables:
            return self._withdrawable(tables, release, dataset)

    def withdrawals(self, dataset: str | None = None) -> list[Withdrawal]:
        """What was withdrawn, all or of one dataset, oldest first."""
        check_selected(dataset)
        with self._reading() as tables:
            return [Withdrawal.of(entry) for entry in tables.entries(dataset, "withdrawal")]

    def _withdrawable(self, tables: Tables, release: str, dataset: str | None) -> Entry:
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
        earlier = withdrawal_of(tables, entry.hash)
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
