"""The sections of a release card, in reading order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.core.certificate import Certificate, Claim
from sfumato.core.registry import find, has
from sfumato.core.view import AttackResult, Score
from sfumato.report.checklist import Item
from sfumato.report.content import PUBLIC_FIGURES, Audience, CardContent
from sfumato.report.inline_svg import inline_svg
from sfumato.report.markup import Child, Html, definitions, element, joined, table
from sfumato.report.wording import (
    ALL_LIMITS,
    CLASS_LIMITS,
    EVIDENCE,
    FIGURES,
    LOSS_LIMITS,
    NUMBER_WITHHELD,
    RISK,
    UNITS_OF_THE_MAKER,
    number,
    percentage,
    plain_name,
    sentence,
    verdict_sentence,
)

#: Details that stand at the top of a card, in this order.
HEADLINES = {
    "released": "records released",
    "released records": "records released",
    "published rows": "rows published",
    "suppressed": "records suppressed",
    "classes": "classes",
}


def owner_warning() -> Html:
    """The first thing on the owner's copy."""
    return element("p", "This copy shows numbers and figures made from the original. Do not publish it.", class_="owner")


def verdict(content: CardContent) -> Html:
    """What is guaranteed, in one sentence."""
    text, state = verdict_sentence(content.certificate)
    notices = [element("li", notice) for notice in content.certificate.notices]
    return element(
        "section",
        element("p", text, class_=f"verdict {state}"),
        element("ul", *notices) if notices else None,
        aria_label="Verdict",
    )


def numbers(content: CardContent, audience: Audience) -> Html | None:
    """The few numbers everybody asks for first."""
    shown: list[tuple[str, str]] = []
    details = {**content.details, **(content.owner_details if audience == "owner" else {})}
    for key, label in HEADLINES.items():
        if isinstance(details.get(key), int):
            shown.append((f"{details[key]:,}", label))
    highest = content.risk.get("prosecutor_highest", content.risk.get("highest"))
    if highest is not None:
        shown.append((percentage(highest), "highest risk of a record"))
    for score in content.scores_for(audience):
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


def guarantees(content: CardContent) -> Html:
    """Promised, measured, held, and how anybody can tell."""
    claims = content.certificate.claims
    if not claims:
        return _section("What is guaranteed", element("p", "Nothing is promised about this release."))
    processes = any(claim.evidence == "process" for claim in claims)
    measured = any(claim.evidence != "process" for claim in claims)
    modelled = any(claim.evidence == "output+model" for claim in claims)
    said = "Promises about the files were measured on the written files, not taken from the method that made them."
    head = ("Promise", "Measured", "Holds", "Against whom", "How to check it")
    return _section(
        "What is guaranteed",
        element(
            "p",
            (said if measured else "")
            + (" Promises about the process rest on an argument." if processes else "")
            + (" Promises by a model rest on the model and on what the owner declares." if modelled else ""),
        ),
        table("Guarantees of this release", head, [_claim_row(claim) for claim in claims]),
    )


def making(content: CardContent, audience: Audience) -> Html:
    """Method and parameters: a method must keep its promise although everything about it is public."""
    certificate = content.certificate
    method = {key: value for key, value in certificate.method.items() if key != "name"}
    details = {**content.details, **(content.owner_details if audience == "owner" else {})}
    levels = details.pop("levels", None)
    rows = [(plain_name(name), _value(value)) for name, value in {**method, **details, **method}.items()]
    roles = _roles(certificate.schema)
    return _section(
        "How it was made",
        element(
            "p",
            f"Method: {certificate.method.get('name', 'not named')}. Its name and parameters are no secret; keys and random "
            "draws are.",
        ),
        definitions([*rows, ("randomness", certificate.randomness)]),
        _mapping_table("Generalisation of each attribute", ("Attribute", "Level"), levels),
        table("Columns and their roles", ("Column", "Role"), roles),
        definitions([(plain_name(name), _value(value)) for name, value in certificate.transparency.items()]),
    )


def usefulness(content: CardContent, audience: Audience) -> Html:
    """The scores, each with its meaning."""
    scores = content.scores_for(audience)
    rows = [_score_row(score) for score in scores]
    none = "No score is published: scores that nobody can compute again from the published files stay with the owner."
    if audience == "owner":  # who sees every score that there is
        none = "Usefulness was not measured."
    return _section(
        "How useful it is",
        table("Scores", ("Measure", "Value", "Better", "What it means"), rows),
        element("p", none) if not rows else None,
        _figure(content, "loss_per_attribute"),
    )


