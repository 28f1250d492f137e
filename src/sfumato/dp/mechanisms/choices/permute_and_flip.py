"""Permute-and-flip: go through the candidates in random order and accept each with probability exp(ε(score - best)/(2S)).

Never worse than the exponential mechanism, and up to twice as good.
McKenna, Sheldon, "Permute-and-flip: a new mechanism for differentially private selection", NeurIPS 2020; the same law as
report-noisy-max with exponential noise: Ding, Kifer, Sayed, Steinke, Wang, Xiao, Zhang, arXiv 2105.07260, 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.calibrated import source_of
from sfumato.dp.mechanisms.choices.selection import Selection
from sfumato.kernels.sampling.noise import permute_and_flip


@dataclass(frozen=True)
class PermuteAndFlip(Selection):
    """The best of the declared `candidates`, or one nearly as good; ε-private, only the winner is released.

    Candidates come in random order, and each is accepted with probability exp(ε(score - best)/(2S)). Takes scores as
    `Exponential` does; prefer it unless a law in closed form is needed.
    """

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def _chosen(self, exponents: list[Fraction], randomness: Randomness | None) -> int:
        return permute_and_flip(exponents, source_of(randomness))
