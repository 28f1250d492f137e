"""A person's answers to the questions of the checklist that no program can answer.

An answer is yes or no, with a note where there is more to say; questions are known by their id. Cards are
for everybody, so a note is too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.core.errors import RecipeError, all_at_once, as_name
from sfumato.report.checklist import QUESTIONS
from sfumato.report.content import Answer

_LONGEST_NOTE = 500


def answers_of(given: Mapping[str, Any]) -> dict[str, Answer]:
    """The answers by question: `true`, `false`, or `{given = true, note = "until 2030"}`; all faults at once."""
    all_at_once(RecipeError, "answers", answer_faults(given))
    return {question: _answer(entry) for question, entry in given.items()}


def answer_faults(given: Mapping[str, Any]) -> list[str]:
    """What is wrong with the answers."""
    unknown = [as_name(question) for question in given if question not in QUESTIONS]
    faults = []
    if unknown:
        faults.append(f"the checklist does not ask {', '.join(unknown)}; it asks {', '.join(QUESTIONS)}")
    return faults + [
        f'{question}: answer with true or false, or with {{ given = true, note = "…" }} '
        f"(a note has at most {_LONGEST_NOTE} characters)"
        for question, entry in given.items()
        if question in QUESTIONS and not _is_answer(entry)
    ]


def _is_answer(entry: Any) -> bool:
    if isinstance(entry, Answer):
        entry = {"given": entry.given, "note": entry.note}
    if not isinstance(entry, Mapping):
        return isinstance(entry, bool)
    note = entry.get("note", "")
    return (
        not set(entry) - {"given", "note"}
        and isinstance(entry.get("given"), bool)
        and isinstance(note, str)
        and len(note) <= _LONGEST_NOTE
    )


def _answer(entry: Any) -> Answer:
    if isinstance(entry, Answer):
        return entry
    return Answer(entry) if isinstance(entry, bool) else Answer(entry["given"], entry.get("note", ""))
