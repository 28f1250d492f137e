"""The sections of a card that everybody sees, in reading order: what is promised, by whom, how it was made, how to check it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sfumato.core.certificate import NOT_ENTERED, Certificate, Claim
from sfumato.core.registry import find, has
from sfumato.data.publication import LABELS
from sfumato.report.content import CardContent
from sfumato.report.headline import unpromised
from sfumato.report.lead import columns_of, is_process, lead, with_role
from sfumato.report.loss_words import loss_in_words
from sfumato.report.making import AS_IT_IS, MethodWords, column_changes, has_example, method_in_words
from sfumato.report.markup import Child, Html, code, definitions, element, explained, joined, section, state, table
from sfumato.report.wording import (
    ALL_LIMITS,
    CLASS_LIMITS,
    EVIDENCE,
    LOSS_LIMITS,
    NUMBER_WITHHELD,
    UNITS_OF_THE_MAKER,
    listed,
    named_column,
    number,
    percentage,
    plain_name,
    sentence,
)

#: An attack that succeeds so much more often than blind guessing is named to everybody.
_WORTH_SAYING = 0.005
_MOST_NAMED = 12
_WORDS = {"good": "Kept", "warn": "With a warning", "bad": "Not kept"}
#: Sentences of a notice that ask the owner something, or tell him what to do.
_FOR_THE_OWNER = re.compile(r"\?$|^(Declare|Should|Say|Choose|Look|Drop) ")
#: A name in quotes, which ends where no letter follows, or the end of a sentence.
_QUOTED_OR_END = re.compile(r"(?<!\w)'.*?'(?!\w)|(?<!\w)\".*?\"(?!\w)|(?P<end>[.?!] +)")


def first_sentence(content: CardContent) -> Html:
    """What is guaranteed in one sentence, and what one must know to understand it."""
    said = lead(content.certificate, content.missing)
    notes = element("ul", *(element("li", note) for note in said.notes), class_="notes") if said.notes else None
    word = "No promise" if not content.certificate.claims else _WORDS[said.state]  # colour is never alone
    sentence_of = element("p", element("strong", f"{word}."), " ", said.sentence, class_=f"verdict {said.state}")
    return element("section", sentence_of, notes, aria_label="In one sentence")


def publication(content: CardContent) -> Html:
    """Who publishes, for what and until when, as far as somebody said; and what the release holds."""
    certificate = content.certificate
    stated = certificate.schema.get("publication")
    said = stated if isinstance(stated, Mapping) else {}
    rows: list[tuple[str, Child]] = [(label, str(said[name])) for name, label in LABELS.items() if said.get(name)]
    rows.append(("Data set", certificate.dataset))
    rows += [(label, f"{content.details[key]:,}") for key, label in HOLDS.items() if type(content.details.get(key)) is int]
    rows.append(("Made on", f"{certificate.created[:10]} (UTC)"))
    return section("About this release", definitions(rows), _notices(certificate))


#: What a release holds, by the names of details.
HOLDS = {"released records": "Records", "published rows": "Rows", "classes": "Different combinations"}


def _notices(certificate: Certificate) -> Html | None:
    """What the release says of itself besides, without what only its owner can answer."""
    notices = []
    for notice in certificate.notices:
        parts = [part for part in _sentences(notice) if not _FOR_THE_OWNER.search(part)]
        if parts:
            notices.append(sentence(" ".join(parts)))
    if not notices:
        return None
    return joined([element("h3", "To know before use"), element("ul", *(element("li", notice) for notice in notices))])


def _sentences(notice: str) -> list[str]:
    """The sentences of a notice; what stands in quotes is somebody's name for something, whatever is in it."""
    ends = [match.end() for match in _QUOTED_OR_END.finditer(notice) if match["end"]]
    return [notice[start:end].strip() for start, end in zip([0, *ends], [*ends, len(notice)], strict=True) if notice[start:end]]


def columns(content: CardContent) -> Html | None:
    """What was done to each column, with one invented row."""
    if is_process(content.certificate) or not columns_of(content.certificate):
        return None
    changes = column_changes(content.certificate)
    if not has_example(changes):
        rows = [(change.name, change.role, change.done) for change in changes]
        said = "No example is shown: nothing was declared about the values of a column from which one could be invented."
        head = ("Column", "Part", "What was done")
        return section(
            "What was done to each column", table("Columns, and what was done to them", head, rows), element("p", said)
        )
    shown = [
        (change.name, change.role, change.done, _invented(change.before), _invented(change.after) if change.before else "")
        for change in changes
    ]
    return section(
        "What was done to each column",
        element(
            "p",
            "The row on the right is invented: each of its values was drawn from what the publisher declares about the column, "
            "and none from the data. Columns about which nothing is declared have no example.",
        ),
        table(
            "Columns, and what was done to them",
            ("Column", "Part", "What was done", "Invented value before", "and after"),
            shown,
        ),
    )


