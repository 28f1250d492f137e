"""Sparse vector: answer many questions "is it above the threshold?", pay only for those that are.

The threshold gets noise once, each value gets fresh noise, and after `positives` answers of "above" no more are given.
This is the version whose proof holds: the noise of the values grows with the number of positives, and no noisy value is
released. Lyu, Su, Li, "Understanding the sparse vector technique for differential privacy", PVLDB 10(6), 2017
(Algorithm 1, with the split of the budget of its section 4).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated

from sfumato.core.errors import BudgetRefused
from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import Count
from sfumato.dp.mechanisms.base import Error
from sfumato.dp.mechanisms.calibrated import Calibrated, Change, change_of, source_of
from sfumato.dp.mechanisms.grid import Grid, Real, plain_scale
from sfumato.dp.ranges import Bound, Epsilon
from sfumato.kernels.sampling.noise import discrete_laplace_one


@dataclass(frozen=True)
class SparseVector(Calibrated[Iterable[Real], tuple[bool, ...]]):
    """Which of a stream of values, each of the `sensitivity` S, lie above a public `threshold`.

    The threshold gets Laplace noise of scale S/ε₁ once, every value of scale 2cS/ε₂ (c `positives`, ε₁ + ε₂ = ε). ε-private
    (`epsilon`) for any number of answers "below" and at most `positives` answers "above". `start` opens a run that is asked
    one value at a time, each of which may depend on earlier answers; `answer` asks a whole list. With `monotone=True`
    all values change in the same direction when a unit comes or goes, and half the noise does.
    """

    threshold: Annotated[Bound, "what the values are compared with"]
    sensitivity: Change
    epsilon: Epsilon
    positives: Annotated[Count, "how many answers may say that a value lies above"] = 1
    monotone: Annotated[bool, "whether all values change in the same direction"] = False

    norm = "largest"

    def coherent(self) -> Iterable[str]:
        yield from super().coherent()
        if self.monotone and self.neighbours != "add_remove":
            yield "values move in one direction when a unit comes or goes; when it is replaced they do not: leave monotone out"

    @cached_property
    def grid(self) -> Grid:
        """The fixed-point grid of the values."""
        return Grid.for_sensitivity(change_of(self, "largest"))

    @cached_property
    def _shares(self) -> tuple[Fraction, Fraction]:
        """ε for the threshold and for the values, about 1 : (2c)^(2/3), which makes the comparison least noisy."""
        factor = self.positives * (1 if self.monotone else 2)
        weight = Fraction(round(1024 * factor ** (2 / 3)), 1024)
        first = Fraction(self.epsilon) / (1 + weight)
        return first, Fraction(self.epsilon) - first

    @cached_property
    def scales(self) -> tuple[Fraction, Fraction]:
        """The noise of the threshold and of a value, in steps."""
        shift, (first, second) = self.grid.shift(change_of(self, "largest")), self._shares
        factor = self.positives * (1 if self.monotone else 2)
        return plain_scale(shift / first), plain_scale(factor * shift / second)

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> Error:
        """Of one comparison: how far from the threshold a value seems to be, against how far it is."""
        first, second = (float(scale * self.grid.step) for scale in self.scales)
        return Error(math.sqrt(2 * first**2 + 2 * second**2), float(self.grid.step), bound=True)

    def start(self, randomness: Randomness | None = None) -> SparseVectorRun:
        """Draw the noisy threshold and open a run."""
        return SparseVectorRun(self, source_of(randomness))

    def answer(self, value: Iterable[Real], randomness: Randomness | None = None) -> tuple[bool, ...]:
        run, answers = self.start(randomness), []
        for entry in value:
            if run.finished:
                break
            answers.append(run.above(entry))
        return tuple(answers)


class SparseVectorRun:
    """One run: a noisy threshold that stays secret, and what is left of the positives."""

    def __init__(self, mechanism: SparseVector, source: Randomness) -> None:
        self.mechanism = mechanism
        self.left = mechanism.positives
        self._source = source
        self._noisy_threshold = mechanism.grid.units(Fraction(mechanism.threshold)) + discrete_laplace_one(
            mechanism.scales[0], source
        )

    @property
    def finished(self) -> bool:
        """Whether all positives are used up."""
        return self.left == 0

    def above(self, value: Real) -> bool:
        """Whether the noisy value reaches the noisy threshold. Refused once the positives are used up."""
        if self.finished:
            raise BudgetRefused(
                f"all {self.mechanism.positives} positive answers of this run are used up; start another, at its price"
            )
        noisy = self.mechanism.grid.units(value) + discrete_laplace_one(self.mechanism.scales[1], self._source)
        positive = noisy >= self._noisy_threshold
        self.left -= positive
        return positive

    def __repr__(self) -> str:
        return f"Run(left={self.left})"
