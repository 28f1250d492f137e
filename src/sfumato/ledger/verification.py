"""Walking a ledger from the first entry to the last: is every entry what it was, do the balances follow?

The walk recomputes each hash, replays grants, reservations, answers and roll-backs, and compares with the
stored balances and with the stored units that they are about.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sfumato.core.errors import SfumatoError
from sfumato.ledger.accounts import EVERYBODY, Account, Protected, Spend, agreed, restated
from sfumato.ledger.amounts import LossAmount
from sfumato.ledger.chain import KINDS, Entry, Head, genesis, is_hash, withdrawal_token
from sfumato.ledger.store import Tables
from sfumato.ledger.unit_changes import Uncovered, UnitChange, carried, changed, opened, uncovered
from sfumato.ledger.versions import Seen
from sfumato.ledger.withdrawals import is_charged, settled_reason


@dataclass(frozen=True)
class VerifyReport:
    """What the walk found. `first_damaged` is the sequence number from which the chain is not believable; `notes` are
    oddities that no rule forbids, such as a clock that was set back."""

    ok: bool
    entries: int
    head: Head
    finding: str
    first_damaged: int | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join((self.finding, *self.notes))


class _Damage(Exception):
    def __init__(self, sequence: int | None, finding: str) -> None:
        super().__init__(finding)
        self.sequence = sequence


class _Replay:
    """Accounts and spends as they follow from the entries read so far."""

    def __init__(self) -> None:
        self.accounts: dict[tuple[str, str], Account] = {}
        self.spends: dict[str, Spend] = {}
        self.by_account: dict[tuple[str, str], list[str]] = {}
        self.answered: set[tuple[str, str, str]] = set()
        self.protected: dict[str, Protected] = {}
        self.changes: dict[str, tuple[UnitChange, ...]] = {}
        self.released: dict[str, tuple[str, bool]] = {}
        self.withdrawn: set[str] = set()
        self.notes: list[str] = []

    def take(self, entry: Entry) -> None:
        """Apply one entry; anything a ledger would not have written raises."""
        payload, owner = entry.payload, (entry.dataset, entry.analyst)
        if entry.kind == "grant":
            earlier = [self.spends[token] for token in self.by_account.get(owner, ())]
            granted, changes = LossAmount.from_mapping(payload["loss"]), self.changes.get(entry.dataset, ())
            self.accounts[owner] = opened(*owner, granted, earlier, changes)
            self._state(entry.dataset, Protected.from_mapping(payload))
        elif entry.kind == "reserve":
            about = Protected.from_mapping(payload)
            loss = LossAmount.from_mapping(payload["loss"])
            spend = Spend(entry.token, *owner, payload["question"], loss, sequence=entry.sequence, protected=about)
            self._agree(entry.dataset, about)
            for account in self._charged(owner):
                self.accounts[account] = self.accounts[account].charged(spend.loss)
            self.spends[entry.token] = spend
            for account in (owner, (entry.dataset, EVERYBODY)):
                self.by_account.setdefault(account, []).append(entry.token)
        elif entry.kind == "commit":
            spend = self._open(payload, owner)
            question = (*owner, spend.question)
            if question in self.answered or payload["question"] != spend.question:
                raise ValueError("a second answer")
            self.answered.add(question)
            self.spends[spend.token] = replace(spend, state="committed", closed_by=entry.sequence)
        elif entry.kind == "rollback":
            spend = self._open(payload, owner)
            refund = carried(spend, self.changes.get(entry.dataset, ()))
            for account in self._charged(owner):
                self.accounts[account] = self.accounts[account].refunded(refund)
            self.spends[spend.token] = replace(spend, state="rolled back", closed_by=entry.sequence)
        elif entry.kind == "unit":
            self._change(entry, payload)
        elif entry.kind == "version":
            Seen(**payload)
        elif entry.kind == "release":
            self.released[entry.hash] = (entry.dataset, is_charged(payload))
        elif entry.kind == "withdrawal":
            self._withdraw(entry, payload)

    def balances(self) -> dict[tuple[str, str], Account]:
        """The accounts with what they protect."""
        return {owner: replace(each, protected=self.protected.get(owner[0])) for owner, each in self.accounts.items()}

    def uncovered(self, dataset: str, first: Entry | None, fixed: Entry | None) -> tuple[Uncovered, ...]:
        """What the budget does not cover so far; the entries are those that `unit_changes.uncovered` takes."""
        spends = (spend for spend in self.spends.values() if spend.dataset == dataset)
        return uncovered(spends, self.changes.get(dataset, ()), self.protected.get(dataset), first, fixed)

    def _change(self, entry: Entry, payload: dict[str, Any]) -> None:
        """Another unit: what was spent on the dataset counts anew, in every account."""
        dataset, stated = entry.dataset, Protected.from_mapping(payload)
        owners = [owner for owner in self.accounts if owner[0] == dataset]
        if stated is None or not owners or entry.analyst:
            raise ValueError("not a change of unit")
        earlier = self.changes.get(dataset, ())
        most = payload["rows_per_unit"]
        self.changes[dataset] = changed(earlier, self.protected.get(dataset), stated, most, entry.sequence, dataset)
        self.protected[dataset] = stated
        before = dict(self.accounts)
        for owner in owners:
            spends = [self.spends[token] for token in self.by_account.get(owner, ())]
            self.accounts[owner] = opened(*owner, self.accounts[owner].granted, spends, self.changes[dataset])
        corrected = len(self.changes[dataset]) == len(earlier)
        if corrected and any(_less(self.accounts[owner], before[owner]) for owner in owners):
            self.notes.append(
                f"entry {entry.sequence:,} corrected the most rows of one {stated.unit} on dataset '{dataset}' from "
                f"{earlier[-1].most:,} to {most:,}, which gave budget back: rightly only if no unit ever had more"
            )

    def _withdraw(self, entry: Entry, payload: dict[str, Any]) -> None:
        """A release of this dataset that nothing was charged for, once, with a reason."""
        release, reason = payload["release"], payload["reason"]
        sound = set(payload) == {"release", "reason"} and settled_reason(reason) == reason and not entry.analyst
        if not sound or entry.token != withdrawal_token(release) or self.released.get(release) != (entry.dataset, False):
            raise ValueError("not a withdrawal")
        if release in self.withdrawn:
            raise ValueError("a second withdrawal")
        self.withdrawn.add(release)

    def _state(self, dataset: str, stated: Protected | None) -> None:
        if stated is not None:
            tokens = self.by_account.get((dataset, EVERYBODY), ())
            spent = any(self.spends[token].state != "rolled back" for token in tokens)
            self.protected[dataset] = restated(self.protected.get(dataset), stated, dataset, spent=spent)

    def _agree(self, dataset: str, asked: Protected | None) -> None:
        """Earlier versions did not say what a spend is about, which they could not once somebody had said it."""
        if asked is not None:
            self.protected[dataset] = agreed(self.protected.get(dataset), asked, dataset)
        elif dataset in self.protected:
            raise ValueError("a spend about nobody knows what")

    def _charged(self, owner: tuple[str, str]) -> list[tuple[str, str]]:
        """The accounts of a spend: the analyst's and, from when there is one, the cap."""
        cap = (owner[0], EVERYBODY)
        if owner == cap:
            raise ValueError("a spend by everybody")
        return [owner, cap] if cap in self.accounts else [owner]

    def _open(self, payload: dict[str, Any], owner: tuple[str, str]) -> Spend:
        spend = self.spends[payload["reservation"]]
        if spend.state != "reserved" or (spend.dataset, spend.analyst) != owner:
            raise ValueError("not an open reservation of this account")
        return spend


