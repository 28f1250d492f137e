"""What an algorithm pays, ε or ρ, in exact parts, and the integer noise each part buys.

ε buys discrete Laplace noise of scale L1 / ε, ρ buys discrete Gaussian noise of variance L2² / 2ρ.
Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006;
Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.exact import Number, exact
from sfumato.core.guarantees.loss import ConcentratedDP, LossGuarantee, Neighbours, PureDP
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import Because
from sfumato.dp.algorithms.integer_noise import DiscreteGaussianError, DiscreteLaplaceError
from sfumato.dp.mechanisms.base import Error
from sfumato.dp.ranges import AsWritten

#: Smaller amounts would need noise that does not fit into 64 bits.
LEAST = Fraction(1, 10**6)

_AMOUNT = Because(AsWritten(at_least=float(LEAST)), "below a millionth nothing but noise would be released")
#: What a release may cost, in one of two measures.
Epsilon = Annotated[Number | None, _AMOUNT, "the loss ε that the release may cost"]
Rho = Annotated[Number | None, _AMOUNT, "the zero-concentrated loss ρ that the release may cost"]


def one_of_them(epsilon: Number | None, rho: Number | None) -> Iterator[str]:
    """What is wrong with a cost that is stated twice or not at all."""
    if (epsilon is None) == (rho is None):
        yield "give epsilon or rho, one of them: it says how much privacy the release may cost"


@dataclass(frozen=True)
class LossShare:
    """An amount of ε (`laplace`) or of ρ (`gaussian`); parts of it add up to it under adaptive composition."""

    law: Literal["laplace", "gaussian"]
    amount: Fraction

    @classmethod
    def of(cls, epsilon: Number | None, rho: Number | None = None) -> LossShare:
        """Exactly one of the two is given, and it is above 0."""
        require(
            (epsilon is None) != (rho is None), "give epsilon or rho, one of them: it says how much privacy the release may cost"
        )
        if epsilon is not None:
            paid = cls("laplace", exact(epsilon, "epsilon"))
        else:
            paid = cls("gaussian", exact(rho, "rho"))  # type: ignore[arg-type]
        require(paid.amount >= LEAST, "epsilon or rho is at least a millionth: below that nothing but noise would be released")
        return paid

    def part(self, share: Fraction) -> LossShare:
        """That share of the amount."""
        return LossShare(self.law, self.amount * share)

    def guarantee(self, neighbours: Neighbours = "add_remove", unit: str = "record") -> LossGuarantee:
        """What spending all of it promises."""
        if self.law == "laplace":
            return PureDP(self.amount, neighbours=neighbours, unit=unit)
        return ConcentratedDP(self.amount, neighbours=neighbours, unit=unit)

    def noise_parameter(self, l1: Fraction | int, l2_squared: Fraction | int) -> Fraction:
        """The scale of Laplace noise or the variance of Gaussian noise for counts of this sensitivity."""
        return Fraction(l1) / self.amount if self.law == "laplace" else Fraction(l2_squared) / (2 * self.amount)

    def noise(self, count: int, l1: Fraction | int, l2_squared: Fraction | int, source: Randomness) -> NDArray[np.int64]:
        """Independent integer noise for `count` integers of this sensitivity together."""
        from sfumato.kernels.sampling.noise import discrete_gaussian, discrete_laplace

        draw = discrete_laplace if self.law == "laplace" else discrete_gaussian
        return draw(self.noise_parameter(l1, l2_squared), count, source)

    def error(self, l1: Fraction | int, l2_squared: Fraction | int) -> Error:
        """How far one noisy integer is from the exact one, with margins that hold for integers."""
        parameter = self.noise_parameter(l1, l2_squared)
        return DiscreteLaplaceError.of(parameter) if self.law == "laplace" else DiscreteGaussianError.of(parameter)
