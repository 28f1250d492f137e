"""Geometric mechanism: two-sided geometric noise on whole numbers, the integer form of the Laplace mechanism.

Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy mechanisms", STOC 2009.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.exact import exact
from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.calibrated import Calibrated, Change, change_of, source_of
from sfumato.dp.mechanisms.grid import WIDEST, many, plain_scale
from sfumato.dp.mechanisms.noise.errors import LaplaceError
from sfumato.dp.ranges import Epsilon
from sfumato.kernels.sampling.noise import discrete_laplace, discrete_laplace_one


@dataclass(frozen=True)
class Geometric(Calibrated[Any, Any]):
    """A whole number, or a vector of them, plus noise y with probability proportional to exp(-ε|y|/S).

    ε-private (`epsilon`) for L1 `sensitivity` S; exact, nothing is rounded. What is not a whole number is refused, by its
    type; entries of a vector are held between plus and minus 2^62.

    >>> Geometric(sensitivity=1, epsilon=1).loss().epsilon
    Fraction(1, 1)
    """

    sensitivity: Change
    epsilon: Epsilon

    def coherent(self) -> Iterable[str]:
        yield from super().coherent()
        if 0 < change_of(self) < 1:
            yield "whole numbers change by at least 1; a smaller sensitivity is for Laplace"

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the noise: S/ε, S rounded down to a whole number, which is what whole numbers can change by."""
        return plain_scale(math.floor(change_of(self)) / exact(self.epsilon, "epsilon"))

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> LaplaceError:
        return LaplaceError.of(float(self.scale), 1.0, rounded=False)

    def mass(self, answer: int, value: int) -> float:
        """The probability of an answer."""
        ratio = math.exp(-1 / float(self.scale))
        return (1 - ratio) / (1 + ratio) * ratio ** abs(answer - value)

    @overload
    def answer(self, value: int, randomness: Randomness | None = None) -> int: ...

    @overload
    def answer(self, value: list[int] | NDArray[np.integer], randomness: Randomness | None = None) -> NDArray[np.int64]: ...

    def answer(
        self, value: int | list[int] | NDArray[np.integer], randomness: Randomness | None = None
    ) -> int | NDArray[np.int64]:
        source = source_of(randomness)
        if not many(value):
            require(isinstance(value, int | np.integer), "the geometric mechanism answers whole numbers; for others use Laplace")
            return int(value) + discrete_laplace_one(self.scale, source)  # type: ignore[arg-type]
        whole = np.asarray(value, dtype=object)
        typed = all(isinstance(entry, int | np.integer) and not isinstance(entry, bool) for entry in whole.ravel())
        require(typed, "the geometric mechanism answers whole numbers; for others use Laplace")
        most = 1 << WIDEST
        held = [max(-most, min(most, int(entry))) for entry in whole.ravel()]
        return np.array(held, dtype=np.int64).reshape(whole.shape) + discrete_laplace(self.scale, whole.size, source).reshape(
            whole.shape
        )
