"""The questions of a batch answered together: one reservation for all that has to be measured, one commit with all answers.

What was measured before costs nothing and is left out of the charge; what two questions share is measured once, and rows
are read together where that is possible (`one_pass`). Whatever can be refused is refused before the reservation, so that a
batch is charged and answered as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sfumato.core.declared import parameters
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.dp.book import drawn
from sfumato.dp.sql.asking.answer import AnswerTable, QueryAnswer
from sfumato.dp.sql.asking.batch import BatchAnswer, Parts
from sfumato.dp.sql.asking.identity import Identity, digest, identify, result_digest
from sfumato.dp.sql.asking.once import BATCH, BATCH_FORMAT, Asker
from sfumato.dp.sql.measuring.noise import Price
from sfumato.dp.sql.measuring.one_pass import one_pass
from sfumato.dp.sql.question import Question
from sfumato.ledger.accounts import Charge, StoredAnswer


def answer_batch(asker: Asker, asked: Sequence[tuple[Question, Price]], parts: Parts) -> BatchAnswer:
    """All answers, those that are new under one charge; `parts` says which questions have no unit in common."""
    loss: LossGuarantee | None
    identities = [identify(*each, asker.version, asker.seed) for each in asked]
    answers: dict[int, QueryAnswer] = {}
    for place, (identity, each) in enumerate(zip(identities, asked, strict=True)):
        earlier = asker.earlier(identity, *each)
        if earlier is not None:
            answers[place] = earlier
    new = [place for place in range(len(asked)) if place not in answers]
    first = {identities[place].question: place for place in reversed(new)}
    measured = [place for place in new if first[identities[place].question] == place]
    sentence = parts.among(measured).sentence if measured else "Everything was measured before: nothing is charged"
    if not measured:
        return BatchAnswer(_in_order(answers), None, sentence, None)
    if len(measured) == 1:
        only = answers[measured[0]] = asker.answer(*asked[measured[0]])
        loss, entry = (None if only.repeated else only.loss), only.entry
    else:
        loss = parts.among(measured).loss([asked[place][1].loss for place in measured])
        stored, tables = _charged(asker, [(identities[place], *asked[place]) for place in measured], Charge.of(loss))
        kept = {part["question"]: replace(stored, value=part["answer"], part=part["sha256"]) for part in stored.value["parts"]}
        for place in measured:
            name, (question, price) = identities[place].question, asked[place]
            if tables is None:  # somebody else asked the same at the same time and was faster
                answers[place] = asker.surely(kept[name], identities[place], question, price)
            else:
                answers[place] = asker.answered(question, price, tables[name], kept[name], repeated=False)
        loss, entry = (None if tables is None else loss), stored.entry or None
    for place in new:
        if place not in answers:  # the same measurements as another question of the batch, which are stored now
            answers[place] = asker.answer(*asked[place])
    return BatchAnswer(_in_order(answers), loss, sentence, entry)


def _charged(
    asker: Asker, asked: Sequence[tuple[Identity, Question, Price]], charge: Charge
) -> tuple[StoredAnswer, dict[str, AnswerTable] | None]:
    """What is stored of the batch, with the tables where this call measured them; None where somebody else was faster."""
    name = f"{BATCH}:{digest(sorted(identity.question for identity, _, _ in asked))}"
    reservation = asker.book.reserve(asker.dataset, asker.analyst, charge, name)
    if reservation.answer is not None:
        return reservation.answer, None
    tables, parts = {}, []
    with drawn(asker.book, reservation), one_pass([(question, price) for _, question, price in asked]) as runner:
        for identity, question, price in asked:
            tables[identity.question], kept = asker.measured(identity, question, price, runner)
            parts.append(
                {
                    "question": identity.question,
                    "loss": {"name": price.loss.name, **parameters(price.loss)},
                    "sha256": result_digest(tables[identity.question].table()),
                    "answer": kept,
                }
            )
    value = {"format": BATCH_FORMAT, "parts": parts}
    stored = asker.book.commit(reservation, value)
    return stored, tables if stored.value == value else None


def _in_order(answers: dict[int, QueryAnswer]) -> tuple[QueryAnswer, ...]:
    return tuple(answers[place] for place in sorted(answers))
