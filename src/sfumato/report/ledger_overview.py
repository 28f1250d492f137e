"""The accounts of a ledger as an owner wants to see them: who spent what on which data, what is left, and a figure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.plain_data import PlainDict
from sfumato.ledger.accounts import EVERYBODY, Protected
from sfumato.ledger.versions import outdated

if TYPE_CHECKING:
    from sfumato.ledger.accounts import Account, Spending
    from sfumato.ledger.amounts import LossAmount
    from sfumato.ledger.chain import Entry
    from sfumato.ledger.ledger import Ledger

LAST_ENTRIES = 10


@dataclass(frozen=True)
class AccountLine:
    """One account with how often it was used: `answered` questions, and those `open`, spent without an answer."""

    account: Account
    answered: int
    open: int

    def to_mapping(self) -> PlainDict:
        """Plain data, amounts as exact fractions."""
        account = self.account
        return {
            "dataset": account.dataset,
            "analyst": account.analyst,
            "granted": account.granted.to_mapping(),
            "spent": account.spent.to_mapping(),
            "left": account.remaining.to_mapping(),
            **Protected.plain(account.protected),
            "answered": self.answered,
            "reserved_without_answer": self.open,
        }


@dataclass(frozen=True)
class Overview:
    """What a ledger holds."""

    lines: tuple[AccountLine, ...]
    releases: int
    entries: int
    last: tuple[Entry, ...] = field(repr=False)
    spends: tuple[Spending, ...] = field(repr=False)
    outdated: tuple[str, ...] = ()  # datasets whose data changed under the version they were last opened with

    def figure(self) -> str:
        """The budget spent per analyst and dataset as SVG."""
        from sfumato.report.figures.ledger_budget import AccountBudget, ledger_budget

        drawn = []
        for line in self.lines:
            account = line.account
            about = "" if account.protected is None else f" per {account.protected.short}"
            words = f"{_compared(account.spent, account.granted)}{about}"
            named = "everybody" if account.is_cap else account.analyst
            drawn.append(
                AccountBudget(account.dataset, named, _share(account.spent, account.granted), words, self._history(account))
            )
        return ledger_budget(drawn)

    def _history(self, account: Account) -> tuple[tuple[str, float], ...]:
        return tuple(
            (spend.time, _share(spend.loss, account.granted))
            for spend in self.spends
            if spend.dataset == account.dataset and spend.state != "rolled back" and account.analyst in (spend.analyst, EVERYBODY)
        )

    def to_mapping(self) -> PlainDict:
        """Plain data, ready for JSON."""
        return {
            "accounts": [line.to_mapping() for line in self.lines],
            "releases": self.releases,
            "entries": self.entries,
            "last": [entry_mapping(entry) for entry in self.last],
            "outdated": list(self.outdated),
        }


def entry_mapping(entry: Entry) -> PlainDict:
    """What is shown of an entry: everything but its payload, and of that what a grant or a spend is about."""
    shown = ("sequence", "time", "kind", "dataset", "analyst", "hash")
    return {**{name: getattr(entry, name) for name in shown}, **Protected.plain(entry_protected(entry))}


def entry_protected(entry: Entry) -> Protected | None:
    """What a grant, a spend or a change of unit is about, as far as its entry says so."""
    # The payloads of the other kinds are stored answers and what callers noted; none of those is read here.
    return Protected.from_mapping(entry.payload) if entry.kind in ("grant", "reserve", "unit") else None


def overview(ledger: Ledger, dataset: str | None = None) -> Overview:
    """The accounts of a ledger, or those of one dataset."""
    spends = tuple(ledger.spends(dataset))
    counted = Counter((spend.dataset, name, spend.state) for spend in spends for name in (spend.analyst, EVERYBODY))
    lines = tuple(
        AccountLine(account, counted[(*_key(account), "committed")], counted[(*_key(account), "reserved")])
        for account in ledger.accounts(dataset)
    )
    last = tuple(ledger.latest(LAST_ENTRIES, dataset))
    names = dict.fromkeys(entry.dataset for entry in ledger.entries(dataset, "version"))
    old = tuple(name for name in names if outdated(ledger.versions(name)))
    return Overview(lines, ledger.count(dataset, "release"), ledger.count(dataset), last, spends, old)


def _compared(part: LossAmount, whole: LossAmount) -> str:
    """`ε 0.4 of 1`, short enough for a figure."""
    symbols = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    pairs = [(symbol, getattr(part, name), getattr(whole, name)) for name, symbol in symbols.items()]
    return ", ".join(f"{symbol} {float(mine):.3g} of {float(most):.3g}" for symbol, mine, most in pairs if most is not None)


def _key(account: Account) -> tuple[str, str]:
    return account.dataset, account.analyst


def _share(part: LossAmount, whole: LossAmount) -> float:
    """The largest share of any part of the grant; a grant of nothing is used up by anything."""
    used = part.converted(whole.kind)
    shares = [0.0]
    for name in ("epsilon", "delta", "rho"):
        mine, granted = getattr(used, name), getattr(whole, name)
        if mine:
            shares.append(float(Fraction(mine) / granted) if granted else 1.0)
    return max(shares)
