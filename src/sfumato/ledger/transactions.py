"""One transaction of a ledger: one consistent view, or entries appended by the only writer.

Every transaction is on the ledger that was opened, and not on what somebody put in its place. An open ledger remembers its
identity, the end of the chain as it was seen last, and the balances as they followed from the entries then. Before a charge the
identity must be the same, the remembered entry must still be at its place, and each balance, whom it protects and what it was
about before must follow from the remembered ones by the entries since. That costs three look-ups; who wants certainty about all
entries runs `verify`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import BudgetRefused, InputError, LedgerError, SfumatoError, raise_alone
from sfumato.ledger import chain
from sfumato.ledger.accounts import EVERYBODY, Account, Protected
from sfumato.ledger.amounts import LossAmount
from sfumato.ledger.chain import Entry, EntryKind, Head, checked_name, genesis
from sfumato.ledger.store import Tables
from sfumato.ledger.unit_changes import Changes
from sfumato.ledger.verification import balances

if TYPE_CHECKING:
    from sfumato.ledger.store import Store, Tables


Clock = Callable[[], datetime]


class LedgerPart:
    """What the parts of a ledger share: its store, the clock that dates entries, and the watch over what was opened."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock: Clock = clock or (lambda: datetime.now(UTC))
        self._watch = Watch()
        #: Reservations of this object for which noise has not been drawn: only these can be rolled back.
        self._refundable: set[str] = set()
        with suppress(LedgerError), self._reading():  # `verify` says what is wrong with a ledger that has no head
            pass

    @contextmanager
    def _naming_the_ledger(self) -> Iterator[None]:
        """A refusal names the ledger that its command is about."""
        try:
            yield
        except BudgetRefused as refused:
            raise_alone(refused.at(self._store.description))

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
            token = tables.token_in_force(token) if kind == "release" else token
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


_ADVICE = (
    "Nothing was charged. Restore the ledger, compare its head with a certificate (sfumato ledger verify), and open it again."
)

Owner = tuple[str, str]
#: What the entries up to one of them say.
Known = tuple[int, Account, Changes]


class Watch:
    """The memory of one open ledger."""

    def __init__(self) -> None:
        self.head: Head | None = None
        self._balances: dict[Owner, Known] = {}

    def check(self, tables: Tables) -> None:
        """Look at the end of the chain; refused where it does not continue what was seen before."""
        head = tables.head = end_of(tables)
        earlier = self.head
        if earlier is None or head == earlier:
            return
        if head.ledger != earlier.ledger:
            raise LedgerError(f"the ledger was replaced by another one while it was open. {_ADVICE}")
        if head.sequence < earlier.sequence:
            raise LedgerError(
                f"the ledger was cut or replaced by an older copy while it was open: it had {earlier.sequence:,} entries, and "
                f"{head.sequence:,} are left. {_ADVICE}"
            )
        there = tables.by_sequence(earlier.sequence) if earlier.sequence else None
        if (genesis(earlier.ledger) if there is None else there.hash) != earlier.hash:
            raise LedgerError(f"the ledger was rewritten while it was open: entry {earlier.sequence:,} is another one. {_ADVICE}")

    def check_balance(self, tables: Tables, account: Account) -> None:
        """Refused where a stored balance, or what it is and was about, does not follow from the entries."""
        owner, head = (account.dataset, account.analyst), tables.head or end_of(tables)
        try:
            expected = self._expected(tables, owner, head)
            stored = tables.unit_changes(account.dataset)
        except (AttributeError, KeyError, TypeError, ValueError, SfumatoError):
            expected = None
        if expected is None or expected[1:] != (account, stored):
            raise LedgerError(
                f"a balance on dataset '{account.dataset}', or whom it protects, is not what the entries say: it was edited, or "
                f"entries were cut off. {_ADVICE}"
            )
        self._balances[owner] = expected

    def remember(self, tables: Tables, *accounts: Account) -> None:
        """What a finished transaction left behind."""
        if tables.head is not None:
            self.head = tables.head
            for account in accounts:
                owner = account.dataset, account.analyst
                self._balances[owner] = (tables.head.sequence, account, self._balances[owner][2])

    def _expected(self, tables: Tables, owner: Owner, head: Head) -> Known | None:
        balance = self._balances.get(owner)
        if balance is None or balance[0] == head.sequence:
            return balance or self._derived(tables, owner, head)
        since, account, changes = balance
        for entry in tables.account_entries(owner[0], since):
            if entry.kind != "reserve":
                # What a new grant or another unit makes of earlier spends follows from all entries.
                return self._derived(tables, owner, head)
            account = replace(account, protected=account.protected or Protected.from_mapping(entry.payload))
            if owner[1] in (entry.analyst, EVERYBODY):
                account = replace(account, spent=account.spent.plus(_loss(entry.payload)))
        return head.sequence, account, changes

    def _derived(self, tables: Tables, owner: Owner, head: Head) -> Known | None:
        """The balance by all entries of the dataset; those of its other accounts are remembered as well."""
        derived, changes = balances(tables.account_entries(owner[0], 0), owner[0])
        self._balances |= {each: (head.sequence, account, changes) for each, account in derived.items()}
        return self._balances.get(owner) if owner in derived else None


def end_of(tables: Tables) -> Head:
    """The end of the chain."""
    identity, last = tables.meta("identity"), tables.last()
    return Head(identity, *last) if last else Head(identity, 0, genesis(identity))


def _loss(payload: Mapping[str, Any]) -> LossAmount:
    return _read(tuple(sorted(payload["loss"].items())))


@lru_cache(maxsize=1024)
def _read(loss: tuple[tuple[str, str], ...]) -> LossAmount:
    """Few amounts are spent many times."""
    return LossAmount.from_mapping(dict(loss))
