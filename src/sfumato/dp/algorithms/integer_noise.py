"""How far integer noise reaches: margins that hold for the discrete laws, not for the continuous ones they resemble.

Near the margin of the continuous law an integer may lie just outside, and coverage then falls short of what was stated.
Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from sfumato.core.declared import require_confidence
from sfumato.dp.mechanisms.base import Error

#: Up to this deviation the tail of the discrete Gaussian is summed; above, one step more than the continuous margin covers.
_SUMMED = 200.0


@dataclass(frozen=True)
class DiscreteLaplaceError(Error):
    """Noise with P(x) proportional to exp(-|x| / scale); the deviation is that of the continuous law, which bounds it."""

    scale: float = 1.0

    @classmethod
    def of(cls, scale: Fraction) -> DiscreteLaplaceError:
        """The error of noise of this scale."""
        return cls(math.sqrt(2) * float(scale), law="laplace", bound=True, scale=float(scale))

    def margin(self, confidence: float = 0.95) -> float:
        """The least whole number that the noise exceeds with at most the remaining probability."""
        require_confidence(confidence)
        # The least K with P(|noise| >= K) = 2 q^K / (1 + q) <= 1 - confidence; the noise is then at most K - 1.
        level = math.log(2 / ((1 + math.exp(-1 / self.scale)) * (1 - confidence)))
        return float(max(0, math.ceil(self.scale * level * (1 + 1e-12)) - 1))


@dataclass(frozen=True)
class DiscreteGaussianError(Error):
    """Noise with P(x) proportional to exp(-x² / 2v); the deviation is that of the continuous law, which bounds it."""

    @classmethod
    def of(cls, variance: Fraction) -> DiscreteGaussianError:
        """The error of noise with this parameter."""
        return cls(math.sqrt(variance), law="gaussian", bound=True)

    def margin(self, confidence: float = 0.95) -> float:
        """The least whole number that the noise exceeds with at most the remaining probability, or one above it."""
        require_confidence(confidence)
        if self.deviation > _SUMMED:
            return float(math.ceil(self.deviation * NormalDist().inv_cdf((1 + confidence) / 2)) + 1)
        far = 2 + math.ceil(self.deviation * math.sqrt(2 * math.log(1e6 / (1 - confidence))))
        weights = [math.exp(-((x / self.deviation) ** 2) / 2) for x in range(1, far + 1)]
        # What lies beyond `far` is bounded by a geometric series and counts as outside: rounding stays on the safe side.
        total = 1 + 2 * math.fsum(weights) + 2 * weights[-1] * self.deviation**2 / far
        inside, margin = 1.0, 0
        while margin < far and inside < confidence * total * (1 + 1e-12):
            inside += 2 * weights[margin]
            margin += 1
        return float(margin)
