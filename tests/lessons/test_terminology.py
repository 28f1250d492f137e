"""What follows from what in the language of privacy."""

from __future__ import annotations

import pytest

from sfumato.lessons.terminology import (
    Attacker,
    Disclosure,
    ItemKind,
    ItemOfInterest,
    Part,
    Property,
    ReferenceSetting,
    contradictions,
    entailed,
    entails,
    is_anonymous,
)


def test_unlinkability_with_the_sender_implies_sender_anonymity() -> None:
    assert entails(Property.UNLINKABILITY_WITH_SENDER, Property.SENDER_ANONYMITY)
    assert not entails(Property.SENDER_ANONYMITY, Property.UNLINKABILITY_WITH_SENDER)


def test_anonymity_allows_linkable_items() -> None:
    assert not entails(Property.SENDER_ANONYMITY, Property.UNLINKABILITY_OF_ITEMS)
    assert not entails(Property.UNLINKABILITY_OF_ITEMS, Property.SENDER_ANONYMITY)


def test_unobservability_implies_undetectability_and_anonymity() -> None:
    for follows in (Property.UNDETECTABILITY, Property.SENDER_ANONYMITY, Property.RECEIVER_ANONYMITY):
        assert entails(Property.UNOBSERVABILITY, follows)


def test_undetectability_and_anonymity_together_are_unobservability() -> None:
    parts = [Property.UNDETECTABILITY, Property.SENDER_ANONYMITY, Property.RECEIVER_ANONYMITY]
    assert Property.UNOBSERVABILITY in entailed(parts)
    assert Property.UNOBSERVABILITY not in entailed(parts[:2])


@pytest.mark.parametrize("one", Property)
def test_entailment_is_reflexive_and_transitive(one: Property) -> None:
    assert entails(one, one)
    for middle in entailed([one]):
        assert entailed([middle]) <= entailed([one])


def test_identity_disclosure_and_anonymity_exclude_each_other() -> None:
    assert not is_anonymous([Disclosure.IDENTITY])
    assert is_anonymous([Disclosure.ATTRIBUTE, Disclosure.MEMBERSHIP])
    broken = contradictions([Property.UNLINKABILITY_WITH_SENDER], [Disclosure.IDENTITY])
    assert Property.SENDER_ANONYMITY in broken


def test_membership_disclosure_breaks_undetectability_alone() -> None:
    assert contradictions([Property.SENDER_ANONYMITY], [Disclosure.MEMBERSHIP]) == frozenset()
    assert contradictions([Property.UNOBSERVABILITY], [Disclosure.MEMBERSHIP]) == {
        Property.UNDETECTABILITY,
        Property.UNOBSERVABILITY,
    }


def test_a_claim_names_attacker_and_items() -> None:
    person = ItemOfInterest("respondent", ItemKind.SUBJECT, Part.RESPONDENT)
    setting = ReferenceSetting(Attacker("journalist", knowledge=frozenset({"quasi-identifiers"})), (person,))
    assert not setting.attacker.involved
    assert setting.items[0].part is Part.RESPONDENT
