"""Where a session's losses are entered: the owner's ledger, or, without one, an account that lives as long as the session.

Both answer the same calls. An account without a ledger protects nobody from a second session: certificates say
"not entered".
"""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

from sfumato.core.errors import BudgetRefused, Cancelled, ParameterError, SfumatoWarning, SourceError, TimedOut, raise_alone
from sfumato.core.guarantees.loss import RECORD, LossGuarantee
from sfumato.ledger.accounts import Account, Charge, Charges, Reservation, StoredAnswer, agreed
from sfumato.ledger.amounts import LossAmount
from sfumato.ledger.ledger import Ledger


class OtherLedger(SfumatoWarning):
    """The schema names another ledger than the one that is charged."""


class Book(Protocol):
    """What a session needs: reserve before noise is drawn, commit with the answer.

    A book is about one unit and one neighbour relation: what the first spend or the owner said.
    """

    def reserve(self, dataset: str, analyst: str, charge: Charge, question_digest: str) -> Reservation:
        """Set budget aside, or refuse."""

    def draw(self, reservation: Reservation) -> None:
        """From here on nothing is given back."""

    def commit(self, reservation: Reservation, answer: object) -> StoredAnswer:
        """Store the answer."""

    def answer(self, dataset: str, analyst: str, question_digest: str) -> StoredAnswer | None:
        """The stored answer to a question, which costs nothing."""

    def stored(self, dataset: str, analyst: str, beginning: str) -> list[StoredAnswer]:
        """The stored answers to questions whose digest begins so, the first one first."""

    def show(self, dataset: str, entry: str, digest: str, part: str | None = None) -> None:
        """Note which table was made of a stored answer, or of a part of it, by its digest."""

    def remaining(self, dataset: str, analyst: str) -> LossAmount | None:
        """What is left."""

    def charges(self, dataset: str, analyst: str) -> Charges:
        """All that was charged and not given back."""


@contextmanager
def drawn(book: Book, reservation: Reservation) -> Iterator[None]:
    """From here on the budget is spent, whatever happens: giving it back after a failure would reveal something about the data.

    For the same reason one sentence stands for whatever goes wrong inside.
    """
    book.draw(reservation)
    try:
        yield
    except Cancelled:
        raise
    except TimedOut as late:
        raise_alone(
            TimedOut(
                f"the engine did not answer within {late.seconds:g} s, and the statement was stopped there. The question stays "
                "charged, because how long an answer takes may depend on the data. Allow more time with timeout= (--timeout), "
                "or ask the owner to run the same question on a copy of the table",
                late.seconds,
            )
        )
    except Exception:
        raise_alone(
            SourceError(
                "the engine could not answer; the question stays charged, because giving it back could tell something about the "
                "data. Ask the owner to run the same question on a copy of the table"
            )
        )


class OwnBook:
    """An account in this process, for owners who keep no ledger."""

    def __init__(self, dataset: str, analyst: str, granted: LossAmount) -> None:
        self._lock = threading.Lock()
        self._account = Account(dataset, analyst, granted, LossAmount.nothing(granted.kind))
        self._answers: dict[str, StoredAnswer] = {}
        self._charges: tuple[LossAmount, ...] = ()

    def reserve(self, dataset: str, analyst: str, charge: Charge, question_digest: str) -> Reservation:
        """Set budget aside, or refuse."""
        with self._lock:
            if question_digest in self._answers:
                return Reservation("", dataset, analyst, question_digest, charge, self._answers[question_digest])
            protected = agreed(self._account.protected, charge.protected, dataset)
            self._account = replace(self._account.charged(charge.loss), protected=protected)
            self._charges += (charge.loss,)
        return Reservation("own", dataset, analyst, question_digest, charge)

    def draw(self, reservation: Reservation) -> None:
        """Nothing to do: reservations here are never given back."""

    def commit(self, reservation: Reservation, answer: object) -> StoredAnswer:
        """Store the answer; the first one to a question stays."""
        with self._lock:
            # In place of a time the place among all answers, as text that sorts.
            return self._answers.setdefault(reservation.question, StoredAnswer(answer, "", f"{len(self._answers):012}"))

    def answer(self, dataset: str, analyst: str, question_digest: str) -> StoredAnswer | None:
        """The stored answer to a question."""
        return self._answers.get(question_digest)

    def stored(self, dataset: str, analyst: str, beginning: str) -> list[StoredAnswer]:
        """The stored answers to questions whose digest begins so, the first one first."""
        with self._lock:
            return [answer for question, answer in self._answers.items() if question.startswith(beginning)]

    def show(self, dataset: str, entry: str, digest: str, part: str | None = None) -> None:
        """Nothing to do: no certificate rests on an account of this process."""

    def remaining(self, dataset: str, analyst: str) -> LossAmount | None:
        """What is left."""
        return self._account.remaining

    def charges(self, dataset: str, analyst: str) -> Charges:
        """All that was charged."""
        return Charges(self._charges, self._account.granted.delta or Fraction(0), self._account.protected)


