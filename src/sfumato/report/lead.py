"""The first sentence of a card: what is guaranteed, as somebody repeats it who has never heard of classes or of ε.

It is made of the certificate alone: of what was measured on the written table, and of whom the owner declares to be counted. It
speaks of people where a unit is declared, and of records where none is; of two promises it states both, of many it says how many
there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sfumato.core import registry
from sfumato.core.certificate import KNOWN_VALUES, Certificate, Claim
from sfumato.core.guarantees.base import ordinal
from sfumato.core.plain_data import Plain
from sfumato.core.texts import rounded_up
from sfumato.report.headline import class_guarantees, says_nothing, supposed, unpromised, weakened_together, weakening
from sfumato.report.loss_words import loss_in_words
from sfumato.report.wording import counted, known_values, listed, named_column, number, sentence

_DRAFT = "A draft, not a release, and not to be given away. "
State = Literal["good", "warn", "bad"]

#: What a decimal fraction may be off as a binary one.
_SLACK = 1e-9
#: More columns than this are counted in the sentence and not named.
MOST_NAMED = 8
#: More promises than this are counted.
MOST_PROMISES = 3
_DISTANCES = {
    "equal": "of which at most {share} would have to move to make it the same",
    "variational": "of which at most {share} would have to move to make it the same",
    "ordered": "at a distance of at most {t}, where values far apart in their order count for more",
    "hierarchical": "at a distance of at most {t}, where values far apart in their tree count for more",
    "kl": "at a divergence of at most {t} nats",
}


@dataclass(frozen=True)
class Lead:
    """The sentence, its style, and what one must know to understand it: who is counted, what rests on whose word."""

    sentence: str
    state: State
    notes: tuple[str, ...] = ()


def lead(certificate: Certificate, missing: Sequence[str] = ()) -> Lead:
    """The sentence of a certificate; `missing` are quasi-identifiers in which values are missing. It is good only where nothing
    weakens what it says."""
    claims = [claim for claim in certificate.claims if not says_nothing(claim) or not claim.holds]
    if certificate.claims and not claims:
        empty = "Nothing is promised about this table: what is stated of it, every table keeps."
        return Lead(empty, "warn", tuple(_seeded(certificate)))
    if not claims:
        return Lead(f"{_DRAFT if certificate.draft else ''}{_nothing_promised(certificate)}", "warn", tuple(_seeded(certificate)))
    broken = list(dict.fromkeys(claim.guarantee for claim in claims if not claim.holds))
    demonstration = not certificate.private
    if broken and not (demonstration and all(claim.evidence == "process" for claim in claims)):
        kept = "does" if len(broken) == 1 else "do"
        return Lead(f"This release does not keep what it promises: {listed(broken)} {kept} not hold.", "bad", ())
    said, notes = _promises(certificate, claims, missing)
    if certificate.draft:
        return Lead(f"{_DRAFT}As a release it would promise: {said}", "warn", notes)
    if demonstration:
        seeded = "randomness" if all(claim.evidence != "process" for claim in claims) else "noise"
        with_secret = "With secret noise: " if seeded == "noise" else ""
        return Lead(
            f"A demonstration, not a private release, because its {seeded} was seeded. {with_secret}{said}", "warn", notes
        )
    together = weakened_together(certificate)
    beside = () if together is None else (sentence(together),)
    by_model = any(claim.evidence == "output+model" for claim in claims)  # which rows can contradict and not confirm
    return Lead(said, "warn" if by_model or weakening(certificate) else "good", (*notes, *beside))


def columns_of(certificate: Certificate) -> dict[str, Plain]:
    """The published columns, as the certificate's schema describes them."""
    columns = certificate.schema.get("columns", {})
    return (
        {str(name): entry for name, entry in columns.items() if isinstance(entry, Mapping)}
        if isinstance(columns, Mapping)
        else {}
    )


def with_role(certificate: Certificate, role: str) -> list[str]:
    """The published columns with this role."""
    return [name for name, entry in columns_of(certificate).items() if entry.get("role", "plain") == role]


def is_process(certificate: Certificate) -> bool:
    """Whether everything promised rests on how the release was made."""
    return bool(certificate.claims) and all(claim.evidence == "process" for claim in certificate.claims)


