"""The annex of the owner's card: singling out, linkability and inference, with what was measured and what a person must judge.

The three criteria by which European data protection asks whether data are anonymous. A measurement bears on a criterion, it does
not settle it: whether the means that somebody is reasonably likely to use suffice is for a person to judge.
Article 29 Data Protection Working Party, "Opinion 05/2014 on anonymisation techniques" (WP216), 2014; Regulation (EU) 2016/679
(GDPR), recital 26.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sfumato.core import registry
from sfumato.core.certificate import Certificate, Claim
from sfumato.core.view import AttackResult, Criterion, Score
from sfumato.report.content import CardContent
from sfumato.report.headline import unpromised
from sfumato.report.lead import is_process, with_role
from sfumato.report.loss_words import loss_in_words
from sfumato.report.markup import Html, element, section, table
from sfumato.report.wording import RISK, listed, named_column, number, percentage, plain_name, sentence

#: The criteria, each in a sentence of ours.
CRITERIA: dict[Criterion, str] = {
    "singling out": "Can the records of one person be picked out of the data?",
    "linkability": "Can two records be found to be about the same person, in these data or in others?",
    "inference": "Can a value of a person be concluded, with a probability that matters, from other values?",
}
#: The rooms of risk measures, by what they bear on.
_ROOMS: dict[str, Criterion] = {"uniques": "singling out", "linkage": "linkability", "disclosure": "inference"}
_RISKS_OF_CLASSES = "singling out"
JUDGE = "For a person to judge"


def annex(content: CardContent) -> Html:
    """The table of the three criteria."""
    rows = []
    for criterion, question in CRITERIA.items():
        measured = list(dict.fromkeys(_measured(content, criterion)))
        rows.append(
            (
                element("span", criterion, element("span", question, class_="note")),
                element("ul", *(element("li", line) for line in measured)) if measured else f"Nothing. {JUDGE}.",
                element("ul", *(element("li", line) for line in _to_judge(content.certificate, criterion))),
            )
        )
    return section(
        "Annex: the three criteria of data protection",
        element(
            "p",
            "The Article 29 Working Party (opinion 05/2014) asks three questions of data that are called anonymous. Measurements "
            "bear on them and do not answer them: whether somebody could succeed with means that are reasonably likely to be "
            "used (GDPR, recital 26) is for a person to judge, and this table is no legal opinion.",
        ),
        table("Singling out, linkability and inference", ("Criterion", "What was promised and measured", JUDGE), rows),
    )


def _measured(content: CardContent, criterion: Criterion) -> Iterator[str]:
    certificate = content.certificate
    for claim in certificate.claims:
        if criterion in _borne_on(claim):
            yield _claim_in_words(claim)
    if criterion == _RISKS_OF_CLASSES:
        for name, value in content.risk.items():
            yield f"{RISK.get(name, plain_name(name))}: {percentage(value)}".capitalize()
    for score in content.owner_risks:
        if _room(score) == criterion:
            chance = "" if score.floor is None else f", by chance {number(score.floor)}"
            yield f"{plain_name(score.measure).capitalize()}: {number(score.value)}{chance}."
    attacks: list[AttackResult | Mapping[str, Any]] = [*certificate.attacks, *content.attacks, *content.owner_attacks]
    for attack in attacks:
        yield from _attack_in_words(attack, criterion)
    if criterion == "linkability" and certificate.composition.get("finding"):
        yield sentence(f"Earlier releases: {certificate.composition['finding']}")


def _borne_on(claim: Claim) -> tuple[Criterion, ...]:
    """What a promise bears on, by whom it protects from what; a bound on a privacy loss bears on all three."""
    if claim.evidence == "process":
        return tuple(CRITERIA)
    about: list[Criterion] = []
    if "identity" in claim.protects:
        about.append("singling out")
    if "attribute" in claim.protects or "membership" in claim.protects:
        about.append("inference")
    return tuple(about)


def _claim_in_words(claim: Claim) -> str:
    kept = "kept" if claim.holds else "not kept"
    if claim.evidence == "process":
        words = loss_in_words(claim)
        return f"{sentence(words.sentence)[:-1]} ({words.numbers}); {kept if not claim.holds else 'it rests on how it was made'}."
    measured = "" if claim.measured is None else f", measured {number(claim.measured)}"
    return f"{sentence(claim.promise)[:-1]} ({kept}{measured})."


def _room(score: Score) -> Criterion | None:
    from sfumato.measures.risk import KEYS

    module = KEYS.get(score.measure, ("", ""))[1].split(".")
    return next((criterion for room, criterion in _ROOMS.items() if room in module), None)


def _attack_in_words(attack: AttackResult | Mapping[str, Any], criterion: Criterion) -> Iterator[str]:
    fields = attack if isinstance(attack, Mapping) else attack.__dict__
    name = str(fields.get("attack", ""))
    if registry.has("attack", name) and registry.find("attack", name).criterion == criterion:
        success, baseline = percentage(fields.get("success")), percentage(fields.get("baseline"))
        yield f"Attack {plain_name(name)}: succeeds for {success} of its targets, blind guessing for {baseline}."


def _to_judge(certificate: Certificate, criterion: Criterion) -> list[str]:
    if criterion == "singling out":
        if is_process(certificate):
            return ["Whether the bound is small enough for the harm that this could do."]
        quasi = listed([named_column(name) for name in with_role(certificate, "quasi")[:12]] or ["no column"])
        return [
            f"Whether others could know more of a person than {quasi}.",
            "Whether groups of the promised size are large enough here.",
        ]
    if criterion == "linkability":
        lines = ["Which other data about these people exist, outside this publisher too, and who could join them."]
        replaced = certificate.transparency.get("pseudonymised_columns")
        if isinstance(replaced, (list, tuple)) and replaced:
            lines.append(
                f"Pseudonyms are published and can be followed: {listed([named_column(str(name)) for name in replaced[:12]])}."
            )
        return lines
    lines = ["Whether what is true of a whole group could harm the people in it."]
    if (left := unpromised(certificate)) and not is_process(certificate):
        lines.append(f"Nothing is promised about {listed([named_column(name) for name in left[:12]])}.")
    return lines
