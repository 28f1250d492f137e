"""Verdicts: what a release, a checked table, a verified folder and a series of attacks come to, in a word, with what weakens it.

Nothing here is measured: the numbers are those that were measured, and what is said of them follows from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sfumato.core import registry
from sfumato.core.texts import percent
from sfumato.report.headline import Headline, Word, outside_in_words, release_headline, supposed, unpromised_in_words, weakening
from sfumato.report.headline import unpromised as of_no_promise
from sfumato.report.wording import counted
from sfumato.workflow.contents.base import Content
from sfumato.workflow.verifying.notices import NOTICES

if TYPE_CHECKING:
    from sfumato.core.plain_data import Plain
    from sfumato.workflow.check import TableCheck
    from sfumato.workflow.release import Release
    from sfumato.workflow.verifying.verification import Verification

#: The headlines of verdicts on folders; over every other one stands a warning.
_HEADLINES: Mapping[str, Word] = {"keeps": "kept", "promises nothing": "no promise", "does not keep": "not kept"}


def release_verdict(release: Release[Content]) -> Headline:
    """The verdict on a release that was just made."""
    measured = bool(release.owner.risks or release.certificate.attacks)
    return release_headline(release.certificate, measured=measured, warned=release.owner.warned)


def check_verdict(check: TableCheck) -> Headline:
    """The verdict on a table that was measured."""
    about = {each.about for each in check.guarantees}
    warnings = [f"{each.key} promises nothing: every table keeps it" for each in check.guarantees if each.says_nothing]
    without = [name for name in check.measures.attributes if name not in about] if check.guarantees else []
    warnings += unpromised_in_words(without)
    warnings += supposed(check.guarantees, check.declared_unit)
    warnings += outside_in_words(check.guarantees, check.quasi)
    warnings += check.repeated_people
    warnings += [f"{name} can be neither confirmed nor refuted with what was given" for name in check.unjudged]
    if check.broken:
        return Headline.of(
            "not kept", f"{' and '.join(check.broken)} {'do' if len(check.broken) > 1 else 'does'} not hold", warnings, without
        )
    if not check.guarantees:
        return Headline.of(
            "no promise", "the table was measured, and no promise was asked about (--k, --l, --t, --guarantee)", warnings
        )
    return Headline.of("kept", f"{counted(len(check.guarantees), 'promise')} measured on this table, and kept", warnings, without)


def verification_verdict(verification: Verification) -> Headline:
    """The headline over a verification; `Verification.verdict` says it more closely."""
    word, certificate = _HEADLINES.get(verification.verdict, "warning"), verification.certificate
    # what a stranger wrote and nothing bears out is not repeated
    warnings = [] if certificate is None or word == "not kept" else weakening(certificate)
    if word != "not kept":  # what the rows say, and the maker does not
        warnings += [each.text for each in verification.findings if each.check == NOTICES]
    private = certificate is None or any(claim.evidence == "process" for claim in certificate.claims)
    about = [] if certificate is None or private or word == "not kept" else of_no_promise(certificate)
    return Headline.of(word, verification.sentence, warnings, about)


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
