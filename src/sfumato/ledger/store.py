"""What the ledger asks of a database: exclusive transactions over four small tables, the same in every
database.

`entries` is the truth and only ever appended to (triggers refuse anything else). `accounts` and `spends` are
derived from it, so that a reservation is a conditional update of the analyst's account and of the cap, and an
answer one look-up; what a dataset's budget protects is a row of `meta`, which the oldest ledgers have too. `verify`
derives all of it again and compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sfumato.core.errors import LedgerError
from sfumato.ledger.accounts import EVERYBODY, Account, Protected, Spend, Spending
from sfumato.ledger.amounts import LossAmount
from sfumato.ledger.chain import Entry, Head, withdrawal_token
from sfumato.ledger.unit_changes import UnitChange

VERSION = 1
PAGE = 500

_ANSWERS = "spends_by_question"
_BY_QUESTION = f"INDEX {{t}}{_ANSWERS} ON {{t}}spends (dataset, question) WHERE state = 'committed'"

#: Column types that mean the same in SQLite and PostgreSQL. A question has at most one committed answer.
DEFINITIONS = (
    "CREATE TABLE {t}meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE {t}entries ("
    " sequence BIGINT PRIMARY KEY, time TEXT NOT NULL, dataset TEXT NOT NULL, kind TEXT NOT NULL,"
    " analyst TEXT NOT NULL, token TEXT NOT NULL UNIQUE, payload TEXT NOT NULL,"
    " previous TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE INDEX {t}entries_by_dataset ON {t}entries (dataset, kind, sequence)",
    "CREATE TABLE {t}accounts ("
    " dataset TEXT NOT NULL, analyst TEXT NOT NULL, granted TEXT NOT NULL, spent TEXT NOT NULL,"
    " PRIMARY KEY (dataset, analyst))",
    "CREATE TABLE {t}spends ("
    " token TEXT PRIMARY KEY, dataset TEXT NOT NULL, analyst TEXT NOT NULL, question TEXT NOT NULL,"
    " loss TEXT NOT NULL, state TEXT NOT NULL, closed_by BIGINT)",
    "CREATE INDEX {t}spends_by_account ON {t}spends (dataset, analyst)",
    "CREATE UNIQUE INDEX {t}one_answer ON {t}spends (dataset, analyst, question) WHERE state = 'committed'",
    f"CREATE UNIQUE {_BY_QUESTION}",
)

#: Indices that ledgers written before them lack. There two analysts may have answers of their own to one question, so
#: that the index cannot be unique; the earlier answer counts from then on.
LATER_INDICES = {_ANSWERS: f"CREATE {_BY_QUESTION}"}

_ENTRY = "sequence, time, dataset, kind, analyst, token, payload, previous, hash"
_SPEND = "token, dataset, analyst, question, loss, state, closed_by"
_SPENT = (
    f"SELECT {', '.join(f's.{name}' for name in _SPEND.split(', '))}, e.sequence, e.payload"  # noqa: S608
    " FROM {t}spends s LEFT JOIN {t}entries e ON e.token = s.token"
)
#: Before the id of a dataset: the fact that says what its budget protects.
_UNIT = "unit:"
#: And the one that says what it protected before.
_CHANGES = "changes:"
#: And how often a session was opened on it.
_OPENED = "opened:"
_ACCOUNTS = (
    "SELECT a.dataset, a.analyst, a.granted, a.spent, m.value"  # noqa: S608
    f" FROM {{t}}accounts a LEFT JOIN {{t}}meta m ON m.name = '{_UNIT}' || a.dataset"
)


class Connection(Protocol):
    """One statement at a time, `?` for parameters, `{t}` for the prefix of table names, `{c}` where texts compare by bytes."""

    def run(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:  # cells
        """Rows of a query; for an update one row with the number of rows changed."""


class Store(Protocol):
    """A database that holds one ledger."""

    @property
    def description(self) -> str:
        """Where it is, without secrets."""

    def writing(self) -> AbstractContextManager[Tables]:
        """A transaction that no other writer shares; commits at the end, rolls back on any exception."""

    def reading(self) -> AbstractContextManager[Tables]:
        """One consistent view."""

    def sound(self) -> bool:
        """False when the database itself finds its file damaged, for instance an index that misses rows."""

    def close(self) -> None:
        """Let go of the database."""


class Tables:
    """The four tables inside one transaction; `head` is the end of the chain, where the transaction has looked."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.head: Head | None = None

    def _run(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        rows = self._connection.run(statement, parameters)
        if any(isinstance(cell, bytes) for row in rows for cell in row):  # SQLite keeps what it is given in any column
            raise LedgerError(
                "the ledger holds bytes where it has texts and numbers: the file was edited or damaged. Run verify."
            )
        return rows

    def meta(self, name: str) -> str:
        """A fact about the ledger: its `format` or `identity`."""
        rows = self._run("SELECT value FROM {t}meta WHERE name = ?", (name,))
        if not rows:
            raise LedgerError("the ledger has no identity: its table of facts was emptied. Restore it from a copy.")
        return str(rows[0][0])

    def last(self) -> tuple[int, str] | None:
        """Sequence number and hash of the entry at the end of the chain."""
        rows = self._run("SELECT sequence, hash FROM {t}entries ORDER BY sequence DESC LIMIT 1")
        return (_whole(rows[0][0]), str(rows[0][1])) if rows else None

    def by_token(self, token: str) -> Entry | None:
        """The entry with that token."""
        return self._entry("WHERE token = ?", (token,))

    def withdrawal(self, release: str) -> Entry | None:
        """The entry that withdrew a release."""
        entry = self.by_token(withdrawal_token(release))
        return entry if entry is not None and entry.kind == "withdrawal" else None

    def token_in_force(self, token: str) -> str:
        """The token under which a release is entered: one that was withdrawn and is released again is another entry."""
        while (entry := self.by_token(token)) is not None and self.withdrawal(entry.hash) is not None:
            token = f"again-{entry.hash}"
        return token

    def by_sequence(self, sequence: int) -> Entry | None:
        """The entry at that place."""
        return self._entry("WHERE sequence = ?", (sequence,))

    def by_hash(self, digest: str) -> Entry | None:
        """The entry with that hash."""
        return self._entry("WHERE hash = ? ORDER BY sequence LIMIT 1", (digest,))

    def beginning(self, digits: str) -> list[Entry]:
        """Entries whose hash begins so: two at most, which shows that there are several."""
        after = f"{digits[:-1]}{chr(ord(digits[-1]) + 1)}"
        where = f"SELECT {_ENTRY} FROM {{t}}entries WHERE hash{{c}} >= ? AND hash{{c}} < ? ORDER BY sequence LIMIT 2"  # noqa: S608
        return [Entry(*row) for row in self._run(where, (digits, after))]

    def entries(self, dataset: str | None = None, kind: str | None = None) -> Iterator[Entry]:
        """Entries in order, a page at a time, all or of one dataset and kind."""
        after = -(2**62)
        conditions = "".join(f" AND {name} = ?" for name, v in (("dataset", dataset), ("kind", kind)) if v is not None)
        values = [value for value in (dataset, kind) if value is not None]
        statement = f"SELECT {_ENTRY} FROM {{t}}entries WHERE sequence > ?{conditions} ORDER BY sequence LIMIT {PAGE}"  # noqa: S608
        while True:
            rows = self._run(statement, (after, *values))
            yield from (Entry(*row) for row in rows)
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def first_about_a_unit(self, dataset: str) -> Entry | None:
        """The first entry that says what the budget of a dataset is about; None where none does."""
        return next((entry for entry in self.account_entries(dataset, 0) if "unit" in entry.payload), None)

    def account_entries(self, dataset: str, after: int) -> Iterator[Entry]:
        """The entries of a dataset after one of them, in order, without those that no balance follows from."""
        statement = (
            f"SELECT {_ENTRY} FROM {{t}}entries WHERE dataset = ? AND kind IN ('grant', 'reserve', 'rollback', 'unit')"  # noqa: S608
            f" AND sequence > ? ORDER BY sequence LIMIT {PAGE}"
        )
        while True:
            rows = self._run(statement, (dataset, after))
            yield from (Entry(*row) for row in rows)
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def latest(self, count: int, dataset: str | None = None) -> list[Entry]:
        """The last entries, oldest first."""
        condition, values = ("", ()) if dataset is None else ("WHERE dataset = ? ", (dataset,))
        statement = f"SELECT {_ENTRY} FROM {{t}}entries {condition}ORDER BY sequence DESC LIMIT ?"  # noqa: S608
        return [Entry(*row) for row in self._run(statement, (*values, count))][::-1]

    def count(self, dataset: str | None = None, kind: str | None = None) -> int:
        """How many entries there are, all or of one dataset and kind."""
        limits = [(name, value) for name, value in (("dataset", dataset), ("kind", kind)) if value is not None]
        conditions = "".join(f" AND {name} = ?" for name, _ in limits)
        statement = f"SELECT count(*) FROM {{t}}entries WHERE sequence > 0{conditions}"  # noqa: S608
        return int(self._run(statement, [value for _, value in limits])[0][0])

    def append(self, entry: Entry) -> None:
        """Add a sealed entry."""
        fields = (entry.sequence, entry.time, entry.dataset, entry.kind, entry.analyst, entry.token)
        self._run(
            f"INSERT INTO {{t}}entries ({_ENTRY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            (*fields, entry.payload_text, entry.previous, entry.hash),
        )

    def accounts(self, dataset: str | None = None) -> list[Account]:
        """All accounts, or those of one dataset."""
        condition, values = ("", ()) if dataset is None else ("WHERE a.dataset = ? ", (dataset,))
        return [_account(row) for row in self._run(f"{_ACCOUNTS} {condition}ORDER BY a.dataset, a.analyst", values)]

    def account(self, dataset: str, analyst: str) -> Account | None:
        """One account."""
        rows = self._run(f"{_ACCOUNTS} WHERE a.dataset = ? AND a.analyst = ?", (dataset, analyst))
        return _account(rows[0]) if rows else None

    def charged_accounts(self, dataset: str, analyst: str) -> tuple[Account | None, Account | None]:
        """What a spend of this analyst is charged to: the analyst's account and, if there is one, the cap."""
        rows = self._run(f"{_ACCOUNTS} WHERE a.dataset = ? AND a.analyst IN (?, ?)", (dataset, analyst, EVERYBODY))
        accounts = {row[1]: _account(row) for row in rows}
        return accounts.get(analyst), accounts.get(EVERYBODY)

    def protected(self, dataset: str) -> Protected | None:
        """What the budget on a dataset protects, if that is fixed."""
        rows = self._run("SELECT value FROM {t}meta WHERE name = ?", (f"{_UNIT}{dataset}",))
        return _protected(rows[0][0]) if rows else None

    def all_protected(self) -> dict[str, Protected | None]:
        """What is protected, by dataset."""
        facts = self._run("SELECT name, value FROM {t}meta")
        return {name.removeprefix(_UNIT): _protected(value) for name, value in facts if name.startswith(_UNIT)}

    def protect(self, dataset: str, protected: Protected) -> None:
        """Fix what the budget on a dataset protects; inside the transaction that decided it."""
        self._set(f"{_UNIT}{dataset}", _dumped(protected.to_mapping()))

    def _set(self, name: str, value: str) -> None:
        upsert = "INSERT INTO {t}meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        self._run(upsert, (name, value))

    def unit_changes(self, dataset: str) -> tuple[UnitChange, ...]:
        """What the budget on a dataset was about before, oldest first."""
        rows = self._run("SELECT value FROM {t}meta WHERE name = ?", (f"{_CHANGES}{dataset}",))
        return _changes(rows[0][0]) if rows else ()

    def all_unit_changes(self) -> dict[str, tuple[UnitChange, ...]]:
        """Changes of units, by dataset."""
        facts = self._run("SELECT name, value FROM {t}meta")
        return {name.removeprefix(_CHANGES): _changes(value) for name, value in facts if name.startswith(_CHANGES)}

    def set_unit_changes(self, dataset: str, changes: Sequence[UnitChange]) -> None:
        """Keep the changes; inside the transaction that entered the last one."""
        self._set(f"{_CHANGES}{dataset}", json.dumps([change.to_mapping() for change in changes], sort_keys=True))

    def count_opening(self, dataset: str) -> None:
        """One more session was opened on a dataset."""
        rows = self._run("SELECT value FROM {t}meta WHERE name = ?", (f"{_OPENED}{dataset}",))
        before = str(rows[0][0]) if rows else "0"
        self._set(f"{_OPENED}{dataset}", str(int(before) + 1 if before.isdecimal() else 1))

    def first_reserve(self, dataset: str) -> Entry | None:
        """The first charge on a dataset."""
        return self._entry("WHERE dataset = ? AND kind = 'reserve' ORDER BY sequence LIMIT 1", (dataset,))

    def replace_account(self, before: Account | None, after: Account) -> None:
        """The conditional update: takes effect only if the account still is what was decided upon."""
        values = (_text(after.granted), _text(after.spent), after.dataset, after.analyst)
        if before is None:
            changed = self._run("INSERT INTO {t}accounts (granted, spent, dataset, analyst) VALUES (?, ?, ?, ?)", values)
        else:
            changed = self._run(
                "UPDATE {t}accounts SET granted = ?, spent = ? WHERE dataset = ? AND analyst = ? AND granted = ? AND spent = ?",
                (*values, _text(before.granted), _text(before.spent)),
            )
        if changed != [(1,)]:
            raise LedgerError("the account changed while it was charged; nothing was charged. Try again.")

    def spend(self, token: str) -> Spend | None:
        """The reservation with that token, in whatever state."""
        return next(self._spends("WHERE s.token = ?", (token,)), None)

    def spends(self, dataset: str, analyst: str) -> Iterator[Spend]:
        """All reservations that an account is charged with; the cap's are those of everybody."""
        if analyst == EVERYBODY:
            return self._spends("WHERE s.dataset = ?", (dataset,))
        return self._spends("WHERE s.dataset = ? AND s.analyst = ?", (dataset, analyst))

    def all_spends(self) -> Iterator[Spend]:
        """Every reservation."""
        return self._spends("", ())

    def answered(self, dataset: str, question: str) -> Spend | None:
        """The first committed reservation of a question, whoever asked it."""
        where = "WHERE s.dataset = ? AND s.question = ? AND s.state = 'committed'"
        return next(self._spends(where, (dataset, question), "s.closed_by LIMIT 1"), None)

    def answered_under(self, dataset: str, beginning: str) -> list[Spend]:
        """The committed reservations of questions whose digest begins so, the first one first."""
        # A range of bytes, which the index of SQLite serves; it does not serve LIKE.
        where = "WHERE s.dataset = ? AND s.question{c} >= ? AND s.question{c} < ? AND s.state = 'committed'"
        after = beginning[:-1] + chr(ord(beginning[-1]) + 1)
        return list(self._spends(where, (dataset, beginning, after), "s.closed_by"))

    def spendings(self, dataset: str | None = None, token: str | None = None) -> list[Spending]:
        """Spends with the time and the hashes of their entries, oldest first."""
        limits = (("s.dataset", dataset), ("s.token", token))
        conditions = "".join(f" AND {name} = ?" for name, value in limits if value is not None)
        rows = self._run(
            "SELECT e.time, s.dataset, s.analyst, s.question, s.loss, s.state, e.hash, c.hash, e.payload"  # noqa: S608
            " FROM {t}spends s JOIN {t}entries e ON e.token = s.token LEFT JOIN {t}entries c ON c.sequence = s.closed_by"
            f" WHERE e.kind = 'reserve'{conditions} ORDER BY e.sequence",
            [value for _, value in limits if value is not None],
        )
        return [
            Spending(row[0], row[1], row[2], row[3], _amount(row[4]), row[5], row[6], row[7], _protected(row[8])) for row in rows
        ]

    def add_spend(self, spend: Spend) -> None:
        """A new reservation."""
        values = (
            spend.token,
            spend.dataset,
            spend.analyst,
            spend.question,
            _text(spend.loss),
            spend.state,
            spend.closed_by,
        )
        self._run(f"INSERT INTO {{t}}spends ({_SPEND}) VALUES (?, ?, ?, ?, ?, ?, ?)", values)  # noqa: S608

    def close_spend(self, token: str, state: str, closed_by: int) -> None:
        """Commit or roll back a reservation that is still open."""
        changed = self._run(
            "UPDATE {t}spends SET state = ?, closed_by = ? WHERE token = ? AND state = 'reserved'",
            (state, closed_by, token),
        )
        if changed != [(1,)]:
            raise LedgerError("the reservation is not open any more")

    def _entry(self, rest: str, values: Sequence[Any]) -> Entry | None:
        rows = self._run(f"SELECT {_ENTRY} FROM {{t}}entries {rest}", values)  # noqa: S608
        return Entry(*rows[0]) if rows else None

    def _spends(self, where: str, values: Sequence[Any], order: str = "s.token") -> Iterator[Spend]:
        rows = self._run(f"{_SPENT} {where} ORDER BY {order}", values)
        return (_spend(row) for row in rows)


def _spend(row: tuple[Any, ...]) -> Spend:
    sequence_and_unit = (0, None) if row[7] is None else (_whole(row[7]), _protected(row[8]))
    return Spend(row[0], row[1], row[2], row[3], _amount(row[4]), row[5], row[6], *sequence_and_unit)


def _whole(cell: Any) -> int:
    """A number of an entry: SQLite keeps a text in a column of numbers too."""
    if not isinstance(cell, int):
        raise LedgerError("the ledger holds a text where it numbers its entries: the file was edited or damaged. Restore a copy.")
    return cell


def _account(row: tuple[Any, ...]) -> Account:
    return Account(row[0], row[1], _amount(row[2]), _amount(row[3]), None if row[4] is None else _protected(row[4]))


def _text(amount: LossAmount) -> str:
    return _dumped(amount.to_mapping())


def _dumped(fact: dict[str, str]) -> str:
    return json.dumps(fact, sort_keys=True, separators=(",", ":"))


def _amount(text: str) -> LossAmount:
    try:
        return LossAmount.from_mapping(json.loads(text))
    except Exception:
        raise LedgerError("an amount in the ledger cannot be read: the file was edited or damaged. Run verify.") from None


def _changes(text: str) -> tuple[UnitChange, ...]:
    try:
        return tuple(UnitChange.from_mapping(each) for each in json.loads(text))
    except Exception:
        raise LedgerError("a change of unit cannot be read: the file was edited or damaged. Run verify.") from None


def _protected(text: str) -> Protected | None:
    try:
        return Protected.from_mapping(json.loads(text))
    except Exception:
        raise LedgerError("a unit in the ledger cannot be read: the file was edited or damaged. Run verify.") from None
