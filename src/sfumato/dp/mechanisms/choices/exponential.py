"""Exponential mechanism: choose a candidate with probability proportional to exp(ε·score/(2S)).

Only the winner is released. Scores are rounded to a fixed-point grid, exponents are exact rationals and the choice is
drawn exactly. McSherry, Talwar, "Mechanism design via differential privacy", FOCS 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.calibrated import source_of
from sfumato.dp.mechanisms.choices.selection import Candidate, Scores, Selection, probabilities
from sfumato.kernels.sampling.noise import select_by_exponent


@dataclass(frozen=True)
class Exponential(Selection):
    """The best of the declared `candidates`, or one nearly as good: each with probability proportional to exp(ε·score/(2S)).

    ε-private for scores that each change by at most S. With `monotone=True` all scores change in the same direction (a
    count of supporters, one unit added or removed), and the exponent is ε·score/S. The ε is that of the whole choice: there
    is no further price for the number of candidates, and nothing but the winner may be shown.

    >>> restaurants = Exponential(("Russian", "American", "Japanese", "Indian"), sensitivity=1, epsilon=0.5)
    >>> round(restaurants.law([2, 6, 2, 2])["American"], 4)
    0.4754
    """

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def law(self, value: Scores) -> dict[Candidate, float]:
        """The probability of every candidate."""
        return dict(zip(self.candidates, probabilities(self.exponents(value)), strict=True))

    def _chosen(self, exponents: list[Fraction], randomness: Randomness | None) -> int:
        return select_by_exponent(exponents, source_of(randomness))
