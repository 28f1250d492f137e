"""How a private result is said to have been made, and the margins beside it, compared with its claim and against the ledger that
paid for it.

A known algorithm costs what its parameters say, and counts of each unit what they say. The ledger keeps it with its parameters,
and of a question what was measured; the question in words and its margins only where it kept the whole answer, or what was
published was entered. The rest is the maker's word, and the verdict says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core import registry
from sfumato.core.certificate import FIRST_FORMAT, Certificate, plain
from sfumato.core.declared import build, parameters, require
from sfumato.core.errors import SfumatoError
from sfumato.core.guarantees.loss import RECORD
from sfumato.data.readers.read_result import UNREADABLE
from sfumato.workflow.verifying.process_claims import loss_of
from sfumato.workflow.verifying.stated import methods as stated_methods
from sfumato.workflow.verifying.verification import Finding

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.ledger.chain import Entry
    from sfumato.ledger.ledger import Ledger

#: What a session calls itself where a question was answered.
_ANSWERS = "Session.sql"
_OF_AN_ANSWER = frozenset({"query", "bounds"})
#: How the entry of a private result names the digest of what charges keep too; entries of earlier versions have none.
RESULT_DIGEST = "result_sha256"
_CHECK = "how it was made"
_NO_PARAMETERS = "the method that the certificate names cannot have the parameters that it states"


def check_stated_result(
    certificate: Certificate, result: object, errors: pa.Table | None, ledger: Ledger | str | Path | None
) -> Finding | None:
    """Whether the method says what the claim says, and what the ledger says of method and margins; None where there is nothing
    to say.
    """
    is_known = _known(certificate.method)
    wrong = _contradicted(certificate) if is_known else None
    if wrong:
        return _wrong(wrong)
    if ledger is None or not certificate.private:
        return None if is_known else _unknown()
    from sfumato.ledger.ledger import Ledger as Book

    entry = str(certificate.claims[0].ledger_entry)
    with nullcontext(ledger) if isinstance(ledger, Book) else Book.open(ledger, read_only=True) as book:
        charge, published = book.entry(entry), _published(book, certificate.dataset, entry, result)
        unsaid = _other_notices(book, certificate)
    named_here = [each for each in published if each.hash == certificate.ledger]
    if certificate.ledger != entry and not named_here:
        return _wrong("the certificate names a ledger entry that is not the one of this result")
    if unsaid:
        # the first versions did not say it
        return Finding(_CHECK, None, unsaid, caveat=unsaid) if certificate.format == FIRST_FORMAT else _wrong(unsaid)
    answer = charge.payload.get("answer") if charge is not None else None
    kept = _part(answer, result) if isinstance(answer, Mapping) else {}
    # A certificate that names its charge alone does not escape what was entered when its result was published.
    entered = [each.payload for each in named_here or published] or [{}]
    compared = [_compared(certificate, errors, kept, each) for each in entered]
    return next((each for each in compared if each.passed is not False), compared[0])


def _part(answer: Mapping[str, Any], result: Any) -> Mapping[str, Any]:
    """What is kept of this very result, where one charge paid for several answers."""
    from sfumato.dp.sql.asking.identity import result_digest
    from sfumato.dp.sql.asking.once import BATCH_FORMAT

    if answer.get("format") != BATCH_FORMAT:
        return answer
    own = [part["answer"] for part in answer["parts"] if part["sha256"] == result_digest(result)]
    return own[0] if own else {}


def _other_notices(book: Ledger, certificate: Certificate) -> str:
    """Whether other charges are said not to be covered than the ledger says, when the result was made and when it was published:
    empty where not.
    """
    from sfumato.ledger.unit_changes import NOT_COVERED

    charge = book.charge(str(certificate.claims[0].ledger_entry))
    states = [] if charge is None else book.not_covered_since(charge.reserved_by)
    in_words_of_now = {each.formerly: str(each) for state in states for each in state}
    said = {in_words_of_now.get(notice, notice) for notice in certificate.notices if notice.startswith(NOT_COVERED)}
    texts = [{str(each) for each in state} for state in states]
    if not texts or any(
        said == at_result | at_publication for place, at_result in enumerate(texts) for at_publication in texts[place:]
    ):
        return ""
    return "the ledger knows of other charges that the claim does not cover than the notices of the certificate do"


def _published(book: Ledger, dataset: str, charge: str, result: Any) -> list[Entry]:
    """The entries of what was published of a charge, without those of other results that were made of the same measurements;
    entries of earlier versions do not say of which result they are.
    """
    from sfumato.dp.sql.asking.identity import result_digest

    here = result_digest(result)
    charged = [each for each in book.releases(dataset) if each.payload.get("charged") == charge]
    return [each for each in charged if each.payload.get(RESULT_DIGEST, here) == here]


def _compared(
    certificate: Certificate, errors: pa.Table | None, answer: Mapping[str, Any], entered: Mapping[str, Any]
) -> Finding:
    """`answer` is what the charge keeps, `entered` what was noted when the result was published, empty where nothing was."""
    from sfumato.dp.sql.asking.identity import table_digest

    method, entered_method, open_parts = plain(dict(certificate.method)), entered.get("method"), []
    if entered_method not in (None, method):
        return _wrong("the ledger entered this release with another method or question than the certificate names")
    if "artefact" in answer:
        if answer["artefact"] != {name: value for name, value in method.items() if name != "contribution"}:
            return _wrong("the ledger was charged for another method than the one that the certificate names")
        if entered_method is None and "contribution" in method and not _known(method):
            open_parts.append("what is counted of each unit")
    elif entered_method is None:
        open_parts.append("the question")
    kept = entered.get("errors") or _stored_errors(answer)
    if errors is None and "errors" in entered:
        return _wrong("the ledger entered margins beside this answer, and the files have none")
    if errors is None and kept is not None:
        said = "the ledger keeps margins of this answer, and the files have none"
        return Finding(_CHECK, None, said, caveat=said)
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


def check_stated_rows(certificate: Certificate) -> Finding | None:
    """Whether the method that made rows is known at all."""
    return None if stated_methods.is_known(certificate.method) else _unknown()


def _known(method: Mapping[str, Any]) -> bool:
    """Whether a method of that name has the parameters that are told."""
    name = method.get("name")
    if name != _ANSWERS and not registry.has("algorithm", name):
        return False
    own = _OF_AN_ANSWER if name == _ANSWERS else {each.name for each in dataclasses.fields(registry.find("algorithm", str(name)))}
    return set(registry.in_names_of_now("algorithm", method)) <= {"name", "contribution", *own}


def _unknown() -> Finding:
    said = "it was made by a method that this version does not know"
    return Finding(_CHECK, None, said, caveat=said)


def _contradicted(certificate: Certificate) -> str | None:
    """What a known method says otherwise than the claim, in words; None where they agree."""
    method, claims = plain(dict(certificate.method)), certificate.claims
    if len(claims) != 1:
        return "a result of this method makes one claim"
    claim = claims[0]
    stated = {name: value for name, value in method.items() if name not in ("name", "contribution")}
    try:
        if method["name"] == _ANSWERS:
            counted = _counted_of_a_question(stated, claim.unit)
        else:
            stated = registry.in_names_of_now("algorithm", {**stated, "name": method["name"]})
            algorithm = registry.make("algorithm", stated)
            del stated["name"]
            meant = plain(algorithm.parameters())
            if any(meant.get(name) != value for name, value in stated.items()):
                return _NO_PARAMETERS
            if algorithm.loss().about(unit=claim.unit) != loss_of(claim):
                return "the method that the certificate names costs another loss than the one that it claims"
            unit = None if claim.unit == RECORD else claim.unit
            # certificates of earlier versions do not say which values are left out, nor what counts as missing
            said = algorithm.counted(unit)
            counted = {said, None if unit is None else algorithm.contribution(unit)}
            counted.add(UNREADABLE if said is None else f"{said}. {UNREADABLE}")
    except (SfumatoError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, MemoryError, RecursionError):
        return _NO_PARAMETERS
    not_told = "contribution" not in method and (certificate.format == FIRST_FORMAT or claim.ledger_entry is None)
    if not not_told and method.get("contribution") not in counted:
        return "what the certificate says is counted of each unit is not what its method counts"
    return None


def _counted_of_a_question(stated: Mapping[str, Any], unit: str) -> set[str | None]:
    """What may be said to be counted of each unit, nothing where no bounds are told; raises where a question or its bounds cannot
    be read.
    """
    from sfumato.dp.sql.asking.explanation import contributions
    from sfumato.dp.sql.measuring.noise import Bounds
    from sfumato.dp.sql.parse import parse

    if "query" in stated:
        parse(stated["query"])
    if "bounds" not in stated:
        return {None}
    bounds = build(Bounds, stated["bounds"])
    require(plain(parameters(bounds)) == stated["bounds"], "the bounds are not written as releases write them")
    return set(contributions(unit, bounds))


def _stored_errors(answer: Mapping[str, Any]) -> str | None:
    """The digest of the errors of an answer that the ledger keeps as a whole."""
    from sfumato.dp.sql.asking.answer import AnswerTable
    from sfumato.dp.sql.asking.identity import table_digest

    try:
        return table_digest(AnswerTable.from_mapping(answer).error_table())
    except (SfumatoError, KeyError, TypeError, ValueError, AttributeError):
        return None
