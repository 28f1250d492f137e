"""Bounded Laplace mechanism: Laplace noise conditioned on the answer lying in an interval, with the scale that makes it private.

The density is divided by its mass inside the interval, and that normaliser depends on the value: with the scale S/ε it
leaks unless the sensitivity is the whole width (docs/theory/bounded-laplace.md). The scale here solves
S/b + ln(max C ratio) = ε for the discrete law that is drawn, rounded up.
Holohan, Antonatos, Braghin, Mac Aonghusa, "The bounded Laplace mechanism in differential privacy", Journal of Privacy and
Confidentiality 10(1), 2020; Croft, Sack, Shi, arXiv 1911.00602, 2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal

from sfumato.core.declared import require
from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness, below
from sfumato.core.ranges import Count
from sfumato.dp.accounting.enclosure import Enclosure
from sfumato.dp.mechanisms.calibrated import Calibrated, Change, change_of, source_of
from sfumato.dp.mechanisms.grid import Real, plain_scale, real_of
from sfumato.dp.mechanisms.noise.errors import BoundedError
from sfumato.dp.mechanisms.noise.laws import Law, bounded_laplace_law
from sfumato.dp.ranges import Bound, Epsilon, apart
from sfumato.kernels.sampling.noise import bernoulli_exp, discrete_laplace_one

#: The interval is divided into about this many steps per sensitivity.
_FINENESS = 2**16
_LARGEST_TABLE = 2**17


@dataclass(frozen=True)
class BoundedLaplace(Calibrated[Real, float]):
    """A number between `lower` and `upper`, never outside, with Laplace-shaped noise.

    ε-private (`epsilon`) for a value of the `sensitivity` S. `scale="naive"` asks for b = S/ε, which is refused unless S is
    the whole width: elsewhere it would leak up to nearly ln 2 more than stated. `steps` is the number of steps of the grid.
    Values outside the interval are clamped first; what is missing or NaN counts as `lower`. The time an answer takes
    depends on the value; do not let it be measured.

    >>> BoundedLaplace(0, 10, sensitivity=10, epsilon=1, scale="naive").loss().epsilon
    Fraction(1, 1)
    """

    lower: Annotated[Bound, "the lower end of the answers, declared by the owner"]
    upper: Annotated[Bound, "the upper end of the answers, declared by the owner"]
    sensitivity: Change
    epsilon: Epsilon
    scale: Annotated[Literal["corrected", "naive"], "whether the scale makes up for what is cut off"] = "corrected"
    steps: Annotated[Count | None, "how many steps the grid of answers has"] = None

    def coherent(self) -> Iterable[str]:
        yield from super().coherent()
        yield from apart(self.lower, self.upper)
        if self.scale == "naive" and change_of(self) > 0 and self.width > 0 and self._shift < self._last:
            yield (
                "the scale S/ε is not ε-private on an interval wider than the sensitivity: the share of the noise that lies"
                " inside depends on the value and leaks up to nearly ln 2 more. Use scale='corrected', or clamp the noisy"
                " answer instead (TruncatedMean, or Laplace and then clamp)"
            )

    @property
    def width(self) -> Fraction:
        """upper - lower."""
        return Fraction(self.upper) - Fraction(self.lower)

    @cached_property
    def _last(self) -> int:
        """The number of steps between the borders."""
        if self.steps is not None:
            return self.steps
        return math.ceil(_FINENESS * self.width / min(change_of(self), self.width))

    @cached_property
    def _shift(self) -> int:
        """The sensitivity in steps, rounding included; never more than the width."""
        return min(math.ceil(change_of(self) * self._last / self.width), self._last)

    @property
    def step(self) -> Fraction:
        """The distance of two neighbouring answers."""
        return self.width / self._last

    @cached_property
    def units(self) -> Fraction:
        """The scale in steps."""
        epsilon = Fraction(self.epsilon)
        if self._shift == self._last:
            return plain_scale(self._shift / epsilon)
        low, high = self._shift / epsilon, 4 * self._shift / epsilon + 1
        while not self._loss_at(high).certainly_at_most(epsilon):
            high *= 2
        for _ in range(40):
            middle = (low + high) / 2
            fine = Fraction(math.ceil(middle * 64), 64)
            low, high = (middle, high) if not self._loss_at(fine).certainly_at_most(epsilon) else (low, fine)
            if high - low <= Fraction(1, 64):
                break
        return high

    @property
    def noise_scale(self) -> Fraction:
        """The scale b of the noise."""
        return self.units * self.step

    def _loss_at(self, units: Fraction) -> Enclosure:
        """The exact loss of the discrete law: shift/t + ln N(shift)/N(0), N the sum of exp(-|k - value|/t) over the grid.

        N is log-concave and symmetric, and changes by at most a factor exp(1/t) per step: the worst pair is a border and
        a value one sensitivity away.
        """
        one = (Enclosure.of(-1 / units)).exp()
        near = Enclosure.of(-Fraction(self._shift + 1) / units).exp()
        far = Enclosure.of(-Fraction(self._last - self._shift + 1) / units).exp()
        whole = Enclosure.of(-Fraction(self._last + 1) / units).exp()
        return Enclosure.of(self._shift / units) + ((one + 1 - near - far) / (1 - whole)).ln()

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> BoundedError:
        """The largest deviation and bias over all values, both at a border; the deviation is about the value itself."""
        scale, width, rounding = float(self.noise_scale), float(self.width), 2 * float(self.step)
        # From a border the noise is exponential and cut off at the width; it never exceeds a uniform one.
        mean, square = width / 2, width**2 / 3
        if scale < 1000 * width:
            odds = 1 / math.expm1(width / scale)
            mean, square = scale - width * odds, 2 * scale**2 - (width**2 + 2 * scale * width) * odds
        return BoundedError(math.sqrt(square) + rounding, mean + rounding, "other", True, width)

    def law(self, value: float) -> Law:
        """The continuous law that the grid's approaches."""
        low, high = float(self.lower), float(self.upper)
        return bounded_laplace_law(min(max(value, low), high), float(self.noise_scale), low, high)

    def grid_law(self, value: Real) -> dict[float, float]:
        """The law as it is drawn: every answer with its probability; for grids of up to 2^17 steps."""
        require(self._last < _LARGEST_TABLE, "the grid is too fine to be listed; set steps")
        place, rate = self._place(value), 1 / float(self.units)
        weights = [math.exp(-abs(k - place) * rate) for k in range(self._last + 1)]
        total = math.fsum(weights)
        return {self._real(k): weight / total for k, weight in enumerate(weights)}

    def answer(self, value: Real, randomness: Randomness | None = None) -> float:
        source, place = source_of(randomness), self._place(value)
        # Both proposals give the same law; the one that is rejected less often is chosen by the parameters alone.
        while self.units >= self._last:
            k = below(source, self._last + 1)
            if bernoulli_exp(abs(k - place) / self.units, source):
                return self._real(k)
        while True:
            k = place + discrete_laplace_one(self.units, source)
            if 0 <= k <= self._last:
                return self._real(k)

    def _place(self, value: Real) -> int:
        number = real_of(value)
        if isinstance(number, float):  # missing, or an infinity
            return self._last if number > 0 else 0
        share = (number - Fraction(self.lower)) / self.step
        return max(0, min(self._last, math.floor(share + Fraction(1, 2))))

    def _real(self, place: int) -> float:
        return float(Fraction(self.lower) + place * self.step)
