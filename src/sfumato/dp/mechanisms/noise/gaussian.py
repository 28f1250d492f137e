"""Gaussian mechanism: integer (discrete) Gaussian noise on a fixed-point grid, calibrated to the L2 sensitivity.

For (ε, δ) and one number the deviation is the smallest whose exact δ suffices, checked on the discrete law that is drawn;
the textbook formula is available for ε up to 1. For ρ, and for vectors, zero-concentrated privacy gives the variance
S²/(2ρ). Never ε-private without δ. Balle, Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018;
Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020; Dwork, Roth, "The algorithmic
foundations of differential privacy", Foundations and Trends 9, 2014 (classic form).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from sfumato.core.exact import Number, exact
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, LossGuarantee
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import Count
from sfumato.dp.mechanisms.base import Error
from sfumato.dp.mechanisms.calibrated import Calibrated, Change, change_of, source_of
from sfumato.dp.mechanisms.grid import Grid, Real, Reals, power_of_two_below
from sfumato.dp.ranges import PART, POSITIVE, Step
from sfumato.kernels.sampling.noise import discrete_gaussian, discrete_gaussian_one

_FINENESS = 20


@dataclass(frozen=True)
class Gaussian(Calibrated[Any, Any]):
    """A number or vector plus Gaussian noise, for the `sensitivity` S in the L2 norm.

    Either `epsilon` and `delta`, or `rho` for zero-concentrated privacy: the variance is S²/(2ρ). With `form="classic"` the
    deviation is √(2 ln(1.25/δ))·S/ε, valid for ε up to 1 and larger than needed. With several `coordinates`, (ε, δ) is
    reached through ρ, because the discrete noise is not round; the deviation is a few per cent larger than for one number.
    `step` is the grid.

    >>> round(float(Gaussian(1, epsilon=0.5, delta="1e-5").deviation), 4)
    7.0318
    """

    sensitivity: Change
    epsilon: Annotated[Number | None, POSITIVE, "the loss ε that an answer costs, with delta"] = None
    delta: Annotated[Number | None, PART, "δ: what is added to every bound on a probability"] = None
    rho: Annotated[Number | None, POSITIVE, "the zero-concentrated loss ρ, in place of epsilon and delta"] = None
    form: Annotated[Literal["analytic", "classic"], "which formula of the deviation is used"] = "analytic"
    coordinates: Annotated[Count, "how many numbers one answer has"] = 1
    step: Step = None

    norm = "l2_squared"

    def coherent(self) -> Iterable[str]:
        yield from super().coherent()
        pair = self.epsilon is not None and self.delta is not None
        if pair == (self.rho is not None) or pair != (self.epsilon is not None or self.delta is not None):
            yield "the Gaussian mechanism takes epsilon and delta, or rho alone; it is never epsilon-private without delta"
        elif self.form == "classic" and (self.epsilon is None or Fraction(self.epsilon) > 1):
            yield "the classic formula holds for epsilon up to 1; use form='analytic'"

    @cached_property
    def grid(self) -> Grid:
        """The fixed-point grid of the answers."""
        if self.step is not None:
            return Grid(Fraction(self.step))
        # A power of four below the square of the sensitivity, its root per coordinate.
        square = power_of_two_below(change_of(self, "l2_squared") / (self.coordinates * 4**_FINENESS))
        power = square.numerator.bit_length() - square.denominator.bit_length()
        return Grid(Fraction(2) ** (power // 2))

    @cached_property
    def shift(self) -> Fraction:
        """The L2 sensitivity in steps, rounding included: each coordinate is moved by less than one step more."""
        square = change_of(self, "l2_squared") / self.grid.step**2
        root = Fraction(math.isqrt(math.ceil(square * 4**10) - 1) + 1, 2**10)
        spread = Fraction(math.isqrt((self.coordinates - 1) * 4**10) + 1, 2**10) if self.coordinates > 1 else Fraction(0)
        return Fraction(math.ceil(root)) if self.coordinates == 1 else root + spread + 1

    @cached_property
    def variance(self) -> Fraction:
        """The variance of the noise in squared steps."""
        from sfumato.dp.accounting.gaussian import classic_sigma, discrete_gaussian_delta, gaussian_sigma
        from sfumato.dp.accounting.zcdp import rho_for

        if self.rho is not None:
            return _whole(self.shift**2 / (2 * Fraction(self.rho)))
        epsilon, delta = exact(self.epsilon or 0, "epsilon"), exact(self.delta or 0, "delta")
        if self.form == "classic":
            through = classic_sigma(epsilon, delta, self.shift) ** 2
            if self.coordinates > 1:
                through = max(through, self.shift**2 / (2 * rho_for(epsilon, delta)))
        elif self.coordinates > 1:
            return _whole(self.shift**2 / (2 * rho_for(epsilon, delta)))
        else:
            through = gaussian_sigma(epsilon, delta, self.shift) ** 2
        variance, growth = _whole(through), Fraction(1, 2**24)
        # The discrete law leaks a little more than the continuous one; the deviation is raised until it does not.
        while self.coordinates == 1 and discrete_gaussian_delta(epsilon, variance, int(self.shift)) > delta:
            variance, growth = _whole(variance * (1 + growth)), growth * 2
        return variance

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return math.sqrt(self.variance) * float(self.grid.step)

    def loss(self) -> LossGuarantee:
        stated: dict[str, Any] = {"neighbours": self.neighbours, "unit": self.unit}
        if self.rho is not None:
            return ConcentratedDP(self.rho, **stated)
        return ApproxDP(self.epsilon or 0, self.delta or 0, **stated)

    def error(self) -> Error:
        # Half a step from rounding, one because P(discrete >= m) <= P(continuous >= m - 1).
        return Error(self.deviation, 1.5 * float(self.grid.step), "gaussian", bound=True)

    @overload
    def answer(self, value: Real, randomness: Randomness | None = None) -> float: ...

    @overload
    def answer(self, value: Reals, randomness: Randomness | None = None) -> NDArray[np.float64]: ...

    def answer(self, value: Real | Reals, randomness: Randomness | None = None) -> float | NDArray[np.float64]:
        source = source_of(randomness)
        return self.grid.noisy(
            value,
            self.coordinates,
            lambda: discrete_gaussian_one(self.variance, source),
            lambda count: discrete_gaussian(self.variance, count, source),
        )


def _whole(variance: Fraction) -> Fraction:
    """Rounded up: to a whole number, or to 2^-16 where it is small."""
    fine = 1 if variance >= 2**16 else 2**16
    return Fraction(math.ceil(variance * fine), fine)
