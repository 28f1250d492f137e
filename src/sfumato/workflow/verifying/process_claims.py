"""Checking a claim whose evidence is the process: do its words mean its parameters, and did a ledger pay for it?

Files cannot show differential privacy. What can be shown is that the claim says what its numbers mean, that its
noise was not seeded, and that the entry it names is in the owner's ledger, was charged exactly that loss, and holds
this result or its digest, or that the ledger notes that this result was made of what it holds: a charge pays for one set of
measurements, and for the unit and neighbours that it was charged for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import Certificate, Claim, plain
from sfumato.core.declared import build, parameters
from sfumato.core.errors import SfumatoError
from sfumato.core.guarantees import loss as losses
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.ledger.chain import is_hash

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger

_KNOWN: dict[str, type[LossGuarantee]] = {
    kind.__name__: kind for kind in (losses.PureDP, losses.ApproxDP, losses.ConcentratedDP, losses.RenyiDP)
}

Verdict = tuple[bool | None, str]


def loss_of(claim: Claim) -> LossGuarantee | None:
    """The guarantee that a claim states; None for one this version does not know."""
    kind = _KNOWN.get(claim.guarantee)
    return None if kind is None else build(kind, _exact_texts(claim.parameters))


def check_process_claim(claim: Claim, certificate: Certificate, result: object, ledger: Ledger | str | Path | None) -> Verdict:
    """True where the ledger paid for it, None where only that could not be looked up, False where something is wrong."""
    try:
        guarantee = loss_of(claim)
    except (SfumatoError, TypeError, ValueError, ArithmeticError) as error:
        return False, f"the claim's parameters cannot be read ({type(error).__name__})"
    if guarantee is None:
        return False, "a claim about a process of a kind that this version does not know; nobody could check it"
    if getattr(guarantee, "delta", 0) >= 1:
        return False, "with δ = 1 or more anything may happen, so that it promises nothing"
    if not _says_what_it_means(claim, guarantee):
        return False, "the claim's words do not say what its parameters mean"
    if claim.holds != certificate.private:
        return False, "it is said to hold although the noise was seeded, or the other way round"
    if not certificate.private:
        return None, "a demonstration: its noise was seeded, so nobody is protected by it"
    if claim.ledger_entry is None:
        return False, f"{claim.promised}; it names no ledger entry, so that nothing shows that it was paid for"
    if not is_hash(claim.ledger_entry):
        return False, "the ledger entry it names is not the hash of an entry"
    short = f"ledger entry {claim.ledger_entry[:16]}…"
    if ledger is None:
        return None, f"rests on how it was made; pass the ledger to check that {short} was charged for it"
    if isinstance(ledger, (str, Path)):
        from sfumato.ledger.ledger import Ledger as Book

        with Book.open(ledger, read_only=True) as book:
            return _charged(claim, guarantee, certificate.dataset, result, book)
    return _charged(claim, guarantee, certificate.dataset, result, ledger)


def _says_what_it_means(claim: Claim, guarantee: LossGuarantee) -> bool:
    said = (
        plain(dict(claim.parameters)),
        claim.evidence,
        claim.unit,
        claim.protects,
        claim.adversary,
    )
    meant = (
        plain(parameters(guarantee)),
        guarantee.evidence,
        guarantee.unit,
        guarantee.protects,
        guarantee.adversary,
    )
    worded = (claim.promised, claim.neighbours) in guarantee.wordings()
    return said == meant and worded and claim.measured is None and not claim.also_measured and claim.reference is None


def _charged(claim: Claim, guarantee: LossGuarantee, dataset: str, result: object, ledger: Ledger) -> Verdict:
    from sfumato.ledger.accounts import Protected
    from sfumato.ledger.amounts import LossAmount

    entry = str(claim.ledger_entry)
    short = f"ledger entry {entry[:16]}…"
    verification = ledger.verify(entry)
    if not verification.ok:
        return False, f"{short} is not confirmed by the ledger: {verification.finding}"
    spent = ledger.charge(entry)
    if spent is None or spent.closed_by != entry or spent.state != "committed":
        return False, f"{short} is in the ledger but is no answered charge"
    if spent.dataset != dataset:
        return False, f"{short} was charged to another dataset"
    digest = _digest(result)
    parts = _batch_parts(ledger, entry)
    # One charge pays for all answers of a batch: what each costs by itself stands beside it, and is part of that charge.
    paid = [part_loss for part_loss, stored in parts if stored == digest or ledger.was_shown(entry, digest, stored)]
    try:
        claimed = LossAmount.of(guarantee)
        if parts:
            same = guarantee in paid and claimed.within(spent.loss)
        else:
            same = spent.loss.converted(claimed.kind) == claimed
    except SfumatoError:
        same = False
    another = f"{short} was charged for another result than the one in these files"
    if parts and not paid:
        return False, another
    if not same:
        return False, f"{short} was charged {spent.loss}, which is not what the certificate claims"
    # Ledgers did not note the unit once; what they charged was about records.
    protected = spent.protected or Protected()
    if protected != Protected.of(guarantee):
        return False, f"{short} was charged for {protected}, and the certificate claims it for {guarantee.compared}"
    stored = digest if paid else _stored_digest(ledger, entry)
    # A charge also pays for what the session made of the same measurements later, under other names or in another order.
    if stored != digest and not ledger.was_shown(entry, digest):
        return False, another
    together = f" for {len(parts)} answers together" if parts else ""
    return True, f"{claim.promised}; {short} was charged {spent.loss}{together}, and the ledger's chain is intact"


def _batch_parts(ledger: Ledger, entry: str) -> list[tuple[LossGuarantee, str]]:
    """What each answer of a batch costs by itself, with the digest of its table; nothing where the charge is for one answer."""
    from sfumato.dp.sql.asking.once import BATCH_FORMAT

    charge = ledger.entry(entry)
    answer = None if charge is None else charge.payload.get("answer")
    if not isinstance(answer, Mapping) or answer.get("format") != BATCH_FORMAT:
        return []
    try:
        parts = [(dict(part["loss"]), str(part["sha256"])) for part in answer["parts"]]
        return [(build(_KNOWN[loss.pop("name")], loss), digest) for loss, digest in parts]
    except (SfumatoError, AttributeError, KeyError, TypeError, ValueError):
        return []


def _stored_digest(ledger: Ledger, entry: str) -> str | None:
    """The digest of what the entry paid for: stored as such beside measurements and for an artefact, computed from a stored
    answer."""
    from sfumato.dp.sql.asking.answer import AnswerTable

    charge = ledger.entry(entry)
    answer = None if charge is None else charge.payload.get("answer")
    if not isinstance(answer, Mapping):
        return None
    if isinstance(answer.get("sha256"), str):
        return str(answer["sha256"])
    try:
        return _digest(AnswerTable.from_mapping(answer).table())
    except (SfumatoError, KeyError, TypeError, ValueError, AttributeError):
        return None


def _digest(result: Any) -> str:
    from sfumato.dp.sql.asking.identity import result_digest

    return result_digest(result)


def _exact_texts(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers of a stranger's certificate: only short texts and whole numbers are turned into fractions."""
    for value in numbers.values():
        if isinstance(value, bool) or not isinstance(value, (str, int)) or len(str(value)) > 300:
            raise ValueError("not a parameter of a privacy loss")
    return dict(numbers)
