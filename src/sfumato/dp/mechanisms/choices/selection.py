"""What mechanisms share that choose one of several declared candidates by a score."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import Each, Instance
from sfumato.dp.mechanisms.calibrated import Calibrated, Change, change_of
from sfumato.dp.mechanisms.grid import Grid, Real
from sfumato.dp.mechanisms.noise.errors import ChoiceError
from sfumato.dp.ranges import Epsilon, Step

Candidate: TypeAlias = str | int | float
Scores: TypeAlias = Sequence[Real] | Mapping[Candidate, Real] | NDArray[np.floating] | NDArray[np.integer]


@dataclass(frozen=True)
class Selection(Calibrated[Scores, Candidate]):
    """One of the `candidates`, by scores in their order or by a mapping; a candidate without a score has 0.

    `sensitivity` is the largest change of one score. Scores are rounded to `step` (by default a power of two of at most
    2^-20 of the sensitivity; whole numbers stay exact), and the rounding is inside the sensitivity. `epsilon` is the loss of
    the whole choice; with `monotone=True` all scores change in the same direction when a unit comes or goes.
    """

    candidates: Annotated[
        tuple[Candidate, ...],
        Each(Instance(object), at_least=1, different=True, what="a list of different candidates"),
        "what may be chosen, declared by the owner",
    ]
    sensitivity: Change
    epsilon: Epsilon
    monotone: Annotated[bool, "whether all scores change in the same direction"] = False
    step: Step = None

    norm = "largest"

    def coherent(self) -> Iterable[str]:
        yield from super().coherent()
        if self.monotone and self.neighbours != "add_remove":
            yield "scores move in one direction when a unit comes or goes; when it is replaced they do not: leave monotone out"

    @cached_property
    def grid(self) -> Grid:
        """The fixed-point grid of the scores."""
        return Grid(Fraction(self.step)) if self.step is not None else Grid.for_sensitivity(change_of(self, "largest"))

    @cached_property
    def _shift(self) -> int:
        """The sensitivity of one score in steps, doubled where scores may move apart."""
        return self.grid.shift(change_of(self, "largest")) * (1 if self.monotone else 2)

    def units(self, scores: Scores) -> list[int]:
        """The scores in steps of the grid."""
        if isinstance(scores, Mapping):
            return [self.grid.units(scores.get(candidate, 0)) for candidate in self.candidates]
        units = self.grid.units_of(scores)
        require(len(units) == len(self.candidates), "there must be one score for each candidate")
        return units

    def exponents(self, scores: Scores) -> list[Fraction]:
        """How many factors of e each candidate is less likely than the best."""
        units = self.units(scores)
        best, rate = max(units), Fraction(self.epsilon) / self._shift
        return [(best - entry) * rate for entry in units]

    def error(self) -> ChoiceError:
        """How far the score of the winner lies below the best score."""
        unit = float(self._shift * self.grid.step / Fraction(self.epsilon))
        return ChoiceError.of(unit, len(self.candidates), float(self.grid.step))

    def answer(self, value: Scores, randomness: Randomness | None = None) -> Candidate:
        return self.candidates[self._chosen(self.exponents(value), randomness)]

    @abstractmethod
    def _chosen(self, exponents: list[Fraction], randomness: Randomness | None) -> int:
        """The index of the winner."""


def probabilities(exponents: Sequence[Fraction]) -> list[float]:
    """exp(-x) divided by their sum; the smallest exponent is 0, so nothing overflows."""
    weights = [math.exp(-min(float(exponent), 1e4)) for exponent in exponents]
    total = math.fsum(weights)
    return [weight / total for weight in weights]
