"""What a private answer or artefact would cost and hold: printed in place of a draft, which would be free noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.ledger import ledger_name
from sfumato.cli.output import answer
from sfumato.core.errors import ParameterError
from sfumato.core.plain_data import PlainDict

if TYPE_CHECKING:
    from sfumato.dp.releasing import ArtefactCost
    from sfumato.dp.session import Session
    from sfumato.dp.sql.asking.description import QueryDescription
    from sfumato.dp.sql.asking.explanation import Explanation

Draft = Annotated[bool, typer.Option("--draft", hidden=True)]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print price, bounds and what would be released; draw, charge and enter nothing.")
]
_FREE = "nothing was drawn, charged or entered"


def refuse_draft(draft: bool) -> None:
    """There are drafts of tables with class guarantees and of masks alone."""
    if draft:
        raise ParameterError(
            "there is no draft of a private answer or artefact: noise that is drawn to be looked at would be free noise. "
            "--dry-run prints the price, the bounds and what would be released, and draws nothing"
        )


def print_cost_of_artefact(cost: ArtefactCost, session: Session, ledger: str, json: bool) -> None:
    """The cost of an artefact with its columns, and what is left of the budget."""
    facts, lines = _left(session, ledger)
    answer({**cost.to_mapping(), **facts}, [*str(cost).split("\n"), *lines], json)


def print_cost_of_answer(cost: Explanation, columns: QueryDescription, session: Session, ledger: str, json: bool) -> None:
    """The cost of an answer and its columns, and what is left of the budget."""
    facts, lines = _left(session, ledger)
    shown = [*str(cost).split("\n"), "would release:", *_indented(columns)]
    answer({**cost.to_mapping(), "answer": columns.to_mapping(), **facts}, [*shown, *lines], json)


def print_cost_of_batch(
    session: Session, questions: Sequence[str], options: PlainDict, confidence: float, ledger: str, json: bool
) -> None:
    """The cost of several questions under one charge, and the columns of their answers."""
    cost = session.batch(questions, confidence=confidence, **options)
    described, _ = session.describe_batch(questions, keys=options["keys"])
    facts, lines = _left(session, ledger)
    shown = [*str(cost).split("\n"), ""]
    for number, columns in enumerate(described, 1):
        shown += [f"question {number} would release:", *_indented(columns)]
    answer({**cost.to_mapping(), "answers": [each.to_mapping() for each in described], **facts}, [*shown, *lines], json)


def _indented(columns: QueryDescription) -> list[str]:
    return [f"  {line}" for line in str(columns).split("\n")]


def _left(session: Session, ledger: str) -> tuple[PlainDict, list[str]]:
    """What is left of the analyst's budget in the ledger, which is only read."""
    from sfumato.workflow.publishing.publish import opened_to_read

    with opened_to_read(ledger) as book:
        left = None if book is None else book.remaining(session.dataset, session.analyst)
    named = ledger_name(ledger)
    line = f"left      {left}" if left is not None else f"left      nothing: '{session.analyst}' has no grant in {named}"
    facts = {"dry_run": True, "left": None if left is None else left.to_mapping(), "ledger": named}
    return facts, [line, "", _FREE]
