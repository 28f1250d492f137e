"""How a private result is said to have been made, and the margins beside it, held against the ledger that paid for it.

The ledger keeps an algorithm with its parameters, and of a question what was measured; the question in words and its margins only
where it kept the whole answer, or what was published was entered. The rest is the maker's word, and the verdict says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core import registry
from sfumato.core.certificate import Certificate, plain
from sfumato.core.errors import SfumatoError
from sfumato.workflow import named, told_methods
from sfumato.workflow.verification import Finding

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.ledger.ledger import Ledger

#: What a session calls itself where a question was answered.
_ANSWERS = "Session.sql"
_OF_AN_ANSWER = frozenset({"query", "bounds"})
_CHECK = "how it was made"


def check_told(certificate: Certificate, errors: pa.Table | None, ledger: Ledger | str | Path | None) -> Finding | None:
    """What the ledger says of method and margins; without a ledger, whether the method is known at all."""
    if ledger is None or not certificate.private:
        return None if _known(certificate.method) else _unknown()
    from sfumato.ledger.ledger import Ledger as Book

    entry = str(certificate.claims[0].ledger_entry)
    with nullcontext(ledger) if isinstance(ledger, Book) else Book.open(ledger, read_only=True) as book:
        found, released = book.entry(entry), book.entry(certificate.ledger)
    entered = released is not None and released.kind == "release" and released.payload.get("charged") == entry
    if not entered and certificate.ledger != entry:
        return _wrong("the certificate names a ledger entry that is not the one of this result")
    answer = found.payload.get("answer") if found is not None else None
    told = released.payload if released is not None and entered else {}
    return _compared(certificate, errors, answer if isinstance(answer, Mapping) else {}, told)


def _compared(
    certificate: Certificate, errors: pa.Table | None, answer: Mapping[str, Any], entered: Mapping[str, Any]
) -> Finding:
    """`answer` is what the charge keeps, `entered` what was noted when the result was published, empty where nothing was."""
    from sfumato.dp.sql.identity import table_digest

    method, told, open_parts = plain(dict(certificate.method)), entered.get("method"), []
    if told not in (None, method):
        return _wrong("the ledger entered this release with another method or question than the certificate names")
    if "artefact" in answer:
        if answer["artefact"] != {name: value for name, value in method.items() if name != "contribution"}:
            return _wrong("the ledger was charged for another method than the one that the certificate names")
        if told is None and not _same_contribution(answer["artefact"], method, certificate.claims[0].unit):
            open_parts.append("what is counted of each unit")
    elif told is None:
        open_parts.append("the question")
    kept = entered.get("errors") or _stored_errors(answer)
    if errors is not None and kept is None:
        open_parts.append("the margins beside the answer")
    elif errors is not None and table_digest(errors) != kept:
        return _wrong("the margins beside the answer are not those that the ledger keeps")
    if not open_parts:
        return Finding(_CHECK, True, "as the ledger keeps it")
    said = " and ".join(open_parts)
    return Finding(
        _CHECK, None, f"the ledger does not keep {said}", caveat=f"{said}: the maker's word, which the ledger does not keep"
    )


def _wrong(text: str) -> Finding:
    return Finding(_CHECK, False, text)


def check_told_of_rows(certificate: Certificate) -> Finding | None:
    """Whether the method that made rows is known at all."""
    return None if told_methods.is_known(certificate.method) else _unknown()


def _known(method: Mapping[str, Any]) -> bool:
    """Whether a method of that name has the parameters that are told."""
    name = method.get("name")
    if name != _ANSWERS and not registry.has("algorithm", name):
        return False
    own = _OF_AN_ANSWER if name == _ANSWERS else {each.name for each in dataclasses.fields(registry.find("algorithm", str(name)))}
    return set(method) <= {"name", "contribution", *own}


def _unknown() -> Finding:
    said = "it was made by a method that this version does not know"
    return Finding(_CHECK, None, said, caveat=said)


def _same_contribution(artefact: Mapping[str, Any], method: Mapping[str, Any], unit: str) -> bool:
    if "contribution" not in method:
        return True
    try:
        return bool(named.algorithm(artefact).contribution(unit) == method["contribution"])
    except (SfumatoError, TypeError, ValueError, ArithmeticError):
        return False


def _stored_errors(answer: Mapping[str, Any]) -> str | None:
    """The digest of the errors of an answer that the ledger keeps as a whole."""
    from sfumato.dp.sql.answer import AnswerTable
    from sfumato.dp.sql.identity import table_digest

    try:
        return table_digest(AnswerTable.from_mapping(answer).error_table())
    except (SfumatoError, KeyError, TypeError, ValueError, AttributeError):
        return None
