"""Several statements of one command as a batch: described, explained, or answered under one charge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.cli.ledger import ledger_name
from sfumato.cli.output import answer
from sfumato.core.plain_data import PlainDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sfumato.dp.session import Session

    Keys = Mapping[str, Sequence[object]]

_FREE = "nothing was asked and nothing was spent"


def ask_batch(
    session: Session,
    questions: list[str],
    options: PlainDict,
    confidence: float,
    free: tuple[bool, bool],
    ledger: str,
    json: bool,
) -> None:
    """Describe or explain the batch, as `free` says, or answer it."""
    describe, explain = free
    if describe:
        _describe(session, questions, options["keys"], json)
    elif explain:
        cost = session.batch(questions, confidence=confidence, **options)
        answer(cost.to_mapping(), [*str(cost).split("\n"), "", _FREE], json)
    else:
        _answer(session, questions, options, confidence, ledger, json)


def _describe(session: Session, questions: list[str], keys: Keys | None, json: bool) -> None:
    described, composition = session.describe_batch(questions, keys=keys)
    lines = []
    for number, each in enumerate(described, 1):
        lines += [f"question {number}: {questions[number - 1]}", *(f"  {line}" for line in str(each).split("\n")), ""]
    facts = {"questions": [each.to_mapping() for each in described], "composition": composition}
    answer(facts, [*lines, composition, "", _FREE], json)


def _answer(session: Session, questions: list[str], options: PlainDict, confidence: float, ledger: str, json: bool) -> None:
    from sfumato.report.answer_words import amount, answer_facts, answer_text

    answered = session.sql_batch(questions, **options)
    left = session.remaining()
    charged = None if answered.loss is None else amount(answered.loss)
    answers = [answer_facts(each, confidence) for each in answered]
    notices = list(dict.fromkeys(notice for each in answered for notice in each.not_covered))
    facts = {
        "answers": answers,
        "loss": charged.to_mapping() if charged is not None and not isinstance(charged, str) else charged,
        "composition": answered.composition,
        "entry": answered.entry,
        "left": None if left is None else left.to_mapping(),
        "ledger": ledger_name(ledger),
        "not_covered": notices,
    }
    lines: list[str] = []
    for number, each in enumerate(answered, 1):
        again = "; measured before, at no cost" if each.repeated else ""
        lines += [f"question {number}{again}: {questions[number - 1]}", *answer_text(each, confidence), ""]
    entry = f" (ledger entry {answered.entry[:16]}…)" if answered.entry else ""
    lines.append(f"cost      {charged} for all together{entry}" if charged is not None else "cost      nothing")
    lines += [f"          {answered.composition}", *([] if left is None else [f"left      {left}"])]
    lines += [f"notice    {each}" for each in notices]
    if not all(each["private"] for each in answers):
        lines.append("notice    a demonstration: the noise was seeded, so nobody is protected")
    answer(facts, lines, json)
