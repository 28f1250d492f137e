"""The ledger: an append-only account of grants, spends, stored answers and releases.

Each call is one transaction that appends one entry to a hash chain and updates the balances derived from it.
Budget is reserved before noise is drawn, so that a crash can lose budget and never privacy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from sfumato.core.errors import InputError
from sfumato.ledger.answers import ChargedAnswers
from sfumato.ledger.budgets import Budgets
from sfumato.ledger.chain import Entry, EntryKind, Head, checked_name, withdrawal_token
from sfumato.ledger.transactions import Clock, check_selected, end_of
from sfumato.ledger.versions import DataVersion, Seen, history, seen_in
from sfumato.ledger.withdrawals import Withdrawal, named_release, settled_reason

if TYPE_CHECKING:
    from sfumato.ledger.verification import VerifyReport


class Ledger(Budgets, ChargedAnswers):
    """An open ledger. Payloads and answers are kept for ever: callers never put record values into them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Ledger.open(f"{folder}/ledger.db") as ledger:
    ...     entry = ledger.enter_release("patients", {"guarantees": ["KAnonymity(5)"]}, token="release-1")
    ...     ledger.verify().ok, entry.sequence
    (True, 1)
    """

    @classmethod
    def open(
        cls,
        target: str | os.PathLike[str],
        *,
        read_only: bool = False,
        patience: float = 30.0,
        clock: Clock | None = None,
    ) -> Ledger:
        """Open the ledger at a file path or a `postgresql://` URL; create it when there is none.

        `patience`: how many seconds to wait for other writers.
        """
        address = os.fspath(target)
        if address.startswith(("postgresql://", "postgres://")):
            from sfumato.ledger.postgres import PostgresStore

            return cls(PostgresStore(address, read_only=read_only, patience=patience), clock)
        if "://" in address:
            raise InputError("a ledger is the path of a file or a postgresql:// URL")
        from sfumato.ledger.sqlite import SqliteStore

        return cls(SqliteStore(address, read_only=read_only, patience=patience), clock)

    @property
    def description(self) -> str:
        """Where the ledger is, without secrets."""
        return self._store.description

    @property
    def identity(self) -> str:
        """The ledger's id, as it stands in every head and, if the owner puts it there, in the schema."""
        return self.head().ledger

    def __repr__(self) -> str:
        return f"Ledger({self.description})"

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file or server."""
        self._store.close()

    # Releases and notes

    def enter_release(self, dataset: str, payload: Mapping[str, object], *, token: str) -> Entry:
        """Enter a release. Entering it again with the same token returns the first entry and adds none. One that was withdrawn
        and is released again gets an entry of its own, which counts."""
        return self._enter_once("release", dataset, payload, token)

    def note(self, dataset: str, payload: Mapping[str, object], *, token: str) -> Entry:
        """Enter a remark about a dataset: a correction, an erasure, a destroyed key."""
        return self._enter_once("note", dataset, payload, token)

    def enter_data(self, dataset: str, seen: Sequence[Seen]) -> None:
        """Enter which data a session was opened on, as far as that differs from the time before."""
        checked_name(dataset, "dataset")
        with self._writing() as tables:
            tables.count_opening(dataset)  # so that finding nothing new writes to the disk as well
            earlier = {each.alike: each for each in seen_in(tables.entries(dataset, "version"))}
            for each in seen:
                if earlier.get(each.alike) != each:
                    self._append(tables, "version", dataset, each.to_mapping())

    def versions(self, dataset: str) -> list[DataVersion]:
        """Which data the sessions on a dataset were opened on, oldest first: for its owner, never for an analyst."""
        return history(self.entries(dataset, "version"))

    def releases(self, dataset: str) -> list[Entry]:
        """All releases of a dataset, oldest first, those too that were withdrawn."""
        return self.entries(dataset, "release")

    # Releases that were never given away

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
            entry = named_release(tables, release, dataset)
            payload = {"release": entry.hash, "reason": stated}
            return self._append(tables, "withdrawal", entry.dataset, payload, token=withdrawal_token(entry.hash))

    def withdrawable(self, release: str, *, dataset: str | None = None) -> Entry:
        """The release that an id names, refused as `withdraw` refuses it; nothing is entered."""
        check_selected(dataset)
        with self._reading() as tables:
            return named_release(tables, release, dataset)

    def withdrawals(self, dataset: str | None = None) -> list[Withdrawal]:
        """What was withdrawn, all or of one dataset, oldest first."""
        check_selected(dataset)
        with self._reading() as tables:
            return [Withdrawal.of(entry) for entry in tables.entries(dataset, "withdrawal")]

    # The chain

    def entries(self, dataset: str | None = None, kind: EntryKind | None = None) -> list[Entry]:
        """Entries in order, all or of one dataset and kind."""
        check_selected(dataset)
        with self._reading() as tables:
            return list(tables.entries(dataset, kind))

    def entry(self, digest: str) -> Entry | None:
        """The entry with that hash."""
        with self._reading() as tables:
            return tables.by_hash(digest)

    def latest(self, count: int = 10, dataset: str | None = None) -> list[Entry]:
        """The last entries, oldest first."""
        check_selected(dataset)
        with self._reading() as tables:
            return tables.latest(count, dataset)

    def count(self, dataset: str | None = None, kind: EntryKind | None = None) -> int:
        """How many entries there are, all or of one dataset and kind."""
        check_selected(dataset)
        with self._reading() as tables:
            return tables.count(dataset, kind)

    def head(self) -> Head:
        """The end of the chain, to be noted elsewhere: printed on certificates, it makes a cut-off tail visible."""
        with self._reading() as tables:
            return end_of(tables)

    def verify(self, *anchors: Head | str) -> VerifyReport:
        """Walk the whole chain, recompute every hash and balance, and find the first damaged entry.

        `anchors`: heads or entry hashes noted earlier, for instance on certificates; each must still be in the chain.
        """
        from sfumato.ledger.verification import verify

        with self._reading() as tables:
            report = verify(tables, anchors)
        if report.ok and not self._store.sound():
            return replace(report, ok=False, finding="the chain is intact, but the file is damaged: restore a copy")
        return report
