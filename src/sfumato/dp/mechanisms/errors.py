"""Errors of integer noise: margins that hold for the noise as it is drawn, not for its continuous limit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfumato.core.params import require
from sfumato.dp.mechanisms.base import Error


@dataclass(frozen=True)
class LaplaceError(Error):
    """Discrete Laplace noise of `scale` steps of size `step`; `bias` is what rounding to the grid may add."""

    scale: float = 1.0
    step: float = 1.0

    @classmethod
    def of(cls, scale: float, step: float, rounded: bool) -> LaplaceError:
        """Exact deviation: 2q/(1-q)² with q = exp(-1/scale)."""
        deviation = step / (math.sqrt(2) * math.sinh(1 / (2 * scale)))
        return cls(deviation, step / 2 if rounded else 0.0, "laplace", rounded, scale, step)

    def margin(self, confidence: float = 0.95) -> float:
        require(0 < confidence < 1, "confidence lies between 0 and 1")
        # The least K with P(|noise| >= K) = 2 q^K / (1 + q) <= 1 - confidence.
        level = math.log(2 / ((1 + math.exp(-1 / self.scale)) * (1 - confidence)))
        return self.bias + self.step * max(0, math.ceil(self.scale * level - 1e-12) - 1)


@dataclass(frozen=True)
class ChoiceError(Error):
    """How far the score of the chosen candidate lies below the best score.

    `unit` is the score that one factor e of probability is worth; there are `candidates` of them.
    """

    unit: float = 1.0
    candidates: int = 1

    @classmethod
    def of(cls, unit: float, candidates: int, rounding: float = 0.0) -> ChoiceError:
        """P(gap >= unit (ln m + t)) <= e^-t, so the mean is at most unit (ln m + 1) and its square accordingly."""
        log = math.log(candidates)
        mean = unit * (log + 1) if candidates > 1 else 0.0
        square = unit**2 * (log**2 + 2 * log + 2) if candidates > 1 else 0.0
        return cls(math.sqrt(square), mean + rounding, "other", True, unit, candidates)

    def margin(self, confidence: float = 0.95) -> float:
        require(0 < confidence < 1, "confidence lies between 0 and 1")
        rounding = self.bias - (self.unit * (math.log(self.candidates) + 1) if self.candidates > 1 else 0.0)
        return max(rounding, 0.0) + self.unit * math.log(self.candidates / (1 - confidence)) * (self.candidates > 1)