def _nothing_promised(certificate: Certificate) -> str:
    name = certificate.method.get("name")
    if not registry.has("mask", name):
        return "Nothing is promised about this release."
    mask = registry.find("mask", str(name))
    if mask.selects:
        return "Nothing is promised about this table: some records were chosen, and their values are published as they are."
    if mask.synthetic:
        return "Nothing is promised about this table: its records are invented by a model that was fitted to real ones."
    return "Nothing is promised about this table: values were changed, and nobody proves that no person can be recognised."


def _seeded(certificate: Certificate) -> list[str]:
    return (
        []
        if certificate.private
        else ["A demonstration: its randomness was seeded, so that anybody with the seed can repeat it."]
    )


def _promises(certificate: Certificate, claims: Sequence[Claim], missing: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    if is_process(certificate):
        words = loss_in_words(claims[0])
        notes = [
            *([words.odds] if words.odds else []),
            *(["The certificate states the same loss in another form."] if words.restated else []),
        ]
        others = [f"Promised besides: {sentence(loss_in_words(claim).sentence)}" for claim in claims[1:MOST_PROMISES]]
        return f"{words.sentence} ({words.numbers}).", (*notes, *others)
    table = _Table(certificate)
    stated = claims[:MOST_PROMISES]
    clauses = [
        table.clause(claim, first=not place or table.known(claim) != table.known(stated[0])) for place, claim in enumerate(stated)
    ]
    left = len(claims) - len(clauses)
    more = f"; {counted(left, 'further promise')} {'is' if left == 1 else 'are'} listed below" if left else ""
    return f"In this table{',' * clauses[0].startswith('where ')} {'; '.join(clauses)}{more}.", tuple(
        table.notes(claims, missing)
    )


@dataclass(frozen=True)
class _Table:
    """What is promised about a table, clause by clause."""

    certificate: Certificate

    def clause(self, claim: Claim, *, first: bool) -> str:
        """One promise, to stand behind "in this table"."""
        words = _CLAUSES.get(claim.guarantee.split("(")[0])
        text = None if words is None else words(self, claim, first)
        if text is None:
            text = f"where a class is all records with the same {self.known(claim)}, {claim.promise.rstrip('.')}"
        return text

    def _known(self, claim: Claim) -> list[str]:
        knowledge = claim.parameters.get("knowledge")
        attributes = knowledge.get("attributes") if isinstance(knowledge, Mapping) else None
        return [str(name) for name in attributes] if attributes else with_role(self.certificate, "quasi")

    def known(self, claim: Claim) -> str:
        """The columns that the promise supposes to be known, named or counted."""
        names = self._known(claim)
        if not names:
            return "values that others may know"
        if len(names) > MOST_NAMED:
            return f"{len(names)} columns that others may know"
        return listed([named_column(name) for name in names])

    def combination(self, claim: Claim) -> str:
        """Every combination of these columns, or every value of the only one."""
        knowledge = claim.parameters.get("knowledge")
        items = knowledge.get("items") if isinstance(knowledge, Mapping) else None
        what = "value" if len(self._known(claim)) == 1 and not items else "combination"
        text = f"every {what} of {self.known(claim)}"
        return f"{text} and up to {number(items)} items of each set" if items else text

    @property
    def units(self) -> str | None:
        """What the units are called; None where each record is counted and nobody declares whose it is."""
        publication = self.certificate.schema.get("publication")
        called = publication.get("units") if isinstance(publication, Mapping) else None
        return None if not called else f"‘{called}’" if " " in str(called) else str(called)  # words of the owner's are quoted

    def who(self, claim: Claim, count: float) -> str:
        """So many people, or records where no unit is declared."""
        if claim.counts_units or self.each_record_is_one:
            return f"{number(count)} {'different ' if claim.counts_units else ''}{self.units or 'people'}"
        return self.records(count)

    def records(self, count: float) -> str:
        """So many records."""
        return counted(int(count), "record")

    @property
    def each_record_is_one(self) -> bool:
        """Whether the owner declares that no person has several records, and the method leaves each record a person's."""
        return self.certificate.schema.get("unit") == "record" and not registry.has("mask", self.certificate.method.get("name"))

    def notes(self, claims: Sequence[Claim], missing: Sequence[str]) -> list[str]:
        """Who is counted and by whose word, missing values, and what nothing is promised about."""
        notes = []
        units = self.units or "people"
        if by_unit := next((claim for claim in claims if claim.counts_units), None):
            column = named_column(by_unit.unit.removeprefix("different ").strip("'"))
            notes.append(f"{units.capitalize()} are counted by the column {column}" + _unpublished(by_unit))
            if any(claim.guarantee.split("(")[0] in _SHARES for claim in claims):
                notes.append(
                    f"Shares of values are counted in records: where {units} have several, more of them may share a value."
                )
        elif self.each_record_is_one:
            notes.append(f"Each record is counted as one of the {units}: the publisher states that nobody has several.")
        elif guesses := supposed(
            [each for claim in claims for each in class_guarantees(claim)], self.certificate.schema.get("unit")
        ):
            notes += [sentence(each) for each in guesses]
        else:
            notes.append("Records are counted, whoever they belong to: how many people stand behind them is not stated.")
        if any(claim.guarantee == "KMap" for claim in claims):
            notes.append("Records of the population are counted too: they are its people where each has one.")
        fewest = {each for claim in claims for each in [claim.also_measured.get(KNOWN_VALUES)] if each is not None}
        if missing:
            notes.append(f"A missing value of {listed(_some(missing))} counts as a value.")
        if fewest:
            notes.append(f"Among different values a missing one counts too: some group shows {known_values(min(fewest))}.")
        if left := unpromised(self.certificate):
            notes.append(
                f"Nothing is promised about {listed(_some(left))}, although called sensitive: all who share a combination of "
                "the other values may share that value too."
            )
        return notes


#: Promises about the shares that values have.
_SHARES = frozenset(
    {"AlphaKAnonymity", "EntropyLDiversity", "RecursiveLDiversity", "TCloseness", "BetaLikeness", "DeltaDisclosure"}
)


def _some(names: Sequence[str]) -> list[str]:
    """The first of these columns, and how many more there are."""
    more = len(names) - MOST_NAMED
    shown = [named_column(name) for name in names[:MOST_NAMED]]
    return [*shown, f"{more} more column{'s' * (more != 1)}"] if more > 0 else shown


def _unpublished(claim: Claim) -> str:
    if claim.rests_on_maker:
        return ", which is not published: that they are different ones rests on the publisher's word."
    return "."


def _k_anonymity(table: _Table, claim: Claim, first: bool) -> str | None:
    least = claim.measured if isinstance(claim.measured, (int, float)) else claim.parameters["k"]
    knowledge = claim.parameters.get("knowledge")
    none_or = "nobody or by " if isinstance(knowledge, Mapping) and knowledge.get("items") else ""
    return f"{table.combination(claim)} is shared by {none_or}at least {table.who(claim, least)}"


def _alpha_k(table: _Table, claim: Claim, first: bool) -> str | None:
    which = "no value" if claim.parameters.get("protected_values") is None else "no protected value"
    many = table.who(claim, claim.parameters["k"])
    most = _at_most(claim.parameters["alpha"])
    shared = f"{table.combination(claim)} is shared by at least {many}"
    # shares are counted in records: of people who have several, more may have the value
    verb, whom = ("stands in", "their records") if claim.counts_units else ("belongs to", "them")
    return f"{shared}, and {which} of {_about(claim)} {verb} more than {most} of {whom}"


def _distinct(table: _Table, claim: Claim, first: bool) -> str | None:
    least = claim.parameters["l"]
    shared = f"the records that share {_one_combination(table, claim)}" if first else "the records that share one"
    where = "" if claim.parameters.get("protected_values") is None else ", where a protected one is among them,"
    return f"{shared}{where} have at least {number(least)} different values of {_about(claim)}"


def _entropy(table: _Table, claim: Claim, first: bool) -> str | None:
    if claim.parameters.get("protected_values") is not None:
        return None
    return (
        f"among the records that share {_one_combination(table, claim)} the value of {_about(claim)} is at least as uncertain "
        f"as {_not_above(claim.parameters['l'])} equally likely ones"
    )


def _closeness(table: _Table, claim: Claim, first: bool) -> str | None:
    distance = _DISTANCES.get(str(claim.parameters.get("distance", "equal")))
    if claim.parameters.get("protected_values") is not None or distance is None:
        return None
    t = claim.parameters["t"]
    near = distance.format(share=_at_most(min(t, 1.0)), t=rounded_up(t, 4))
    whole = "original" if claim.parameters.get("reference", "input") == "input" else "released"
    return (
        f"the records that share {_one_combination(table, claim)} have values of {_about(claim)} as the whole {whole} table has, "
        f"{near}"
    )


def _likeness(table: _Table, claim: Claim, first: bool) -> str | None:
    if claim.parameters.get("protected_values") is not None or claim.parameters.get("enhanced"):
        return None
    whole = "original" if claim.parameters.get("reference", "input") == "input" else "released"
    times = rounded_up(1 + claim.parameters["beta"], 4)
    return (
        f"no value of {_about(claim)} is more than {times} times as frequent among the records that share "
        f"{_one_combination(table, claim)} as in the whole {whole} table"
    )


def _disclosure(table: _Table, claim: Claim, first: bool) -> str | None:
    if claim.parameters.get("protected_values") is not None:
        return None
    whole = "original" if claim.parameters.get("reference", "input") == "input" else "released"
    times = rounded_up(math.exp(claim.parameters["delta"]), 4)
    return (
        f"every value of {_about(claim)} is less than {times} times as frequent, and less than {times} times as rare, among the "
        f"records that share {_one_combination(table, claim)} as in the whole {whole} table"
    )


def _recursive(table: _Table, claim: Claim, first: bool) -> str | None:
    if claim.parameters.get("protected_values") is not None:
        return None
    from_which = claim.parameters["l"]
    rarer = f"all values from the {ordinal(from_which)} most frequent on"
    return (
        f"among the records that share {_one_combination(table, claim)} the most frequent value of {_about(claim)} has fewer "
        f"than {rounded_up(claim.parameters['c'], 4)} times as many as {rarer} together"
    )


def _average(table: _Table, claim: Claim, first: bool) -> str | None:
    most = _at_most(claim.parameters["risk"])
    return (
        f"somebody who knows {table.known(claim)} of a person and picks a record that agrees picks the right one with a chance "
        f"of at most {most}, on average over the records"
    )


def _k_map(table: _Table, claim: Claim, first: bool) -> str | None:
    least = claim.measured if isinstance(claim.measured, (int, float)) else claim.parameters["k"]
    return f"{table.combination(claim)} has at least {table.records(least)} of the population that it was compared with"


def _presence(table: _Table, claim: Claim, first: bool) -> str | None:
    low, high = _at_least(claim.parameters["minimum"]), _at_most(claim.parameters["maximum"])
    return (
        f"whoever knows {table.known(claim)} of a person of the population finds the chance that the person is in it to lie "
        f"between {low} and {high}"
    )


def _at_most(share: float) -> str:
    """A share in percent, never below it."""
    return f"{math.ceil(share * 10_000 - _SLACK) / 100:g} %"


def _at_least(share: float) -> str:
    """A share in percent, never above it."""
    return f"{math.floor(share * 10_000 + _SLACK) / 100:g} %"


def _not_above(value: float) -> str:
    """A number of at most three decimals, never above it."""
    return f"{math.floor(value * 1000 + _SLACK) / 1000:g}"


def _one_combination(table: _Table, claim: Claim) -> str:
    return table.combination(claim).replace("every", "a", 1)


def _about(claim: Claim) -> str:
    return named_column(str(claim.parameters["attribute"]))


_CLAUSES: dict[str, Callable[[_Table, Claim, bool], str | None]] = {
    "KAnonymity": _k_anonymity,
    "AlphaKAnonymity": _alpha_k,
    "DistinctLDiversity": _distinct,
    "EntropyLDiversity": _entropy,
    "RecursiveLDiversity": _recursive,
    "DeltaDisclosure": _disclosure,
    "TCloseness": _closeness,
    "BetaLikeness": _likeness,
    "AverageRisk": _average,
    "KMap": _k_map,
    "DeltaPresence": _presence,
}
