"""How many examples a property test draws that does not draw as many as the profile says."""

from __future__ import annotations

from hypothesis import settings

#: What the numbers in the tests are about.
OF = 30
_FEW = 5


def examples(number: int) -> int:
    """So many for every 30 of the profile, and never fewer than five if there are five: a larger profile draws more of all."""
    return max(min(number, _FEW), number * settings.default.max_examples // OF)