def verify(tables: Tables, anchors: Iterable[Head | str] = ()) -> VerifyReport:
    """Walk the chain inside one consistent view of the ledger."""
    identity = tables.meta("identity")
    head, replay = Head(identity, 0, genesis(identity)), _Replay()
    latest, backwards = "", []
    try:
        for entry in tables.entries():
            _follows(entry, head)
            _replayed(entry, replay)
            head = Head(identity, entry.sequence, entry.hash)
            if entry.time < latest:  # one format and one zone, so that texts sort as times do
                backwards.append(entry.sequence)
            latest = entry.time
        _compare(tables, replay)
        for anchor in anchors:
            _anchored(tables, anchor, head)
    except _Damage as damage:
        return VerifyReport(False, head.sequence, head, str(damage), damage.sequence)
    finding = f"{'1 entry' if head.sequence == 1 else f'{head.sequence:,} entries'}, chain and balances intact"
    return VerifyReport(True, head.sequence, head, finding, notes=(*_clock_notes(backwards), *replay.notes))


def balances(entries: Iterable[Entry], dataset: str) -> tuple[dict[tuple[str, str], Account], tuple[UnitChange, ...]]:
    """The balances that follow from the entries of a dataset, and how its unit changed; answers may be left out."""
    replay = _Replay()
    for entry in entries:
        replay.take(entry)
    return replay.balances(), replay.changes.get(dataset, ())


