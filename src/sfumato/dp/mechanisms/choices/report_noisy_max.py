"""Report noisy max: add Laplace noise to every score and release which candidate has the highest, nothing else.

Fix the noise of all others: the winner needs at least some noise r to win, and on a neighbour at most r + 2S (r + S where
all scores move the same way), which is at least exp(-ε) times as likely with integer Laplace noise of scale 2S/ε. Equal
noisy scores go to the earlier candidate, a rule that the argument covers. The noisy score of the winner is not part of
the answer: it would have to be measured and paid for again. The loss is stated as ε alone; a smaller price in
concentrated privacy holds for other noise (Gumbel), not for this.
Dwork, Roth, "The algorithmic foundations of differential privacy", Foundations and Trends 9, 2014 (Claim 3.9).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.calibrated import source_of
from sfumato.dp.mechanisms.choices.selection import Selection
from sfumato.dp.mechanisms.grid import plain_scale
from sfumato.dp.mechanisms.noise.errors import ChoiceError
from sfumato.kernels.sampling.noise import discrete_laplace


@dataclass(frozen=True)
class ReportNoisyMax(Selection):
    """The candidate whose score is the highest after Laplace noise of scale 2S/ε (S/ε where scores are `monotone`).

    ε-private; only the winner is released.
    """

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> ChoiceError:
        """The gap is at most the spread of the noise: two of the m noises, each beyond t with probability e^-t."""
        unit = 2 * float(self._scale * self.grid.step)
        return ChoiceError.of(unit, len(self.candidates), float(self.grid.step))

    @property
    def _scale(self) -> Fraction:
        return plain_scale(self._shift / Fraction(self.epsilon))

    def _chosen(self, exponents: list[Fraction], randomness: Randomness | None) -> int:
        rate = self._shift / Fraction(self.epsilon)
        noise = discrete_laplace(self._scale, len(exponents), source_of(randomness)).tolist()
        # Exponents are gaps to the best score in units of the scale: back to whole steps.
        noisy = [extra - int(exponent * rate) for extra, exponent in zip(noise, exponents, strict=True)]
        return noisy.index(max(noisy))
