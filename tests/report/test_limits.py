"""A card says what each promise does not protect from, in the words of the guarantee itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sfumato.core.registry import every
from sfumato.report.card_sections import limits
from tests.report.sample import content

GUARANTEES = {**every("guarantee"), **every("loss")}
WITH_LIMITS = sorted(name for name, kind in GUARANTEES.items() if kind.limits)


def test_most_guarantees_state_limits_of_their_own() -> None:
    assert set(GUARANTEES) - set(WITH_LIMITS) == {"DeltaPresence", "PureDP"}


@pytest.mark.parametrize("name", WITH_LIMITS)
def test_every_limit_of_a_claimed_guarantee_is_shown(name: str) -> None:
    card = content()
    claims = tuple(replace(claim, guarantee=f"{name}(illness)") for claim in card.certificate.claims[:1])
    shown = str(limits(replace(card, certificate=replace(card.certificate, claims=claims))))
    for line in GUARANTEES[name].limits:
        assert line.split("'")[0] in shown