def uncovered_since(entries: Iterable[Entry], start: Entry) -> list[tuple[Uncovered, ...]]:
    """What the budget of a dataset did not cover when `start` was made, and after each later entry that may have changed it."""
    replay, dataset, states = _Replay(), start.dataset, []
    first = fixed = None
    for entry in entries:
        if entry.sequence > start.sequence and entry.kind != "reserve":
            states.append(replay.uncovered(dataset, first, fixed))
        replay.take(entry)
        first = entry if first is None and entry.kind == "reserve" else first
        fixed = entry if fixed is None and "unit" in entry.payload else fixed
    states.append(replay.uncovered(dataset, first, fixed))
    return list(dict.fromkeys(states))


def _less(after: Account, before: Account) -> bool:
    return after.spent != before.spent and after.spent.within(before.spent)


def _clock_notes(backwards: list[int]) -> tuple[str, ...]:
    """Times are what a computer's clock said; their order is that of the chain, whatever the clock does."""
    if not backwards:
        return ()
    more = f" and {len(backwards) - 1:,} more" if len(backwards) > 1 else ""
    return (
        f"the clock ran backwards before entry {backwards[0]:,}{more}: the time of an entry is earlier than that of the one "
        "before it",
    )


def _follows(entry: Entry, head: Head) -> None:
    place = head.sequence + 1
    if entry.sequence != place:
        raise _Damage(place, f"entry {place} is missing or was moved")
    texts = [value for name, value in entry.__dict__.items() if name != "sequence"]
    if not all(isinstance(text, str) for text in texts) or entry.kind not in KINDS:
        raise _Damage(place, f"entry {place} cannot be read: it was not written by a ledger")
    if entry.computed_hash() != entry.hash:
        raise _Damage(place, f"entry {place} was modified: its content does not have the hash that was written with it")
    if entry.previous != head.hash:
        raise _Damage(
            place,
            f"entry {place} does not follow from the one before it: one of the two was replaced or moved",
        )


def _replayed(entry: Entry, replay: _Replay) -> None:
    try:
        replay.take(entry)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError, SfumatoError):
        raise _Damage(
            entry.sequence,
            f"entry {entry.sequence} cannot have happened: it breaks the rules of grants, spends, answers and withdrawals",
        ) from None


def _compare(tables: Tables, replay: _Replay) -> None:
    """The derived tables carry no hashes; they differ when somebody edited them or cut off the chain."""
    try:
        protected, changes = tables.all_protected(), tables.all_unit_changes()
        accounts = {(account.dataset, account.analyst): account for account in tables.accounts()}
        spends = {spend.token: spend for spend in tables.all_spends()}
    except SfumatoError:
        raise _Damage(None, "the stored balances cannot be read: they were edited or damaged") from None
    if protected != replay.protected or changes != replay.changes:
        raise _Damage(
            None,
            "the stored units of the budgets differ from the entries: they were edited, or the last entries were cut off",
        )
    if accounts != replay.balances():
        raise _Damage(
            None,
            "the stored balances differ from the entries: they were edited, or the last entries were cut off",
        )
    if spends != replay.spends:
        raise _Damage(
            None,
            "the stored spends differ from the entries: they were edited, or the last entries were cut off",
        )


def _anchored(tables: Tables, anchor: Head | str, head: Head) -> None:
    noted = Head.parse(anchor) if isinstance(anchor, str) and not is_hash(anchor) else anchor
    if isinstance(noted, str):
        if tables.by_hash(noted) is None:
            raise _Damage(
                None,
                "an entry noted elsewhere is not in the chain: it was removed, or this is another ledger",
            )
        return
    if noted.ledger != head.ledger:
        raise _Damage(None, "the head noted elsewhere belongs to another ledger")
    if noted.sequence > head.sequence:
        raise _Damage(
            head.sequence + 1,
            f"the end was cut off: {noted.sequence:,} entries were noted, {head.sequence:,} are left",
        )
    entry = tables.by_sequence(noted.sequence) if noted.sequence else None
    if (entry.hash if entry else genesis(head.ledger)) != noted.hash:
        raise _Damage(noted.sequence, f"the chain was rewritten: entry {noted.sequence} is not the one noted elsewhere")
