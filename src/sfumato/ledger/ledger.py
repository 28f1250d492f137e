"""The ledger: an append-only account of grants, spends, stored answers and releases.

Each call is one transaction that appends one entry to a hash chain and updates the balances derived from it.
Budget is reserved before noise is drawn, so that a crash can lose budget and never privacy.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import BudgetRefused, InputError, LedgerError
from sfumato.ledger import chain
from sfumato.ledger.accounts import EVERYBODY, Account, Answer, Charge, Reservation, Spend, Spending, opened
from sfumato.ledger.amounts import LossAmount
from sfumato.ledger.chain import Entry, EntryKind, Head, checked_name
from sfumato.ledger.protected import Protected, agreed, restated
from sfumato.ledger.unit_changes import Uncovered, carried, changed, uncovered
from sfumato.ledger.versions import DataVersion, Seen, history, seen_in
from sfumato.ledger.watch import Watch, end_of

if TYPE_CHECKING:
    from sfumato.core.guarantees.loss import Neighbours
    from sfumato.ledger.store import Store, Tables
    from sfumato.ledger.verification import VerifyReport

Clock = Callable[[], datetime]


class Ledger:
    """An open ledger. Payloads and answers are kept for ever: callers never put record values into them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Ledger.open(f"{folder}/ledger.db") as ledger:
    ...     entry = ledger.enter_release("patients", {"guarantees": ["KAnonymity(5)"]}, token="release-1")
    ...     ledger.verify().ok, entry.sequence
    (True, 1)
    """

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock: Clock = clock or (lambda: datetime.now(UTC))
        #: Reservations of this object for which noise has not been drawn: only these can be rolled back.
        self._refundable: set[str] = set()
        self._watch = Watch()
        with suppress(LedgerError), self._reading():  # `verify` says what is wrong with a ledger that has no head
            pass

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

    def enter_release(self, dataset: str, payload: Mapping[str, Any], *, token: str) -> Entry:
        """Enter a release. Entering it again with the same token returns the first entry and adds none."""
        return self._enter_once("release", dataset, payload, token)

    def note(self, dataset: str, payload: Mapping[str, Any], *, token: str) -> Entry:
        """Enter a remark about a dataset: a correction, an erasure, a destroyed key."""
        return self._enter_once("note", dataset, payload, token)

    def enter_data(self, dataset: str, seen: Sequence[Seen]) -> None:
        """Enter which data a session was opened on, as far as that differs from the time before."""
        checked_name(dataset, "dataset")
        with self._writing() as tables:
            tables.count_opening(dataset)  # so that finding nothing new writes to the disk as well
            known = {each.alike: each for each in seen_in(tables.entries(dataset, "version"))}
            for each in seen:
                if known.get(each.alike) != each:
                    self._append(tables, "version", dataset, each.to_mapping())

    def versions(self, dataset: str) -> list[DataVersion]:
        """Which data the sessions on a dataset were opened on, oldest first: for its owner, never for an analyst."""
        return history(self.entries(dataset, "version"))

    def releases(self, dataset: str) -> list[Entry]:
        """All releases of a dataset, oldest first."""
        return self.entries(dataset, "release")

    def entries(self, dataset: str | None = None, kind: EntryKind | None = None) -> list[Entry]:
        """Entries in order, all or of one dataset and kind."""
        _check_names(dataset="all" if dataset is None else dataset)
        with self._reading() as tables:
            return list(tables.entries(dataset, kind))

    def entry(self, digest: str) -> Entry | None:
        """The entry with that hash."""
        with self._reading() as tables:
            return tables.by_hash(digest)

    def latest(self, count: int = 10, dataset: str | None = None) -> list[Entry]:
        """The last entries, oldest first."""
        _check_names(dataset="all" if dataset is None else dataset)
        with self._reading() as tables:
            return tables.latest(count, dataset)

    def count(self, dataset: str | None = None, kind: EntryKind | None = None) -> int:
        """How many entries there are, all or of one dataset and kind."""
        _check_names(dataset="all" if dataset is None else dataset)
        with self._reading() as tables:
            return tables.count(dataset, kind)

    # Grants and spends

    def grant(
        self,
        dataset: str,
        analyst: str,
        loss: LossAmount,
        *,
        unit: str | None = None,
        neighbours: Neighbours | None = None,
    ) -> Entry:
        """Set the most the analyst may ever spend on the dataset; replaces an earlier grant, spends stay counted.

        Granting the same twice therefore does not double the budget, and a smaller grant takes back what is not spent.
        `unit` says whom all budgets on the dataset protect: a unit column, or "record". Without it the first spend fixes
        that; once something is spent it stays.
        """
        _check_names(dataset=dataset, analyst=analyst)
        return self._open_account(dataset, analyst, loss, _stated(unit, neighbours))

    def first_grant(self, dataset: str, analyst: str, loss: LossAmount) -> bool:
        """Grant only where nobody was granted anything on the dataset yet; True when this was the first."""
        _check_names(dataset=dataset, analyst=analyst)
        with self._writing() as tables:
            if tables.accounts(dataset):
                return False
            self._append(tables, "grant", dataset, {"loss": loss.to_mapping()}, analyst=analyst)
            earlier = tables.spends(dataset, analyst)
            tables.replace_account(None, opened(dataset, analyst, loss, earlier, tables.unit_changes(dataset)))
            return True

    def cap(self, dataset: str, loss: LossAmount, *, unit: str | None = None, neighbours: Neighbours | None = None) -> Entry:
        """Set the most that everybody together may ever spend on the dataset; replaces an earlier cap.

        What was spent before there was a cap counts. A spend needs both: the analyst's grant and room below the cap.
        """
        checked_name(dataset, "dataset")
        return self._open_account(dataset, EVERYBODY, loss, _stated(unit, neighbours))

    def change_unit(
        self, dataset: str, unit: str, *, neighbours: Neighbours = "add_remove", rows_per_unit: int | None = None
    ) -> Entry:
        """Make all budgets on a dataset be about another unit; what was spent is carried over and never forgotten.

        `rows_per_unit` is the most rows that one unit has (or, where the budget was about another unit column, the most of
        those units whose rows one has): the owner's word, for whatever data the earlier answers were about. Charges then
        count as the loss of so many together. Without it they count as they were entered, and `not_covered` names them.
        Stated again with another number, the last change is corrected.
        """
        checked_name(dataset, "dataset")
        stated = Protected(unit, neighbours)
        with self._writing() as tables:
            accounts = tables.accounts(dataset)
            if not accounts:
                raise InputError(f"nobody was granted anything on dataset '{dataset}' yet; the first grant states the unit")
            before, sequence = tables.protected(dataset), (tables.head or end_of(tables)).sequence + 1
            changes = changed(tables.unit_changes(dataset), before, stated, rows_per_unit, sequence, dataset)
            entry = self._append(tables, "unit", dataset, {**stated.to_mapping(), "rows_per_unit": rows_per_unit})
            tables.protect(dataset, stated)
            tables.set_unit_changes(dataset, changes)
            for each in accounts:
                spends = tables.spends(dataset, each.analyst)
                tables.replace_account(each, opened(dataset, each.analyst, each.granted, spends, changes))
            return entry

    def not_covered(self, dataset: str) -> tuple[Uncovered, ...]:
        """Earlier charges that the budget as it is now does not speak of: how much, and about what."""
        checked_name(dataset, "dataset")
        with self._reading() as tables:
            current, changes, first = tables.protected(dataset), tables.unit_changes(dataset), tables.first_reserve(dataset)
            if current is None or first is None or (not changes and "unit" in first.payload):
                return ()
            # Only the entry that fixed the unit says what came before it; a later grant repeats what the budget is about.
            fixed = next((entry for entry in tables.account_entries(dataset, 0) if "unit" in entry.payload), None)
            said = fixed.sequence if fixed is not None and fixed.kind == "grant" else 0
            return uncovered(tables.spends(dataset, EVERYBODY), changes, current, said)

    def reserve(self, dataset: str, analyst: str, charge: Charge, question_digest: str) -> Reservation:
        """Set budget aside for a question, before any noise is drawn, or refuse.

        A question answered before, to whomever, is not charged: the reservation then carries the stored answer, which
        is no new look at the data. Who has no grant on the dataset is refused that too, and so is a charge about something
        else than the budget.
        """
        _check_names(dataset=dataset, analyst=analyst, question=question_digest)
        with self._writing() as tables:
            account, cap = tables.charged_accounts(dataset, analyst)
            if account is None:
                raise BudgetRefused(
                    f"no budget was granted to '{analyst}' on dataset '{dataset}'. "
                    f"The owner grants it with: sfumato ledger grant {shlex.quote(dataset)} {shlex.quote(analyst)} --epsilon 1"
                )
            stored = _answer(tables, tables.answered(dataset, question_digest))
            if stored is not None:
                return Reservation("", dataset, analyst, question_digest, charge, stored)
            for each in (account, cap):
                if each is not None:
                    self._watch.check_balance(tables, each)
            agreed(account.protected, charge.protected, dataset)
            charged = [(each, each.charged(charge.loss)) for each in (account, cap) if each is not None]
            entry = self._append(
                tables, "reserve", dataset, {"question": question_digest, **charge.to_mapping()}, analyst=analyst
            )
            if account.protected is None:
                tables.protect(dataset, charge.protected)
            for before, after in charged:
                tables.replace_account(before, after)
            tables.add_spend(
                Spend(entry.token, dataset, analyst, question_digest, charge.loss)
            )  # what it is about is in the entry
        self._watch.remember(tables, *(replace(after, protected=charge.protected) for _, after in charged))
        self._refundable.add(entry.token)
        return Reservation(entry.token, dataset, analyst, question_digest, charge)

    def draw(self, reservation: Reservation) -> None:
        """Say that noise is about to be drawn: from here on the reservation cannot be rolled back."""
        self._refundable.discard(reservation.token)

    def commit(self, reservation: Reservation, answer: Any) -> Answer:
        """Store the answer together with its charge; returns the answer to show.

        That is an earlier one when the same question was answered meanwhile, to whomever: a dataset never gives two
        answers to it.
        """
        self.draw(reservation)
        if reservation.answer is not None:
            return reservation.answer
        with self._writing() as tables:
            spend = _known(tables.spend(reservation.token))
            stored = _answer(tables, tables.answered(spend.dataset, spend.question))
            if stored is not None:
                return stored
            if spend.state != "reserved":
                raise LedgerError("this reservation was rolled back; reserve again before answering")
            payload = {"answer": answer, "question": spend.question, "reservation": spend.token}
            entry = self._append(tables, "commit", spend.dataset, payload, analyst=spend.analyst)
            tables.close_spend(spend.token, "committed", entry.sequence)
            return Answer(entry.payload["answer"], entry.hash, entry.time)

    def roll_back(self, reservation: Reservation) -> None:
        """Give the budget back. Only for the ledger object that reserved it, and only before `draw`."""
        if reservation.answer is not None:
            return
        if reservation.token not in self._refundable:
            raise LedgerError(
                "this reservation cannot be rolled back: noise may have been drawn for it, or another "
                "process made it. It stays spent."
            )
        with self._writing() as tables:
            spend = _known(tables.spend(reservation.token))
            account, cap = tables.charged_accounts(spend.dataset, spend.analyst)
            if account is None or spend.state != "reserved":
                raise LedgerError("this reservation is not open any more")
            entry = self._append(tables, "rollback", spend.dataset, {"reservation": spend.token}, analyst=spend.analyst)
            refund = carried(spend, tables.unit_changes(spend.dataset))
            for each in (account, cap):
                if each is not None:
                    tables.replace_account(each, each.refunded(refund))
            tables.close_spend(spend.token, "rolled back", entry.sequence)
        self._refundable.discard(reservation.token)

    def answer(self, dataset: str, analyst: str, question_digest: str) -> Answer | None:
        """The stored answer to a question, whoever asked it first, or None. Costs nothing; needs a grant."""
        _check_names(dataset=dataset, analyst=analyst, question=question_digest)
        with self._reading() as tables:
            if tables.account(dataset, analyst) is None:
                return None
            return _answer(tables, tables.answered(dataset, question_digest))

    def stored(self, dataset: str, analyst: str, beginning: str) -> list[Answer]:
        """The stored answers to all questions whose digest begins so, the first one first; costs nothing, needs a grant."""
        _check_names(dataset=dataset, analyst=analyst, question=beginning)
        with self._reading() as tables:
            if tables.account(dataset, analyst) is None:
                return []
            found = [_answer(tables, spend) for spend in tables.answered_under(dataset, beginning)]
            return [each for each in found if each is not None]

    def show(self, dataset: str, entry: str, digest: str) -> None:
        """Note that a table with this digest was made of the answer that an entry holds; once, however often it is shown."""
        self.note(dataset, {"shown": {"entry": entry, "sha256": digest}}, token=_shown(entry, digest))

    def was_shown(self, entry: str, digest: str) -> bool:
        """True when a table with this digest was made of the answer that an entry holds."""
        with self._reading() as tables:
            noted = tables.by_token(_shown(entry, digest))
        return noted is not None and noted.kind == "note" and noted.payload == {"shown": {"entry": entry, "sha256": digest}}

    def remaining(self, dataset: str, analyst: str = EVERYBODY) -> LossAmount | None:
        """What the analyst may still spend on the dataset; None without a grant.

        Where a cap of the same kind leaves less, it is that; without an analyst, it is what is left below the cap.
        """
        checked_name(dataset, "dataset")
        checked_name(analyst, "analyst")
        with self._reading() as tables:
            account, cap = tables.charged_accounts(dataset, analyst)
        if account is None or cap is None or cap.granted.kind != account.granted.kind:
            return None if account is None else account.remaining
        return account.remaining.lower(cap.remaining)

    def accounts(self, dataset: str | None = None) -> list[Account]:
        """Grants and spends of all analysts, or of those on one dataset; a cap is the account of `*`."""
        _check_names(dataset="all" if dataset is None else dataset)
        with self._reading() as tables:
            return tables.accounts(dataset)

    def spends(self, dataset: str | None = None) -> list[Spending]:
        """Who spent what when on which question, and what became of it; oldest first."""
        _check_names(dataset="all" if dataset is None else dataset)
        with self._reading() as tables:
            return tables.spendings(dataset)

    def charge(self, entry: str) -> Spending | None:
        """The spend behind the hash of a `reserve` or `commit` entry, as a certificate names it; None if there is none."""
        with self._reading() as tables:
            found = tables.by_hash(entry)
            if found is None or found.kind not in ("reserve", "commit"):
                return None
            token = found.token if found.kind == "reserve" else str(found.payload["reservation"])
            return next(iter(tables.spendings(token=token)), None)

    # The chain

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

    def _open_account(self, dataset: str, analyst: str, loss: LossAmount, stated: Protected | None) -> Entry:
        with self._writing() as tables:
            before = tables.account(dataset, analyst)
            after = opened(dataset, analyst, loss, tables.spends(dataset, analyst), tables.unit_changes(dataset))
            payload: dict[str, Any] = {"loss": loss.to_mapping()}
            if stated is not None:
                spent = any(spend.state != "rolled back" for spend in tables.spends(dataset, EVERYBODY))
                tables.protect(dataset, restated(tables.protected(dataset), stated, dataset, spent=spent))
                payload |= stated.to_mapping()
            entry = self._append(tables, "grant", dataset, payload, analyst=analyst)
            tables.replace_account(before, after)
            return entry

    def _enter_once(self, kind: EntryKind, dataset: str, payload: Mapping[str, Any], token: str) -> Entry:
        _check_names(dataset=dataset, token=token)
        with self._writing() as tables:
            found = tables.by_token(token)
            if found is None:
                return self._append(tables, kind, dataset, payload, token=token)
            if (found.kind, found.dataset, found.payload_text) != (kind, dataset, chain.payload_text(payload)):
                raise LedgerError("this token already names another entry of the ledger. Use a new token for a new entry.")
            return found

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


def _check_names(**names: str) -> None:
    for what, name in names.items():
        checked_name(name, what)
        if what == "analyst" and name == EVERYBODY:
            raise InputError(
                "no analyst is called '*': that is everybody together. The owner sets a cap with: sfumato ledger cap"
            )


def _stated(unit: str | None, neighbours: Neighbours | None) -> Protected | None:
    if unit is None and neighbours is not None:
        raise InputError("neighbours are stated together with the unit: name both")
    return None if unit is None else Protected(unit, neighbours or "add_remove")


def _shown(entry: str, digest: str) -> str:
    """The token under which it is noted that a table was shown."""
    return f"shown-{entry}-{digest}"


def _known(spend: Spend | None) -> Spend:
    if spend is None:
        raise LedgerError("this reservation is not in the ledger")
    return spend


def _answer(tables: Tables, spend: Spend | None) -> Answer | None:
    if spend is None or spend.closed_by is None:
        return None
    entry = tables.by_sequence(spend.closed_by)
    if entry is None or entry.kind != "commit":
        raise LedgerError("a stored answer is missing from the chain: the ledger was edited or damaged. Run verify.")
    return Answer(entry.payload["answer"], entry.hash, entry.time)