def safety(content: CardContent, audience: Audience) -> Html:
    """Risks, and what attacks achieved beside blind guessing."""
    risk_rows = [(RISK.get(name, plain_name(name)), _risk(name, value)) for name, value in content.risk.items()]
    own = content.owner_risks if audience == "owner" else ()
    attacks: list[AttackResult | Mapping[str, Any]] = [*content.certificate.attacks, *content.attacks]
    if audience == "owner":
        attacks += content.owner_attacks
    return _section(
        "How safe it is",
        _figure(content, "class_sizes"),
        _figure(content, "risk_profile"),
        table("Risks measured on the release", ("Risk", "Value"), risk_rows),
        table(
            "Risks measured by the owner",
            ("Risk", "Value", "By chance", "Above chance", "What it means"),
            [_owner_risk_row(score) for score in own],
        ),
        table(
            "Attacks run against the release",
            ("Attack", "Succeeds", "Blind guessing", "Targets", "Finding"),
            [_attack_row(attack) for attack in attacks],
        ),
        element("p", _no_attack(content)) if not attacks else None,
    )


def _no_attack(content: CardContent) -> str:
    if "attack" in content.certificate.composition:
        return "No attack was run against this release alone; below it is attacked together with earlier ones."
    return "No attack was run against this release."


def composition(content: CardContent) -> Html:
    """Releases about the same people add up."""
    compared = content.certificate.composition
    entered = content.certificate.ledger
    if _only_losses(content):
        text = "Losses add up. The ledger holds what was spent on this data set, and by whom."
        if any(claim.ledger_entry is None for claim in content.certificate.claims):
            text += " This release was not charged to a ledger, so nothing that is asked later will count it."
        return _section("Together with what else is published", element("p", text))
    if not compared:
        text = "No earlier release of this data set was considered."
        if entered == "not entered":
            text += " This release is not entered in a ledger, so later releases will not know of it."
        return _section("Together with earlier releases", element("p", text))
    return _section(
        "Together with earlier releases",
        element(
            "p",
            "Class guarantees do not add up: two releases that are safe alone can give people away together. What follows is the "
            "statement of whoever made the release; checking it takes the other releases.",
        ),
        definitions((plain_name(name), _value(value)) for name, value in compared.items()),
    )


def principles(points: Sequence[Item]) -> Html:
    """Privacy by design, point by point."""
    style = {"passed": "good", "attention": "warn", "not applicable": "plain"}
    rows = [(point.principle, _state(point.state, style[point.state]), sentence(point.because)) for point in points]
    return _section(
        "Privacy by design",
        element("p", "An open point is not a fault of the release, but it is said."),
        table("Checklist of the release", ("Principle", "State", "Why"), rows),
    )


def limits(content: CardContent) -> Html:
    """What is not promised: by each guarantee, by all of its kind, and by anything."""
    claims = content.certificate.claims
    names = dict.fromkeys(claim.guarantee.split("(")[0] for claim in claims)
    lines = [line for name in names for kind in ("guarantee", "loss") if has(kind, name) for line in find(kind, name).limits]
    losses = [claim.evidence == "process" for claim in claims]
    lines += [*(CLASS_LIMITS if not all(losses) or not losses else ()), *(LOSS_LIMITS if any(losses) else ()), *ALL_LIMITS]
    return _section("What it does not protect from", element("ul", *(element("li", line) for line in dict.fromkeys(lines))))


def owner_figures(content: CardContent) -> Html | None:
    """Figures made from the original."""
    names = [name for name, _ in content.figures_for("owner") if name not in PUBLIC_FIGURES]
    if not names:
        return None
    return _section("For the owner", *(_figure(content, name) for name in names))


def evidence(content: CardContent) -> Html:
    """Files, digests, fingerprint, signature, versions."""
    certificate = content.certificate
    rows = [_file_row(name, about) for name, about in sorted(certificate.files.items())]
    signed = _state("signed", "good") if content.signed else _state("not signed", "warn")
    return _section(
        "Files and evidence",
        table("Files of this release", ("File", "Rows", "Bytes", "SHA-256"), rows),
        definitions(
            [
                ("signature", joined([signed, " ", content.signature])),
                ("fingerprint of the input", _code(certificate.fingerprint or "none")),
                ("ledger entry", _code(certificate.ledger)),
                ("created", certificate.created),
                *((f"version of {name}", version) for name, version in sorted(certificate.versions.items())),
            ]
        ),
        element(
            "p",
            _about_the_fingerprint(certificate),
            "Check the files and the measured numbers again with ",
            element("code", "sfumato verify DIR --ledger LEDGER" if _only_losses(content) else "sfumato verify DIR"),
            ".",
        ),
    )