class LoweredBook:
    """A ledger under a budget of the session's own, which may lower a grant and never raise it."""

    def __init__(self, book: Book, budget: LossAmount) -> None:
        self._book = book
        self._lock = threading.Lock()
        self._account = Account("session", "session", budget, LossAmount.nothing(budget.kind))

    def reserve(self, dataset: str, analyst: str, charge: Charge, question_digest: str) -> Reservation:
        """Set budget aside in the session and in the ledger, or refuse."""
        stored = self._book.answer(dataset, analyst, question_digest)
        if stored is not None:
            return Reservation("", dataset, analyst, question_digest, charge, stored)
        with self._lock:
            charged = self._account.charged(charge.loss)
            reservation = self._book.reserve(dataset, analyst, charge, question_digest)
            if reservation.answer is None:
                self._account = charged
        return reservation

    def draw(self, reservation: Reservation) -> None:
        """From here on nothing is given back."""
        self._book.draw(reservation)

    def commit(self, reservation: Reservation, answer: object) -> StoredAnswer:
        """Store the answer."""
        return self._book.commit(reservation, answer)

    def answer(self, dataset: str, analyst: str, question_digest: str) -> StoredAnswer | None:
        """The stored answer to a question, which costs nothing."""
        return self._book.answer(dataset, analyst, question_digest)

    def stored(self, dataset: str, analyst: str, beginning: str) -> list[StoredAnswer]:
        """The stored answers to questions whose digest begins so, the first one first."""
        return self._book.stored(dataset, analyst, beginning)

    def show(self, dataset: str, entry: str, digest: str, part: str | None = None) -> None:
        """Note which table was made of a stored answer, or of a part of it, by its digest."""
        self._book.show(dataset, entry, digest, part)

    def remaining(self, dataset: str, analyst: str) -> LossAmount | None:
        """What is left, in the ledger and in the session."""
        granted = self._book.remaining(dataset, analyst)
        own = self._account.remaining
        if granted is None or granted.kind != own.kind:
            return granted
        return own if own.within(granted) else granted

    def charges(self, dataset: str, analyst: str) -> Charges:
        """All that the analyst was charged in the ledger, in this session and others."""
        return self._book.charges(dataset, analyst)


def other_ledgers(named: Iterable[str | None], ledger: Ledger | None) -> list[str]:
    """What to tell the owner where schemas name a ledger and another one, or none, is charged."""
    used = None if ledger is None else ledger.identity
    what = "keeps no ledger" if used is None else f"charges another one, {used}"
    return [
        f"the schema says that the account is kept in the ledger {each}, and this session {what}: what is spent in one is not "
        "counted in the other. Open the ledger that the schema names, or change the line ledger = … in the schema."
        for each in sorted({name for name in named if name is not None} - {used})
    ]


def open_book(
    ledger: Ledger | str | os.PathLike[str] | None,
    dataset: str,
    analyst: str,
    budget: LossGuarantee | None,
    *,
    units: Collection[str] = (),
) -> tuple[Book, Ledger | None]:
    """The book of a session, and the ledger behind it; `units` are those that the session protects.

    Where nobody was granted anything on the dataset yet, the caller is its owner and the budget becomes the first grant.
    """
    if budget is not None and not isinstance(budget, LossGuarantee):
        raise ParameterError("budget is a guarantee, for instance budget=sf.PureDP(1.0)")
    if budget is not None and units and budget.unit not in {RECORD, *units}:
        raise ParameterError(
            f"the budget is stated for one {budget.unit}, and the session protects one {' or one '.join(sorted(units))}. "
            f"Name the column with unit='{budget.unit}', or leave the unit of the budget to the session"
        )
    amount = None if budget is None else LossAmount.of(budget)
    if ledger is None:
        if amount is None:
            raise ParameterError("a session needs a ledger, or at least a budget of its own: budget=sf.PureDP(1.0)")
        return OwnBook(dataset, analyst, amount), None
    opened = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    if amount is None:
        return opened, opened
    if not opened.first_grant(dataset, analyst, amount) and opened.remaining(dataset, analyst) is None:
        raise BudgetRefused(
            f"no budget was granted to '{analyst}' on dataset '{dataset}', and a session cannot grant itself one. "
            f"The owner grants it with: sfumato ledger grant {shlex.quote(dataset)} {shlex.quote(analyst)} --epsilon 1"
        )
    return LoweredBook(opened, amount), opened
