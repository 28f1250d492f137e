"""The words for what an adversary may not find out, and what follows from what.

Anonymity, unlinkability, undetectability and unobservability as properties with their implications, the
actors and items they are about, and the kinds of disclosure that contradict them; so that a claim in one
word can be checked for what it entails. Pfitzmann, Hansen, "A terminology for talking about privacy by
data minimization", v0.34, 2010; Duncan, Lambert, "Disclosure-limited data dissemination", JASA 81, 1986;
Nergiz, Atzori, Clifton, SIGMOD 2007 (membership).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class ItemKind(Enum):
    """What an adversary is interested in."""

    SUBJECT = "a person or device that may act or be acted on"
    MESSAGE = "something sent"
    ACTION = "something done"
    RECORD = "an entry of a database"


class Part(Enum):
    """The part a subject plays."""

    SENDER = "sends a message"
    RECEIVER = "receives a message"
    ACTOR = "acts"
    ACTEE = "is acted on"
    RESPONDENT = "is described by a record"


@dataclass(frozen=True)
class ItemOfInterest:
    """An item of interest: its kind and, for subjects, the part they play."""

    name: str
    kind: ItemKind
    part: Part | None = None


@dataclass(frozen=True)
class Attacker:
    """Who wants to know: `involved` is a party of the communication or processing itself, otherwise an
    outsider.
    """

    name: str
    involved: bool = False
    knowledge: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ReferenceSetting:
    """Against whom and about what a property is claimed: no property holds without saying so."""

    attacker: Attacker
    items: tuple[ItemOfInterest, ...]


class Property(Enum):
    """What the adversary cannot decide."""

    SENDER_ANONYMITY = "which subject of a set sent it"
    RECEIVER_ANONYMITY = "which subject of a set received it"
    RELATIONSHIP_ANONYMITY = "who communicates with whom"
    UNLINKABILITY_WITH_SENDER = "whether the item and a subject as its sender are related"
    UNLINKABILITY_WITH_RECEIVER = "whether the item and a subject as its receiver are related"
    UNLINKABILITY_OF_ITEMS = "whether two items are related"
    UNDETECTABILITY = "whether the item exists, for those not involved in it"
    UNOBSERVABILITY = "whether the item exists, for those not involved, and who is involved, even for those who are"


class Disclosure(Enum):
    """What a release gives away about a person."""

    IDENTITY = "which record is the person's"
    ATTRIBUTE = "a sensitive value of the person"
    MEMBERSHIP = "whether the person is in the data"


#: What each property entails directly. Linkability of two items does not contradict anonymity.
IMPLIES: dict[Property, frozenset[Property]] = {
    Property.UNLINKABILITY_WITH_SENDER: frozenset({Property.SENDER_ANONYMITY}),
    Property.UNLINKABILITY_WITH_RECEIVER: frozenset({Property.RECEIVER_ANONYMITY}),
    Property.SENDER_ANONYMITY: frozenset({Property.RELATIONSHIP_ANONYMITY}),
    Property.RECEIVER_ANONYMITY: frozenset({Property.RELATIONSHIP_ANONYMITY}),
    Property.UNOBSERVABILITY: frozenset({Property.UNDETECTABILITY, Property.SENDER_ANONYMITY, Property.RECEIVER_ANONYMITY}),
}

#: What each kind of disclosure rules out.
EXCLUDES: dict[Disclosure, frozenset[Property]] = {
    Disclosure.IDENTITY: frozenset({Property.SENDER_ANONYMITY, Property.UNLINKABILITY_WITH_SENDER, Property.UNOBSERVABILITY}),
    Disclosure.ATTRIBUTE: frozenset(),
    Disclosure.MEMBERSHIP: frozenset({Property.UNDETECTABILITY, Property.UNOBSERVABILITY}),
}


def entailed(claimed: Iterable[Property]) -> frozenset[Property]:
    """Everything that follows from the claimed properties, they themselves included.

    Undetectability against outsiders together with anonymity against everybody is unobservability.
    """
    implied = set(claimed)
    while True:
        more = {follows for property_ in implied for follows in IMPLIES.get(property_, frozenset())}
        parts = {Property.UNDETECTABILITY, Property.SENDER_ANONYMITY, Property.RECEIVER_ANONYMITY}
        if parts <= implied:
            more.add(Property.UNOBSERVABILITY)
        if more <= implied:
            return frozenset(implied)
        implied |= more


def entails(claimed: Property, follows: Property) -> bool:
    """Whether one property alone entails another."""
    return follows in entailed([claimed])


def contradictions(claimed: Iterable[Property], happened: Iterable[Disclosure]) -> frozenset[Property]:
    """The claimed or entailed properties that a disclosure has disproved."""
    ruled_out = {property_ for disclosure in happened for property_ in EXCLUDES[disclosure]}
    return frozenset(ruled_out) & entailed(claimed)


def is_anonymous(happened: Iterable[Disclosure]) -> bool:
    """Identity disclosure and anonymity exclude each other; the other disclosures leave the person
    unidentified.
    """
    return Disclosure.IDENTITY not in set(happened)