def _invented(value: str | None) -> Child:
    return "not shown" if value is None else element("span", value, class_="value")


def promises(content: CardContent) -> Html:
    """Promised, measured, kept, and how anybody can tell."""
    claims = content.certificate.claims
    if not claims:
        return section("What is promised", element("p", "Nothing is promised about this release."))
    measured = any(claim.evidence != "process" for claim in claims)
    modelled = any(claim.evidence == "output+model" for claim in claims)
    said = [
        "Promises about the files were measured on the written files, not taken from the method that made them."
        if measured
        else "",
        "Promises about the process rest on an argument." if any(claim.evidence == "process" for claim in claims) else "",
        "Promises by a model rest on the model and on what the owner declares." if modelled else "",
    ]
    head = ("Promise", "Measured", "Kept", "Against whom", "Evidence: how to check it")
    return section(
        "What is promised",
        element("p", " ".join(filter(None, said))),
        table("Promises of this release", head, [_claim_row(claim) for claim in claims]),
        content.figure("class_sizes"),
    )


def _claim_row(claim: Claim) -> tuple[Child, ...]:
    unmeasured = claim.evidence == "process" and claim.measured is None
    withheld = claim.evidence == "output+reference" and claim.measured is None
    measured: list[Child] = ["files cannot show it" if unmeasured else NUMBER_WITHHELD if withheld else number(claim.measured)]
    for name, value in claim.also_measured.items():
        measured.append(element("span", f"{plain_name(name)}: {number(value)}", class_="note"))
    how: list[Child] = [UNITS_OF_THE_MAKER if claim.rests_on_maker else EVIDENCE.get(claim.evidence, claim.evidence)]
    if claim.reference:
        how.append(element("span", "second file: ", code(claim.reference), class_="note"))
    if claim.argument:
        how.append(element("span", sentence(claim.argument), class_="note"))
    if claim.ledger_entry:
        how.append(element("span", "ledger entry ", code(claim.ledger_entry), class_="note"))
    if not claim.holds:
        kept = state("does not hold", "bad")
    else:
        on_trust = unmeasured or claim.evidence == "output+model"
        kept = state("rests on its maker", "warn") if on_trust else state("holds", "good")
    return (_promise(claim), joined(measured), kept, joined(_against(claim)), joined(how))


def _promise(claim: Claim) -> Html:
    if claim.neighbours is None:
        return joined([claim.guarantee, element("span", sentence(claim.promise), class_="note")])
    words = loss_in_words(claim)
    unit = f"Unit: {claim.unit}. Compared are data sets with {claim.neighbours}."
    notes = (sentence(words.sentence), f"{words.numbers}.", unit)
    return joined([claim.guarantee, *(element("span", note, class_="note") for note in notes)])


def _against(claim: Claim) -> list[Child]:
    if claim.evidence == "process" and claim.adversary:
        return [f"Protects {claim.protects}.", element("span", f"Adversary: {claim.adversary}.", class_="note")]
    return [
        f"Protects against {claim.protects}." if claim.protects else "",
        element("span", f"Adversary: {claim.adversary}.", class_="note") if claim.adversary else "",
    ]


def making(content: CardContent) -> Html:
    """The method and its parameters, each with its meaning: a promise must be kept although everything about it is public."""
    certificate = content.certificate
    words: MethodWords = method_in_words(certificate, content.details)
    rows = [(plain_name(each.name), each.value, each.meaning) for each in words.parameters]
    others = " Other facts about it, for whoever corrects an analysis by them, stand in certificate.json." if words.left else ""
    return section(
        "How it was made",
        element(
            "p",
            f"Method: {certificate.method.get('name', 'not named')}. {sentence(words.meaning)} Its name and parameters are no "
            f"secret; keys and random draws are. Randomness: {certificate.randomness}.{others}",
        ),
        table("Parameters of the method", ("Parameter", "Value", "Meaning"), rows),
    )


def limits(content: CardContent) -> Html:
    """What is not promised: about which columns, by each guarantee, by all of its kind, and by anything."""
    certificate = content.certificate
    claims = certificate.claims
    names = dict.fromkeys(claim.guarantee.split("(")[0] for claim in claims)
    lines = _of_columns(certificate)
    lines += [line for name in names for kind in ("guarantee", "loss") if has(kind, name) for line in find(kind, name).limits]
    losses = [claim.evidence == "process" for claim in claims]
    lines += [*(CLASS_LIMITS if not all(losses) or not losses else ()), *(LOSS_LIMITS if any(losses) else ()), *ALL_LIMITS]
    return section(
        "What is not promised",
        element("ul", *(element("li", line) for line in dict.fromkeys([*_succeeded(certificate), *lines]))),
        _together(certificate),
    )


