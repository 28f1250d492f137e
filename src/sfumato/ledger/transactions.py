"""One transaction of a ledger: one consistent view, or entries appended by the only writer.

Every transaction is on the ledger that was opened, and not on what somebody put in its place (`watch`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import InputError, LedgerError
from sfumato.ledger import chain
from sfumato.ledger.accounts import EVERYBODY
from sfumato.ledger.chain import Entry, EntryKind, Head, checked_name
from sfumato.ledger.watch import Watch, end_of

if TYPE_CHECKING:
    from sfumato.ledger.store import Store, Tables

Clock = Callable[[], datetime]


class Transactions:
    """What the parts of a ledger share: its store, the clock that dates entries, and the watch over what was opened."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock: Clock = clock or (lambda: datetime.now(UTC))
        self._watch = Watch()
        with suppress(LedgerError), self._reading():  # `verify` says what is wrong with a ledger that has no head
            pass

    @contextmanager
    def _writing(self) -> Iterator[Tables]:
        """A transaction of the only writer, on the ledger that was opened and not on what somebody put in its place."""
        with self._store.writing() as tables:
            self._watch.check(tables)
            yield tables
        self._watch.remember(tables)

    @contextmanager
    def _reading(self) -> Iterator[Tables]:
        """One consistent view of the ledger that was opened."""
        with self._store.reading() as tables:
            self._watch.check(tables)
            yield tables
        self._watch.remember(tables)

    def _enter_once(self, kind: EntryKind, dataset: str, payload: Mapping[str, Any], token: str) -> Entry:
        check_names(dataset=dataset, token=token)
        with self._writing() as tables:
            entry = tables.by_token(token)
            if entry is None:
                return self._append(tables, kind, dataset, payload, token=token)
            if (entry.kind, entry.dataset, entry.payload_text) != (kind, dataset, chain.payload_text(payload)):
                raise LedgerError("this token already names another entry of the ledger. Use a new token for a new entry.")
            return entry

    def _append(
        self,
        tables: Tables,
        kind: EntryKind,
        dataset: str,
        payload: Mapping[str, Any],
        *,
        analyst: str = "",
        token: str | None = None,
    ) -> Entry:
        head = tables.head or end_of(tables)
        entry = Entry(
            sequence=head.sequence + 1,
            time=self._clock().astimezone(UTC).isoformat(timespec="microseconds"),
            dataset=dataset,
            kind=kind,
            analyst=analyst,
            token=token if token is not None else secrets.token_hex(16),
            payload_text=chain.payload_text(payload),
            previous=head.hash,
        ).sealed()
        tables.append(entry)
        tables.head = Head(head.ledger, entry.sequence, entry.hash)
        return entry


def check_selected(dataset: str | None) -> None:
    """The name of a dataset, or None for all of them."""
    if dataset is not None:
        checked_name(dataset, "dataset")


def check_names(**names: str) -> None:
    """Each is a short, printable name; no analyst has that of everybody."""
    for what, name in names.items():
        checked_name(name, what)
        if what == "analyst" and name == EVERYBODY:
            raise InputError(
                "no analyst is called '*': that is everybody together. The owner sets a cap with: sfumato ledger cap"
            )
