"""A question answered from what was measured before, or measured, charged and kept.

Whoever asks for measurements that the ledger holds, with the same noise or more, is shown those, at no cost and with
their own margins; naming, ordering and computing with them is post-processing of what was released.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.core.errors import LedgerError
from sfumato.core.randomness import Randomness
from sfumato.dp.releasing import constant_failure
from sfumato.dp.sql.answer import AnswerTable, put_together
from sfumato.dp.sql.identity import Identity, identify, result_digest
from sfumato.dp.sql.measuring import measure
from sfumato.dp.sql.noise import Price
from sfumato.dp.sql.question import Question
from sfumato.dp.sql.stored_measurements import restored, to_mapping
from sfumato.ledger.accounts import Answer, Charge

if TYPE_CHECKING:
    from sfumato.dp.book import Book


@dataclass(frozen=True)
class Answered:
    """An answer, the price at which its measurements were made, and the entry that they were charged with."""

    table: AnswerTable = field(repr=False)
    price: Price
    entry: str | None
    repeated: bool


@dataclass(frozen=True)
class Asker:
    """Who asks whose data through which book: an analyst, a dataset in one version, and the source of noise."""

    book: Book
    dataset: str
    analyst: str
    version: str
    seed: int | str | None
    source: Randomness

    def answer(self, question: Question, priced: Price) -> Answered:
        """What was measured before where that suffices; otherwise reserve, draw, measure, commit."""
        identity = identify(question, priced, self.version, self.seed)
        for stored in self.book.stored(self.dataset, self.analyst, f"{identity.context}:"):
            known = self._from(stored, identity, question, priced)
            if known is not None:
                return known
        reservation = self.book.reserve(self.dataset, self.analyst, Charge.of(priced.loss), identity.question)
        if reservation.answer is not None:
            return self._surely(reservation.answer, identity, question, priced)
        # From here on the budget is spent, whatever happens: giving it back after a failure would tell about the data.
        self.book.draw(reservation)
        with constant_failure():
            measured = measure(question, priced, self.source)
            table = put_together(question, priced, measured)
            if identity.as_shown:
                kept = table.to_mapping()
            else:
                kept = to_mapping(identity, question, priced, measured, result_digest(table.table()))
        stored = self.book.commit(reservation, kept)
        if stored.value == kept:
            return Answered(table, priced, stored.entry or None, repeated=False)
        # Somebody else asked the same at the same time and was faster: a question has one answer.
        return self._surely(stored, identity, question, priced)

    def _from(self, stored: Answer, identity: Identity, question: Question, priced: Price) -> Answered | None:
        entry = stored.entry or None
        if identity.as_shown:
            return Answered(AnswerTable.from_mapping(stored.value), priced, entry, repeated=True)
        known = restored(stored.value, identity, question, priced)
        if known is None:
            return None
        price, measured = known
        table = put_together(question, price, measured)
        shown = result_digest(table.table())
        if shown != stored.value.get("sha256"):
            self.book.show(self.dataset, stored.entry, shown)
        return Answered(table, price, entry, repeated=True)

    def _surely(self, stored: Answer, identity: Identity, question: Question, priced: Price) -> Answered:
        known = self._from(stored, identity, question, priced)
        if known is None:
            raise LedgerError("the stored answer to this question is not one: the ledger was edited or damaged. Run verify.")
        return known