def _of_columns(certificate: Certificate) -> list[str]:
    """What is said of no column: sensitive ones without a promise, and those that are published as they are."""
    if is_process(certificate):
        return []
    lines = []
    if left := unpromised(certificate):
        lines.append(f"No promise is about {_some(left)}: what a person has there may become certain.")
    plain = {*with_role(certificate, "plain"), *with_role(certificate, "weight")}
    shown = [change.name for change in column_changes(certificate) if change.done == AS_IT_IS and change.name in plain]
    if shown:
        lines.append(f"Published as they are, and outside every promise: {_some(shown)}. Whoever knows them may find a person.")
    return lines


def _some(names: list[str]) -> str:
    first = [named_column(name) for name in names[:_MOST_NAMED]]
    return listed(first + ([f"{len(names) - _MOST_NAMED} more columns"] if len(names) > _MOST_NAMED else []))


def _succeeded(certificate: Certificate) -> list[str]:
    """The attacks that the certificate states and that found more than blind guessing does."""
    lines = []
    for attack in certificate.attacks:
        success, baseline = attack.get("success"), attack.get("baseline")
        if isinstance(success, (int, float)) and isinstance(baseline, (int, float)) and success > baseline + _WORTH_SAYING:
            named = plain_name(str(attack.get("attack", "attack")))
            lines.append(
                f"An attack on this release, {named}, succeeds for {percentage(success)} of its targets; blind guessing for "
                f"{percentage(baseline)}."
            )
    return lines


def _together(certificate: Certificate) -> Html:
    """Releases about the same people add up."""
    compared = certificate.composition
    if is_process(certificate):
        text = "The ledger holds what was spent on this data set, and by whom."
        if any(claim.ledger_entry is None for claim in certificate.claims):
            text += " This release was not charged to a ledger, so nothing that is asked later will count it."
        return element("p", text)
    if not compared:
        text = "No earlier release of this data set was considered."
        if certificate.ledger == NOT_ENTERED:
            text += " This release is not entered in a ledger, so later releases will not know of it."
        return element("p", text)
    return element(
        "p",
        "Together with earlier releases: promises about classes do not add up, and two releases that keep theirs alone can "
        "expose people together. The statement of whoever made the release, which takes the other releases to check: ",
        sentence(str(compared.get("finding", "nothing is stated"))),
    )


def how_to_verify(content: CardContent) -> Html:
    """Commands, files, digests, fingerprint, signature, versions."""
    certificate = content.certificate
    rows = [
        (
            name,
            number(about.get("rows")) if about.get("rows") is not None else "",
            number(about.get("bytes")),
            code(str(about.get("sha256", ""))),
        )
        for name, about in sorted(certificate.files.items())
    ]
    signed = state("signed", "good") if content.signed else state("not signed", "warn")
    command = "sfumato verify DIR --ledger LEDGER" if is_process(certificate) else "sfumato verify DIR"
    references = [claim.reference for claim in certificate.claims if claim.reference]
    second = sorted({"--population FILE" if "population" in each else "--original FILE" for each in references})
    return section(
        "How to verify it",
        element(
            "ol",
            element(
                "li",
                "Put all files of the release into one folder DIR and run ",
                code(" ".join([command, *second])),
                ". It checks every digest, measures each promise again that files can show, and makes this page again from them.",
            ),
            element("li", _about_the_signature(content)),
        ),
        table("Files of this release", ("File", "Rows", "Bytes", "SHA-256"), rows),
        explained(
            [
                (
                    "signature",
                    joined([signed, " ", content.signature]) if content.signed else signed,
                    "who vouches for the certificate",
                ),
                ("fingerprint of the input", code(certificate.fingerprint or "none"), _about_the_fingerprint(certificate)),
                ("ledger entry", code(certificate.ledger), "where the publisher's account of this data set holds this release"),
                ("made with", ", ".join(f"{name} {version}" for name, version in sorted(certificate.versions.items())), ""),
            ]
        ),
    )


def _about_the_signature(content: CardContent) -> str:
    if content.signed:
        return "Ask the publisher for the fingerprint of the key by another way, and compare it with that of the signature below."
    return "Nobody has signed: the files prove nothing about who made them. Get them from the publisher directly."


def _about_the_fingerprint(certificate: Certificate) -> str:
    if certificate.fingerprint is None:
        return "nothing says which input was used"
    if not certificate.private:
        return "its key comes from the seed: whoever knows the seed can test guesses about the input with it"
    return (
        "keyed: with the key the owner shows which input was used, and without it no guess about the input can be tested; "
        "releases with the same fingerprint were made from the same input"
    )


def colophon(content: CardContent) -> Html:
    """The last line."""
    return element("p", f"Certificate format {content.certificate.format}. This page loads nothing and runs no script.")
