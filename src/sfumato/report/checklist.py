"""The checklist of a release: the seven principles of privacy by design, answered from the certificate.

What a program can see it answers; what only a person can know it asks, and an open question is shown as open.
Cavoukian, "Privacy by design: the 7 foundational principles", 2009.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.core.certificate import Certificate
from sfumato.core.errors import RecipeError, all_at_once, as_name
from sfumato.core.plain_data import Plain
from sfumato.report.content import Answer, CardContent

State = Literal["passed", "attention", "not applicable"]

#: Questions that only a person can answer, by id; answers are given in `CardContent.answers`.
QUESTIONS = {
    "roles": "Was each column given its role by somebody who knows the data?",
    "retention": "Is there a date on which originals, key files and intermediate files are destroyed?",
    "informed": "Do the people in the data know about this use, and whom to ask?",
    "objection": "Can a person's objection, correction or erasure reach the next release?",
    "responsible": ("Is somebody named as responsible, and is access to the originals limited to those who need it?"),
    "custody": "Are printouts, screens and copies on laptops covered by a rule that people know?",
}


@dataclass(frozen=True)
class Item:
    """One principle: its state and why."""

    principle: str
    state: State
    because: str


def checklist(content: CardContent) -> tuple[Item, ...]:
    """The seven principles and the organisation around them, each with its state."""
    certificate = content.certificate
    return (
        _prevent(content, certificate),
        _default(certificate),
        _design(content, certificate),
        _both(content),
        _life_cycle(content, certificate),
        _open(certificate),
        _asked(content, "7. Centred on the person", ("informed", "objection")),
        _asked(content, "Organisation", ("responsible", "custody")),
    )


def _prevent(content: CardContent, certificate: Certificate) -> Item:
    faults = [claim.guarantee for claim in certificate.claims if not claim.holds]
    attacks = len(certificate.attacks) + len(content.attacks) + len(content.owner_attacks)
    worries = []
    if not certificate.claims:
        worries.append("nothing is promised")
    if faults:
        worries.append(f"not kept: {', '.join(faults)}")
    if _rests_on_process(certificate):
        fine = "the promise rests on the noise and its argument, and not on which attacks were tried"
        return _item("1. Prevent, do not repair", worries, fine)
    if not attacks:
        worries.append("no attack was run against the release")
    measured = sum(claim.evidence not in ("process", "output+model") for claim in certificate.claims)
    fine = f"{measured} guarantees measured on the written files, {attacks} attacks run"
    return _item("1. Prevent, do not repair", worries, fine)


def _rests_on_process(certificate: Certificate) -> bool:
    return bool(certificate.claims) and all(claim.evidence == "process" for claim in certificate.claims)


def _default(certificate: Certificate) -> Item:
    columns = certificate.schema.get("columns", {})
    columns = columns if isinstance(columns, dict) else {}
    roles = {name: entry.get("role") for name, entry in columns.items() if isinstance(entry, dict)}
    learnt = sorted(
        str(name)
        for name, entry in columns.items()
        if isinstance(entry, dict) and entry.get("source") == "data" and (entry.get("bounds") or entry.get("domain"))
    )
    worries = []
    if not certificate.private:
        worries.append("the randomness was seeded: a demonstration, not a private release")
    if certificate.schema.get("unlisted") == "plain":
        worries.append("columns that the schema does not describe were published as they are")
    if learnt:
        worries.append(f"bounds or domains were read from the data: {', '.join(learnt)}")
    if _rests_on_process(certificate):
        return _item("2. Private by default", worries, "what leaves carries the noise that the promise rests on")
    if not roles:
        worries.append("the columns and their roles are not described")
    elif "quasi" not in roles.values():
        worries.append("no column is a quasi-identifier")
    marked = [n for n, entry in columns.items() if isinstance(entry, dict) and entry.get("pseudonym")]
    pseudonyms = certificate.transparency.get("pseudonymised_columns")
    followed = sorted({str(n) for n in (*marked, *(pseudonyms if isinstance(pseudonyms, (list, tuple)) else ()))})
    if followed:
        worries.append(f"pseudonyms are published and can be followed: {', '.join(followed)}")
    return _item("2. Private by default", worries, "the schema leaves out identifiers and undescribed columns")


def _design(content: CardContent, certificate: Certificate) -> Item:
    worries = [] if certificate.method.get("name") else ["the method is not named, so it cannot be repeated"]
    worries += _open_questions(content, ("roles",))
    return _item(
        "3. Part of the design",
        worries,
        "method and parameters are stored with the release and can be run again" + _notes(content, ("roles",)),
    )


def _both(content: CardContent) -> Item:
    safe = bool(content.risk or content.owner_risks or content.certificate.claims)
    worries = [] if content.scored else ["usefulness was not measured"]
    worries += [] if safe else ["nothing is promised, and no risk is stated"]
    return _item(
        "4. Full use, not a trade of one for the other",
        worries,
        "the owner says that usefulness was measured; safety was measured or promised",
    )


def _life_cycle(content: CardContent, certificate: Certificate) -> Item:
    worries = []
    if certificate.ledger == "not entered":
        worries.append("the release is not entered in a ledger, so later releases cannot take it into account")
    if not content.signed:
        worries.append("the certificate is not signed")
    worries += _open_questions(content, ("retention",))
    return _item(
        "5. Protection from beginning to end",
        worries,
        "entered in the ledger, signed, with a date of destruction" + _notes(content, ("retention",)),
    )


def _open(certificate: Certificate) -> Item:
    worries = []
    if not certificate.method:
        worries.append("the method is not described")
    if not certificate.versions:
        worries.append("versions are not named")
    if any(claim.evidence == "output+reference" and not claim.reference for claim in certificate.claims):
        worries.append("a guarantee refers to a second file that is not named by its digest")
    fine = "method, parameters, versions and evidence are printed; keys and random draws stay secret"
    return _item("6. Visible and open", worries, fine)


def _asked(content: CardContent, principle: str, questions: Sequence[str]) -> Item:
    return _item(principle, _open_questions(content, questions), "answered by the owner" + _notes(content, questions))


def _notes(content: CardContent, questions: Iterable[str]) -> str:
    """What the owner added to answers with yes."""
    said = [content.answers[question].note for question in questions if question in content.answers]
    return "".join(f"; {note}" for note in said if note)


def _open_questions(content: CardContent, questions: Iterable[str]) -> list[str]:
    still = []
    for question in questions:
        answer = content.answers.get(question)
        if answer is None:
            still.append(f"open: {QUESTIONS[question]}")
        elif not answer.given:
            still.append(f"answered with no: {QUESTIONS[question]}" + (f" ({answer.note})" if answer.note else ""))
    return still


def _item(principle: str, worries: list[str], fine: str) -> Item:
    return Item(principle, "attention" if worries else "passed", "; ".join(worries) if worries else fine)


LONGEST_NOTE = 500


def answers_of(answers: Plain) -> dict[str, Answer]:
    """The answers by question: `true`, `false`, or `{given = true, note = "until 2030"}`; all faults at once."""
    all_at_once(RecipeError, "answers", answer_faults(answers))
    return {question: _answer(entry) for question, entry in answers.items()}


def answer_faults(answers: Plain) -> list[str]:
    """What is wrong with the answers."""
    unknown = [as_name(question) for question in answers if question not in QUESTIONS]
    faults = []
    if unknown:
        faults.append(f"the checklist does not ask {', '.join(unknown)}; it asks {', '.join(QUESTIONS)}")
    return faults + [
        f'{question}: answer with true or false, or with {{ given = true, note = "…" }} '
        f"(a note has at most {LONGEST_NOTE} characters)"
        for question, entry in answers.items()
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
        and len(note) <= LONGEST_NOTE
    )


def _answer(entry: Any) -> Answer:
    if isinstance(entry, Answer):
        return entry
    return Answer(entry) if isinstance(entry, bool) else Answer(entry["given"], entry.get("note", ""))
