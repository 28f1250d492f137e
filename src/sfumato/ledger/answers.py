"""Answers and what they cost: reserved before noise is drawn, stored together with the charge, shown again for nothing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.errors import InputError, LedgerError
from sfumato.core.plain_data import PlainDict
from sfumato.ledger.accounts import EVERYBODY, Charge, Charges, Reservation, Spend, Spending, StoredAnswer, agreed, not_granted
from sfumato.ledger.amounts import LossAmount
from sfumato.ledger.transactions import LedgerPart, check_names, check_selected
from sfumato.ledger.unit_changes import carried, is_covered, owner_said

if TYPE_CHECKING:
    from sfumato.ledger.store import Tables


class ChargedAnswers(LedgerPart):
    """Charges and stored answers: the analysts' part of a ledger."""

    def reserve(self, dataset: str, analyst: str, charge: Charge, question_digest: str) -> Reservation:
        """Set budget aside for a question, before any noise is drawn, or refuse.

        A question answered before, to whomever, is not charged: the reservation then carries the stored answer, which
        is no new look at the data. Without a grant on the dataset that is refused too, as is a charge about something
        else than the budget.
        """
        check_names(dataset=dataset, analyst=analyst, question=question_digest)
        with self._naming_the_ledger(), self._writing() as tables:
            account, cap = tables.charged_accounts(dataset, analyst)
            if account is None:
                raise not_granted(dataset, analyst, charge.loss)
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

    def commit(self, reservation: Reservation, answer: object) -> StoredAnswer:
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
            return StoredAnswer(entry.payload["answer"], entry.hash, entry.time)

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

    def answer(self, dataset: str, analyst: str, question_digest: str) -> StoredAnswer | None:
        """The stored answer to a question, whoever asked it first, or None. Costs nothing; needs a grant."""
        check_names(dataset=dataset, analyst=analyst, question=question_digest)
        with self._reading() as tables:
            if tables.account(dataset, analyst) is None:
                return None
            return _answer(tables, tables.answered(dataset, question_digest))

    def stored(self, dataset: str, analyst: str, beginning: str) -> list[StoredAnswer]:
        """The stored answers to all questions whose digest begins so, the first one first; costs nothing, needs a grant."""
        check_names(dataset=dataset, analyst=analyst, question=beginning)
        with self._reading() as tables:
            if tables.account(dataset, analyst) is None:
                return []
            answers = [_answer(tables, spend) for spend in tables.answered_under(dataset, beginning)]
            return [each for each in answers if each is not None]

    def show(self, dataset: str, entry: str, digest: str, part: str | None = None) -> None:
        """Note that a table with this digest was made of the answer that an entry holds, or of a `part` of it; once, however
        often it is shown."""
        self._enter_once("note", dataset, _note(entry, digest, part), _shown(entry, digest, part))

    def was_shown(self, entry: str, digest: str, part: str | None = None) -> bool:
        """True when a table with this digest was made of the answer that an entry holds, or of this part of it."""
        with self._reading() as tables:
            noted = tables.by_token(_shown(entry, digest, part))
        return noted is not None and noted.kind == "note" and noted.payload == _note(entry, digest, part)

    def spends(self, dataset: str | None = None) -> list[Spending]:
        """Who spent what when on which question, and what became of it; oldest first."""
        check_selected(dataset)
        with self._reading() as tables:
            return tables.spendings(dataset)

    def charges(self, dataset: str, analyst: str = EVERYBODY) -> Charges:
        """All that an analyst, or everybody, was charged on a dataset and not given back, restated for the unit of now as far as
        that can be done."""
        check_selected(dataset)
        with self._reading() as tables:
            if not tables.accounts(dataset) or (analyst != EVERYBODY and tables.account(dataset, analyst) is None):
                whose = "" if analyst == EVERYBODY else f" to analyst '{analyst}'"
                raise InputError(f"nothing was ever granted on dataset '{dataset}'{whose} in this ledger; see: sfumato ledger")
            changes, allowed = tables.unit_changes(dataset), _allowed(tables, dataset, analyst)
            spends = [each for each in tables.spends(dataset, analyst) if each.state != "rolled back"]
            protected = tables.protected(dataset)
            # what nobody can restate for the unit of now is not covered, which `not_covered` says
            said, first = owner_said(tables.first_about_a_unit(dataset)), tables.first_reserve(dataset)
            always = protected is None or (not changes and first is not None and "unit" in first.payload)
            covered = [each for each in spends if always or is_covered(each, changes, said)]
            amounts = tuple(carried(each, changes) for each in covered)
        return Charges(amounts, allowed, protected)

    def charge(self, entry: str) -> Spending | None:
        """The spend behind the hash of a `reserve` or `commit` entry, as a certificate names it; None if there is none."""
        with self._reading() as tables:
            entered = tables.by_hash(entry)
            if entered is None or entered.kind not in ("reserve", "commit"):
                return None
            token = entered.token if entered.kind == "reserve" else str(entered.payload["reservation"])
            return next(iter(tables.spendings(token=token)), None)


def _allowed(tables: Tables, dataset: str, analyst: str) -> Fraction:
    """The most δ that the analyst, or everybody together, was ever allowed: a limit that is lowered after answers limits none of
    them. A cap counts from before the first question on; otherwise everybody may spend the sum of the grants."""
    most: dict[str, Fraction] = {}
    first, capped = tables.first_reserve(dataset), False
    for entry in tables.entries(dataset, "grant"):
        whom = entry.analyst or EVERYBODY
        delta = LossAmount.from_mapping(entry.payload["loss"]).delta or Fraction(0)
        most[whom] = max(delta, most.get(whom, delta))
        capped = capped or (whom == EVERYBODY and (first is None or entry.sequence < first.sequence))
    if analyst != EVERYBODY:
        return most.get(analyst, Fraction(0))
    together = sum((delta for whom, delta in most.items() if whom != EVERYBODY), Fraction(0))
    return min(together, most[EVERYBODY]) if capped else together


def _note(entry: str, digest: str, part: str | None) -> PlainDict:
    return {"shown": {"entry": entry, "sha256": digest, **({} if part is None else {"part": part})}}


def _shown(entry: str, digest: str, part: str | None) -> str:
    """The token under which it is noted that a table was shown."""
    return f"shown-{entry}-{digest}" + ("" if part is None else f"-{part}")


def _known(spend: Spend | None) -> Spend:
    if spend is None:
        raise LedgerError("this reservation is not in the ledger")
    return spend


def _answer(tables: Tables, spend: Spend | None) -> StoredAnswer | None:
    if spend is None or spend.closed_by is None:
        return None
    entry = tables.by_sequence(spend.closed_by)
    if entry is None or entry.kind != "commit":
        raise LedgerError("a stored answer is missing from the chain: the ledger was edited or damaged. Run verify.")
    return StoredAnswer(entry.payload["answer"], entry.hash, entry.time)
