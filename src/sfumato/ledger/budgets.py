"""Budgets on a dataset: what each analyst and everybody together may spend, and whom that protects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.core.errors import InputError
from sfumato.ledger.accounts import EVERYBODY, Account, Protected, restated
from sfumato.ledger.amounts import LossAmount
from sfumato.ledger.chain import Entry, checked_name
from sfumato.ledger.transactions import LedgerPart, check_names, check_selected, end_of
from sfumato.ledger.unit_changes import Uncovered, changed, opened, uncovered
from sfumato.ledger.verification import uncovered_since

if TYPE_CHECKING:
    from sfumato.core.guarantees.loss import Neighbours


class Budgets(LedgerPart):
    """Grants, caps and changes of unit: the owner's part of a ledger."""

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
        check_names(dataset=dataset, analyst=analyst)
        return self._open_account(dataset, analyst, loss, _stated(unit, neighbours))

    def first_grant(self, dataset: str, analyst: str, loss: LossAmount) -> bool:
        """Grant only where nobody was granted anything on the dataset yet; True when this was the first."""
        check_names(dataset=dataset, analyst=analyst)
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
            if current is None or (not changes and first is not None and "unit" in first.payload):
                return ()  # as a rule, without a look at the entries
            fixed = tables.first_about_a_unit(dataset)
            return uncovered(tables.spends(dataset, EVERYBODY), changes, current, first, fixed)

    def not_covered_since(self, charge: str) -> list[tuple[Uncovered, ...]]:
        """What `not_covered` said when an entry was made, and after each later change of the budget; none for an unknown one."""
        with self._reading() as tables:
            entry = tables.by_hash(charge)
            return [] if entry is None else uncovered_since(tables.account_entries(entry.dataset, 0), entry)

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
        check_selected(dataset)
        with self._reading() as tables:
            return tables.accounts(dataset)

    def _open_account(self, dataset: str, analyst: str, loss: LossAmount, stated: Protected | None) -> Entry:
        with self._naming_the_ledger(), self._writing() as tables:
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


def _stated(unit: str | None, neighbours: Neighbours | None) -> Protected | None:
    if unit is None and neighbours is not None:
        raise InputError("neighbours are stated together with the unit: name both")
    return None if unit is None else Protected(unit, neighbours or "add_remove")
