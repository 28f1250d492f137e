"""What the owner's card says beyond the public one: risk, loss, attacks, earlier releases, the checklist, decisions, the annex.

The annex maps the three criteria by which European data protection asks whether data are anonymous (singling out, linkability,
inference) to what was measured. A measurement bears on a criterion and does not settle it: whether the means that somebody is
reasonably likely to use suffice is for a person to judge. Article 29 Data Protection Working Party, "Opinion 05/2014 on
anonymisation techniques" (WP216), 2014; Regulation (EU) 2016/679 (GDPR), recital 26.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sfumato.core import registry
from sfumato.core.certificate import Certificate, Claim
from sfumato.core.view import AttackResult, Criterion, Score
from sfumato.report.checklist import Item
from sfumato.report.content import HEADLINES, PUBLIC_FIGURES, CardContent
from sfumato.report.headline import unpromised
from sfumato.report.lead import is_process, with_role
from sfumato.report.loss_words import loss_in_words
from sfumato.report.making import in_words
from sfumato.report.markup import Child, Html, definitions, element, joined, section, state, table
from sfumato.report.wording import RISK, listed, named_column, number, percentage, plain_name, sentence

#: Parts of a score that its row names.
_MOST_PARTS = 12
#: Figures that stand in a section of their own.
_PLACED = ("loss_per_attribute", "risk_profile", "tradeoff")


def warning() -> Html:
    """The first thing on the owner's copy."""
    return element("p", "This copy shows numbers and figures made from the original. Do not publish it.", class_="owner")


def numbers(content: CardContent) -> Html | None:
    """The few numbers an owner asks for first."""
    shown: list[tuple[str, str]] = []
    details = {**content.details, **content.owner_details}
    for key, label in HEADLINES.items():
        if isinstance(details.get(key), int):
            shown.append((f"{details[key]:,}", label))
    highest = content.risk.get("prosecutor_highest", content.risk.get("highest"))
    if highest is not None:
        shown.append((percentage(highest), "highest risk of a record"))
    for score in content.scores:
        if score.measure in ("loss", "granularity"):
            shown.append((percentage(score.value), "detail lost" if score.measure == "loss" else "detail kept"))
            break
    if not shown:
        return None
    return element(
        "ul",
        *(element("li", element("strong", big), element("span", small)) for big, small in shown),
        class_="numbers",
    )


def risk(content: CardContent) -> Html:
    """What was measured of the risk, on the release and with the original."""
    rows = [(RISK.get(name, plain_name(name)), _risk(name, value)) for name, value in content.risk.items()]
    empty = not rows and not content.owner_risks and "risk_profile" not in content.figures
    return section(
        "Risk",
        numbers(content),
        content.figure("risk_profile"),
        table("Risks measured on the release", ("Risk", "Value"), rows),
        table(
            "Risks measured by the owner",
            ("Risk", "Value", "By chance", "Above chance", "What it means"),
            [_owner_risk_row(score) for score in content.owner_risks],
        ),
        element("p", "No risk was measured.") if empty else None,
    )


def loss(content: CardContent) -> Html:
    """The scores, each with its meaning."""
    rows = [_score_row(score) for score in content.scores]
    return section(
        "Loss",
        table("Scores", ("Measure", "Value", "Better", "What it means"), rows),
        element("p", "Usefulness was not measured.") if not rows else None,
        content.figure("loss_per_attribute"),
        content.figure("tradeoff"),
    )


def attacks(content: CardContent) -> Html:
    """What attacks achieved beside blind guessing."""
    run: list[AttackResult | Mapping[str, Any]] = [*content.certificate.attacks, *content.attacks, *content.owner_attacks]
    none = "No attack was run against this release."
    if "attack" in content.certificate.composition:
        none = "No attack was run against this release alone; below it is attacked together with earlier ones."
    return section(
        "Attacks",
        table(
            "Attacks run against the release",
            ("Attack", "Succeeds", "Blind guessing", "Targets", "Finding"),
            [_attack_row(attack) for attack in run],
        ),
        element("p", none) if not run else None,
    )


def earlier_releases(content: CardContent) -> Html:
    """What came out when this release was put together with earlier ones, number by number."""
    compared = content.certificate.composition
    if is_process(content.certificate):
        text = "Losses add up. The ledger holds what was spent on this data set, and by whom."
        return section("Earlier releases", element("p", text))
    if not compared:
        return section("Earlier releases", element("p", "No earlier release of this data set was considered."))
    return section("Earlier releases", definitions((plain_name(name), _value(value)) for name, value in compared.items()))