def _about_the_fingerprint(certificate: Certificate) -> str:
    if certificate.fingerprint is None:
        return ""
    if not certificate.private:
        return "The key of the fingerprint comes from the seed: whoever knows the seed can test guesses about the input with it. "
    return (
        "The fingerprint is keyed: with the key the owner shows which input was used, and without it no guess about the input "
        "can be tested. Releases with the same fingerprint were made from the same input. "
    )


def colophon(content: CardContent) -> Html:
    """The last line."""
    return element("p", f"Certificate format {content.certificate.format}. This page loads nothing and runs no script.")


def _section(title: str, *children: Child) -> Html:
    return element("section", element("h2", title), *children)


def _claim_row(claim: Claim) -> tuple[Child, ...]:
    unmeasured = claim.evidence == "process" and claim.measured is None
    withheld = claim.evidence == "output+reference" and claim.measured is None
    measured: list[Child] = ["files cannot show it" if unmeasured else NUMBER_WITHHELD if withheld else number(claim.measured)]
    for name, value in claim.also_measured.items():
        measured.append(element("span", f"{plain_name(name)}: {number(value)}", class_="note"))
    how: list[Child] = [UNITS_OF_THE_MAKER if claim.rests_on_maker else EVIDENCE.get(claim.evidence, claim.evidence)]
    if claim.reference:
        how.append(element("span", "second file: ", _code(claim.reference), class_="note"))
    if claim.argument:
        how.append(element("span", claim.argument, class_="note"))
    if claim.ledger_entry:
        how.append(element("span", "ledger entry ", _code(claim.ledger_entry), class_="note"))
    promise = joined([claim.guarantee, element("span", sentence(claim.promise), class_="note"), *_unit(claim)])
    against = joined(_against(claim))
    if not claim.holds:
        holds = _state("does not hold", "bad")
    else:
        on_trust = unmeasured or claim.evidence == "output+model"
        holds = _state("rests on its maker", "warn") if on_trust else _state("holds", "good")
    return (promise, joined(measured), holds, against, joined(how))


def _unit(claim: Claim) -> list[Child]:
    if claim.neighbours is None:
        return []
    return [element("span", f"Unit: {claim.unit}. Compared are data sets with {claim.neighbours}.", class_="note")]


def _against(claim: Claim) -> list[Child]:
    if claim.evidence == "process" and claim.adversary:
        return [f"Protects {claim.protects}.", element("span", f"Adversary: {claim.adversary}.", class_="note")]
    return [
        f"Protects against {claim.protects}." if claim.protects else "",
        element("span", f"Adversary: {claim.adversary}.", class_="note") if claim.adversary else "",
    ]


def _only_losses(content: CardContent) -> bool:
    claims = content.certificate.claims
    return bool(claims) and all(claim.evidence == "process" for claim in claims)


def _score_row(score: Score) -> tuple[Child, ...]:
    beside = {} if score.floor is None else {"by chance": score.floor}
    parts = ", ".join(f"{name} {number(value)}" for name, value in {**beside, **score.parts}.items())
    value = joined([number(score.value), element("span", parts, class_="note") if parts else None])
    return (plain_name(score.measure), value, score.better, sentence(score.meaning))


def _owner_risk_row(score: Score) -> tuple[Child, ...]:
    parts = ", ".join(f"{name} {number(value)}" for name, value in score.parts.items())
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


def _file_row(name: str, about: Mapping[str, Any]) -> tuple[Child, ...]:
    return (name, number(about.get("rows")), number(about.get("bytes")), _code(str(about.get("sha256", ""))))


def _figure(content: CardContent, name: str) -> Html | None:
    if name not in content.figures:
        return None
    caption = element("figcaption", FIGURES.get(name, plain_name(name)))
    return element("figure", inline_svg(content.figures[name], name), caption)


def _mapping_table(caption: str, head: Sequence[str], values: object) -> Html | None:
    if not isinstance(values, Mapping) or not values:
        return None
    return table(caption, head, [(str(name), _value(value)) for name, value in values.items()])


def _roles(schema: Mapping[str, Any]) -> Iterable[tuple[Child, ...]]:
    columns = schema.get("columns", {})
    if isinstance(columns, Mapping):
        for name, entry in columns.items():
            role = entry.get("role", "plain") if isinstance(entry, Mapping) else entry
            yield (str(name), str(role))


def _value(value: object) -> Child:
    if isinstance(value, Mapping):
        return "; ".join(f"{plain_name(str(name))}: {_text(entry)}" for name, entry in value.items()) or "none"
    return _text(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(entry) for entry in value) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(entry)}" for name, entry in value.items())
    return str(value)


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
    return _text(value)


def _state(text: str, style: str) -> Html:
    return element("span", text, class_=f"state {style}")


def _code(text: str) -> Html:
    return element("code", text)
