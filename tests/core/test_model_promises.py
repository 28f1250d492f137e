"""What promises by a model say about their own certainty."""

from __future__ import annotations

import re

import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999, 0.999_999, 0.999_999_999])
def test_no_claim_says_that_nothing_is_left_to_chance(confidence: float) -> None:
    said = re.search(r"a chance of at most (\S+),", sf.KMapByModel(20, 0.1, confidence).claim())
    assert said is not None and float(said[1]) == pytest.approx(1 - confidence) and float(said[1]) > 0


@pytest.mark.parametrize("confidence", [0.0, 0.999_999_999_9, 1.0])
def test_a_confidence_that_cannot_be_stated_is_refused(confidence: float) -> None:
    with pytest.raises(ParameterError, match="confidence"):
        sf.KMapByModel(20, 0.1, confidence)
