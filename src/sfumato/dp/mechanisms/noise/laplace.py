"""Laplace mechanism: add noise whose density falls by a factor e with every S/ε.

The value is rounded to a fixed-point grid and integer (discrete) Laplace noise is added there, with the rounding inside
the sensitivity. With δ the scale shrinks: by the simple argument as printed in textbooks, or as far as the exact δ of
the mechanism allows. Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis", TCC
2006; Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy mechanisms", STOC 2009.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from sfumato.core import ranges
from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import ApproxDP, LossGuarantee
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import Count
from sfumato.dp.accounting.enclosure import Enclosure
from sfumato.dp.mechanisms.calibrated import Calibrated, Change, change_of, source_of
from sfumato.dp.mechanisms.grid import Grid, Real, Reals, plain_scale
from sfumato.dp.mechanisms.noise.errors import LaplaceError
from sfumato.dp.mechanisms.noise.laws import Law, laplace_law
from sfumato.dp.ranges import Step
from sfumato.kernels.sampling.noise import discrete_laplace, discrete_laplace_one


@dataclass(frozen=True)
class Laplace(Calibrated[Any, Any]):
    """A number or vector plus Laplace noise of scale S/ε per coordinate, S the `sensitivity` in the L1 norm.

    ε-private (`epsilon`), or (ε, δ)-private with `delta`: `form="printed"` uses S/(ε - ln(1-δ)), `form="tight"` the
    smallest scale, S/(ε - 2 ln(1-δ)), for one coordinate. `coordinates` is how many numbers one answer has; `step` is the
    grid (by default the largest power of two up to 2^-20 of the sensitivity, per coordinate). The noise is unbounded:
    counts may become negative. A value that is not finite is answered as if it were 0.

    >>> Laplace(sensitivity=1, epsilon=0.5).scale
    Fraction(2, 1)
    """

    sensitivity: Change
    epsilon: Annotated[Number, ranges.Number(at_least=0, exact=True), "the loss ε that an answer costs"]
    delta: Annotated[
        Number, ranges.Number(at_least=0, below=1, exact=True), "δ: what is added to every bound on a probability"
    ] = 0
    form: Annotated[Literal["tight", "printed"], "which formula of the scale is used with a delta"] = "tight"
    coordinates: Annotated[Count, "how many numbers one answer has"] = 1
    step: Step = None

    def coherent(self) -> Iterable[str]:
        yield from super().coherent()
        if self.epsilon == 0 and self.delta == 0:
            yield "epsilon must be above 0, or 0 with a delta"
        if self.delta and self.form == "tight" and self.coordinates > 1:
            yield "the tight scale is proved for one coordinate; use form='printed', or Gaussian"

    @cached_property
    def grid(self) -> Grid:
        """The fixed-point grid of the answers."""
        if self.step is not None:
            return Grid(Fraction(self.step))
        return Grid.for_sensitivity(change_of(self), self.coordinates)

    @cached_property
    def units(self) -> Fraction:
        """The scale of the noise in steps of the grid."""
        shift = self.grid.shift(change_of(self), self.coordinates)
        epsilon = Fraction(self.epsilon)
        if not self.delta:
            return plain_scale(shift / epsilon)
        surplus = (-Enclosure.of(1 - Fraction(self.delta)).ln()).down()
        printed = shift / (epsilon + surplus)
        if self.form == "printed":
            return plain_scale(printed)
        # On a grid 1-δ may fall short of the continuous one by a factor cosh(1/2t), whose logarithm is below 1/(8t²).
        rest = surplus - (epsilon + 2 * surplus) ** 2 / (8 * shift**2)
        return plain_scale(min(printed, shift / (epsilon + 2 * rest)) if rest > 0 else printed)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise, b."""
        return self.units * self.grid.step

    def loss(self) -> LossGuarantee:
        if not self.delta:
            return self._pure(self.epsilon)
        return ApproxDP(self.epsilon, self.delta, neighbours=self.neighbours or "add_remove", unit=self.unit or "record")

    def error(self) -> LaplaceError:
        return LaplaceError.of(float(self.units), float(self.grid.step), rounded=True)

    def law(self, value: float) -> Law:
        """The law of an answer about one number, as the continuous law that the grid's approaches."""
        return laplace_law(value, float(self.scale))

    @overload
    def answer(self, value: Real, randomness: Randomness | None = None) -> float: ...

    @overload
    def answer(self, value: Reals, randomness: Randomness | None = None) -> NDArray[np.float64]: ...

    def answer(self, value: Real | Reals, randomness: Randomness | None = None) -> float | NDArray[np.float64]:
        source = source_of(randomness)
        return self.grid.noisy(
            value,
            self.coordinates,
            lambda: discrete_laplace_one(self.units, source),
            lambda count: discrete_laplace(self.units, count, source),
        )