def principles(points: Sequence[Item]) -> Html:
    """Privacy by design, point by point."""
    style = {"passed": "good", "attention": "warn", "not applicable": "plain"}
    rows = [(point.principle, state(point.state, style[point.state]), sentence(point.because)) for point in points]
    return section(
        "Checklist",
        element(
            "p", "Privacy by design, point by point. An open point is not a fault of the release; answer it before you publish."
        ),
        table("Checklist of the release", ("Principle", "State", "Why"), rows),
    )


def decisions(content: CardContent) -> Html:
    """What somebody decided, what was learnt from the data, and what the method decided in full."""
    certificate = content.certificate
    method = {key: value for key, value in certificate.method.items() if key != "name"}
    details = {**content.details, **content.owner_details}
    levels = details.pop("levels", None)
    in_full = {**method, **details, **method}
    facts = {name: value for name, value in certificate.transparency.items() if name not in ("written_as", "method")}
    left = content.left_out
    return section(
        "Decisions",
        table(
            "What was decided about each column",
            ("Column", "Decision", "Who says so"),
            [(each.about, each.said, each.whose) for each in content.decisions],
        ),
        table("Generalisation of each attribute", ("Attribute", "Level"), _levels(levels)),
        element("h3", f"The method in full: {certificate.method.get('name', 'not named')}"),
        definitions([(plain_name(name), _value(value)) for name, value in in_full.items()]),
        element("h3", "What everybody is told about how it was made"),
        definitions([(plain_name(name), _value(value)) for name, value in facts.items()]),
        element("p", f"The public card does not say: {', '.join(left)}. Say it under [publication] in the schema.")
        if left
        else None,
    )


def _levels(levels: object) -> list[tuple[str, Child]]:
    return [(str(name), _value(value)) for name, value in levels.items()] if isinstance(levels, Mapping) else []


def other_figures(content: CardContent) -> Html | None:
    """Figures made from the original that no section above has."""
    names = [name for name, _ in content.figures_for("owner") if name not in (*PUBLIC_FIGURES, *_PLACED)]
    if not names:
        return None
    return section("More figures for the owner", *(content.figure(name) for name in names))


def _score_row(score: Score) -> tuple[Child, ...]:
    beside = {} if score.floor is None else {"by chance": score.floor}
    parts = _parts({**beside, **score.parts})
    value = joined([number(score.value), element("span", parts, class_="note") if parts else None])
    return (plain_name(score.measure), value, score.better, sentence(score.meaning))


def _parts(parts: Mapping[str, float]) -> str:
    """What a score is made of, the first of many."""
    named = [f"{name} {number(value)}" for name, value in parts.items()]
    more = [f"and {len(named) - _MOST_PARTS} more in scores.json"] if len(named) > _MOST_PARTS else []
    return "; ".join([*named[:_MOST_PARTS], *more])


def _owner_risk_row(score: Score) -> tuple[Child, ...]:
    parts = _parts(score.parts)
    return (
        plain_name(score.measure),
        joined([_with_interval(score.value, score.interval), element("span", parts, class_="note") if parts else None]),
        "" if score.floor is None else number(score.floor),
        "" if score.gain is None else _with_interval(score.gain, score.gain_interval),
        sentence(score.meaning),
    )


def _with_interval(value: float, interval: tuple[float, float] | None) -> str:
    if interval is None or interval == (value, value):
        return number(value)
    return f"{number(value)} ({number(interval[0])} to {number(interval[1])})"


def _attack_row(attack: AttackResult | Mapping[str, Any]) -> tuple[Child, ...]:
    fields = attack if isinstance(attack, Mapping) else attack.__dict__
    low, high = (list(fields.get("interval") or ()) + [None, None])[:2]
    between = f"95 % interval {percentage(low)} to {percentage(high)}" if low is not None and high is not None else ""
    success = joined([percentage(fields.get("success")), element("span", between, class_="note") if between else None])
    return (
        plain_name(str(fields.get("attack", "attack"))),
        success,
        percentage(fields.get("baseline")),
        number(fields.get("targets")),
        str(fields.get("finding", "")),
    )


def _value(value: object) -> Child:
    if isinstance(value, Mapping):
        return "; ".join(f"{plain_name(str(name))}: {in_words(entry)}" for name, entry in value.items()) or "none"
    return in_words(value)


def _risk(name: str, value: object) -> str:
    shares = (
        "risk",
        "share",
        "highest",
        "average",
        "lowest",
        "rate",
        "success",
        "marketer",
        "prosecutor",
        "journalist",
    )
    if isinstance(value, (int, float)) and 0 <= value <= 1 and any(word in name for word in shares):
        return percentage(value)
    return in_words(value)


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
