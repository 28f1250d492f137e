"""How far below and above a shown number what the bounded data says may lie, at any confidence.

The distances of a number follow from its standard error by the law of its noise (`ColumnLaw`), or are kept with it at several
confidences (`Reach`). At one confidence they are `Distances`, of which the farther one is the margin; around the number they make
an `Interval`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.errors import LedgerError
from sfumato.core.texts import between, within
from sfumato.dp.sql.measuring.noise import Law, errors_in_sum_margin, noise_margin

#: The confidences at which an answer keeps its reaches; those between are read off a curve through them.
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)

#: A distance at each of the levels, then the one that holds for certain (by declared bounds); None where it may be anything, and
#: instead of the whole where it may be at all of them.
Curve = tuple[float | None, ...] | None

#: The laws by the names that a ledger keeps.
_LAWS: Mapping[str, Law] = {"laplace": "laplace", "gaussian": "gaussian"}
#: From here on one side of an interval is shown as longer than the other.
_LOPSIDED = 1.25


@dataclass(frozen=True)
class Interval:
    """The ends between which what the bounded data says lies, at a confidence; None for an end that may be anywhere."""

    low: float | None
    high: float | None
    confidence: float

    def beside(self, value: float) -> str:
        """The number inside with its margin, or with both ends where one is farther off.

        >>> Interval(408.8, 415.2, 0.95).beside(412), Interval(408.8, None, 0.95).beside(412)
        ('412 ± 3.2', '412 (408.8 to ?)')
        """
        distances = [abs(end - value) for end in (self.low, self.high) if end is not None]
        if len(distances) == 2 and max(distances) <= _LOPSIDED * min(distances):
            return within(value, max(distances))
        return between(value, self.low, self.high)


@dataclass(frozen=True)
class Distances:
    """How far below and above a shown number what the bounded data says may lie, at a confidence; None where anywhere."""

    below: float | None
    above: float | None
    confidence: float

    @property
    def margin(self) -> float | None:
        """The distance to the farther end; None where one end may be anywhere."""
        return None if self.below is None or self.above is None else max(self.below, self.above)

    def around(self, value: float) -> Interval | None:
        """The ends around the shown number; None where both may be anywhere."""
        if self.below is None and self.above is None:
            return None
        low = None if self.below is None else value - self.below
        return Interval(low, None if self.above is None else value + self.above, self.confidence)


@dataclass(frozen=True)
class OneNoise:
    """The law of a column that one noise moves, in steps of that worth: whatever is shown, its margin is that of the noise."""

    law: Law
    amount: Fraction
    step: Fraction

    @property
    def grid(self) -> float | None:
        """Such a column is not rounded."""
        return None

    def distances(self, error: float, confidence: float) -> Distances:
        """The distances at a confidence."""
        distance = noise_margin(self.law, self.amount, self.step, confidence)
        return Distances(distance, distance, confidence)

    def __str__(self) -> str:
        return f"{self.law} {self.amount} {self.step}"


@dataclass(frozen=True)
class SumOfNoises:
    """The law of a column that several noises move: its margin is some standard errors, `plus` what the gaps between whole
    numbers of steps may add, in whole steps of the `grid` that the column is rounded to.
    """

    law: Law
    plus: float | None = None
    grid: float | None = None

    def distances(self, error: float, confidence: float) -> Distances:
        """The distances at a confidence from a number with this standard error."""
        distance = on_grid(error * errors_in_sum_margin(self.law, confidence) + (self.plus or 0.0), self.grid)
        return Distances(distance, distance, confidence)

    def __str__(self) -> str:
        extra = {"plus": self.plus, "grid": self.grid}
        return self.law + "".join(f" {name}={number!r}" for name, number in extra.items() if number is not None)


#: How the margins of a column follow from its standard errors.
ColumnLaw = OneNoise | SumOfNoises


def stored_law(text: str) -> ColumnLaw:
    """The law of a column as a ledger keeps it.

    >>> stored_law("laplace 21/2 1"), stored_law("gaussian grid=0.01")
    (OneNoise(law='laplace', amount=Fraction(21, 2), step=Fraction(1, 1)), SumOfNoises(law='gaussian', plus=None, grid=0.01))
    """
    try:
        name, *words = text.split(" ")
        law: Law = _LAWS[name]
        if words and "=" not in words[0]:
            amount, step = map(Fraction, words)
            return OneNoise(law, amount, step)
        extra = {part: float(number) for part, _, number in (word.partition("=") for word in words)}
        return SumOfNoises(law, **extra)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise LedgerError("the stored answer has no law of noise: the ledger was edited or damaged. Run verify.") from None


def on_grid(margin: float, grid: float | None) -> float:
    """A margin of a rounded number: two numbers so far apart are at most so far apart when they are rounded."""
    if grid is None:
        return margin
    steps = math.ceil(margin / grid - 1e-9)
    return steps * grid if grid >= 1 else steps / round(1 / grid)


@dataclass(frozen=True)
class Reach:
    """The distances from a shown number to the low and to the high end of its interval."""

    below: Curve
    above: Curve

    def distances(self, confidence: float, grid: float | None = None) -> Distances:
        """The distances at a confidence from a number that is rounded to a grid, or not at all."""
        below, above = (distance_at(curve, confidence) for curve in (self.below, self.above))
        return Distances(
            None if below is None else on_grid(below, grid), None if above is None else on_grid(above, grid), confidence
        )

    def standard_error(self, law: str) -> float | None:
        """The deviation of the noise that would have this margin."""
        margin = self.distances(0.95).margin
        return None if margin is None else margin / errors_in_sum_margin(law, 0.95)


def distance_at(curve: Curve, confidence: float) -> float | None:
    """The distance of a curve at any confidence: straight in the logarithm of what is left over, which Laplace noise is exactly.

    Above the last level nothing is guessed: the distance is the one that holds for certain, or there is none.

    >>> distance_at((0.7, 1.6, 2.3, 3.0, 3.9, 4.6, 5.3, 6.9, 50.0), 0.95)
    3.0
    >>> distance_at((0.7, 1.6, 2.3, 3.0, 3.9, 4.6, 5.3, 6.9, 50.0), 0.9999)
    50.0
    """
    if curve is None:
        return None
    places = [0.0, *(-math.log(1 - level) for level in LEVELS)]
    distances = [0.0, *(math.inf if distance is None else distance for distance in curve[: len(LEVELS)])]
    place_of_confidence = -math.log(1 - confidence)
    above = next((number for number, place in enumerate(places) if place_of_confidence <= place * (1 + 1e-12)), None)
    if above is None:
        return curve[len(LEVELS)] if len(curve) > len(LEVELS) else None
    if not math.isfinite(distances[above]):
        return None
    share = (place_of_confidence - places[above - 1]) / (places[above] - places[above - 1])
    return distances[above - 1] + share * (distances[above] - distances[above - 1]) if share != 1.0 else distances[above]
