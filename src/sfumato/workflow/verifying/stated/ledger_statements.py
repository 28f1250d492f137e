"""What a certificate says about its ledger besides its entry: that a draft has none, and which releases were withdrawn.

A draft without that word is a release without a ledger, and may say no more than one. A withdrawal is the owner's statement: the
ledger shows that it was made, and nobody can verify that it is true.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.certificate import NOT_ENTERED, Certificate
from sfumato.core.errors import LedgerError, VerificationFailed
from sfumato.report.wording import counted
from sfumato.workflow.contents.base import DRAFT, content_kind
from sfumato.workflow.earlier.withdrawn import WITHDRAWN, withdrawn_in_words
from sfumato.workflow.verifying.verification import WITHDRAWAL, Finding

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger

_CHECK = "withdrawn releases"
_UNVERIFIED = "whether it is true, nobody can verify"


def refuse_other_ledger_statements(certificate: Certificate) -> None:
    """Raise where a certificate says about drafts and withdrawals what no release says."""
    entered = certificate.ledger != NOT_ENTERED
    if certificate.draft is not (DRAFT in certificate.notices):
        raise VerificationFailed("the certificate calls itself a draft in one place and not in another")
    if certificate.draft and (entered or not content_kind(certificate).has_drafts):
        raise VerificationFailed("the certificate calls itself a draft, and says what no draft says")
    if not entered and not certificate.draft and (certificate.composition or certificate.withdrawn):
        raise VerificationFailed("the certificate names no entry of a ledger, and says what only a ledger with its entry tells")
    _refuse_other_withdrawals(certificate)


def _refuse_other_withdrawals(certificate: Certificate) -> None:
    stated = certificate.withdrawn
    said = [notice for notice in certificate.notices if notice.startswith(WITHDRAWN)]
    if said != ([withdrawn_in_words(stated)] if stated else []):
        raise VerificationFailed("the certificate and its notices do not name the same withdrawn releases")
    counts = {certificate.ledger, *_named(certificate, "not_available"), *_named(certificate, "not_compared")}
    if len(set(stated)) < len(stated) or set(stated) & counts:
        raise VerificationFailed("the certificate names a release as withdrawn twice, or one that it counts")


def _named(certificate: Certificate, key: str) -> list[str]:
    """The releases that the comparison names: its form was checked before."""
    return [str(each) for each in certificate.composition.get(key, ())]


def check_withdrawals(certificate: Certificate, ledger: Ledger | str | Path | None) -> Finding | None:
    """What the certificate says was withdrawn, beside what its ledger says; None where neither says anything."""
    if ledger is None:
        return Finding(_CHECK, None, withdrawn_in_words(certificate.withdrawn)) if certificate.withdrawn else None
    from sfumato.ledger.ledger import Ledger as Book

    try:
        with nullcontext(ledger) if isinstance(ledger, Book) else Book.open(ledger, read_only=True) as book:
            return _compared(certificate, book)
    except LedgerError as error:
        return Finding(_CHECK, False, f"what the ledger says of them cannot be read: {error}")


def _compared(certificate: Certificate, book: Ledger) -> Finding | None:
    stated, entry = list(certificate.withdrawn), book.entry(certificate.ledger)
    listed = book.withdrawals(certificate.dataset)
    if any(each.release == certificate.ledger for each in listed):
        return Finding(
            WITHDRAWAL,
            None,
            "its owner withdrew this release: the ledger states that it was never given away, so later releases do not count it",
        )
    releases = [each.release for each in listed]
    if stated != releases[: len(stated)]:
        return Finding(_CHECK, False, "the certificate names a release as withdrawn that is not withdrawn in the ledger")
    # whoever published read the withdrawals after the entry was made; a release that was made again names later ones too
    before = 0 if entry is None or entry.kind != "release" else sum(each.sequence < entry.sequence for each in listed)
    if len(stated) < before:
        hidden = f"{counted(before - len(stated), 'release')} {'was' if before - len(stated) == 1 else 'were'}"
        return Finding(_CHECK, False, f"the certificate does not repeat that {hidden} withdrawn before it, as the ledger says")
    if not stated:
        return None
    return Finding(_CHECK, True, f"the ledger has the owner's statement about {counted(len(stated), 'release')}; {_UNVERIFIED}")
