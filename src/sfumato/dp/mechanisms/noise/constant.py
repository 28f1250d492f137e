"""Constant: an answer that does not look at the data, and the only deterministic one that is private.

Dwork, Roth, "The algorithmic foundations of differential privacy", Foundations and Trends 9, 2014.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.base import Error
from sfumato.dp.mechanisms.calibrated import Stated


@dataclass(frozen=True)
class Constant(Stated[object, int | float | str]):
    """Always the same answer, `constant`: ε = 0, and no bound on the error."""

    constant: Annotated[int | float | str, "the answer"] = 0

    def loss(self) -> PureDP:
        return self._pure(0)

    def error(self) -> Error:
        return Error(0.0, math.inf)

    def answer(self, value: object, randomness: Randomness | None = None) -> int | float | str:
        return self.constant
