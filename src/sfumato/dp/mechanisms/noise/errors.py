"""Errors of integer noise: margins that hold for the noise as it is drawn, not for its continuous limit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfumato.core.declared import require_confidence
from sfumato.dp.mechanisms.base import Error


@dataclass(frozen=True)
class LaplaceError(Error):
    """Discrete Laplace noise of `scale` steps of size `step`, on a value rounded by at most `rounding`.

    Answers that are clamped afterwards lie no further from the value, and never further than `width`.
    """

    scale: float = 1.0
    step: float = 1.0
    rounding: float = 0.0
    width: float = math.inf

    @classmethod
    def of(cls, scale: float, step: float, rounded: bool) -> LaplaceError:
        """Without a clamp. The variance of the noise is exact: 2q/(1-q)² steps² with q = exp(-1/scale)."""
        rounding = step / 2 if rounded else 0.0
        return cls(_laplace_deviation(scale, step), rounding, "laplace", rounded, scale, step, rounding)

    @classmethod
    def clamped(cls, scale: float, step: float, width: float) -> LaplaceError:
        """Clamped to an interval of that width around the value: the bias is largest for a value at a border."""
        reach = scale * step
        bias = reach / 2 * -math.expm1(-width / reach) + step
        deviation = min(_laplace_deviation(scale, step) + step, width)
        return cls(deviation, min(bias, width), "laplace", True, scale, step, step, width)

    def margin(self, confidence: float = 0.95) -> float:
        require_confidence(confidence)
        # The least K with P(|noise| >= K) = 2 q^K / (1 + q) <= 1 - confidence.
        level = math.log(2 / ((1 + math.exp(-1 / self.scale)) * (1 - confidence)))
        return min(self.width, self.rounding + self.step * max(0, math.ceil(self.scale * level - 1e-12) - 1))


@dataclass(frozen=True)
class BoundedError(Error):
    """The root of the mean square distance to the value is at most `deviation`, and no answer is further off than `width`."""

    width: float = math.inf

    @classmethod
    def of(cls, root_mean_square: float, width: float) -> BoundedError:
        """The mean distance is never more than the root of the mean square."""
        error = min(root_mean_square, width)
        return cls(error, error, "other", True, width)

    def margin(self, confidence: float = 0.95) -> float:
        require_confidence(confidence)
        return min(self.width, self.deviation / math.sqrt(1 - confidence))


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
        require_confidence(confidence)
        rounding = self.bias - (self.unit * (math.log(self.candidates) + 1) if self.candidates > 1 else 0.0)
        return max(rounding, 0.0) + self.unit * math.log(self.candidates / (1 - confidence)) * (self.candidates > 1)


def _laplace_deviation(scale: float, step: float) -> float:
    return step / (math.sqrt(2) * math.sinh(1 / (2 * scale)))
