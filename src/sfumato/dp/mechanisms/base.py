"""What every mechanism is: a frozen value that knows its loss and its error before it is run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from statistics import NormalDist
from typing import Generic, Literal, TypeVar

from sfumato.core.declared import Declared, require_confidence
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.plain_data import PlainDict
from sfumato.core.randomness import Randomness

V = TypeVar("V", contravariant=True)
A = TypeVar("A", covariant=True)


@dataclass(frozen=True)
class Error:
    """How far an answer lies from the value it is about.

    `deviation` is the standard deviation of one coordinate, `bias` the largest expected difference, and `law` the shape
    that margins are computed with; `other` uses Chebyshev's inequality, which always holds. `bound` says that the
    numbers are upper bounds rather than exact.
    """

    deviation: float
    bias: float = 0.0
    law: Literal["laplace", "gaussian", "other"] = "other"
    bound: bool = False

    def margin(self, confidence: float = 0.95) -> float:
        """The answer lies within this distance of the value with at least that probability."""
        require_confidence(confidence)
        if self.law == "laplace":
            spread = self.deviation / math.sqrt(2) * math.log(1 / (1 - confidence))
        elif self.law == "gaussian":
            spread = self.deviation * NormalDist().inv_cdf((1 + confidence) / 2)
        else:
            spread = self.deviation / math.sqrt(1 - confidence)
        return abs(self.bias) + spread


class Mechanism(Declared, ABC, Generic[V, A]):
    """A randomised answer to a value computed from the data.

    The constructor stores parameters, each within its declared range; `answer` draws. Anything that is released is drawn
    with integer noise from `kernels.sampling.noise`.
    """

    @property
    def name(self) -> str:
        """The public name of the mechanism."""
        return type(self).__name__

    @abstractmethod
    def loss(self) -> LossGuarantee:
        """What one answer costs."""

    @abstractmethod
    def error(self) -> Error:
        """How far the answer will be from the value."""

    @abstractmethod
    def answer(self, value: V, randomness: Randomness | None = None) -> A:
        """One private answer. Without `randomness` the operating system's is used."""

    def parameters(self) -> PlainDict:
        """The stored parameters as plain data."""
        from sfumato.core.declared import parameters

        return parameters(self)
