"""Verdicts: what a release, a checked table, a verified folder and a series of attacks come to, in a word, with what weakens it.

Nothing here is measured: the numbers are those that were measured, and what is said of them follows from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.anonymity.pseudonyms import WARNING
from sfumato.core import registry
from sfumato.core.certificate import Certificate, Claim
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.texts import percent
from sfumato.ledger.unit_changes import NOT_COVERED
from sfumato.report.headline import Headline, Word
from sfumato.report.wording import counted
from sfumato.workflow.contents.base import DEMONSTRATION, Content
from sfumato.workflow.contents.private_result import NOT_CHARGED
from sfumato.workflow.publishing.claims import MISSING_COUNTED
from sfumato.workflow.publishing.masked_rows import LEFT_AS_THEY_ARE
from sfumato.workflow.publishing.recoded_rows import FINDS_THE_RECORD, NOT_COVERED_TOGETHER

if TYPE_CHECKING:
    from sfumato.core.plain_data import Plain
    from sfumato.data.schema import Schema
    from sfumato.workflow.check import TableCheck
    from sfumato.workflow.release import Release
    from sfumato.workflow.verifying.verification import Verification

#: Notices that weaken what a release promises, by their beginnings and ends. Others tell how a release was made.
_WEAKENING_FROM = (LEFT_AS_THEY_ARE, NOT_CHARGED, NOT_COVERED, MISSING_COUNTED)
_WEAKENING_TO = (DEMONSTRATION, FINDS_THE_RECORD, NOT_COVERED_TOGETHER, WARNING)
#: What weakens a draft, whatever it keeps.
DRAFT = "a draft, not a release: no ledger knows it, and it is not to be given away"
#: The headlines of verdicts on folders; over every other one stands a warning.
_HEADLINES: Mapping[str, Word] = {"keeps": "kept", "promises nothing": "no promise", "does not keep": "not kept"}


def unpromised(schema: Schema, guarantees: Iterable[ClassGuarantee]) -> list[str]:
    """A warning for each sensitive column that none of these guarantees is about."""
    promised = {each.sensitive for each in guarantees}
    return [_unpromised(name) for name in schema.sensitive if name not in promised]


def _unpromised(name: str) -> str:
    return (
        f"nothing is promised about '{name}', which is sensitive: people who share a class may share its value as well. Promise "
        f"something about it, such as --l '{name}=2' or --t '{name}=0.2'"
    )


def release_verdict(release: Release[Content]) -> Headline:
    """The verdict on a release that was just made."""
    certificate = release.certificate
    warnings = [*([DRAFT] if certificate.draft else []), *_about(certificate)]
    if not certificate.claims:
        measured = bool(release.owner.risks or certificate.attacks)
        rest = "how much risk is left was measured (risk), and nobody promises a limit" if measured else "no risk was measured"
        return Headline.of("no promise", f"nothing is guaranteed about this release; {rest}", warnings)
    if certificate.private and not certificate.holds:
        return Headline.of("not kept", "a promise does not hold", warnings)
    return Headline.of("kept", _kept(certificate.claims), warnings)


def _kept(claims: Sequence[Claim]) -> str:
    by_process = sum(claim.evidence == "process" for claim in claims)
    by_model = sum(claim.evidence == "output+model" for claim in claims)
    measured = len(claims) - by_process - by_model
    parts = [f"{counted(measured, 'promise')} measured on the rows that were written, and kept"] if measured else []
    parts += [f"{counted(by_process, 'promise')} kept by how the result was made"] if by_process else []
    parts += [f"{counted(by_model, 'promise')} by a model, which rows can contradict and not confirm"] if by_model else []
    return "; ".join(parts)


def _about(certificate: Certificate) -> list[str]:
    """What weakens the promises that a certificate states: it says so itself, or it is not among them."""
    claims = certificate.claims
    warnings = []
    if not any(claim.evidence == "process" for claim in claims):
        promised = {claim.parameters.get("attribute") for claim in claims}
        columns: Mapping[str, Any] = certificate.schema.get("columns", {})
        warnings += [
            _unpromised(name)
            for name, column in columns.items()
            if isinstance(column, Mapping) and column.get("role") == "sensitive" and name not in promised
        ]
    together = _together(certificate)
    warnings += [] if together is None else [together]
    return warnings + [each for each in certificate.notices if each.endswith(_WEAKENING_TO) or each.startswith(_WEAKENING_FROM)]


def _together(certificate: Certificate) -> str | None:
    """What earlier releases take from the promises, where they do or where nobody can tell."""
    stated = certificate.composition
    if not stated.get("earlier_releases") and not stated.get("repeated_masks"):
        return None
    finding = str(stated.get("finding", ""))
    if breaks_together(stated, certificate.claims):
        return f"together with earlier releases the promise is broken: {finding}"
    earlier, compared = stated.get("earlier_releases"), stated.get("compared", 0)
    if stated.get("repeated_masks"):
        return f"together with earlier releases more is learnt: {finding}"
    if earlier != compared:
        return f"nobody can tell what earlier releases add to this one: {finding}"
    return None


def breaks_together(composition: Plain, claims: Sequence[Claim]) -> bool:
    """Whether somebody who combines a release with earlier ones gets below what it promises by itself: fewer records than its
    classes have, a smaller group by subtraction, or more people of whom one sensitive value is left."""
    details = composition.get("details")
    if not isinstance(details, Mapping) or not details.get("combinations"):
        return False
    sizes = [int(claim.parameters["k"]) for claim in claims if isinstance(claim.parameters.get("k"), int)]
    fewest = max([2, *sizes]) if claims else 2
    left, apart = int(details.get("worst_remaining_group", 0)), int(details.get("smallest_difference", 0))
    alone = float(details.get("singled_out_by_one_release_alone", 0))
    if details.get("people_are") == "estimated":  # which is stated with one digit
        alone = float(f"{alone:.1g}")
    more = float(details.get("singled_out", 0)) > alone
    return 0 < left < fewest or 0 < apart < fewest or more


def check_verdict(check: TableCheck) -> Headline:
    """The verdict on a table that was measured."""
    about = {each.sensitive for each in check.guarantees}
    warnings = [_unpromised(name) for name in check.measures.attributes if name not in about] if check.guarantees else []
    warnings += [f"{name} can be neither confirmed nor refuted with what was given" for name in check.unjudged]
    if check.broken:
        return Headline.of(
            "not kept", f"{' and '.join(check.broken)} {'do' if len(check.broken) > 1 else 'does'} not hold", warnings
        )
    if not check.guarantees:
        return Headline.of(
            "no promise", "the table was measured, and no promise was asked about (--k, --l, --t, --guarantee)", warnings
        )
    return Headline.of("kept", f"{counted(len(check.guarantees), 'promise')} measured on this table, and kept", warnings)


def verification_verdict(verification: Verification) -> Headline:
    """The headline over a verification; `Verification.verdict` says it more closely."""
    word, certificate = _HEADLINES.get(verification.verdict, "warning"), verification.certificate
    # what a stranger wrote and nothing bears out is not repeated
    warnings = [] if certificate is None or word == "not kept" else _about(certificate)
    return Headline.of(word, verification.sentence, warnings)


def by_gain(results: Iterable[Plain]) -> list[Plain]:
    """Results of attacks, the one with the greatest gain over blind guessing first."""
    return sorted(results, key=lambda each: (-gain(each), str(each["attack"])))


def gain(result: Plain) -> float:
    """How far an attack got above blind guessing, (success − guessing)/(1 − guessing): 1 is certainty, 0 no better."""
    success, guessing = float(result["success"]), float(result["baseline"])
    return 0.0 if guessing >= 1 else (success - guessing) / (1 - guessing)


def attack_verdict(results: Sequence[Plain], claims: Iterable[Plain] | None) -> Headline:
    """One verdict on all attacks; `claims` are those of the certificate, None where nothing is known of promises."""
    stated = list(claims or ())
    sizes = [
        int(size) for claim in stated if isinstance(size := claim.get("parameters", {}).get("k"), int) and claim.get("holds")
    ]
    beyond = [each for each in by_gain(results) if _beyond_guessing(each) and not _allowed(each, sizes)]
    if beyond:
        best = beyond[0]
        some = f"{len(beyond)} of {counted(len(results), 'attack')} got" if len(results) > 1 else "the attack got"
        reason = (
            f"{some} further than blind guessing and what the promises allow; {best['attack']} furthest: right about "
            f"{percent(best['success'])}, guessing {percent(best['baseline'])}, gain {percent(gain(best))}"
        )
        return Headline.of("warning" if stated else "no promise", reason, [])
    if not results:
        return Headline.of("warning" if stated else "no promise", "no attack was run, which says nothing about the release", [])
    within = [each for each in results if _beyond_guessing(each)]
    reason = "no attack got further than blind guessing"
    if within:
        reason += f", or than the 1 in {max(sizes)} that the promise allows"
    return Headline.of("kept" if stated else "no promise", f"{reason}; other attackers may know more", [])


#: With fewer targets nobody can tell a success from chance, and it counts.
_FEW_TARGETS = 30


def _beyond_guessing(result: Plain) -> bool:
    """Whether chance does not explain the success: its interval lies above guessing, or, where that says little because it is an
    estimate or about few people, the success does."""
    estimated = result.get("details", {}).get("people_are") == "estimated"
    low = result["success"] if estimated or int(result["targets"]) < _FEW_TARGETS else result["interval"][0]
    return float(low) > float(result["baseline"])


def _allowed(result: Plain, sizes: Sequence[int]) -> bool:
    """Whether it is what the promise of k records allows: an attack that picks one of them is right once in k times."""
    name = str(result["attack"])
    identifies = registry.has("attack", name) and registry.find("attack", name).identifies
    return identifies and bool(sizes) and float(result["success"]) <= 1 / max(sizes)
